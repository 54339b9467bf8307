//! Dates and times as a function over the values of a row takes and gives them: those of `chrono`.
//!
//! `NaiveDate` is DATE, `NaiveDateTime` is TIMESTAMP(6), `DateTime<Utc>` is TIMESTAMP_LTZ(6); arguments of fewer digits are cast.

use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Date32Builder, TimestampMicrosecondArray, TimestampMicrosecondBuilder};
use arrow::datatypes::Date32Type;
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};

use super::rows::{Argument, Returned};
use crate::error::Result;
use crate::types::TypeKind;

/// Digits of a second that are kept.
const PRECISION: u8 = 6;

fn at(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or(if micros < 0 {
        DateTime::<Utc>::MIN_UTC
    } else {
        DateTime::<Utc>::MAX_UTC
    })
}

impl Argument for NaiveDate {
    type Array = Date32Array;
    type Value<'a> = NaiveDate;
    const TAKES_NULL: bool = false;

    fn kind() -> TypeKind {
        TypeKind::Date
    }

    fn value(array: &Self::Array, row: usize) -> NaiveDate {
        let days = array.value(row);
        NaiveDate::from_epoch_days(days).unwrap_or(if days < 0 { NaiveDate::MIN } else { NaiveDate::MAX })
    }
}

impl Argument for NaiveDateTime {
    type Array = TimestampMicrosecondArray;
    type Value<'a> = NaiveDateTime;
    const TAKES_NULL: bool = false;

    fn kind() -> TypeKind {
        TypeKind::Timestamp(PRECISION)
    }

    fn value(array: &Self::Array, row: usize) -> NaiveDateTime {
        at(array.value(row)).naive_utc()
    }
}

impl Argument for DateTime<Utc> {
    type Array = TimestampMicrosecondArray;
    type Value<'a> = DateTime<Utc>;
    const TAKES_NULL: bool = false;

    fn kind() -> TypeKind {
        TypeKind::TimestampLtz(PRECISION)
    }

    fn value(array: &Self::Array, row: usize) -> DateTime<Utc> {
        at(array.value(row))
    }
}

macro_rules! returned {
    ($($rust:ty: $builder:ty = $kind:expr, $value:expr, $finish:expr);+ $(;)?) => {$(
        impl Returned for $rust {
            type Builder = $builder;
            const NULLABLE: bool = false;

            fn kind() -> TypeKind {
                $kind
            }

            fn append(self, builder: &mut Self::Builder) -> Result<()> {
                builder.append_value($value(self));
                Ok(())
            }

            fn append_null(builder: &mut Self::Builder) {
                builder.append_null();
            }

            fn finish(builder: Self::Builder) -> ArrayRef {
                $finish(builder)
            }
        }
    )+};
}

returned!(
    NaiveDate: Date32Builder = TypeKind::Date, Date32Type::from_naive_date, |mut builder: Date32Builder| {
        Arc::new(builder.finish())
    };
    NaiveDateTime: TimestampMicrosecondBuilder = TypeKind::Timestamp(PRECISION),
        |time: NaiveDateTime| time.and_utc().timestamp_micros(),
        |mut builder: TimestampMicrosecondBuilder| Arc::new(builder.finish());
    DateTime<Utc>: TimestampMicrosecondBuilder = TypeKind::TimestampLtz(PRECISION),
        |time: DateTime<Utc>| time.timestamp_micros(),
        |mut builder: TimestampMicrosecondBuilder| Arc::new(builder.finish().with_timezone("UTC"));
);
