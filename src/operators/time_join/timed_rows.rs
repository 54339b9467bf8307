//! The rows of one side of an interval join: kept in slices of time, so that what is too old goes away a slice at a time; in a slice
//! found by the hash of their key.
//!
//! Where rows without a partner come out with NULLs, a heap tells whose time is over.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, UInt32Array};
use arrow::compute;
use arrow::datatypes::{Int64Type, UInt32Type};

use super::key_index::KeyIndex;
use crate::error::Result;
use crate::operators::frozen_store::FrozenStore;
use crate::operators::keyed_state::rows_in_range;
use crate::runtime::state::{RowAttribute, RowId, RowStore};
use crate::runtime::{StateTable, StateTableSnapshot};
use crate::types::{KeyGroupRange, Schema, hash_columns};

/// Rows of one side by time and key.
#[derive(Debug)]
pub(super) struct TimedRows {
    slice_ms: i64,
    store: RowStore,
    slices: BTreeMap<i64, Slice>,
    /// Time and number within its slice of each row that may have to come out with NULLs.
    waiting: Option<BinaryHeap<Reverse<(i64, u32)>>>,
    /// Of rows that were just added.
    new_ids: Vec<RowId>,
    keys: Vec<usize>,
    max_parallelism: u32,
}

/// The rows of a slice of time, numbered as they came.
#[derive(Debug, Default)]
struct Slice {
    index: KeyIndex,
    times: Vec<i64>,
    ids: Vec<RowId>,
    /// Whether a row has had a partner; empty where nobody asks.
    joined: Vec<bool>,
}

/// Rows that come in together.
pub(super) struct NewRows<'a> {
    /// Their columns.
    pub(super) columns: &'a [ArrayRef],
    /// Their times.
    pub(super) times: &'a [i64],
    /// The hashes of their keys.
    pub(super) hashes: &'a [u64],
    /// Whether they have had a partner already.
    pub(super) joined: &'a [bool],
}

/// A row: its slice and its number within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowPlace {
    slice: i64,
    row: u32,
}

impl TimedRows {
    /// With slices of this length, by the hash of these columns. `padded`: rows without a partner are asked for.
    pub(super) fn new(slice_ms: i64, schema: &Schema, keys: Vec<usize>, padded: bool, max_parallelism: u32) -> Result<Self> {
        let types: Vec<_> = schema.fields.iter().map(|field| field.data_type.to_arrow()).collect();
        Ok(TimedRows {
            slice_ms,
            store: RowStore::new(&types)?,
            slices: BTreeMap::new(),
            waiting: padded.then(BinaryHeap::new),
            new_ids: Vec::new(),
            keys,
            max_parallelism,
        })
    }

    /// The slices that may have rows of times from `low` to `high`, the earliest first.
    pub(super) fn slices(&self, low: i64, high: i64) -> Slices<'_> {
        let range = low.div_euclid(self.slice_ms)..=high.max(low).div_euclid(self.slice_ms);
        let slices = self.slices.range(range).map(|(number, slice)| (*number, slice)).collect();
        Slices { slice_ms: self.slice_ms, slices, store: &self.store }
    }

    /// Rows with all their columns.
    pub(super) fn store(&self) -> &RowStore {
        &self.store
    }

    /// Keeps the rows `kept` of those that came in.
    pub(super) fn push(&mut self, rows: &NewRows<'_>, kept: &[u32]) -> Result<()> {
        if kept.is_empty() {
            return Ok(());
        }
        if kept.len() == rows.times.len() {
            self.store.append(rows.columns, kept.len(), &mut self.new_ids)?;
        } else {
            let indices = UInt32Array::from(kept.to_vec());
            let columns = rows.columns.iter().map(|column| compute::take(column, &indices, None));
            let columns: Vec<ArrayRef> = columns.collect::<std::result::Result<_, _>>()?;
            self.store.append(&columns, kept.len(), &mut self.new_ids)?;
        }
        let number = |row: &u32| rows.times[*row as usize].div_euclid(self.slice_ms);
        let mut ids = self.new_ids.iter();
        for run in kept.chunk_by(|a, b| number(a) == number(b)) {
            let slice = self.slices.entry(number(&run[0])).or_default();
            for (row, id) in run.iter().map(|row| *row as usize).zip(&mut ids) {
                slice.index.push(rows.hashes[row]);
                if let Some(waiting) = &mut self.waiting {
                    if !rows.joined[row] {
                        waiting.push(Reverse((rows.times[row], slice.times.len() as u32)));
                    }
                    slice.joined.push(rows.joined[row]);
                }
                slice.times.push(rows.times[row]);
                slice.ids.push(*id);
            }
        }
        Ok(())
    }

    /// Notes that a row has had a partner.
    pub(super) fn mark_joined(&mut self, place: RowPlace) {
        if let Some(slice) = self.slices.get_mut(&place.slice) {
            slice.joined[place.row as usize] = true;
        }
    }

    /// The rows up to `time` that never had a partner; they are asked for once.
    pub(super) fn take_unjoined(&mut self, time: i64) -> Vec<RowId> {
        let mut found = Vec::new();
        let Some(waiting) = &mut self.waiting else { return found };
        while let Some(Reverse((earliest, row))) = waiting.peek().copied().filter(|waiting| waiting.0.0 <= time) {
            waiting.pop();
            let slice = earliest.div_euclid(self.slice_ms);
            // It is done with: restored with its slice, it is not asked for again.
            if let Some(slice) = self.slices.get_mut(&slice)
                && !std::mem::replace(&mut slice.joined[row as usize], true)
            {
                found.push(slice.ids[row as usize]);
            }
        }
        found
    }

    /// Drops the slices whose rows are all at or before `time`.
    pub(super) fn drop_until(&mut self, time: i64) {
        while let Some(slice) = self.slices.first_entry()
            && self.slice_ms.saturating_mul(slice.key().saturating_add(1)).saturating_sub(1) <= time
        {
            self.store.delete(&slice.remove().ids);
        }
    }

    /// The time up to which something is to be done next: rows come out or a slice goes away.
    pub(super) fn next_time(&self) -> Option<i64> {
        let waiting = self.waiting.as_ref().and_then(BinaryHeap::peek).map(|waiting| waiting.0.0);
        let slice = self.slices.keys().next().map(|slice| (slice + 1) * self.slice_ms - 1);
        waiting.into_iter().chain(slice).min()
    }
}

/// The slices of a side, ready to be looked into.
pub(super) struct Slices<'a> {
    slice_ms: i64,
    /// Number of the slice, and the slice.
    slices: Vec<(i64, &'a Slice)>,
    /// What their ids stand for.
    pub(super) store: &'a RowStore,
}

impl Slices<'_> {
    /// Calls `found` with the rows of a hash whose time is from `low` to `high`: the number of the slice here, and the row.
    #[inline]
    pub(super) fn find(&self, hash: u64, low: i64, high: i64, mut found: impl FnMut(u32, u32)) {
        if low > high {
            return;
        }
        let (first, last) = (low.div_euclid(self.slice_ms), high.div_euclid(self.slice_ms));
        let from = self.slices.partition_point(|(number, _)| *number < first);
        for (at, (number, slice)) in self.slices.iter().enumerate().skip(from) {
            if *number > last {
                break;
            }
            for row in slice.index.rows(hash) {
                if (low..=high).contains(&slice.times[row as usize]) {
                    found(at as u32, row);
                }
            }
        }
    }

    /// The place of a found row for all time.
    pub(super) fn row_place(&self, slice: u32, row: u32) -> RowPlace {
        RowPlace { slice: self.slices[slice as usize].0, row }
    }

    /// The id of a found row.
    #[inline]
    pub(super) fn id(&self, slice: u32, row: u32) -> RowId {
        self.slices[slice as usize].1.ids[row as usize]
    }
}

/// Rows in the order of their arrival: the columns of the input, the time, and whether the row had a partner where that is asked.
impl StateTable for TimedRows {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let (mut times, mut joined) = (RowAttribute::new(0), RowAttribute::new(0));
        for slice in self.slices.values() {
            slice.ids.iter().zip(&slice.times).for_each(|(id, time)| times.set(*id, *time));
            slice.ids.iter().zip(&slice.joined).filter(|(_, is)| **is).for_each(|(id, _)| joined.set(*id, 1));
        }
        let changing = self.waiting.is_some().then_some(joined);
        let rows = FrozenStore::new(&self.store, &self.keys, self.max_parallelism);
        Ok(StateTableSnapshot::frozen(FrozenStore { constant: Some(times), changing, ..rows }))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        let mut hashes = Vec::new();
        snapshot.for_each_batch(|rows| {
            let rows = rows_in_range(&rows, range)?;
            if rows.num_rows() == 0 {
                return Ok(());
            }
            let (columns, numbers) = rows.columns().split_at(self.store.num_columns());
            let keys: Vec<ArrayRef> = self.keys.iter().map(|key| Arc::clone(&columns[*key])).collect();
            hash_columns(&keys, rows.num_rows(), &mut hashes);
            let joined: Vec<bool> = match numbers.get(1) {
                Some(joined) => joined.as_primitive::<UInt32Type>().values().iter().map(|is| *is > 0).collect(),
                None => vec![false; rows.num_rows()],
            };
            let times = numbers[0].as_primitive::<Int64Type>().values();
            let all: Vec<u32> = (0..rows.num_rows() as u32).collect();
            self.push(&NewRows { columns, times, hashes: &hashes, joined: &joined }, &all)
        })
    }

    fn bytes(&self) -> usize {
        let slice_bytes =
            |slice: &Slice| slice.index.bytes() + slice.times.capacity() * size_of::<(i64, RowId)>() + slice.joined.capacity();
        let waiting = self.waiting.as_ref().map_or(0, |waiting| waiting.capacity() * size_of::<(i64, u32)>());
        self.store.bytes() + self.slices.values().map(slice_bytes).sum::<usize>() + waiting
    }
}
