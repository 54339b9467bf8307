//! Between numbers, truth values and intervals. Integers wrap and floats saturate as Java's casts do; decimals round HALF_UP.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::arity::unary;
use arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, DurationMillisecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalYearMonthType,
};

use super::from_text::{Parsed, parse_decimal};
use super::kernel::Cast;
use crate::error::{Error, Result};
use crate::expr::decimal;
use crate::types::TypeKind;

/// Casts numbers, truth values and intervals to each other.
pub(super) fn cast(array: &ArrayRef, cast: &Cast) -> Result<ArrayRef> {
    match &cast.from.kind {
        TypeKind::Boolean => booleans(array.as_boolean(), cast),
        TypeKind::TinyInt => integers::<Int8Type>(array.as_primitive(), cast),
        TypeKind::SmallInt => integers::<Int16Type>(array.as_primitive(), cast),
        TypeKind::Int => integers::<Int32Type>(array.as_primitive(), cast),
        TypeKind::BigInt => integers::<Int64Type>(array.as_primitive(), cast),
        TypeKind::IntervalYearMonth => integers::<IntervalYearMonthType>(array.as_primitive(), cast),
        TypeKind::IntervalDayTime => integers::<DurationMillisecondType>(array.as_primitive(), cast),
        TypeKind::Float => floats::<Float32Type>(array.as_primitive(), cast),
        TypeKind::Double => floats::<Float64Type>(array.as_primitive(), cast),
        TypeKind::Decimal(_, scale) => decimals(array.as_primitive(), *scale, cast),
        _ => Err(unreachable(cast)),
    }
}

fn unreachable(cast: &Cast) -> Error {
    Error::internal(format!("no cast from {} to {}", cast.from, cast.to))
}

fn booleans(array: &BooleanArray, cast: &Cast) -> Result<ArrayRef> {
    let numbers: PrimitiveArray<Int8Type> = array.iter().map(|value| value.map(i8::from)).collect();
    integers(&numbers, cast)
}

fn integers<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, cast: &Cast) -> Result<ArrayRef>
where
    T::Native: Into<i64>,
{
    Ok(match &cast.to.kind {
        TypeKind::Boolean => {
            let values = array.values();
            let truth = BooleanBuffer::collect_bool(array.len(), |row| values[row].into() != 0);
            Arc::new(BooleanArray::new(truth, array.nulls().cloned()))
        }
        TypeKind::TinyInt => Arc::new(unary::<T, _, Int8Type>(array, |n| n.into() as i8)),
        TypeKind::SmallInt => Arc::new(unary::<T, _, Int16Type>(array, |n| n.into() as i16)),
        TypeKind::Int => Arc::new(unary::<T, _, Int32Type>(array, |n| n.into() as i32)),
        TypeKind::BigInt => Arc::new(unary::<T, _, Int64Type>(array, |n| n.into())),
        TypeKind::Float => Arc::new(unary::<T, _, Float32Type>(array, |n| n.into() as f32)),
        TypeKind::Double => Arc::new(unary::<T, _, Float64Type>(array, |n| n.into() as f64)),
        TypeKind::Decimal(precision, scale) => to_decimals(array, *precision, *scale, |n| {
            decimal::rescale(n.into().into(), 0, *scale).and_then(|n| decimal::fit(n, *precision))
        })?,
        TypeKind::IntervalYearMonth => Arc::new(unary::<T, _, IntervalYearMonthType>(array, |n| n.into() as i32)),
        TypeKind::IntervalDayTime => Arc::new(unary::<T, _, DurationMillisecondType>(array, |n| n.into())),
        _ => return Err(unreachable(cast)),
    })
}

fn floats<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, cast: &Cast) -> Result<ArrayRef>
where
    T::Native: Into<f64>,
{
    Ok(match &cast.to.kind {
        TypeKind::Boolean => {
            let values = array.values();
            let truth = BooleanBuffer::collect_bool(array.len(), |row| values[row].into() != 0.0);
            Arc::new(BooleanArray::new(truth, array.nulls().cloned()))
        }
        // Java goes through INT to the smaller ones.
        TypeKind::TinyInt => Arc::new(unary::<T, _, Int8Type>(array, |n| n.into() as i32 as i8)),
        TypeKind::SmallInt => Arc::new(unary::<T, _, Int16Type>(array, |n| n.into() as i32 as i16)),
        TypeKind::Int => Arc::new(unary::<T, _, Int32Type>(array, |n| n.into() as i32)),
        TypeKind::BigInt => Arc::new(unary::<T, _, Int64Type>(array, |n| n.into() as i64)),
        TypeKind::Float => Arc::new(unary::<T, _, Float32Type>(array, |n| n.into() as f32)),
        TypeKind::Double => Arc::new(unary::<T, _, Float64Type>(array, |n| n.into())),
        TypeKind::Decimal(precision, scale) => {
            to_decimals(array, *precision, *scale, |n| double_to_decimal(n.into(), *precision, *scale))?
        }
        _ => return Err(unreachable(cast)),
    })
}

/// The DECIMAL of the shortest digits of a double.
pub(in crate::expr) fn double_to_decimal(value: f64, precision: u8, scale: u8) -> Option<i128> {
    match parse_decimal(&format!("{value:e}"), precision, scale) {
        Parsed::Number(number) => Some(number),
        Parsed::TooLong | Parsed::NoNumber => None,
    }
}

fn decimals(array: &PrimitiveArray<Decimal128Type>, scale: u8, cast: &Cast) -> Result<ArrayRef> {
    let unit = decimal::pow10(scale);
    Ok(match &cast.to.kind {
        TypeKind::Boolean => {
            let values = array.values();
            let truth = BooleanBuffer::collect_bool(array.len(), |row| values[row] != 0);
            Arc::new(BooleanArray::new(truth, array.nulls().cloned()))
        }
        TypeKind::TinyInt => Arc::new(unary::<_, _, Int8Type>(array, |n| (n / unit) as i8)),
        TypeKind::SmallInt => Arc::new(unary::<_, _, Int16Type>(array, |n| (n / unit) as i16)),
        TypeKind::Int => Arc::new(unary::<_, _, Int32Type>(array, |n| (n / unit) as i32)),
        TypeKind::BigInt => Arc::new(unary::<_, _, Int64Type>(array, |n| (n / unit) as i64)),
        TypeKind::Float => Arc::new(unary::<_, _, Float32Type>(array, |n| decimal::to_double(n, scale) as f32)),
        TypeKind::Double => Arc::new(unary::<_, _, Float64Type>(array, |n| decimal::to_double(n, scale))),
        TypeKind::Decimal(to_precision, to_scale) => to_decimals(array, *to_precision, *to_scale, |n| {
            decimal::rescale(n, scale, *to_scale).and_then(|n| decimal::fit(n, *to_precision))
        })?,
        _ => return Err(unreachable(cast)),
    })
}

/// Numbers as decimals; what does not fit is NULL, as in Flink.
fn to_decimals<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    precision: u8,
    scale: u8,
    convert: impl Fn(T::Native) -> Option<i128>,
) -> Result<ArrayRef> {
    let decimals: PrimitiveArray<Decimal128Type> = array.iter().map(|value| convert(value?)).collect();
    Ok(Arc::new(decimals.with_data_type(ArrowType::Decimal128(precision, scale as i8))))
}
