//! StreamGraph → JobGraph: chains operators, then connects the chains.
//!
//! Chains are built depth-first from the sources; each edge that cannot be chained ends one chain and begins another. Steps:
//! validate; chain; order the vertices so that each comes after its inputs; data sets and edges; names.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::chaining::explain_edge;
use super::graph::{
    ChainEdge, ChainedOperator, DataSetId, DistributionPattern, IntermediateDataSet, JobEdge, JobGraph, JobVertex,
};
use super::operator_ids::operator_ids;
use crate::error::{Error, Result};
use crate::stream_graph::{Partitioner, StreamEdge, StreamGraph, StreamNode, StreamNodeId};
use crate::types::{DataType, Field, OperatorId, Schema, SchemaRef, VertexId};

/// Makes the JobGraph of a StreamGraph.
pub fn generate(graph: &StreamGraph) -> Result<JobGraph> {
    validate(graph)?;
    let ids = operator_ids(graph)?;
    let chains = chains(graph);
    let vertices = chains.iter().enumerate().map(|(index, chain)| vertex(graph, chain, VertexId(index as u32), &ids)).collect();
    let mut job = JobGraph { name: graph.name.clone(), vertices, configuration: graph.configuration.clone() };
    connect(graph, &chains, &mut job);
    Ok(job)
}

/// The graph is numbered without gaps and every edge goes forward: so it has no cycle.
fn validate(graph: &StreamGraph) -> Result<()> {
    if let Some((index, node)) = graph.nodes.iter().enumerate().find(|(index, node)| node.id.0 as usize != index + 1) {
        return Err(Error::internal(format!("stream node {} stands at position {index}", node.id.0)));
    }
    let known = |id: StreamNodeId| (1..=graph.nodes.len()).contains(&(id.0 as usize));
    let broken = graph.edges.iter().find(|edge| !known(edge.source) || !known(edge.target) || edge.source >= edge.target);
    if let Some(edge) = broken {
        return Err(Error::internal(format!("stream edge from {} to {} does not go forward", edge.source.0, edge.target.0)));
    }
    if let Some(node) = graph.nodes.iter().find(|node| node.parallelism == 0 || node.parallelism > node.max_parallelism) {
        let message = format!("{} has parallelism {} of at most {}", node.name, node.parallelism, node.max_parallelism);
        return Err(Error::internal(message));
    }
    Ok(())
}

/// A chain: its operators depth-first, and the edges within.
struct Chain<'a> {
    nodes: Vec<&'a StreamNode>,
    edges: Vec<&'a StreamEdge>,
}

/// All chains, each after those that it reads from: heads are numbered after all that their chain reads.
fn chains(graph: &StreamGraph) -> Vec<Chain<'_>> {
    let is_chained_to_input =
        |node: &&StreamNode| graph.edges.iter().any(|edge| edge.target == node.id && explain_edge(graph, edge).is_none());
    let heads = graph.nodes.iter().filter(|node| !is_chained_to_input(node));
    heads
        .map(|head| {
            let mut chain = Chain { nodes: Vec::new(), edges: Vec::new() };
            extend(graph, head, &mut chain);
            chain
        })
        .collect()
}

fn extend<'a>(graph: &'a StreamGraph, node: &'a StreamNode, chain: &mut Chain<'a>) {
    chain.nodes.push(node);
    for edge in graph.edges.iter().filter(|edge| edge.source == node.id && explain_edge(graph, edge).is_none()) {
        chain.edges.push(edge);
        extend(graph, graph.node(edge.target), chain);
    }
}

impl Chain<'_> {
    fn position(&self, id: StreamNodeId) -> usize {
        self.nodes.iter().position(|node| node.id == id).expect("the edge lies in the chain")
    }

    /// `A -> B`, and `A -> (B, C -> D)` where it forks.
    fn joined(&self, node: usize, text: &dyn Fn(&StreamNode) -> String) -> String {
        let next: Vec<String> = self
            .edges
            .iter()
            .filter(|edge| edge.source == self.nodes[node].id)
            .map(|edge| self.joined(self.position(edge.target), text))
            .collect();
        match next.as_slice() {
            [] => text(self.nodes[node]),
            [single] => format!("{} -> {single}", text(self.nodes[node])),
            several => format!("{} -> ({})", text(self.nodes[node]), several.join(", ")),
        }
    }
}

fn vertex(graph: &StreamGraph, chain: &Chain, id: VertexId, ids: &BTreeMap<StreamNodeId, OperatorId>) -> JobVertex {
    let head = chain.nodes[0];
    debug_assert!(graph.nodes.iter().any(|node| node.id == head.id));
    let operator = |node: &&StreamNode| ChainedOperator {
        id: ids[&node.id],
        uid: node.uid.clone(),
        node: node.id,
        name: node.name.clone(),
        description: node.description.clone(),
        spec: node.spec.clone(),
        state_ttl_ms: node.state_ttl_ms.clone(),
        schema: node.schema.clone(),
        changelog: node.changelog,
    };
    let chain_edge = |edge: &&StreamEdge| ChainEdge {
        source: chain.position(edge.source),
        target: chain.position(edge.target),
        input: edge.input,
        late: edge.late.clone(),
    };
    JobVertex {
        id,
        name: format!("[vertex-{id}]{}", chain.joined(0, &|node| node.name.clone())),
        description: chain.joined(0, &|node| node.description.clone()),
        operators: chain.nodes.iter().map(operator).collect(),
        chain: chain.edges.iter().map(chain_edge).collect(),
        inputs: Vec::new(),
        results: Vec::new(),
        parallelism: head.parallelism,
        max_parallelism: head.max_parallelism,
        slot_sharing_group: head.slot_sharing_group.clone(),
    }
}

/// Adds a data set and an edge for each stream edge between two chains.
fn connect(graph: &StreamGraph, chains: &[Chain], job: &mut JobGraph) {
    let place = |id: StreamNodeId| {
        let of = |chain: &Chain| chain.nodes.iter().position(|node| node.id == id);
        let found = chains.iter().enumerate().find_map(|(vertex, chain)| Some((vertex, of(chain)?)));
        found.expect("every node is in a chain")
    };
    let between = graph.edges.iter().filter_map(|edge| Some((edge, explain_edge(graph, edge)?)));
    for (number, (edge, not_chained)) in between.enumerate() {
        let ((producer, operator), (consumer, _)) = (place(edge.source), place(edge.target));
        let data_set = DataSetId(number as u32);
        job.vertices[producer].results.push(IntermediateDataSet {
            id: data_set,
            producer: operator,
            partitioner: edge.partitioner.clone(),
            exchange: edge.exchange,
            consumer: VertexId(consumer as u32),
            schema: schema_of(graph, edge),
            late: edge.late.clone(),
        });
        job.vertices[consumer].inputs.push(JobEdge {
            source: data_set,
            producer: VertexId(producer as u32),
            target: VertexId(consumer as u32),
            input: edge.input,
            partitioner: edge.partitioner.clone(),
            distribution: distribution(&edge.partitioner),
            ship_strategy: edge.partitioner.ship_strategy().to_string(),
            is_forward: edge.partitioner == Partitioner::Forward,
            is_broadcast: edge.partitioner == Partitioner::Broadcast,
            not_chained,
            exchange: edge.exchange,
        });
    }
}

/// The columns of the rows of an edge: late rows are those of an input of the producer, with a watermark.
fn schema_of(graph: &StreamGraph, edge: &StreamEdge) -> SchemaRef {
    let Some(late) = &edge.late else { return graph.node(edge.source).schema.clone() };
    let comes_in = |input: &&StreamEdge| input.target == edge.source && input.input == late.input;
    let input = graph.edges.iter().find(comes_in).map(|input| graph.node(input.source).schema.fields.clone());
    let mut fields = input.unwrap_or_default();
    fields.push(Field::new("late_watermark", late.watermark_type.clone()));
    fields.push(Field::new("late_change", DataType::string()));
    Arc::new(Schema::new(fields))
}

fn distribution(partitioner: &Partitioner) -> DistributionPattern {
    match partitioner {
        Partitioner::Forward | Partitioner::Rescale => DistributionPattern::Pointwise,
        Partitioner::Hash { .. } | Partitioner::Rebalance | Partitioner::Broadcast | Partitioner::Global => {
            DistributionPattern::AllToAll
        }
    }
}
