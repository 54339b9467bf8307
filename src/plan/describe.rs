//! One line for each node, in Flink's words: `GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS n])`.
//!
//! Plans and StreamGraphs show the same lines, so that a node is found again from stage to stage.

pub use super::describe_over::{over, rank};
use super::expr_text::{column_list, column_name, duration_text, expr_text, order_text, select_item, value_text};
use super::{JoinType, LogicalPlan, ScanTable};
use crate::expr::{AggregateCall, Expr, SortKey};
use crate::sql::OnConflict;
use crate::stream_graph::{
    ExpandCopy, ExpandSpec, IntervalJoinSpec, JoinKey, RegularJoinSpec, SinkMaterializerSpec, UnnestSpec, WatermarkSpec,
    WindowAggregateSpec, WindowColumns, WindowJoinSpec, WindowKind, WindowProperty, WindowSource, WindowSpec,
};
use crate::types::{Field, Schema, TypeKind, Value};

/// The node, without its inputs.
pub fn describe(plan: &LogicalPlan) -> String {
    match plan {
        LogicalPlan::Scan { .. } => scan(plan),
        LogicalPlan::Values { rows, schema } => values(rows, schema),
        LogicalPlan::Project { input, exprs, schema } => format!("Project({})", select(exprs, schema, input.schema())),
        LogicalPlan::Filter { input, predicate } => format!("Filter(where=[{}])", expr_text(predicate, input.schema())),
        LogicalPlan::WatermarkAssigner { input, watermark, .. } => watermark_assigner(watermark, input.schema()),
        LogicalPlan::WindowTableFunction { input, window, .. } => window_table_function(window, input.schema()),
        LogicalPlan::Unnest { input, spec, schema } => unnest(spec, schema, input.schema()),
        LogicalPlan::Expand { input, spec, schema } => expand(spec, schema, input.schema()),
        LogicalPlan::Aggregate { input, keys, aggregates, .. } => group_aggregate(keys, aggregates, false, input.schema()),
        LogicalPlan::WindowAggregate { input, spec, schema } => window_aggregate(spec, schema, input.schema()),
        LogicalPlan::Over { input, spec, schema } => over(spec, schema, input.schema()),
        LogicalPlan::Rank { input, spec, schema } => rank(spec, None, schema, input.schema()),
        LogicalPlan::Join { left, right, join_type, condition, .. } => {
            let both = concat(left.schema(), right.schema());
            format!("Join(joinType=[{}], where=[{}])", join_name(*join_type), expr_text(condition, &both))
        }
        LogicalPlan::WindowJoin { spec, schema, .. } => window_join(spec, schema),
        LogicalPlan::IntervalJoin { spec, schema, .. } => interval_join(spec, schema),
        LogicalPlan::RegularJoin { spec, schema, .. } => regular_join(spec, schema),
        LogicalPlan::ScalarJoin { left, right, .. } => scalar_join(None, left.schema(), right.schema()),
        LogicalPlan::Union { schema, .. } => format!("Union(all=[true], union=[{}])", names(schema)),
        LogicalPlan::Sort { input, keys, offset, fetch, .. } => {
            let mut parts = Vec::new();
            if !keys.is_empty() {
                parts.push(format!("orderBy=[{}]", order_text(keys, input.schema())));
            }
            if *offset > 0 || fetch.is_some() {
                parts.extend(offset_fetch(*offset, *fetch));
            }
            format!("Sort({})", parts.join(", "))
        }
        LogicalPlan::ChangelogNormalize { input, keys, .. } => changelog_normalize(keys, input.schema()),
        LogicalPlan::Sink { table, schema, on_conflict, .. } => sink(table, schema, *on_conflict),
    }
}

/// `offset=[1]`, `fetch=[3]`.
pub fn offset_fetch(offset: u64, fetch: Option<u64>) -> Vec<String> {
    let fetch = fetch.map_or_else(|| "unlimited".to_string(), |fetch| fetch.to_string());
    vec![format!("offset=[{offset}]"), format!("fetch=[{fetch}]")]
}

/// `select=[a, (b + 1) AS c]`.
pub fn select(exprs: &[Expr], schema: &Schema, input: &Schema) -> String {
    let items: Vec<String> =
        exprs.iter().zip(&schema.fields).map(|(expr, field)| select_item(expr, &field.name, input)).collect();
    format!("select=[{}]", items.join(", "))
}

/// `TableSourceScan(table=[[catalog, database, table, filter=[…]]], fields=[…])`. `plan` is a scan.
pub fn scan(plan: &LogicalPlan) -> String {
    let LogicalPlan::Scan { table, projection, metadata, computed, watermark, predicate, limit, schema } = plan else {
        return describe(plan);
    };
    let mut parts = vec![table.path.catalog.clone(), table.path.database.clone(), table.path.name.clone()];
    let physical = table.physical();
    if projection.len() < physical.len() {
        parts.push(format!("project=[{}]", column_list(projection, &physical)));
    }
    if !metadata.is_empty() {
        parts.push(format!("metadata=[{}]", metadata.iter().map(|field| field.name.clone()).collect::<Vec<_>>().join(", ")));
    }
    if let Some(computed) = computed {
        let produced = table.produced(projection, metadata);
        parts.push(select(computed, schema, &produced).replacen("select", "computed", 1));
    }
    if let Some(watermark) = watermark {
        parts.push(format!("watermark=[{}]", expr_text(&watermark.expr, schema)));
    }
    if let Some(predicate) = predicate {
        parts.push(format!("filter=[{}]", expr_text(predicate, schema)));
    }
    if let Some(limit) = limit {
        parts.push(format!("limit=[{limit}]"));
    }
    format!("TableSourceScan(table=[[{}]], fields=[{}])", parts.join(", "), names(schema))
}

/// `Values(tuples=[[{1, 'a'}]])`; of many rows the first ones.
pub fn values(rows: &[Vec<Value>], schema: &Schema) -> String {
    const SHOWN: usize = 5;
    let row_text = |row: &Vec<Value>| {
        let texts: Vec<String> =
            row.iter().zip(&schema.fields).map(|(value, field)| value_text(value, &field.data_type)).collect();
        format!("{{ {} }}", texts.join(", "))
    };
    let mut texts: Vec<String> = rows.iter().take(SHOWN).map(row_text).collect();
    if rows.len() > SHOWN {
        texts.push(format!("… {} more", rows.len() - SHOWN));
    }
    format!("Values(tuples=[[{}]])", texts.join(", "))
}

/// `WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])`.
pub fn watermark_assigner(watermark: &WatermarkSpec, input: &Schema) -> String {
    let mut parts = vec![format!("rowtime=[{}]", column_name(watermark.rowtime, input))];
    if let Some(idle) = watermark.timing.idle_timeout_ms.filter(|_| watermark.timing.idle_alone) {
        parts.push(format!("idletimeout=[{idle}]"));
    }
    parts.push(format!("watermark=[{}]", expr_text(&watermark.expr, input)));
    format!("WatermarkAssigner({})", parts.join(", "))
}

/// `WindowTableFunction(window=[TUMBLE(…)])`.
pub fn window_table_function(window: &WindowSpec, input: &Schema) -> String {
    format!("WindowTableFunction(window=[{}])", window_text(window, input))
}

/// `Correlate(invocation=[UNNEST(a)], joinType=[INNER], select=[k, x])`.
pub fn unnest(spec: &UnnestSpec, schema: &Schema, input: &Schema) -> String {
    let ordinality = if spec.ordinality { " WITH ORDINALITY" } else { "" };
    let function = if spec.collection.data_type().kind == TypeKind::BigInt { "REPLICATE_ROWS" } else { "UNNEST" };
    let join_type = if spec.outer { "LEFT" } else { "INNER" };
    let mut parts = vec![
        match spec.is_call {
            true => format!("invocation=[{}]", expr_text(&spec.collection, input)),
            false => format!("invocation=[{function}({}){ordinality}]", expr_text(&spec.collection, input)),
        },
        format!("joinType=[{join_type}]"),
    ];
    if let Some(condition) = &spec.condition {
        parts.push(format!("condition=[{}]", expr_text(condition, &spec.all_columns(input))));
    }
    format!("Correlate({}, select=[{}])", parts.join(", "), names(schema))
}

/// `Expand(projects=[{k, v, 0 AS $e}, {null AS k, v, 1 AS $e}])`.
pub fn expand(spec: &ExpandSpec, schema: &Schema, input: &Schema) -> String {
    let copy_text = |copy: &ExpandCopy| {
        let column = |(at, from): (usize, &usize)| {
            let (name, source) = (column_name(at, schema), column_name(*from, input));
            match copy.nulls.contains(&at) {
                true => format!("null AS {name}"),
                false if name == source => name,
                false => format!("{source} AS {name}"),
            }
        };
        let mut items: Vec<String> = spec.columns.iter().enumerate().map(column).collect();
        items.push(format!("{} AS {}", copy.id, column_name(spec.columns.len(), schema)));
        format!("{{{}}}", items.join(", "))
    };
    format!("Expand(projects=[{}])", spec.copies.iter().map(copy_text).collect::<Vec<_>>().join(", "))
}

/// `GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS n])`. `retract`: the input takes rows back.
pub fn group_aggregate(keys: &[usize], aggregates: &[AggregateCall], retract: bool, input: &Schema) -> String {
    let mut items: Vec<String> = keys.iter().map(|key| column_name(*key, input)).collect();
    items.extend(aggregates.iter().map(|call| aggregate_item(call, retract, input)));
    let select = format!("select=[{}]", items.join(", "));
    match keys {
        [] => format!("GroupAggregate({select})"),
        _ => format!("GroupAggregate(groupBy=[{}], {select})", column_list(keys, input)),
    }
}

/// `WindowAggregate(groupBy=[k], window=[TUMBLE(…)], select=[k, COUNT(*) AS n, start('w$) AS window_start])`.
pub fn window_aggregate(spec: &WindowAggregateSpec, schema: &Schema, input: &Schema) -> String {
    let mut parts = Vec::new();
    if !spec.keys.is_empty() {
        parts.push(format!("groupBy=[{}]", column_list(&spec.keys, input)));
    }
    let window = match &spec.window {
        WindowSource::Assigned(window) => window_text(window, input),
        WindowSource::Attached { start, end, .. } => {
            format!("ATTACHED(win_start=[{}], win_end=[{}])", column_name(*start, input), column_name(*end, input))
        }
    };
    parts.push(format!("window=[{window}]"));
    let mut items: Vec<String> = spec.keys.iter().map(|key| column_name(*key, input)).collect();
    items.extend(spec.aggregates.iter().map(|call| aggregate_item(call, spec.input_retracts, input)));
    let first = spec.keys.len() + spec.aggregates.len();
    items.extend(spec.properties.iter().enumerate().map(|(i, property)| {
        let function = match property {
            WindowProperty::Start => "start",
            WindowProperty::End => "end",
            WindowProperty::Time => "rowtime",
        };
        format!("{function}('w$) AS {}", column_name(first + i, schema))
    }));
    parts.push(format!("select=[{}]", items.join(", ")));
    parts.extend(spec.emit.map(|emit| format!("emit=[{emit}]")));
    format!("WindowAggregate({})", parts.join(", "))
}

/// `ScalarJoin(where=[…], select=[…])`.
pub fn scalar_join(predicate: Option<&Expr>, left: &Schema, right: &Schema) -> String {
    let both = concat(left, right);
    match predicate {
        Some(predicate) => format!("ScalarJoin(where=[{}], select=[{}])", expr_text(predicate, &both), names(&both)),
        None => format!("ScalarJoin(select=[{}])", names(&both)),
    }
}

/// `WindowJoin(leftWindow=[win_start=[window_start], win_end=[window_end]], …, joinType=[InnerJoin], where=[(k = k0)], select=[…])`.
pub fn window_join(spec: &WindowJoinSpec, schema: &Schema) -> String {
    let window = |columns: WindowColumns, input: &Schema| {
        let [start, end] = [columns.start, columns.end].map(|column| column_name(column, input));
        format!("win_start=[{start}], win_end=[{end}]")
    };
    let (left, right) = (&spec.left_schema, &spec.right_schema);
    format!(
        "WindowJoin(leftWindow=[{}], rightWindow=[{}], joinType=[{}], where=[{}], select=[{}])",
        window(spec.left_window, left),
        window(spec.right_window, right),
        join_name(spec.join_type),
        join_condition(&spec.keys, spec.residual.as_ref(), left, right),
        names(schema)
    )
}

/// `IntervalJoin(joinType=[InnerJoin], windowBounds=[isRowTime=true, leftLowerBound=-10000, leftUpperBound=0, …], where=[…], select=[…])`.
pub fn interval_join(spec: &IntervalJoinSpec, schema: &Schema) -> String {
    let (left, right) = (&spec.left_schema, &spec.right_schema);
    format!(
        "IntervalJoin(joinType=[{}], windowBounds=[isRowTime={}, leftLowerBound={}, leftUpperBound={}, leftTime={}, rightTime={}], where=[{}], select=[{}])",
        join_name(spec.join_type),
        !spec.is_proctime,
        spec.lower_ms,
        spec.upper_ms,
        column_name(spec.left_time, left),
        column_name(spec.right_time, right),
        join_condition(&spec.keys, spec.residual.as_ref(), left, right),
        names(schema)
    )
}

/// `RegularJoin(joinType=[InnerJoin], where=[(k = k0)], select=[…])`. Flink says Join; that is what a plan has before.
pub fn regular_join(spec: &RegularJoinSpec, schema: &Schema) -> String {
    let condition = join_condition(&spec.keys, spec.residual.as_ref(), &spec.left_schema, &spec.right_schema);
    format!("RegularJoin(joinType=[{}], where=[{condition}], select=[{}])", join_name(spec.join_type), names(schema))
}

/// Keys and what else must be true, as one condition.
fn join_condition(keys: &[JoinKey], residual: Option<&Expr>, left: &Schema, right: &Schema) -> String {
    let both = concat(left, right);
    let key_text = |key: &JoinKey| {
        let (left, right) = (column_name(key.left, &both), column_name(left.len() + key.right, &both));
        if key.null_safe { format!("({left} IS NOT DISTINCT FROM {right})") } else { format!("({left} = {right})") }
    };
    let terms: Vec<String> = keys.iter().map(key_text).chain(residual.map(|residual| expr_text(residual, &both))).collect();
    match terms.as_slice() {
        [] => "true".to_string(),
        [term] => term.clone(),
        terms => format!("({})", terms.join(" AND ")),
    }
}

/// `Sink(table=[catalog.database.table], fields=[…])`.
pub fn sink(table: &ScanTable, schema: &Schema, on_conflict: Option<OnConflict>) -> String {
    let path = &table.path;
    let conflict = match on_conflict {
        None => "",
        Some(OnConflict::Nothing) => ", conflictStrategy=[NOTHING]",
        Some(OnConflict::Error) => ", conflictStrategy=[ERROR]",
        Some(OnConflict::Deduplicate) => ", conflictStrategy=[DEDUPLICATE]",
    };
    format!("Sink(table=[{}.{}.{}], fields=[{}]{conflict})", path.catalog, path.database, path.name, names(schema))
}

/// `ChangelogNormalize(key=[id])`.
pub fn changelog_normalize(keys: &[usize], input: &Schema) -> String {
    format!("ChangelogNormalize(key=[{}])", column_list(keys, input))
}

/// `SinkMaterializer(primaryKey=[k], upsertKey=[id])`.
pub fn sink_materializer(spec: &SinkMaterializerSpec) -> String {
    let upsert_key = spec.upsert_key.as_ref().map(|key| format!(", upsertKey=[{}]", column_list(key, &spec.schema)));
    let primary_key = column_list(&spec.primary_key, &spec.schema);
    format!("SinkMaterializer(primaryKey=[{primary_key}]{})", upsert_key.unwrap_or_default())
}

/// `a, b`.
pub fn names(schema: &Schema) -> String {
    schema.fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Left columns, then right ones.
pub fn concat(left: &Schema, right: &Schema) -> Schema {
    Schema::new(left.fields.iter().chain(&right.fields).cloned().collect::<Vec<Field>>())
}

/// `COUNT(v) AS n`.
pub(super) fn aggregate_item(call: &AggregateCall, retract: bool, input: &Schema) -> String {
    let args = if call.args.is_empty() { "*".to_string() } else { column_list(&call.args, input) };
    let distinct = if call.distinct { "DISTINCT " } else { "" };
    let suffix = if retract { "_RETRACT" } else { "" };
    let filter = call.filter.map_or_else(String::new, |filter| format!(" FILTER {}", column_name(filter, input)));
    let keys: Vec<SortKey> = call.order.iter().map(|key| SortKey { column: call.args[key.column], ..key.clone() }).collect();
    let order = if keys.is_empty() { String::new() } else { format!(" ORDER BY {}", order_text(&keys, input)) };
    format!("{}{suffix}({distinct}{args}{order}){filter} AS {}", call.function, call.name)
}

fn window_text(window: &WindowSpec, input: &Schema) -> String {
    let time = format!("time_col=[{}]", column_name(window.time_column, input));
    let with_offset = |text: String, offset_ms: i64| match offset_ms {
        0 => text,
        _ => format!("{text}, offset=[{}]", duration_text(offset_ms)),
    };
    match window.kind {
        WindowKind::Tumble { size_ms, offset_ms } => {
            format!("TUMBLE({})", with_offset(format!("{time}, size=[{}]", duration_text(size_ms)), offset_ms))
        }
        WindowKind::Hop { slide_ms, size_ms, offset_ms } => {
            let spans = format!("{time}, size=[{}], slide=[{}]", duration_text(size_ms), duration_text(slide_ms));
            format!("HOP({})", with_offset(spans, offset_ms))
        }
        WindowKind::Cumulate { step_ms, size_ms, offset_ms } => {
            let spans = format!("{time}, max_size=[{}], step=[{}]", duration_text(size_ms), duration_text(step_ms));
            format!("CUMULATE({})", with_offset(spans, offset_ms))
        }
        WindowKind::Session { gap_ms } => {
            let gap = format!("{time}, gap=[{}]", duration_text(gap_ms));
            match window.partition_keys.as_slice() {
                [] => format!("SESSION({gap})"),
                keys => format!("SESSION({gap}, partition keys=[{}])", column_list(keys, input)),
            }
        }
    }
}

fn join_name(join_type: JoinType) -> &'static str {
    match join_type {
        JoinType::Inner => "InnerJoin",
        JoinType::Left => "LeftOuterJoin",
        JoinType::Right => "RightOuterJoin",
        JoinType::Full => "FullOuterJoin",
        JoinType::Semi => "LeftSemiJoin",
        JoinType::Anti => "LeftAntiJoin",
    }
}
