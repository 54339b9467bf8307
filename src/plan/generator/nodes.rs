//! One function for each plan node that is neither a Calc nor a sink.

use super::builder::{Distribution, Generator, NewNode, Stream};
use crate::error::{Error, Result};
use crate::plan::changelog::{Changelog, Changes, Updates};
use crate::plan::describe;
use crate::plan::expr_text::order_text;
use crate::plan::sort::SortStrategy;
use crate::plan::{LogicalPlan, ScanTable, over, rank};
use crate::stream_graph::{
    ChangeCut, ExpandSpec, OperatorSpec, OverOperatorSpec, OverSpec, RankOperatorSpec, RankSpec, SortLimitSpec, SourceSpec,
    WatermarkSpec, WindowAggregateSpec, WindowSource, WindowSpec,
};
use crate::types::{ChangelogMode, SchemaRef};

impl<'a> Generator<'a> {
    /// The operators of a node and of all below it.
    pub(super) fn node(&mut self, plan: &'a LogicalPlan, changelog: &'a Changelog) -> Result<Stream> {
        match plan {
            LogicalPlan::Scan { table, .. } => self.scan(plan, table, changelog),
            LogicalPlan::Values { rows, schema } => {
                let node = NewNode {
                    name: "Source: Values".to_string(),
                    description: describe::values(rows, schema),
                    spec: OperatorSpec::Values { rows: rows.clone(), schema: schema.clone() },
                    schema: schema.clone(),
                    changes: changelog.changes,
                };
                self.add_source(node, 1, 1)
            }
            LogicalPlan::Project { .. } | LogicalPlan::Filter { .. } => self.calc(plan, changelog),
            LogicalPlan::WatermarkAssigner { input, watermark, schema } => {
                let spec = OperatorSpec::WatermarkAssigner(outside_of_source(watermark)?);
                let description = describe::watermark_assigner(watermark, input.schema());
                self.unary(plan, changelog, "WatermarkAssigner", description, spec, schema)
            }
            LogicalPlan::WindowTableFunction { input, window, schema } => {
                let spec = OperatorSpec::WindowTableFunction(window.clone());
                let description = describe::window_table_function(window, input.schema());
                let stream = match window.kind.is_session() {
                    true => self.windowed_stream(input, &changelog.inputs[0], &window.time_type, ChangeCut::AtRows)?,
                    false => self.stream(input, &changelog.inputs[0])?,
                };
                let name = "WindowTableFunction".to_string();
                let node = NewNode { name, description, spec, schema: schema.clone(), changes: changelog.changes };
                match window.kind.is_session() {
                    true => self.add_operator(node, &[(&stream, Distribution::Keyed(window.partition_keys.clone()))]),
                    false => self.add_in_place(node, &stream),
                }
            }
            LogicalPlan::Unnest { input, spec, schema } => {
                let description = describe::unnest(spec, schema, input.schema());
                self.unary(plan, changelog, "Correlate", description, OperatorSpec::Unnest(spec.clone()), schema)
            }
            LogicalPlan::Expand { input, spec, schema } => self.expand(input, spec, schema, changelog),
            LogicalPlan::Aggregate { .. } => self.group_aggregate(plan, changelog),
            LogicalPlan::WindowAggregate { input, spec, schema } => self.window_aggregate(input, spec, schema, changelog),
            LogicalPlan::Rank { input, spec, schema } => self.rank(input, spec, schema, changelog),
            LogicalPlan::Over { input, spec, schema } => self.over(input, spec, schema, changelog),
            LogicalPlan::Union { inputs, .. } => self.union(inputs, changelog),
            LogicalPlan::Sort { .. } => self.sort(plan, changelog),
            LogicalPlan::ScalarJoin { .. } => self.scalar_join(plan, changelog, None),
            LogicalPlan::WindowJoin { .. } => self.window_join(plan, changelog),
            LogicalPlan::IntervalJoin { .. } => self.interval_join(plan, changelog),
            LogicalPlan::RegularJoin { .. } => self.regular_join(plan, changelog),
            LogicalPlan::Join { .. } => Err(Error::internal("a join that no rule has taken")),
            LogicalPlan::ChangelogNormalize { input, keys, ttl } => {
                let stream = self.stream(input, &changelog.inputs[0])?;
                let node = NewNode {
                    name: "ChangelogNormalize".to_string(),
                    description: describe::changelog_normalize(keys, input.schema()),
                    spec: OperatorSpec::ChangelogNormalize {
                        keys: keys.clone(),
                        schema: input.schema().clone(),
                        emit_update_before: changelog.changes.updates == Updates::BeforeAndAfter,
                        changes: self.cut_of(changelog),
                    },
                    schema: input.schema().clone(),
                    changes: changelog.changes,
                };
                let normalized = self.add_operator(node, &[(&stream, Distribution::Keyed(keys.clone()))])?;
                self.hint_ttl(&normalized, &[*ttl]);
                Ok(normalized)
            }
            LogicalPlan::Sink { .. } => Err(Error::internal("a sink is the root of its plan")),
        }
    }

    fn unary(
        &mut self,
        plan: &'a LogicalPlan,
        changelog: &'a Changelog,
        name: &str,
        description: String,
        spec: OperatorSpec,
        schema: &SchemaRef,
    ) -> Result<Stream> {
        let input = self.stream(plan.inputs()[0], &changelog.inputs[0])?;
        let changes = changelog.changes;
        let node = NewNode { name: name.to_string(), description, spec, schema: schema.clone(), changes };
        self.add_in_place(node, &input)
    }

    fn scan(&mut self, plan: &LogicalPlan, table: &ScanTable, changelog: &Changelog) -> Result<Stream> {
        let LogicalPlan::Scan { projection, metadata, computed, watermark, predicate, limit, schema, .. } = plan else {
            return Err(Error::internal("only a Scan becomes a source"));
        };
        let abilities = table.source_abilities(self.cx)?;
        let physical = table.physical();
        let spec = SourceSpec {
            table: table.path.stored(table.table.temporary),
            connector: table.connector()?.to_string(),
            options: table.options.clone(),
            base_dir: table.base_dir(self.cx).to_path_buf(),
            primary_key: table.primary_key_in(&physical).unwrap_or_default(),
            partition_keys: table.partition_keys_in(&physical),
            physical: physical.into(),
            projection: projection.clone(),
            metadata: metadata.clone(),
            computed: computed.clone(),
            watermark: watermark.clone().map(|watermark| in_source(watermark, abilities.bounded)),
            predicate: predicate.clone(),
            limit: *limit,
            changelog: changelog.changes.mode(),
            schema: schema.clone(),
        };
        let node = NewNode {
            name: format!("Source: {}", table.path.name),
            description: describe::scan(plan),
            spec: OperatorSpec::Source(Box::new(spec)),
            schema: schema.clone(),
            changes: changelog.changes,
        };
        self.add_source(node, abilities.parallelism.unwrap_or(self.parallelism), self.parallelism)
    }

    fn expand(
        &mut self,
        input: &'a LogicalPlan,
        spec: &ExpandSpec,
        schema: &SchemaRef,
        changelog: &'a Changelog,
    ) -> Result<Stream> {
        let stream = self.stream(input, &changelog.inputs[0])?;
        let node = NewNode {
            name: "Expand".to_string(),
            description: describe::expand(spec, schema, input.schema()),
            spec: OperatorSpec::Expand(spec.clone()),
            schema: schema.clone(),
            changes: changelog.changes,
        };
        self.add_in_place(node, &stream)
    }

    fn group_aggregate(&mut self, plan: &'a LogicalPlan, changelog: &'a Changelog) -> Result<Stream> {
        let LogicalPlan::Aggregate { input, keys, aggregates, schema, ttl } = plan else {
            return Err(Error::internal("only an Aggregate becomes a GroupAggregate"));
        };
        let stream = self.stream(input, &changelog.inputs[0])?;
        let input_retracts = !stream.changes.is_insert_only();
        let node = NewNode {
            name: "GroupAggregate".to_string(),
            description: describe::group_aggregate(keys, aggregates, input_retracts, input.schema()),
            spec: OperatorSpec::GroupAggregate {
                keys: keys.clone(),
                aggregates: aggregates.clone(),
                input_retracts,
                emit_update_before: changelog.changes.updates == Updates::BeforeAndAfter,
            },
            schema: schema.clone(),
            changes: changelog.changes,
        };
        let aggregated = self.add_operator(node, &[(&stream, Distribution::Keyed(keys.clone()))])?;
        self.hint_ttl(&aggregated, &[*ttl]);
        Ok(aggregated)
    }

    fn window_aggregate(
        &mut self,
        input: &'a LogicalPlan,
        spec: &WindowAggregateSpec,
        schema: &SchemaRef,
        changelog: &'a Changelog,
    ) -> Result<Stream> {
        let (time_type, cut) = match &spec.window {
            WindowSource::Assigned(window) if window.kind.is_session() => (&window.time_type, ChangeCut::AtRows),
            WindowSource::Assigned(WindowSpec { time_type, .. }) | WindowSource::Attached { time_type, .. } => {
                (time_type, ChangeCut::AtWatermarks)
            }
        };
        let stream = self.windowed_stream(input, &changelog.inputs[0], time_type, cut)?;
        let spec = WindowAggregateSpec {
            input_retracts: !stream.changes.is_insert_only(),
            emit_update_before: changelog.changes.updates == Updates::BeforeAndAfter,
            ..spec.clone()
        };
        let keys = spec.keys.clone();
        let node = NewNode {
            name: "WindowAggregate".to_string(),
            description: describe::window_aggregate(&spec, schema, input.schema()),
            spec: OperatorSpec::WindowAggregate(spec),
            schema: schema.clone(),
            changes: changelog.changes,
        };
        self.add_operator(node, &[(&stream, Distribution::Keyed(keys))])
    }

    fn over(&mut self, input: &'a LogicalPlan, spec: &OverSpec, schema: &SchemaRef, changelog: &'a Changelog) -> Result<Stream> {
        let stream = self.stream(input, &changelog.inputs[0])?;
        let strategy = over::choose(spec, input.schema(), !stream.changes.is_insert_only(), self.cx.functions)?;
        let over = OverOperatorSpec {
            over: spec.clone(),
            strategy,
            input_retracts: !stream.changes.is_insert_only(),
            emit_update_before: changelog.changes.updates == Updates::BeforeAndAfter,
            changes: self.cut_of(changelog),
            input: input.schema().clone(),
        };
        let node = NewNode {
            name: "OverAggregate".to_string(),
            description: describe::over(spec, schema, input.schema()),
            spec: OperatorSpec::OverAggregate(over),
            schema: schema.clone(),
            changes: changelog.changes,
        };
        let computed = self.add_operator(node, &[(&stream, Distribution::Keyed(spec.partition_keys.clone()))])?;
        self.hint_ttl(&computed, &[spec.ttl]);
        Ok(computed)
    }

    fn rank(&mut self, input: &'a LogicalPlan, spec: &RankSpec, schema: &SchemaRef, changelog: &'a Changelog) -> Result<Stream> {
        let stream = self.stream(input, &changelog.inputs[0])?;
        let strategy = rank::choose(spec, input.schema(), !stream.changes.is_insert_only())?;
        let description = describe::rank(spec, Some(strategy), schema, input.schema());
        let (name, _) = description.split_once('(').unwrap_or((&description, ""));
        let rank = RankSpec { order_keys: rank::compared_keys(spec, input.schema()), ..spec.clone() };
        let node = NewNode {
            name: name.to_string(),
            spec: OperatorSpec::Rank(RankOperatorSpec {
                rank,
                strategy,
                emit_update_before: changelog.changes.updates == Updates::BeforeAndAfter,
                changes: self.cut_of(changelog),
                input: input.schema().clone(),
            }),
            description,
            schema: schema.clone(),
            changes: changelog.changes,
        };
        let ranked = self.add_operator(node, &[(&stream, Distribution::Keyed(spec.partition_keys.clone()))])?;
        self.hint_ttl(&ranked, &[spec.ttl]);
        Ok(ranked)
    }

    fn union(&mut self, inputs: &'a [LogicalPlan], changelog: &'a Changelog) -> Result<Stream> {
        let streams =
            inputs.iter().zip(&changelog.inputs).map(|(input, log)| self.stream(input, log)).collect::<Result<Vec<_>>>()?;
        Ok(Stream {
            parallelism: streams.iter().map(|stream| stream.parallelism).max().unwrap_or(self.parallelism),
            nodes: streams.into_iter().flat_map(|stream| stream.nodes).collect(),
            changes: changelog.changes,
            key: None,
        })
    }

    fn sort(&mut self, plan: &'a LogicalPlan, changelog: &'a Changelog) -> Result<Stream> {
        let LogicalPlan::Sort { input, keys, offset, fetch, ttl } = plan else {
            return Err(Error::internal("only a Sort is sorted"));
        };
        let stream = self.stream(input, &changelog.inputs[0])?;
        let input_retracts = !stream.changes.is_insert_only();
        let order = format!("orderBy=[{}]", order_text(keys, input.schema()));
        let strategy = SortStrategy::choose(plan, input_retracts, self.cx)?;
        let (name, description, spec) = match (strategy, *fetch) {
            (SortStrategy::Limit, _) => return self.limit(&stream, *offset, *fetch, input.schema(), changelog.changes),
            (SortStrategy::SortLimit, Some(fetch)) => {
                let mut parts = if keys.is_empty() { Vec::new() } else { vec![order] };
                parts.extend(describe::offset_fetch(*offset, Some(fetch)));
                let (keys, offset, input) = (keys.clone(), *offset, input.schema().clone());
                let changes = self.cut_of(changelog);
                let spec = SortLimitSpec { keys, offset, fetch, input_retracts, changes, input };
                ("SortLimit", parts.join(", "), OperatorSpec::SortLimit(spec))
            }
            (SortStrategy::SortLimit, None) => return Err(Error::internal("a SortLimit has a fetch")),
            (SortStrategy::Temporal, _) => ("TemporalSort", order, OperatorSpec::TemporalSort { keys: keys.clone() }),
            (SortStrategy::Bounded, _) => {
                ("BoundedSort", order, OperatorSpec::BoundedSort { keys: keys.clone(), input_retracts })
            }
        };
        let node = NewNode {
            name: name.to_string(),
            description: format!("{name}({description})"),
            spec,
            schema: input.schema().clone(),
            changes: changelog.changes,
        };
        let sorted = self.add_operator(node, &[(&stream, Distribution::Single)])?;
        self.hint_ttl(&sorted, &[*ttl]);
        match strategy {
            SortStrategy::Temporal | SortStrategy::Bounded if *offset > 0 => {
                self.limit(&sorted, *offset, None, input.schema(), changelog.changes)
            }
            _ => Ok(sorted),
        }
    }

    fn limit(
        &mut self,
        stream: &Stream,
        offset: u64,
        fetch: Option<u64>,
        schema: &SchemaRef,
        changes: Changes,
    ) -> Result<Stream> {
        debug_assert_eq!(changes.mode(), ChangelogMode::InsertOnly);
        let node = NewNode {
            name: "Limit".to_string(),
            description: format!("Limit({})", describe::offset_fetch(offset, fetch).join(", ")),
            spec: OperatorSpec::Limit { offset, fetch },
            schema: schema.clone(),
            changes,
        };
        // A stream that is in one subtask already stays there, in its order.
        let distribution = if stream.parallelism == 1 { Distribution::Any } else { Distribution::Single };
        self.add_operator(node, &[(stream, distribution)])
    }
}

/// The watermark of a source: one that ends by itself is never idle.
fn in_source(mut watermark: WatermarkSpec, bounded: bool) -> WatermarkSpec {
    watermark.timing.idle_timeout_ms = watermark.timing.idle_timeout_ms.filter(|_| !bounded);
    watermark
}

/// The watermark of an operator behind a source, which knows no splits.
fn outside_of_source(watermark: &WatermarkSpec) -> Result<WatermarkSpec> {
    let mut watermark = watermark.clone();
    watermark.timing.idle_timeout_ms = watermark.timing.idle_timeout_ms.filter(|_| watermark.timing.idle_alone);
    match watermark.timing.alignment {
        None => Ok(watermark),
        Some(_) => Err(Error::unsupported("watermark alignment of a table whose watermark is not made in its source")),
    }
}
