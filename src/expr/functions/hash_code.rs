//! HASH_CODE: the hash that Java gives a value.

use arrow::array::{Array, ArrowPrimitiveType, AsArray, Int32Array};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, TimeUnit,
};
use std::sync::Arc;

use super::builtin::{Builtin, by_args};
use crate::error::{Error, Result};
use crate::expr::compile::map_array;
use crate::expr::values::timestamp_units;
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[Builtin::new("HASH_CODE", "HASH_CODE(<ANY>)", bind_hash_code, hash_code)];

fn bind_hash_code(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    match args.as_slice() {
        [arg] if takes(&arg.data_type()) => {
            let data_type = by_args(TypeKind::Int, &args);
            Ok(function.call(args, data_type))
        }
        _ => Err(function.mismatch(&args)),
    }
}

fn takes(data_type: &DataType) -> bool {
    data_type.is_character() || data_type.is_numeric() || data_type.is_datetime() || data_type.kind == TypeKind::Boolean
}

fn hash_code(args: &[Datum], _: &DataType, _: &EvalContext) -> Result<Datum> {
    map_array(args[0].clone(), |array| {
        let each = |hash: &dyn Fn(usize) -> i32| -> Int32Array {
            (0..array.len()).map(|row| array.is_valid(row).then(|| hash(row))).collect()
        };
        Ok(Arc::new(match array.data_type() {
            ArrowType::Utf8View => each(&|row| of_text(array.as_string_view().value(row))),
            ArrowType::Boolean => each(&|row| if array.as_boolean().value(row) { 1231 } else { 1237 }),
            ArrowType::Int8 => each(&|row| number::<Int8Type>(array, row).into()),
            ArrowType::Int16 => each(&|row| number::<Int16Type>(array, row).into()),
            ArrowType::Int32 => each(&|row| number::<Int32Type>(array, row)),
            ArrowType::Int64 => each(&|row| of_long(number::<Int64Type>(array, row))),
            ArrowType::Float32 => each(&|row| number::<Float32Type>(array, row).to_bits() as i32),
            ArrowType::Float64 => each(&|row| of_long(number::<Float64Type>(array, row).to_bits() as i64)),
            ArrowType::Date32 => each(&|row| number::<Date32Type>(array, row)),
            ArrowType::Time32(_) => each(&|row| number::<Time32MillisecondType>(array, row)),
            ArrowType::Decimal128(_, scale) => each(&|row| of_decimal(number::<Decimal128Type>(array, row), *scale)),
            ArrowType::Timestamp(unit, _) => {
                let units_per_ms = match unit {
                    TimeUnit::Microsecond => 1_000,
                    TimeUnit::Nanosecond => 1_000_000,
                    TimeUnit::Second | TimeUnit::Millisecond => 1,
                };
                let units = timestamp_units(array);
                each(&|row| of_timestamp(units.value(row), units_per_ms))
            }
            other => return Err(Error::internal(format!("HASH_CODE got a value of type {other}"))),
        }))
    })
}

fn number<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> T::Native {
    array.as_primitive::<T>().value(row)
}

fn of_long(number: i64) -> i32 {
    (number ^ (number as u64 >> 32) as i64) as i32
}

/// Of strings Flink gives the absolute value.
fn of_text(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into())).wrapping_abs()
}

fn of_decimal(unscaled: i128, scale: i8) -> i32 {
    let magnitude = unscaled.unsigned_abs();
    let words = [96, 64, 32, 0].map(|shift| (magnitude >> shift) as u32);
    let hash =
        words.iter().skip_while(|word| **word == 0).fold(0_i32, |hash, word| hash.wrapping_mul(31).wrapping_add(*word as i32));
    let hash = if unscaled < 0 { hash.wrapping_neg() } else { hash };
    hash.wrapping_mul(31).wrapping_add(scale.into())
}

fn of_timestamp(units: i64, units_per_ms: i64) -> i32 {
    let nanos = units.rem_euclid(units_per_ms) * (1_000_000 / units_per_ms);
    of_long(units.div_euclid(units_per_ms)).wrapping_mul(31).wrapping_add(nanos as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_java() {
        assert_eq!([of_text("abc"), of_text("é日本"), of_text("abcdefghi"), of_text("")], [96_354, 1_058_960, 395_180_133, 0]);
        assert_eq!([of_long(5_000_000_000), of_long(1.5_f64.to_bits() as i64)], [705_032_705, 1_073_217_536]);
        assert_eq!(of_decimal(15, 1), 466);
        assert_eq!(of_timestamp(1_577_836_800_123_456, 1_000), 1_853_697_708);
    }
}
