//! The last row of each partition: to come, or by rowtime. A row replaces the one before it.
//!
//! The former row is kept only when someone needs `-U`; otherwise its time is all there is to know. With a time to live a partition whose row was not
//! replaced for so long is forgotten, and its next row is a new one.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, UInt32Array};
use arrow::compute;
use arrow::datatypes::{DataType, Int64Type};

use crate::error::Result;
use crate::expr::GroupKeys;
use crate::operators::change_rows::{ChangeRows, rows_then_watermark};
use crate::operators::frozen_store::FrozenStore;
use crate::operators::group_blocks::{ContentNumbers, FrozenGroups, GroupBlocks, GroupRows};
use crate::operators::keyed_state::{key_groups_of, numbered_columns, rows_in_range, state_rows};
use crate::operators::state_ttl::{KeyTtl, has_times, split_times, with_times};
use crate::runtime::state::{RowId, RowStore};
use crate::runtime::{Operator, OperatorContext, Output, StateTable, StateTableSnapshot};
use crate::stream_graph::RankOperatorSpec;
use crate::types::{Batch, InputNumber, KeyGroupRange, RowKind, hash_columns};

/// The last row of each partition.
pub(super) struct LastRows {
    table: LastTable,
}

/// Partitions with their last rows.
struct LastTable {
    partition_keys: Vec<usize>,
    /// The column that tells which row is later; none = the one that comes later.
    rowtime: Option<usize>,
    max_parallelism: u32,
    groups: GroupKeys,
    /// The time of each partition's last row, if there is a rowtime.
    times: Vec<i64>,
    /// The last rows themselves, if they are kept.
    rows: Option<Rows>,
    winners: Winners,
    hashes: Vec<u64>,
    group_of_row: Vec<u32>,
    ttl: Option<KeyTtl>,
    /// Of partitions whose rows are not kept.
    blocks: GroupBlocks,
    contents: ContentNumbers,
}

struct Rows {
    store: RowStore,
    of_group: Vec<RowId>,
}

/// For each partition that a batch changes its last row in the batch.
#[derive(Default)]
struct Winners {
    groups: Vec<u32>,
    rows: Vec<u32>,
    /// For each partition its place among `groups`, if that is its own.
    places: Vec<u32>,
}

impl Winners {
    fn begin(&mut self, num_groups: usize) {
        self.groups.clear();
        self.rows.clear();
        self.places.resize(num_groups, 0);
    }

    #[inline]
    fn set(&mut self, group: u32, row: u32) {
        let place = self.places[group as usize] as usize;
        if self.groups.get(place) == Some(&group) {
            self.rows[place] = row;
        } else {
            self.places[group as usize] = self.groups.len() as u32;
            self.groups.push(group);
            self.rows.push(row);
        }
    }
}

impl LastRows {
    /// From its spec; `rowtime`: the column that tells which row is later.
    pub(super) fn new(spec: &RankOperatorSpec, rowtime: Option<usize>, context: &OperatorContext) -> Result<Self> {
        let types: Vec<DataType> = spec.input.fields.iter().map(|field| field.data_type.to_arrow()).collect();
        let key_types: Vec<DataType> = spec.rank.partition_keys.iter().map(|key| types[*key].clone()).collect();
        let rows = match spec.emit_update_before {
            true => Some(Rows { store: RowStore::new(&types)?, of_group: Vec::new() }),
            false => None,
        };
        Ok(LastRows {
            table: LastTable {
                partition_keys: spec.rank.partition_keys.clone(),
                rowtime,
                max_parallelism: context.max_parallelism,
                groups: GroupKeys::new(&key_types)?,
                times: Vec::new(),
                rows,
                winners: Winners::default(),
                hashes: Vec::new(),
                group_of_row: Vec::new(),
                ttl: KeyTtl::new(context, 0),
                blocks: GroupBlocks::default(),
                contents: ContentNumbers::default(),
            },
        })
    }
}

impl LastTable {
    /// Finds the rows of a batch that replace others.
    fn find_winners(&mut self, batch: &Batch) -> Result<()> {
        let keys: Vec<ArrayRef> = self.partition_keys.iter().map(|key| Arc::clone(batch.column(*key))).collect();
        let times = self.rowtime.map(|column| compute::cast(batch.column(column), &DataType::Int64)).transpose()?;
        self.choose(&keys, times.as_ref().map(|times| times.as_primitive::<Int64Type>()), batch.num_rows())
    }

    fn choose(&mut self, keys: &[ArrayRef], times: Option<&Int64Array>, num_rows: usize) -> Result<()> {
        hash_columns(keys, num_rows, &mut self.hashes);
        self.groups.assign(keys, &self.hashes, &mut self.group_of_row)?;
        let over = self.ttl.as_mut().map(|ttl| ttl.take_over(&self.group_of_row)).unwrap_or_default();
        if !over.is_empty() {
            let fresh = self.groups.fresh().to_vec();
            self.forget(&over);
            self.remove(&fresh);
            self.groups.assign(keys, &self.hashes, &mut self.group_of_row)?;
        }
        self.winners.begin(self.groups.num_groups());
        if self.rows.is_none() {
            self.blocks.note_keys(self.groups.fresh(), self.groups.num_groups());
        }
        self.find_winners_among(times);
        if self.rows.is_none() && (self.rowtime.is_some() || self.ttl.is_some()) {
            self.blocks.note_values(&self.winners.groups, self.groups.num_groups());
        }
        Ok(())
    }

    /// Finds for each partition of the last `assign` its last row.
    fn find_winners_among(&mut self, times: Option<&Int64Array>) {
        let Some(times) = times else {
            return self.group_of_row.iter().enumerate().for_each(|(row, group)| self.winners.set(*group, row as u32));
        };
        self.times.resize(self.groups.num_groups(), i64::MIN);
        for (row, group) in self.group_of_row.iter().enumerate() {
            let time = if times.is_valid(row) { times.value(row) } else { i64::MIN };
            let last = &mut self.times[*group as usize];
            // Of two rows with one time the later to come.
            if time >= *last {
                *last = time;
                self.winners.set(*group, row as u32);
            }
        }
    }

    /// Forgets the partitions whose time is over.
    fn expire(&mut self) {
        let over = self.ttl.as_mut().map(KeyTtl::tick).unwrap_or_default();
        self.forget(&over);
    }

    fn forget(&mut self, groups: &[u32]) {
        if let Some(rows) = &mut self.rows {
            let ids: Vec<RowId> = groups.iter().map(|group| rows.of_group[*group as usize]).collect();
            rows.store.delete(&ids);
        }
        if self.rowtime.is_some() {
            groups.iter().for_each(|group| self.times[*group as usize] = i64::MIN);
        }
        self.remove(groups);
    }

    fn remove(&mut self, groups: &[u32]) {
        self.groups.remove(groups);
        if self.rows.is_none() {
            self.blocks.note_keys(groups, self.groups.num_groups());
        }
    }

    fn apply(&mut self, batch: &Batch) -> Result<Batch> {
        self.expire();
        let changes = self.replace(batch)?;
        if let Some(ttl) = &mut self.ttl {
            ttl.write(&self.winners.groups);
        }
        Ok(changes)
    }

    /// Puts the rows of a batch in the places of others; what changed.
    fn replace(&mut self, batch: &Batch) -> Result<Batch> {
        self.find_winners(batch)?;
        let rows = UInt32Array::from(self.winners.rows.clone());
        let new = batch.columns().iter().map(|column| compute::take(column, &rows, None));
        let new: Vec<ArrayRef> = new.collect::<std::result::Result<_, _>>()?;
        let mut changes = ChangeRows::default();
        // The first row of a new partition always wins: new ones come in their order.
        let mut fresh = self.groups.fresh().iter().peekable();
        let mut old_ids = Vec::new();
        for (index, group) in self.winners.groups.iter().enumerate() {
            if fresh.next_if_eq(&group).is_some() {
                changes.new_row(RowKind::Insert, index);
                continue;
            }
            if let Some(rows) = &self.rows {
                changes.old_row(RowKind::UpdateBefore, old_ids.len());
                old_ids.push(rows.of_group[*group as usize]);
            }
            changes.new_row(RowKind::UpdateAfter, index);
        }
        let Some(kept) = &mut self.rows else { return changes.into_batch(&[], &new, &new) };
        let old = if old_ids.is_empty() { new.clone() } else { kept.store.take(&old_ids)? };
        let changed = changes.into_batch(&[], &old, &new)?;
        kept.store.delete(&old_ids);
        kept.put(&new, &self.winners.groups, self.groups.num_groups())?;
        Ok(changed)
    }
}

impl Rows {
    /// These are now the rows of these partitions.
    fn put(&mut self, columns: &[ArrayRef], groups: &[u32], num_groups: usize) -> Result<()> {
        let mut ids = Vec::new();
        self.store.append(columns, groups.len(), &mut ids)?;
        self.of_group.resize(num_groups, RowId::NONE);
        groups.iter().zip(ids).for_each(|(group, id)| self.of_group[*group as usize] = id);
        Ok(())
    }
}

impl Operator for LastRows {
    fn process_batch(&mut self, _input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        rows_then_watermark(batch, output, |batch| self.table.apply(&batch))
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.table.ttl.as_ref()?.next_timer()
    }

    fn process_time(&mut self, _now_ms: i64, _output: &mut dyn Output) -> Result<()> {
        self.table.expire();
        Ok(())
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("rows", &mut self.table)]
    }
}

/// Where rows are kept: the rows. Else: keys, and times if there is a rowtime.
impl StateTable for LastTable {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        if let Some(rows) = &self.rows {
            let partitions = || self.groups.groups().into_iter().map(|group| (rows.of_group[group as usize], group));
            let times = self.ttl.as_ref().map(|ttl| ttl.times_of_rows(partitions()));
            let rows = FrozenStore::new(&rows.store, &self.partition_keys, self.max_parallelism);
            return Ok(StateTableSnapshot::frozen(FrozenStore { times, ..rows }));
        }
        let stretches = self.blocks.freeze(&mut self.contents);
        let keys = |groups: &[u32]| {
            let key_groups = key_groups_of(groups.iter().map(|group| self.groups.hash(*group)), self.max_parallelism);
            state_rows(key_groups, self.groups.keys(groups)?)
        };
        let values = |groups: &[u32]| {
            let counts: ArrayRef = Arc::new(BooleanArray::from(vec![true; groups.len()]));
            let times = groups.iter().map(|group| self.times[*group as usize]);
            let times = self.rowtime.map(|_| Arc::new(Int64Array::from_iter_values(times)) as ArrayRef);
            with_times(numbered_columns(counts, times.into_iter().collect())?, self.ttl.as_ref().map(|ttl| ttl.times(groups)))
        };
        let has_values = self.rowtime.is_some() || self.ttl.is_some();
        let rows = GroupRows { keys: &keys, values: has_values.then_some(&values as _) };
        let mut frozen = FrozenGroups::default();
        frozen.add(&stretches, &self.groups, &rows)?;
        Ok(StateTableSnapshot::frozen(frozen))
    }

    fn snapshot_completed(&mut self) {
        self.blocks.snapshot_completed();
    }

    fn outlives_input(&self) -> bool {
        false
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        snapshot.for_each_batch(|rows| {
            let timed = has_times(&rows);
            let rows = rows_in_range(&rows, range)?;
            if rows.num_rows() == 0 {
                return Ok(());
            }
            let (columns, written) = split_times(rows.columns(), timed);
            if self.rows.is_some() {
                self.replace(&Batch::new(columns.to_vec(), rows.num_rows()))?;
            } else {
                let keys = &columns[..self.partition_keys.len()];
                let times = self.rowtime.map(|_| columns[keys.len()].as_primitive::<Int64Type>());
                self.choose(keys, times, rows.num_rows())?;
            }
            if let Some(ttl) = &mut self.ttl {
                ttl.restore(&self.group_of_row, written);
            }
            Ok(())
        })
    }

    fn bytes(&self) -> usize {
        let rows = self.rows.as_ref().map_or(0, |rows| rows.store.bytes() + rows.of_group.capacity() * size_of::<RowId>());
        let winners = self.winners.places.capacity() * size_of::<u32>();
        let ttl = self.ttl.as_ref().map_or(0, KeyTtl::bytes);
        self.groups.bytes() + self.times.capacity() * size_of::<i64>() + rows + winners + ttl + self.blocks.bytes()
    }
}
