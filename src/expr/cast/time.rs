//! Between dates, times and timestamps; TIMESTAMP and TIMESTAMP_LTZ by the session's zone.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::kernels::arity::{try_unary, unary};
use arrow::datatypes::{Date32Type, Int64Type, Time32MillisecondType};
use arrow::error::ArrowError;

use crate::error::{Error, ErrorKind, Result};
use crate::expr::datetime::MS_PER_DAY;
use crate::expr::values::{timestamp_units, timestamps_of_units};
use crate::expr::zone;
use crate::types::{DataType, TimeZone, TypeKind};

/// Casts dates, times and timestamps to each other.
pub(super) fn cast(array: &ArrayRef, from: &DataType, to: &DataType, zone: TimeZone) -> Result<ArrayRef> {
    let local = local_timestamps(array, from, zone);
    match &to.kind {
        TypeKind::Date => {
            let per_day = MS_PER_DAY * local.units_per_ms;
            Ok(Arc::new(unary::<_, _, Date32Type>(&local.units, |units| units.div_euclid(per_day) as i32)))
        }
        TypeKind::Time(precision) => {
            let step = 10_i64.pow(3 - u32::from(*precision).min(3));
            let time = |units: i64| units.div_euclid(local.units_per_ms).rem_euclid(MS_PER_DAY) / step * step;
            Ok(Arc::new(unary::<_, _, Time32MillisecondType>(&local.units, |units| time(units) as i32)))
        }
        TypeKind::Timestamp(precision) => {
            let units = set_precision(&local.units, local.units_per_ms, *precision)?;
            Ok(timestamps_of_units(&units, &to.to_arrow()))
        }
        TypeKind::TimestampLtz(precision) => {
            let units = match &from.kind {
                TypeKind::TimestampLtz(_) => timestamp_units(array),
                _ => unary(&local.units, |units| zone::to_instant_units(units, local.units_per_ms, zone)),
            };
            let units = set_precision(&units, local.units_per_ms, *precision)?;
            Ok(timestamps_of_units(&units, &to.to_arrow()))
        }
        _ => Err(Error::internal(format!("no cast from {from} to {to}"))),
    }
}

/// Local timestamps in a unit.
struct Local {
    units: Int64Array,
    units_per_ms: i64,
}

fn local_timestamps(array: &ArrayRef, from: &DataType, zone: TimeZone) -> Local {
    let in_ms = |units| Local { units, units_per_ms: 1 };
    match &from.kind {
        TypeKind::Date => in_ms(unary::<Date32Type, _, Int64Type>(array.as_primitive(), |days| i64::from(days) * MS_PER_DAY)),
        TypeKind::Time(_) => in_ms(unary::<Time32MillisecondType, _, Int64Type>(array.as_primitive(), i64::from)),
        TypeKind::TimestampLtz(precision) => {
            let units_per_ms = DataType::units_per_ms(*precision);
            let units = unary(&timestamp_units(array), |units| zone::to_local_units(units, units_per_ms, zone));
            Local { units, units_per_ms }
        }
        TypeKind::Timestamp(precision) => {
            Local { units: timestamp_units(array), units_per_ms: DataType::units_per_ms(*precision) }
        }
        _ => in_ms(Int64Array::new_null(array.len())),
    }
}

/// Timestamps in the unit of `precision`, cut to its digits.
pub(in crate::expr) fn set_precision(units: &Int64Array, units_per_ms: i64, precision: u8) -> Result<Int64Array> {
    let wanted_per_ms = DataType::units_per_ms(precision);
    // Digits that the unit has and the precision has not.
    let unit_digits = match wanted_per_ms {
        1 => 3,
        1_000 => 6,
        _ => 9,
    };
    let step = 10_i64.pow(unit_digits - u32::from(precision).min(unit_digits));
    if wanted_per_ms <= units_per_ms {
        let factor = units_per_ms / wanted_per_ms;
        if factor == 1 && step == 1 {
            return Ok(units.clone());
        }
        return Ok(unary(units, |units| units.div_euclid(factor).div_euclid(step) * step));
    }
    let factor = wanted_per_ms / units_per_ms;
    let scaled = try_unary::<_, _, Int64Type>(units, |units| {
        let scaled = units.checked_mul(factor).map(|units| units.div_euclid(step) * step);
        scaled.ok_or_else(|| ArrowError::ArithmeticOverflow(units.to_string()))
    });
    scaled.map_err(|_| {
        Error::new(ErrorKind::NumericOutOfRange, format!("a timestamp is out of the range of TIMESTAMP({precision})"))
            .with_hint("a precision above 6 holds the years 1678 to 2261 only")
    })
}
