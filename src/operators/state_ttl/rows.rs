//! The time to live of single rows of a store.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};

use super::{NEVER, Slices};
use crate::runtime::OperatorContext;
use crate::runtime::state::{RowAttribute, RowId};

/// When each row of a store was written, and what is over.
#[derive(Debug)]
pub(in crate::operators) struct RowTtl {
    slices: Slices<RowId>,
    written: RowAttribute<i64>,
}

/// The times as they were when they were frozen.
pub(in crate::operators) struct FrozenTimes {
    written: RowAttribute<i64>,
    /// Whether they change while their rows stay as they are.
    pub(in crate::operators) change: bool,
}

impl FrozenTimes {
    /// Of rows whose keys were written then: those times change.
    pub(super) fn of_keys(rows: impl Iterator<Item = (RowId, i64)>) -> Self {
        let mut written = RowAttribute::new(NEVER);
        rows.for_each(|(id, at)| written.set(id, at));
        FrozenTimes { written, change: true }
    }

    /// When these rows were written.
    pub(in crate::operators) fn of(&self, ids: &[RowId]) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(ids.iter().map(|id| self.written.get(*id))))
    }
}

impl RowTtl {
    /// For an operator that keeps the rows of this input; none = they have no time to live.
    pub(in crate::operators) fn new(context: &OperatorContext, input: usize) -> Option<Self> {
        Some(RowTtl { slices: Slices::new(context, input)?, written: RowAttribute::new(NEVER) })
    }

    /// Reads the clock for all that follows; gives the rows that nobody has asked for and that are over, each once.
    pub(in crate::operators) fn tick(&mut self) -> Vec<RowId> {
        self.slices.tick();
        let mut over = Vec::new();
        for (slice, ids) in self.slices.sweep() {
            for id in ids {
                let written = self.written.get(id);
                if written != NEVER && self.slices.slice_of(written) == slice {
                    self.written.set(id, NEVER);
                    over.push(id);
                }
            }
        }
        self.slices.expire(over.len());
        over
    }

    /// Whether a row is over, though it has not been swept yet.
    #[inline]
    pub(in crate::operators) fn is_over(&self, id: RowId) -> bool {
        self.slices.is_over(self.written.get(id))
    }

    /// Rows that are over have been found, and are removed.
    pub(in crate::operators) fn count_expired(&mut self, rows: usize) {
        self.slices.count_expired(rows);
    }

    /// These rows are written now.
    pub(in crate::operators) fn write(&mut self, ids: &[RowId]) {
        let now = self.slices.now;
        ids.iter().for_each(|id| self.write_at(*id, now));
        self.slices.tidy(|id| self.written.get(id));
    }

    #[inline]
    fn write_at(&mut self, id: RowId, at: i64) {
        let before = self.written.get(id);
        self.written.set(id, at);
        self.slices.note(id, before, at);
    }

    /// These rows are gone, and these chunks of the store have none any more.
    pub(in crate::operators) fn remove(&mut self, ids: &[RowId], released: &[usize]) {
        for id in ids {
            if self.written.get(*id) != NEVER {
                self.written.set(*id, NEVER);
                self.slices.forget(1);
            }
        }
        self.written.release(released);
    }

    /// Rows that [`Self::tick`] gave stay all the same, and are asked for again later.
    pub(in crate::operators) fn spare(&mut self, ids: &[RowId]) {
        self.slices.count_spared(ids.len());
        self.write(ids);
    }

    /// Whether a row is none that is kept: [`Self::tick`] gave it, or it never was.
    #[inline]
    pub(in crate::operators) fn is_gone(&self, id: RowId) -> bool {
        self.written.get(id) == NEVER
    }

    /// When [`Self::tick`] has something to give.
    pub(in crate::operators) fn next_timer(&self) -> Option<i64> {
        self.slices.next_sweep()
    }

    /// The times as they are now. `change`: they change while their rows stay as they are.
    pub(in crate::operators) fn frozen(&self, change: bool) -> FrozenTimes {
        FrozenTimes { written: self.written.clone(), change }
    }

    /// Restored rows with their times; none = now.
    pub(in crate::operators) fn restore(&mut self, ids: &[RowId], times: Option<&Int64Array>) {
        let now = self.slices.tick();
        for (row, id) in ids.iter().enumerate() {
            self.write_at(*id, times.map_or(now, |times| times.value(row)));
        }
    }

    /// Bytes held.
    pub(in crate::operators) fn bytes(&self) -> usize {
        self.written.bytes() + self.slices.bytes()
    }
}
