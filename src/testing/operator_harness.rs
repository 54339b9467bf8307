//! One operator without a task: push batches, event time and processing time in, see what comes out as text; take its state out, put it
//! into others with another parallelism.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::connectors::ScriptedConnectors;
use super::pretty::{format_batch, parse_batch};
use crate::clock::{Clock, VirtualClock};
use crate::config::{Configuration, STATE_TTL};
use crate::error::Result;
use crate::expr::builtin_functions;
use crate::operators::Operators;
use crate::runtime::checkpoint::LocalStores;
use crate::runtime::{
    Environment, Operator, OperatorContext, OperatorFactory, OperatorMetrics, Output, ResultHub, StateTable, StateTableSnapshot,
    WatermarkStatus,
};
use crate::stream_graph::OperatorSpec;
use crate::types::{Batch, InputNumber, JobId, KeyGroupRange, OperatorId, Schema, SubtaskIndex, Watermark};

/// Key groups in tests.
pub const MAX_PARALLELISM: u32 = 128;

/// What the tasks of a test share.
pub fn environment(clock: Arc<dyn Clock>, connectors: &ScriptedConnectors) -> Arc<Environment> {
    Arc::new(Environment {
        clock,
        functions: Arc::new(builtin_functions()),
        connectors: Arc::new(connectors.clone()),
        operators: Arc::new(Operators),
        results: Arc::new(ResultHub::default()),
        stores: Arc::new(LocalStores::default()),
    })
}

/// What an operator may know of itself as one of several subtasks.
pub fn context(index: u32, parallelism: u32, configuration: &Configuration, environment: &Arc<Environment>) -> OperatorContext {
    let (subtask, max_parallelism) = (SubtaskIndex(index), MAX_PARALLELISM);
    OperatorContext {
        job: JobId(1),
        operator: OperatorId(1),
        name: "operator".to_string(),
        subtask,
        parallelism,
        max_parallelism,
        key_groups: KeyGroupRange::of_subtask(subtask, parallelism, max_parallelism),
        state_ttl_ms: vec![configuration.duration_ms(&STATE_TTL); 2],
        configuration: Arc::new(configuration.clone()),
        job_start_ms: 0,
        restored: None,
        environment: Arc::clone(environment),
        metrics: Arc::new(OperatorMetrics::default()),
    }
}

/// The state of an operator, by name of its table.
pub type Snapshot = BTreeMap<&'static str, StateTableSnapshot>;

/// One operator without a task.
pub struct OperatorHarness {
    operator: Box<dyn Operator>,
    context: OperatorContext,
    clock: Arc<VirtualClock>,
    schemas: Vec<Schema>,
    output: TextOutput,
}

/// Collects what comes out; a watermark that does not rise is dropped, as the contract of [`Output`] says.
struct TextOutput {
    text: String,
    watermark: Watermark,
}

impl Default for TextOutput {
    fn default() -> Self {
        TextOutput { text: String::new(), watermark: Watermark::MIN }
    }
}

impl Output for TextOutput {
    fn batch(&mut self, batch: Batch) -> Result<()> {
        self.text.push_str(&format_batch(&batch));
        self.watermark = batch.steps().last().map_or(self.watermark, |last| last.max(self.watermark));
        Ok(())
    }

    fn watermark(&mut self, watermark: Watermark) -> Result<()> {
        if watermark > self.watermark {
            self.watermark = watermark;
            self.text.push_str(&format!("WATERMARK {watermark}\n"));
        }
        Ok(())
    }

    fn watermark_status(&mut self, status: WatermarkStatus) -> Result<()> {
        self.text.push_str(&format!("{status:?}\n"));
        Ok(())
    }
}

impl OperatorHarness {
    /// The operator of a spec, as the only subtask. `schemas`: the columns of its inputs.
    pub fn new(spec: &OperatorSpec, schemas: Vec<Schema>) -> Result<Self> {
        Self::subtask(spec, schemas, 0, 1, &Configuration::default())
    }

    /// The operator of a spec as one of several subtasks, with settings.
    pub fn subtask(
        spec: &OperatorSpec,
        schemas: Vec<Schema>,
        index: u32,
        parallelism: u32,
        configuration: &Configuration,
    ) -> Result<Self> {
        let clock = VirtualClock::new(0);
        let environment = environment(Arc::clone(&clock) as Arc<dyn Clock>, &ScriptedConnectors::default());
        let context = context(index, parallelism, configuration, &environment);
        let mut operator = Operators.build(spec, &context)?;
        operator.open(&context)?;
        Ok(OperatorHarness { operator, context, clock, schemas, output: TextOutput::default() })
    }

    fn done(&mut self) -> Result<String> {
        Ok(std::mem::take(&mut self.output.text))
    }

    /// Rows of input 0, in the form of [`super::pretty`]; what comes out.
    pub fn push(&mut self, rows: &str) -> Result<String> {
        self.push_to(0, rows)
    }

    /// Rows of an input.
    pub fn push_to(&mut self, input: u8, rows: &str) -> Result<String> {
        let batch = parse_batch(&self.schemas[input as usize], rows);
        self.push_batch(input, batch)
    }

    /// Rows of an input that are there as a batch.
    pub fn push_batch(&mut self, input: u8, batch: Batch) -> Result<String> {
        self.operator.process_batch(InputNumber(input), batch, &mut self.output)?;
        self.done()
    }

    /// Event time advances.
    pub fn watermark(&mut self, watermark_ms: i64) -> Result<String> {
        self.operator.process_watermark(Watermark(watermark_ms), &mut self.output)?;
        self.done()
    }

    /// The clock moves, and the operator is called if it wanted that.
    pub fn set_time(&mut self, now_ms: i64) -> Result<String> {
        self.clock.advance_to(now_ms);
        if self.operator.next_processing_timer().is_some_and(|timer| timer <= now_ms) {
            self.operator.process_time(now_ms, &mut self.output)?;
        }
        self.done()
    }

    /// What the clock shows.
    pub fn now(&self) -> i64 {
        self.clock.now_ms()
    }

    /// All inputs end.
    pub fn finish(&mut self) -> Result<String> {
        for input in 0..self.schemas.len() {
            self.operator.end_input(InputNumber(input as u8), &mut self.output)?;
        }
        self.operator.process_watermark(Watermark::MAX, &mut self.output)?;
        self.operator.finish(&mut self.output)?;
        self.done()
    }

    /// All its state.
    pub fn snapshot(&mut self) -> Result<Snapshot> {
        let snapshot = |(name, table): (_, &mut dyn StateTable)| {
            // Of the second one as much as can be consists of pieces.
            table.snapshot()?;
            Ok((name, table.snapshot()?.as_written()?.0))
        };
        self.operator.state().into_iter().map(snapshot).collect()
    }

    /// Puts the part of a state in that is this subtask's.
    pub fn restore(&mut self, snapshots: &[Snapshot]) -> Result<()> {
        for (name, table) in self.operator.state() {
            for snapshot in snapshots.iter().filter_map(|snapshot| snapshot.get(name)) {
                table.restore(snapshot, self.context.key_groups)?;
            }
        }
        Ok(())
    }

    /// New subtasks of a spec that share out the state of these.
    pub fn rescale(
        old: &mut [OperatorHarness],
        spec: &OperatorSpec,
        parallelism: u32,
        configuration: &Configuration,
    ) -> Result<Vec<OperatorHarness>> {
        let snapshots = old.iter_mut().map(OperatorHarness::snapshot).collect::<Result<Vec<_>>>()?;
        let schemas = old[0].schemas.clone();
        let build = |index, from: &[Snapshot]| {
            let mut harness = Self::subtask(spec, schemas.clone(), index, parallelism, configuration)?;
            harness.restore(from)?;
            Ok(harness)
        };
        // A checkpoint that is taken before anything has come has it all, too.
        let restored = (0..parallelism).map(|index| build(index, &snapshots)).collect::<Result<Vec<_>>>()?;
        let snapshots = restored.into_iter().map(|mut harness| harness.snapshot()).collect::<Result<Vec<_>>>()?;
        (0..parallelism).map(|index| build(index, &snapshots)).collect()
    }

    /// Entries of state whose time to live was over.
    pub fn expired(&self) -> u64 {
        self.context.metrics.expired.load(Relaxed)
    }

    /// Bytes of all state.
    pub fn state_bytes(&mut self) -> usize {
        self.operator.state().iter().map(|(_, table)| table.bytes()).sum()
    }

    /// Rows that came too late.
    pub fn late_rows(&self) -> u64 {
        self.context.metrics.late_rows.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::AggregateCall;
    use crate::types::{DataType, Field, TypeKind};

    fn count_by_name() -> (OperatorSpec, Schema) {
        let count = AggregateCall {
            function: "COUNT".to_string(),
            args: Vec::new(),
            arg_types: Vec::new(),
            distinct: false,
            order: Vec::new(),
            filter: None,
            data_type: DataType::not_null(TypeKind::BigInt),
            name: "n".to_string(),
        };
        let spec = OperatorSpec::GroupAggregate {
            keys: vec![0],
            aggregates: vec![count],
            input_retracts: false,
            emit_update_before: false,
        };
        (spec, Schema::new(vec![Field::new("name", DataType::string())]))
    }

    #[test]
    fn an_operator_is_driven_by_text() {
        let (spec, schema) = count_by_name();
        let mut harness = OperatorHarness::new(&spec, vec![schema]).unwrap();
        let out = harness.push("a\nb").unwrap();
        assert_eq!(sorted(&out), ["a | 1", "b | 1"]);
        assert_eq!(harness.push("a").unwrap(), "+U | a | 2\n");
        assert_eq!(harness.watermark(5).unwrap(), "WATERMARK 5\n");
        assert_eq!(harness.finish().unwrap(), "WATERMARK max\n");
    }

    #[test]
    fn state_is_shared_out_when_subtasks_become_more() {
        let (spec, schema) = count_by_name();
        let old = OperatorHarness::new(&spec, vec![schema]).unwrap();
        let mut old = [old];
        let keys: Vec<String> = (0..50).map(|i| format!("k{i}")).collect();
        old[0].push(&keys.join("\n")).unwrap();
        let new = OperatorHarness::rescale(&mut old, &spec, 3, &Configuration::default()).unwrap();
        let mut known = 0;
        for mut subtask in new {
            let out = subtask.push(&keys.join("\n")).unwrap();
            known += out.lines().filter(|line| line.starts_with("+U") && line.ends_with("| 2")).count();
        }
        assert_eq!(known, 50, "each key is known to one subtask");
    }

    fn sorted(text: &str) -> Vec<&str> {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines
    }
}
