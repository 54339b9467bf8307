//! The frozen rows of a [`RowStore`]: chunks that are full are pieces that earlier checkpoints may have, in whatever order rows were
//! deleted since.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, UInt32Array};
use arrow::buffer::BooleanBuffer;

use super::keyed_state::{key_groups_of, numbered_columns, state_rows};
use super::state_ttl::{FrozenTimes, with_times};
use crate::error::Result;
use crate::runtime::state::{RowAttribute, RowId, RowStore, StoredChunk};
use crate::runtime::{Beside, FrozenState, StatePiece, StateSink, TakeBatch, with_texts};
use crate::types::hash_columns;

/// The rows of a store, in the order in which they came: key group, columns, and a number for each row where it has one.
pub(super) struct FrozenStore {
    /// The rows.
    pub(super) store: RowStore,
    /// The columns that decide the key group.
    pub(super) keys: Vec<usize>,
    /// Key groups of the job.
    pub(super) max_parallelism: u32,
    /// A number that a row keeps for life: a column after the others.
    pub(super) constant: Option<RowAttribute<i64>>,
    /// A number that changes: the last column.
    pub(super) changing: Option<RowAttribute<u32>>,
    /// When each row was written, behind all other columns. That of a row with a number that changes may change too.
    pub(super) times: Option<FrozenTimes>,
}

impl FrozenStore {
    /// Of rows without numbers.
    pub(super) fn new(store: &RowStore, keys: &[usize], max_parallelism: u32) -> Self {
        FrozenStore { store: store.clone(), keys: keys.to_vec(), max_parallelism, constant: None, changing: None, times: None }
    }

    /// The rows `ids`, whose columns are these, without the number that changes.
    fn with_key_groups(&self, ids: &[RowId], keys: &[ArrayRef], mut columns: Vec<ArrayRef>) -> Result<RecordBatch> {
        let mut hashes = Vec::new();
        hash_columns(keys, ids.len(), &mut hashes);
        if let Some(constant) = &self.constant {
            columns.push(Arc::new(Int64Array::from_iter_values(ids.iter().map(|id| constant.get(*id)))));
        }
        state_rows(key_groups_of(hashes.into_iter(), self.max_parallelism), columns)
    }

    fn changing_of(&self, ids: &[RowId]) -> Option<ArrayRef> {
        let changing = self.changing.as_ref()?;
        Some(Arc::new(UInt32Array::from_iter_values(ids.iter().map(|id| changing.get(*id)))))
    }

    /// Whether the times of rows are given beside them.
    fn times_change(&self) -> bool {
        self.times.as_ref().is_some_and(|times| times.change || self.changing.is_some())
    }

    fn times_of(&self, ids: &[RowId]) -> Option<ArrayRef> {
        self.times.as_ref().map(|times| times.of(ids))
    }

    /// The rows of a chunk that are there.
    fn live_rows(&self, chunk: &StoredChunk<'_>) -> Result<RecordBatch> {
        let ids = chunk.live();
        let columns = self.store.take(&ids)?;
        let keys: Vec<ArrayRef> = self.keys.iter().map(|key| Arc::clone(&columns[*key])).collect();
        let rows = self.with_key_groups(&ids, &keys, columns)?;
        let rows = match self.changing_of(&ids) {
            Some(changing) => {
                let columns = rows.columns()[1..].iter().cloned().chain([changing]).collect();
                numbered_columns(Arc::clone(rows.column(0)), columns)?
            }
            None => rows,
        };
        with_times(rows, self.times_of(&ids))
    }

    /// What changes of the rows that a chunk stores.
    fn beside(&self, chunk: &StoredChunk<'_>) -> Result<Option<RecordBatch>> {
        let mask = chunk.live_mask();
        if mask.is_none() && self.changing.is_none() && !self.times_change() {
            return Ok(None);
        }
        let ids = chunk.stored();
        let mask = mask.unwrap_or_else(|| BooleanBuffer::new_set(ids.len()));
        let columns = self.changing_of(&ids).into_iter().collect();
        let beside = numbered_columns(Arc::new(BooleanArray::new(mask, None)), columns)?;
        with_times(beside, if self.times_change() { self.times_of(&ids) } else { None }).map(Some)
    }

    /// All that a chunk stores.
    fn stored_rows(&self, chunk: &StoredChunk<'_>) -> Result<RecordBatch> {
        let ids = chunk.stored();
        let rows = self.with_key_groups(&ids, &self.store.take_columns(&ids, &self.keys)?, chunk.columns()?)?;
        let texts = (0..self.store.num_columns()).filter(|column| self.store.is_text(*column));
        let rows = with_texts(rows, texts.map(|column| column + 1))?;
        with_times(rows, if self.times_change() { None } else { self.times_of(&ids) })
    }
}

impl FrozenState for FrozenStore {
    fn for_each_batch(&self, take: &mut TakeBatch<'_>) -> Result<()> {
        self.store.chunks().iter().try_for_each(|chunk| take(self.live_rows(chunk)?))
    }

    fn write(&self, sink: &mut dyn StateSink) -> Result<()> {
        for chunk in &self.store.chunks() {
            match chunk.content() {
                None => sink.rows(self.live_rows(chunk)?)?,
                Some(content) => {
                    let beside = self.beside(chunk)?.map(Beside::Rows);
                    sink.piece(StatePiece { content, beside, rows: Some(&|| self.stored_rows(chunk)) })?;
                }
            }
        }
        Ok(())
    }
}
