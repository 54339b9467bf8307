//! A small world for MiniCluster tests: numbered splits, operators that do what their names say, and a builder of job graphs.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use arrow::array::{AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use futures::StreamExt;

use crate::catalog::ObjectPath;
use crate::clock::{Clock, SystemClock};
use crate::cluster::{AwaitResult, Dispatcher, JobResult, MiniCluster, MiniClusterOptions, SubmitJob};
use crate::error::{Error, ErrorKind, Result};
use crate::job_graph::JobGraph;
use crate::rpc::Gateway;
use crate::runtime::checkpoint::LocalStores;
use crate::runtime::state::MemoryManager;
use crate::runtime::{
    ConnectorFactory, Environment, FlushId, Operator, OperatorContext, OperatorFactory, Output, ReaderContext, ResultHub,
    ResultSender, ResultStream, SinkContext, SinkWriter, Source, SourceOperator, SourceReader, SourceStatus, Split,
    SplitEnumerator,
};
use crate::stream_graph::{
    ChainingStrategy, ExchangeMode, OperatorSpec, Partitioner, SinkSpec, SourceSpec, StreamEdge, StreamGraph, StreamNode,
    StreamNodeId,
};
use crate::types::{Batch, ChangelogMode, InputNumber, JobId, ResultId, Schema, SplitId};

/// Rows of a split: the numbers from 100 times its id.
pub const SPLIT_ROWS: i64 = 100;

/// How long a test waits for what must happen at once.
pub const SOON: Duration = Duration::from_secs(20);

/// Sources by the option `splits` (how many at first), `discovers` (one more at each look), `all-at-start`, `endless` and `missing`.
struct TestConnectors;

struct TestSource(BTreeMap<String, String>);

struct TestEnumerator {
    first: u64,
    discovers: bool,
    all_at_start: bool,
    next: u64,
}

impl ConnectorFactory for TestConnectors {
    fn source(&self, spec: &SourceSpec) -> Result<Box<dyn Source>> {
        Ok(Box::new(TestSource(spec.options.clone())))
    }

    fn sink(&self, _: &SinkSpec, _: SinkContext) -> Result<Box<dyn SinkWriter>> {
        Err(Error::unsupported("a sink in this test"))
    }
}

impl Source for TestSource {
    fn enumerator(&self, _: u32) -> Result<Box<dyn SplitEnumerator>> {
        if self.0.contains_key("missing") {
            return Err(Error::new(ErrorKind::FileNotFound, "no such file"));
        }
        let first = self.0.get("splits").map_or(0, |splits| splits.parse().unwrap());
        let (discovers, all_at_start) = (self.0.contains_key("discovers"), self.0.contains_key("all-at-start"));
        Ok(Box::new(TestEnumerator { first, discovers, all_at_start, next: 0 }))
    }

    fn reader(&self, _: ReaderContext) -> Result<Box<dyn SourceReader>> {
        Err(Error::internal("the test operators read splits themselves"))
    }
}

impl SplitEnumerator for TestEnumerator {
    fn discover(&mut self) -> Result<Vec<Split>> {
        let until = if self.next == 0 { self.first } else { self.next + 1 };
        let found = self.next..until;
        self.next = until;
        Ok(found.map(|id| Split { id: SplitId(id), state: String::new() }).collect())
    }

    fn discovery_interval_ms(&self) -> Option<u64> {
        self.discovers.then_some(1000)
    }

    fn assign_all_at_start(&self) -> bool {
        self.all_at_start
    }

    fn snapshot(&self) -> String {
        self.next.to_string()
    }

    fn restore(&mut self, state: &str) -> Result<()> {
        self.next = state.parse().unwrap();
        Ok(())
    }
}

/// Operators that do what their names say: `by zero` fails, `panics` panics, `too big` does when it is built; all else hands on.
struct TestOperators {
    built: AtomicU64,
}

impl OperatorFactory for TestOperators {
    fn build(&self, spec: &OperatorSpec, context: &OperatorContext) -> Result<Box<dyn Operator>> {
        self.built.fetch_add(1, Ordering::Relaxed);
        if context.name == "too big" {
            return Err(Error::new(ErrorKind::OutOfMemory, "too big"));
        }
        Ok(match spec {
            OperatorSpec::Collect { result, .. } => {
                Box::new(Collect(context.environment.results.take(*result, context.restored, false)?))
            }
            _ => Box::new(Named(context.name.clone())),
        })
    }

    fn build_source(&self, spec: &OperatorSpec, _: &OperatorContext) -> Result<Option<Box<dyn SourceOperator>>> {
        Ok(match spec {
            OperatorSpec::Source(spec) => {
                let endless = spec.options.contains_key("endless");
                let flush = spec.options.get("flush").map(|id| FlushId(id.parse().unwrap()));
                Some(Box::new(Reader { splits: VecDeque::new(), no_more: false, endless, flush, next: 0 }))
            }
            _ => None,
        })
    }
}

struct Named(String);

impl Operator for Named {
    fn open(&mut self, _: &OperatorContext) -> Result<()> {
        Ok(())
    }

    fn process_batch(&mut self, _: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        match self.0.as_str() {
            "by zero" => Err(Error::new(ErrorKind::DivisionByZero, "division by zero")),
            "panics" => panic!("index out of bounds"),
            _ => output.batch(batch),
        }
    }
}

struct Collect(ResultSender);

impl Operator for Collect {
    fn open(&mut self, _: &OperatorContext) -> Result<()> {
        Ok(())
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.0.poll_ready(context).map(Ok)
    }

    fn process_batch(&mut self, _: InputNumber, batch: Batch, _: &mut dyn Output) -> Result<()> {
        self.0.send(batch);
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn Output) -> Result<()> {
        self.0.finish();
        Ok(())
    }
}

struct Reader {
    splits: VecDeque<Split>,
    no_more: bool,
    /// Makes rows for ever instead of reading splits.
    endless: bool,
    /// Due after the first split.
    flush: Option<FlushId>,
    next: i64,
}

impl SourceOperator for Reader {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        self.splits.extend(splits);
        Ok(())
    }

    fn no_more_splits(&mut self) {
        self.no_more = true;
    }

    fn poll(&mut self, _: &mut Context<'_>, output: &mut dyn Output) -> Poll<Result<SourceStatus>> {
        if self.endless {
            self.next += 1;
            output.batch(numbers(self.next))?;
            return Poll::Ready(Ok(SourceStatus::More));
        }
        let Some(split) = self.splits.pop_front() else {
            let flush = if self.next > 0 { self.flush.take().map(SourceStatus::Flush) } else { None };
            let status = if self.no_more { SourceStatus::End } else { SourceStatus::NeedSplits };
            return Poll::Ready(Ok(flush.unwrap_or(status)));
        };
        self.next += 1;
        output.batch(numbers(split.id.0 as i64))?;
        Poll::Ready(Ok(SourceStatus::More))
    }
}

fn numbers(split: i64) -> Batch {
    let numbers = Int64Array::from_iter_values(split * SPLIT_ROWS..(split + 1) * SPLIT_ROWS);
    Batch::new(vec![Arc::new(numbers)], SPLIT_ROWS as usize)
}

/// The numbers of a batch.
pub fn values(batch: &Batch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

/// A job graph in the making: operators in a row.
pub struct Job {
    graph: StreamGraph,
    schema: Arc<Schema>,
}

impl Job {
    /// Begins with a source.
    pub fn source(parallelism: u32, options: &[(&str, &str)]) -> Self {
        let schema = Arc::new(Schema::new(Vec::new()));
        let spec = SourceSpec {
            table: ObjectPath { catalog: "c".into(), database: "d".into(), name: "t".into() },
            connector: "test".into(),
            options: options.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            base_dir: PathBuf::new(),
            physical: schema.clone(),
            projection: Vec::new(),
            metadata: Vec::new(),
            partition_keys: Vec::new(),
            computed: None,
            watermark: None,
            predicate: None,
            limit: None,
            changelog: ChangelogMode::InsertOnly,
            primary_key: Vec::new(),
            schema: schema.clone(),
        };
        let mut job = Job { graph: StreamGraph { name: "test".into(), ..StreamGraph::default() }, schema };
        job.add("Source: t", OperatorSpec::Source(Box::new(spec)), parallelism);
        job
    }

    /// Then an operator of this name. Forward edges are chained.
    pub fn then(mut self, name: &str, partitioner: Partitioner, parallelism: u32) -> Self {
        self.add(name, OperatorSpec::Calc { predicate: None, projection: None }, parallelism);
        self.connect(partitioner);
        self
    }

    /// Ends in a collected result.
    pub fn collect(mut self, result: ResultId) -> JobGraph {
        let schema = self.schema.clone();
        self.add("Collect", OperatorSpec::Collect { result, schema }, 1);
        let before = self.graph.nodes[self.graph.nodes.len() - 2].parallelism;
        self.connect(if before == 1 { Partitioner::Forward } else { Partitioner::Rebalance });
        crate::job_graph::generate(&self.graph).unwrap()
    }

    fn add(&mut self, name: &str, spec: OperatorSpec, parallelism: u32) {
        self.graph.nodes.push(StreamNode {
            id: StreamNodeId(self.graph.nodes.len() as u32 + 1),
            uid: None,
            name: name.into(),
            description: name.into(),
            spec,
            parallelism,
            max_parallelism: 128,
            chaining: ChainingStrategy::Always,
            slot_sharing_group: "default".into(),
            state_ttl_ms: Vec::new(),
            state: None,
            schema: self.schema.clone(),
            changelog: ChangelogMode::InsertOnly,
        });
    }

    fn connect(&mut self, partitioner: Partitioner) {
        let target = self.graph.nodes.len() as u32;
        self.graph.edges.push(StreamEdge {
            source: StreamNodeId(target - 1),
            target: StreamNodeId(target),
            input: InputNumber(0),
            partitioner,
            exchange: ExchangeMode::Pipelined,
            late: None,
        });
    }
}

/// A cluster with its results.
pub struct World {
    pub cluster: MiniCluster,
    pub dispatcher: Gateway<Dispatcher>,
    results: Arc<ResultHub>,
    next_result: AtomicU64,
}

impl World {
    pub fn new() -> Self {
        World::with_clock(Arc::new(SystemClock::new()))
    }

    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        World::with(clock, MiniClusterOptions { worker_threads: 2, slots: 16 })
    }

    /// What its tasks find around them.
    pub fn environment(clock: Arc<dyn Clock>) -> Arc<Environment> {
        Arc::new(Environment {
            clock,
            functions: Arc::default(),
            connectors: Arc::new(TestConnectors),
            operators: Arc::new(TestOperators { built: AtomicU64::new(0) }),
            results: Arc::new(ResultHub::default()),
            stores: Arc::new(LocalStores::default()),
        })
    }

    fn with(clock: Arc<dyn Clock>, options: MiniClusterOptions) -> Self {
        let environment = World::environment(clock);
        let results = Arc::clone(&environment.results);
        let cluster = MiniCluster::start(environment, MemoryManager::new(0), options).unwrap();
        World { dispatcher: cluster.dispatcher(), cluster, results, next_result: AtomicU64::new(1) }
    }

    /// Submits a job that is collected.
    pub async fn submit(&self, job: Job) -> (JobId, ResultStream) {
        let result = ResultId(self.next_result.fetch_add(1, Ordering::Relaxed));
        let stream = self.results.register(result);
        let job = self.dispatcher.ask(SubmitJob { graph: job.collect(result) }, Some(SOON)).await.unwrap();
        (job, stream)
    }

    pub async fn outcome(&self, job: JobId) -> JobResult {
        self.dispatcher.ask(AwaitResult { job }, Some(SOON)).await.unwrap()
    }

    /// Runs a job to its end: its outcome and the sorted numbers that came out.
    pub async fn run(&self, job: Job) -> (JobResult, Vec<i64>) {
        let (job, mut stream) = self.submit(job).await;
        let mut all = Vec::new();
        let closer = stream.closer();
        let read = async {
            while let Some(batch) = stream.next().await {
                all.extend(values(&batch.unwrap()));
            }
        };
        let end = async {
            let outcome = self.outcome(job).await;
            closer(Ok(()));
            outcome
        };
        let (outcome, ()) = futures::join!(end, read);
        all.sort_unstable();
        (outcome, all)
    }
}
