//! The rows of one side of an interval join: kept in slices of time, so that what is too old goes away a slice at a time; in a slice found by
//! the hash of their key.
//!
//! Rows stand in pieces, columns as they came; small pieces are put together, so that a slice has few (as many as the logarithm of
//! its rows). Where rows without a partner come out with NULLs, a heap tells whose time is over.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, UInt32Array};
use arrow::compute;
use arrow::datatypes::Int64Type;

use super::key_index::KeyIndex;
use crate::error::Result;
use crate::operators::keyed_state::{key_groups_of, rows_in_range, state_rows};
use crate::runtime::{StateTable, StateTableSnapshot, TakeBatch};
use crate::types::{Batch, KeyGroupRange, compact_texts, hash_columns};

/// Rows of one side by time and key.
#[derive(Debug)]
pub(super) struct TimedRows {
    slice_ms: i64,
    slices: BTreeMap<i64, Slice>,
    /// Time and number within its slice of each row that may have to come out with NULLs.
    waiting: Option<BinaryHeap<Reverse<(i64, u32)>>>,
    keys: Vec<usize>,
    max_parallelism: u32,
}

/// The rows of a slice of time, numbered as they came.
#[derive(Debug, Default)]
pub(super) struct Slice {
    index: KeyIndex,
    times: Vec<i64>,
    /// Whether a row has had a partner; empty where nobody asks.
    joined: Vec<bool>,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone)]
struct Piece {
    first_row: u32,
    rows: Batch,
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
    pub(super) slice: i64,
    pub(super) row: u32,
}

impl TimedRows {
    /// With slices of this length, by the hash of these columns. `padded`: rows without a partner are asked for.
    pub(super) fn new(slice_ms: i64, keys: Vec<usize>, padded: bool, max_parallelism: u32) -> Self {
        let waiting = padded.then(BinaryHeap::new);
        TimedRows { slice_ms, slices: BTreeMap::new(), waiting, keys, max_parallelism }
    }

    /// The slices that have rows, the earliest first.
    pub(super) fn slices(&self) -> Slices<'_> {
        let mut slices = Slices { slice_ms: self.slice_ms, slices: Vec::new(), pieces: Vec::new() };
        for (number, slice) in &self.slices {
            slices.slices.push((*number, slice, slices.pieces.len()));
            slices.pieces.extend(slice.pieces.iter().map(|piece| piece.rows.columns()));
        }
        slices
    }

    /// Keeps the rows `kept` of those that came in.
    pub(super) fn push(&mut self, rows: &NewRows<'_>, kept: &[u32]) -> Result<()> {
        let mut open = kept.to_vec();
        // Rows come nearly in order of time: a stable sort by slice is cheap.
        let number = |row: &u32| rows.times[*row as usize].div_euclid(self.slice_ms);
        if !open.is_sorted_by_key(number) {
            open.sort_by_key(number);
        }
        for run in open.chunk_by(|a, b| number(a) == number(b)) {
            let slice = self.slices.entry(number(&run[0])).or_default();
            let first_row = slice.times.len() as u32;
            for row in run {
                let row = *row as usize;
                slice.index.push(rows.hashes[row]);
                if let Some(waiting) = &mut self.waiting {
                    if !rows.joined[row] {
                        waiting.push(Reverse((rows.times[row], slice.times.len() as u32)));
                    }
                    slice.joined.push(rows.joined[row]);
                }
                slice.times.push(rows.times[row]);
            }
            let piece = Piece { first_row, rows: taken(rows.columns, run)? };
            slice.add(piece)?;
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
    pub(super) fn take_unjoined(&mut self, time: i64) -> Vec<RowPlace> {
        let mut found = Vec::new();
        let Some(waiting) = &mut self.waiting else { return found };
        while let Some(Reverse((earliest, row))) = waiting.peek().copied().filter(|waiting| waiting.0.0 <= time) {
            waiting.pop();
            let slice = earliest.div_euclid(self.slice_ms);
            if self.slices.get(&slice).is_some_and(|rows| !rows.joined[row as usize]) {
                found.push(RowPlace { slice, row });
            }
        }
        found
    }

    /// Drops the slices whose rows are all at or before `time`.
    pub(super) fn drop_until(&mut self, time: i64) {
        while let Some(slice) = self.slices.first_entry()
            && self.slice_ms.saturating_mul(slice.key().saturating_add(1)).saturating_sub(1) <= time
        {
            slice.remove();
        }
    }

    /// The time up to which something is to be done next: rows come out or a slice goes away.
    pub(super) fn next_time(&self) -> Option<i64> {
        let waiting = self.waiting.as_ref().and_then(BinaryHeap::peek).map(|waiting| waiting.0.0);
        let slice = self.slices.keys().next().map(|slice| (slice + 1) * self.slice_ms - 1);
        waiting.into_iter().chain(slice).min()
    }
}

impl Slice {
    /// Adds the columns of the newest rows, and puts pieces of about the same size together.
    fn add(&mut self, mut piece: Piece) -> Result<()> {
        while let Some(last) = self.pieces.pop_if(|last| last.rows.num_rows() < 2 * piece.rows.num_rows()) {
            piece = Piece { first_row: last.first_row, rows: Batch::concat(&[last.rows, piece.rows])? };
        }
        self.pieces.push(piece);
        Ok(())
    }

    /// The piece of a row, and its place in it.
    #[inline]
    fn place(&self, row: u32) -> (usize, usize) {
        match self.pieces.as_slice() {
            [_] => (0, row as usize),
            pieces => {
                let piece = pieces.partition_point(|piece| piece.first_row <= row) - 1;
                (piece, (row - pieces[piece].first_row) as usize)
            }
        }
    }
}

/// Rows of columns, copied together.
fn taken(columns: &[ArrayRef], rows: &[u32]) -> Result<Batch> {
    let (first, count) = (rows[0] as usize, rows.len());
    let is_range = rows[count - 1] as usize - first + 1 == count;
    let indices = (!is_range).then(|| UInt32Array::from(rows.to_vec()));
    let column = |column: &ArrayRef| {
        let part = match &indices {
            Some(indices) => compute::take(column, indices, None)?,
            None => column.slice(first, count),
        };
        Ok(compact_texts(&part))
    };
    Ok(Batch::new(columns.iter().map(column).collect::<Result<_>>()?, count))
}

/// The slices of a side, ready to be looked into.
pub(super) struct Slices<'a> {
    slice_ms: i64,
    /// Number of the slice, the slice, number of its first piece.
    slices: Vec<(i64, &'a Slice, usize)>,
    /// The columns of all pieces.
    pub(super) pieces: Vec<&'a [ArrayRef]>,
}

impl Slices<'_> {
    /// Calls `found` with the rows of a hash whose time is from `low` to `high`: the number of the slice here, and the row.
    #[inline]
    pub(super) fn find(&self, hash: u64, low: i64, high: i64, mut found: impl FnMut(u32, u32)) {
        if low > high {
            return;
        }
        let (first, last) = (low.div_euclid(self.slice_ms), high.div_euclid(self.slice_ms));
        for (at, (number, slice, _)) in self.slices.iter().enumerate() {
            if *number < first || *number > last {
                continue;
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

    /// The piece of a found row, and its place in it.
    #[inline]
    pub(super) fn place(&self, slice: u32, row: u32) -> (usize, usize) {
        let (_, rows, first_piece) = self.slices[slice as usize];
        let (piece, row) = rows.place(row);
        (first_piece + piece, row)
    }

    /// The same of a row by its place for all time.
    pub(super) fn place_of(&self, place: RowPlace) -> (usize, usize) {
        let at = self.slices.partition_point(|(number, ..)| *number < place.slice);
        self.place(at as u32, place.row)
    }
}

/// What a snapshot shares with the table: columns, and copies of what goes on changing.
struct FrozenRows {
    pieces: Vec<(Batch, Int64Array, BooleanArray)>,
    keys: Vec<usize>,
    max_parallelism: u32,
}

impl crate::runtime::FrozenState for FrozenRows {
    fn for_each_batch(&self, take: &mut TakeBatch<'_>) -> Result<()> {
        let mut hashes = Vec::new();
        for (rows, times, joined) in &self.pieces {
            let keys: Vec<ArrayRef> = self.keys.iter().map(|key| Arc::clone(rows.column(*key))).collect();
            hash_columns(&keys, rows.num_rows(), &mut hashes);
            let key_groups = key_groups_of(hashes.iter().copied(), self.max_parallelism);
            let mut columns: Vec<ArrayRef> = vec![Arc::new(times.clone()), Arc::new(joined.clone())];
            columns.extend(rows.columns().iter().cloned());
            take(state_rows(key_groups, columns)?)?;
        }
        Ok(())
    }
}

/// Rows as `key_group`, time, whether it had a partner, the columns of the input.
impl StateTable for TimedRows {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let mut pieces = Vec::new();
        for slice in self.slices.values() {
            for piece in &slice.pieces {
                let range = piece.first_row as usize..piece.first_row as usize + piece.rows.num_rows();
                let times = Int64Array::from(slice.times[range.clone()].to_vec());
                let joined = match slice.joined.get(range) {
                    Some(joined) => BooleanArray::from(joined.to_vec()),
                    None => BooleanArray::from(vec![false; piece.rows.num_rows()]),
                };
                pieces.push((piece.rows.clone(), times, joined));
            }
        }
        let (keys, max_parallelism) = (self.keys.clone(), self.max_parallelism);
        Ok(StateTableSnapshot::frozen(FrozenRows { pieces, keys, max_parallelism }))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        let mut hashes = Vec::new();
        snapshot.for_each_batch(|rows| {
            let rows = rows_in_range(&rows, range)?;
            if rows.num_rows() == 0 {
                return Ok(());
            }
            let columns = &rows.columns()[2..];
            let keys: Vec<ArrayRef> = self.keys.iter().map(|key| Arc::clone(&columns[*key])).collect();
            hash_columns(&keys, rows.num_rows(), &mut hashes);
            let joined: Vec<bool> = rows.column(1).as_boolean().values().iter().collect();
            let times = rows.column(0).as_primitive::<Int64Type>().values();
            let all: Vec<u32> = (0..rows.num_rows() as u32).collect();
            self.push(&NewRows { columns, times, hashes: &hashes, joined: &joined }, &all)
        })
    }

    fn bytes(&self) -> usize {
        let slice_bytes = |slice: &Slice| {
            let pieces: usize = slice.pieces.iter().map(|piece| piece.rows.bytes()).sum();
            slice.index.bytes() + slice.times.capacity() * size_of::<i64>() + slice.joined.capacity() + pieces
        };
        let waiting = self.waiting.as_ref().map_or(0, |waiting| waiting.capacity() * size_of::<(i64, u32)>());
        self.slices.values().map(slice_bytes).sum::<usize>() + waiting
    }
}
