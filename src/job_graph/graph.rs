//! Vertices, data sets and edges of the JobGraph.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::NotChained;
use crate::stream_graph::{ExchangeMode, LateOutput, OperatorSpec, Partitioner, StreamNodeId};
use crate::types::{ChangelogMode, InputNumber, OperatorId, SchemaRef, VertexId};

/// A job as it is submitted: what runs, after chaining.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobGraph {
    /// Name.
    pub name: String,
    /// Vertices by rising id, each after all those that it reads from.
    pub vertices: Vec<JobVertex>,
    /// Settings of the job: only those that were set.
    pub configuration: BTreeMap<String, String>,
}

/// A chain of operators that run in one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobVertex {
    /// Number, its position in the graph.
    pub id: VertexId,
    /// `[vertex-0]Source: bids[1] -> Calc[2]`.
    pub name: String,
    /// The operators' descriptions in the same form.
    pub description: String,
    /// The operators in depth-first order; the first is the head, which all inputs go to.
    pub operators: Vec<ChainedOperator>,
    /// How they follow one another: direct calls.
    pub chain: Vec<ChainEdge>,
    /// What it reads.
    pub inputs: Vec<JobEdge>,
    /// What it writes.
    pub results: Vec<IntermediateDataSet>,
    /// Subtasks.
    pub parallelism: u32,
    /// Key groups.
    pub max_parallelism: u32,
    /// Subtasks of vertices of one group may share a slot.
    pub slot_sharing_group: String,
}

/// An operator in a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChainedOperator {
    /// Its id, stable across restarts: what state is found again by.
    pub id: OperatorId,
    /// The user's id, if given.
    pub uid: Option<String>,
    /// The node of the StreamGraph that it was.
    pub node: StreamNodeId,
    /// Short name.
    pub name: String,
    /// What it does in one line.
    pub description: String,
    /// What it is.
    pub spec: OperatorSpec,
    /// State of each input that is not written for so long is dropped, milliseconds; 0, or none for an input = kept for ever.
    pub state_ttl_ms: Vec<u64>,
    /// Output columns.
    pub schema: SchemaRef,
    /// Which changes it emits.
    pub changelog: ChangelogMode,
}

/// From one operator of a chain to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainEdge {
    /// Position of the producer in the chain.
    pub source: usize,
    /// Position of the consumer in the chain.
    pub target: usize,
    /// Which input of the consumer.
    pub input: InputNumber,
    /// Which side output of the producer; none = what it emits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateOutput>,
}

/// A data set between two vertices, numbered across the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DataSetId(pub u32);

/// What a vertex writes for one consumer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntermediateDataSet {
    /// Number.
    pub id: DataSetId,
    /// Position in the chain of the operator that writes it.
    pub producer: usize,
    /// How rows are spread over the consumer's subtasks.
    pub partitioner: Partitioner,
    /// When the consumer may start.
    pub exchange: ExchangeMode,
    /// Who reads it.
    pub consumer: VertexId,
    /// Columns of its rows.
    pub schema: SchemaRef,
    /// Which side output of the producer; none = what it emits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateOutput>,
}

/// Which subtasks of two vertices are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DistributionPattern {
    /// Each with one or a few of the other side.
    Pointwise,
    /// Each with all of the other side.
    AllToAll,
}

/// What a vertex reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEdge {
    /// The data set.
    pub source: DataSetId,
    /// Who writes it.
    pub producer: VertexId,
    /// Who reads it.
    pub target: VertexId,
    /// Which input of the head operator. Several edges of one number are a union.
    pub input: InputNumber,
    /// How rows are spread.
    pub partitioner: Partitioner,
    /// Which subtasks are connected.
    pub distribution: DistributionPattern,
    /// `FORWARD`, `HASH`, `REBALANCE` …
    pub ship_strategy: String,
    /// Whether subtask i feeds subtask i.
    pub is_forward: bool,
    /// Whether every subtask gets all rows.
    pub is_broadcast: bool,
    /// Why its ends do not share a task.
    pub not_chained: NotChained,
    /// When the consumer may start.
    pub exchange: ExchangeMode,
}

impl JobGraph {
    /// A vertex by its id.
    pub fn vertex(&self, id: VertexId) -> &JobVertex {
        &self.vertices[id.0 as usize]
    }
}
