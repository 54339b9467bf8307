//! Columns that nothing reads are not read from tables, not carried along and not computed; aggregates that nothing reads likewise.
//!
//! Top-down: each node is told which of its output columns are needed, and says where they are now. A node may give more than it
//! was asked for (a filter needs its own columns too); a projection then cuts the rest off where rows could travel.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::expressions::shifted;
use crate::error::Result;
use crate::expr::{AggregateCall, Expr, SortKey};
use crate::plan::{LogicalPlan, PlannerContext, rank};
use crate::stream_graph::{
    OverCall, OverFrame, OverSpec, RankSpec, UnnestSpec, WatermarkSpec, WindowAggregateSpec, WindowProperty, WindowSource,
    WindowSpec,
};
use crate::types::{DataType, Field, Schema, TypeKind, Value};

mod joins;

pub(super) fn apply(plan: LogicalPlan, _cx: &PlannerContext) -> Result<LogicalPlan> {
    if let LogicalPlan::Sink { input, table, schema, on_conflict, name } = plan {
        let input = Box::new(prune_all(*input));
        return Ok(LogicalPlan::Sink { input, table, schema, on_conflict, name });
    }
    Ok(prune_all(plan))
}

/// Output columns of a node.
type Columns = BTreeSet<usize>;

/// A pruned node, and where each former column is: none where it is gone.
struct Pruned {
    plan: LogicalPlan,
    places: Vec<Option<usize>>,
}

impl Pruned {
    fn unchanged(plan: LogicalPlan) -> Self {
        let places = (0..plan.schema().len()).map(Some).collect();
        Pruned { plan, places }
    }

    fn place(&self, column: usize) -> usize {
        self.places[column].expect("a column that is needed is kept")
    }

    fn moved(&self, expr: Expr) -> Expr {
        shifted(expr, &|column| self.place(column))
    }

    fn moved_all(&self, columns: &[usize]) -> Vec<usize> {
        columns.iter().map(|column| self.place(*column)).collect()
    }

    fn moved_calls(&self, calls: impl IntoIterator<Item = AggregateCall>) -> Vec<AggregateCall> {
        let moved = |call: AggregateCall| AggregateCall {
            args: self.moved_all(&call.args),
            filter: call.filter.map(|filter| self.place(filter)),
            ..call
        };
        calls.into_iter().map(moved).collect()
    }

    /// Exactly these columns, in their order.
    fn exactly(self, columns: &Columns) -> Self {
        let places: Vec<usize> = columns.iter().map(|column| self.place(*column)).collect();
        let mut positions = vec![None; self.places.len()];
        columns.iter().enumerate().for_each(|(position, column)| positions[*column] = Some(position));
        if places.iter().copied().eq(0..self.plan.schema().len()) {
            return Pruned { plan: self.plan, places: positions };
        }
        let schema = self.plan.schema().project(&places);
        let exprs = places.iter().zip(&schema.fields).map(|(at, field)| Expr::column(*at, field.data_type.clone())).collect();
        Pruned { plan: LogicalPlan::Project { input: Box::new(self.plan), exprs, schema: Arc::new(schema) }, places: positions }
    }
}

/// Where kept columns of a node of this width are.
fn places(kept: &[usize], width: usize) -> Vec<Option<usize>> {
    let mut places = vec![None; width];
    kept.iter().enumerate().for_each(|(position, column)| places[*column] = Some(position));
    places
}

fn prune_all(plan: LogicalPlan) -> LogicalPlan {
    let all = (0..plan.schema().len()).collect();
    prune(plan, &all).exactly(&all).plan
}

// tidy: long because it is one arm for each node.
fn prune(plan: LogicalPlan, needed: &Columns) -> Pruned {
    let width = plan.schema().len();
    match plan {
        LogicalPlan::Scan { .. } => prune_scan(plan, needed),
        LogicalPlan::Values { rows, schema } => {
            let kept: Vec<usize> = needed.iter().copied().collect();
            let rows = rows.into_iter().map(|row| kept.iter().map(|column| row[*column].clone()).collect()).collect();
            let schema = Arc::new(schema.project(&kept));
            Pruned { plan: LogicalPlan::Values { rows, schema }, places: places(&kept, width) }
        }
        LogicalPlan::Project { input, exprs, schema } => {
            let kept: Vec<usize> = needed.iter().copied().collect();
            let read = kept.iter().flat_map(|column| exprs[*column].columns()).collect();
            let input = prune(*input, &read);
            let exprs = kept.iter().map(|column| input.moved(exprs[*column].clone())).collect();
            let schema = Arc::new(schema.project(&kept));
            let plan = LogicalPlan::Project { input: Box::new(input.plan), exprs, schema };
            Pruned { plan, places: places(&kept, width) }
        }
        LogicalPlan::Filter { input, predicate } => {
            let read = needed.iter().copied().chain(predicate.columns()).collect();
            let input = prune(*input, &read);
            let predicate = input.moved(predicate);
            let places = input.places;
            Pruned { plan: LogicalPlan::Filter { input: Box::new(input.plan), predicate }, places }.exactly(needed)
        }
        LogicalPlan::WatermarkAssigner { input, watermark, schema } => {
            let read = needed.iter().copied().chain(watermark.expr.columns()).chain([watermark.rowtime]).collect();
            let input = prune(*input, &read).exactly(&read);
            let watermark = WatermarkSpec {
                rowtime: input.place(watermark.rowtime),
                expr: input.moved(watermark.expr),
                timing: watermark.timing.clone(),
            };
            let schema = Arc::new(schema.project(&read.iter().copied().collect::<Vec<_>>()));
            let places = input.places;
            Pruned { plan: LogicalPlan::WatermarkAssigner { input: Box::new(input.plan), watermark, schema }, places }
                .exactly(needed)
        }
        LogicalPlan::WindowTableFunction { input, window, schema } => prune_window_function(*input, window, &schema, needed),
        LogicalPlan::Aggregate { input, keys, aggregates, schema, ttl } => {
            let (kept, aggregates) = kept_aggregates(aggregates, keys.len(), needed, keys.is_empty());
            let read = keys.iter().copied().chain(aggregates.iter().flat_map(call_columns)).collect();
            let input = prune(*input, &read);
            let aggregates = input.moved_calls(aggregates);
            let keys = input.moved_all(&keys);
            let schema = Arc::new(schema.project(&kept));
            let plan = LogicalPlan::Aggregate { input: Box::new(input.plan), keys, aggregates, schema, ttl };
            Pruned { plan, places: places(&kept, width) }
        }
        LogicalPlan::Expand { input, spec, schema } => {
            let kept: Vec<usize> = needed.range(..spec.columns.len()).copied().collect();
            let input = prune(*input, &kept.iter().map(|column| spec.columns[*column]).collect());
            let spec = spec.project(&kept, &|column| input.place(column));
            // The number of the copy is what the rows are expanded for.
            let kept: Vec<usize> = kept.into_iter().chain([width - 1]).collect();
            let schema = Arc::new(schema.project(&kept));
            Pruned { plan: LogicalPlan::Expand { input: Box::new(input.plan), spec, schema }, places: places(&kept, width) }
        }
        LogicalPlan::Unnest { input, spec, schema } => prune_unnest(*input, spec, &schema, needed),
        LogicalPlan::WindowAggregate { input, spec, schema } => prune_window_aggregate(*input, spec, &schema, needed),
        LogicalPlan::Over { input, spec, schema } => prune_over(*input, spec, &schema, needed),
        LogicalPlan::Rank { input, spec, schema } => prune_rank(*input, spec, &schema, needed),
        LogicalPlan::Join { left, right, join_type, condition, schema, ttl } => {
            let (left, right) = (Box::new(prune_all(*left)), Box::new(prune_all(*right)));
            Pruned::unchanged(LogicalPlan::Join { left, right, join_type, condition, schema, ttl })
        }
        LogicalPlan::WindowJoin { left, right, spec, schema } => joins::prune_window_join(*left, *right, spec, &schema, needed),
        LogicalPlan::IntervalJoin { left, right, spec, schema } => {
            joins::prune_interval_join(*left, *right, spec, &schema, needed)
        }
        LogicalPlan::RegularJoin { left, right, spec, schema } => joins::prune_regular_join(*left, *right, spec, &schema, needed),
        LogicalPlan::ScalarJoin { left, right, schema, ttl } => {
            let left_width = left.schema().len();
            let mut of_left: Columns = needed.range(..left_width).copied().collect();
            if of_left.is_empty() {
                // Its rows are kept, and rows without columns could not be counted.
                of_left.extend((0..left_width).take(1));
            }
            let left = prune(*left, &of_left);
            let left = if left_width == 0 { Pruned { plan: with_constant(left.plan), places: Vec::new() } } else { left };
            let mut of_right: Columns = needed.range(left_width..).map(|column| column - left_width).collect();
            if of_right.is_empty() {
                // The right side still has to show that it has one row.
                of_right.extend((0..right.schema().len()).take(1));
            }
            let right = prune(*right, &of_right);
            let shift = left.plan.schema().len();
            let both: Vec<Option<usize>> =
                left.places.iter().copied().chain(right.places.iter().map(|place| place.map(|place| place + shift))).collect();
            let mut fields = left.plan.schema().fields.clone();
            fields.extend(right.plan.schema().fields.clone());
            for (column, place) in both.iter().enumerate() {
                if let Some(place) = place {
                    fields[*place] = schema.field(column).clone();
                }
            }
            let schema = Arc::new(Schema::new(fields));
            let plan = LogicalPlan::ScalarJoin { left: Box::new(left.plan), right: Box::new(right.plan), schema, ttl };
            Pruned { plan, places: both }
        }
        LogicalPlan::Union { inputs, schema } => {
            let kept: Vec<usize> = needed.iter().copied().collect();
            let inputs = inputs.into_iter().map(|input| prune(input, needed).exactly(needed).plan).collect();
            let schema = Arc::new(schema.project(&kept));
            Pruned { plan: LogicalPlan::Union { inputs, schema }, places: places(&kept, width) }
        }
        LogicalPlan::Sort { input, keys, offset, fetch, ttl } => {
            let read = needed.iter().copied().chain(keys.iter().map(|key| key.column)).collect();
            let input = prune(*input, &read).exactly(&read);
            let keys = keys.into_iter().map(|key| SortKey { column: input.place(key.column), ..key }).collect();
            let places = input.places;
            Pruned { plan: LogicalPlan::Sort { input: Box::new(input.plan), keys, offset, fetch, ttl }, places }
        }
        LogicalPlan::ChangelogNormalize { input, keys, ttl } => {
            let read = needed.iter().chain(&keys).copied().collect();
            let input = prune(*input, &read).exactly(&read);
            let keys = input.moved_all(&keys);
            let places = input.places;
            Pruned { plan: LogicalPlan::ChangelogNormalize { input: Box::new(input.plan), keys, ttl }, places }.exactly(needed)
        }
        LogicalPlan::Sink { .. } => Pruned::unchanged(plan),
    }
}

/// Rows without columns, with a constant one.
fn with_constant(plan: LogicalPlan) -> LogicalPlan {
    let data_type = DataType::not_null(TypeKind::Boolean);
    let schema = Arc::new(Schema::new(vec![Field::new("row", data_type.clone())]));
    LogicalPlan::Project { input: Box::new(plan), exprs: vec![Expr::literal(Value::Boolean(true), data_type)], schema }
}

/// Of a scan into which nothing was pushed yet, the columns that are produced; another one stays as it is.
fn prune_scan(plan: LogicalPlan, needed: &Columns) -> Pruned {
    let width = plan.schema().len();
    match plan {
        LogicalPlan::Scan { table, projection, metadata, computed: None, watermark: None, predicate: None, limit, schema } => {
            let kept: Vec<usize> = needed.iter().copied().collect();
            let physical = projection.len();
            let schema = Arc::new(schema.project(&kept));
            let metadata = kept.iter().filter(|column| **column >= physical).map(|column| metadata[*column - physical].clone());
            let metadata = metadata.collect();
            let projection = kept.iter().filter(|column| **column < physical).map(|column| projection[*column]).collect();
            let (computed, watermark, predicate) = (None, None, None);
            let plan = LogicalPlan::Scan { table, projection, metadata, computed, watermark, predicate, limit, schema };
            Pruned { plan, places: places(&kept, width) }
        }
        other => Pruned::unchanged(other),
    }
}

/// The three window columns stay; the time column and the keys of sessions are needed to make them.
fn prune_window_function(input: LogicalPlan, window: WindowSpec, schema: &Schema, needed: &Columns) -> Pruned {
    let width = input.schema().len();
    let read = needed.range(..width).copied().chain(window.columns()).collect();
    let input = prune(input, &read).exactly(&read);
    let window = window.moved(&|column| input.place(column));
    let kept: Vec<usize> = read.into_iter().chain(width..schema.len()).collect();
    let places = places(&kept, schema.len());
    let schema = Arc::new(schema.project(&kept));
    Pruned { plan: LogicalPlan::WindowTableFunction { input: Box::new(input.plan), window, schema }, places }
}

/// The collection is read, and passed on only where it is asked for.
fn prune_unnest(input: LogicalPlan, spec: UnnestSpec, schema: &Schema, needed: &Columns) -> Pruned {
    let width = input.schema().len();
    let kept: Vec<usize> = needed.iter().map(|column| spec.kept[*column]).collect();
    let condition = spec.condition.iter().flat_map(Expr::columns);
    let read = kept.iter().copied().chain(condition).filter(|column| *column < width).chain(spec.collection.columns()).collect();
    let input = prune(input, &read);
    let pruned_width = input.plan.schema().len();
    let place = |column: usize| if column < width { input.place(column) } else { column - width + pruned_width };
    let spec = UnnestSpec {
        collection: input.moved(spec.collection),
        condition: spec.condition.map(|condition| shifted(condition, &place)),
        kept: kept.into_iter().map(place).collect(),
        ..spec
    };
    let needed: Vec<usize> = needed.iter().copied().collect();
    let places = places(&needed, schema.len());
    let schema = Arc::new(schema.project(&needed));
    Pruned { plan: LogicalPlan::Unnest { input: Box::new(input.plan), spec, schema }, places }
}

fn prune_window_aggregate(input: LogicalPlan, spec: WindowAggregateSpec, schema: &Schema, needed: &Columns) -> Pruned {
    let first_property = spec.keys.len() + spec.aggregates.len();
    let (mut kept, aggregates) = kept_aggregates(spec.aggregates, spec.keys.len(), needed, false);
    let properties: Vec<usize> = needed.range(first_property..).copied().collect();
    kept.extend(&properties);
    let properties: Vec<WindowProperty> = properties.into_iter().map(|column| spec.properties[column - first_property]).collect();
    let window_columns = match &spec.window {
        WindowSource::Assigned(window) => window.columns().collect(),
        WindowSource::Attached { start, end, .. } => vec![*start, *end],
    };
    let calls = aggregates.iter().flat_map(call_columns);
    let read: Columns = spec.keys.iter().copied().chain(calls).chain(window_columns).collect();
    let input = prune(input, &read);
    let window = match spec.window {
        WindowSource::Assigned(window) => WindowSource::Assigned(window.moved(&|column| input.place(column))),
        WindowSource::Attached { start, end, time_type } => {
            WindowSource::Attached { start: input.place(start), end: input.place(end), time_type }
        }
    };
    let aggregates = input.moved_calls(aggregates);
    let keys = input.moved_all(&spec.keys);
    let spec = WindowAggregateSpec { window, keys, aggregates, properties, ..spec };
    let places = places(&kept, schema.len());
    let schema = Arc::new(schema.project(&kept));
    Pruned { plan: LogicalPlan::WindowAggregate { input: Box::new(input.plan), spec, schema }, places }
}

/// Calls that nothing reads are not made; without any the node goes away.
fn prune_over(input: LogicalPlan, spec: OverSpec, schema: &Schema, needed: &Columns) -> Pruned {
    let width = input.schema().len();
    let (kept_calls, calls): (Vec<usize>, Vec<OverCall>) =
        spec.calls.into_iter().enumerate().map(|(at, call)| (width + at, call)).filter(|(at, _)| needed.contains(at)).unzip();
    let mut read: Columns = needed.range(..width).copied().collect();
    if calls.is_empty() {
        let mut input = prune(input, &read);
        input.places.resize(schema.len(), None);
        return input;
    }
    read.extend(spec.partition_keys.iter().copied().chain(spec.order_keys.iter().map(|key| key.column)));
    read.extend(calls.iter().flat_map(|over| call_columns(&over.call)));
    let input = prune(input, &read).exactly(&read);
    let kept: Vec<usize> = read.into_iter().chain(kept_calls).collect();
    let (frames, calls): (Vec<OverFrame>, Vec<AggregateCall>) = calls.into_iter().map(|over| (over.frame, over.call)).unzip();
    let calls = frames.into_iter().zip(input.moved_calls(calls)).map(|(frame, call)| OverCall { frame, call }).collect();
    let spec = OverSpec {
        partition_keys: input.moved_all(&spec.partition_keys),
        order_keys: spec.order_keys.into_iter().map(|key| SortKey { column: input.place(key.column), ..key }).collect(),
        calls,
        limit: spec.limit,
        ttl: spec.ttl,
    };
    let plan = LogicalPlan::Over { input: Box::new(input.plan), spec, schema: Arc::new(schema.project(&kept)) };
    Pruned { plan, places: places(&kept, schema.len()) }
}

/// The number is made only where it is read.
fn prune_rank(input: LogicalPlan, spec: RankSpec, schema: &Schema, needed: &Columns) -> Pruned {
    let width = input.schema().len();
    let output_number = spec.output_number && needed.contains(&width);
    let read: Columns = needed.range(..width).copied().chain(rank::read_columns(&spec)).collect();
    let input = prune(input, &read).exactly(&read);
    let kept: Vec<usize> = read.into_iter().chain(output_number.then_some(width)).collect();
    let spec = RankSpec { output_number, ..rank::moved(spec, &|column| input.place(column)) };
    let plan = LogicalPlan::Rank { input: Box::new(input.plan), spec, schema: Arc::new(schema.project(&kept)) };
    Pruned { plan, places: places(&kept, schema.len()) }
}

/// The key columns and those of needed aggregates, with these aggregates. `one_at_least`: a global aggregate has its row by having one.
fn kept_aggregates(
    aggregates: Vec<AggregateCall>,
    keys: usize,
    needed: &Columns,
    one_at_least: bool,
) -> (Vec<usize>, Vec<AggregateCall>) {
    let none_needed = !(keys..keys + aggregates.len()).any(|column| needed.contains(&column));
    let is_kept = |at: usize| needed.contains(&(keys + at)) || (one_at_least && none_needed && at == 0);
    let (places, calls): (Vec<usize>, Vec<AggregateCall>) =
        aggregates.into_iter().enumerate().filter(|(at, _)| is_kept(*at)).map(|(at, call)| (keys + at, call)).unzip();
    ((0..keys).chain(places).collect(), calls)
}

fn call_columns(call: &AggregateCall) -> impl Iterator<Item = usize> + '_ {
    call.args.iter().copied().chain(call.filter)
}
