//! The groups of an aggregation: key → group number → accumulators, and a count of rows where rows can be taken back.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Int64Type};
use hashbrown::HashMap;

use super::group_blocks::{ContentNumbers, FrozenGroups, GroupBlocks, GroupRows};
use super::keyed_state::{key_groups_of, numbered_columns, state_rows};
use super::state_ttl::with_times;
use crate::error::Result;
use crate::expr::{AggregateCall, AggregateSet, FunctionRegistry, GroupKeys};
use crate::types::{RowKind, RowKinds, hash_columns};

/// The groups of an aggregation.
pub(super) struct GroupTable {
    pub(super) keys: GroupKeys,
    pub(super) aggregates: AggregateSet,
    /// Rows of each group, when the input takes rows back: a group without rows is gone.
    row_counts: Option<Vec<i64>>,
    num_keys: usize,
    groups: Vec<u32>,
    hashes: Vec<u64>,
    blocks: GroupBlocks,
}

impl GroupTable {
    /// For keys of these Arrow types.
    pub(super) fn new(
        key_types: &[DataType],
        calls: &[AggregateCall],
        functions: &FunctionRegistry,
        retractable: bool,
    ) -> Result<Self> {
        Ok(GroupTable {
            keys: GroupKeys::new(key_types)?,
            aggregates: AggregateSet::new(calls, functions, retractable)?,
            row_counts: retractable.then(Vec::new),
            num_keys: key_types.len(),
            groups: Vec::new(),
            hashes: Vec::new(),
            blocks: GroupBlocks::default(),
        })
    }

    /// Finds or makes the group of each row.
    pub(super) fn assign(&mut self, keys: &[ArrayRef], num_rows: usize) -> Result<()> {
        hash_columns(keys, num_rows, &mut self.hashes);
        self.keys.assign(keys, &self.hashes, &mut self.groups)?;
        self.resize();
        Ok(())
    }

    /// The groups that the last [`Self::assign`] found.
    pub(super) fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// Makes room for the groups that were found. They are about to change.
    fn resize(&mut self) {
        let num_groups = self.keys.num_groups();
        self.blocks.note_keys(self.keys.fresh(), num_groups);
        self.blocks.note_values(&self.groups, num_groups);
        self.aggregates.resize(num_groups);
        if let Some(counts) = &mut self.row_counts {
            counts.resize(num_groups, 0);
        }
    }

    /// What belongs to these groups changes, in a way that is not seen here.
    pub(super) fn note_values(&mut self, groups: &[u32]) {
        self.blocks.note_values(groups, self.keys.num_groups());
    }

    /// Adds the rows of the last [`Self::assign`] to their groups.
    pub(super) fn update(&mut self, columns: &[ArrayRef], kinds: Option<&RowKinds>) -> Result<()> {
        if let Some(counts) = &mut self.row_counts {
            match kinds {
                None => self.groups.iter().for_each(|group| counts[*group as usize] += 1),
                Some(kinds) => {
                    for (group, kind) in self.groups.iter().zip(kinds.iter()) {
                        counts[*group as usize] += if kind.is_retraction() { -1 } else { 1 };
                    }
                }
            }
        }
        self.aggregates.update(&self.groups, columns, kinds)
    }

    /// Which rows of the last [`Self::assign`] say something of a group that is there: a row that is taken back of a group without rows does
    /// not. None = all do.
    pub(super) fn known_rows(&self, kinds: &RowKinds) -> Option<BooleanArray> {
        let counts = self.row_counts.as_ref()?;
        let mut now: HashMap<u32, i64> = HashMap::new();
        let mut is_known = |(group, kind): (&u32, RowKind)| {
            let count = now.entry(*group).or_insert_with(|| counts[*group as usize]);
            let known = *count > 0 || !kind.is_retraction();
            *count += match (known, kind.is_retraction()) {
                (false, _) => 0,
                (true, retracts) => {
                    if retracts {
                        -1
                    } else {
                        1
                    }
                }
            };
            known
        };
        let known: Vec<bool> = self.groups.iter().zip(kinds.iter()).map(&mut is_known).collect();
        known.contains(&false).then(|| BooleanArray::from(known))
    }

    /// Whether a group has rows.
    pub(super) fn is_alive(&self, group: u32) -> bool {
        self.row_counts.as_ref().is_none_or(|counts| counts[group as usize] > 0)
    }

    /// Whether as many rows of a group were taken back as came. A window can have more of those than of these, since the row that is
    /// taken back came to another one; it comes out all the same, as in Flink.
    pub(super) fn is_settled(&self, group: u32) -> bool {
        self.row_counts.as_ref().is_some_and(|counts| counts[group as usize] == 0)
    }

    /// Removes groups with all their state.
    pub(super) fn remove(&mut self, groups: &[u32]) -> Result<()> {
        if groups.is_empty() {
            return Ok(());
        }
        self.keys.remove(groups);
        self.blocks.note_keys(groups, self.keys.num_groups());
        self.aggregates.clear(groups)?;
        if let Some(counts) = &mut self.row_counts {
            groups.iter().for_each(|group| counts[*group as usize] = 0);
        }
        Ok(())
    }

    /// Keys and values of these groups.
    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let mut columns = self.keys.keys(groups)?;
        columns.extend(self.values(groups)?);
        Ok(columns)
    }

    /// Row count (when rows can be taken back) and accumulator state of these groups.
    fn values(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let mut columns: Vec<ArrayRef> = Vec::new();
        if let Some(counts) = &self.row_counts {
            let counts = groups.iter().map(|group| counts[*group as usize]);
            columns.push(Arc::new(Int64Array::from_iter_values(counts)));
        }
        columns.extend(self.aggregates.state(groups)?);
        Ok(columns)
    }

    /// All groups as state, what did not change since a complete checkpoint as what that has. `first` are columns before the keys, given the
    /// number of rows; `more` are columns behind the keys that change as values do; `times` say when the values of groups were written, where
    /// someone has to know.
    pub(super) fn freeze(
        &mut self,
        max_parallelism: u32,
        numbers: &mut ContentNumbers,
        frozen: &mut FrozenGroups,
        first: impl Fn(usize) -> Vec<ArrayRef>,
        more: impl Fn(&[u32]) -> Vec<ArrayRef>,
        times: impl Fn(&[u32]) -> Option<ArrayRef>,
    ) -> Result<()> {
        let stretches = self.blocks.freeze(numbers);
        let keys = |groups: &[u32]| {
            let key_groups = key_groups_of(groups.iter().map(|group| self.keys.hash(*group)), max_parallelism);
            let mut columns = first(groups.len());
            columns.extend(self.keys.keys(groups)?);
            state_rows(key_groups, columns)
        };
        let values = |groups: &[u32]| {
            let counts: ArrayRef = Arc::new(BooleanArray::new(BooleanBuffer::new_set(groups.len()), None));
            let mut columns = more(groups);
            columns.extend(self.values(groups)?);
            with_times(numbered_columns(counts, columns)?, times(groups))
        };
        frozen.add(&stretches, &self.keys, &GroupRows { keys: &keys, values: Some(&values) })
    }

    /// The last snapshot is part of a complete checkpoint.
    pub(super) fn snapshot_completed(&mut self) {
        self.blocks.snapshot_completed();
    }

    /// Merges `num_rows` rows of state: keys, row count, accumulators.
    pub(super) fn merge(&mut self, columns: &[ArrayRef], num_rows: usize) -> Result<()> {
        let (keys, mut state) = columns.split_at(self.num_keys);
        if num_rows == 0 {
            return Ok(());
        }
        self.assign(keys, num_rows)?;
        if let Some(counts) = &mut self.row_counts {
            let added = state[0].as_primitive::<Int64Type>().values();
            self.groups.iter().zip(added).for_each(|(group, count)| counts[*group as usize] += count);
            state = &state[1..];
        }
        self.aggregates.merge(&self.groups, state)
    }

    /// Merges all groups of another table.
    pub(super) fn merge_table(&mut self, other: &GroupTable) -> Result<()> {
        let groups = other.keys.groups();
        if groups.is_empty() {
            return Ok(());
        }
        let mut columns = other.state(&groups)?;
        let state = columns.split_off(self.num_keys);
        self.hashes.clear();
        self.hashes.extend(groups.iter().map(|group| other.keys.hash(*group)));
        self.keys.assign(&columns, &self.hashes, &mut self.groups)?;
        self.resize();
        let mut state = state.as_slice();
        if let Some(counts) = &mut self.row_counts {
            let added = state[0].as_primitive::<Int64Type>().values();
            self.groups.iter().zip(added).for_each(|(group, count)| counts[*group as usize] += count);
            state = &state[1..];
        }
        self.aggregates.merge(&self.groups, state)
    }

    /// The Arrow types of the keys.
    pub(super) fn key_types(&self) -> Result<Vec<DataType>> {
        Ok(self.keys.keys(&[])?.iter().map(|column| column.data_type().clone()).collect())
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.keys.bytes()
            + self.aggregates.bytes()
            + self.blocks.bytes()
            + self.row_counts.as_ref().map_or(0, |counts| counts.capacity() * size_of::<i64>())
    }
}
