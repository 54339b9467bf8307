//! Simplifies expressions: three-valued logic over constants, nested conjunctions; a filter that is always or never true goes away.

use super::expressions::map_expressions;
use super::rule::bottom_up;
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{LogicalPlan, PlannerContext};
use crate::types::{DataType, TypeKind, Value};

pub(super) fn apply(plan: LogicalPlan, _cx: &PlannerContext) -> Result<LogicalPlan> {
    bottom_up(plan, &mut |plan| {
        let plan = map_expressions(plan, &mut simplified);
        Ok(match plan {
            LogicalPlan::Filter { input, predicate } => match constant(&predicate) {
                Some(Some(true)) => *input,
                // NULL keeps no row either.
                Some(_) => LogicalPlan::Values { rows: Vec::new(), schema: input.schema().clone() },
                None => LogicalPlan::Filter { input, predicate },
            },
            other => other,
        })
    })
}

/// The value of a BOOLEAN constant: `Some(None)` for NULL.
fn constant(expr: &Expr) -> Option<Option<bool>> {
    match expr {
        Expr::Literal { value: Value::Boolean(value), .. } => Some(Some(*value)),
        Expr::Literal { value: Value::Null, .. } => Some(None),
        _ => None,
    }
}

fn boolean(value: bool) -> Expr {
    Expr::literal(Value::Boolean(value), DataType::not_null(TypeKind::Boolean))
}

/// The same value by a simpler expression.
pub(super) fn simplified(expr: Expr) -> Expr {
    match expr.map_children(&mut simplified) {
        Expr::And(terms) => simplified_terms(terms, false),
        Expr::Or(terms) => simplified_terms(terms, true),
        Expr::Not(inner) => simplified_not(*inner),
        Expr::Case { branches, otherwise, data_type } => simplified_case(branches, *otherwise, data_type),
        other => other,
    }
}

fn simplified_not(inner: Expr) -> Expr {
    match (constant(&inner), inner) {
        (Some(Some(value)), _) => boolean(!value),
        (Some(None), null) => null,
        (None, Expr::Not(inner)) => *inner,
        (None, inner) => Expr::Not(Box::new(inner)),
    }
}

/// AND (`dominant` is false) or OR (`dominant` is true). What follows a dominant constant is never looked at.
fn simplified_terms(terms: Vec<Expr>, dominant: bool) -> Expr {
    let mut kept: Vec<Expr> = Vec::with_capacity(terms.len());
    for term in terms {
        let nested = match term {
            Expr::And(inner) if !dominant => inner,
            Expr::Or(inner) if dominant => inner,
            other => vec![other],
        };
        for term in nested {
            match constant(&term) {
                Some(Some(value)) if value == dominant && kept.is_empty() => return boolean(dominant),
                // The terms before it may fail, and they come first.
                Some(Some(value)) if value == dominant => {
                    kept.push(term);
                    return joined(kept, dominant);
                }
                Some(Some(_)) => {}
                _ if kept.contains(&term) => {}
                _ => kept.push(term),
            }
        }
    }
    joined(kept, dominant)
}

fn joined(mut terms: Vec<Expr>, dominant: bool) -> Expr {
    match terms.len() {
        0 => boolean(!dominant),
        1 => terms.remove(0),
        _ if dominant => Expr::Or(terms),
        _ => Expr::And(terms),
    }
}

/// Leaves out branches that are never taken; one that is always taken is the last.
fn simplified_case(branches: Vec<(Expr, Expr)>, mut otherwise: Expr, data_type: DataType) -> Expr {
    let mut kept = Vec::with_capacity(branches.len());
    for (when, then) in branches {
        match constant(&when) {
            Some(Some(true)) => {
                otherwise = then;
                break;
            }
            Some(_) => {}
            None => kept.push((when, then)),
        }
    }
    // The one result left may be of a narrower type than the CASE (NOT NULL), which the columns above were typed by.
    if kept.is_empty() && otherwise.data_type() == data_type {
        return otherwise;
    }
    Expr::Case { branches: kept, otherwise: Box::new(otherwise), data_type }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::plan::testing::*;

    fn null() -> Expr {
        Expr::literal(Value::Null, boolean_type())
    }

    fn positive() -> Expr {
        compare(bigint(1), ">", int_literal(0))
    }

    #[test]
    fn constants_leave_logic() {
        assert_eq!(simplified(Expr::And(vec![boolean(true), positive()])), positive());
        assert_eq!(simplified(Expr::And(vec![boolean(false), positive()])), boolean(false));
        assert_eq!(simplified(Expr::Or(vec![boolean(true), positive()])), boolean(true));
        assert_eq!(simplified(Expr::Not(Box::new(Expr::Not(Box::new(positive()))))), positive());
        assert_eq!(
            simplified(Expr::And(vec![positive(), Expr::And(vec![positive(), null()])])),
            Expr::And(vec![positive(), null()])
        );
    }

    #[test]
    fn a_term_that_may_fail_is_still_evaluated_before_a_false_one() {
        let both = Expr::And(vec![positive(), boolean(false)]);
        assert_eq!(simplified(both.clone()), both);
    }

    #[test]
    fn a_case_that_is_decided_is_its_result() {
        let case = |when: Expr| Expr::Case {
            branches: vec![(when, bigint(0))],
            otherwise: Box::new(bigint(1)),
            data_type: bigint_type(),
        };
        assert_eq!(simplified(case(boolean(true))), bigint(0));
        assert_eq!(simplified(case(null())), bigint(1));
        assert_eq!(simplified(case(positive())), case(positive()));
    }

    #[test]
    fn a_filter_that_is_never_true_keeps_no_row() {
        let session = Session::new();
        let plan = apply(filter(scan(), null()), &session.cx()).unwrap();
        expect![[r#"
            Values(tuples=[[]])
        "#]]
        .assert_eq(&plan.to_string());
        assert_eq!(apply(filter(scan(), boolean(true)), &session.cx()).unwrap(), scan());
    }
}
