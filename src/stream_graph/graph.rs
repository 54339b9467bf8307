//! Nodes and edges of the StreamGraph.

use serde::{Deserialize, Serialize};

use super::{OperatorSpec, StateContract};
use crate::types::{ChangelogMode, DataType, InputNumber, SchemaRef};

/// A node of a StreamGraph, numbered from 1 in the order of creation, as in Flink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StreamNodeId(pub u32);

/// Whether an operator may share a task with its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ChainingStrategy {
    /// With both.
    Always,
    /// With none.
    Never,
    /// With those after it.
    Head,
}

/// How the rows of an edge are spread over the subtasks of its target.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Partitioner {
    /// Subtask i to subtask i.
    Forward,
    /// By the key group of these columns.
    Hash {
        /// Key columns of the edge's rows.
        keys: Vec<usize>,
    },
    /// Round robin over all.
    Rebalance,
    /// Round robin over a local group.
    Rescale,
    /// To all.
    Broadcast,
    /// To subtask 0.
    Global,
}

/// Whether a consumer may start before its producer has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ExchangeMode {
    /// It may.
    Pipelined,
    /// It waits (batch exchanges; never chained).
    Batch,
}

/// An operator before chaining.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamNode {
    /// Number.
    pub id: StreamNodeId,
    /// The user's id, if given: the operator id is derived from it, otherwise from the topology.
    pub uid: Option<String>,
    /// Short name: `GroupAggregate`.
    pub name: String,
    /// What it does in one line: `GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS n])`.
    pub description: String,
    /// What it is.
    pub spec: OperatorSpec,
    /// Subtasks.
    pub parallelism: u32,
    /// Key groups.
    pub max_parallelism: u32,
    /// Whether it may be chained.
    pub chaining: ChainingStrategy,
    /// Operators of different groups never share a slot (nor a task).
    pub slot_sharing_group: String,
    /// State of each input that is not written for so long is dropped, milliseconds; 0, or none for an input = kept for ever.
    pub state_ttl_ms: Vec<u64>,
    /// What it keeps and what bounds that; none = it keeps nothing.
    pub state: Option<StateContract>,
    /// Output columns.
    pub schema: SchemaRef,
    /// Which changes it emits.
    pub changelog: ChangelogMode,
}

/// The side output of an operator that drops late rows: those of one of its inputs, each with the watermark that had passed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateOutput {
    /// Which input they came from.
    pub input: InputNumber,
    /// The type of the watermark, which stands behind the columns of the row; behind it the kind of the change (STRING).
    pub watermark_type: DataType,
}

/// A stream from one operator to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamEdge {
    /// Producer.
    pub source: StreamNodeId,
    /// Consumer.
    pub target: StreamNodeId,
    /// Which input of the consumer. Two edges with one number are a union.
    pub input: InputNumber,
    /// How rows are spread.
    pub partitioner: Partitioner,
    /// When the consumer may start.
    pub exchange: ExchangeMode,
    /// Which side output of the producer it carries; none = what the operator emits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateOutput>,
}

/// One node per logical operator, before chaining.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StreamGraph {
    /// Name of the job.
    pub name: String,
    /// Operators, by rising id.
    pub nodes: Vec<StreamNode>,
    /// Streams, in the order in which they were added.
    pub edges: Vec<StreamEdge>,
    /// Settings of the job: only those that were set.
    pub configuration: std::collections::BTreeMap<String, String>,
}
