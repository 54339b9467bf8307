//! The rows of one side of a window join, by window, as they came.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use arrow::compute;
use arrow::datatypes::Int64Type;

use crate::error::Result;
use crate::operators::keyed_state::{key_groups_of, rows_in_range, state_rows};
use crate::runtime::{FrozenState, StatePiece, StateSink, StateTable, StateTableSnapshot, TakeBatch};
use crate::types::{Batch, KeyGroupRange, compact_texts, hash_columns};

/// Rows of a piece that is worth being referred to by later checkpoints: of fewer it would take more to say where they are.
const PIECE_ROWS: usize = if cfg!(test) { 4 } else { 1_024 };

/// A window in local milliseconds, ordered by its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Window {
    pub(super) end: i64,
    pub(super) start: i64,
}

/// Rows of a window that stay together until more come.
#[derive(Debug, Clone)]
struct Piece {
    /// A number that no other piece has or had.
    content: u64,
    rows: Batch,
}

/// The rows of one side by window.
#[derive(Debug)]
pub(super) struct WindowRows {
    windows: BTreeMap<Window, Vec<Piece>>,
    /// The last number of a piece.
    last_content: u64,
    bytes: usize,
    /// The columns that rows are distributed by.
    keys: Vec<usize>,
    max_parallelism: u32,
}

impl WindowRows {
    /// For rows that are distributed by these columns.
    pub(super) fn new(keys: Vec<usize>, max_parallelism: u32) -> Self {
        WindowRows { windows: BTreeMap::new(), last_content: 0, bytes: 0, keys, max_parallelism }
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
    fn push_batch(&mut self, window: Window, mut rows: Batch) -> Result<()> {
        let pieces = self.windows.entry(window).or_default();
        self.bytes -= bytes_of(pieces);
        while let Some(last) = pieces.pop_if(|last| last.rows.num_rows() < 2 * rows.num_rows()) {
            rows = Batch::concat(&[last.rows, rows])?;
        }
        self.last_content += 1;
        pieces.push(Piece { content: self.last_content, rows });
        self.bytes += bytes_of(pieces);
        Ok(())
    }

    /// Takes the rows of a window out; none = it has none.
    pub(super) fn take(&mut self, window: Window) -> Result<Option<Batch>> {
        let Some(pieces) = self.windows.remove(&window) else { return Ok(None) };
        self.bytes -= bytes_of(&pieces);
        let rows: Vec<Batch> = pieces.into_iter().map(|piece| piece.rows).collect();
        Ok(Some(Batch::concat(&rows)?))
    }
}

fn bytes_of(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| piece.rows.bytes()).sum()
}

/// What a snapshot shares with the table.
struct FrozenRows {
    pieces: Vec<(Window, Piece)>,
    keys: Vec<usize>,
    max_parallelism: u32,
}

impl FrozenRows {
    fn rows_of(&self, window: Window, rows: &Batch) -> Result<RecordBatch> {
        let mut hashes = Vec::new();
        let keys: Vec<ArrayRef> = self.keys.iter().map(|key| Arc::clone(rows.column(*key))).collect();
        hash_columns(&keys, rows.num_rows(), &mut hashes);
        let key_groups = key_groups_of(hashes.into_iter(), self.max_parallelism);
        let bound = |time: i64| Arc::new(Int64Array::from_value(time, rows.num_rows())) as ArrayRef;
        let columns = [bound(window.end), bound(window.start)].into_iter().chain(rows.columns().iter().cloned());
        state_rows(key_groups, columns.collect())
    }
}

impl FrozenState for FrozenRows {
    fn for_each_batch(&self, take: &mut TakeBatch<'_>) -> Result<()> {
        self.pieces.iter().try_for_each(|(window, piece)| take(self.rows_of(*window, &piece.rows)?))
    }

    fn write(&self, sink: &mut dyn StateSink) -> Result<()> {
        for (window, Piece { content, rows }) in &self.pieces {
            if rows.num_rows() < PIECE_ROWS {
                sink.rows(self.rows_of(*window, rows)?)?;
            } else {
                let made = || self.rows_of(*window, rows);
                sink.piece(StatePiece { content: *content, beside: None, rows: Some(&made) })?;
            }
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
