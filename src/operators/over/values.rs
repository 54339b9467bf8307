//! Results over the frames of rows whose time has come.
//!
//! Rows of one partition depend on each other, those of different ones do not: so the first rows of all partitions are added and
//! evaluated together, then the second ones, and so on. First it is found out which rows come into a frame and leave it in which round;
//! then all their columns are fetched at once, and the accumulators run.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, NullArray, UInt32Array};
use arrow::compute;

use super::kept_rows::TimedRow;
use crate::error::Result;
use crate::expr::AggregateSet;
use crate::runtime::state::{RowId, RowStore};
use crate::stream_graph::FrameUnit;
use crate::types::{RowKind, RowKinds};

/// Where frames start; they end with their row.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameStart {
    pub(super) unit: FrameUnit,
    /// So many rows, or milliseconds, before; none = at the start of the partition.
    pub(super) preceding: Option<i64>,
}

/// What happens in a round: rows that leave and come, and the partitions that are evaluated afterwards.
#[derive(Default)]
struct Round {
    /// Positions among the fetched rows.
    rows: Vec<u32>,
    groups: Vec<u32>,
    kinds: Vec<RowKind>,
    evaluated: Vec<u32>,
}

/// All rounds of a set of rows.
#[derive(Default)]
struct Schedule {
    rounds: Vec<Round>,
    /// The rows to be fetched: those whose time has come, then those that leave.
    fetched: Vec<RowId>,
    /// For each row the round that gives its result, and the place there.
    results: Vec<(u32, u32)>,
    /// Rows that are in no frame any more.
    gone: Vec<RowId>,
}

/// The results for rows in the order of their time, a column for each aggregate, and the rows that are in no frame any more.
pub(super) fn evaluate(
    rows: &[TimedRow],
    start: FrameStart,
    store: &RowStore,
    frames: &mut [VecDeque<TimedRow>],
    aggregates: &mut AggregateSet,
) -> Result<(Vec<ArrayRef>, Vec<RowId>)> {
    let schedule = Schedule::of(rows, start, frames);
    let values = schedule.run(store, aggregates)?;
    Ok((values, schedule.gone))
}

impl Schedule {
    fn of(rows: &[TimedRow], start: FrameStart, frames: &mut [VecDeque<TimedRow>]) -> Self {
        let mut schedule = Schedule {
            fetched: rows.iter().map(|row| row.id).collect(),
            results: vec![(0, 0); rows.len()],
            ..Schedule::default()
        };
        // By partition, each in its order.
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.sort_by_key(|at| rows[*at as usize].group);
        for partition in order.chunk_by(|a, b| rows[*a as usize].group == rows[*b as usize].group) {
            schedule.add_partition(partition, rows, start, frames);
        }
        schedule
    }

    /// Rows of one partition, by their positions in `rows`.
    fn add_partition(&mut self, partition: &[u32], rows: &[TimedRow], start: FrameStart, frames: &mut [VecDeque<TimedRow>]) {
        let group = rows[partition[0] as usize].group;
        // Rows of the frame that come from here, as positions: those that left are before `left`.
        let mut left = 0;
        let is_peer = |a: &u32, b: &u32| start.unit == FrameUnit::Range && rows[*a as usize].time == rows[*b as usize].time;
        let mut added = 0;
        for (round, peers) in partition.chunk_by(is_peer).enumerate() {
            if round == self.rounds.len() {
                self.rounds.push(Round::default());
            }
            let time = rows[peers[0] as usize].time;
            if let Some(preceding) = start.preceding {
                let frame = &mut frames[group as usize];
                loop {
                    let first = frame.front().copied().or_else(|| partition[left..added].first().map(|at| rows[*at as usize]));
                    let Some(first) = first else { break };
                    let leaves = match start.unit {
                        FrameUnit::Rows => (frame.len() + added - left) as i64 > preceding,
                        FrameUnit::Range => first.time < time.saturating_sub(preceding),
                    };
                    if !leaves {
                        break;
                    }
                    let at = if frame.pop_front().is_some() {
                        self.fetched.push(first.id);
                        self.fetched.len() as u32 - 1
                    } else {
                        left += 1;
                        partition[left - 1]
                    };
                    self.gone.push(first.id);
                    self.rounds[round].add(at, group, RowKind::Delete);
                }
            }
            let this = &mut self.rounds[round];
            for at in peers {
                this.add(*at, group, RowKind::Insert);
                self.results[*at as usize] = (round as u32, this.evaluated.len() as u32);
            }
            this.evaluated.push(group);
            added += peers.len();
        }
        match start.preceding {
            Some(_) => frames[group as usize].extend(partition[left..].iter().map(|at| rows[*at as usize])),
            None => self.gone.extend(partition.iter().map(|at| rows[*at as usize].id)),
        }
    }

    /// Lets the accumulators run; gives a column for each aggregate.
    fn run(&self, store: &RowStore, aggregates: &mut AggregateSet) -> Result<Vec<ArrayRef>> {
        let used = aggregates.input_columns();
        let fetched = store.take_columns(&self.fetched, &used)?;
        let width = used.last().map_or(0, |last| last + 1);
        let mut results: Vec<Vec<ArrayRef>> = Vec::new();
        let mut firsts: Vec<u32> = Vec::with_capacity(self.rounds.len());
        let mut count = 0;
        for round in &self.rounds {
            let rows = UInt32Array::from(round.rows.clone());
            // Columns that are not read are there in name only.
            let unread: ArrayRef = Arc::new(NullArray::new(rows.len()));
            let mut columns = vec![unread; width];
            for (column, values) in used.iter().zip(&fetched) {
                columns[*column] = compute::take(values, &rows, None)?;
            }
            let leaves = round.kinds.contains(&RowKind::Delete);
            let kinds = leaves.then(|| RowKinds::new(round.kinds.iter().copied()));
            aggregates.update(&round.groups, &columns, kinds.as_ref())?;
            results.push(aggregates.evaluate(&round.evaluated)?);
            firsts.push(count);
            count += round.evaluated.len() as u32;
        }
        let at = UInt32Array::from_iter_values(self.results.iter().map(|(round, place)| firsts[*round as usize] + place));
        let calls = results.first().map_or(0, Vec::len);
        let column = |call: usize| {
            let parts: Vec<&dyn Array> = results.iter().map(|round| round[call].as_ref()).collect();
            Ok(compute::take(&compute::concat(&parts)?, &at, None)?)
        };
        (0..calls).map(column).collect()
    }
}

impl Round {
    fn add(&mut self, row: u32, group: u32, kind: RowKind) {
        self.rows.push(row);
        self.groups.push(group);
        self.kinds.push(kind);
    }
}
