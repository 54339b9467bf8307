//! Constant folding: what does not depend on rows is computed once, by the planner.
//!
//! Calls of deterministic functions and casts on literals become literals; AND, OR and CASE lose what constants decide. The type of
//! an expression never changes. What fails when it is folded stays as it is, and fails when (and only if) it is evaluated; but a
//! constant DOUBLE divided by a constant zero is refused, as in Flink.

use arrow::array::ArrayRef;

use super::{Datum, EvalContext, Expr, FunctionRegistry, array_to_value, compile};
use crate::error::{Error, ErrorKind, Result};
use crate::types::{DataType, TimeZone, TypeKind, Value, Watermark};

/// Folds the constants of an expression.
pub fn fold(expr: Expr, registry: &FunctionRegistry, time_zone: TimeZone) -> Result<Expr> {
    fold_row(expr, registry, time_zone).map(cut)
}

/// The same for what is computed from a constant row: its text is as long as it comes.
pub fn fold_row(expr: Expr, registry: &FunctionRegistry, time_zone: TimeZone) -> Result<Expr> {
    let folded = fold_node(expr, registry, time_zone);
    refuse_division_by_zero(&folded)?;
    Ok(folded)
}

/// Constant text is as long as its type says at most: Flink cuts what it has computed, `UPPER('ß')` to `S`, as a whole and not in between.
fn cut(expr: Expr) -> Expr {
    match expr {
        Expr::Literal { value: Value::String(text), data_type } => {
            let length = match data_type.kind {
                TypeKind::Char(length) | TypeKind::Varchar(length) => length as usize,
                _ => usize::MAX,
            };
            let end = text.char_indices().nth(length).map_or(text.len(), |(end, _)| end);
            Expr::literal(Value::String(text[..end].to_string()), data_type)
        }
        Expr::Column { .. } | Expr::Literal { .. } => expr,
        other => other.map_children(&mut cut),
    }
}

/// A constant divided by a constant zero is an error before the query runs, also where the quotient of columns would be infinite.
fn refuse_division_by_zero(expr: &Expr) -> Result<()> {
    if is_divided_by_zero(expr) {
        return Err(Error::new(ErrorKind::DivisionByZero, "division by zero")
            .with_hint("NULLIF(x, 0) as the divisor gives NULL instead of an error"));
    }
    expr.children().into_iter().try_for_each(refuse_division_by_zero)
}

fn is_divided_by_zero(expr: &Expr) -> bool {
    let Expr::Call { function, args, .. } = expr else { return false };
    match args.as_slice() {
        [Expr::Literal { value, .. }, Expr::Literal { value: Value::Double(zero), .. }] => {
            function == "/" && !value.is_null() && *zero == 0.0
        }
        _ => false,
    }
}

fn fold_node(expr: Expr, registry: &FunctionRegistry, zone: TimeZone) -> Expr {
    let expr = expr.map_children(&mut |child| fold_node(child, registry, zone));
    let expr = match expr {
        Expr::And(terms) => return fold_connective(terms, false),
        Expr::Or(terms) => return fold_connective(terms, true),
        Expr::Case { branches, otherwise, data_type } => return fold_case(branches, *otherwise, data_type),
        other => other,
    };
    let foldable = match &expr {
        Expr::Column { .. } | Expr::Literal { .. } => false,
        Expr::Call { function, .. } => registry.scalar(function).is_some_and(|function| function.is_deterministic()),
        _ => true,
    };
    let foldable = foldable && !is_divided_by_zero(&expr);
    let constant = foldable && expr.children().into_iter().all(|child| matches!(child, Expr::Literal { .. }));
    if constant { evaluate_constant(&expr, registry, zone).unwrap_or(expr) } else { expr }
}

/// The literal that a constant expression is; none if it fails, or if it is NULL although its type says otherwise.
fn evaluate_constant(expr: &Expr, registry: &FunctionRegistry, zone: TimeZone) -> Option<Expr> {
    let data_type = expr.data_type();
    let context =
        EvalContext { num_rows: 1, time_zone: zone, processing_time_ms: 0, query_start_ms: 0, watermark: Watermark::MIN };
    let no_columns: [ArrayRef; 0] = [];
    let result = compile(expr, registry).ok()?.evaluate(&no_columns, &context).ok()?;
    let (Datum::Scalar(array) | Datum::Array(array)) = result;
    let value = array_to_value(&array, 0, &data_type);
    (data_type.nullable || !value.is_null()).then(|| Expr::literal(value, data_type))
}

/// The truth of a literal: none = it is no literal, `Some(None)` = NULL.
fn truth(expr: &Expr) -> Option<Option<bool>> {
    match expr {
        Expr::Literal { value: Value::Boolean(value), .. } => Some(Some(*value)),
        Expr::Literal { value: Value::Null, .. } => Some(None),
        _ => None,
    }
}

/// AND (`decisive` = false) or OR (`decisive` = true).
fn fold_connective(terms: Vec<Expr>, decisive: bool) -> Expr {
    let nullable = terms.iter().any(|term| term.data_type().nullable);
    let literal = |value| Expr::literal(Value::Boolean(value), DataType::new(TypeKind::Boolean, nullable));
    let mut kept = Vec::with_capacity(terms.len());
    for term in terms {
        match truth(&term) {
            Some(Some(value)) if value == decisive => return literal(decisive),
            Some(Some(_)) => {}
            _ => kept.push(term),
        }
    }
    match kept.len() {
        0 => literal(!decisive),
        1 if kept[0].data_type().nullable == nullable => kept.remove(0),
        _ if decisive => Expr::Or(kept),
        _ => Expr::And(kept),
    }
}

fn fold_case(branches: Vec<(Expr, Expr)>, otherwise: Expr, data_type: DataType) -> Expr {
    let mut kept = Vec::with_capacity(branches.len());
    let mut otherwise = otherwise;
    for (when, then) in branches {
        match truth(&when) {
            Some(Some(true)) => {
                otherwise = then;
                break;
            }
            Some(_) => {}
            None => kept.push((when, then)),
        }
    }
    match otherwise {
        Expr::Literal { value, .. } if kept.is_empty() && (data_type.nullable || !value.is_null()) => {
            Expr::literal(value, data_type)
        }
        other if kept.is_empty() && other.data_type() == data_type => other,
        other => Expr::Case { branches: kept, otherwise: Box::new(other), data_type },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{CastMode, builtin_functions};

    fn int(value: i32) -> Expr {
        Expr::literal(Value::Int(value), DataType::not_null(TypeKind::Int))
    }

    fn call(name: &str, args: Vec<Expr>) -> Expr {
        builtin_functions().scalar(name).unwrap().bind(args).unwrap()
    }

    fn folded(expr: Expr) -> Expr {
        fold(expr, &builtin_functions(), TimeZone::UTC).unwrap()
    }

    #[test]
    fn calls_on_literals_become_literals_and_errors_stay() {
        assert_eq!(folded(call("+", vec![int(1), call("*", vec![int(2), int(3)])])), int(7));
        let failing = call("/", vec![int(1), call("-", vec![int(1), int(1)])]);
        assert_eq!(
            folded(failing),
            Expr::Call { function: "/".to_string(), args: vec![int(1), int(0)], data_type: DataType::not_null(TypeKind::Int) }
        );
        let text = Expr::literal(Value::String("x".into()), DataType::not_null(TypeKind::Char(1)));
        let cast = Expr::Cast { input: Box::new(text), data_type: DataType::not_null(TypeKind::Int), mode: CastMode::Strict };
        assert_eq!(folded(cast.clone()), cast);
    }

    #[test]
    fn constants_decide_and_or_and_case() {
        let truth = |value| Expr::literal(Value::Boolean(value), DataType::not_null(TypeKind::Boolean));
        let column = Expr::column(0, DataType::not_null(TypeKind::Boolean));
        assert_eq!(folded(Expr::And(vec![truth(true), column.clone()])), column);
        assert_eq!(folded(Expr::Or(vec![column.clone(), truth(true)])), truth(true));
        let case = Expr::Case {
            branches: vec![(truth(false), int(1)), (truth(true), int(2))],
            otherwise: Box::new(int(3)),
            data_type: DataType::not_null(TypeKind::Int),
        };
        assert_eq!(folded(case), int(2));
    }
}
