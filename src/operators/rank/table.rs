//! Partitions with their rows in order: what a rank keeps.
//!
//! Of an input that only adds rows a partition keeps those that can still be visible: one that comes after the last of them is left out
//! by one comparison, before anything of it is copied. Of an input that takes rows back all are kept, and found again by key and hash.
//!
//! With a time to live some are forgotten ([`expiry`]).

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, UInt32Array};
use arrow::compute;
use arrow::datatypes::{DataType, Int64Type};

use super::frozen_rows::FrozenRows;
use super::keys::{EncodedKeys, KeyEncoder, RankKey};
use super::ranked_list::{Entry, RankedList, Wanted};
use super::row_ends::RowEnds;
use super::touched::Touched;
use crate::error::Result;
use crate::expr::GroupKeys;
use crate::operators::frozen_store::FrozenStore;
use crate::operators::keyed_state::{key_groups_of, rows_in_range};
use crate::operators::state_ttl::{KeyTtl, RowTtl, has_times, split_times};
use crate::runtime::state::{RowAttribute, RowId, RowStore};
use crate::runtime::{FrozenState, StateTableSnapshot};
use crate::stream_graph::{RankEnd, RankOperatorSpec, RankStrategy};
use crate::types::{Batch, KeyGroupRange, hash_columns};

mod expiry;

/// Partitions with their rows in order.
pub(in crate::operators) struct RankTable<K> {
    partition_keys: Vec<usize>,
    start: u64,
    end: RankEnd,
    latest_of_ties: bool,
    max_parallelism: u32,
    encoder: KeyEncoder,
    groups: GroupKeys,
    lists: Vec<RankedList<K>>,
    /// The number of the next row that is put into a list.
    arrivals: u32,
    /// The last number of each partition, where it comes from a column.
    ends: Vec<u64>,
    store: RowStore,
    /// The same number for each of its rows.
    row_ends: Option<RowAttribute<i64>>,
    /// The last number of each row instead, where rows can be taken back.
    own_ends: Option<RowEnds>,
    /// Of rows that can be taken back, their hashes.
    row_hashes: Option<RowAttribute<u64>>,
    key_bytes: usize,
    list_bytes: usize,
    group_of_row: Vec<u32>,
    hashes: Vec<u64>,
    dropped: Vec<RowId>,
    ttl: Option<KeyTtl>,
    /// Of rows that can be taken back, where not all of them are visible.
    row_ttl: Option<RowTtl>,
    /// When the rows of the batch came, if they are restored.
    restored_times: Option<Int64Array>,
}

impl<K: RankKey> RankTable<K> {
    /// An empty table.
    pub(in crate::operators) fn new(spec: &RankOperatorSpec, max_parallelism: u32) -> Result<Self> {
        let types: Vec<DataType> = spec.input.fields.iter().map(|field| field.data_type.to_arrow()).collect();
        let key_types: Vec<DataType> = spec.rank.partition_keys.iter().map(|key| types[*key].clone()).collect();
        let (by_column, retracts) = (matches!(spec.rank.range.end, RankEnd::Column(_)), spec.strategy == RankStrategy::Retract);
        Ok(RankTable {
            partition_keys: spec.rank.partition_keys.clone(),
            start: spec.rank.range.start,
            end: spec.rank.range.end,
            latest_of_ties: spec.strategy == RankStrategy::Window { latest_of_ties: true },
            max_parallelism,
            encoder: KeyEncoder::new(&spec.rank.order_keys, &spec.input)?,
            groups: GroupKeys::new(&key_types)?,
            lists: Vec::new(),
            arrivals: 0,
            ends: Vec::new(),
            store: RowStore::new(&types)?,
            row_ends: (by_column && !retracts).then(|| RowAttribute::new(0)),
            own_ends: (by_column && retracts).then(RowEnds::new),
            row_hashes: retracts.then(|| RowAttribute::new(0)),
            key_bytes: 0,
            list_bytes: 0,
            group_of_row: Vec::new(),
            hashes: Vec::new(),
            dropped: Vec::new(),
            ttl: None,
            row_ttl: None,
            restored_times: None,
        })
    }

    /// The rows.
    pub(in crate::operators) fn store(&self) -> &RowStore {
        &self.store
    }

    /// The first number that is visible.
    pub(in crate::operators) fn first_number(&self) -> u64 {
        self.start
    }

    /// The last visible number of a partition.
    #[inline]
    fn end_of(&self, group: u32) -> usize {
        match self.end {
            RankEnd::Constant(end) => end as usize,
            RankEnd::Column(_) => match &self.own_ends {
                Some(ends) => ends.greatest(group),
                None => self.ends[group as usize] as usize,
            },
        }
    }

    /// How many rows of a partition are kept where none can be taken back: one at least, for the first one says where the partition ends,
    /// also that it has no place for any.
    #[inline]
    fn kept_of(&self, group: u32) -> usize {
        self.end_of(group).max(1)
    }

    /// How many rows a partition has.
    pub(in crate::operators) fn len(&self, group: u32) -> usize {
        self.lists[group as usize].len()
    }

    /// The rows of a partition from a position on, each with its key.
    pub(in crate::operators) fn entries(&self, group: u32, from: usize) -> impl Iterator<Item = (&K, RowId)> {
        self.lists[group as usize].entries(from).map(|entry| (&entry.key, entry.id))
    }

    /// How many rows of a partition come before those with a key, or where `after_equals` before the first one behind them.
    pub(in crate::operators) fn position(&self, group: u32, key: &K, after_equals: bool) -> usize {
        self.lists[group as usize].position(key, after_equals)
    }

    /// What makes keys.
    pub(in crate::operators) fn encoder(&self) -> &KeyEncoder {
        &self.encoder
    }

    /// The partitions of the rows that were placed last.
    pub(in crate::operators) fn placed(&self) -> &[u32] {
        &self.group_of_row
    }

    /// Adds the visible rows of a partition, place by place; [`RowId::NONE`] = none is visible there.
    pub(in crate::operators) fn visible(&self, group: u32, ids: &mut Vec<RowId>) {
        let skip = self.start as usize - 1;
        let from = ids.len();
        self.lists[group as usize].ids(skip, self.end_of(group).saturating_sub(skip), ids);
        if let Some(ends) = &self.own_ends {
            ends.hide(self.start as usize, &mut ids[from..]);
        }
    }

    /// All partitions.
    pub(in crate::operators) fn groups(&self) -> Vec<u32> {
        self.groups.groups()
    }

    /// Adds the rows of a batch, or by kind takes them back. What was visible of the partitions that change is noted. Rows that
    /// are not kept any more can be read until [`Self::release`].
    pub(in crate::operators) fn update(&mut self, batch: &Batch, touched: Option<&mut Touched>) -> Result<()> {
        self.update_with_ends(batch, touched, None)?;
        self.note_written();
        Ok(())
    }

    /// The partitions of the rows that were placed last have been written: their time to live begins anew.
    pub(in crate::operators) fn note_written(&mut self) {
        if let Some(ttl) = &mut self.ttl {
            ttl.write(&self.group_of_row);
        }
    }

    /// The same; `ends`: the last visible number of the partition of each row, if it is known from before.
    fn update_with_ends(&mut self, batch: &Batch, mut touched: Option<&mut Touched>, ends: Option<&Int64Array>) -> Result<()> {
        let keys = self.place(batch, ends)?;
        if let Some(touched) = &mut touched {
            touched.begin(self.lists.len());
        }
        self.change(batch, &keys, |table, group| {
            if let Some(touched) = &mut touched {
                touched.touch(group, |before| table.visible(group, before));
            }
        })?;
        Ok(())
    }

    /// Finds or makes the partition of each row, and its key.
    pub(in crate::operators) fn place(&mut self, batch: &Batch, ends: Option<&Int64Array>) -> Result<EncodedKeys> {
        self.assign(batch, ends)?;
        self.encoder.encode(batch.columns())
    }

    /// Adds the rows of a batch that was placed, or takes them back, after `before_row` has seen the table and the partition of each.
    /// Gives the row that each of them added or took back; [`RowId::NONE`] = none.
    pub(in crate::operators) fn change(
        &mut self,
        batch: &Batch,
        keys: &EncodedKeys,
        mut before_row: impl FnMut(&Self, u32),
    ) -> Result<Vec<RowId>> {
        let rows = self.competing_rows(batch, keys);
        let (row_hashes, ids) = self.append(batch, &rows)?;
        let mut ids = ids.into_iter();
        let mut changed = vec![RowId::NONE; batch.num_rows()];
        for row in rows {
            let row = row as usize;
            let group = self.group_of_row[row];
            before_row(self, group);
            let key = K::of(keys.bytes(row));
            changed[row] = if batch.kind(row).is_retraction() {
                self.remove(group, &key, row_hashes[row])
            } else {
                let id = ids.next().expect("all rows that are added were stored");
                self.insert(group, key, id);
                id
            };
        }
        Ok(changed)
    }

    /// Finds or makes the partition of each row.
    fn assign(&mut self, batch: &Batch, ends: Option<&Int64Array>) -> Result<()> {
        let keys: Vec<ArrayRef> = self.partition_keys.iter().map(|key| Arc::clone(batch.column(*key))).collect();
        hash_columns(&keys, batch.num_rows(), &mut self.hashes);
        self.expire()?;
        self.groups.assign(&keys, &self.hashes, &mut self.group_of_row)?;
        let over = self.ttl.as_mut().map(|ttl| ttl.take_over(&self.group_of_row)).unwrap_or_default();
        if !over.is_empty() {
            self.forget(&over);
            let fresh = self.groups.fresh().to_vec();
            self.groups.remove(&fresh);
            self.groups.assign(&keys, &self.hashes, &mut self.group_of_row)?;
        }
        self.lists.resize_with(self.groups.num_groups(), RankedList::default);
        let RankEnd::Column(column) = self.end else { return Ok(()) };
        if self.own_ends.is_some() {
            return Ok(());
        }
        // The first row of a partition says where it ends.
        self.ends.resize(self.groups.num_groups(), 0);
        let of_rows = compute::cast(batch.column(column), &DataType::Int64)?;
        let of_rows = ends.unwrap_or_else(|| of_rows.as_primitive::<Int64Type>());
        let mut fresh = self.groups.fresh().iter().peekable();
        for (row, group) in self.group_of_row.iter().enumerate() {
            if fresh.next_if_eq(&group).is_some() {
                let end = if of_rows.is_valid(row) { of_rows.value(row) } else { 0 };
                self.ends[*group as usize] = end.max(0).unsigned_abs();
            }
        }
        Ok(())
    }

    /// The rows that may change something.
    fn competing_rows(&self, batch: &Batch, keys: &EncodedKeys) -> Vec<u32> {
        if self.row_hashes.is_some() {
            return (0..batch.num_rows() as u32).collect();
        }
        let competes = |(row, group): (usize, &u32)| {
            let list = &self.lists[*group as usize];
            let is_full = list.len() >= self.kept_of(*group);
            let beats = |last: &Entry<K>| match last.key.compare(keys.bytes(row)) {
                Ordering::Greater => true,
                Ordering::Equal => self.latest_of_ties,
                Ordering::Less => false,
            };
            (!is_full || list.last().is_some_and(beats)).then_some(row as u32)
        };
        self.group_of_row.iter().enumerate().filter_map(competes).collect()
    }

    /// Stores the rows that are added; gives the hash of each row of the batch, if rows can be taken back, and the ids.
    fn append(&mut self, batch: &Batch, rows: &[u32]) -> Result<(Vec<u64>, Vec<RowId>)> {
        let (mut row_hashes, mut ids) = (Vec::new(), Vec::new());
        let added: Vec<u32> = match batch.kinds() {
            Some(_) => rows.iter().copied().filter(|row| !batch.kind(*row as usize).is_retraction()).collect(),
            None => rows.to_vec(),
        };
        if added.len() == batch.num_rows() {
            self.store.append(batch.columns(), added.len(), &mut ids)?;
        } else {
            let indices = UInt32Array::from(added.clone());
            let columns = batch.columns().iter().map(|column| compute::take(column, &indices, None));
            self.store.append(&columns.collect::<std::result::Result<Vec<_>, _>>()?, added.len(), &mut ids)?;
        }
        if let Some(row_ends) = &mut self.row_ends {
            let end_of = |row: &u32| self.ends[self.group_of_row[*row as usize] as usize];
            added.iter().zip(&ids).for_each(|(row, id)| row_ends.set(*id, end_of(row) as i64));
        }
        if let (Some(own), RankEnd::Column(column)) = (&mut self.own_ends, self.end) {
            let ends = compute::cast(batch.column(column), &DataType::Int64)?;
            let ends = ends.as_primitive::<Int64Type>();
            for (row, id) in added.iter().zip(&ids) {
                let row = *row as usize;
                let end = if ends.is_valid(row) { ends.value(row).max(0).unsigned_abs() } else { 0 };
                own.add(self.group_of_row[row], *id, end);
            }
        }
        if let Some(known) = &mut self.row_hashes {
            hash_columns(batch.columns(), batch.num_rows(), &mut row_hashes);
            added.iter().zip(&ids).for_each(|(row, id)| known.set(*id, row_hashes[*row as usize]));
        }
        if let Some(ttl) = &mut self.row_ttl {
            ttl.restore(&ids, self.restored_times.as_ref());
        }
        Ok((row_hashes, ids))
    }

    fn insert(&mut self, group: u32, key: K, id: RowId) {
        let kept = self.kept_of(group);
        let entry = Entry { key, id, arrival: self.next_arrival() };
        let list = &mut self.lists[group as usize];
        self.list_bytes -= list.heap_bytes();
        self.key_bytes += entry.key.heap_bytes();
        list.insert(entry, self.latest_of_ties, &hash_of(&self.row_hashes));
        if self.row_hashes.is_none()
            && list.len() > kept
            && let Some(last) = list.pop_last()
        {
            self.key_bytes -= last.key.heap_bytes();
            self.dropped.push(last.id);
        }
        self.list_bytes += list.heap_bytes();
    }

    /// A number greater than those of all rows. When there are no more, rows are numbered anew, each partition for itself.
    fn next_arrival(&mut self) -> u32 {
        if self.arrivals == u32::MAX {
            self.lists.iter_mut().for_each(RankedList::renumber);
            self.arrivals = self.lists.iter().map(|list| list.len() as u32).max().unwrap_or(0);
        }
        self.arrivals += 1;
        self.arrivals
    }

    /// Takes a row back, if it is there. Of rows with one key and one hash any is as good as another; none is there when the input is
    /// out of order.
    fn remove(&mut self, group: u32, key: &K, hash: u64) -> RowId {
        if self.row_hashes.is_none() {
            return RowId::NONE;
        }
        let list = &mut self.lists[group as usize];
        self.list_bytes -= list.heap_bytes();
        let removed = list.remove(&Wanted { key, hash, hash_of: &hash_of(&self.row_hashes), id: None });
        if let Some(entry) = &removed {
            self.key_bytes -= entry.key.heap_bytes();
            self.dropped.push(entry.id);
            if let Some(ends) = &mut self.own_ends {
                ends.remove(group, entry.id);
            }
        }
        self.list_bytes += list.heap_bytes();
        removed.map_or(RowId::NONE, |entry| entry.id)
    }

    /// Forgets the rows that are not kept any more, and of the given partitions those without rows.
    pub(in crate::operators) fn release(&mut self, groups: &[u32]) {
        let dropped = std::mem::take(&mut self.dropped);
        let chunks = self.store.delete(&dropped);
        if let Some(ttl) = &mut self.row_ttl {
            ttl.remove(&dropped, &chunks);
        }
        if let Some(hashes) = &mut self.row_hashes {
            hashes.release(&chunks);
        }
        if let Some(row_ends) = &mut self.row_ends {
            row_ends.release(&chunks);
        }
        if let Some(ends) = &mut self.own_ends {
            ends.release(&chunks);
        }
        let empty: Vec<u32> = groups.iter().copied().filter(|group| self.lists[*group as usize].len() == 0).collect();
        self.groups.remove(&empty);
        if let Some(ttl) = &mut self.ttl {
            ttl.remove(&empty);
        }
    }

    /// Takes the first rows of a partition out. They can be read until [`Self::release`].
    pub(in crate::operators) fn remove_first(&mut self, group: u32, count: usize) {
        let list = &mut self.lists[group as usize];
        self.list_bytes -= list.heap_bytes();
        for entry in list.remove_first(count) {
            self.key_bytes -= entry.key.heap_bytes();
            self.dropped.push(entry.id);
        }
        self.list_bytes += list.heap_bytes();
    }

    /// Takes the rows of a partition from a position on out. They can be read until [`Self::release`].
    pub(in crate::operators) fn remove_from(&mut self, group: u32, position: usize) {
        let list = &mut self.lists[group as usize];
        self.list_bytes -= list.heap_bytes();
        while list.len() > position
            && let Some(last) = list.pop_last()
        {
            self.key_bytes -= last.key.heap_bytes();
            self.dropped.push(last.id);
        }
        self.list_bytes += list.heap_bytes();
    }

    /// All rows as they are now, as cheap as can be: key group, columns, and the partition's end where a column says it. Those of a partition
    /// come in the order of their arrival, which is that of rows with one key.
    pub(in crate::operators) fn frozen_rows(&self) -> StateTableSnapshot {
        if self.latest_of_ties {
            return StateTableSnapshot::frozen(self.frozen());
        }
        let of_rows = self.row_ttl.as_ref().map(|ttl| ttl.frozen(true));
        let of_partitions = || self.ttl.as_ref().map(|ttl| ttl.times_of_rows(self.rows_with_partitions()));
        let times = of_rows.or_else(of_partitions);
        StateTableSnapshot::frozen(FrozenStore { times, ..self.frozen_store() })
    }

    /// The rows in the order of their arrival, without what may be known of their time.
    pub(in crate::operators) fn frozen_store(&self) -> FrozenStore {
        let rows = FrozenStore::new(&self.store, &self.partition_keys, self.max_parallelism);
        FrozenStore { constant: self.row_ends.clone(), ..rows }
    }

    /// All rows, partition by partition in order.
    pub(in crate::operators) fn rows_with_partitions(&self) -> impl Iterator<Item = (RowId, u32)> + '_ {
        self.groups.groups().into_iter().flat_map(|group| self.entries(group, 0).map(move |(_, id)| (id, group)))
    }

    /// All rows as they are now, partition by partition in order: key group, columns, and the partition's end where a column says it.
    pub(in crate::operators) fn frozen(&self) -> impl FrozenState + 'static {
        let (mut ids, mut hashes, mut ends) = (Vec::with_capacity(self.store.len()), Vec::new(), Vec::new());
        for group in self.groups.groups() {
            let list = &self.lists[group as usize];
            list.ids(0, usize::MAX, &mut ids);
            hashes.resize(ids.len(), self.groups.hash(group));
            if self.row_ends.is_some() {
                ends.resize(ids.len(), self.ends[group as usize] as i64);
            }
        }
        let key_groups = key_groups_of(hashes.into_iter(), self.max_parallelism);
        FrozenRows { store: self.store.clone(), ids, key_groups, ends: self.row_ends.is_some().then(|| Int64Array::from(ends)) }
    }

    /// Adds the rows of a snapshot whose key groups are in the range, with the times at which their partitions were written.
    pub(in crate::operators) fn restore_rows(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        snapshot.for_each_batch(|rows| {
            let timed = has_times(&rows);
            let rows = rows_in_range(&rows, range)?;
            let (columns, times) = split_times(rows.columns(), timed);
            self.restored_times = times.cloned();
            self.merge(&Batch::new(columns.to_vec(), rows.num_rows()))?;
            self.restored_times = None;
            if let (Some(ttl), true) = (&mut self.ttl, rows.num_rows() > 0) {
                ttl.restore(&self.group_of_row, times);
            }
            Ok(())
        })
    }

    /// Adds rows of a snapshot, without their key groups.
    pub(in crate::operators) fn merge(&mut self, rows: &Batch) -> Result<()> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let (columns, ends) = match self.row_ends {
            Some(_) => {
                let (ends, columns) = rows.columns().split_last().expect("the end is the last column");
                (columns, Some(ends.as_primitive::<Int64Type>()))
            }
            None => (rows.columns(), None),
        };
        let latest_of_ties = std::mem::replace(&mut self.latest_of_ties, false);
        let merged = self.update_with_ends(&Batch::new(columns.to_vec(), rows.num_rows()), None, ends);
        self.latest_of_ties = latest_of_ties;
        self.release(&[]);
        merged
    }

    /// Bytes held.
    pub(in crate::operators) fn bytes(&self) -> usize {
        let lists = self.lists.capacity() * size_of::<RankedList<K>>() + self.list_bytes + self.key_bytes;
        let ends = self.ends.capacity() * size_of::<u64>();
        self.groups.bytes()
            + lists
            + ends
            + self.store.bytes()
            + self.row_hashes.as_ref().map_or(0, RowAttribute::bytes)
            + self.row_ends.as_ref().map_or(0, RowAttribute::bytes)
            + self.own_ends.as_ref().map_or(0, RowEnds::bytes)
            + self.ttl.as_ref().map_or(0, KeyTtl::bytes)
            + self.row_ttl.as_ref().map_or(0, RowTtl::bytes)
    }
}

/// The hashes of rows that can be taken back.
fn hash_of(hashes: &Option<RowAttribute<u64>>) -> impl Fn(RowId) -> u64 + '_ {
    |id| hashes.as_ref().map_or(0, |hashes| hashes.get(id))
}
