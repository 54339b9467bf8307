//! Nodes that take rows that stay, and what to do where theirs do not.

use super::{Changelog, producer_of_changes};
use crate::error::{Error, Result};
use crate::expr::AggregateCall;
use crate::plan::describe::describe;
use crate::plan::rules::is_deterministic;
use crate::plan::{LogicalPlan, PlannerContext};

/// Fails if an input changes rows that it gave, and the node cannot do with that.
pub(super) fn check(plan: &LogicalPlan, inputs: &[Changelog], cx: &PlannerContext) -> Result<()> {
    let changing = plan.inputs().into_iter().zip(inputs).find(|(_, log)| !log.changes.is_insert_only());
    let (Some((input, _)), Some((what, hint))) = (changing, needs_inserts(plan, cx)) else { return Ok(()) };
    let producer = describe(producer_of_changes(input, cx));
    Err(Error::unsupported(format!("{what} over the update and delete changes that {producer} produces")).with_hint(hint))
}

/// What it is in the node that takes inserts alone, and the remedy; none = it takes all.
fn needs_inserts(plan: &LogicalPlan, cx: &PlannerContext) -> Option<(String, &'static str)> {
    const JOIN_HINT: &str = "join inputs that only add rows: group by a window instead of all time";
    match plan {
        LogicalPlan::WindowJoin { .. } => Some(("window join".to_string(), JOIN_HINT)),
        LogicalPlan::IntervalJoin { .. } => Some(("interval join".to_string(), JOIN_HINT)),
        LogicalPlan::Unnest { spec, .. } if spec.is_call && !is_deterministic(&spec.collection, cx.functions) => Some((
            "a table function that can give other rows for the same arguments".to_string(),
            "the rows of a row that is taken back would not be found again: call it over rows that only come, or write its rows to a table",
        )),
        LogicalPlan::Aggregate { aggregates, .. } => growing_only(aggregates, cx),
        LogicalPlan::WindowAggregate { spec, .. } => growing_only(&spec.aggregates, cx),
        _ => None,
    }
}

fn growing_only(aggregates: &[AggregateCall], cx: &PlannerContext) -> Option<(String, &'static str)> {
    let cannot = |call: &&AggregateCall| {
        let function = cx.functions.aggregate(&call.function);
        function.is_some_and(|function| !function.can_retract(call))
    };
    let call = aggregates.iter().find(cannot)?;
    Some((
        format!("aggregate function {}, which cannot take rows back,", call.function),
        "give it a way to take rows back (RETRACT of its Accumulator), or aggregate rows that only come: group by a window instead of all time",
    ))
}
