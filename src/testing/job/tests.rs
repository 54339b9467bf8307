//! Tasks wired by channels: rows, event time, flushes, ends, failures and backpressure across them.

use std::task::{Context, Poll};

use arrow::array::{AsArray, Int64Array};
use arrow::datatypes::Int64Type;

use super::*;
use crate::clock::SystemClock;
use crate::error::ErrorKind;
use crate::expr::FunctionRegistry;
use crate::runtime::{
    ConnectorFactory, FlushId, Operator, OperatorContext, OperatorFactory, Output, ResultHub, SinkContext, SinkWriter, Source,
    SourceOperator, SourceStatus,
};
use crate::stream_graph::{SinkSpec, SourceSpec};
use crate::testing::specs::{pass, sink, source};
use crate::types::{Batch, Watermark, WatermarkSteps};

/// What the sinks of a job saw, by table.
type Journal = Arc<Mutex<BTreeMap<String, Vec<Seen>>>>;

#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Rows(Vec<i64>),
    Watermark(i64),
    Flush,
    End(u8),
    Finish,
}

/// Reads splits `start..end`; a watermark before each full ten; flushes where the table is called `flushing`.
struct Numbers {
    table: String,
    splits: VecDeque<std::ops::Range<i64>>,
    no_more: bool,
}

impl SourceOperator for Numbers {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        for split in splits {
            let (start, end) = split.state.split_once("..").expect("a range");
            self.splits.push_back(start.parse().unwrap()..end.parse().unwrap());
        }
        Ok(())
    }

    fn no_more_splits(&mut self) {
        self.no_more = true;
    }

    fn poll(&mut self, _context: &mut Context<'_>, output: &mut dyn Output) -> Poll<Result<SourceStatus>> {
        let Some(split) = self.splits.front_mut() else {
            return Poll::Ready(Ok(if self.no_more { SourceStatus::End } else { SourceStatus::NeedSplits }));
        };
        let end = split.end.min(split.start + 25);
        let values: Vec<i64> = (split.start..end).collect();
        split.start = end;
        let done = split.is_empty();
        let flush = done && self.table == "flushing";
        if done {
            self.splits.pop_front();
        }
        let mut steps = WatermarkSteps::none();
        for (row, value) in values.iter().enumerate().filter(|(_, value)| *value % 10 == 0) {
            steps.push(row as u32, Watermark(value - 1));
        }
        let rows = values.len();
        output.batch(Batch::new(vec![Arc::new(Int64Array::from(values))], rows).with_steps(steps))?;
        Poll::Ready(Ok(if flush { SourceStatus::Flush(FlushId(1)) } else { SourceStatus::More }))
    }
}

/// Passes all on, or fails or panics at a row, or has enough after some rows.
struct Pass {
    left: Option<u64>,
}

impl Operator for Pass {
    fn process_batch(&mut self, _input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        let Some(left) = &mut self.left else { return output.batch(batch) };
        let rows = batch.num_rows().min(*left as usize);
        *left -= rows as u64;
        output.batch(batch.slice(0, rows))
    }

    fn is_satisfied(&self) -> bool {
        self.left == Some(0)
    }
}

struct Recorder {
    table: String,
    journal: Journal,
}

impl Recorder {
    fn see(&self, seen: Seen) {
        self.journal.lock().unwrap().entry(self.table.clone()).or_default().push(seen);
    }
}

impl Operator for Recorder {
    fn process_batch(&mut self, _input: InputNumber, batch: Batch, _output: &mut dyn Output) -> Result<()> {
        let values = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        match self.table.as_str() {
            "failing" => return Err(Error::new(ErrorKind::DataFormat, "bad row")),
            "panicking" => panic!("lost my head"),
            _ => {}
        }
        let mut from = 0;
        for step in batch.steps().as_slice() {
            let to = step.rows_before as usize;
            if to > from {
                self.see(Seen::Rows(values[from..to].to_vec()));
            }
            self.see(Seen::Watermark(step.watermark.0));
            from = to;
        }
        if from < values.len() {
            self.see(Seen::Rows(values[from..].to_vec()));
        }
        Ok(())
    }

    fn process_watermark(&mut self, watermark: Watermark, _output: &mut dyn Output) -> Result<()> {
        self.see(Seen::Watermark(watermark.0));
        Ok(())
    }

    fn end_input(&mut self, input: InputNumber, _output: &mut dyn Output) -> Result<()> {
        self.see(Seen::End(input.0));
        Ok(())
    }

    fn flush(&mut self, _output: &mut dyn Output) -> Result<()> {
        self.see(Seen::Flush);
        Ok(())
    }

    fn finish(&mut self, _output: &mut dyn Output) -> Result<()> {
        self.see(Seen::Finish);
        Ok(())
    }
}

struct Factory(Journal);

impl OperatorFactory for Factory {
    fn build(&self, spec: &OperatorSpec, _context: &OperatorContext) -> Result<Box<dyn Operator>> {
        Ok(match spec {
            OperatorSpec::Limit { fetch, .. } => Box::new(Pass { left: *fetch }),
            OperatorSpec::Sink(sink) => Box::new(Recorder { table: sink.table.name.clone(), journal: Arc::clone(&self.0) }),
            _ => Box::new(Pass { left: None }),
        })
    }

    fn build_source(&self, spec: &OperatorSpec, _context: &OperatorContext) -> Result<Option<Box<dyn SourceOperator>>> {
        let OperatorSpec::Source(spec) = spec else { return Ok(None) };
        Ok(Some(Box::new(Numbers { table: spec.table.name.clone(), splits: VecDeque::new(), no_more: false })))
    }
}

impl ConnectorFactory for Factory {
    fn source(&self, _spec: &SourceSpec) -> Result<Box<dyn Source>> {
        Err(Error::internal("no connectors here"))
    }

    fn sink(&self, _spec: &SinkSpec, _context: SinkContext) -> Result<Box<dyn SinkWriter>> {
        Err(Error::internal("no connectors here"))
    }
}

fn job() -> (TestJob, Journal) {
    let journal = Journal::default();
    let environment = Environment {
        stores: Arc::new(crate::runtime::checkpoint::LocalStores::default()),
        clock: Arc::new(SystemClock::new()),
        functions: Arc::new(FunctionRegistry::default()),
        connectors: Arc::new(Factory(Journal::default())),
        operators: Arc::new(Factory(Arc::clone(&journal))),
        results: Arc::new(ResultHub::default()),
    };
    (TestJob::new(Arc::new(environment)), journal)
}

fn seen(journal: &Journal, table: &str) -> Vec<Seen> {
    journal.lock().unwrap().get(table).cloned().unwrap_or_default()
}

fn rows(seen: &[Seen]) -> Vec<i64> {
    let rows = seen.iter().filter_map(|seen| if let Seen::Rows(rows) = seen { Some(rows.clone()) } else { None });
    rows.flatten().collect()
}

fn sorted(mut rows: Vec<i64>) -> Vec<i64> {
    rows.sort_unstable();
    rows
}

/// Rows are never at or before the watermark, and the watermark rises.
fn check_event_time(seen: &[Seen]) {
    let mut watermark = i64::MIN;
    for seen in seen {
        match seen {
            Seen::Rows(rows) => assert!(rows.iter().all(|row| *row > watermark), "{rows:?} late at {watermark}"),
            Seen::Watermark(next) => {
                assert!(*next > watermark, "watermark went from {watermark} to {next}");
                watermark = *next;
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_chain_in_one_task_runs_to_its_end() {
    let (mut job, journal) = job();
    let task = job.vertex(1, vec![source("t"), pass(), sink("s")]);
    job.splits.add(job.operator_id(task, 0), ["0..30".to_string()]);
    job.run().await.unwrap();
    let seen = seen(&journal, "s");
    assert_eq!(rows(&seen), (0..30).collect::<Vec<_>>());
    check_event_time(&seen);
    assert_eq!(seen[seen.len() - 3..], [Seen::End(0), Seen::Watermark(i64::MAX), Seen::Finish]);
}

async fn exchange(partitioner: Partitioner, batch_rows: &str, buffers: &str, floating: &str) -> (TestJob, Vec<Seen>) {
    let (mut job, journal) = job();
    job.configuration.set("execution.batch-rows", batch_rows).unwrap();
    job.configuration.set("taskmanager.network.memory.buffers-per-channel", buffers).unwrap();
    job.configuration.set("taskmanager.network.memory.floating-buffers-per-gate", floating).unwrap();
    let first = job.vertex(3, vec![source("t")]);
    let second = job.vertex(2, vec![pass()]);
    let third = job.vertex(1, vec![sink("s")]);
    job.edge(first, second, 0, partitioner);
    job.edge(second, third, 0, Partitioner::Global);
    let splits = Arc::get_mut(&mut job.splits).unwrap();
    splits.all_at_start = Some(3);
    // Each reader's splits rise, so that its watermark is right.
    job.splits.add(job.operator_id(first, 0), (0..6).map(|i| format!("{}..{}", i * 100, i * 100 + 100)));
    job.run().await.unwrap();
    let seen = seen(&journal, "s");
    (job, seen)
}

#[tokio::test]
async fn no_row_is_lost_or_doubled_on_the_way_over_any_exchange() {
    for partitioner in [Partitioner::Hash { keys: vec![0] }, Partitioner::Rebalance, Partitioner::Global] {
        let (_, seen) = exchange(partitioner, "8192", "2", "8").await;
        assert_eq!(sorted(rows(&seen)), (0..600).collect::<Vec<_>>());
        check_event_time(&seen);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_that_race_lose_nothing() {
    for buffers in ["1", "2"] {
        for _ in 0..20 {
            let (job, seen) = exchange(Partitioner::Hash { keys: vec![0] }, "5", buffers, buffers).await;
            assert_eq!(sorted(rows(&seen)), (0..600).collect::<Vec<_>>());
            check_event_time(&seen);
            assert_eq!(job.shuffle.network().bytes(), 0);
        }
    }
}

#[tokio::test]
async fn broadcast_brings_all_rows_to_all() {
    let (_, seen) = exchange(Partitioner::Broadcast, "100", "2", "8").await;
    assert_eq!(sorted(rows(&seen)), sorted((0..600).chain(0..600).collect()));
    check_event_time(&seen);
}

#[tokio::test]
async fn one_buffer_and_one_row_at_a_time_is_slow_but_moves() {
    let (job, seen) = exchange(Partitioner::Hash { keys: vec![0] }, "1", "1", "0").await;
    assert_eq!(sorted(rows(&seen)), (0..600).collect::<Vec<_>>());
    check_event_time(&seen);
    let counters = job.shuffle.counters();
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!((load(&counters.batch_rows_max), load(&counters.buffers_in_flight_max)), (1, 1));
    assert_eq!((load(&counters.buffers), load(&counters.subtasks_run)), (1200, 6));
    assert_eq!(job.shuffle.network().bytes(), 0);
}

#[tokio::test]
async fn a_diamond_with_one_buffer_does_not_lock_up() {
    let (mut job, journal) = job();
    job.configuration.set("execution.batch-rows", "3").unwrap();
    job.configuration.set("taskmanager.network.memory.buffers-per-channel", "1").unwrap();
    job.configuration.set("taskmanager.network.memory.floating-buffers-per-gate", "0").unwrap();
    let top = job.vertex(1, vec![source("t")]);
    let (left, right) = (job.vertex(2, vec![pass()]), job.vertex(1, vec![pass()]));
    let bottom = job.vertex(1, vec![sink("s")]);
    job.edge(top, left, 0, Partitioner::Rebalance);
    job.edge(top, right, 0, Partitioner::Forward);
    job.edge(left, bottom, 0, Partitioner::Global);
    job.edge(right, bottom, 1, Partitioner::Forward);
    job.splits.add(job.operator_id(top, 0), ["0..500".to_string()]);
    job.run().await.unwrap();
    let seen = seen(&journal, "s");
    assert_eq!(sorted(rows(&seen)), sorted((0..500).chain(0..500).collect()));
    check_event_time(&seen);
    assert!(seen.contains(&Seen::End(0)) && seen.contains(&Seen::End(1)));
}

#[tokio::test]
async fn flushes_are_aligned_over_channels_that_end_before() {
    let (mut job, journal) = job();
    let source = job.vertex(2, vec![source("flushing")]);
    let target = job.vertex(1, vec![sink("s")]);
    job.edge(source, target, 0, Partitioner::Global);
    job.splits.add(job.operator_id(source, 0), ["0..40".to_string()]);
    job.run().await.unwrap();
    let seen = seen(&journal, "s");
    assert_eq!(seen.iter().filter(|seen| **seen == Seen::Flush).count(), 1);
    let before = seen.iter().position(|seen| *seen == Seen::Flush).unwrap();
    assert_eq!(rows(&seen[..before]), (0..40).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_limit_ends_an_endless_source() {
    let (mut job, journal) = job();
    let source = job.vertex(1, vec![source("t")]);
    let limit = job.vertex(1, vec![OperatorSpec::Limit { offset: 0, fetch: Some(30) }, sink("s")]);
    job.edge(source, limit, 0, Partitioner::Rebalance);
    job.splits.add(job.operator_id(source, 0), [format!("0..{}", i64::MAX)]);
    job.run().await.unwrap();
    let seen = seen(&journal, "s");
    assert_eq!(rows(&seen), (0..30).collect::<Vec<_>>());
    assert_eq!(seen.last(), Some(&Seen::Finish));
}

#[tokio::test]
async fn a_failure_names_the_operator_and_ends_the_others() {
    for (table, message) in [("failing", "bad row"), ("panicking", "task v1 (1/1) panicked: lost my head")] {
        let (mut job, _) = job();
        let source = job.vertex(1, vec![source("t")]);
        let target = job.vertex(1, vec![pass(), sink(table)]);
        job.edge(source, target, 0, Partitioner::Rebalance);
        job.splits.add(job.operator_id(source, 0), [format!("0..{}", i64::MAX)]);
        let error = job.run().await.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.operator()), (message, Some("v1.1")));
    }
}

#[tokio::test]
async fn a_cancelled_job_ends_though_its_source_does_not() {
    let (mut job, _) = job();
    let source = job.vertex(2, vec![source("t")]);
    let target = job.vertex(2, vec![sink("s")]);
    job.edge(source, target, 0, Partitioner::Hash { keys: vec![0] });
    job.splits.add(job.operator_id(source, 0), [format!("0..{}", i64::MAX), format!("0..{}", i64::MAX)]);
    let handles = job.start().unwrap();
    tokio::task::yield_now().await;
    handles.iter().for_each(TaskHandle::cancel);
    for handle in &handles {
        assert!(matches!(handle.ended().await, TaskStatus::Canceled));
    }
    assert_eq!(job.shuffle.network().bytes(), 0);
}

#[tokio::test]
async fn metrics_count_what_went_through() {
    let (mut job, _) = job();
    let source = job.vertex(1, vec![source("t"), pass()]);
    let target = job.vertex(1, vec![sink("s")]);
    job.edge(source, target, 0, Partitioner::Forward);
    job.splits.add(job.operator_id(source, 0), ["0..100".to_string()]);
    let handles = job.run().await.unwrap();
    let metrics = |vertex: u32| handles.iter().find(|handle| handle.attempt().vertex == VertexId(vertex)).unwrap().metrics();
    assert_eq!((metrics(0).rows_out, metrics(1).rows_in), (100, 100));
    assert_eq!(metrics(0).operators.iter().map(|operator| operator.rows_out).collect::<Vec<_>>(), [100, 100]);
    assert_eq!((metrics(1).operators[0].rows_in, metrics(1).input_watermark), (100, i64::MAX));
}

#[tokio::test]
async fn sources_send_latency_markers_when_asked_to() {
    for (interval, markers) in [("0 ms", 0), ("1 h", 2)] {
        let (mut job, _) = job();
        job.configuration.set("metrics.latency.interval", interval).unwrap();
        let source = job.vertex(2, vec![source("t")]);
        let middle = job.vertex(1, vec![pass()]);
        let target = job.vertex(1, vec![sink("s")]);
        job.edge(source, middle, 0, Partitioner::Global);
        job.edge(middle, target, 0, Partitioner::Rebalance);
        job.splits.add(job.operator_id(source, 0), ["0..100".to_string()]);
        let handles = job.run().await.unwrap();
        let metrics = |vertex: u32| handles.iter().find(|handle| handle.attempt().vertex == VertexId(vertex)).unwrap().metrics();
        assert_eq!([0, 1, 2].map(|vertex| metrics(vertex).latency_markers), [0, markers, markers], "{interval}");
    }
}

#[tokio::test]
async fn sources_that_are_stopped_end_as_if_they_had_read_all() {
    let (mut job, journal) = job();
    let source = job.vertex(2, vec![source("t")]);
    let target = job.vertex(1, vec![sink("s")]);
    job.edge(source, target, 0, Partitioner::Global);
    job.splits.add(job.operator_id(source, 0), [format!("0..{}", i64::MAX)]);
    let handles = job.start().unwrap();
    tokio::task::yield_now().await;
    handles.iter().for_each(|handle| handle.mailbox().send(crate::runtime::task::Mail::StopSources));
    for handle in &handles {
        assert!(matches!(handle.ended().await, TaskStatus::Finished));
    }
    assert_eq!(seen(&journal, "s").last(), Some(&Seen::Finish));
}

#[tokio::test]
async fn a_limit_far_down_ends_all_tasks_above_it() {
    let (mut job, journal) = job();
    let source = job.vertex(2, vec![source("t")]);
    let middle = job.vertex(3, vec![pass()]);
    let limit = job.vertex(1, vec![OperatorSpec::Limit { offset: 0, fetch: Some(5) }]);
    let target = job.vertex(1, vec![sink("s")]);
    job.edge(source, middle, 0, Partitioner::Rebalance);
    job.edge(middle, limit, 0, Partitioner::Global);
    job.edge(limit, target, 0, Partitioner::Forward);
    let endless = || format!("0..{}", i64::MAX);
    job.splits.add(job.operator_id(source, 0), [endless(), endless()]);
    job.run().await.unwrap();
    assert_eq!(rows(&seen(&journal, "s")).len(), 5);
}

#[tokio::test]
async fn a_step_does_no_more_than_its_budget() {
    let (mut job, journal) = job();
    let task = job.vertex(1, vec![source("t"), sink("s")]);
    job.splits.add(job.operator_id(task, 0), [format!("0..{}", i64::MAX)]);
    let (mut task, _) = job.build().unwrap().pop().unwrap();
    let mut context = Context::from_waker(std::task::Waker::noop());
    for steps in 1..4 {
        assert!(task.step(&mut context, 2).is_ready());
        assert_eq!(rows(&seen(&journal, "s")).len(), steps * 2 * 25);
    }
}
