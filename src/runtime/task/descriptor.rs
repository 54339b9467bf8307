//! What a task is, as data: its chain of operators, where its input comes from and where its output goes.
//!
//! Made by the JobMaster from the JobGraph for each subtask, sent to the task executor, turned into a
//! [`StreamTask`](super::StreamTask) there. Nothing in it is a closure or a pointer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::Configuration;
use crate::runtime::checkpoint::TaskRestore;
use crate::stream_graph::{LateOutput, OperatorSpec, Partitioner};
use crate::types::{InputNumber, JobId, OperatorId, SubtaskIndex, VertexId};

/// One attempt to run one subtask of a vertex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExecutionAttemptId {
    /// The job.
    pub job: JobId,
    /// The vertex.
    pub vertex: VertexId,
    /// The subtask.
    pub subtask: SubtaskIndex,
    /// How often it was started before.
    pub attempt: u32,
}

/// What one attempt writes for one job edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResultPartitionId {
    /// Who writes it.
    pub producer: ExecutionAttemptId,
    /// Which of the producer's outputs, from 0 in the order of its intermediate data sets.
    pub data_set: u32,
}

/// The part of a result partition that one consumer subtask reads: the name of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SubpartitionId {
    /// The partition.
    pub partition: ResultPartitionId,
    /// The part, from 0.
    pub index: u32,
}

/// An output of a task that leaves its chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultPartitionDescriptor {
    /// Its id.
    pub id: ResultPartitionId,
    /// How rows are spread over its parts.
    pub partitioner: Partitioner,
    /// Its parts: 1 for FORWARD, the consumer's parallelism for all-to-all edges, the consumers of this subtask for RESCALE.
    pub subpartitions: u32,
}

/// An input of a task: the channels of one job edge. Several gates with one input number are a union.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputGateDescriptor {
    /// Which input of the head operator it feeds.
    pub input: InputNumber,
    /// Its channels, in the order of the producer's subtasks.
    pub channels: Vec<SubpartitionId>,
}

/// Where the output of an operator of a chain goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChainLink {
    /// To a later operator of the chain, by direct call.
    Operator {
        /// Its position in [`TaskDescriptor::operators`].
        index: usize,
        /// Which input of it.
        input: InputNumber,
    },
    /// To a result partition, by position in [`TaskDescriptor::partitions`].
    Partition(usize),
}

/// An operator of a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChainedOperator {
    /// Its id.
    pub id: OperatorId,
    /// Its name, for errors and metrics.
    pub name: String,
    /// What it is.
    pub spec: OperatorSpec,
    /// State of each input that is not written for so long is dropped, milliseconds; 0, or none for an input = kept for ever.
    pub state_ttl_ms: Vec<u64>,
    /// Where its output goes; none for sinks.
    pub links: Vec<ChainLink>,
    /// Where the rows go that came too late for it.
    #[serde(default)]
    pub late_links: Vec<LateLink>,
}

/// Where rows go that came too late for an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateLink {
    /// Which rows.
    pub output: LateOutput,
    /// Where to.
    pub link: ChainLink,
}

/// A task: one subtask of one vertex.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDescriptor {
    /// Which attempt it is.
    pub attempt: ExecutionAttemptId,
    /// Name of the vertex, `Source: t -> Calc -> Sink: s`.
    pub name: String,
    /// Subtasks of the vertex.
    pub parallelism: u32,
    /// Key groups of the vertex.
    pub max_parallelism: u32,
    /// When the job was submitted, milliseconds since the epoch.
    pub job_start_ms: i64,
    /// Settings of the job.
    pub configuration: Arc<Configuration>,
    /// The chain, the head first, every operator after the one that feeds it (depth first).
    pub operators: Vec<ChainedOperator>,
    /// Inputs of the head; none for sources.
    pub gates: Vec<InputGateDescriptor>,
    /// Outputs that leave the chain.
    pub partitions: Vec<ResultPartitionDescriptor>,
    /// The state that it starts from.
    pub restore: Option<TaskRestore>,
}

impl TaskDescriptor {
    /// `name (2/4)`: as shown in errors and metrics, subtasks counted from 1 as in Flink.
    pub fn display_name(&self) -> String {
        format!("{} ({}/{})", self.name, self.attempt.subtask.0 + 1, self.parallelism)
    }
}
