//! The last visible number where a column says it (`rn <= c`) and rows can be taken back: each row is asked for its own.
//!
//! Over rows that only come, the first row of a partition speaks for all, as in Flink. Rows that are updated come as often as batches say,
//! and the first one may be gone: so there each row is compared with its own column, as the words say. Which rows are visible then follows
//! from the rows that are there alone. No number behind the greatest of them is looked at.

use std::collections::BTreeMap;

use crate::runtime::state::{RowAttribute, RowId};

/// The ends of rows, and how many rows of each partition have which.
#[derive(Debug)]
pub(super) struct RowEnds {
    of_rows: RowAttribute<u64>,
    of_groups: Vec<BTreeMap<u64, u32>>,
}

impl RowEnds {
    /// Of no rows.
    pub(super) fn new() -> Self {
        RowEnds { of_rows: RowAttribute::new(0), of_groups: Vec::new() }
    }

    /// The greatest of a partition.
    pub(super) fn greatest(&self, group: u32) -> usize {
        let ends = self.of_groups.get(group as usize);
        ends.and_then(BTreeMap::last_key_value).map_or(0, |(end, _)| usize::try_from(*end).unwrap_or(usize::MAX))
    }

    /// A row has come.
    pub(super) fn add(&mut self, group: u32, id: RowId, end: u64) {
        self.of_rows.set(id, end);
        let group = group as usize;
        if group >= self.of_groups.len() {
            self.of_groups.resize_with(group + 1, BTreeMap::new);
        }
        *self.of_groups[group].entry(end).or_default() += 1;
    }

    /// A row goes.
    pub(super) fn remove(&mut self, group: u32, id: RowId) {
        let end = self.of_rows.get(id);
        let ends = &mut self.of_groups[group as usize];
        if let Some(count) = ends.get_mut(&end) {
            *count -= 1;
            if *count == 0 {
                ends.remove(&end);
            }
        }
    }

    /// Of the rows at the places from `first` on, those whose place is behind their own end become [`RowId::NONE`].
    pub(super) fn hide(&self, first: usize, ids: &mut [RowId]) {
        for (place, id) in ids.iter_mut().enumerate() {
            if self.of_rows.get(*id) < (first + place) as u64 {
                *id = RowId::NONE;
            }
        }
    }

    /// These chunks of the store have no row any more.
    pub(super) fn release(&mut self, chunks: &[usize]) {
        self.of_rows.release(chunks);
    }

    /// Bytes held, about.
    pub(super) fn bytes(&self) -> usize {
        self.of_rows.bytes() + self.of_groups.capacity() * size_of::<BTreeMap<u64, u32>>()
    }
}
