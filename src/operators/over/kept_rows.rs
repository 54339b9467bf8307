//! The rows that OVER keeps: those whose time has not come, and those that are still in the frame of one to come.

use std::collections::{BTreeMap, VecDeque};

use arrow::datatypes::DataType;

use crate::error::Result;
use crate::operators::frozen_store::FrozenStore;
use crate::operators::keyed_state::{RowsBefore, restored_rows, rows_in_range};
use crate::runtime::state::{RowAttribute, RowId, RowStore};
use crate::runtime::{StateTable, StateTableSnapshot};
use crate::types::{Batch, KeyGroupRange, Schema};

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
    /// The time of each row.
    times: RowAttribute<i64>,
    /// Whether a row has come out, where such rows are kept.
    framed: Option<RowAttribute<u32>>,
    /// Rows whose time has not come, in the order in which they came.
    pub(super) pending: BTreeMap<i64, Vec<TimedRow>>,
    /// For each partition the rows of the last row's frame, where frames have a start.
    pub(super) frames: Vec<VecDeque<TimedRow>>,
    partition_keys: Vec<usize>,
    max_parallelism: u32,
    /// Restored rows that are not in their places yet: their columns, the time of each, and whether it has come out, where such rows are kept.
    restored: Vec<Batch>,
}

impl KeptRows {
    /// No rows yet. `frames_start`: rows that have come out are kept as long as others have them in their frames.
    pub(super) fn new(input: &Schema, partition_keys: Vec<usize>, frames_start: bool, max_parallelism: u32) -> Result<Self> {
        let types: Vec<DataType> = input.fields.iter().map(|field| field.data_type.to_arrow()).collect();
        Ok(KeptRows {
            store: RowStore::new(&types)?,
            times: RowAttribute::new(0),
            framed: frames_start.then(|| RowAttribute::new(0)),
            pending: BTreeMap::new(),
            frames: Vec::new(),
            partition_keys,
            max_parallelism,
            restored: Vec::new(),
        })
    }

    /// A row waits for its time.
    pub(super) fn wait(&mut self, row: TimedRow) {
        self.note(row, false);
        self.pending.entry(row.time).or_default().push(row);
    }

    /// A row was restored that had come out.
    pub(super) fn frame(&mut self, row: TimedRow) {
        self.note(row, true);
        self.frames[row.group as usize].push_back(row);
    }

    /// What is kept beside a row: its time, and whether it has come out.
    pub(super) fn note(&mut self, row: TimedRow, has_come_out: bool) {
        self.times.set(row.id, row.time);
        if let Some(framed) = &mut self.framed {
            framed.set(row.id, u32::from(has_come_out));
        }
    }

    /// Nobody looks at these rows any more.
    pub(super) fn delete(&mut self, ids: &[RowId]) {
        let released = self.store.delete(ids);
        self.times.release(&released);
        if let Some(framed) = &mut self.framed {
            framed.release(&released);
        }
    }

    /// Puts the rows of frames into the order of their time, after those of a restart were added in that of their arrival.
    pub(super) fn sort_frames(&mut self) {
        self.frames.iter_mut().for_each(|frame| frame.make_contiguous().sort_by_key(|row| row.time));
    }

    /// The rows of a partition's frame are not needed any more.
    pub(super) fn forget(&mut self, group: u32) {
        if let Some(frame) = self.frames.get_mut(group as usize) {
            let gone: Vec<RowId> = frame.drain(..).map(|row| row.id).collect();
            self.delete(&gone);
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
        let restored = restored_rows(&self.restored, self.partition_keys.iter().copied(), self.max_parallelism)?;
        let rows = FrozenStore::new(&self.store, &self.partition_keys, self.max_parallelism);
        let (constant, changing) = (Some(self.times.clone()), self.framed.clone());
        Ok(StateTableSnapshot::frozen(RowsBefore(restored, FrozenStore { constant, changing, ..rows })))
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
        let beside = self.times.bytes() + self.framed.as_ref().map_or(0, RowAttribute::bytes);
        self.store.bytes() + self.store.len() * size_of::<TimedRow>() + beside + frames + restored
    }
}
