//! COALESCE, IF, IFNULL, NULLIF (all rewritten to CASE), GREATEST and LEAST.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::{DataType as ArrowType, Float32Type, Float64Type};

use super::args::Rows;
use super::builtin::{Builtin, Param, any_nullable, coerce};
use super::comparison::{Operator, comparable, compare};
use crate::error::{Error, Result};
use crate::expr::merged_type::merged_type;
use crate::expr::{Datum, EvalContext, Expr, common_type};
use crate::types::{DataType, TypeKind, Value};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("COALESCE", "COALESCE(<ANY> [, <ANY>]*)", bind_coalesce, rewritten),
    Builtin::new("IFNULL", "IFNULL(<ANY>, <ANY>)", bind_if_null, rewritten),
    Builtin::new("IF", "IF(<BOOLEAN>, <ANY>, <ANY>)", bind_if, rewritten),
    Builtin::new("NULLIF", "NULLIF(<ANY>, <ANY>)", bind_null_if, rewritten),
    Builtin::new("GREATEST", "GREATEST(<ANY> [, <ANY>]*)", bind_extreme, |args, _, context| {
        extreme(args, context, Operator::Greater)
    }),
    Builtin::new("LEAST", "LEAST(<ANY> [, <ANY>]*)", bind_extreme, |args, _, context| extreme(args, context, Operator::Less)),
];

fn rewritten(_: &[Datum], _: &DataType, _: &EvalContext) -> Result<Datum> {
    Err(Error::internal("a call that is rewritten to CASE was evaluated"))
}

/// The common type of some arguments, without time attribute.
fn common(function: &Builtin, of: &[Expr]) -> Result<DataType> {
    let types: Vec<DataType> = of.iter().map(|arg| arg.data_type().regular()).collect();
    common_type(&types).ok_or_else(|| function.no_common_type(of))
}

/// The type that COALESCE, GREATEST and LEAST bring all arguments to.
fn merged(function: &Builtin, args: &[Expr]) -> Result<DataType> {
    let types: Vec<DataType> = args.iter().map(|arg| arg.data_type().regular()).collect();
    merged_type(&types).ok_or_else(|| function.no_common_type(args))
}

fn is_not_null(expr: &Expr) -> Expr {
    let data_type = DataType::not_null(TypeKind::Boolean);
    Expr::Call { function: "IS NOT NULL".to_string(), args: vec![expr.clone()], data_type }
}

/// The first that is not NULL. What follows one that is never NULL is not needed.
fn bind_coalesce(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    if args.is_empty() {
        return Err(function.mismatch(&args));
    }
    let data_type = merged(function, &args)?;
    let nullable = args.iter().all(|arg| arg.data_type().nullable);
    let data_type = data_type.with_nullable(nullable);
    let mut needed: Vec<Expr> = Vec::new();
    for arg in args {
        let nullable = arg.data_type().nullable;
        if !matches!(arg, Expr::Literal { value: Value::Null, .. }) {
            needed.push(coerce(arg, &data_type.kind));
        }
        if !nullable {
            break;
        }
    }
    let Some(last) = needed.pop() else { return Ok(Expr::literal(Value::Null, data_type)) };
    if needed.is_empty() && last.data_type() == data_type {
        return Ok(last);
    }
    let branches = needed.into_iter().map(|arg| (is_not_null(&arg), arg)).collect();
    Ok(Expr::Case { branches, otherwise: Box::new(last), data_type })
}

/// As COALESCE of two; a string that is never NULL keeps its type.
fn bind_if_null(function: &Builtin, mut args: Vec<Expr>) -> Result<Expr> {
    if args.len() != 2 {
        return Err(function.mismatch(&args));
    }
    let (first, second) = (args[0].data_type(), args[1].data_type());
    if first.is_character() && second.is_character() && !first.nullable {
        return Ok(args.swap_remove(0));
    }
    bind_coalesce(function, args)
}

fn bind_if(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    if args.len() != 3 {
        return Err(function.mismatch(&args));
    }
    let condition = Param::Boolean.accept(args[0].clone()).ok_or_else(|| function.mismatch(&args))?;
    let mut data_type = common(function, &args[1..])?;
    let first = args[1].data_type().kind;
    // Of times the first decides, as in Flink.
    if matches!(first, TypeKind::Timestamp(_) | TypeKind::TimestampLtz(_) | TypeKind::Time(_)) {
        data_type.kind = first;
    }
    let nullable = data_type.nullable || condition.data_type().nullable;
    let data_type = data_type.with_nullable(nullable);
    let [then, otherwise] = [&args[1], &args[2]].map(|arg| coerce(arg.clone(), &data_type.kind));
    Ok(Expr::Case { branches: vec![(condition, then)], otherwise: Box::new(otherwise), data_type })
}

fn bind_null_if(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [value, other]: [Expr; 2] = args.try_into().map_err(|args: Vec<Expr>| function.mismatch(&args))?;
    let data_type = value.data_type().regular().with_nullable(true);
    let sides = comparable(function, vec![value.clone(), other], true)?;
    let truth = DataType::new(TypeKind::Boolean, any_nullable(&sides));
    let equals = Expr::Call { function: "=".to_string(), args: sides, data_type: truth };
    let null = Expr::literal(Value::Null, data_type.clone());
    Ok(Expr::Case { branches: vec![(equals, null)], otherwise: Box::new(value), data_type })
}

fn bind_extreme(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    if args.is_empty() {
        return Err(function.mismatch(&args));
    }
    let data_type = merged(function, &args)?;
    let is_part = matches!(data_type.kind, TypeKind::Date | TypeKind::Time(_));
    let cuts_times = is_part && args.iter().any(|arg| matches!(arg.data_type().kind, TypeKind::Timestamp(_)));
    if cuts_times || data_type.is_nested() || matches!(data_type.kind, TypeKind::Bitmap | TypeKind::Variant) {
        return Err(function.mismatch(&args));
    }
    let args: Vec<Expr> = args.into_iter().map(|arg| coerce(arg, &data_type.kind)).collect();
    let nullable = any_nullable(&args);
    Ok(function.call(args, data_type.with_nullable(nullable)))
}

/// The greatest or least of the arguments; NULL if any is.
fn extreme(args: &[Datum], context: &EvalContext, better: Operator) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let row_context = EvalContext { num_rows: rows.count, ..context.clone() };
    let mut best: ArrayRef = args[0].clone().into_array(rows.count)?;
    for arg in &args[1..] {
        let other = arg.clone().into_array(rows.count)?;
        let pair = [Datum::Array(other.clone()), Datum::Array(best.clone())];
        let wins = compare(&pair, &row_context, better)?.into_array(rows.count)?;
        let wins = wins.as_boolean();
        let of_nan = |row: usize| match better {
            Operator::Greater => is_nan(&other, row),
            _ => is_nan(&best, row),
        };
        // A NULL on the other side wins for good.
        let takes = BooleanBuffer::collect_bool(rows.count, |row| {
            other.is_null(row) || (!best.is_null(row) && !wins.is_null(row) && (wins.value(row) || of_nan(row)))
        });
        best = zip(&BooleanArray::new(takes, None), &other, &best)?;
    }
    Ok(rows.finish(best))
}

/// Whether a number is NaN, which is greater than all others here.
fn is_nan(array: &ArrayRef, row: usize) -> bool {
    match array.data_type() {
        ArrowType::Float32 => array.as_primitive::<Float32Type>().value(row).is_nan(),
        ArrowType::Float64 => array.as_primitive::<Float64Type>().value(row).is_nan(),
        _ => false,
    }
}
