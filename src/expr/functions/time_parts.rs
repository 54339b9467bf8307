//! EXTRACT and its short forms (YEAR, MONTH, HOUR …); FLOOR and CEIL of numbers and `TO` a unit of time.
//!
//! A TIMESTAMP_LTZ is taken in the session's zone.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::kernels::arity::unary;
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, DurationMillisecondType, Int64Type, IntervalYearMonthType, Time32MillisecondType,
};

use super::args::Text;
use super::builtin::{Builtin, coerce};
use super::datetime_arithmetic::out_of_range;
use super::math::{Same, map_numbers, numeric_first};
use super::unit::Unit;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::compile::map_array;
use crate::expr::datetime::{MS_PER_DAY, Ymd, day_of_week, iso_week};
use crate::expr::values::{timestamp_units, timestamps_of_units};
use crate::expr::{Datum, EvalContext, Expr, zone};
use crate::types::{DataType, TypeKind, VARCHAR_MAX, Value};

/// A short form of EXTRACT.
macro_rules! part {
    ($name:literal, $unit:literal) => {
        Builtin::new($name, concat!($name, "(<DATETIME>)"), |f, args| bind_part(f, args, $unit), extract)
    };
}

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("EXTRACT", "EXTRACT(<UNIT> FROM <DATETIME>)\nEXTRACT(<UNIT> FROM <INTERVAL>)", bind_extract, extract),
    part!("YEAR", "YEAR"),
    part!("QUARTER", "QUARTER"),
    part!("MONTH", "MONTH"),
    part!("WEEK", "WEEK"),
    part!("DAYOFYEAR", "DOY"),
    part!("DAYOFMONTH", "DAY"),
    part!("DAYOFWEEK", "DOW"),
    part!("HOUR", "HOUR"),
    part!("MINUTE", "MINUTE"),
    part!("SECOND", "SECOND"),
    Builtin::new("FLOOR", "FLOOR(<NUMERIC>)\nFLOOR(<DATETIME> TO <UNIT>)", bind_round, |args, data_type, context| match args {
        [_] => whole(args, data_type, |n, unit| n.div_euclid(unit), f64::floor),
        _ => round_time(args, context, false, SUNDAY),
    }),
    Builtin::new("CEIL", "CEIL(<NUMERIC>)\nCEIL(<DATETIME> TO <UNIT>)", bind_round, |args, data_type, context| match args {
        [_] => whole(args, data_type, |n, unit| n.div_euclid(unit) + i128::from(n.rem_euclid(unit) != 0), f64::ceil),
        _ => round_time(args, context, true, SUNDAY),
    }),
    Builtin::new("DATE_TRUNC", "DATE_TRUNC(<UNIT_LITERAL>, <DATETIME>)", bind_trunc, |args, _, context| {
        round_time(&[args[1].clone(), args[0].clone()], context, false, MONDAY)
    }),
];

/// The days on which weeks begin: those of Flink's FLOOR and CEIL on Sunday, those of ISO 8601, which DATE_TRUNC takes, on Monday.
const SUNDAY: i64 = 1;
const MONDAY: i64 = 2;

fn unit_literal(unit: &str) -> Expr {
    Expr::literal(Value::String(unit.to_string()), DataType::not_null(TypeKind::Varchar(VARCHAR_MAX)))
}

fn bind_part(function: &Builtin, args: Vec<Expr>, unit: &str) -> Result<Expr> {
    match args.as_slice() {
        [value] if value.data_type().is_datetime() => bind_extract(function, vec![unit_literal(unit), value.clone()]),
        _ => Err(function.mismatch(&args)),
    }
}

fn bind_extract(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [unit_arg, value]: [Expr; 2] = args.try_into().map_err(|args: Vec<Expr>| function.mismatch(&args))?;
    let unit = Unit::of_argument(function, &unit_arg)?;
    let given = value.data_type().regular();
    let fits = match &given.kind {
        TypeKind::Time(_) => unit.is_time_of_day(),
        TypeKind::IntervalYearMonth => unit.months().is_some(),
        TypeKind::IntervalDayTime => unit.is_time_of_day() || matches!(unit, Unit::Day | Unit::Epoch),
        _ => given.is_datetime(),
    };
    if !given.is_datetime() && !given.is_interval() {
        return Err(function.mismatch(&[unit_arg, value]));
    }
    if !fits {
        let message = format!("{given} has no {}", super::builtin::literal_text(&unit_arg).unwrap_or_default());
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    // The short forms are calls of EXTRACT, so that plans show one function.
    let args = vec![unit_arg, value];
    let data_type = DataType::new(TypeKind::BigInt, given.nullable);
    Ok(Expr::Call { function: "EXTRACT".to_string(), args, data_type })
}

fn extract(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let unit = Text::of(&args[0]).get(0).and_then(Unit::parse);
    let unit = unit.ok_or_else(|| Error::internal("EXTRACT without a unit"))?;
    map_array(args[1].clone(), |array| {
        Ok(Arc::new(match array.data_type() {
            ArrowType::Interval(_) => unary::<_, _, Int64Type>(array.as_primitive::<IntervalYearMonthType>(), |months| {
                part_of_months(months.into(), unit)
            }),
            ArrowType::Duration(_) => {
                unary::<_, _, Int64Type>(array.as_primitive::<DurationMillisecondType>(), |ms| part_of_duration(ms, unit))
            }
            ArrowType::Date32 => unary::<_, _, Int64Type>(array.as_primitive::<Date32Type>(), |days| {
                part_of_time(i64::from(days) * MS_PER_DAY, 0, unit)
            }),
            ArrowType::Time32(_) => {
                unary::<_, _, Int64Type>(array.as_primitive::<Time32MillisecondType>(), |ms| part_of_time(ms.into(), 0, unit))
            }
            _ => {
                let local = Local::of(array, context);
                let nanos = 1_000_000 / local.units_per_ms;
                unary::<_, _, Int64Type>(&local.units, |units| {
                    let ms = units.div_euclid(local.units_per_ms);
                    part_of_time(ms, units.rem_euclid(local.units_per_ms) * nanos, unit)
                })
            }
        }))
    })
}

/// Timestamps as local time.
struct Local {
    units: Int64Array,
    units_per_ms: i64,
    instants: bool,
}

impl Local {
    fn of(array: &ArrayRef, context: &EvalContext) -> Self {
        let (units_per_ms, instants) = match array.data_type() {
            ArrowType::Timestamp(unit, zone) => {
                let units_per_ms = match unit {
                    arrow::datatypes::TimeUnit::Nanosecond => 1_000_000,
                    arrow::datatypes::TimeUnit::Microsecond => 1_000,
                    _ => 1,
                };
                (units_per_ms, zone.is_some())
            }
            _ => (1, false),
        };
        let units = timestamp_units(array);
        let units = match instants {
            true => unary(&units, |units| zone::to_local_units(units, units_per_ms, context.time_zone)),
            false => units,
        };
        Local { units, units_per_ms, instants }
    }
}

fn part_of_months(months: i64, unit: Unit) -> i64 {
    match unit {
        Unit::Month => months % 12,
        Unit::Quarter => months % 12 / 3 + 1,
        _ => months / unit.months().unwrap_or(12),
    }
}

fn part_of_duration(ms: i64, unit: Unit) -> i64 {
    match unit {
        Unit::Day => ms / MS_PER_DAY,
        Unit::Hour => ms % MS_PER_DAY / 3_600_000,
        Unit::Minute => ms % 3_600_000 / 60_000,
        Unit::Second => ms % 60_000 / 1_000,
        Unit::Millisecond => ms % 1_000,
        Unit::Microsecond => ms % 1_000 * 1_000,
        Unit::Nanosecond => ms % 1_000 * 1_000_000,
        _ => ms / 1_000,
    }
}

/// A part of a local time in milliseconds, with the nanoseconds of its millisecond.
fn part_of_time(ms: i64, nanos: i64, unit: Unit) -> i64 {
    let (days, time) = (ms.div_euclid(MS_PER_DAY), ms.rem_euclid(MS_PER_DAY));
    let year = || Ymd::of_days(days).year;
    match unit {
        Unit::Nanosecond => time % 1_000 * 1_000_000 + nanos,
        Unit::Microsecond => time % 1_000 * 1_000 + nanos / 1_000,
        Unit::Millisecond => time % 1_000,
        Unit::Second => time / 1_000 % 60,
        Unit::Minute => time / 60_000 % 60,
        Unit::Hour => time / 3_600_000,
        Unit::Day => Ymd::of_days(days).day.into(),
        Unit::Week => iso_week(days).1,
        Unit::Month => Ymd::of_days(days).month.into(),
        Unit::Quarter => i64::from(Ymd::of_days(days).month.div_ceil(3)),
        Unit::Year => year(),
        Unit::Decade => year().div_euclid(10),
        Unit::Century => (year() + 99).div_euclid(100),
        Unit::Millennium => (year() + 999).div_euclid(1_000),
        Unit::DayOfWeek => day_of_week(days),
        Unit::IsoDayOfWeek => (day_of_week(days) + 5) % 7 + 1,
        Unit::DayOfYear => Ymd::of_days(days).day_of_year().into(),
        Unit::IsoYear => iso_week(days).0,
        Unit::Epoch => ms.div_euclid(1_000),
    }
}

fn bind_round(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    if let [value, unit_arg] = args.as_slice() {
        let unit = Unit::of_argument(function, unit_arg)?;
        let given = value.data_type().regular();
        let fits = match &given.kind {
            TypeKind::Time(_) => unit.is_time_of_day(),
            _ => given.is_datetime() && (unit.milliseconds().is_some() || unit.months().is_some()),
        };
        if !fits {
            let message = format!("{} does not round {given} to this unit", function.name);
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        return Ok(function.call(vec![value.clone(), unit_arg.clone()], given));
    }
    let args = numeric_first(function, args)?;
    let [value] = args.as_slice() else { return Err(function.mismatch(&args)) };
    let data_type = value.data_type().regular();
    let kind = match &data_type.kind {
        TypeKind::Decimal(precision, _) => TypeKind::Decimal(*precision, 0),
        kind => kind.clone(),
    };
    Ok(function.call(vec![coerce(value.clone(), &data_type.kind)], DataType::new(kind, data_type.nullable)))
}

/// More than Flink has: FLOOR as others call it.
fn bind_trunc(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [unit, value]: [Expr; 2] = args.try_into().map_err(|args: Vec<Expr>| function.mismatch(&args))?;
    match bind_round(function, vec![value, unit])? {
        Expr::Call { function, mut args, data_type } => {
            args.reverse();
            Ok(Expr::Call { function, args, data_type })
        }
        other => Ok(other),
    }
}

/// The whole number below or above. A DECIMAL loses its scale.
fn whole(args: &[Datum], data_type: &DataType, decimal: fn(i128, i128) -> i128, float: fn(f64) -> f64) -> Result<Datum> {
    let result = map_numbers(args, Same { integer: |n| n, decimal, float })?;
    map_array(result, |array| match array.data_type() {
        ArrowType::Decimal128(..) => {
            let numbers = array.as_primitive::<arrow::datatypes::Decimal128Type>().clone();
            Ok(Arc::new(numbers.with_data_type(data_type.to_arrow())) as ArrayRef)
        }
        _ => Ok(Arc::clone(array)),
    })
}

fn round_time(args: &[Datum], context: &EvalContext, up: bool, first_day: i64) -> Result<Datum> {
    let unit = Text::of(&args[1]).get(0).and_then(Unit::parse);
    let unit = unit.ok_or_else(|| Error::internal("FLOOR without a unit"))?;
    map_array(args[0].clone(), |array| {
        Ok(match array.data_type() {
            ArrowType::Date32 => Arc::new(unary::<_, _, Date32Type>(array.as_primitive::<Date32Type>(), |days| {
                match unit {
                    // Flink counts the day of a DATE as begun.
                    Unit::Day if up => days + 1,
                    _ => round_ms(i64::from(days) * MS_PER_DAY, unit, up, first_day).div_euclid(MS_PER_DAY) as i32,
                }
            })),
            ArrowType::Time32(_) => {
                Arc::new(unary::<_, _, Time32MillisecondType>(array.as_primitive::<Time32MillisecondType>(), |ms| {
                    (round_ms(ms.into(), unit, up, first_day) % MS_PER_DAY) as i32
                }))
            }
            data_type => {
                let local = Local::of(array, context);
                let round = |units: i64| {
                    let (ms, rest) = (units.div_euclid(local.units_per_ms), units.rem_euclid(local.units_per_ms));
                    let ms = if up && rest > 0 { ms + 1 } else { ms };
                    round_ms(ms, unit, up, first_day).checked_mul(local.units_per_ms)
                };
                let rounded: Int64Array = match local.instants {
                    // The offset of the instant holds for the result too, as in Flink: an hour that a zone has twice stays apart.
                    true => timestamp_units(array).try_unary(|instant| {
                        let units = zone::to_local_units(instant, local.units_per_ms, context.time_zone);
                        let rounded = round(units).ok_or_else(out_of_range)?;
                        Ok::<_, Error>(rounded.wrapping_sub(units.wrapping_sub(instant)))
                    })?,
                    false => local.units.try_unary(|units| round(units).ok_or_else(out_of_range))?,
                };
                timestamps_of_units(&rounded, data_type)
            }
        })
    })
}

/// Local milliseconds rounded to a unit. Months and more are rounded by the date alone, as in Flink.
fn round_ms(ms: i64, unit: Unit, up: bool, first_day: i64) -> i64 {
    let days = ms.div_euclid(MS_PER_DAY);
    if let Some(months) = unit.months() {
        return round_months(days, months, up) * MS_PER_DAY;
    }
    if unit == Unit::Week {
        let into_week = (day_of_week(days) - first_day).rem_euclid(7);
        let start = days - into_week;
        return (if up && into_week > 0 { start + 7 } else { start }) * MS_PER_DAY;
    }
    let length = unit.milliseconds().unwrap_or(1);
    let floor = ms.div_euclid(length) * length;
    if up && floor < ms { floor + length } else { floor }
}

fn round_months(days: i64, months: i64, up: bool) -> i64 {
    let date = Ymd::of_days(days);
    let start = if months <= 12 {
        let month = (i64::from(date.month) - 1).div_euclid(months) * months + 1;
        Ymd { year: date.year, month: month as u32, day: 1 }
    } else {
        let years = months / 12;
        // Centuries and millennia begin with a year 1.
        let offset = i64::from(years > 10);
        Ymd { year: (date.year - offset).div_euclid(years) * years + offset, month: 1, day: 1 }
    };
    if up && start != date { start.plus_months(months).to_days() } else { start.to_days() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(year: i64, month: u32, day: u32) -> i64 {
        Ymd { year, month, day }.to_days() * MS_PER_DAY
    }

    #[test]
    fn rounding_to_units() {
        let time = ms(2018, 1, 2) + 75_601_000;
        assert_eq!(round_ms(time, Unit::Quarter, false, SUNDAY), ms(2018, 1, 1));
        assert_eq!(round_ms(time, Unit::Decade, true, SUNDAY), ms(2020, 1, 1));
        assert_eq!(round_ms(time, Unit::Century, true, SUNDAY), ms(2101, 1, 1));
        assert_eq!(round_ms(time, Unit::Millennium, false, SUNDAY), ms(2001, 1, 1));
        assert_eq!(round_ms(ms(2021, 2, 27), Unit::Week, false, SUNDAY), ms(2021, 2, 21));
        assert_eq!(round_ms(ms(2018, 3, 1) + 5, Unit::Month, true, SUNDAY), ms(2018, 3, 1));
    }

    #[test]
    fn parts_of_a_time() {
        let time = ms(1996, 11, 10) + 24_944_333;
        let part = |unit| part_of_time(time, 0, unit);
        assert_eq!([part(Unit::Week), part(Unit::DayOfWeek), part(Unit::IsoDayOfWeek), part(Unit::Decade)], [45, 1, 7, 199]);
        assert_eq!([part(Unit::DayOfYear), part(Unit::Microsecond), part(Unit::Century)], [315, 333_000, 20]);
    }
}
