//! `+ - * / %` and unary minus on numbers; on dates, times and intervals they go to [`super::datetime_arithmetic`].
//!
//! Integers wrap as in Java and dividing them by zero is an error; decimals that do not fit are NULL; floats follow IEEE.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::kernels::arity;
use arrow::datatypes::{
    ArrowNativeTypeOp, DataType as ArrowType, Decimal128Type, DurationMillisecondType, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, IntervalYearMonthType,
};
use arrow::error::ArrowError;

use super::args::Rows;
use super::builtin::{Builtin, any_nullable, coerce};
use super::datetime_arithmetic as datetime;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::common_type::common_number;
use crate::expr::compile::{map_array, null_scalar};
use crate::expr::{CastMode, Datum, EvalContext, Expr, decimal};
use crate::types::{DataType, TypeKind, Value};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "+",
        "<NUMERIC> + <NUMERIC>\n<INTERVAL> + <INTERVAL>\n<DATETIME> + <INTERVAL>\n<INTERVAL> + <DATETIME>",
        bind,
        |args, data_type, context| arithmetic(args, data_type, context, Operator::Add),
    ),
    Builtin::new(
        "-",
        "<NUMERIC> - <NUMERIC>\n<INTERVAL> - <INTERVAL>\n<DATETIME> - <INTERVAL>\n<DATETIME> - <DATETIME>",
        bind,
        |args, data_type, context| arithmetic(args, data_type, context, Operator::Subtract),
    ),
    Builtin::new(
        "*",
        "<NUMERIC> * <NUMERIC>\n<INTERVAL> * <NUMERIC>\n<NUMERIC> * <INTERVAL>",
        bind,
        |args, data_type, context| arithmetic(args, data_type, context, Operator::Multiply),
    ),
    Builtin::new("/", "<NUMERIC> / <NUMERIC>", bind, |args, data_type, context| {
        arithmetic(args, data_type, context, Operator::Divide)
    })
    .failing(),
    Builtin::new("%", "<EXACT NUMERIC> % <EXACT NUMERIC>", bind, |args, data_type, context| {
        arithmetic(args, data_type, context, Operator::Modulo)
    })
    .failing(),
    Builtin::new("NEGATE", "- <NUMERIC>\n- <INTERVAL>", bind_negate, negate),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Operator {
    fn of(function: &Builtin) -> Self {
        match function.name {
            "+" => Operator::Add,
            "-" => Operator::Subtract,
            "*" => Operator::Multiply,
            "/" => Operator::Divide,
            _ => Operator::Modulo,
        }
    }
}

fn bind(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [left, right]: [Expr; 2] = args.try_into().map_err(|args: Vec<Expr>| function.mismatch(&args))?;
    let operator = Operator::of(function);
    let (l, r) = (left.data_type().regular(), right.data_type().regular());
    // A bare NULL takes the type of the other side.
    if l.kind == TypeKind::Null && r.kind != TypeKind::Null {
        return bind(function, vec![coerce(left, &r.kind), right]);
    }
    if r.kind == TypeKind::Null && l.kind != TypeKind::Null {
        return bind(function, vec![left, coerce(right, &l.kind)]);
    }
    if !(l.is_numeric() && r.is_numeric()) {
        return datetime::bind(function, operator, left, right);
    }
    if operator == Operator::Modulo && (l.is_approximate() || r.is_approximate()) {
        return Err(function.mismatch(&[left, right]));
    }
    if operator == Operator::Divide && is_zero(&right) && is_constant(&left) {
        return Err(Error::new(ErrorKind::DivisionByZero, "division by zero").with_hint("the divisor is a constant"));
    }
    let nullable = l.nullable || r.nullable;
    if let (true, Some(a), Some(b)) = (
        matches!((&l.kind, &r.kind), (TypeKind::Decimal(..), _) | (_, TypeKind::Decimal(..))),
        decimal::of_exact(&l.kind),
        decimal::of_exact(&r.kind),
    ) {
        let result = match operator {
            Operator::Add | Operator::Subtract => a.plus(b),
            Operator::Multiply => a.times(b),
            Operator::Divide => a.divided_by(b),
            Operator::Modulo => a.modulo(b),
        };
        let args = vec![coerce(left, &a.kind()), coerce(right, &b.kind())];
        // A remainder of whole numbers is of the divisor's type.
        let is_whole = operator == Operator::Modulo && a.scale == 0 && b.scale == 0;
        let result = if is_whole { b } else { result };
        let call = function.call(args, DataType::new(result.kind(), nullable));
        return Ok(if is_whole { coerce(call, &r.kind) } else { call });
    }
    let result = common_number(&l.kind, &r.kind).unwrap_or_else(|| l.kind.clone());
    // Flink computes FLOAT with DOUBLE in the type of the first operand. A remainder is of the divisor's type.
    let (computed, result) = match operator {
        Operator::Modulo => (result, r.kind),
        _ => (result.clone(), result),
    };
    let call = function.call(vec![coerce(left, &computed), coerce(right, &computed)], DataType::new(computed, nullable));
    Ok(narrow(call, &result))
}

/// Whether it has one value, not NULL: Flink refuses to plan the division of it by a constant zero, whatever their types. Other
/// dividends meet the zero as rows come: DOUBLE becomes infinite, exact numbers fail.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Literal { value, .. } => *value != Value::Null,
        Expr::Cast { input, .. } => is_constant(input),
        Expr::Call { function, args, .. } => FUNCTIONS.iter().any(|known| known.name == function) && args.iter().all(is_constant),
        _ => false,
    }
}

/// Whether it is the constant zero.
fn is_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { input, .. } => is_zero(input),
        Expr::Literal { value, .. } => match value {
            Value::TinyInt(n) => *n == 0,
            Value::SmallInt(n) => *n == 0,
            Value::Int(n) => *n == 0,
            Value::BigInt(n) => *n == 0,
            Value::Float(n) => *n == 0.0,
            Value::Double(n) => *n == 0.0,
            Value::Decimal(n) => *n == 0,
            _ => false,
        },
        _ => false,
    }
}

/// A result brought to a narrower kind.
fn narrow(expr: Expr, kind: &TypeKind) -> Expr {
    let given = expr.data_type();
    if given.kind == *kind {
        return expr;
    }
    Expr::Cast { data_type: DataType::new(kind.clone(), given.nullable), input: Box::new(expr), mode: CastMode::Implicit }
}

fn bind_negate(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    match args.as_slice() {
        [arg] if arg.data_type().is_numeric() || arg.data_type().is_interval() => {
            let data_type = arg.data_type();
            Ok(function.call(args, data_type))
        }
        [arg] if arg.data_type().kind == TypeKind::Null => {
            Ok(function.call(vec![coerce(arg.clone(), &TypeKind::Int)], DataType::new(TypeKind::Int, any_nullable(&args))))
        }
        _ => Err(function.mismatch(&args)),
    }
}

fn negate(args: &[Datum], _: &DataType, _: &EvalContext) -> Result<Datum> {
    map_array(args[0].clone(), |array| Ok(arrow::compute::kernels::numeric::neg_wrapping(array.as_ref())?))
}

fn arithmetic(args: &[Datum], data_type: &DataType, context: &EvalContext, operator: Operator) -> Result<Datum> {
    let (left, right) = (&args[0], &args[1]);
    if args.iter().any(|arg| arg.is_scalar() && arg.array().is_null(0)) {
        return Ok(null_scalar(data_type));
    }
    let rows = Rows::of(args, context);
    let array: ArrayRef = match (&data_type.kind, left.array().data_type(), right.array().data_type()) {
        (TypeKind::TinyInt, ..) => numbers::<Int8Type>(left, right, operator)?,
        (TypeKind::SmallInt, ..) => numbers::<Int16Type>(left, right, operator)?,
        (TypeKind::Int, ..) => numbers::<Int32Type>(left, right, operator)?,
        (TypeKind::BigInt, ..) => numbers::<Int64Type>(left, right, operator)?,
        (TypeKind::Float, ..) => floats::<Float32Type>(left, right, operator)?,
        (TypeKind::Double, ..) => floats::<Float64Type>(left, right, operator)?,
        (TypeKind::Decimal(precision, scale), ..) => decimals(left, right, operator, *precision, *scale)?,
        (TypeKind::IntervalDayTime, ArrowType::Duration(_), ArrowType::Duration(_)) => {
            numbers::<DurationMillisecondType>(left, right, operator)?
        }
        (TypeKind::IntervalYearMonth, ArrowType::Interval(_), ArrowType::Interval(_)) => {
            numbers::<IntervalYearMonthType>(left, right, operator)?
        }
        _ => datetime::evaluate(left, right, data_type, operator, rows.count)?,
    };
    Ok(rows.finish(array))
}

/// Applies `op` to each pair of values of which neither is NULL.
pub(super) fn zip_values<A, B, O>(
    left: &Datum,
    right: &Datum,
    op: impl Fn(A::Native, B::Native) -> O::Native,
) -> Result<PrimitiveArray<O>>
where
    A: ArrowPrimitiveType,
    B: ArrowPrimitiveType,
    O: ArrowPrimitiveType,
{
    let (l, r): (&PrimitiveArray<A>, &PrimitiveArray<B>) = (left.array().as_primitive(), right.array().as_primitive());
    Ok(match (left.is_scalar(), right.is_scalar()) {
        (false, true) => {
            let b = r.value(0);
            arity::unary(l, |a| op(a, b))
        }
        (true, false) => {
            let a = l.value(0);
            arity::unary(r, |b| op(a, b))
        }
        _ => arity::binary(l, r, op)?,
    })
}

/// Applies `op` to each pair of values of which neither is NULL; its error is that of the call.
fn try_zip_values<T: ArrowPrimitiveType>(
    left: &Datum,
    right: &Datum,
    op: impl Fn(T::Native, T::Native) -> Result<T::Native, ArrowError>,
) -> Result<PrimitiveArray<T>> {
    let (l, r): (&PrimitiveArray<T>, &PrimitiveArray<T>) = (left.array().as_primitive(), right.array().as_primitive());
    Ok(match (left.is_scalar(), right.is_scalar()) {
        (false, true) => {
            let b = r.value(0);
            arity::try_unary(l, |a| op(a, b))?
        }
        (true, false) => {
            let a = l.value(0);
            arity::try_unary(r, |b| op(a, b))?
        }
        _ => arity::try_binary(l, r, op)?,
    })
}

fn numbers<T: ArrowPrimitiveType>(left: &Datum, right: &Datum, operator: Operator) -> Result<ArrayRef>
where
    T::Native: ArrowNativeTypeOp,
{
    let not_zero = |b: T::Native| if b.is_zero() { Err(ArrowError::DivideByZero) } else { Ok(b) };
    Ok(Arc::new(match operator {
        Operator::Add => zip_values::<T, T, T>(left, right, |a, b| a.add_wrapping(b))?,
        Operator::Subtract => zip_values::<T, T, T>(left, right, |a, b| a.sub_wrapping(b))?,
        Operator::Multiply => zip_values::<T, T, T>(left, right, |a, b| a.mul_wrapping(b))?,
        Operator::Divide => try_zip_values::<T>(left, right, |a, b| Ok(a.div_wrapping(not_zero(b)?)))?,
        Operator::Modulo => try_zip_values::<T>(left, right, |a, b| Ok(a.mod_wrapping(not_zero(b)?)))?,
    }))
}

fn floats<T: ArrowPrimitiveType>(left: &Datum, right: &Datum, operator: Operator) -> Result<ArrayRef>
where
    T::Native: ArrowNativeTypeOp,
{
    Ok(Arc::new(match operator {
        Operator::Divide => zip_values::<T, T, T>(left, right, |a, b| a.div_wrapping(b))?,
        Operator::Modulo => zip_values::<T, T, T>(left, right, |a, b| a.mod_wrapping(b))?,
        _ => return numbers::<T>(left, right, operator),
    }))
}

/// The products of decimals that keep their scale; none = one is too long, or may be.
fn short_products(left: &Datum, right: &Datum, precision: u8) -> Result<Option<PrimitiveArray<Decimal128Type>>> {
    let limit = 10_i128.pow(u32::from(precision)).unsigned_abs();
    let all_fit = std::cell::Cell::new(true);
    let products = zip_values::<Decimal128Type, Decimal128Type, Decimal128Type>(left, right, |a, b| {
        // Nearly all factors have 64 bits, of which the product is one instruction.
        let product = match (i64::try_from(a), i64::try_from(b)) {
            (Ok(a), Ok(b)) => i128::from(a) * i128::from(b),
            _ => i128::MAX,
        };
        all_fit.set(all_fit.get() & (product.unsigned_abs() < limit));
        product
    })?;
    Ok(all_fit.get().then_some(products))
}

fn decimals(left: &Datum, right: &Datum, operator: Operator, precision: u8, scale: u8) -> Result<ArrayRef> {
    let scale_of = |datum: &Datum| match datum.array().data_type() {
        ArrowType::Decimal128(_, scale) => *scale as u8,
        other => unreachable!("an operand of decimal arithmetic is a decimal, not {other}"),
    };
    let (a_scale, b_scale) = (scale_of(left), scale_of(right));
    if operator == Operator::Multiply
        && a_scale + b_scale == scale
        && let Some(products) = short_products(left, right, precision)?
    {
        return Ok(Arc::new(products.with_data_type(ArrowType::Decimal128(precision, scale as i8))));
    }
    let compute = |a: i128, b: i128| -> Result<Option<i128>, ArrowError> {
        let value = match operator {
            Operator::Add => decimal::add(a, a_scale, b, b_scale, scale),
            Operator::Subtract => decimal::add(a, a_scale, -b, b_scale, scale),
            Operator::Multiply => decimal::multiply(a, b, a_scale + b_scale, scale),
            Operator::Divide | Operator::Modulo if b == 0 => return Err(ArrowError::DivideByZero),
            Operator::Divide => decimal::divide(a, a_scale, b, b_scale, scale),
            Operator::Modulo => decimal::modulo(a, a_scale, b, b_scale, scale),
        };
        Ok(value.and_then(|value| decimal::fit(value, precision)))
    };
    let (l, r) = (left.array().as_primitive::<Decimal128Type>(), right.array().as_primitive::<Decimal128Type>());
    let rows = if left.is_scalar() { r.len() } else { l.len() };
    let at = |datum: &Datum, row: usize| if datum.is_scalar() { 0 } else { row };
    let mut builder = PrimitiveArray::<Decimal128Type>::builder(rows);
    for row in 0..rows {
        let (i, j) = (at(left, row), at(right, row));
        if l.is_null(i) || r.is_null(j) {
            builder.append_null();
        } else {
            builder.append_option(compute(l.value(i), r.value(j))?);
        }
    }
    Ok(Arc::new(builder.finish().with_data_type(ArrowType::Decimal128(precision, scale as i8))))
}
