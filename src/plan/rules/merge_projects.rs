//! Project over Project → one Project, where no work is done twice by it; a Project that changes nothing goes away.

use super::expressions::{can_substitute, is_identity, is_trivial, substitute};
use super::rule::bottom_up;
use crate::error::Result;
use crate::expr::{AggregateCall, Expr};
use crate::plan::{LogicalPlan, PlannerContext};
use crate::types::{Schema, SchemaRef};

pub(super) fn apply(plan: LogicalPlan, _cx: &PlannerContext) -> Result<LogicalPlan> {
    bottom_up(plan, &mut |plan| Ok(merged(plan)))
}

fn merged(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Project { input, exprs, schema } => match *input {
            LogicalPlan::Project { input, exprs: inner, .. } if can_merge(&exprs, &inner) => {
                let exprs = exprs.into_iter().map(|expr| substitute(expr, &inner)).collect();
                merged(LogicalPlan::Project { input, exprs, schema })
            }
            other if is_identity(&exprs, other.schema().len()) && *other.schema() == schema => other,
            other if is_identity(&exprs, other.schema().len()) && can_rename(&other, &schema) => renamed(other, schema),
            other => LogicalPlan::Project { input: Box::new(other), exprs, schema },
        },
        other => other,
    }
}

/// Whether the columns of a node are named by the node itself.
fn can_rename(plan: &LogicalPlan, schema: &Schema) -> bool {
    match plan {
        LogicalPlan::Aggregate { .. } | LogicalPlan::WindowAggregate { .. } => true,
        // A scan of columns of the same names: the types differ by their time attribute at most.
        LogicalPlan::Scan { schema: own, .. } => own.fields.iter().zip(&schema.fields).all(|(own, field)| own.name == field.name),
        LogicalPlan::Filter { input, .. } => can_rename(input, schema),
        _ => false,
    }
}

/// The same node with its columns named as in `schema`.
fn renamed(plan: LogicalPlan, schema: SchemaRef) -> LogicalPlan {
    let rename = |calls: &mut [AggregateCall], keys: usize| {
        calls.iter_mut().zip(&schema.fields[keys..]).for_each(|(call, field)| call.name.clone_from(&field.name));
    };
    match plan {
        LogicalPlan::Aggregate { input, keys, mut aggregates, ttl, .. } => {
            rename(&mut aggregates, keys.len());
            LogicalPlan::Aggregate { input, keys, aggregates, schema, ttl }
        }
        LogicalPlan::WindowAggregate { input, mut spec, .. } => {
            rename(&mut spec.aggregates, spec.keys.len());
            LogicalPlan::WindowAggregate { input, spec, schema }
        }
        LogicalPlan::Filter { input, predicate } => LogicalPlan::Filter { input: Box::new(renamed(*input, schema)), predicate },
        LogicalPlan::Scan { table, projection, metadata, computed, watermark, predicate, limit, .. } => {
            LogicalPlan::Scan { table, projection, metadata, computed, watermark, predicate, limit, schema }
        }
        other => other,
    }
}

/// Whether each of the inner expressions that is read more than once can be evaluated again for nothing. One that is read once
/// moves as it is, random ones included.
fn can_merge(outer: &[Expr], inner: &[Expr]) -> bool {
    let mut uses = vec![0; inner.len()];
    outer.iter().for_each(|expr| count_uses(expr, &mut uses));
    inner.iter().zip(uses).all(|(expr, uses)| uses <= 1 || is_trivial(expr))
        && outer.iter().all(|expr| can_substitute(expr, inner))
}

fn count_uses(expr: &Expr, uses: &mut [usize]) {
    match expr {
        Expr::Column { index, .. } => uses[*index] += 1,
        other => other.children().into_iter().for_each(|child| count_uses(child, uses)),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::plan::testing::*;

    fn doubled() -> LogicalPlan {
        project(scan(), vec![call("*", vec![bigint(1), int_literal(2)], bigint_type())], &["d"])
    }

    #[test]
    fn an_expression_used_once_moves_up() {
        let plan = project(doubled(), vec![call("+", vec![bigint(0), int_literal(1)], bigint_type())], &["e"]);
        expect![[r#"
            Project(select=[((price * 2) + 1) AS e])
            +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]]
        .assert_eq(&apply(plan, &Session::new().cx()).unwrap().to_string());
    }

    #[test]
    fn an_expression_used_twice_stays() {
        let plan = project(doubled(), vec![call("*", vec![bigint(0), bigint(0)], bigint_type())], &["e"]);
        assert_eq!(apply(plan.clone(), &Session::new().cx()).unwrap(), plan);
    }

    #[test]
    fn new_names_of_aggregates_are_taken_over() {
        let plan = project(aggregate(scan(), &[1], vec![sum(1, "EXPR$0")]), vec![bigint(0), bigint(1)], &["p", "total"]);
        expect![[r#"
            GroupAggregate(groupBy=[price], select=[price, SUM(price) AS total])
            +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]]
        .assert_eq(&apply(plan, &Session::new().cx()).unwrap().to_string());
    }

    #[test]
    fn a_projection_of_all_columns_goes_away() {
        assert_eq!(apply(columns(scan(), &[0, 1, 2]), &Session::new().cx()).unwrap(), scan());
        let renamed = project(scan(), vec![bigint(1)], &["p"]);
        assert_eq!(apply(renamed.clone(), &Session::new().cx()).unwrap(), renamed);
    }
}
