//! The partitions of OVER: their accumulators, and what is to be known of their time.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, Int64Builder, ListBuilder};
use arrow::datatypes::{DataType, Int64Type};

use crate::error::Result;
use crate::expr::AggregateCall;
use crate::operators::group_blocks::{ContentNumbers, FrozenGroups};
use crate::operators::group_table::GroupTable;
use crate::operators::keyed_state::rows_in_range;
use crate::operators::state_ttl::{KeyTtl, has_times, split_times};
use crate::runtime::{OperatorContext, StateTable, StateTableSnapshot};
use crate::stream_graph::OverOperatorSpec;
use crate::types::{Batch, KeyGroupRange};

/// No clean-up is due.
pub(super) const NEVER: i64 = i64::MAX;

/// What is known of the time of a partition, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartitionTime {
    /// The time of the last row that came out. Like Flink's it starts with the epoch.
    pub(super) last: i64,
    /// When no row can have those before it in its frame.
    pub(super) cleanup: i64,
    /// Rows that wait for their time.
    pub(super) waiting: u32,
}

impl PartitionTime {
    /// Of a partition without rows.
    pub(super) const START: PartitionTime = PartitionTime { last: 0, cleanup: NEVER, waiting: 0 };
}

/// The partitions of OVER.
pub(super) struct Partitions {
    pub(super) table: GroupTable,
    pub(super) times: Vec<PartitionTime>,
    /// Where time does not bound what is kept.
    pub(super) ttl: Option<KeyTtl>,
    /// Partitions by when they may be cleaned up. One whose clean-up was put off is there at its former times too.
    pub(super) cleanups: BTreeMap<i64, Vec<u32>>,
    contents: ContentNumbers,
    num_keys: usize,
    max_parallelism: u32,
}

/// The call as an aggregate: what numbers rows counts them. Of rows with one key RANK and DENSE_RANK of a stream count all, as Flink's.
pub(super) fn as_aggregate(call: &AggregateCall) -> AggregateCall {
    let function = match call.function.as_str() {
        "ROW_NUMBER" | "RANK" | "DENSE_RANK" => "COUNT",
        other => other,
    };
    AggregateCall { function: function.to_string(), ..call.clone() }
}

impl Partitions {
    /// No partitions yet. `retractable`: rows leave their frames again.
    pub(super) fn new(spec: &OverOperatorSpec, retractable: bool, context: &OperatorContext) -> Result<Self> {
        let functions = &context.environment.functions;
        let keys = &spec.over.partition_keys;
        let types: Vec<DataType> = keys.iter().map(|key| spec.input.field(*key).data_type.to_arrow()).collect();
        let calls: Vec<AggregateCall> = spec.over.calls.iter().map(|over| as_aggregate(&over.call)).collect();
        Ok(Partitions {
            table: GroupTable::new(&types, &calls, functions, retractable)?,
            times: Vec::new(),
            ttl: if spec.is_bounded_by_time() { None } else { KeyTtl::new(context, 0) },
            cleanups: BTreeMap::new(),
            contents: ContentNumbers::default(),
            num_keys: keys.len(),
            max_parallelism: context.max_parallelism,
        })
    }

    /// Finds or makes the partition of each row.
    pub(super) fn assign(&mut self, keys: &[ArrayRef], num_rows: usize) -> Result<()> {
        self.table.assign(keys, num_rows)?;
        for group in self.table.keys.fresh() {
            // Numbers of removed partitions are used again.
            if let Some(time) = self.times.get_mut(*group as usize) {
                *time = PartitionTime::START;
            }
        }
        self.times.resize(self.table.keys.num_groups(), PartitionTime::START);
        Ok(())
    }

    /// The times of a partition are about to change.
    pub(super) fn time_of(&mut self, group: u32) -> &mut PartitionTime {
        self.table.note_values(&[group]);
        &mut self.times[group as usize]
    }
}

/// For each of some partitions its times in [`Partitions::cleanups`], which are here by partition.
fn cleanups_of(by_group: &[Vec<i64>], groups: &[u32]) -> ArrayRef {
    let mut lists = ListBuilder::new(Int64Builder::new());
    for group in groups {
        lists.values().append_slice(by_group.get(*group as usize).map_or(&[], Vec::as_slice));
        lists.append(true);
    }
    Arc::new(lists.finish())
}

/// Keys; last time, clean-up time, all times at which a clean-up is due, accumulators; last when they were written, where they have a time to
/// live.
impl StateTable for Partitions {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let mut cleanups = vec![Vec::new(); if self.cleanups.is_empty() { 0 } else { self.times.len() }];
        for (at, groups) in &self.cleanups {
            groups.iter().for_each(|group| cleanups[*group as usize].push(*at));
        }
        let Partitions { table, times, ttl, contents, max_parallelism, .. } = self;
        let times = |groups: &[u32]| {
            let column = |value: fn(&PartitionTime) -> i64| -> ArrayRef {
                Arc::new(Int64Array::from_iter_values(groups.iter().map(|group| value(&times[*group as usize]))))
            };
            vec![column(|time| time.last), column(|time| time.cleanup), cleanups_of(&cleanups, groups)]
        };
        let written = |groups: &[u32]| ttl.as_ref().map(|ttl| ttl.times(groups));
        let mut frozen = FrozenGroups::default();
        table.freeze(*max_parallelism, contents, &mut frozen, |_| Vec::new(), times, written)?;
        Ok(StateTableSnapshot::frozen(frozen))
    }

    fn snapshot_completed(&mut self) {
        self.table.snapshot_completed();
    }

    fn outlives_input(&self) -> bool {
        false
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        snapshot.for_each_batch(|rows| {
            let timed = has_times(&rows);
            let rows: Batch = rows_in_range(&rows, range)?;
            if rows.num_rows() == 0 {
                return Ok(());
            }
            let (columns, written) = split_times(rows.columns(), timed);
            let (keys, values) = columns.split_at(self.num_keys);
            let (times, values) = values.split_at(3);
            self.assign(keys, rows.num_rows())?;
            let value = |column: usize, row: usize| times[column].as_primitive::<Int64Type>().value(row);
            for (row, group) in self.table.groups().iter().enumerate() {
                self.times[*group as usize] = PartitionTime { last: value(0, row), cleanup: value(1, row), waiting: 0 };
                for at in times[2].as_list::<i32>().value(row).as_primitive::<Int64Type>().values() {
                    self.cleanups.entry(*at).or_default().push(*group);
                }
            }
            if let Some(ttl) = &mut self.ttl {
                ttl.restore(self.table.groups(), written);
            }
            self.table.merge(&[keys, values].concat(), rows.num_rows())
        })
    }

    fn bytes(&self) -> usize {
        let cleanups: usize = self.cleanups.values().map(|groups| size_of::<i64>() + groups.capacity() * size_of::<u32>()).sum();
        let times = self.times.capacity() * size_of::<PartitionTime>();
        self.table.bytes() + times + cleanups + self.ttl.as_ref().map_or(0, KeyTtl::bytes)
    }
}
