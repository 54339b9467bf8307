//! JobGraph + subtask → [`TaskDescriptor`]: how the vertices of a graph become tasks, wired by the ids of their channels.
//!
//! A channel is named by who writes it (attempt, number of the output) and which part of it it is, so both ends compute the same name
//! on their own and no one has to introduce them. Everything here is a function of the graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::Configuration;
use crate::job_graph::{DataSetId, DistributionPattern, JobEdge, JobGraph, JobVertex};
use crate::runtime::checkpoint::TaskRestore;
use crate::runtime::task::{
    ChainLink, ChainedOperator, ExecutionAttemptId, InputGateDescriptor, LateLink, ResultPartitionDescriptor, ResultPartitionId,
    SubpartitionId, TaskDescriptor,
};
use crate::stream_graph::{OperatorSpec, SinkSpec, SourceSpec};
use crate::types::{OperatorId, SubtaskIndex, VertexId};

/// The vertices of a graph as an ExecutionGraph needs them: id, name, parallelism.
pub(super) fn vertices(graph: &JobGraph) -> Vec<(VertexId, String, u32)> {
    graph.vertices.iter().map(|vertex| (vertex.id, vertex.name.clone(), vertex.parallelism)).collect()
}

/// A source of a graph that has splits.
#[derive(Debug)]
pub(super) struct SourceOfVertex {
    /// The operator.
    pub(super) operator: OperatorId,
    /// Its name.
    pub(super) name: String,
    /// Its vertex.
    pub(super) vertex: VertexId,
    /// Its readers.
    pub(super) parallelism: u32,
    /// What it reads.
    pub(super) spec: SourceSpec,
}

/// All sources that read splits, in the order of the graph.
pub(super) fn sources(graph: &JobGraph) -> Vec<SourceOfVertex> {
    let mut sources = Vec::new();
    for vertex in &graph.vertices {
        for operator in &vertex.operators {
            if let OperatorSpec::Source(spec) = &operator.spec {
                sources.push(SourceOfVertex {
                    operator: operator.id,
                    name: operator.name.clone(),
                    vertex: vertex.id,
                    parallelism: vertex.parallelism,
                    spec: SourceSpec::clone(spec),
                });
            }
        }
    }
    sources
}

/// A sink of a graph.
#[derive(Debug)]
pub(super) struct SinkOfVertex {
    /// The operator.
    pub(super) operator: OperatorId,
    /// Its name.
    pub(super) name: String,
    /// What it writes.
    pub(super) spec: SinkSpec,
}

/// All sinks that write tables, in the order of the graph.
pub(super) fn sinks(graph: &JobGraph) -> Vec<SinkOfVertex> {
    let sink = |operator: &crate::job_graph::ChainedOperator| match &operator.spec {
        OperatorSpec::Sink(spec) => {
            Some(SinkOfVertex { operator: operator.id, name: operator.name.clone(), spec: SinkSpec::clone(spec) })
        }
        _ => None,
    };
    graph.vertices.iter().flat_map(|vertex| &vertex.operators).filter_map(sink).collect()
}

/// Whether a flush ends in this vertex: it has a sink.
pub(super) fn has_sink(graph: &JobGraph, vertex: VertexId) -> bool {
    let is_sink = |spec: &OperatorSpec| matches!(spec, OperatorSpec::Sink(_) | OperatorSpec::Collect { .. });
    graph.vertex(vertex).operators.iter().any(|operator| is_sink(&operator.spec))
}

/// Which subtask goes into which slot: subtask i of each vertex of a slot sharing group into slot i of that group.
#[derive(Debug)]
pub(super) struct SlotPlan {
    /// The first slot of each vertex's group.
    first: BTreeMap<VertexId, u32>,
    slots: u32,
}

impl SlotPlan {
    pub(super) fn new(graph: &JobGraph) -> Self {
        let mut groups: BTreeMap<&str, u32> = BTreeMap::new();
        for vertex in &graph.vertices {
            let slots = groups.entry(&vertex.slot_sharing_group).or_default();
            *slots = (*slots).max(vertex.parallelism);
        }
        let mut slots = 0;
        let mut first_of_group = BTreeMap::new();
        for (group, size) in groups {
            first_of_group.insert(group, slots);
            slots += size;
        }
        let first = |vertex: &JobVertex| (vertex.id, first_of_group[vertex.slot_sharing_group.as_str()]);
        SlotPlan { first: graph.vertices.iter().map(first).collect(), slots }
    }

    /// How many slots the job needs.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// The slot of a subtask, from 0.
    pub(super) fn slot_of(&self, vertex: VertexId, subtask: SubtaskIndex) -> usize {
        (self.first[&vertex] + subtask.0) as usize
    }
}

/// The task of one attempt.
pub(super) fn task_descriptor(
    graph: &JobGraph,
    attempt: ExecutionAttemptId,
    configuration: &Arc<Configuration>,
    job_start_ms: i64,
    restore: Option<TaskRestore>,
) -> TaskDescriptor {
    let vertex = graph.vertex(attempt.vertex);
    TaskDescriptor {
        attempt,
        name: vertex.name.clone(),
        parallelism: vertex.parallelism,
        max_parallelism: vertex.max_parallelism,
        job_start_ms,
        configuration: Arc::clone(configuration),
        operators: (0..vertex.operators.len()).map(|index| chained_operator(vertex, index)).collect(),
        gates: vertex.inputs.iter().map(|edge| gate(graph, edge, attempt)).collect(),
        partitions: (0..vertex.results.len()).map(|index| partition(graph, vertex, index, attempt)).collect(),
        restore,
    }
}

fn chained_operator(vertex: &JobVertex, index: usize) -> ChainedOperator {
    let operator = &vertex.operators[index];
    let next = vertex.chain.iter().filter(|edge| edge.source == index);
    let next = next.map(|edge| (&edge.late, ChainLink::Operator { index: edge.target, input: edge.input }));
    let results = vertex.results.iter().enumerate().filter(|(_, result)| result.producer == index);
    let results = results.map(|(position, result)| (&result.late, ChainLink::Partition(position)));
    let (mut links, mut late_links) = (Vec::new(), Vec::new());
    for (late, link) in next.chain(results) {
        match late {
            None => links.push(link),
            Some(output) => late_links.push(LateLink { output: output.clone(), link }),
        }
    }
    ChainedOperator {
        id: operator.id,
        name: operator.name.clone(),
        spec: operator.spec.clone(),
        state_ttl_ms: operator.state_ttl_ms.clone(),
        links,
        late_links,
    }
}

fn partition(graph: &JobGraph, vertex: &JobVertex, index: usize, producer: ExecutionAttemptId) -> ResultPartitionDescriptor {
    let result = &vertex.results[index];
    let consumer = graph.vertex(result.consumer);
    let edge = consumer.inputs.iter().find(|edge| edge.source == result.id).expect("every data set has its job edge");
    let connection = Connection::new(graph, edge);
    ResultPartitionDescriptor {
        id: ResultPartitionId { producer, data_set: index as u32 },
        partitioner: result.partitioner.clone(),
        subpartitions: connection.consumers_of(producer.subtask.0).count() as u32,
    }
}

fn gate(graph: &JobGraph, edge: &JobEdge, consumer: ExecutionAttemptId) -> InputGateDescriptor {
    let connection = Connection::new(graph, edge);
    let data_set = position_of(graph.vertex(edge.producer), edge.source);
    let own = consumer.subtask.0;
    let channel = |producer: u32| SubpartitionId {
        partition: ResultPartitionId {
            producer: ExecutionAttemptId { vertex: edge.producer, subtask: SubtaskIndex(producer), ..consumer },
            data_set,
        },
        index: connection.consumers_of(producer).position(|other| other == own).expect("connected both ways") as u32,
    };
    let producers = (0..connection.producers).filter(|producer| connection.joins(*producer, own));
    InputGateDescriptor { input: edge.input, channels: producers.map(channel).collect() }
}

fn position_of(producer: &JobVertex, data_set: DataSetId) -> u32 {
    producer.results.iter().position(|result| result.id == data_set).expect("every job edge has its data set") as u32
}

/// Which subtasks of two vertices are connected.
#[derive(Debug, Clone, Copy)]
struct Connection {
    pattern: DistributionPattern,
    producers: u32,
    consumers: u32,
}

impl Connection {
    fn new(graph: &JobGraph, edge: &JobEdge) -> Self {
        let (producers, consumers) = (graph.vertex(edge.producer).parallelism, graph.vertex(edge.target).parallelism);
        Connection { pattern: edge.distribution, producers, consumers }
    }

    /// Whether there is a channel. Pointwise, the larger side is cut into contiguous groups of nearly one size, one for each
    /// subtask of the smaller side.
    fn joins(&self, producer: u32, consumer: u32) -> bool {
        let group_of = |subtask: u32, larger: u32, smaller: u32| u64::from(subtask) * u64::from(smaller) / u64::from(larger);
        match self.pattern {
            DistributionPattern::AllToAll => true,
            DistributionPattern::Pointwise if self.producers >= self.consumers => {
                group_of(producer, self.producers, self.consumers) == u64::from(consumer)
            }
            DistributionPattern::Pointwise => group_of(consumer, self.consumers, self.producers) == u64::from(producer),
        }
    }

    fn consumers_of(self, producer: u32) -> impl Iterator<Item = u32> {
        (0..self.consumers).filter(move |consumer| self.joins(producer, *consumer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointwise_connects_every_subtask_for_all_small_cases() {
        for producers in 1..=9 {
            for consumers in 1..=9 {
                let connection = Connection { pattern: DistributionPattern::Pointwise, producers, consumers };
                let fan_out: Vec<usize> = (0..producers).map(|producer| connection.consumers_of(producer).count()).collect();
                let fan_in = |consumer| (0..producers).filter(|producer| connection.joins(*producer, consumer)).count();
                assert_eq!(fan_out.iter().sum::<usize>(), producers.max(consumers) as usize);
                assert!(fan_out.iter().all(|count| *count >= 1));
                assert!((0..consumers).all(|consumer| fan_in(consumer) >= 1));
                assert!(producers != consumers || (0..producers).all(|subtask| connection.joins(subtask, subtask)));
            }
        }
    }
}
