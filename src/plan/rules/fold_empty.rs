//! What has no rows, as the words of a query show, is an empty table: no row of it is read, and what is made of it is empty as well.
//!
//! An aggregation without keys has its one row then, `COUNT` 0 and the others NULL, as in Flink: there a query over a table that merely
//! turns out to be empty gives none, but one that cannot have rows gives it.

use super::expressions::conjuncts;
use super::never_true::is_never_true;
use super::rule::bottom_up;
use crate::error::Result;
use crate::expr::{AggregateCall, Expr};
use crate::plan::{LogicalPlan, PlannerContext};
use crate::stream_graph::JoinType;
use crate::types::{SchemaRef, Value};

/// The functions for which Flink knows what they give without rows.
const COUNTS: [&str; 2] = ["COUNT", "APPROX_COUNT_DISTINCT"];
const OTHERS: [&str; 4] = ["SUM", "MIN", "MAX", "AVG"];

pub(super) fn apply(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    bottom_up(plan, &mut |plan| Ok(folded(plan, cx)))
}

fn folded(plan: LogicalPlan, cx: &PlannerContext) -> LogicalPlan {
    match plan {
        LogicalPlan::Filter { input, predicate } => {
            let is_empty = is_empty(&input) || is_never_true(&conjuncts(predicate.clone()), cx);
            if is_empty { empty(input.schema()) } else { LogicalPlan::Filter { input, predicate } }
        }
        LogicalPlan::Aggregate { ref input, ref keys, ref aggregates, ref schema, .. } if is_empty(input) => {
            if !keys.is_empty() {
                return empty(schema);
            }
            match aggregates.iter().map(without_rows).collect::<Option<Vec<Value>>>() {
                Some(row) if !row.is_empty() => LogicalPlan::Values { rows: vec![row], schema: schema.clone() },
                _ => plan,
            }
        }
        LogicalPlan::Sort { ref input, fetch, .. } if fetch == Some(0) || is_empty(input) => empty(input.schema()),
        LogicalPlan::Union { inputs, schema } => {
            let mut kept: Vec<LogicalPlan> = inputs.into_iter().filter(|input| !is_empty(input)).collect();
            match kept.len() {
                0 => empty(&schema),
                1 if *kept[0].schema() == schema => kept.remove(0),
                _ => LogicalPlan::Union { inputs: kept, schema },
            }
        }
        LogicalPlan::Join { left, right, join_type, condition, schema, ttl } => {
            let never_meet = is_empty(&left) || is_empty(&right) || is_never_true(&conjuncts(condition.clone()), cx);
            match join_type {
                JoinType::Inner | JoinType::Semi if never_meet => empty(&schema),
                JoinType::Left | JoinType::Anti if is_empty(&left) => empty(&schema),
                JoinType::Right if is_empty(&right) => empty(&schema),
                JoinType::Full if is_empty(&left) && is_empty(&right) => empty(&schema),
                JoinType::Anti if never_meet => *left,
                JoinType::Left if never_meet => padded(*left, &schema, 0),
                JoinType::Full if is_empty(&right) => padded(*left, &schema, 0),
                JoinType::Right if never_meet => with_padding_before(*right, &schema),
                JoinType::Full if is_empty(&left) => with_padding_before(*right, &schema),
                _ => LogicalPlan::Join { left, right, join_type, condition, schema, ttl },
            }
        }
        LogicalPlan::ScalarJoin { ref left, ref schema, .. } if is_empty(left) => empty(schema),
        LogicalPlan::ScalarJoin { left, right, schema, .. } if is_empty(&right) => padded(*left, &schema, 0),
        LogicalPlan::Project { ref input, .. }
        | LogicalPlan::Unnest { ref input, .. }
        | LogicalPlan::Expand { ref input, .. }
        | LogicalPlan::Over { ref input, .. }
        | LogicalPlan::Rank { ref input, .. }
            if is_empty(input) =>
        {
            empty(plan.schema())
        }
        other => other,
    }
}

fn is_empty(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Values { rows, .. } if rows.is_empty())
}

fn empty(schema: &SchemaRef) -> LogicalPlan {
    LogicalPlan::Values { rows: Vec::new(), schema: schema.clone() }
}

/// What a call gives where there are no rows; none = nobody says.
fn without_rows(call: &AggregateCall) -> Option<Value> {
    match call.function.as_str() {
        count if COUNTS.contains(&count) => Some(Value::BigInt(0)),
        other if OTHERS.contains(&other) => Some(Value::Null),
        _ => None,
    }
}

/// A plan whose columns stand from `first` on, NULLs in the other columns.
fn padded(plan: LogicalPlan, schema: &SchemaRef, first: usize) -> LogicalPlan {
    let given = plan.schema().clone();
    let exprs = schema.fields.iter().enumerate().map(|(at, field)| match at.checked_sub(first).filter(|at| *at < given.len()) {
        Some(at) => Expr::column(at, given.field(at).data_type.clone()),
        None => Expr::literal(Value::Null, field.data_type.clone()),
    });
    let exprs = exprs.collect();
    LogicalPlan::Project { input: Box::new(plan), exprs, schema: schema.clone() }
}

fn with_padding_before(plan: LogicalPlan, schema: &SchemaRef) -> LogicalPlan {
    let first = schema.len() - plan.schema().len();
    padded(plan, schema, first)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::plan::testing::*;

    fn none() -> LogicalPlan {
        empty(scan().schema())
    }

    fn folded_text(plan: LogicalPlan) -> String {
        apply(plan, &Session::new().cx()).unwrap().to_string()
    }

    #[test]
    fn counts_of_nothing_are_a_row() {
        expect![[r#"
            Values(tuples=[[{ 0, NULL }]])
        "#]]
        .assert_eq(&folded_text(aggregate(none(), &[], vec![count("n"), sum(1, "s")])));
        expect![[r#"
            Values(tuples=[[]])
        "#]]
        .assert_eq(&folded_text(aggregate(filter(scan(), compare(bigint(1), "<>", bigint(1))), &[0], vec![count("n")])));
    }

    #[test]
    fn a_union_leaves_out_what_is_empty() {
        assert_eq!(apply(union(vec![none(), scan(), none()]), &Session::new().cx()).unwrap(), scan());
        assert_eq!(folded_text(sort(union(vec![none(), none()]), &[0], 0, Some(3))), "Values(tuples=[[]])\n");
    }

    #[test]
    fn beside_an_empty_subquery_stands_null() {
        let one = columns(none(), &[1]);
        expect![[r#"
            Project(select=[item, price, ts, NULL AS price])
            +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]]
        .assert_eq(&folded_text(scalar_join(scan(), one)));
    }
}
