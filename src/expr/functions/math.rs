//! Mathematical functions on numbers: rounding keeps the type, the rest computes in DOUBLE.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::kernels::arity::unary;
use arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};

use super::args::{Numbers, Rows, build_numbers};
use super::arithmetic::zip_values;
use super::builtin::Param::{Double, Int};
use super::builtin::{Builtin, accept_all, any_nullable, bind_with, by_args, coerce};
use crate::error::Result;
use crate::expr::cast::double_to_decimal;
use crate::expr::compile::{map_array, null_scalar};
use crate::expr::decimal::{self, DecimalType};
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind, Value};

/// A function of one DOUBLE.
macro_rules! of_double {
    ($name:literal, $compute:expr) => {
        Builtin::new($name, concat!($name, "(<NUMERIC>)"), bind_double, |args, _, _| map_double(args, $compute))
    };
}

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    // The square root of -Infinity is Infinity, because it is a power in Flink.
    of_double!("SQRT", |x| if x == f64::NEG_INFINITY { f64::INFINITY } else { x.sqrt() }),
    of_double!("EXP", f64::exp),
    of_double!("LN", f64::ln),
    of_double!("LOG10", f64::log10),
    of_double!("LOG2", |x| x.ln() / std::f64::consts::LN_2),
    of_double!("SIN", f64::sin),
    of_double!("COS", f64::cos),
    of_double!("TAN", f64::tan),
    of_double!("COT", |x| 1.0 / x.tan()),
    of_double!("ASIN", f64::asin),
    of_double!("ACOS", f64::acos),
    of_double!("ATAN", f64::atan),
    of_double!("SINH", f64::sinh),
    of_double!("COSH", f64::cosh),
    of_double!("TANH", f64::tanh),
    of_double!("DEGREES", |x| x * (180.0 / std::f64::consts::PI)),
    of_double!("RADIANS", f64::to_radians),
    Builtin::new("LOG", "LOG(<NUMERIC> [, <NUMERIC>])", bind_log, |args, data_type, _| match args {
        [_] => map_double(args, f64::ln),
        _ => zip_double(args, data_type, |base, x| x.ln() / base.ln()),
    }),
    Builtin::new("POWER", "POWER(<NUMERIC>, <NUMERIC>)", bind_two, |args, data_type, _| zip_double(args, data_type, f64::powf)),
    Builtin::new("ATAN2", "ATAN2(<NUMERIC>, <NUMERIC>)", bind_two, |args, data_type, _| zip_double(args, data_type, f64::atan2)),
    Builtin::new("PI", "PI()", bind_constant, |_, _, _| Ok(constant(std::f64::consts::PI))),
    Builtin::new("E", "E()", bind_constant, |_, _, _| Ok(constant(std::f64::consts::E))),
    Builtin::new("ABS", "ABS(<NUMERIC>)", bind_same, |args, _, _| {
        map_numbers(args, Same { integer: i64::wrapping_abs, decimal: |n, _| n.abs(), float: f64::abs })
    }),
    Builtin::new("SIGN", "SIGN(<NUMERIC>)", bind_same, |args, data_type, _| {
        // 1 is no value of a type without digits before the point.
        if let TypeKind::Decimal(precision, scale) = data_type.kind
            && precision == scale
        {
            return map_array(args[0].clone(), |array| Ok(arrow::array::new_null_array(array.data_type(), array.len())));
        }
        map_numbers(args, Same { integer: i64::signum, decimal: |n, unit| n.signum() * unit, float: sign })
    }),
    Builtin::new("ROUND", "ROUND(<NUMERIC> [, <INT>])", bind_round, |args, data_type, context| {
        round(args, data_type, context, Rounding::HalfUp)
    }),
    Builtin::new("TRUNCATE", "TRUNCATE(<NUMERIC> [, <INT>])", bind_round, |args, data_type, context| {
        round(args, data_type, context, Rounding::Down)
    }),
];

fn bind_double(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    bind_with(function, args, &[Double], 1, |args| by_args(TypeKind::Double, args))
}

fn bind_two(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    bind_with(function, args, &[Double, Double], 2, |args| by_args(TypeKind::Double, args))
}

fn bind_log(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    bind_with(function, args, &[Double, Double], 1, |args| by_args(TypeKind::Double, args))
}

fn bind_constant(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    bind_with(function, args, &[], 0, |_| DataType::not_null(TypeKind::Double))
}

fn constant(value: f64) -> Datum {
    Datum::Scalar(Arc::new(PrimitiveArray::<Float64Type>::from_value(value, 1)))
}

fn map_double(args: &[Datum], compute: impl Fn(f64) -> f64) -> Result<Datum> {
    map_array(args[0].clone(), |array| Ok(Arc::new(unary::<_, _, Float64Type>(array.as_primitive::<Float64Type>(), compute))))
}

fn zip_double(args: &[Datum], data_type: &DataType, compute: impl Fn(f64, f64) -> f64) -> Result<Datum> {
    if args.iter().any(|arg| arg.is_scalar() && arg.array().is_null(0)) {
        return Ok(null_scalar(data_type));
    }
    let array: ArrayRef = Arc::new(zip_values::<Float64Type, Float64Type, Float64Type>(&args[0], &args[1], compute)?);
    Ok(if args.iter().all(Datum::is_scalar) { Datum::Scalar(array) } else { Datum::Array(array) })
}

fn bind_same(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let args = numeric_first(function, args)?;
    bind_with(function, args, &[super::builtin::Param::Any], 1, |args| args[0].data_type())
}

/// The arguments, if the first is a number; a bare NULL is an INT.
pub(super) fn numeric_first(function: &Builtin, mut args: Vec<Expr>) -> Result<Vec<Expr>> {
    match args.first().map(Expr::data_type) {
        Some(given) if given.is_numeric() => Ok(args),
        Some(given) if given.kind == TypeKind::Null => {
            args[0] = coerce(args[0].clone(), &TypeKind::Int);
            Ok(args)
        }
        _ => Err(function.mismatch(&args)),
    }
}

/// What a function that keeps the type does to each kind of number. Decimals come with the number that is one.
pub(super) struct Same {
    pub(super) integer: fn(i64) -> i64,
    pub(super) decimal: fn(i128, i128) -> i128,
    pub(super) float: fn(f64) -> f64,
}

pub(super) fn map_numbers(args: &[Datum], same: Same) -> Result<Datum> {
    fn map<T: ArrowPrimitiveType>(array: &ArrayRef, compute: impl Fn(T::Native) -> T::Native) -> ArrayRef {
        Arc::new(unary::<T, _, T>(array.as_primitive(), compute))
    }
    let Same { integer, decimal, float } = same;
    map_array(args[0].clone(), |array| {
        Ok(match array.data_type() {
            ArrowType::Int8 => map::<Int8Type>(array, |n| integer(n.into()) as i8),
            ArrowType::Int16 => map::<Int16Type>(array, |n| integer(n.into()) as i16),
            ArrowType::Int32 => map::<Int32Type>(array, |n| integer(n.into()) as i32),
            ArrowType::Int64 => map::<Int64Type>(array, integer),
            ArrowType::Float32 => map::<Float32Type>(array, |n| float(n.into()) as f32),
            ArrowType::Float64 => map::<Float64Type>(array, float),
            other => {
                let unit = match other {
                    ArrowType::Decimal128(_, scale) => decimal::pow10(*scale as u8),
                    _ => 1,
                };
                let numbers = array.as_primitive::<Decimal128Type>();
                let mapped = unary::<_, _, Decimal128Type>(numbers, |n| decimal(n, unit));
                Arc::new(mapped.with_data_type(other.clone()))
            }
        })
    })
}

/// Java's sign: zero and NaN stay what they are.
fn sign(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() { x } else { x.signum() }
}

/// The digits of ROUND and TRUNCATE decide the type of a DECIMAL, if they are constant.
fn bind_round(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let args = numeric_first(function, args)?;
    let args = accept_all(function, args, &[super::builtin::Param::Any, Int], 1)?;
    let data_type = args[0].data_type().regular();
    let digits = match args.get(1) {
        None => Some(0),
        Some(Expr::Literal { value: Value::Int(digits), .. }) => Some(*digits),
        Some(other) => constant_int(other),
    };
    let kind = match (&data_type.kind, digits) {
        (TypeKind::Decimal(precision, scale), Some(digits)) => {
            DecimalType { precision: *precision, scale: *scale }.rounded(digits).kind()
        }
        (kind, _) => kind.clone(),
    };
    let nullable = any_nullable(&args);
    Ok(function.call(args, DataType::new(kind, nullable)))
}

/// The value of a constant that was cast or negated.
fn constant_int(expr: &Expr) -> Option<i32> {
    match expr {
        Expr::Literal { value: Value::Int(value), .. } => Some(*value),
        Expr::Literal { value: Value::TinyInt(value), .. } => Some((*value).into()),
        Expr::Literal { value: Value::SmallInt(value), .. } => Some((*value).into()),
        Expr::Literal { value: Value::BigInt(value), .. } => i32::try_from(*value).ok(),
        Expr::Cast { input, .. } => constant_int(input),
        Expr::Call { function, args, .. } if function == "NEGATE" => constant_int(&args[0])?.checked_neg(),
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    HalfUp,
    Down,
}

fn round(args: &[Datum], data_type: &DataType, context: &EvalContext, rounding: Rounding) -> Result<Datum> {
    let zero = constant_digits();
    let digits = Numbers::<Int32Type>::of(args.get(1).unwrap_or(&zero));
    macro_rules! integers {
        ($arrow:ident) => {{
            let numbers = Numbers::<$arrow>::of(&args[0]);
            build_numbers::<$arrow>(args, context, |row| {
                let (number, digits) = (numbers.get(row)?, digits.get(row)?);
                Some(round_exact(number.into(), 0, digits, rounding) as _)
            })
        }};
    }
    match &data_type.kind {
        TypeKind::TinyInt => integers!(Int8Type),
        TypeKind::SmallInt => integers!(Int16Type),
        TypeKind::Int => integers!(Int32Type),
        TypeKind::BigInt => integers!(Int64Type),
        TypeKind::Float => {
            let numbers = Numbers::<Float32Type>::of(&args[0]);
            build_numbers::<Float32Type>(args, context, |row| {
                let (number, digits) = (numbers.get(row)?, digits.get(row)?);
                // By the digits that the FLOAT shows.
                let shown: f64 = number.to_string().parse().ok()?;
                round_float(shown, digits, rounding).map(|rounded| rounded as f32)
            })
        }
        TypeKind::Double => {
            let numbers = Numbers::<Float64Type>::of(&args[0]);
            build_numbers::<Float64Type>(args, context, |row| round_float(numbers.get(row)?, digits.get(row)?, rounding))
        }
        _ => round_decimals(args, &digits, data_type, context, rounding),
    }
}

fn constant_digits() -> Datum {
    Datum::Scalar(Arc::new(PrimitiveArray::<Int32Type>::from_value(0, 1)))
}

/// An unscaled number rounded to `digits` fraction digits; its scale stays.
fn round_exact(unscaled: i128, scale: u8, digits: i32, rounding: Rounding) -> i128 {
    let drop = i32::from(scale).saturating_sub(digits);
    if drop <= 0 {
        return unscaled;
    }
    if drop > i32::from(decimal::PRECISION_MAX) {
        return 0;
    }
    let unit = decimal::pow10(drop as u8);
    match rounding {
        Rounding::HalfUp => decimal::div_half_up(unscaled, unit).checked_mul(unit).unwrap_or(i128::MAX),
        Rounding::Down => unscaled / unit * unit,
    }
}

/// A double rounded by its shortest digits; NaN and infinities stay as they are (Flink fails on them).
fn round_float(number: f64, digits: i32, rounding: Rounding) -> Option<f64> {
    if !number.is_finite() {
        return Some(number);
    }
    let digits = digits.clamp(-400, 400);
    if number == 0.0 || number.abs() >= 1e17 && digits >= 0 || digits > 30 {
        return Some(number);
    }
    // Digits far beyond the point are few enough for a DECIMAL; else the number is whole.
    let scale = digits.clamp(0, 18) as u8 + 2;
    if number.abs() >= 1e18 {
        let unit = 10_f64.powi(-digits);
        let scaled = number / unit;
        return Some(if rounding == Rounding::Down { scaled.trunc() } else { scaled.round() } * unit);
    }
    let shortest = match rounding {
        Rounding::HalfUp if digits >= 0 => double_to_decimal(number, decimal::PRECISION_MAX, digits.clamp(0, 18) as u8)
            .map(|rounded| (rounded, digits.clamp(0, 18) as u8)),
        _ => exact_digits(number, scale).map(|exact| (round_exact(exact, scale, digits, rounding), scale)),
    };
    shortest.map(|(unscaled, scale)| decimal::to_double(unscaled, scale))
}

/// The first `scale` fraction digits of the shortest form, not rounded.
fn exact_digits(number: f64, scale: u8) -> Option<i128> {
    let text = format!("{number}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let kept = &fraction[..fraction.len().min(scale.into())];
    format!("{whole}{kept:0<width$}", width = usize::from(scale)).parse().ok()
}

fn round_decimals(
    args: &[Datum],
    digits: &Numbers<Int32Type>,
    data_type: &DataType,
    context: &EvalContext,
    rounding: Rounding,
) -> Result<Datum> {
    let ArrowType::Decimal128(_, from) = args[0].array().data_type().clone() else { return Ok(null_scalar(data_type)) };
    let TypeKind::Decimal(precision, to) = data_type.kind else { return Ok(null_scalar(data_type)) };
    let numbers = Numbers::<Decimal128Type>::of(&args[0]);
    let rows = Rows::of(args, context);
    let array: PrimitiveArray<Decimal128Type> = (0..rows.count)
        .map(|row| {
            let rounded = round_exact(numbers.get(row)?, from as u8, digits.get(row)?, rounding);
            decimal::rescale(rounded, from as u8, to).and_then(|number| decimal::fit(number, precision))
        })
        .collect();
    Ok(rows.finish(Arc::new(array.with_data_type(data_type.to_arrow()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_round_by_their_shortest_digits() {
        let half_up = |number, digits| round_float(number, digits, Rounding::HalfUp).unwrap();
        assert_eq!([half_up(1.005, 2), half_up(2.5, 0), half_up(-2.5, 0), half_up(1234.5, -2)], [1.01, 3.0, -3.0, 1200.0]);
        let down = |number, digits| round_float(number, digits, Rounding::Down).unwrap();
        assert_eq!([down(42.345, 2), down(-42.345, 1), down(0.46, 1), down(42.0, -1)], [42.34, -42.3, 0.4, 40.0]);
    }
}
