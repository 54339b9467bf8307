//! Filters and conditions of joins move to where they belong: to one side, into the condition, or stay above.
//!
//! What WHERE asks of an inner join is part of its condition; a term of the condition that reads one side filters that side. Of an
//! outer join the rows that are kept in any case are filtered only from above, the others only from within its condition. A WHERE
//! that never lets NULLs of a side through makes the join an inner one there.

use std::sync::Arc;

use super::expressions::{conjunction, conjuncts, filtered, is_deterministic, is_true, shifted};
use super::factor_terms::factored;
use super::null_rejection::rejects_nulls;
use super::push_filters::push_some;
use crate::expr::Expr;
use crate::plan::{LogicalPlan, PlannerContext};
use crate::stream_graph::JoinType;
use crate::types::{DataType, SchemaRef, TypeKind, Value};

/// A join in the making: what is above it, what filters its sides, and its condition.
struct Terms {
    above: Vec<Expr>,
    left: Vec<Expr>,
    right: Vec<Expr>,
    condition: Vec<Expr>,
}

/// A join with a filter above it.
pub(super) fn push(
    (left, right): (LogicalPlan, LogicalPlan),
    join_type: JoinType,
    condition: Expr,
    schema: SchemaRef,
    above: Vec<Expr>,
    cx: &PlannerContext,
) -> LogicalPlan {
    let width = left.schema().len();
    let join_type =
        if join_type.is_left_only() { join_type } else { inner_where_possible(join_type, &above, width, schema.len()) };
    let terms = distribute(join_type, conjuncts(condition), above, width, cx);
    let right_terms = terms.right.into_iter().map(|term| shifted(term, &|column| column - width)).collect();
    let condition = conjunction(terms.condition)
        .unwrap_or_else(|| Expr::literal(Value::Boolean(true), DataType::not_null(TypeKind::Boolean)));
    let join = LogicalPlan::Join {
        left: Box::new(push_some(left, terms.left, cx)),
        right: Box::new(push_some(right, right_terms, cx)),
        join_type,
        condition,
        schema: Arc::clone(&schema),
    };
    filtered(join, terms.above)
}

/// The join type, when rows that `above` never lets through are not made.
fn inner_where_possible(join_type: JoinType, above: &[Expr], left_width: usize, width: usize) -> JoinType {
    let rejected = |columns: std::ops::Range<usize>| above.iter().any(|term| rejects_nulls(term, columns.clone()));
    let (no_left_nulls, no_right_nulls) = (rejected(0..left_width), rejected(left_width..width));
    match join_type {
        JoinType::Left if no_right_nulls => JoinType::Inner,
        JoinType::Right if no_left_nulls => JoinType::Inner,
        JoinType::Full if no_left_nulls && no_right_nulls => JoinType::Inner,
        // Rows padded on the right are those of the left without a partner.
        JoinType::Full if no_left_nulls => JoinType::Left,
        JoinType::Full if no_right_nulls => JoinType::Right,
        other => other,
    }
}

fn distribute(join_type: JoinType, condition: Vec<Expr>, above: Vec<Expr>, width: usize, cx: &PlannerContext) -> Terms {
    let movable = |term: &Expr| is_deterministic(term, cx.functions);
    let (from_above, stay): (Vec<Expr>, Vec<Expr>) = above.into_iter().partition(movable);
    let mut terms = Terms { above: stay, left: Vec::new(), right: Vec::new(), condition: Vec::new() };
    let mut within: Vec<Expr> = condition;
    // Where each kept row of a side comes out at least once, a filter from above reads the row itself.
    let (above_left, above_right) = match join_type {
        JoinType::Inner => (false, false),
        JoinType::Left | JoinType::Semi | JoinType::Anti => (true, false),
        JoinType::Right => (false, true),
        JoinType::Full => (false, false),
    };
    for term in from_above {
        match side(&term, width) {
            _ if join_type == JoinType::Inner => within.push(term),
            Some(Side::Left) if above_left => terms.left.push(term),
            Some(Side::Right) if above_right => terms.right.push(term),
            _ => terms.above.push(term),
        }
    }
    // Rows of a side that are not kept without a partner can go before the join.
    let (within_left, within_right) = match join_type {
        JoinType::Inner | JoinType::Semi => (true, true),
        JoinType::Left | JoinType::Anti => (false, true),
        JoinType::Right => (true, false),
        JoinType::Full => (false, false),
    };
    let factored = within.into_iter().flat_map(|term| if movable(&term) { factored(term) } else { vec![term] });
    for term in factored.filter(|term| !is_true(term)) {
        match side(&term, width) {
            Some(Side::Left) if within_left && movable(&term) => terms.left.push(term),
            Some(Side::Right) if within_right && movable(&term) => terms.right.push(term),
            _ if terms.condition.contains(&term) => {}
            _ => terms.condition.push(term),
        }
    }
    terms
}

enum Side {
    Left,
    Right,
}

/// The one side that a term reads.
fn side(term: &Expr, width: usize) -> Option<Side> {
    let columns = term.columns();
    match (columns.iter().min(), columns.iter().max()) {
        (Some(_), Some(last)) if *last < width => Some(Side::Left),
        (Some(first), Some(_)) if *first >= width => Some(Side::Right),
        _ => None,
    }
}
