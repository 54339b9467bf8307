//! `+ - *` where a date, a time or an interval takes part.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, PrimitiveArray};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, DurationMillisecondType, Int64Type, IntervalYearMonthType, Time32MillisecondType,
};

use super::arithmetic::{Operator, zip_values};
use super::builtin::{Builtin, coerce};
use crate::error::{Error, Result};
use crate::expr::compile::map_array;
use crate::expr::datetime::{MS_PER_DAY, add_months_to_days, add_months_to_ms};
use crate::expr::values::{timestamp_units, timestamps_of_units};
use crate::expr::{Datum, Expr};
use crate::types::{DataType, TypeKind};

/// Types a call that is no arithmetic of numbers.
pub(super) fn bind(function: &Builtin, operator: Operator, left: Expr, right: Expr) -> Result<Expr> {
    let (l, r) = (left.data_type().regular(), right.data_type().regular());
    let nullable = l.nullable || r.nullable;
    let result = match operator {
        Operator::Add | Operator::Subtract if l.is_interval() && l.kind == r.kind => l.kind.clone(),
        Operator::Add | Operator::Subtract if l.is_datetime() && takes(&l.kind, &r.kind) => l.kind.clone(),
        Operator::Add if r.is_datetime() && takes(&r.kind, &l.kind) => return bind(function, operator, right, left),
        Operator::Subtract if l.is_timestamp() && r.is_timestamp() || l.kind == TypeKind::Date && r.kind == TypeKind::Date => {
            return Ok(difference(function, left, right, nullable));
        }
        Operator::Multiply if l.is_interval() && r.is_numeric() => {
            let factor = if r.is_integer() { TypeKind::BigInt } else { TypeKind::Double };
            let args = vec![left, coerce(right, &factor)];
            return Ok(function.call(args, DataType::new(l.kind, nullable)));
        }
        Operator::Multiply if l.is_numeric() && r.is_interval() => return bind(function, operator, right, left),
        _ => return Err(function.mismatch(&[left, right])),
    };
    Ok(function.call(vec![left, right], DataType::new(result, nullable)))
}

/// Whether the interval can be added to the date or time.
fn takes(datetime: &TypeKind, interval: &TypeKind) -> bool {
    match interval {
        TypeKind::IntervalDayTime => true,
        TypeKind::IntervalYearMonth => !matches!(datetime, TypeKind::Time(_)),
        _ => false,
    }
}

/// The interval between two points in time, both brought to milliseconds.
fn difference(function: &Builtin, left: Expr, right: Expr, nullable: bool) -> Expr {
    let kind = match left.data_type().kind {
        TypeKind::TimestampLtz(_) => TypeKind::TimestampLtz(3),
        _ => TypeKind::Timestamp(3),
    };
    function.call(vec![coerce(left, &kind), coerce(right, &kind)], DataType::new(TypeKind::IntervalDayTime, nullable))
}

/// Evaluates a call that [`bind`] typed; no scalar is NULL.
pub(super) fn evaluate(left: &Datum, right: &Datum, data_type: &DataType, operator: Operator, rows: usize) -> Result<ArrayRef> {
    let sign = if operator == Operator::Subtract { -1 } else { 1 };
    match (&data_type.kind, right.array().data_type()) {
        (TypeKind::IntervalDayTime, ArrowType::Timestamp(..)) => {
            let (left, right) = (as_units(left)?, as_units(right)?);
            Ok(Arc::new(zip_values::<Int64Type, Int64Type, DurationMillisecondType>(&left, &right, i64::wrapping_sub)?))
        }
        (TypeKind::IntervalDayTime, ArrowType::Int64) => Ok(Arc::new(zip_values::<
            DurationMillisecondType,
            Int64Type,
            DurationMillisecondType,
        >(left, right, i64::wrapping_mul)?)),
        (TypeKind::IntervalDayTime, _) => {
            let scale = |ms: i64, factor: f64| (ms as f64 * factor) as i64;
            Ok(Arc::new(zip_values::<DurationMillisecondType, arrow::datatypes::Float64Type, DurationMillisecondType>(
                left, right, scale,
            )?))
        }
        (TypeKind::IntervalYearMonth, ArrowType::Int64) => {
            let scale = |months: i32, factor: i64| months.wrapping_mul(factor as i32);
            Ok(Arc::new(zip_values::<IntervalYearMonthType, Int64Type, IntervalYearMonthType>(left, right, scale)?))
        }
        (TypeKind::IntervalYearMonth, _) => {
            let scale = |months: i32, factor: f64| (f64::from(months) * factor) as i32;
            Ok(Arc::new(zip_values::<IntervalYearMonthType, arrow::datatypes::Float64Type, IntervalYearMonthType>(
                left, right, scale,
            )?))
        }
        (TypeKind::Date, ArrowType::Interval(_)) => {
            let add = |days: i32, months: i32| add_months_to_days(days, i64::from(months) * sign);
            Ok(Arc::new(zip_values::<Date32Type, IntervalYearMonthType, Date32Type>(left, right, add)?))
        }
        (TypeKind::Date, _) => {
            let add = |days: i32, ms: i64| days.wrapping_add((sign * ms / MS_PER_DAY) as i32);
            Ok(Arc::new(zip_values::<Date32Type, DurationMillisecondType, Date32Type>(left, right, add)?))
        }
        (TypeKind::Time(_), _) => {
            let add = |time: i32, ms: i64| (i64::from(time) + sign * (ms % MS_PER_DAY)).rem_euclid(MS_PER_DAY) as i32;
            Ok(Arc::new(zip_values::<Time32MillisecondType, DurationMillisecondType, Time32MillisecondType>(left, right, add)?))
        }
        (TypeKind::Timestamp(precision) | TypeKind::TimestampLtz(precision), interval) => {
            let months = matches!(interval, ArrowType::Interval(_));
            let moved = move_timestamps(&as_units(left)?, right, DataType::units_per_ms(*precision), sign, months)?;
            debug_assert_eq!(moved.len(), rows);
            Ok(timestamps_of_units(&moved, &data_type.to_arrow()))
        }
        (kind, other) => Err(Error::internal(format!("no arithmetic for {kind:?} with {other}"))),
    }
}

fn move_timestamps(left: &Datum, right: &Datum, units_per_ms: i64, sign: i64, months: bool) -> Result<Int64Array> {
    if months {
        let add = |units: i64, months: i32| {
            let (ms, rest) = (units.div_euclid(units_per_ms), units.rem_euclid(units_per_ms));
            add_months_to_ms(ms, i64::from(months) * sign).wrapping_mul(units_per_ms).wrapping_add(rest)
        };
        return zip_values::<Int64Type, IntervalYearMonthType, Int64Type>(left, right, add);
    }
    let factor = units_per_ms * sign;
    zip_values::<Int64Type, DurationMillisecondType, Int64Type>(left, right, |units, ms| {
        units.wrapping_add(ms.wrapping_mul(factor))
    })
}

fn as_units(datum: &Datum) -> Result<Datum> {
    map_array(datum.clone(), |array| match array.data_type() {
        ArrowType::Timestamp(..) => Ok(Arc::new(timestamp_units(array)) as ArrayRef),
        _ => Ok(Arc::new(PrimitiveArray::<Int64Type>::clone(array.as_primitive())) as ArrayRef),
    })
}
