//! Order keys a distance away: where frames of RANGE start and end.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};

use crate::error::{Error, Result};
use crate::expr::datetime::{add_months_to_days, add_months_to_ms};
use crate::stream_graph::RangeUnit;

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// The keys with a distance added: milliseconds or months for times, else a number with digits after the point. Beyond the values of the
/// type it stays at the last one; NULL stays NULL. Where the type is coarser than the distance, what is left over makes no difference
/// to which keys lie between.
pub(super) fn shifted(keys: &ArrayRef, distance: i64, counts: RangeUnit) -> Result<ArrayRef> {
    let scale = match counts {
        RangeUnit::Months => return shifted_months(keys, distance),
        RangeUnit::Milliseconds => 0,
        RangeUnit::Numbers { scale } => scale,
    };
    let whole = i128::from(distance) / 10i128.pow(u32::from(scale));
    Ok(match keys.data_type() {
        DataType::Int8 => add::<Int8Type>(keys, |key| saturated(i128::from(key) + whole, i8::MIN, i8::MAX)),
        DataType::Int16 => add::<Int16Type>(keys, |key| saturated(i128::from(key) + whole, i16::MIN, i16::MAX)),
        DataType::Int32 => add::<Int32Type>(keys, |key| saturated(i128::from(key) + whole, i32::MIN, i32::MAX)),
        DataType::Int64 => add::<Int64Type>(keys, |key| saturated(i128::from(key) + whole, i64::MIN, i64::MAX)),
        DataType::Float32 => {
            let distance = distance as f64 / 10f64.powi(i32::from(scale));
            add::<Float32Type>(keys, |key| (f64::from(key) + distance) as f32)
        }
        DataType::Float64 => {
            let distance = distance as f64 / 10f64.powi(i32::from(scale));
            add::<Float64Type>(keys, |key| key + distance)
        }
        DataType::Decimal128(_, key_scale) => {
            let digits = i32::from(*key_scale) - i32::from(scale);
            let factor = 10i128.pow(digits.unsigned_abs());
            let distance = if digits >= 0 { i128::from(distance).saturating_mul(factor) } else { i128::from(distance) / factor };
            add::<Decimal128Type>(keys, |key| key.saturating_add(distance))
        }
        DataType::Date32 => {
            let days = i128::from(distance / DAY_MS);
            add::<Date32Type>(keys, |key| saturated(i128::from(key) + days, i32::MIN, i32::MAX))
        }
        DataType::Time32(TimeUnit::Millisecond) => {
            let distance = i128::from(distance);
            add::<Time32MillisecondType>(keys, |key| saturated(i128::from(key) + distance, i32::MIN, i32::MAX))
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            add::<TimestampMillisecondType>(keys, |key| key.saturating_add(distance))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            add::<TimestampMicrosecondType>(keys, |key| key.saturating_add(distance.saturating_mul(1_000)))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            add::<TimestampNanosecondType>(keys, |key| key.saturating_add(distance.saturating_mul(1_000_000)))
        }
        other => return Err(Error::internal(format!("the binder let a RANGE over {other} through"))),
    })
}

/// The keys so many months of the calendar later, at the same time of the day.
fn shifted_months(keys: &ArrayRef, months: i64) -> Result<ArrayRef> {
    let later = |time: i64, units_per_ms: i64| {
        let (ms, rest) = (time.div_euclid(units_per_ms), time.rem_euclid(units_per_ms));
        let moved = i128::from(add_months_to_ms(ms, months)) * i128::from(units_per_ms) + i128::from(rest);
        saturated(moved, i64::MIN, i64::MAX)
    };
    Ok(match keys.data_type() {
        DataType::Date32 => add::<Date32Type>(keys, |key| add_months_to_days(key, months)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => add::<TimestampMillisecondType>(keys, |key| later(key, 1)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => add::<TimestampMicrosecondType>(keys, |key| later(key, 1_000)),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => add::<TimestampNanosecondType>(keys, |key| later(key, 1_000_000)),
        other => return Err(Error::internal(format!("the binder let a RANGE of months over {other} through"))),
    })
}

fn add<T: ArrowPrimitiveType>(keys: &ArrayRef, add: impl Fn(T::Native) -> T::Native) -> ArrayRef {
    let shifted: PrimitiveArray<T> = keys.as_primitive::<T>().unary(add);
    Arc::new(shifted.with_data_type(keys.data_type().clone()))
}

fn saturated<T: Copy + TryFrom<i128>>(value: i128, least: T, greatest: T) -> T {
    T::try_from(value).unwrap_or(if value < 0 { least } else { greatest })
}

#[cfg(test)]
mod tests {
    use arrow::array::{Date32Array, Decimal128Array, Float64Array, Int32Array, TimestampMicrosecondArray};

    use super::*;

    #[test]
    fn keys_move_by_whole_steps_and_stay_in_their_type() {
        let tenths = RangeUnit::Numbers { scale: 1 };
        let ints: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(i32::MAX)]));
        let expected: ArrayRef = Arc::new(Int32Array::from(vec![Some(3), None, Some(i32::MAX)]));
        assert_eq!(&shifted(&ints, 25, tenths).unwrap(), &expected);
        let expected: ArrayRef = Arc::new(Int32Array::from(vec![Some(-1), None, Some(i32::MAX - 2)]));
        assert_eq!(&shifted(&ints, -25, tenths).unwrap(), &expected);
        let days: ArrayRef = Arc::new(Date32Array::from(vec![10]));
        let expected: ArrayRef = Arc::new(Date32Array::from(vec![8]));
        assert_eq!(&shifted(&days, -2 * DAY_MS, RangeUnit::Milliseconds).unwrap(), &expected);
        let decimals: ArrayRef = Arc::new(Decimal128Array::from(vec![150]).with_precision_and_scale(10, 2).unwrap());
        let expected: ArrayRef = Arc::new(Decimal128Array::from(vec![200]).with_precision_and_scale(10, 2).unwrap());
        assert_eq!(&shifted(&decimals, 5, tenths).unwrap(), &expected);
        let fine: ArrayRef = Arc::new(Decimal128Array::from(vec![-1]).with_precision_and_scale(38, 30).unwrap());
        let expected: ArrayRef = Arc::new(Decimal128Array::from(vec![i128::MIN]).with_precision_and_scale(38, 30).unwrap());
        assert_eq!(&shifted(&fine, i64::MIN, RangeUnit::Numbers { scale: 0 }).unwrap(), &expected);
        let doubles: ArrayRef = Arc::new(Float64Array::from(vec![1.5]));
        let expected: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
        assert_eq!(&shifted(&doubles, -5, tenths).unwrap(), &expected);
    }
    #[test]
    fn months_are_those_of_the_calendar() {
        let day = |text: &str| -> i32 {
            let date: chrono::NaiveDate = text.parse().unwrap();
            (date - chrono::NaiveDate::default()).num_days() as i32
        };
        let days: ArrayRef = Arc::new(Date32Array::from(vec![day("2024-03-31"), day("2024-12-15")]));
        let expected: ArrayRef = Arc::new(Date32Array::from(vec![day("2024-02-29"), day("2024-11-15")]));
        assert_eq!(&shifted(&days, -1, RangeUnit::Months).unwrap(), &expected);
        let micros = |days: i32| i64::from(days) * DAY_MS * 1_000 - 1;
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![micros(day("2023-02-01")), micros(0)]));
        let expected: ArrayRef =
            Arc::new(TimestampMicrosecondArray::from(vec![micros(day("2024-02-01")), micros(day("1971-01-01"))]));
        assert_eq!(&shifted(&times, 12, RangeUnit::Months).unwrap(), &expected);
    }
}
