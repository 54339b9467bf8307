//! The rows that OVER keeps: those whose time has not come, and those that are still in the frame of one to come.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array};
use arrow::datatypes::DataType;

use crate::error::Result;
use crate::operators::keyed_state::{key_groups_of, rows_in_range, state_rows};
use crate::runtime::state::{RowId, RowStore};
use crate::runtime::{StateTable, StateTableSnapshot, TakeBatch};
use crate::types::{Batch, KeyGroupRange, Schema, hash_columns};

/// Rows of a batch of a snapshot.
const SNAPSHOT_ROWS: usize = 8_192;

/// A row of a partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimedRow {
    pub(super) group: u32,
    /// Milliseconds.
    pub(super) time: i64,
    pub(super) id: RowId,
}

/// The rows that OVER keeps.
pub(super) struct KeptRows {
    pub(super) store: RowStore,
    /// Rows whose time has not come, in the order in which they came.
    pub(super) pending: BTreeMap<i64, Vec<TimedRow>>,
    /// For each partition the rows of the last row's frame, where frames have a start.
    pub(super) frames: Vec<VecDeque<TimedRow>>,
    partition_keys: Vec<usize>,
    max_parallelism: u32,
    /// Restored rows that are not in their places yet: whether each is pending, its time, its columns.
    restored: Vec<Batch>,
}

impl KeptRows {
    /// No rows yet.
    pub(super) fn new(input: &Schema, partition_keys: Vec<usize>, max_parallelism: u32) -> Result<Self> {
        let types: Vec<DataType> = input.fields.iter().map(|field| field.data_type.to_arrow()).collect();
        Ok(KeptRows {
            store: RowStore::new(&types)?,
            pending: BTreeMap::new(),
            frames: Vec::new(),
            partition_keys,
            max_parallelism,
            restored: Vec::new(),
        })
    }

    /// A row waits for its time.
    pub(super) fn wait(&mut self, row: TimedRow) {
        self.pending.entry(row.time).or_default().push(row);
    }

    /// The rows of a partition's frame are not needed any more.
    pub(super) fn forget(&mut self, group: u32) {
        if let Some(frame) = self.frames.get_mut(group as usize) {
            let gone: Vec<RowId> = frame.drain(..).map(|row| row.id).collect();
            self.store.delete(&gone);
        }
    }

    /// Whether there are restored rows to be put in their places.
    pub(super) fn has_restored(&self) -> bool {
        !self.restored.is_empty()
    }

    /// Restored rows that are to be put in their places.
    pub(super) fn take_restored(&mut self) -> Vec<Batch> {
        std::mem::take(&mut self.restored)
    }
}

impl StateTable for KeptRows {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let waiting = self.pending.values().flatten().map(|row| (true, *row));
        let framed = self.frames.iter().flatten().map(|row| (false, *row));
        let rows: Vec<(bool, TimedRow)> = waiting.chain(framed).collect();
        let (store, partition_keys, max_parallelism) = (self.store.clone(), self.partition_keys.clone(), self.max_parallelism);
        Ok(StateTableSnapshot::frozen(move |take: &mut TakeBatch<'_>| {
            rows.chunks(SNAPSHOT_ROWS).try_for_each(|rows| {
                let ids: Vec<RowId> = rows.iter().map(|(_, row)| row.id).collect();
                let columns = store.take(&ids)?;
                let keys: Vec<ArrayRef> = partition_keys.iter().map(|key| Arc::clone(&columns[*key])).collect();
                let mut hashes = Vec::new();
                hash_columns(&keys, rows.len(), &mut hashes);
                let pending: ArrayRef = Arc::new(BooleanArray::from_iter(rows.iter().map(|(pending, _)| Some(*pending))));
                let times: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|(_, row)| row.time)));
                let all = [pending, times].into_iter().chain(columns).collect();
                take(state_rows(key_groups_of(hashes.into_iter(), max_parallelism), all)?)
            })
        }))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        snapshot.for_each_batch(|rows| {
            let rows = rows_in_range(&rows, range)?;
            if rows.num_rows() > 0 {
                self.restored.push(rows);
            }
            Ok(())
        })
    }

    fn bytes(&self) -> usize {
        let restored: usize = self.restored.iter().map(Batch::bytes).sum();
        let frames = self.frames.capacity() * size_of::<VecDeque<TimedRow>>();
        self.store.bytes() + self.store.len() * size_of::<TimedRow>() + frames + restored
    }
}
