//! What must hold of every plan: columns exist and have the types that expressions expect of them.
//!
//! Checked after each rule in debug builds and once before a graph is made, so that a broken rule is an internal error here and
//! never a wrong answer later.

use super::LogicalPlan;
use super::describe::{concat, describe};
use super::rank;
use crate::error::{Error, Result};
use crate::expr::{AggregateCall, Expr};
use crate::stream_graph::{JoinKey, WindowSource};
use crate::types::Schema;

/// Checks a whole plan.
pub fn validate(plan: &LogicalPlan) -> Result<()> {
    plan.inputs().into_iter().try_for_each(validate)?;
    check_node(plan).map_err(|problem| Error::internal(format!("broken plan: {problem} in {}", describe(plan))))
}

type Check = Result<(), String>;

fn check_node(plan: &LogicalPlan) -> Check {
    match plan {
        LogicalPlan::Scan { table, projection, metadata, computed, watermark, predicate, schema, .. } => {
            check_columns(projection, table.physical().len())?;
            let produced = table.produced(projection, metadata);
            match computed {
                Some(exprs) => check_projection(exprs, schema, &produced)?,
                None => check_width(produced.len(), schema.len())?,
            }
            if let Some(watermark) = watermark {
                check_columns(&[watermark.rowtime], schema.len())?;
                check_expr(&watermark.expr, schema)?;
            }
            predicate.iter().try_for_each(|predicate| check_expr(predicate, schema))
        }
        LogicalPlan::Values { rows, schema } => rows.iter().try_for_each(|row| check_width(row.len(), schema.len())),
        LogicalPlan::Project { input, exprs, schema } => check_projection(exprs, schema, input.schema()),
        LogicalPlan::Filter { input, predicate } => check_expr(predicate, input.schema()),
        LogicalPlan::WatermarkAssigner { input, watermark, schema } => {
            check_width(input.schema().len(), schema.len())?;
            check_columns(&[watermark.rowtime], schema.len())?;
            check_expr(&watermark.expr, input.schema())
        }
        LogicalPlan::WindowTableFunction { input, window, schema } => {
            check_width(input.schema().len() + 3, schema.len())?;
            check_columns(&window.columns().collect::<Vec<_>>(), input.schema().len())
        }
        LogicalPlan::Unnest { input, spec, schema } => {
            check_expr(&spec.collection, input.schema())?;
            let all = spec.all_columns(input.schema());
            check_columns(&spec.kept, all.len())?;
            spec.condition.iter().try_for_each(|condition| check_expr(condition, &all))?;
            check_types(&all.project(&spec.kept), schema)
        }
        LogicalPlan::Expand { input, spec, schema } => {
            check_width(spec.columns.len() + 1, schema.len())?;
            check_columns(&spec.columns, input.schema().len())
        }
        LogicalPlan::Aggregate { input, keys, aggregates, schema, ttl: _ } => {
            check_width(keys.len() + aggregates.len(), schema.len())?;
            check_columns(keys, input.schema().len())?;
            check_calls(aggregates, input.schema())
        }
        LogicalPlan::WindowAggregate { input, spec, schema } => {
            check_width(spec.keys.len() + spec.aggregates.len() + spec.properties.len(), schema.len())?;
            let window = match &spec.window {
                WindowSource::Assigned(window) => window.columns().collect(),
                WindowSource::Attached { start, end, .. } => vec![*start, *end],
            };
            check_columns(&window, input.schema().len())?;
            check_columns(&spec.keys, input.schema().len())?;
            check_calls(&spec.aggregates, input.schema())
        }
        LogicalPlan::Over { input, spec, schema } => {
            let width = input.schema().len();
            check_width(width + spec.calls.len(), schema.len())?;
            check_columns(&spec.partition_keys, width)?;
            check_columns(&spec.order_keys.iter().map(|key| key.column).collect::<Vec<_>>(), width)?;
            spec.calls.iter().try_for_each(|over| check_calls(std::slice::from_ref(&over.call), input.schema()))
        }
        LogicalPlan::Rank { input, spec, schema } => {
            let width = input.schema().len();
            check_width(width + usize::from(spec.output_number), schema.len())?;
            check_columns(&rank::read_columns(spec).collect::<Vec<_>>(), width)
        }
        LogicalPlan::Join { left, right, condition, .. } => check_expr(condition, &concat(left.schema(), right.schema())),
        LogicalPlan::WindowJoin { left, right, spec, schema } => {
            check_columns(&[spec.left_window.start, spec.left_window.end], left.schema().len())?;
            check_columns(&[spec.right_window.start, spec.right_window.end], right.schema().len())?;
            check_join([left.schema(), right.schema()], &spec.keys, spec.residual.as_ref(), &spec.output, schema)
        }
        LogicalPlan::IntervalJoin { left, right, spec, schema } => {
            check_columns(&[spec.left_time], left.schema().len())?;
            check_columns(&[spec.right_time], right.schema().len())?;
            check_join([left.schema(), right.schema()], &spec.keys, spec.residual.as_ref(), &spec.output, schema)
        }
        LogicalPlan::RegularJoin { left, right, spec, schema } => {
            check_join([left.schema(), right.schema()], &spec.keys, spec.residual.as_ref(), &spec.output, schema)
        }
        LogicalPlan::ScalarJoin { left, right, schema, ttl: _ } => {
            check_width(left.schema().len() + right.schema().len(), schema.len())
        }
        LogicalPlan::Union { inputs, schema } => inputs.iter().try_for_each(|input| check_types(input.schema(), schema)),
        LogicalPlan::Sort { input, keys, .. } => {
            check_columns(&keys.iter().map(|key| key.column).collect::<Vec<_>>(), input.schema().len())
        }
        LogicalPlan::ChangelogNormalize { input, keys, ttl: _ } => check_columns(keys, input.schema().len()),
        LogicalPlan::Sink { input, schema, .. } => check_types(input.schema(), schema),
    }
}

fn check_width(found: usize, expected: usize) -> Check {
    if found == expected { Ok(()) } else { Err(format!("{found} columns instead of {expected}")) }
}

fn check_columns(columns: &[usize], width: usize) -> Check {
    match columns.iter().find(|column| **column >= width) {
        Some(column) => Err(format!("column {column} of {width}")),
        None => Ok(()),
    }
}

fn check_calls(calls: &[AggregateCall], input: &Schema) -> Check {
    calls.iter().try_for_each(|call| {
        check_columns(&call.args, input.len())?;
        check_columns(call.filter.as_slice(), input.len())
    })
}

fn check_join(inputs: [&Schema; 2], keys: &[JoinKey], residual: Option<&Expr>, output: &[usize], schema: &Schema) -> Check {
    let [left, right] = inputs;
    for key in keys {
        check_columns(&[key.left], left.len())?;
        check_columns(&[key.right], right.len())?;
    }
    let both = concat(left, right);
    residual.iter().try_for_each(|residual| check_expr(residual, &both))?;
    check_columns(output, both.len())?;
    check_types(&both.project(output), schema)
}

fn check_types(found: &Schema, expected: &Schema) -> Check {
    check_width(found.len(), expected.len())?;
    let differs =
        found.fields.iter().zip(&expected.fields).find(|(found, expected)| found.data_type.kind != expected.data_type.kind);
    match differs {
        Some((found, expected)) => Err(format!("\"{}\" is {} instead of {}", found.name, found.data_type, expected.data_type)),
        None => Ok(()),
    }
}

fn check_projection(exprs: &[Expr], schema: &Schema, input: &Schema) -> Check {
    check_width(exprs.len(), schema.len())?;
    exprs.iter().zip(&schema.fields).try_for_each(|(expr, field)| {
        check_expr(expr, input)?;
        let data_type = expr.data_type();
        if data_type.kind == field.data_type.kind {
            return Ok(());
        }
        Err(format!("\"{}\" is {data_type} instead of {}", field.name, field.data_type))
    })
}

fn check_expr(expr: &Expr, input: &Schema) -> Check {
    if let Expr::Column { index, data_type } = expr {
        check_columns(&[*index], input.len())?;
        let field = input.field(*index);
        if field.data_type.kind != data_type.kind {
            return Err(format!("\"{}\" is read as {data_type} but is {}", field.name, field.data_type));
        }
    }
    expr.children().into_iter().try_for_each(|child| check_expr(child, input))
}
