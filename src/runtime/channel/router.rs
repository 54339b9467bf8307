//! Which rows of a batch go to which subpartition: Flink's partitioners, over batches.
//!
//! Watermarks go to every target: a target that gets no row of a batch gets its steps all the same. Every target sees a step after the
//! rows that came before it and before the rows that came after it, as if rows and watermarks had been sent one by one.

use arrow::array::UInt32Array;

use crate::error::Result;
use crate::runtime::state::hash_columns;
use crate::stream_graph::Partitioner;
use crate::types::{Batch, KeyGroup, Watermark};

/// Rows below which a batch is not cut for round robin: smaller pieces cost more than balance gains.
const ROUND_ROBIN_ROWS_MIN: usize = 512;

/// Spreads batches over `targets` subpartitions.
#[derive(Debug)]
pub enum Router {
    /// All rows to one target.
    Single {
        /// Targets.
        targets: usize,
    },
    /// All rows to all.
    Broadcast {
        /// Targets.
        targets: usize,
    },
    /// The next rows to whoever got the fewest so far.
    RoundRobin {
        /// Rows sent, by target.
        sent: Vec<u64>,
    },
    /// By the key group of some columns.
    Hash(HashRouter),
}

/// By the key group of some columns.
#[derive(Debug)]
pub struct HashRouter {
    keys: Vec<usize>,
    max_parallelism: u32,
    hashes: Vec<u64>,
    rows: Vec<Vec<u32>>,
}

/// A piece of a batch, or only its watermark.
pub enum Routed {
    /// Rows with their steps.
    Rows(Batch),
    /// A watermark after the rows before.
    Watermark(Watermark),
}

impl Router {
    /// For a partitioner and its number of subpartitions. `first` = where round robin starts (the producer's subtask, so that not
    /// all producers start with target 0).
    pub fn new(partitioner: &Partitioner, targets: u32, max_parallelism: u32, first: u32) -> Self {
        let targets = targets as usize;
        if targets == 1 && !matches!(partitioner, Partitioner::Broadcast) {
            return Router::Single { targets };
        }
        match partitioner {
            Partitioner::Forward | Partitioner::Global => Router::Single { targets },
            Partitioner::Broadcast => Router::Broadcast { targets },
            Partitioner::Rebalance | Partitioner::Rescale => {
                let mut sent = vec![1; targets];
                sent[first as usize % targets] = 0;
                Router::RoundRobin { sent }
            }
            Partitioner::Hash { keys } => Router::Hash(HashRouter {
                keys: keys.clone(),
                max_parallelism,
                hashes: Vec::new(),
                rows: vec![Vec::new(); targets],
            }),
        }
    }

    /// Hands the pieces of a batch to `emit`, in the order in which each target is to see them.
    pub fn route(&mut self, batch: Batch, emit: &mut dyn FnMut(usize, Routed) -> Result<()>) -> Result<()> {
        match self {
            Router::Single { targets } => {
                let last = batch.steps().last();
                emit(0, Routed::Rows(batch))?;
                (1..*targets)
                    .filter_map(|target| Some((target, last?)))
                    .try_for_each(|(t, last)| emit(t, Routed::Watermark(last)))
            }
            Router::Broadcast { targets } => {
                (1..*targets).try_for_each(|target| emit(target, Routed::Rows(batch.clone())))?;
                emit(0, Routed::Rows(batch))
            }
            Router::RoundRobin { sent } => route_round_robin(sent, batch, emit),
            Router::Hash(hash) => hash.route(batch, emit),
        }
    }
}

fn route_round_robin(sent: &mut [u64], batch: Batch, emit: &mut dyn FnMut(usize, Routed) -> Result<()>) -> Result<()> {
    let rows = batch.num_rows();
    let pieces = (rows / ROUND_ROBIN_ROWS_MIN).clamp(1, sent.len());
    let piece_rows = rows.div_ceil(pieces);
    let mut offset = 0;
    while offset < rows {
        let length = piece_rows.min(rows - offset);
        let target = (0..sent.len()).min_by_key(|target| sent[*target]).expect("there is a target");
        let piece = batch.slice(offset, length);
        let last = piece.steps().last();
        emit(target, Routed::Rows(piece))?;
        sent[target] += length as u64;
        if let Some(last) = last {
            (0..sent.len()).filter(|other| *other != target).try_for_each(|other| emit(other, Routed::Watermark(last)))?;
        }
        offset += length;
    }
    if rows == 0
        && let Some(last) = batch.steps().last()
    {
        (0..sent.len()).try_for_each(|target| emit(target, Routed::Watermark(last)))?;
    }
    Ok(())
}

impl HashRouter {
    fn route(&mut self, batch: Batch, emit: &mut dyn FnMut(usize, Routed) -> Result<()>) -> Result<()> {
        let keys: Vec<_> = self.keys.iter().map(|key| batch.column(*key).clone()).collect();
        hash_columns(&keys, batch.num_rows(), &mut self.hashes);
        let targets = self.rows.len() as u32;
        self.rows.iter_mut().for_each(Vec::clear);
        for (row, hash) in self.hashes.iter().enumerate() {
            let target = KeyGroup::of_hash(*hash, self.max_parallelism).subtask(targets, self.max_parallelism);
            self.rows[target.0 as usize].push(row as u32);
        }
        let last = batch.steps().last();
        for (target, rows) in self.rows.iter().enumerate() {
            if rows.len() == batch.num_rows() {
                emit(target, Routed::Rows(batch.clone()))?;
            } else if !rows.is_empty() {
                emit(target, Routed::Rows(batch.take_rising(&UInt32Array::from(rows.clone()))?))?;
            } else if let Some(last) = last {
                emit(target, Routed::Watermark(last))?;
            }
        }
        Ok(())
    }
}
