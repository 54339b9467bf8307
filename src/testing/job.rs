//! A few wired tasks without any cluster: vertices with chains, edges between them, run to their end.
//!
//! ```text
//! let mut job = TestJob::new(environment);
//! let source = job.vertex(2, vec![source_spec]);
//! let sink = job.vertex(1, vec![sink_spec]);
//! job.edge(source, sink, 0, Partitioner::Rebalance);
//! job.run().await?;
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::config::{Configuration, STATE_TTL};
use crate::error::{Error, Result};
use crate::runtime::channel::ShuffleEnvironment;
use crate::runtime::checkpoint::{CheckpointResponder, TaskSnapshot};
use crate::runtime::state::MemoryManager;
use crate::runtime::task::{
    ChainLink, ChainedOperator, ExecutionAttemptId, InputGateDescriptor, ResultPartitionDescriptor, ResultPartitionId,
    SplitAssignment, SplitProvider, StreamTask, SubpartitionId, TaskDescriptor, TaskHandle, TaskServices, TaskStatus,
};
use crate::runtime::{Environment, Split};
use crate::stream_graph::{OperatorSpec, Partitioner};
use crate::types::{InputNumber, JobId, OperatorId, SubtaskIndex, VertexId};

/// The splits of all sources, handed out one by one, or all of a subtask's at once.
#[derive(Debug, Default)]
pub struct TestSplits {
    queues: Mutex<BTreeMap<OperatorId, VecDeque<Split>>>,
    given: Mutex<BTreeMap<(OperatorId, SubtaskIndex), u64>>,
    /// Whether a reader gets all its splits (every parallelism-th one) with its first request.
    pub all_at_start: Option<u32>,
}

impl TestSplits {
    /// Splits `0 .. count` for a source.
    pub fn add(&self, operator: OperatorId, states: impl IntoIterator<Item = String>) {
        let splits = states.into_iter().enumerate();
        let splits = splits.map(|(id, state)| Split { id: crate::types::SplitId(id as u64), state });
        self.queues.lock().unwrap().insert(operator, splits.collect());
    }
}

impl SplitProvider for TestSplits {
    fn request_splits(&self, operator: OperatorId, subtask: SubtaskIndex) -> BoxFuture<'static, Result<Option<SplitAssignment>>> {
        let mut queues = self.queues.lock().unwrap();
        let queue = queues.entry(operator).or_default();
        let answer = match self.all_at_start {
            None => queue.pop_front().map(|split| vec![split]),
            Some(parallelism) => {
                let is_mine = |split: &Split| split.id.0 % u64::from(parallelism) == u64::from(subtask.0);
                let (mine, others) = queue.drain(..).partition::<Vec<_>, _>(is_mine);
                queue.extend(others);
                (!mine.is_empty()).then_some(mine)
            }
        };
        let mut given = self.given.lock().unwrap();
        let given = given.entry((operator, subtask)).or_default();
        let answer = answer.map(|splits| {
            let before = *given;
            *given += splits.len() as u64;
            SplitAssignment { before, splits }
        });
        async move { Ok(answer) }.boxed()
    }
}

/// Keeps what tasks say of checkpoints.
#[derive(Debug, Default)]
pub struct TestResponder {
    /// The snapshots, in the order in which they came.
    pub snapshots: Mutex<Vec<TaskSnapshot>>,
}

impl CheckpointResponder for TestResponder {
    fn acknowledge(&self, snapshot: TaskSnapshot) {
        self.snapshots.lock().unwrap().push(snapshot);
    }
}

struct TestVertex {
    parallelism: u32,
    operators: Vec<OperatorSpec>,
}

struct TestEdge {
    source: usize,
    target: usize,
    input: InputNumber,
    partitioner: Partitioner,
}

/// A job without a cluster.
pub struct TestJob {
    /// Settings.
    pub configuration: Configuration,
    /// Splits of the sources.
    pub splits: Arc<TestSplits>,
    /// Channels.
    pub shuffle: Arc<ShuffleEnvironment>,
    /// State.
    pub memory: Arc<MemoryManager>,
    /// What its tasks have said of checkpoints.
    pub checkpoints: Arc<TestResponder>,
    environment: Arc<Environment>,
    vertices: Vec<TestVertex>,
    edges: Vec<TestEdge>,
}

impl TestJob {
    /// A job without vertices.
    pub fn new(environment: Arc<Environment>) -> Self {
        let memory = MemoryManager::new(0);
        TestJob {
            configuration: Configuration::default(),
            splits: Arc::default(),
            shuffle: ShuffleEnvironment::new(Arc::clone(&memory)),
            memory,
            checkpoints: Arc::default(),
            environment,
            vertices: Vec::new(),
            edges: Vec::new(),
        }
    }

    /// What its tasks share.
    pub fn environment(&self) -> &Arc<Environment> {
        &self.environment
    }

    /// A vertex with these operators in a row.
    pub fn vertex(&mut self, parallelism: u32, operators: Vec<OperatorSpec>) -> usize {
        self.vertices.push(TestVertex { parallelism, operators });
        self.vertices.len() - 1
    }

    /// An edge.
    pub fn edge(&mut self, source: usize, target: usize, input: u8, partitioner: Partitioner) {
        self.edges.push(TestEdge { source, target, input: InputNumber(input), partitioner });
    }

    /// The id of an operator.
    pub fn operator_id(&self, vertex: usize, position: usize) -> OperatorId {
        OperatorId(vertex as u128 * 100 + position as u128)
    }

    fn attempt(&self, vertex: usize, subtask: u32) -> ExecutionAttemptId {
        ExecutionAttemptId { job: JobId(1), vertex: VertexId(vertex as u32), subtask: SubtaskIndex(subtask), attempt: 0 }
    }

    /// The task of a subtask.
    pub fn descriptor(&self, vertex: usize, subtask: u32) -> TaskDescriptor {
        let TestVertex { parallelism, operators } = &self.vertices[vertex];
        let outgoing: Vec<&TestEdge> = self.edges.iter().filter(|edge| edge.source == vertex).collect();
        let partition = |(data_set, edge): (usize, &&TestEdge)| ResultPartitionDescriptor {
            id: ResultPartitionId { producer: self.attempt(vertex, subtask), data_set: data_set as u32 },
            partitioner: edge.partitioner.clone(),
            subpartitions: if edge.partitioner == Partitioner::Forward { 1 } else { self.vertices[edge.target].parallelism },
        };
        let partitions: Vec<_> = outgoing.iter().enumerate().map(partition).collect();
        let operator = |(position, spec): (usize, &OperatorSpec)| ChainedOperator {
            id: self.operator_id(vertex, position),
            name: format!("v{vertex}.{position}"),
            spec: spec.clone(),
            state_ttl_ms: vec![self.configuration.duration_ms(&STATE_TTL); 2],
            links: if position + 1 < operators.len() {
                vec![ChainLink::Operator { index: position + 1, input: InputNumber(0) }]
            } else {
                (0..partitions.len()).map(ChainLink::Partition).collect()
            },
            late_links: Vec::new(),
        };
        TaskDescriptor {
            attempt: self.attempt(vertex, subtask),
            name: format!("v{vertex}"),
            parallelism: *parallelism,
            max_parallelism: 128,
            job_start_ms: self.environment.clock.now_ms(),
            configuration: Arc::new(self.configuration.clone()),
            operators: operators.iter().enumerate().map(operator).collect(),
            gates: self.edges.iter().filter(|edge| edge.target == vertex).map(|edge| self.gate(edge, subtask)).collect(),
            partitions,
            restore: None,
        }
    }

    fn gate(&self, edge: &TestEdge, subtask: u32) -> InputGateDescriptor {
        let same_source = self.edges.iter().filter(|other| other.source == edge.source);
        let data_set = same_source.take_while(|other| !std::ptr::eq(*other, edge)).count() as u32;
        let channel = |producer, index| SubpartitionId {
            partition: ResultPartitionId { producer: self.attempt(edge.source, producer), data_set },
            index,
        };
        let channels = match edge.partitioner {
            Partitioner::Forward => vec![channel(subtask, 0)],
            _ => (0..self.vertices[edge.source].parallelism).map(|producer| channel(producer, subtask)).collect(),
        };
        InputGateDescriptor { input: edge.input, channels }
    }

    /// Builds all tasks, consumers first (so that both orders of meeting are tried somewhere).
    pub fn build(&self) -> Result<Vec<(StreamTask, TaskHandle)>> {
        let services = TaskServices {
            shuffle: Arc::clone(&self.shuffle),
            splits: Arc::clone(&self.splits) as Arc<dyn SplitProvider>,
            memory: Arc::clone(&self.memory),
            checkpoints: Arc::clone(&self.checkpoints) as Arc<dyn CheckpointResponder>,
        };
        let subtasks = (0..self.vertices.len()).rev().flat_map(|v| (0..self.vertices[v].parallelism).map(move |s| (v, s)));
        let build = |(v, s)| StreamTask::new(self.descriptor(v, s), Arc::clone(&self.environment), &services, None);
        subtasks.map(build).collect()
    }

    /// Starts all tasks on the current tokio runtime.
    pub fn start(&self) -> Result<Vec<TaskHandle>> {
        let start = |(task, handle): (StreamTask, TaskHandle)| {
            crate::clock::spawn(task.map(drop));
            handle
        };
        Ok(self.build()?.into_iter().map(start).collect())
    }

    /// Runs all tasks to their end; the first failure is the result, and cancels the others.
    pub async fn run(&self) -> Result<Vec<TaskHandle>> {
        let handles = self.start()?;
        let mut failure: Option<Error> = None;
        let mut ends: futures::stream::FuturesUnordered<_> = handles.iter().map(TaskHandle::ended).collect();
        while let Some(end) = futures::StreamExt::next(&mut ends).await {
            if let TaskStatus::Failed(error) = end {
                failure.get_or_insert(error);
                handles.iter().for_each(TaskHandle::cancel);
            }
        }
        drop(ends);
        failure.map_or(Ok(handles), Err)
    }
}

#[cfg(test)]
mod tests;
