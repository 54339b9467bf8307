//! The groups of windows that have changed since they were shown, with what was shown of them: what a firing owes.
//!
//! A group is noted before its first row since the last firing is added, so that a firing, however long it was delayed, knows both the
//! former result and the new one.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::compute;
use arrow::datatypes::Int64Type;

use super::slices::SliceKey;
use crate::error::Result;
use crate::operators::group_table::GroupTable;
use crate::operators::keyed_state::{key_groups_of, restored_rows, rows_in_range, state_rows};
use crate::runtime::{StateTable, StateTableSnapshot};
use crate::types::{Batch, KeyGroupRange, hash_columns};

/// Columns of state before the keys: end, start, whether the group was shown.
const STATE_COLUMNS: usize = 3;

/// Groups noted together: those of a batch.
struct Noted {
    keys: Vec<ArrayRef>,
    /// Whether they were shown; of others there is no former result.
    was: BooleanArray,
    results: Vec<ArrayRef>,
}

/// What a window owes.
#[derive(Default)]
pub(super) struct OwedGroups {
    /// The groups in the order in which they were noted.
    groups: Vec<u32>,
    noted: Vec<Noted>,
    /// Whether a group is among them, by its number.
    marks: Vec<bool>,
}

/// Groups with what was shown of them: keys, whether they were shown, results.
pub(super) struct Former {
    pub(super) groups: Vec<u32>,
    pub(super) keys: Vec<ArrayRef>,
    pub(super) was: Vec<bool>,
    pub(super) results: Vec<ArrayRef>,
}

impl OwedGroups {
    /// Notes groups, those of the last `assign`, before rows are added to them: `is_shown` tells whether one was shown.
    pub(super) fn note(&mut self, table: &GroupTable, is_shown: &dyn Fn(u32) -> bool) -> Result<()> {
        self.marks.resize(table.keys.num_groups(), false);
        let first = self.groups.len();
        for group in table.groups() {
            if !std::mem::replace(&mut self.marks[*group as usize], true) {
                self.groups.push(*group);
            }
        }
        let groups = &self.groups[first..];
        if groups.is_empty() {
            return Ok(());
        }
        let was = groups.iter().map(|group| Some(is_shown(*group))).collect();
        self.noted.push(Noted { keys: table.keys.keys(groups)?, was, results: table.aggregates.evaluate(groups)? });
        Ok(())
    }

    /// Takes all of them out.
    pub(super) fn take(&mut self) -> Result<Option<Former>> {
        let OwedGroups { groups, noted, .. } = std::mem::take(self);
        let Some(first) = noted.first() else { return Ok(None) };
        let joined = |of: &dyn Fn(&Noted) -> &Vec<ArrayRef>| -> Result<Vec<ArrayRef>> {
            let columns = (0..of(first).len()).map(|column| {
                let parts: Vec<&dyn Array> = noted.iter().map(|noted| of(noted)[column].as_ref()).collect();
                Ok(compute::concat(&parts)?)
            });
            columns.collect()
        };
        let was = noted.iter().flat_map(|noted| noted.was.values().iter()).collect();
        Ok(Some(Former { groups, keys: joined(&|noted| &noted.keys)?, was, results: joined(&|noted| &noted.results)? }))
    }
}

/// What the windows of an operator owe, as state.
pub(super) struct Owed {
    windows: BTreeMap<SliceKey, OwedGroups>,
    /// Rows that came back, whose groups have not been found yet.
    restored: Vec<Batch>,
    num_keys: usize,
    max_parallelism: u32,
}

impl Owed {
    /// Nothing.
    pub(super) fn new(num_keys: usize, max_parallelism: u32) -> Self {
        Owed { windows: BTreeMap::new(), restored: Vec::new(), num_keys, max_parallelism }
    }

    /// What a window owes.
    pub(super) fn of(&mut self, window: SliceKey) -> &mut OwedGroups {
        self.windows.entry(window).or_default()
    }

    /// Forgets a window.
    pub(super) fn remove(&mut self, window: SliceKey) -> Option<OwedGroups> {
        self.windows.remove(&window)
    }

    /// After a restart, finds the groups in the tables of their windows.
    pub(super) fn find_groups(&mut self, tables: &mut BTreeMap<SliceKey, super::updating_windows::UpdatingWindow>) -> Result<()> {
        for rows in std::mem::take(&mut self.restored) {
            let window = window_of(&rows);
            let Some(table) = tables.get_mut(&window).map(|window| &mut window.table) else { continue };
            let keys = rows.columns()[STATE_COLUMNS..][..self.num_keys].to_vec();
            table.assign(&keys, rows.num_rows())?;
            let owed = self.windows.entry(window).or_default();
            owed.marks.resize(table.keys.num_groups(), false);
            table.groups().iter().for_each(|group| owed.marks[*group as usize] = true);
            owed.groups.extend_from_slice(table.groups());
            let results = rows.columns()[STATE_COLUMNS + self.num_keys..].to_vec();
            owed.noted.push(Noted { keys, was: rows.column(2).as_boolean().clone(), results });
        }
        Ok(())
    }
}

fn window_of(rows: &Batch) -> SliceKey {
    let bound = |index: usize| rows.column(index).as_primitive::<Int64Type>().value(0);
    SliceKey { end: bound(0), start: bound(1) }
}

impl StateTable for Owed {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let keys = STATE_COLUMNS..STATE_COLUMNS + self.num_keys;
        let mut rows = restored_rows(&self.restored, keys, self.max_parallelism)?;
        let mut hashes = Vec::new();
        for (window, owed) in &self.windows {
            for noted in &owed.noted {
                let count = noted.was.len();
                hash_columns(&noted.keys, count, &mut hashes);
                let bounds = [window.end, window.start].map(|time| Arc::new(Int64Array::from_value(time, count)) as ArrayRef);
                let mut columns = bounds.to_vec();
                columns.push(Arc::new(noted.was.clone()));
                columns.extend(noted.keys.iter().chain(&noted.results).cloned());
                rows.push(state_rows(key_groups_of(hashes.iter().copied(), self.max_parallelism), columns)?);
            }
        }
        Ok(StateTableSnapshot::new(rows))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            let rows = rows_in_range(rows, range)?;
            self.restored.extend((!rows.is_empty()).then_some(rows));
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        let noted =
            |noted: &Noted| noted.keys.iter().chain(&noted.results).map(|column| column.get_array_memory_size()).sum::<usize>();
        self.windows.values().flat_map(|owed| &owed.noted).map(noted).sum()
    }
}
