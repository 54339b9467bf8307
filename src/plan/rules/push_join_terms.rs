//! Filters and conditions of joins move to where they belong: to one side, into the condition, or stay above.
//!
//! What WHERE asks of an inner join is part of its condition; a term of the condition that reads one side filters that side. Of an
//! outer join the rows that are kept in any case are filtered only from above, the others only from within its condition. A WHERE
//! that never lets NULLs of a side through makes the join an inner one there.

use std::sync::Arc;

use super::expressions::{conjunction, conjuncts, depends_on_row_and_time, filtered, is_true, shifted};
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
    (schema, ttl): (SchemaRef, [Option<u64>; 2]),
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
        ttl,
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
    let movable = |term: &Expr| depends_on_row_and_time(term, cx.functions);
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
    imply_constants(&mut terms, width, within_left, within_right);
    terms
}

/// `a = b AND a = 5` says `b = 5`: rows of the other side that cannot have a partner go before the join.
fn imply_constants(terms: &mut Terms, width: usize, within_left: bool, within_right: bool) {
    for term in &terms.condition {
        let Expr::Call { function, args, .. } = term else { continue };
        let ("=", [Expr::Column { index: a, data_type: one }, Expr::Column { index: b, data_type: other }]) =
            (function.as_str(), args.as_slice())
        else {
            continue;
        };
        let (left, right) = (*a.min(b), *a.max(b));
        if left >= width || right < width || one.kind != other.kind {
            continue;
        }
        let implied = |from: &[Expr], column: usize, to: usize, known: &[Expr]| -> Vec<Expr> {
            let constants = from.iter().filter(|term| is_constant_of(term, column));
            constants.map(|term| shifted(term.clone(), &|_| to)).filter(|term| !known.contains(term)).collect()
        };
        if within_right {
            let added = implied(&terms.left, left, right, &terms.right);
            terms.right.extend(added);
        }
        if within_left {
            let added = implied(&terms.right, right, left, &terms.left);
            terms.left.extend(added);
        }
    }
}

/// Whether a term is `column = constant`.
fn is_constant_of(term: &Expr, column: usize) -> bool {
    let Expr::Call { function, args, .. } = term else { return false };
    let is_column = |arg: &Expr| matches!(arg, Expr::Column { index, .. } if *index == column);
    let is_constant = |arg: &Expr| matches!(arg, Expr::Literal { .. });
    function == "=" && args.iter().any(is_column) && args.iter().all(|arg| is_column(arg) || is_constant(arg))
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

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::plan::rules::push_filters;
    use crate::plan::testing::*;

    fn check(join_type: JoinType, condition: Expr, above: Option<Expr>, expected: Expect) {
        let schema = scalar_join(scan(), scan()).schema().clone();
        let join =
            LogicalPlan::Join { left: Box::new(scan()), right: Box::new(scan()), join_type, condition, schema, ttl: [None; 2] };
        let plan = above.into_iter().fold(join, filter);
        expected.assert_eq(&push_filters::apply(plan, &Session::new().cx()).unwrap().to_string());
    }

    fn is(column: usize, value: i32) -> Expr {
        compare(bigint(column), "=", int_literal(value))
    }

    fn equal() -> Expr {
        compare(bigint(1), "=", bigint(4))
    }

    #[test]
    fn of_an_inner_join_each_term_goes_to_its_side_and_constants_to_both() {
        check(
            JoinType::Inner,
            equal(),
            Some(is(1, 5)),
            expect![[r#"
            Join(joinType=[InnerJoin], where=[(price = price)])
            :- Filter(where=[(price = 5)])
            :  +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
            +- Filter(where=[(price = 5)])
               +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]],
        );
    }

    #[test]
    fn of_an_outer_join_the_kept_side_is_filtered_from_above_alone() {
        let condition = Expr::And(vec![equal(), is(0, 1), is(3, 2)]);
        check(
            JoinType::Left,
            condition,
            Some(is(0, 7)),
            expect![[r#"
            Join(joinType=[LeftOuterJoin], where=[((price = price) AND (item = 1))])
            :- Filter(where=[(item = 7)])
            :  +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
            +- Filter(where=[(item = 2)])
               +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]],
        );
    }

    #[test]
    fn an_outer_row_that_where_rejects_is_not_made() {
        check(
            JoinType::Full,
            equal(),
            Some(compare(bigint(3), ">", int_literal(1))),
            expect![[r#"
            Join(joinType=[RightOuterJoin], where=[(price = price)])
            :- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
            +- Filter(where=[(item > 1)])
               +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]],
        );
        check(
            JoinType::Left,
            equal(),
            Some(compare(bigint(3), ">", bigint(0))),
            expect![[r#"
            Join(joinType=[InnerJoin], where=[((price = price) AND (item > item))])
            :- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
            +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]],
        );
    }

    #[test]
    fn without_a_partner_in_any_case_a_left_term_stays_in_the_condition() {
        check(
            JoinType::Anti,
            Expr::And(vec![equal(), is(0, 1), is(3, 2)]),
            None,
            expect![[r#"
            Join(joinType=[LeftAntiJoin], where=[((price = price) AND (item = 1))])
            :- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
            +- Filter(where=[(item = 2)])
               +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]],
        );
    }
}
