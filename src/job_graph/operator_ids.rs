//! Ids of operators, stable across restarts: from the user's uid, otherwise from the topology.
//!
//! The id of an operator without a uid is a hash of what it does and of the ids of what it reads, so equal statements give equal
//! ids in any process; operators that are equal in both are told apart by their order.

use std::collections::{BTreeMap, HashSet};

use crate::error::{Error, ErrorKind, Result};
use crate::stream_graph::{StreamGraph, StreamNodeId};
use crate::types::OperatorId;

/// FNV-1a, 128 bits: the same in every process and version, and fast enough for a handful of operators.
struct Fnv128(u128);

impl Fnv128 {
    const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    fn new() -> Self {
        Fnv128(Self::OFFSET_BASIS)
    }

    /// Adds bytes and their number, so that two fields never run into one.
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().copied().chain((bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(Self::PRIME);
        }
    }
}

/// The ids of all operators of a graph. Two operators with one uid are an error.
pub fn operator_ids(graph: &StreamGraph) -> Result<BTreeMap<StreamNodeId, OperatorId>> {
    let mut ids: BTreeMap<StreamNodeId, OperatorId> = BTreeMap::new();
    let mut taken: HashSet<OperatorId> = HashSet::new();
    // Nodes are numbered in the order of creation, so inputs come before what reads them.
    for node in &graph.nodes {
        let mut hash = Fnv128::new();
        match &node.uid {
            Some(uid) => hash.add(uid.as_bytes()),
            None => {
                hash.add(node.description.as_bytes());
                for edge in graph.edges.iter().filter(|edge| edge.target == node.id) {
                    let source = ids.get(&edge.source).ok_or_else(|| not_in_order(edge.source, node.id))?;
                    hash.add(&source.0.to_le_bytes());
                    hash.add(&[edge.input.0]);
                    if let Some(late) = &edge.late {
                        hash.add(&[late.input.0]);
                    }
                }
            }
        }
        let mut id = OperatorId(hash.0);
        if !taken.insert(id) {
            if let Some(uid) = &node.uid {
                return Err(Error::new(ErrorKind::DuplicateObject, format!("uid \"{uid}\" is given to two operators")));
            }
            while !taken.insert(id) {
                hash.add(b"next");
                id = OperatorId(hash.0);
            }
        }
        ids.insert(node.id, id);
    }
    Ok(ids)
}

fn not_in_order(source: StreamNodeId, target: StreamNodeId) -> Error {
    Error::internal(format!("stream node {} reads node {}, which is not before it", target.0, source.0))
}
