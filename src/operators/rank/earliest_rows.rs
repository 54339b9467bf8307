//! The earliest row of each partition by rowtime, emitted once and for all when the watermark passes it.
//!
//! Until then an earlier row takes its place. Late rows are dropped and counted, also those of a partition that never had a row:
//! its earliest row may have been among them.
//!
//! With a time to live a partition is forgotten so long after its row was found or emitted.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array};
use arrow::compute;
use arrow::datatypes::DataType;

use crate::error::Result;
use crate::expr::GroupKeys;
use crate::operators::keyed_state::{key_groups_of, rows_in_range, state_rows};
use crate::operators::late_rows::LateRows;
use crate::operators::progress::Progress;
use crate::operators::state_ttl::{KeyTtl, has_times, split_times, with_times};
use crate::operators::window::time::{milliseconds, null_rowtime};
use crate::runtime::state::{RowId, RowStore};
use crate::runtime::{Operator, OperatorContext, Output, StateTable, StateTableSnapshot};
use crate::stream_graph::RankOperatorSpec;
use crate::types::{Batch, InputNumber, KeyGroupRange, TypeKind, Watermark, hash_columns};

/// The earliest row of each partition.
pub(super) struct EarliestRows {
    table: EarliestTable,
    progress: Progress,
    late: LateRows,
}

/// Where the row of a partition is.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// It waits in the store, and has this time.
    Waits(RowId, i64),
    /// It is this row of the batch that is processed, and has this time.
    InBatch(u32, i64),
    /// It was emitted.
    Emitted,
    /// There is none.
    Nowhere,
}

/// Partitions with the rows that wait.
struct EarliestTable {
    partition_keys: Vec<usize>,
    rowtime: usize,
    precision: u8,
    max_parallelism: u32,
    groups: GroupKeys,
    places: Vec<Place>,
    store: RowStore,
    /// Partitions by the times of rows that wait or waited.
    due: BTreeMap<i64, Vec<u32>>,
    hashes: Vec<u64>,
    group_of_row: Vec<u32>,
    ttl: Option<KeyTtl>,
}

impl EarliestRows {
    /// From its spec; `rowtime`: the column of the order.
    pub(super) fn new(spec: &RankOperatorSpec, rowtime: usize, context: &OperatorContext) -> Result<Self> {
        let types: Vec<DataType> = spec.input.fields.iter().map(|field| field.data_type.to_arrow()).collect();
        let key_types: Vec<DataType> = spec.rank.partition_keys.iter().map(|key| types[*key].clone()).collect();
        let precision = match spec.input.field(rowtime).data_type.kind {
            TypeKind::Timestamp(precision) | TypeKind::TimestampLtz(precision) => precision,
            _ => 3,
        };
        let table = EarliestTable {
            partition_keys: spec.rank.partition_keys.clone(),
            rowtime,
            precision,
            max_parallelism: context.max_parallelism,
            groups: GroupKeys::new(&key_types)?,
            places: Vec::new(),
            store: RowStore::new(&types)?,
            due: BTreeMap::new(),
            hashes: Vec::new(),
            group_of_row: Vec::new(),
            ttl: KeyTtl::new(context, 0),
        };
        Ok(EarliestRows { table, progress: Progress::new(i64::MIN, context.key_groups), late: LateRows::new(context) })
    }
}

/// What one batch makes of the partitions.
#[derive(Default)]
struct Outcome {
    /// Partitions whose row is to be emitted, in that order, with where it is.
    emitted: Vec<Place>,
    /// Stored rows that others replaced.
    replaced: Vec<RowId>,
    /// Partitions whose row came with the batch, each once.
    changed: Vec<u32>,
}

impl EarliestTable {
    fn assign(&mut self, keys: &[ArrayRef], num_rows: usize) -> Result<()> {
        hash_columns(keys, num_rows, &mut self.hashes);
        self.groups.assign(keys, &self.hashes, &mut self.group_of_row)?;
        let over = self.ttl.as_mut().map(|ttl| ttl.take_over(&self.group_of_row)).unwrap_or_default();
        if !over.is_empty() {
            let fresh = self.groups.fresh().to_vec();
            self.forget(&over);
            self.groups.remove(&fresh);
            self.groups.assign(keys, &self.hashes, &mut self.group_of_row)?;
        }
        self.places.resize(self.groups.num_groups(), Place::Nowhere);
        Ok(())
    }

    /// Forgets the partitions whose time is over.
    fn expire(&mut self) {
        let over = self.ttl.as_mut().map(KeyTtl::tick).unwrap_or_default();
        self.forget(&over);
    }

    fn forget(&mut self, groups: &[u32]) {
        let place = |group: &u32| std::mem::replace(&mut self.places[*group as usize], Place::Nowhere);
        let waiting = groups.iter().map(place).filter_map(|place| match place {
            Place::Waits(id, _) => Some(id),
            _ => None,
        });
        let waiting: Vec<RowId> = waiting.collect();
        self.store.delete(&waiting);
        self.groups.remove(groups);
    }

    /// The row of a partition was found or emitted.
    fn written(&mut self, group: u32) {
        if let Some(ttl) = &mut self.ttl {
            ttl.write(&[group]);
        }
    }

    /// A row comes that is not late.
    fn compete(&mut self, group: u32, row: u32, time: i64, outcome: &mut Outcome) {
        let place = &mut self.places[group as usize];
        match *place {
            Place::Emitted => return,
            Place::Waits(_, known) | Place::InBatch(_, known) if known <= time => return,
            Place::Waits(id, _) => {
                outcome.replaced.push(id);
                outcome.changed.push(group);
            }
            Place::Nowhere => outcome.changed.push(group),
            Place::InBatch(..) => {}
        }
        *place = Place::InBatch(row, time);
        self.due.entry(time).or_default().push(group);
        self.written(group);
    }

    /// The watermark is here now.
    fn advance(&mut self, watermark: i64, outcome: &mut Outcome) {
        while let Some(first) = self.due.first_entry().filter(|first| *first.key() <= watermark) {
            let (time, groups) = first.remove_entry();
            for group in groups {
                let place = &mut self.places[group as usize];
                // Another entry may have been for a row that was replaced.
                if matches!(*place, Place::Waits(_, known) | Place::InBatch(_, known) if known == time) {
                    outcome.emitted.push(std::mem::replace(place, Place::Emitted));
                    self.written(group);
                }
            }
        }
    }

    /// Takes in the rows of a batch that are kept or emitted; gives those that are emitted.
    fn settle(&mut self, batch: &Batch, outcome: Outcome) -> Result<Option<Batch>> {
        let place_of = |group: &u32| self.places[*group as usize];
        let waiting = outcome.changed.iter().filter(|group| matches!(place_of(group), Place::InBatch(..)));
        let waiting: Vec<u32> = waiting.copied().collect();
        let row_of = |place: Place| match place {
            Place::InBatch(row, _) => Some(row),
            _ => None,
        };
        let kept = waiting.iter().map(place_of).chain(outcome.emitted.iter().copied()).filter_map(row_of);
        let kept = UInt32Array::from_iter_values(kept);
        let columns = batch.columns().iter().map(|column| compute::take(column, &kept, None));
        let mut ids = Vec::new();
        self.store.append(&columns.collect::<std::result::Result<Vec<_>, _>>()?, kept.len(), &mut ids)?;
        let mut ids = ids.into_iter();
        for group in waiting {
            let place = &mut self.places[group as usize];
            if let Place::InBatch(_, time) = *place {
                *place = Place::Waits(ids.next().expect("each was stored"), time);
            }
        }
        let stored = |place: &Place| match place {
            Place::Waits(id, _) => *id,
            _ => ids.next().expect("each was stored"),
        };
        let emitted: Vec<RowId> = outcome.emitted.iter().map(stored).collect();
        let rows = if emitted.is_empty() { None } else { Some(Batch::new(self.store.take(&emitted)?, emitted.len())) };
        self.store.delete(&emitted);
        self.store.delete(&outcome.replaced);
        Ok(rows)
    }
}

impl EarliestRows {
    fn apply(&mut self, batch: &Batch, steps: &[crate::types::WatermarkStep]) -> Result<Option<Batch>> {
        let rowtime = batch.column(self.table.rowtime);
        if rowtime.null_count() > 0 {
            return Err(null_rowtime());
        }
        let times = milliseconds(rowtime, self.table.precision)?;
        let keys: Vec<ArrayRef> = self.table.partition_keys.iter().map(|key| Arc::clone(batch.column(*key))).collect();
        self.table.expire();
        self.table.assign(&keys, batch.num_rows())?;
        let mut outcome = Outcome::default();
        let mut steps = steps.iter().peekable();
        for (row, time) in times.into_iter().enumerate() {
            while let Some(step) = steps.next_if(|step| step.rows_before as usize <= row) {
                self.advance(step.watermark, &mut outcome);
            }
            // A row of the watermark's own time is not late, as in Flink.
            if time < self.progress.time {
                self.late.add(row, self.progress.time, time);
            } else {
                self.table.compete(self.table.group_of_row[row], row as u32, time, &mut outcome);
            }
        }
        steps.for_each(|step| self.advance(step.watermark, &mut outcome));
        self.table.settle(batch, outcome)
    }

    fn advance(&mut self, watermark: Watermark, outcome: &mut Outcome) {
        self.progress.time = self.progress.time.max(watermark.0);
        self.table.advance(self.progress.time, outcome);
    }
}

impl Operator for EarliestRows {
    fn process_batch(&mut self, input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        let steps = batch.take_steps();
        if let Some(rows) = self.apply(&batch, steps.as_slice())? {
            output.batch(rows)?;
        }
        self.late.give_out(input, &batch, output)?;
        steps.last().map_or(Ok(()), |watermark| output.watermark(watermark))
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        self.table.expire();
        let mut outcome = Outcome::default();
        self.advance(watermark, &mut outcome);
        if !outcome.emitted.is_empty() {
            // Whatever is emitted now is in the store.
            let nothing = Batch::new(self.table.store.take(&[])?, 0);
            self.table.settle(&nothing, outcome)?.map_or(Ok(()), |rows| output.batch(rows))?;
        }
        output.watermark(watermark)
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.table.ttl.as_ref()?.next_timer()
    }

    fn process_time(&mut self, _now_ms: i64, _output: &mut dyn Output) -> Result<()> {
        self.table.expire();
        Ok(())
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("rows", &mut self.table), ("progress", &mut self.progress)]
    }
}

/// Keys, whether the row was emitted, and the row, if it waits.
impl StateTable for EarliestTable {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let groups = self.groups.groups();
        let groups: Vec<u32> =
            groups.into_iter().filter(|group| !matches!(self.places[*group as usize], Place::Nowhere)).collect();
        if groups.is_empty() {
            return Ok(StateTableSnapshot::new(Vec::new()));
        }
        let id = |group: &u32| match self.places[*group as usize] {
            Place::Waits(id, _) => id,
            _ => RowId::NONE,
        };
        let ids: Vec<RowId> = groups.iter().map(id).collect();
        let key_groups = key_groups_of(groups.iter().map(|group| self.groups.hash(*group)), self.max_parallelism);
        let mut columns = self.groups.keys(&groups)?;
        columns.push(Arc::new(BooleanArray::from_iter(ids.iter().map(|id| Some(!id.is_some())))));
        columns.extend(self.store.take(&ids)?);
        let times = self.ttl.as_ref().map(|ttl| ttl.times(&groups));
        Ok(StateTableSnapshot::new(vec![with_times(state_rows(key_groups, columns)?, times)?]))
    }

    fn outlives_input(&self) -> bool {
        false
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        snapshot.for_each_batch(|rows| {
            let timed = has_times(&rows);
            let rows = rows_in_range(&rows, range)?;
            let (columns, written) = split_times(rows.columns(), timed);
            let (keys, rest) = columns.split_at(self.partition_keys.len());
            let emitted = rest[0].as_boolean();
            self.assign(keys, rows.num_rows())?;
            let batch = Batch::new(rest[1..].to_vec(), rows.num_rows());
            let times = milliseconds(batch.column(self.rowtime), self.precision)?;
            let mut outcome = Outcome::default();
            for (row, time) in times.into_iter().enumerate() {
                let group = self.group_of_row[row];
                if emitted.value(row) {
                    self.places[group as usize] = Place::Emitted;
                } else {
                    self.compete(group, row as u32, time, &mut outcome);
                }
            }
            self.settle(&batch, outcome)?;
            if let Some(ttl) = &mut self.ttl {
                ttl.restore(&self.group_of_row, written);
            }
            Ok(())
        })
    }

    fn bytes(&self) -> usize {
        let due = self.store.len() * size_of::<(i64, u32)>();
        let ttl = self.ttl.as_ref().map_or(0, KeyTtl::bytes);
        ttl + self.groups.bytes() + self.places.capacity() * size_of::<Place>() + self.store.bytes() + due
    }
}
