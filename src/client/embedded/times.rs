//! Dates and times as a function over the values of a row takes and gives them: those of `chrono`.
//!
//! `NaiveDate` is DATE, `NaiveDateTime` is TIMESTAMP(6), `DateTime<Utc>` is TIMESTAMP_LTZ(6); arguments of fewer digits are cast.

use std::convert::identity;
use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Date32Builder, TimestampMicrosecondArray, TimestampMicrosecondBuilder};
use arrow::datatypes::Date32Type;
use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};

use super::rows::{Argument, Returned, argument, returned};
use crate::error::Result;
use crate::types::TypeKind;

/// Digits of a second that are kept.
const PRECISION: u8 = 6;

fn date(days: i32) -> NaiveDate {
    NaiveDate::from_epoch_days(days).unwrap_or(if days < 0 { NaiveDate::MIN } else { NaiveDate::MAX })
}

fn instant(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or(if micros < 0 {
        DateTime::<Utc>::MIN_UTC
    } else {
        DateTime::<Utc>::MAX_UTC
    })
}

fn local(micros: i64) -> NaiveDateTime {
    instant(micros).naive_utc()
}

argument!(
    NaiveDate: Date32Array, NaiveDate = TypeKind::Date, date;
    NaiveDateTime: TimestampMicrosecondArray, NaiveDateTime = TypeKind::Timestamp(PRECISION), local;
    DateTime<Utc>: TimestampMicrosecondArray, DateTime<Utc> = TypeKind::TimestampLtz(PRECISION), instant;
);

fn micros_of(instant: DateTime<Utc>) -> i64 {
    instant.timestamp_micros()
}

fn micros(time: NaiveDateTime) -> i64 {
    time.and_utc().timestamp_micros()
}

fn in_utc(instants: TimestampMicrosecondArray) -> TimestampMicrosecondArray {
    instants.with_timezone("UTC")
}

returned!(
    NaiveDate: Date32Builder = TypeKind::Date, Date32Type::from_naive_date, identity;
    NaiveDateTime: TimestampMicrosecondBuilder = TypeKind::Timestamp(PRECISION), micros, identity;
    DateTime<Utc>: TimestampMicrosecondBuilder = TypeKind::TimestampLtz(PRECISION),
        micros_of, in_utc;
);
