//! The StreamGraph as text: a line for each node, and below it what it reads.

use std::fmt;

use super::{Partitioner, StreamGraph, StreamNode, StreamNodeId};

impl StreamGraph {
    /// A node by its id.
    pub fn node(&self, id: StreamNodeId) -> &StreamNode {
        &self.nodes[id.0 as usize - 1]
    }
}

impl Partitioner {
    /// Its name in plans and edges: `FORWARD`, `HASH` …
    pub fn ship_strategy(&self) -> &'static str {
        match self {
            Partitioner::Forward => "FORWARD",
            Partitioner::Hash { .. } => "HASH",
            Partitioner::Rebalance => "REBALANCE",
            Partitioner::Rescale => "RESCALE",
            Partitioner::Broadcast => "BROADCAST",
            Partitioner::Global => "GLOBAL",
        }
    }
}

impl fmt::Display for StreamGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            writeln!(f, "[{}] {} (parallelism={})", node.id.0, node.description, node.parallelism)?;
            for edge in self.edges.iter().filter(|edge| edge.target == node.id) {
                let keys = match &edge.partitioner {
                    Partitioner::Hash { keys } => {
                        let columns = self.node(edge.source).schema.project(keys);
                        let names: Vec<&str> = columns.fields.iter().map(|field| field.name.as_str()).collect();
                        format!("[{}]", names.join(", "))
                    }
                    _ => String::new(),
                };
                let late = edge.late.as_ref().map_or_else(String::new, |late| format!(" late rows of input {}", late.input));
                writeln!(f, "    <- [{}]{late} input={} {}{keys}", edge.source.0, edge.input, edge.partitioner.ship_strategy())?;
            }
        }
        Ok(())
    }
}
