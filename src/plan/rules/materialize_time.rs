//! Time attributes end at regular joins: what was a rowtime is a plain TIMESTAMP behind one, as in Flink.
//!
//! A regular join keeps its rows for ever and gives them in any order, so event time says nothing about them any more. What needs a
//! time attribute above it (a window table function) is refused here; what can do without (an interval join, a deduplication) sees
//! plain columns and becomes the general operator.

use std::sync::Arc;

use super::expressions::map_expressions;
use super::interval_join::is_interval_join;
use super::rule::bottom_up;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::Expr;
use crate::plan::expr_text::column_name;
use crate::plan::{LogicalPlan, PlannerContext};
use crate::types::{Schema, SchemaRef};

pub(super) fn apply(plan: LogicalPlan, _cx: &PlannerContext) -> Result<LogicalPlan> {
    if !has_join(&plan) {
        return Ok(plan);
    }
    bottom_up(plan, &mut |plan| Ok(ended_at_join(followed(plan)?)))
}

fn has_join(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join { .. }) || plan.inputs().into_iter().any(has_join)
}

/// A join with its output columns as plain ones, unless it is one that needs their times.
fn ended_at_join(plan: LogicalPlan) -> LogicalPlan {
    if is_interval_join(&plan) {
        return plan;
    }
    match plan {
        LogicalPlan::Join { left, right, join_type, condition, schema, ttl } if !(has_window(&left) && has_window(&right)) => {
            let schema = changed(schema, |_| true);
            LogicalPlan::Join { left, right, join_type, condition, schema, ttl }
        }
        other => other,
    }
}

/// Whether rows may carry a window: then a join can be one of windows, which keeps times.
fn has_window(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::WindowTableFunction { .. } | LogicalPlan::WindowAggregate { .. })
        || plan.inputs().into_iter().any(has_window)
}

/// The same columns, plain ones where `ends` says so.
fn changed(schema: SchemaRef, ends: impl Fn(usize) -> bool) -> SchemaRef {
    let ending = |(at, field): (usize, &crate::types::Field)| field.data_type.time.is_some() && ends(at);
    if !schema.fields.iter().enumerate().any(ending) {
        return schema;
    }
    let mut fields = schema.fields.clone();
    for (at, field) in fields.iter_mut().enumerate() {
        if ends(at) {
            field.data_type = field.data_type.clone().regular();
        }
    }
    Arc::new(Schema::new(fields))
}

/// A node over inputs whose columns may have become plain.
fn followed(plan: LogicalPlan) -> Result<LogicalPlan> {
    let input: Vec<bool> =
        plan.inputs().iter().flat_map(|input| &input.schema().fields).map(|field| field.data_type.time.is_none()).collect();
    // What is behind the columns of the input is the node's own.
    let ends = |at: usize| input.get(at).copied().unwrap_or(false);
    let plan = map_expressions(plan, &mut |expr| {
        Ok(expr
            .map_columns(&mut |index, data_type| Expr::column(index, if ends(index) { data_type.regular() } else { data_type })))
    })?;
    Ok(match plan {
        LogicalPlan::Project { input, exprs, schema } => {
            let schema = changed(schema, |at| exprs[at].data_type().time.is_none());
            LogicalPlan::Project { input, exprs, schema }
        }
        LogicalPlan::WindowTableFunction { input, window, schema } => {
            check_time(&input, window.time_column, "a window table function")?;
            LogicalPlan::WindowTableFunction { input, window, schema: changed(schema, ends) }
        }
        LogicalPlan::Aggregate { input, keys, aggregates, schema, ttl } => {
            let schema = changed(schema, |at| keys.get(at).is_some_and(|key| ends(*key)));
            LogicalPlan::Aggregate { input, keys, aggregates, schema, ttl }
        }
        // Ordered by what was a time, its results change: it needs none.
        LogicalPlan::Over { input, spec, schema } => LogicalPlan::Over { input, spec, schema: changed(schema, ends) },
        LogicalPlan::Rank { input, spec, schema } => LogicalPlan::Rank { input, spec, schema: changed(schema, ends) },
        LogicalPlan::Unnest { input, spec, schema } => {
            let schema = changed(schema, |at| spec.kept.get(at).is_some_and(|column| ends(*column)));
            LogicalPlan::Unnest { input, spec, schema }
        }
        LogicalPlan::Expand { input, spec, schema } => {
            let schema = changed(schema, |at| spec.columns.get(at).is_some_and(|column| ends(*column)));
            LogicalPlan::Expand { input, spec, schema }
        }
        LogicalPlan::ScalarJoin { left, right, schema, ttl } => {
            LogicalPlan::ScalarJoin { left, right, schema: changed(schema, ends), ttl }
        }
        LogicalPlan::Join { left, right, join_type, condition, schema, ttl } => {
            LogicalPlan::Join { left, right, join_type, condition, schema: changed(schema, ends), ttl }
        }
        LogicalPlan::Union { inputs, schema } => {
            let is_plain = |at: usize| inputs.iter().any(|input| input.schema().field(at).data_type.time.is_none());
            let schema = changed(schema, is_plain);
            LogicalPlan::Union { inputs, schema }
        }
        other => other,
    })
}

fn check_time(input: &LogicalPlan, column: usize, what: &str) -> Result<()> {
    let field = input.schema().field(column);
    if field.data_type.time.is_some() {
        return Ok(());
    }
    let name = column_name(column, input.schema());
    let message =
        format!("{what} requires a time attribute, but \"{name}\" is a plain {} behind a regular join", field.data_type);
    let error = Error::new(ErrorKind::TypeMismatch, message);
    Err(error.with_hint("make the windows before the join, or bound the times of both sides in its condition"))
}
