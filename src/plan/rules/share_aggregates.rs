//! Equal aggregate calls of one GROUP BY are computed once.

use std::sync::Arc;

use super::rule::bottom_up;
use crate::error::Result;
use crate::expr::{AggregateCall, Expr};
use crate::plan::{LogicalPlan, PlannerContext};
use crate::types::{Field, Schema};

pub(super) fn apply(plan: LogicalPlan, _cx: &PlannerContext) -> Result<LogicalPlan> {
    bottom_up(plan, &mut |plan| Ok(shared(plan)))
}

fn shared(plan: LogicalPlan) -> LogicalPlan {
    let LogicalPlan::Aggregate { input, keys, aggregates, schema, ttl } = plan else {
        return plan;
    };
    let mut kept: Vec<AggregateCall> = Vec::with_capacity(aggregates.len());
    let mut places = Vec::with_capacity(aggregates.len());
    for call in &aggregates {
        places.push(kept.iter().position(|known| is_same_call(known, call)).unwrap_or_else(|| {
            kept.push(call.clone());
            kept.len() - 1
        }));
    }
    if kept.len() == aggregates.len() {
        return LogicalPlan::Aggregate { input, keys, aggregates, schema, ttl };
    }
    let mut fields: Vec<Field> = schema.fields[..keys.len()].to_vec();
    fields.extend(kept.iter().map(|call| Field::new(&call.name, call.data_type.clone())));
    let columns = (0..keys.len()).chain(places.into_iter().map(|place| keys.len() + place));
    let exprs = columns.zip(&schema.fields).map(|(at, field)| Expr::column(at, field.data_type.clone())).collect();
    let aggregate = LogicalPlan::Aggregate { input, keys, aggregates: kept, schema: Arc::new(Schema::new(fields)), ttl };
    LogicalPlan::Project { input: Box::new(aggregate), exprs, schema }
}

/// Whether two calls compute the same, whatever they are called.
pub fn is_same_call(one: &AggregateCall, other: &AggregateCall) -> bool {
    let AggregateCall { function, args, arg_types, distinct, order, filter, data_type, name: _ } = one;
    *function == other.function
        && *args == other.args
        && *arg_types == other.arg_types
        && *distinct == other.distinct
        && *order == other.order
        && *filter == other.filter
        && *data_type == other.data_type
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::plan::testing::*;

    #[test]
    fn equal_calls_are_one() {
        let plan = aggregate(scan(), &[0], vec![count("a"), sum(1, "b"), count("c")]);
        expect![[r#"
            Project(select=[item, a, b, a AS c])
            +- GroupAggregate(groupBy=[item], select=[item, COUNT(*) AS a, SUM(price) AS b])
               +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]]
        .assert_eq(&apply(plan, &Session::new().cx()).unwrap().to_string());
    }

    #[test]
    fn a_filter_makes_another_call() {
        let filtered = AggregateCall { filter: Some(2), ..count("b") };
        let plan = aggregate(scan(), &[0], vec![count("a"), filtered]);
        assert_eq!(apply(plan.clone(), &Session::new().cx()).unwrap(), plan);
    }
}
