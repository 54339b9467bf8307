//! When two operators share a task: one predicate for each reason against it, so that EXPLAIN can cite it.
//!
//! In a chain the next operator is a direct call with a batch; nothing is queued or copied. Unlike in Flink, a source is never chained
//! into an operator of several inputs, so there is no strategy HEAD_WITH_SOURCES: no operator of ours would gain by it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::{Configuration, OPERATOR_CHAINING};
use crate::stream_graph::{ChainingStrategy, ExchangeMode, Partitioner, StreamEdge, StreamGraph, StreamNode};

/// Why two operators do not share a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NotChained {
    /// `pipeline.operator-chaining.enabled` is false.
    ChainingDisabled,
    /// The consumer has several input edges.
    SeveralInputs,
    /// Rows change subtasks on the way.
    NotForward,
    /// The consumer waits for the end of the producer.
    NotPipelined,
    /// The subtasks are not as many.
    DifferentParallelism,
    /// The key groups are not as many.
    DifferentMaxParallelism,
    /// They must not share a slot.
    DifferentSlotSharingGroup,
    /// The producer's strategy forbids it.
    ProducerStrategy,
    /// The consumer's strategy forbids it.
    ConsumerStrategy,
}

impl fmt::Display for NotChained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotChained::ChainingDisabled => "operator chaining is disabled",
            NotChained::SeveralInputs => "the consumer has several input edges",
            NotChained::NotForward => "the edge is not forward",
            NotChained::NotPipelined => "the exchange is not pipelined",
            NotChained::DifferentParallelism => "the parallelism differs",
            NotChained::DifferentMaxParallelism => "the max parallelism differs",
            NotChained::DifferentSlotSharingGroup => "the slot sharing groups differ",
            NotChained::ProducerStrategy => "the chaining strategy of the producer is NEVER",
            NotChained::ConsumerStrategy => "the chaining strategy of the consumer is NEVER or HEAD",
        })
    }
}

/// Both ends of an edge and what the predicates ask of the graph.
struct Candidate<'a> {
    edge: &'a StreamEdge,
    source: &'a StreamNode,
    target: &'a StreamNode,
    graph: &'a StreamGraph,
}

/// A reason against chaining, and when it holds.
type Reason = (NotChained, fn(&Candidate) -> bool);

/// All reasons; the first that holds is cited.
const REASONS: &[Reason] = &[
    (NotChained::ChainingDisabled, is_chaining_disabled),
    (NotChained::SeveralInputs, has_several_inputs),
    (NotChained::NotForward, is_not_forward),
    (NotChained::DifferentParallelism, has_different_parallelism),
    (NotChained::DifferentMaxParallelism, has_different_max_parallelism),
    (NotChained::NotPipelined, is_not_pipelined),
    (NotChained::DifferentSlotSharingGroup, has_different_slot_sharing_group),
    (NotChained::ProducerStrategy, producer_forbids),
    (NotChained::ConsumerStrategy, consumer_forbids),
];

/// Why the ends of an edge do not share a task; none when they do.
pub fn explain_edge(graph: &StreamGraph, edge: &StreamEdge) -> Option<NotChained> {
    let candidate = Candidate { edge, source: graph.node(edge.source), target: graph.node(edge.target), graph };
    REASONS.iter().find(|(_, holds)| holds(&candidate)).map(|(reason, _)| *reason)
}

fn is_chaining_disabled(candidate: &Candidate) -> bool {
    !Configuration(candidate.graph.configuration.clone()).boolean(&OPERATOR_CHAINING)
}

fn has_several_inputs(candidate: &Candidate) -> bool {
    candidate.graph.edges.iter().filter(|edge| edge.target == candidate.target.id).count() > 1
}

fn is_not_forward(candidate: &Candidate) -> bool {
    candidate.edge.partitioner != Partitioner::Forward
}

fn is_not_pipelined(candidate: &Candidate) -> bool {
    candidate.edge.exchange != ExchangeMode::Pipelined
}

fn has_different_parallelism(candidate: &Candidate) -> bool {
    candidate.source.parallelism != candidate.target.parallelism
}

fn has_different_max_parallelism(candidate: &Candidate) -> bool {
    candidate.source.max_parallelism != candidate.target.max_parallelism
}

fn has_different_slot_sharing_group(candidate: &Candidate) -> bool {
    candidate.source.slot_sharing_group != candidate.target.slot_sharing_group
}

fn producer_forbids(candidate: &Candidate) -> bool {
    candidate.source.chaining == ChainingStrategy::Never
}

fn consumer_forbids(candidate: &Candidate) -> bool {
    candidate.target.chaining != ChainingStrategy::Always
}
