//! The first row of each partition to come: only the keys of partitions are kept, and rows pass as they are.
//!
//! With a time to live a key is forgotten so long after its row has passed, as in Flink: further rows do not write it.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::datatypes::DataType;

use crate::error::Result;
use crate::expr::GroupKeys;
use crate::operators::group_blocks::{ContentNumbers, FrozenGroups, GroupBlocks, GroupRows};
use crate::operators::keyed_state::{key_groups_of, rows_in_range, state_rows};
use crate::operators::state_ttl::{KeyTtl, has_times, split_times, with_times};
use crate::runtime::{Operator, OperatorContext, Output, StateTable, StateTableSnapshot};
use crate::stream_graph::RankOperatorSpec;
use crate::types::{Batch, InputNumber, KeyGroupRange, hash_columns};

/// The first row of each partition to come.
pub(super) struct FirstRows {
    partition_keys: Vec<usize>,
    known: KnownKeys,
}

/// The keys of partitions that have had their row.
struct KnownKeys {
    keys: GroupKeys,
    max_parallelism: u32,
    hashes: Vec<u64>,
    groups: Vec<u32>,
    ttl: Option<KeyTtl>,
    blocks: GroupBlocks,
    contents: ContentNumbers,
}

impl FirstRows {
    /// From its spec.
    pub(super) fn new(spec: &RankOperatorSpec, context: &OperatorContext) -> Result<Self> {
        let partition_keys = spec.rank.partition_keys.clone();
        let types: Vec<DataType> = partition_keys.iter().map(|key| spec.input.field(*key).data_type.to_arrow()).collect();
        let keys = GroupKeys::new(&types)?;
        let known = KnownKeys {
            keys,
            max_parallelism: context.max_parallelism,
            hashes: Vec::new(),
            groups: Vec::new(),
            ttl: KeyTtl::new(context, 0),
            blocks: GroupBlocks::default(),
            contents: ContentNumbers::default(),
        };
        Ok(FirstRows { partition_keys, known })
    }
}

impl KnownKeys {
    fn assign(&mut self, keys: &[ArrayRef], num_rows: usize) -> Result<()> {
        hash_columns(keys, num_rows, &mut self.hashes);
        self.keys.assign(keys, &self.hashes, &mut self.groups)?;
        self.blocks.note_keys(self.keys.fresh(), self.keys.num_groups());
        Ok(())
    }

    fn remove(&mut self, groups: &[u32]) {
        self.keys.remove(groups);
        self.blocks.note_keys(groups, self.keys.num_groups());
    }

    /// The same for rows that come: keys whose time is over are new, and new ones are written.
    fn assign_now(&mut self, keys: &[ArrayRef], num_rows: usize) -> Result<()> {
        self.expire();
        self.assign(keys, num_rows)?;
        let Some(ttl) = &mut self.ttl else { return Ok(()) };
        let over = ttl.take_over(&self.groups);
        if !over.is_empty() {
            self.remove(&over);
            let fresh = self.keys.fresh().to_vec();
            self.remove(&fresh);
            self.assign(keys, num_rows)?;
        }
        if let Some(ttl) = &mut self.ttl {
            ttl.write(self.keys.fresh());
        }
        Ok(())
    }

    fn expire(&mut self) {
        let over = self.ttl.as_mut().map(KeyTtl::tick).unwrap_or_default();
        self.remove(&over);
    }

    /// The rows of the last batch whose keys were new.
    fn fresh_rows(&self) -> UInt32Array {
        let mut fresh = self.keys.fresh().iter().peekable();
        let rows = self.groups.iter().enumerate();
        rows.filter_map(|(row, group)| fresh.next_if_eq(&group).map(|_| row as u32)).collect()
    }
}

impl Operator for FirstRows {
    fn process_batch(&mut self, _input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        let keys: Vec<ArrayRef> = self.partition_keys.iter().map(|key| Arc::clone(batch.column(*key))).collect();
        self.known.assign_now(&keys, batch.num_rows())?;
        output.batch(batch.take_rising(&self.known.fresh_rows())?)
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.known.ttl.as_ref()?.next_timer()
    }

    fn process_time(&mut self, _now_ms: i64, _output: &mut dyn Output) -> Result<()> {
        self.known.expire();
        Ok(())
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("keys", &mut self.known)]
    }
}

impl StateTable for KnownKeys {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let stretches = self.blocks.freeze(&mut self.contents);
        let mut frozen = FrozenGroups::default();
        let keys = |groups: &[u32]| {
            let key_groups = key_groups_of(groups.iter().map(|group| self.keys.hash(*group)), self.max_parallelism);
            let times = self.ttl.as_ref().map(|ttl| ttl.times(groups));
            with_times(state_rows(key_groups, self.keys.keys(groups)?)?, times)
        };
        frozen.add(&stretches, &self.keys, &GroupRows { keys: &keys, values: None })?;
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
            let (keys, times) = split_times(rows.columns(), timed);
            self.assign(keys, rows.num_rows())?;
            if let Some(ttl) = &mut self.ttl {
                ttl.restore(&self.groups, times);
            }
            Ok(())
        })
    }

    fn bytes(&self) -> usize {
        self.keys.bytes() + self.blocks.bytes() + self.ttl.as_ref().map_or(0, KeyTtl::bytes)
    }
}
