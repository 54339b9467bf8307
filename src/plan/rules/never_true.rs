//! Whether the terms of a condition contradict each other: `x > 5 AND x < 3`, `x = 1 AND x = 2`, `x IS NULL AND x = 1`, `x <> x`.
//!
//! Constants are put in place of what they are said to be equal to, and bounds are compared with each other; what then folds to FALSE or
//! NULL is never true.

use crate::expr::{Expr, fold};
use crate::plan::PlannerContext;
use crate::types::{DataType, TypeKind, Value};

use super::expressions::{is_deterministic, turned};

/// More terms are not compared with each other: planning stays quick.
const TERMS_MAX: usize = 50;

/// A comparison of an expression with a constant.
struct Comparison<'e> {
    what: &'e Expr,
    operator: &'e str,
    constant: &'e Expr,
}

/// Whether no row can make all of these terms true.
pub(super) fn is_never_true(terms: &[Expr], cx: &PlannerContext) -> bool {
    if terms.iter().any(|term| is_false(term) || differs_from_itself(term, cx)) {
        return true;
    }
    if terms.len() < 2 || terms.len() > TERMS_MAX {
        return false;
    }
    let compared: Vec<Comparison<'_>> = terms.iter().filter_map(comparison).collect();
    let compared = compared.into_iter().filter(|comparison| is_deterministic(comparison.what, cx.functions));
    let compared: Vec<Comparison<'_>> = compared.collect();
    let nulls = |name: &'static str| terms.iter().filter_map(move |term| is_call(term, name)?.first());
    let not_null: Vec<&Expr> = compared.iter().map(|comparison| comparison.what).chain(nulls("IS NOT NULL")).collect();
    if nulls("IS NULL").any(|what| not_null.contains(&what)) || terms.iter().any(|term| is_denied(term, terms, cx)) {
        return true;
    }
    if terms.iter().any(|term| compared.iter().any(|comparison| misses_list(comparison, term, cx))) {
        return true;
    }
    let lists: Vec<Vec<Comparison<'_>>> = terms.iter().filter_map(list).collect();
    compared.iter().enumerate().any(|(at, one)| {
        compared[at + 1..].iter().any(|other| contradict(one, other, cx))
            || lists.iter().any(|list| list.iter().all(|other| contradict(one, other, cx)))
    })
}

/// Whether another term is the negation of this one.
fn is_denied(term: &Expr, terms: &[Expr], cx: &PlannerContext) -> bool {
    let denies = |other: &Expr| matches!(other, Expr::Not(inner) if **inner == *term);
    terms.iter().any(denies) && is_deterministic(term, cx.functions)
}

/// Whether a term is `[NOT] IN` with a list, and no value fulfils both it and a comparison.
fn misses_list(comparison: &Comparison<'_>, term: &Expr, cx: &PlannerContext) -> bool {
    let Expr::InList { needle, list, negated } = term else { return false };
    if **needle != *comparison.what {
        return false;
    }
    let holds = |value: &Value, operator: &str| {
        is_known(&Expr::literal(value.clone(), needle.data_type()), operator, comparison.constant, cx)
    };
    match (negated, comparison.operator) {
        (false, operator) => list.iter().all(|value| *value == Value::Null || holds(value, operator) == Some(false)),
        (true, "=") => list.iter().any(|value| *value == Value::Null || holds(value, "=") == Some(true)),
        (true, _) => false,
    }
}

/// The comparisons of which one must be true.
fn list(term: &Expr) -> Option<Vec<Comparison<'_>>> {
    match term {
        Expr::Or(terms) => terms.iter().map(comparison).collect(),
        _ => None,
    }
}

/// FALSE, NULL, or a comparison with NULL.
fn is_false(term: &Expr) -> bool {
    let is_null = |expr: &Expr| matches!(expr, Expr::Literal { value: Value::Null, .. });
    match term {
        Expr::Literal { value: Value::Boolean(false) | Value::Null, .. } => true,
        term => comparison(term).is_some_and(|comparison| is_null(comparison.constant)),
    }
}

fn is_call<'e>(expr: &'e Expr, name: &str) -> Option<&'e [Expr]> {
    match expr {
        Expr::Call { function, args, .. } if function == name => Some(args),
        _ => None,
    }
}

fn differs_from_itself(term: &Expr, cx: &PlannerContext) -> bool {
    let sides = match term {
        Expr::Not(inner) => is_call(inner, "="),
        term => is_call(term, "<>"),
    };
    let Some([left, right]) = sides else { return false };
    // NaN is the same as itself here, as in Flink.
    left == right && is_deterministic(left, cx.functions)
}

fn comparison(term: &Expr) -> Option<Comparison<'_>> {
    let Expr::Call { function, args, .. } = term else { return None };
    let turned = turned(function)?;
    match args.as_slice() {
        [Expr::Literal { .. }, Expr::Literal { .. }] => None,
        [what, constant @ Expr::Literal { .. }] => Some(Comparison { what, operator: function, constant }),
        [constant @ Expr::Literal { .. }, what] => Some(Comparison { what, operator: turned, constant }),
        _ => None,
    }
}

/// Whether no value fulfils both comparisons.
fn contradict(one: &Comparison<'_>, other: &Comparison<'_>, cx: &PlannerContext) -> bool {
    if one.what != other.what {
        return false;
    }
    let holds = |left: &Expr, operator: &str, right: &Expr| is_known(left, operator, right, cx);
    match (one.operator, other.operator) {
        ("=", operator) => holds(one.constant, operator, other.constant) == Some(false),
        (operator, "=") => holds(other.constant, operator, one.constant) == Some(false),
        (low @ (">" | ">="), high @ ("<" | "<=")) => !leaves_room(one, low, other, high, cx),
        (high @ ("<" | "<="), low @ (">" | ">=")) => !leaves_room(other, low, one, high, cx),
        _ => false,
    }
}

/// Whether something may lie between two bounds.
fn leaves_room(low: &Comparison<'_>, above: &str, high: &Comparison<'_>, below: &str, cx: &PlannerContext) -> bool {
    let operator = if above == ">=" && below == "<=" { "<=" } else { "<" };
    is_known(low.constant, operator, high.constant, cx) != Some(false)
}

/// A comparison of two constants of one type, where it is known.
fn is_known(left: &Expr, operator: &str, right: &Expr, cx: &PlannerContext) -> Option<bool> {
    if left.data_type().kind != right.data_type().kind {
        return None;
    }
    let data_type = DataType::nullable(TypeKind::Boolean);
    let call = Expr::Call { function: operator.to_string(), args: vec![left.clone(), right.clone()], data_type };
    match fold(call, cx.functions, cx.configuration.time_zone()).ok()? {
        Expr::Literal { value: Value::Boolean(holds), .. } => Some(holds),
        _ => None,
    }
}
