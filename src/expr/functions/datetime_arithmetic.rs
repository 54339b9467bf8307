//! `+ - *` where a date, a time or an interval takes part.

use std::cell::Cell;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, DurationMillisecondType, Int64Type, IntervalYearMonthType, Time32MillisecondType,
};

use super::arithmetic::{Operator, zip_values};
use super::builtin::{Builtin, coerce};
use crate::error::{Error, ErrorKind, Result};
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
        // A time of day has no date to move.
        Operator::Add | Operator::Subtract if is_time(&l.kind) && r.kind == TypeKind::IntervalYearMonth => return Ok(left),
        Operator::Add if is_time(&r.kind) && l.kind == TypeKind::IntervalYearMonth => return Ok(right),
        Operator::Add | Operator::Subtract if l.is_datetime() && takes(&l.kind, &r.kind) => l.kind.clone(),
        Operator::Add if r.is_datetime() && takes(&r.kind, &l.kind) => return bind(function, operator, right, left),
        Operator::Subtract if is_pair_of_times(&l, &r) => {
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
        TypeKind::IntervalYearMonth => !is_time(datetime),
        _ => false,
    }
}

/// Whether there is an interval between the two.
fn is_pair_of_times(left: &DataType, right: &DataType) -> bool {
    let both_dates = left.kind == TypeKind::Date && right.kind == TypeKind::Date;
    both_dates || (left.is_timestamp() && right.is_timestamp()) || (is_time(&left.kind) && is_time(&right.kind))
}

fn is_time(kind: &TypeKind) -> bool {
    matches!(kind, TypeKind::Time(_))
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
    // Nanoseconds of 64 bits end in the year 2262: what is beyond is an error, unless it stands where a value is NULL.
    let overflow = Cell::new(false);
    let noted = |moved: Option<i64>| {
        overflow.set(overflow.get() | moved.is_none());
        moved.unwrap_or_default()
    };
    let moved = if months {
        let add = |units: i64, months: i32| add_months(units, i64::from(months) * sign, units_per_ms);
        let moved =
            zip_values::<Int64Type, IntervalYearMonthType, Int64Type>(left, right, |units, months| noted(add(units, months)))?;
        if overflow.get() {
            check_valid::<IntervalYearMonthType>(left, right, &moved, add)?;
        }
        moved
    } else {
        let add = |units: i64, ms: i64| units.checked_add(ms.checked_mul(units_per_ms * sign)?);
        let moved = zip_values::<Int64Type, DurationMillisecondType, Int64Type>(left, right, |units, ms| noted(add(units, ms)))?;
        if overflow.get() {
            check_valid::<DurationMillisecondType>(left, right, &moved, add)?;
        }
        moved
    };
    Ok(moved)
}

fn add_months(units: i64, months: i64, units_per_ms: i64) -> Option<i64> {
    let (ms, rest) = (units.div_euclid(units_per_ms), units.rem_euclid(units_per_ms));
    add_months_to_ms(ms, months).checked_mul(units_per_ms)?.checked_add(rest)
}

/// Fails when a value that is there has left the range of its type.
fn check_valid<T: ArrowPrimitiveType>(
    left: &Datum,
    right: &Datum,
    moved: &Int64Array,
    add: impl Fn(i64, T::Native) -> Option<i64>,
) -> Result<()> {
    let units: &PrimitiveArray<Int64Type> = left.array().as_primitive();
    let distances: &PrimitiveArray<T> = right.array().as_primitive();
    let at = |datum: &Datum, row: usize| if datum.is_scalar() { 0 } else { row };
    for row in (0..moved.len()).filter(|row| moved.is_valid(*row)) {
        if add(units.value(at(left, row)), distances.value(at(right, row))).is_none() {
            return Err(out_of_range());
        }
    }
    Ok(())
}

/// The error for a time that its type cannot hold.
pub(super) fn out_of_range() -> Error {
    Error::new(ErrorKind::NumericOutOfRange, "a TIMESTAMP is out of range")
        .with_hint("one of 7 to 9 digits lies between 1677-09-21 and 2262-04-11; CAST it to TIMESTAMP(6) before")
}

fn as_units(datum: &Datum) -> Result<Datum> {
    map_array(datum.clone(), |array| match array.data_type() {
        ArrowType::Timestamp(..) => Ok(Arc::new(timestamp_units(array)) as ArrayRef),
        _ => Ok(Arc::new(PrimitiveArray::<Int64Type>::clone(array.as_primitive())) as ArrayRef),
    })
}
