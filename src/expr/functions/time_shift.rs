//! TIMESTAMPADD and TIMESTAMPDIFF.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::kernels::arity::unary;
use arrow::datatypes::{Int32Type, Int64Type};

use super::args::{Numbers, Text, build_numbers};
use super::builtin::{Builtin, Param, any_nullable, coerce};
use super::unit::Unit;
use crate::error::{Error, Result};
use crate::expr::compile::map_array;
use crate::expr::datetime::{MS_PER_DAY, Ymd};
use crate::expr::values::timestamp_units;
use crate::expr::{CastMode, Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind, Value};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("TIMESTAMPADD", "TIMESTAMPADD(<UNIT>, <INT>, <DATETIME>)", bind_add, |_, _, _| {
        Err(Error::internal("a call that is rewritten to + was evaluated"))
    }),
    Builtin::new("TIMESTAMPDIFF", "TIMESTAMPDIFF(<UNIT>, <DATETIME>, <DATETIME>)", bind_diff, diff),
];

/// Rewritten to the sum with an interval: so many times the unit's.
fn bind_add(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [unit_arg, count, value]: [Expr; 3] = args.try_into().map_err(|args: Vec<Expr>| function.mismatch(&args))?;
    let unit = Unit::of_argument(function, &unit_arg)?;
    let given = value.data_type().regular();
    let mismatch = || function.mismatch(&[unit_arg.clone(), count.clone(), value.clone()]);
    let count = Param::BigInt.accept(count.clone()).ok_or_else(mismatch)?;
    if !given.is_datetime() {
        return Err(mismatch());
    }
    let (interval, kind) = match (unit.months(), unit.milliseconds()) {
        (Some(months), _) => (Value::IntervalYearMonth(months as i32), TypeKind::IntervalYearMonth),
        (None, Some(ms)) => (Value::IntervalDayTime(ms), TypeKind::IntervalDayTime),
        _ => return Err(Error::unsupported(format!("TIMESTAMPADD with the unit {unit:?}"))),
    };
    let nullable = given.nullable || count.data_type().nullable;
    // A time of day has no date to move.
    if matches!(given.kind, TypeKind::Time(_)) && !unit.is_time_of_day() {
        return Ok(value);
    }
    let value = match (&given.kind, unit.is_time_of_day()) {
        (TypeKind::Date, true) => coerce(value, &TypeKind::Timestamp(6)),
        (TypeKind::Timestamp(0..3), _) if unit == Unit::Millisecond => coerce(value, &TypeKind::Timestamp(3)),
        (TypeKind::TimestampLtz(0..3), _) if unit == Unit::Millisecond => coerce(value, &TypeKind::TimestampLtz(3)),
        _ => value,
    };
    let call = |name: &str, args, data_type| Expr::Call { function: name.to_string(), args, data_type };
    let interval = Expr::literal(interval, DataType::not_null(kind.clone()));
    let distance_type = DataType::new(kind, count.data_type().nullable);
    let distance = call("*", vec![interval, count], distance_type);
    let data_type = DataType::new(value.data_type().kind, nullable);
    Ok(call("+", vec![value, distance], data_type))
}

fn bind_diff(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [unit_arg, from, to]: [Expr; 3] = args.try_into().map_err(|args: Vec<Expr>| function.mismatch(&args))?;
    let unit = Unit::of_argument(function, &unit_arg)?;
    let is_instant = |expr: &Expr| matches!(expr.data_type().kind, TypeKind::TimestampLtz(_));
    if !(from.data_type().is_datetime() && to.data_type().is_datetime()) {
        return Err(function.mismatch(&[unit_arg, from, to]));
    }
    if unit.months().is_none() && unit.milliseconds().is_none() {
        return Err(Error::unsupported(format!("TIMESTAMPDIFF with the unit {unit:?}")));
    }
    if is_instant(&from) != is_instant(&to) {
        return Err(function.mismatch(&[unit_arg, from, to]).with_hint("a TIMESTAMP_LTZ is compared with another one: CAST"));
    }
    let kind = if is_instant(&from) { TypeKind::TimestampLtz(3) } else { TypeKind::Timestamp(3) };
    let args = vec![unit_arg, coerce(from, &kind), coerce(to, &kind)];
    let nullable = any_nullable(&args);
    Ok(function.call(args, DataType::new(TypeKind::Int, nullable)))
}

fn diff(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let unit = Text::of(&args[0]).get(0).and_then(Unit::parse);
    let unit = unit.ok_or_else(|| Error::internal("TIMESTAMPDIFF without a unit"))?;
    let in_ms = |datum: &Datum| {
        map_array(datum.clone(), |array| {
            Ok(Arc::new(unary::<Int64Type, _, Int64Type>(&timestamp_units(array), |ms| ms)) as ArrayRef)
        })
    };
    let (from, to) = (in_ms(&args[1])?, in_ms(&args[2])?);
    let (from, to) = (Numbers::<Int64Type>::of(&from), Numbers::<Int64Type>::of(&to));
    build_numbers::<Int32Type>(&args[1..], context, |row| {
        let (from, to) = (from.get(row)?, to.get(row)?);
        Some(match (unit.months(), unit.milliseconds()) {
            (Some(months), _) => (months_between(from, to) / months) as i32,
            (None, length) => (to.wrapping_sub(from) / length.unwrap_or(1)) as i32,
        })
    })
}

/// Whole months from one time to another.
fn months_between(from: i64, to: i64) -> i64 {
    let split = |ms: i64| (ms.div_euclid(MS_PER_DAY), ms.rem_euclid(MS_PER_DAY));
    let ((from_days, from_time), (to_days, to_time)) = (split(from), split(to));
    let months = months_between_days(from_days, to_days);
    let reached = Ymd::of_days(from_days).plus_months(months).to_days();
    if reached == to_days && to_time < from_time { months - 1 } else { months }
}

fn months_between_days(from: i64, to: i64) -> i64 {
    if to < from {
        return -months_between_days(to, from);
    }
    let start = Ymd::of_days(from);
    let mut months = (to - from) / 31;
    while start.plus_months(months).to_days() < to && start.plus_months(months + 1).to_days() <= to {
        months += 1;
    }
    months
}

/// A string read as a time by CAST, NULL where it is none.
pub(super) fn try_cast(text: Expr, kind: TypeKind) -> Expr {
    Expr::Cast { input: Box::new(text), data_type: DataType::nullable(kind), mode: CastMode::Try }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_count_when_their_day_is_reached() {
        let ms = |year, month, day| Ymd { year, month, day }.to_days() * MS_PER_DAY;
        assert_eq!(months_between(ms(2020, 1, 31), ms(2020, 2, 29)), 1);
        assert_eq!(months_between(ms(2020, 2, 29), ms(2021, 2, 28)), 12);
        assert_eq!(months_between(ms(2019, 9, 1), ms(2016, 8, 1)), -37);
        assert_eq!(months_between(ms(2016, 6, 15) + 1, ms(2018, 6, 15)), 23);
    }
}
