//! The rows of OVER by event time, and which of them have come out.

use std::collections::BTreeMap;

use arrow::array::AsArray;
use arrow::datatypes::UInt32Type;

use crate::error::Result;
use crate::operators::frozen_store::FrozenStore;
use crate::operators::keyed_state::rows_in_range;
use crate::operators::rank::{EncodedKeys, RankKey, RankTable};
use crate::operators::state_ttl::{KeyTtl, has_times, split_times};
use crate::runtime::state::{RowAttribute, RowId};
use crate::runtime::{StateTable, StateTableSnapshot};
use crate::types::{Batch, KeyGroupRange};

/// Rows of partitions in their order: first those that have come out and are still looked at, then those to come out.
pub(super) struct OpenRows<K> {
    pub(super) table: RankTable<K>,
    /// How many rows of each partition have come out.
    pub(super) emitted: Vec<usize>,
    /// How many rows of each partition have their time behind them.
    pub(super) counted: Vec<usize>,
    /// Where time does not bound what is kept.
    pub(super) ttl: Option<KeyTtl>,
    /// The times of rows to come out.
    open: BTreeMap<i64, usize>,
    /// Partitions that have restored rows.
    restored: Vec<u32>,
}

impl<K: RankKey> OpenRows<K> {
    /// With an empty table.
    pub(super) fn new(table: RankTable<K>, ttl: Option<KeyTtl>) -> Self {
        OpenRows { table, emitted: Vec::new(), counted: Vec::new(), ttl, open: BTreeMap::new(), restored: Vec::new() }
    }

    /// Adds rows, placed with these keys; gives the partition of each.
    pub(super) fn add(&mut self, batch: &Batch, keys: &EncodedKeys) -> Result<Vec<u32>> {
        self.table.change(batch, keys, |_, _| {})?;
        let groups = self.table.placed().to_vec();
        if let Some(last) = groups.iter().max() {
            let num_groups = (*last as usize + 1).max(self.emitted.len());
            self.emitted.resize(num_groups, 0);
            self.counted.resize(num_groups, 0);
        }
        self.note_written(&groups);
        Ok(groups)
    }

    /// Rows of these partitions came, or came out.
    pub(super) fn note_written(&mut self, groups: &[u32]) {
        if let Some(ttl) = &mut self.ttl {
            ttl.write(groups);
        }
    }

    /// Rows of these times are to come out.
    pub(super) fn open(&mut self, times: &[i64]) {
        times.iter().for_each(|time| *self.open.entry(*time).or_default() += 1);
    }

    /// Rows of these times have come out.
    pub(super) fn close(&mut self, times: &[i64]) {
        for time in times {
            if let Some(count) = self.open.get_mut(time) {
                *count -= 1;
                if *count == 0 {
                    self.open.remove(time);
                }
            }
        }
    }

    /// The time of the earliest row to come out.
    pub(super) fn earliest_open(&self) -> Option<i64> {
        self.open.keys().next().copied()
    }

    /// Forgets the first rows of a partition, which have come out.
    pub(super) fn forget(&mut self, group: u32, count: usize) {
        if count > 0 {
            self.table.remove_first(group, count);
            self.emitted[group as usize] -= count;
            self.counted[group as usize] = self.counted[group as usize].saturating_sub(count);
        }
    }

    /// Gives back what was forgotten, and of these partitions those without rows.
    pub(super) fn release(&mut self, groups: &[u32]) {
        self.table.release(groups);
        if let Some(ttl) = &mut self.ttl {
            let empty: Vec<u32> = groups.iter().copied().filter(|group| self.table.len(*group) == 0).collect();
            ttl.remove(&empty);
        }
    }

    /// The restored rows that are to come out, by partition.
    pub(super) fn take_restored(&mut self) -> Vec<(u32, Vec<RowId>)> {
        let mut groups = std::mem::take(&mut self.restored);
        groups.sort_unstable();
        groups.dedup();
        let open_rows = |group: u32| {
            let emitted = self.emitted[group as usize];
            self.counted[group as usize] = emitted;
            (group, self.table.entries(group, emitted).map(|(_, id)| id).collect())
        };
        groups.into_iter().map(open_rows).collect()
    }
}

/// The rows in the order of their arrival, and whether each has come out; when their partitions were written, where they have a time to live.
impl<K: RankKey> StateTable for OpenRows<K> {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let mut has_come_out = RowAttribute::new(0);
        for (group, emitted) in self.emitted.iter().enumerate().filter(|(_, emitted)| **emitted > 0) {
            self.table.entries(group as u32, 0).take(*emitted).for_each(|(_, id)| has_come_out.set(id, 1));
        }
        let times = self.ttl.as_ref().map(|ttl| ttl.times_of_rows(self.table.rows_with_partitions()));
        Ok(StateTableSnapshot::frozen(FrozenStore { changing: Some(has_come_out), times, ..self.table.frozen_store() }))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        snapshot.for_each_batch(|rows| {
            let timed = has_times(&rows);
            let rows = rows_in_range(&rows, range)?;
            if rows.num_rows() == 0 {
                return Ok(());
            }
            let (columns, written) = split_times(rows.columns(), timed);
            let (emitted, columns) = columns.split_last().expect("the last column says which rows have come out");
            let batch = Batch::new(columns.to_vec(), rows.num_rows());
            let keys = self.table.place(&batch, None)?;
            let groups = self.add(&batch, &keys)?;
            if let Some(ttl) = &mut self.ttl {
                ttl.remove(&groups);
                ttl.restore(&groups, written);
            }
            for (group, emitted) in groups.iter().zip(emitted.as_primitive::<UInt32Type>().values()) {
                self.emitted[*group as usize] += *emitted as usize;
            }
            self.restored.extend(groups);
            Ok(())
        })
    }

    fn bytes(&self) -> usize {
        let times = self.open.len() * 2 * size_of::<(i64, usize)>();
        let ttl = self.ttl.as_ref().map_or(0, KeyTtl::bytes);
        self.table.bytes() + ttl + (self.emitted.capacity() + self.counted.capacity()) * size_of::<usize>() + times
    }
}
