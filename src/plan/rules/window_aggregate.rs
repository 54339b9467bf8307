//! Aggregate by window_start and window_end over a window table function → WindowAggregate.
//!
//! Where filters and projections between the two leave the window alone, the aggregate assigns it itself, by slices, and the table
//! function goes away (`WindowSource::Assigned`); otherwise the rows keep the window that they carry (`Attached`).
//! An aggregate whose accumulators cannot be merged gets rows that carry their window too, where windows share rows. A grouping
//! that names only one of the two bounds stays a plain GroupAggregate, as in Flink; so does one over sessions by other keys than theirs.

use std::sync::Arc;

use super::rule::bottom_up;
use super::{rank, window_join};
use crate::error::{Error, Result};
use crate::expr::{AggregateCall, Expr};
use crate::plan::emit::session_strategy;
use crate::plan::window_trace::{WindowTrace, trace};
use crate::plan::{LogicalPlan, PlannerContext};
use crate::stream_graph::{EmitStrategy, ExpandSpec, WindowAggregateSpec, WindowKind, WindowProperty, WindowSource, WindowSpec};
use crate::types::{Field, Schema, SchemaRef};

/// Window joins and ranks of windows are made in the same pass, since each can stand on the other.
pub(super) fn apply(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    bottom_up(plan, &mut |plan| window_join::lower(rank::of_window(lower(plan, cx)?), cx))
}

fn lower(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    let LogicalPlan::Aggregate { input, keys, aggregates, schema, ttl } = plan else {
        return Ok(plan);
    };
    let window = trace(&input).filter(|window| {
        let grouped_by = |property| keys.iter().any(|key| window.columns[*key] == Some(property));
        let plain: Vec<usize> = keys.iter().copied().filter(|key| window.columns[*key].is_none()).collect();
        grouped_by(WindowProperty::Start) && grouped_by(WindowProperty::End) && window.is_shared_by(&plain)
    });
    let Some(window) = window else {
        return Ok(LogicalPlan::Aggregate { input, keys, aggregates, schema, ttl });
    };
    let emit = match window.emit {
        Some(hinted) => Some(hinted),
        None => session_strategy(cx.configuration, window.time_type.is_proctime())?,
    };
    let grouping = Grouping { emit, ..Grouping::new(keys, aggregates, schema, &window) };
    let unmergeable = grouping.aggregates.iter().find(|call| shares_rows(&window.kind) && !can_merge(call, cx));
    let reads_window = grouping.aggregates.iter().flat_map(columns_of).any(|column| window.columns[column].is_some());
    match pull_up(&input).filter(|_| !reads_window && unmergeable.is_none()) {
        Some(pulled) => Ok(grouping.over(pulled.plan, WindowSource::Assigned(pulled.window), &|column| {
            pulled.columns[column].expect("only window columns are left out, and none of them is read")
        })),
        None if emit.is_some() && window.kind.is_session() => {
            if let Some(call) = unmergeable {
                let what = format!(
                    "early and late firing of sessions with aggregate function {}, which cannot be merged,",
                    call.function
                );
                return Err(
                    Error::unsupported(what).with_hint("sessions become one as rows come: give it MERGE of its Accumulator")
                );
            }
            Err(Error::unsupported("early and late firing of an aggregation over rows that carry their session")
                .with_hint("group by the session where it is made, without a filter on its bounds"))
        }
        None => {
            let bound = |property| window.position(property).expect("both bounds are group keys");
            let source = WindowSource::Attached {
                start: bound(WindowProperty::Start),
                end: bound(WindowProperty::End),
                time_type: window.time_type.clone(),
            };
            Ok(grouping.over(*input, source, &|column| column))
        }
    }
}

/// Whether windows of the kind are made of parts that are merged: other ones keep what is of one window.
fn shares_rows(kind: &WindowKind) -> bool {
    !matches!(kind, WindowKind::Tumble { .. })
}

fn can_merge(call: &AggregateCall, cx: &PlannerContext) -> bool {
    cx.functions.aggregate(&call.function).is_none_or(|function| function.can_merge(call))
}

fn columns_of(call: &AggregateCall) -> impl Iterator<Item = usize> + '_ {
    call.args.iter().copied().chain(call.filter)
}

/// What an Aggregate groups by, taken apart into plain keys and window properties.
struct Grouping {
    plain_keys: Vec<usize>,
    properties: Vec<WindowProperty>,
    aggregates: Vec<AggregateCall>,
    emit: Option<EmitStrategy>,
    /// For each output column of the Aggregate the column of the WindowAggregate.
    order: Vec<usize>,
    schema: SchemaRef,
}

impl Grouping {
    fn new(keys: Vec<usize>, aggregates: Vec<AggregateCall>, schema: SchemaRef, window: &WindowTrace) -> Self {
        let plain_keys: Vec<usize> = keys.iter().copied().filter(|key| window.columns[*key].is_none()).collect();
        let mut properties: Vec<WindowProperty> = Vec::new();
        let first_property = plain_keys.len() + aggregates.len();
        let mut order = Vec::with_capacity(schema.len());
        let mut next_plain = 0..;
        for key in &keys {
            order.push(match window.columns[*key] {
                None => next_plain.next().expect("an endless range"),
                Some(property) => {
                    let known = properties.iter().position(|known| *known == property);
                    first_property
                        + known.unwrap_or_else(|| {
                            properties.push(property);
                            properties.len() - 1
                        })
                }
            });
        }
        order.extend((0..aggregates.len()).map(|i| plain_keys.len() + i));
        Grouping { plain_keys, properties, aggregates, emit: None, order, schema }
    }

    /// The WindowAggregate over `input`, whose columns are found by `moved`, with the columns of the Aggregate.
    fn over(self, input: LogicalPlan, window: WindowSource, moved: &dyn Fn(usize) -> usize) -> LogicalPlan {
        let aggregates = self.aggregates.into_iter().map(|call| AggregateCall {
            args: call.args.iter().map(|column| moved(*column)).collect(),
            filter: call.filter.map(moved),
            ..call
        });
        let width = self.plain_keys.len() + aggregates.len() + self.properties.len();
        let spec = WindowAggregateSpec {
            window,
            keys: self.plain_keys.iter().map(|key| moved(*key)).collect(),
            aggregates: aggregates.collect(),
            properties: self.properties,
            input_retracts: false,
            emit: self.emit,
            emit_update_before: false,
        };
        let field_of = |column: usize| {
            let position = self.order.iter().position(|at| *at == column).expect("every column comes from an output column");
            self.schema.field(position).clone()
        };
        let schema = Arc::new(Schema::new((0..width).map(field_of).collect()));
        let exprs: Vec<Expr> =
            self.order.iter().zip(&self.schema.fields).map(|(at, field)| Expr::column(*at, field.data_type.clone())).collect();
        let in_order = self.order.iter().copied().eq(0..width);
        let aggregate = LogicalPlan::WindowAggregate { input: Box::new(input), spec, schema };
        if in_order {
            return aggregate;
        }
        LogicalPlan::Project { input: Box::new(aggregate), exprs, schema: self.schema }
    }
}

/// A plan below whose window table function was taken away.
struct PulledUp {
    plan: LogicalPlan,
    /// For each column of the former plan its place in this one; none for columns of the window.
    columns: Vec<Option<usize>>,
    /// The window, its time column being one of this plan.
    window: WindowSpec,
}

/// Takes the window table function out of a plan whose filters and projections leave the window as it is.
fn pull_up(plan: &LogicalPlan) -> Option<PulledUp> {
    match plan {
        LogicalPlan::WindowTableFunction { input, window, schema } => {
            let columns = (0..schema.len()).map(|column| Some(column).filter(|column| *column < input.schema().len())).collect();
            Some(PulledUp { plan: (**input).clone(), columns, window: window.clone() })
        }
        LogicalPlan::Filter { input, predicate } => {
            if trace(input)?.is_read_by(predicate) {
                return None;
            }
            let pulled = pull_up(input)?;
            let predicate = pulled.moved(predicate);
            Some(PulledUp { plan: LogicalPlan::Filter { input: Box::new(pulled.plan), predicate }, ..pulled })
        }
        LogicalPlan::Project { input, exprs, schema } => pull_up_project(input, exprs, schema),
        LogicalPlan::Expand { input, spec, schema } => pull_up_expand(input, spec, schema),
        _ => None,
    }
}

fn pull_up_project(input: &LogicalPlan, exprs: &[Expr], schema: &SchemaRef) -> Option<PulledUp> {
    let window = trace(input)?;
    let pulled = pull_up(input)?;
    let (mut kept, mut fields, mut columns) = (Vec::new(), Vec::new(), Vec::new());
    for (expr, field) in exprs.iter().zip(&schema.fields) {
        match expr {
            Expr::Column { index, .. } if window.columns[*index].is_some() => columns.push(None),
            _ if window.is_read_by(expr) => return None,
            _ => {
                columns.push(Some(kept.len()));
                kept.push(pulled.moved(expr));
                fields.push(field.clone());
            }
        }
    }
    let mut place = |column: usize| {
        let is_it = |expr: &Expr| matches!(expr, Expr::Column { index, .. } if *index == column);
        kept.iter().position(is_it).unwrap_or_else(|| {
            let field = pulled.plan.schema().field(column);
            kept.push(Expr::column(column, field.data_type.clone()));
            fields.push(Field::clone(field));
            kept.len() - 1
        })
    };
    let partition_keys = pulled.window.partition_keys.iter().map(|key| place(*key)).collect();
    let time_column = place(pulled.window.time_column);
    let schema = Arc::new(Schema::new(fields));
    let window = WindowSpec { time_column, partition_keys, ..pulled.window };
    Some(PulledUp { plan: LogicalPlan::Project { input: Box::new(pulled.plan), exprs: kept, schema }, columns, window })
}

/// Every copy of a row is in its windows: the columns of the window, NULL in none of them, are left out, and the time comes along.
fn pull_up_expand(input: &LogicalPlan, spec: &ExpandSpec, schema: &SchemaRef) -> Option<PulledUp> {
    let window = trace(input)?;
    let pulled = pull_up(input)?;
    let is_window = |at: &usize| window.columns[spec.columns[*at]].is_some();
    let (of_window, kept): (Vec<usize>, Vec<usize>) = (0..spec.columns.len()).partition(is_window);
    if of_window.iter().any(|at| spec.is_nulled(*at)) {
        return None;
    }
    let mut fields: Vec<Field> = kept.iter().map(|at| schema.field(*at).clone()).collect();
    let mut expanded = spec.project(&kept, &|column| pulled.columns[column].expect("columns of the window are left out"));
    let is_time = |at: &usize| expanded.columns[*at] == pulled.window.time_column && !expanded.is_nulled(*at);
    let time_column = (0..kept.len()).find(is_time).unwrap_or_else(|| {
        expanded.columns.push(pulled.window.time_column);
        fields.push(pulled.plan.schema().field(pulled.window.time_column).clone());
        expanded.columns.len() - 1
    });
    fields.push(schema.field(spec.columns.len()).clone());
    let mut columns = vec![None; schema.len()];
    kept.iter().enumerate().for_each(|(position, at)| columns[*at] = Some(position));
    columns[spec.columns.len()] = Some(expanded.columns.len());
    let schema = Arc::new(Schema::new(fields));
    let window = WindowSpec { time_column, ..pulled.window };
    Some(PulledUp { plan: LogicalPlan::Expand { input: Box::new(pulled.plan), spec: expanded, schema }, columns, window })
}

impl PulledUp {
    /// An expression over the former columns, none of them the window's, over the columns of this plan.
    fn moved(&self, expr: &Expr) -> Expr {
        expr.clone().map_columns(&mut |index, data_type| {
            Expr::column(self.columns[index].expect("the expression reads no column of the window"), data_type)
        })
    }
}
