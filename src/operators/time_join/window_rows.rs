//! The rows of one side of a window join, by window, as they came.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, UInt32Array};
use arrow::compute;
use arrow::datatypes::Int64Type;

use crate::error::Result;
use crate::operators::keyed_state::{key_groups_of, rows_in_range, state_rows};
use crate::runtime::{FrozenState, StateTable, StateTableSnapshot, TakeBatch};
use crate::types::{Batch, KeyGroupRange, compact_texts, hash_columns};

/// A window in local milliseconds, ordered by its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Window {
    pub(super) end: i64,
    pub(super) start: i64,
}

/// The rows of one side by window.
#[derive(Debug)]
pub(super) struct WindowRows {
    windows: BTreeMap<Window, Vec<Batch>>,
    bytes: usize,
    /// The columns that rows are distributed by.
    keys: Vec<usize>,
    max_parallelism: u32,
}

impl WindowRows {
    /// For rows that are distributed by these columns.
    pub(super) fn new(keys: Vec<usize>, max_parallelism: u32) -> Self {
        WindowRows { windows: BTreeMap::new(), bytes: 0, keys, max_parallelism }
    }

    /// The window that ends first.
    pub(super) fn first(&self) -> Option<Window> {
        self.windows.keys().next().copied()
    }

    /// Adds rows of a window; `rows` rise.
    pub(super) fn push(&mut self, window: Window, columns: &[ArrayRef], rows: Vec<u32>) -> Result<()> {
        let (first, count) = (rows[0] as usize, rows.len());
        let is_range = rows[count - 1] as usize - first + 1 == count;
        // A slice holds on to all rows of its batch: only where it is most of them.
        let is_most = columns.first().is_none_or(|column| 2 * count > column.len());
        let indices = (!is_range || !is_most).then(|| UInt32Array::from(rows));
        let column = |column: &ArrayRef| {
            let part = match &indices {
                Some(indices) => compute::take(column, indices, None)?,
                None => column.slice(first, count),
            };
            Ok(compact_texts(&part))
        };
        self.push_batch(window, Batch::new(columns.iter().map(column).collect::<Result<_>>()?, count))
    }

    /// Small pieces are put together, so that a window has few.
    fn push_batch(&mut self, window: Window, mut piece: Batch) -> Result<()> {
        let pieces = self.windows.entry(window).or_default();
        self.bytes -= pieces.iter().map(Batch::bytes).sum::<usize>();
        while let Some(last) = pieces.pop_if(|last| last.num_rows() < 2 * piece.num_rows()) {
            piece = Batch::concat(&[last, piece])?;
        }
        pieces.push(piece);
        self.bytes += pieces.iter().map(Batch::bytes).sum::<usize>();
        Ok(())
    }

    /// Takes the rows of a window out; none = it has none.
    pub(super) fn take(&mut self, window: Window) -> Result<Option<Batch>> {
        let Some(pieces) = self.windows.remove(&window) else { return Ok(None) };
        self.bytes -= pieces.iter().map(Batch::bytes).sum::<usize>();
        Ok(Some(Batch::concat(&pieces)?))
    }
}

/// What a snapshot shares with the table.
struct FrozenRows {
    pieces: Vec<(Window, Batch)>,
    keys: Vec<usize>,
    max_parallelism: u32,
}

impl FrozenState for FrozenRows {
    fn for_each_batch(&self, take: &mut TakeBatch<'_>) -> Result<()> {
        let mut hashes = Vec::new();
        for (window, rows) in &self.pieces {
            let keys: Vec<ArrayRef> = self.keys.iter().map(|key| Arc::clone(rows.column(*key))).collect();
            hash_columns(&keys, rows.num_rows(), &mut hashes);
            let key_groups = key_groups_of(hashes.iter().copied(), self.max_parallelism);
            let bound = |time: i64| Arc::new(Int64Array::from_value(time, rows.num_rows())) as ArrayRef;
            let columns = [bound(window.end), bound(window.start)].into_iter().chain(rows.columns().iter().cloned());
            take(state_rows(key_groups, columns.collect())?)?;
        }
        Ok(())
    }
}

/// Rows as `key_group`, end and start of the window, the columns of the input.
impl StateTable for WindowRows {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let pieces = self.windows.iter().flat_map(|(window, pieces)| pieces.iter().map(|piece| (*window, piece.clone())));
        let (keys, max_parallelism) = (self.keys.clone(), self.max_parallelism);
        Ok(StateTableSnapshot::frozen(FrozenRows { pieces: pieces.collect(), keys, max_parallelism }))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        snapshot.for_each_batch(|rows| {
            let rows = rows_in_range(&rows, range)?;
            if rows.num_rows() == 0 {
                return Ok(());
            }
            let bound = |index: usize| rows.column(index).as_primitive::<Int64Type>().value(0);
            let window = Window { end: bound(0), start: bound(1) };
            self.push_batch(window, Batch::new(rows.columns()[2..].to_vec(), rows.num_rows()))
        })
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
