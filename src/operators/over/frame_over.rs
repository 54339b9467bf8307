//! OVER ordered by event time whose frames go on after their row: a row comes out when the watermark has passed all rows that it looks
//! at; at the end of the input all do.
//!
//! Rows that the watermark has passed are late: they are dropped and counted. Event time is held back by the rows that have not come out.
//! Kept are the rows to come out and those that they, or rows to come, look at; all, where frames have no start.
//!
//! Where frames are more than a stretch of time, a partition has a time to live. When so long no row came to it and none came out it ends: rows
//! that wait for others after them come out with those that are there, as at the end of the input, and all is forgotten. While rows
//! wait for event time it lives on.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array};
use arrow::compute;

use super::evaluator::{Evaluator, range_key};
use super::open_rows::OpenRows;
use super::sections::{RangeKey, Section};
use super::sorted_over::ordered_rows;
use crate::error::Result;
use crate::expr::datetime::add_months_to_ms;
use crate::operators::late_rows::LateRows;
use crate::operators::progress::Progress;
use crate::operators::rank::RankKey;
use crate::operators::state_ttl::KeyTtl;
use crate::operators::window::time::{milliseconds, null_rowtime};
use crate::runtime::state::RowId;
use crate::runtime::{Operator, OperatorContext, Output, StateTable};
use crate::stream_graph::{FrameUnit, OverOperatorSpec, RangeUnit};
use crate::types::{Batch, DataType, InputNumber, TypeKind, Watermark, WatermarkStep};

/// OVER ordered by event time whose frames go on after their row.
pub(super) struct FrameOver<K> {
    rowtime: usize,
    /// Digits of the rowtime.
    precision: u8,
    looks: Looks,
    key: Option<RangeKey>,
    rows: OpenRows<K>,
    evaluator: Evaluator,
    progress: Progress,
    /// Partitions by when one more of their rows counts, one entry a row.
    due: BTreeMap<i64, Vec<u32>>,
    /// When rows of partitions can be forgotten.
    cleanups: BTreeMap<i64, Vec<u32>>,
    late: LateRows,
    /// Rows of partitions that ended.
    ended: Vec<Batch>,
}

/// How far rows look, over all calls.
struct Looks {
    /// Rows after; none = all.
    rows_after: Option<usize>,
    /// Milliseconds after.
    time_after: i64,
    /// Months after.
    months_after: i64,
    /// Rows before; none = all.
    rows_before: Option<usize>,
    /// Milliseconds before; of months the most that they can be.
    time_before: Option<i64>,
}

impl Looks {
    fn of(spec: &OverOperatorSpec) -> Self {
        let mut looks = Looks { rows_after: Some(0), time_after: 0, months_after: 0, rows_before: Some(0), time_before: None };
        for over in &spec.over.calls {
            let (before, after) = (over.frame.start.before(), over.frame.end.after());
            let is_rows = over.frame.unit == FrameUnit::Rows;
            let further = |known: Option<usize>, distance: Option<i64>| {
                let distance = if is_rows { distance } else { distance.map(|_| 0) };
                Some(known?.max(distance?.max(0) as usize))
            };
            (looks.rows_after, looks.rows_before) = (further(looks.rows_after, after), further(looks.rows_before, before));
            if !is_rows {
                let further =
                    if over.frame.counts == RangeUnit::Months { &mut looks.months_after } else { &mut looks.time_after };
                *further = (*further).max(after.unwrap_or(0));
                looks.time_before = looks.time_before.max(before.map(|before| over.frame.at_most_ms(before)));
            }
        }
        looks
    }

    /// When event time has passed all that a row of this time looks at by time.
    fn until(&self, time: i64) -> i64 {
        let in_months = if self.months_after > 0 { add_months_to_ms(time, self.months_after) } else { time };
        time.saturating_add(self.time_after).max(in_months)
    }
}

impl<K: RankKey> FrameOver<K> {
    /// From its spec; `rowtime` is the first order key.
    pub(super) fn new(spec: &OverOperatorSpec, rowtime: usize, context: &OperatorContext) -> Result<Self> {
        let precision = match spec.input.field(rowtime).data_type.kind {
            TypeKind::Timestamp(precision) | TypeKind::TimestampLtz(precision) => precision,
            _ => 3,
        };
        let ttl = if spec.is_bounded_by_time() { None } else { KeyTtl::new(context, 0) };
        Ok(FrameOver {
            rowtime,
            precision,
            looks: Looks::of(spec),
            key: range_key(&spec.over),
            rows: OpenRows::new(ordered_rows(spec, false, context.max_parallelism)?, ttl),
            evaluator: Evaluator::new(&spec.over, &context.environment.functions)?,
            progress: Progress::new(i64::MIN, context.key_groups),
            due: BTreeMap::new(),
            cleanups: BTreeMap::new(),
            late: LateRows::new(context),
            ended: Vec::new(),
        })
    }

    /// What a call begins with: rows that were restored are scheduled, and partitions end whose time to live is over.
    fn begin(&mut self) -> Result<()> {
        self.load()?;
        let over = self.rows.ttl.as_mut().map(KeyTtl::tick).unwrap_or_default();
        self.end(over)?;
        Ok(())
    }

    /// Partitions whose time to live is over end, unless event time has not passed their rows; whether some ended.
    fn end(&mut self, over: Vec<u32>) -> Result<bool> {
        if over.is_empty() {
            return Ok(false);
        }
        let last = |group: &u32| self.rows.table.entries(*group, self.rows.table.len(*group).saturating_sub(1)).next();
        let ids: Vec<RowId> = over.iter().filter_map(last).map(|(_, id)| id).collect();
        let passed = |time: &i64| self.looks.until(*time) <= self.progress.time;
        let mut times = self.times(&ids)?.into_iter();
        let (ended, waiting): (Vec<u32>, Vec<u32>) = over.into_iter().partition(|_| times.next().as_ref().is_some_and(passed));
        if let Some(ttl) = &mut self.rows.ttl {
            ttl.spare(&waiting);
        }
        let to_come_out = |group: &u32| {
            let (from, to) = (self.rows.emitted[*group as usize], self.rows.table.len(*group));
            Section { group: *group, from, to }
        };
        let sections: Vec<Section> = ended.iter().map(to_come_out).filter(|section| section.from < section.to).collect();
        if !sections.is_empty() {
            let rows = self.evaluate(&sections)?;
            self.ended.push(rows);
        }
        for group in &ended {
            self.rows.forget(*group, self.rows.table.len(*group));
            self.evaluator.cut(*group, 0)?;
        }
        self.rows.release(&ended);
        Ok(!ended.is_empty())
    }

    /// Schedules the rows that were restored.
    fn load(&mut self) -> Result<()> {
        for (group, ids) in self.rows.take_restored() {
            let times = self.times(&ids)?;
            // Those that counted and did not come out count again.
            times.iter().for_each(|time| self.schedule(group, *time));
            self.rows.open(&times);
        }
        Ok(())
    }

    fn times(&self, ids: &[RowId]) -> Result<Vec<i64>> {
        milliseconds(&self.rows.table.store().take_columns(ids, &[self.rowtime])?[0], self.precision)
    }

    fn schedule(&mut self, group: u32, time: i64) {
        if self.looks.rows_after.is_none() {
            return;
        }
        match self.looks.until(time) {
            due if due <= self.progress.time => self.rows.counted[group as usize] += 1,
            due => self.due.entry(due).or_default().push(group),
        }
    }

    fn add(&mut self, batch: &Batch, steps: &[WatermarkStep]) -> Result<()> {
        if batch.column(self.rowtime).null_count() > 0 {
            return Err(null_rowtime());
        }
        let mut times = milliseconds(batch.column(self.rowtime), self.precision)?;
        let (mut watermark, mut steps) = (self.progress.time, steps.iter().peekable());
        let mut in_time = Vec::with_capacity(times.len());
        for (row, time) in times.iter().enumerate() {
            while let Some(step) = steps.next_if(|step| step.rows_before as usize <= row) {
                watermark = watermark.max(step.watermark.0);
            }
            in_time.push(*time > watermark);
            if *time <= watermark {
                self.late.add(row, watermark, *time);
            }
        }
        let batch = if in_time.iter().all(|in_time| *in_time) {
            batch.clone()
        } else {
            let mut kept = in_time.iter();
            times.retain(|_| kept.next().is_some_and(|kept| *kept));
            batch.filter(&BooleanArray::from(in_time))?
        };
        let mut keys = self.rows.table.place(&batch, None)?;
        let over = self.rows.ttl.as_mut().map(|ttl| ttl.take_over(self.rows.table.placed())).unwrap_or_default();
        if self.end(over)? {
            keys = self.rows.table.place(&batch, None)?;
        }
        for (group, time) in self.rows.add(&batch, &keys)?.into_iter().zip(&times) {
            self.schedule(group, *time);
        }
        self.rows.open(&times);
        Ok(())
    }

    /// The watermark is here now: what comes out.
    fn advance(&mut self, watermark: i64) -> Result<Option<Batch>> {
        self.progress.time = self.progress.time.max(watermark);
        let mut groups = Vec::new();
        while let Some(first) = self.due.first_entry().filter(|first| *first.key() <= watermark) {
            for group in first.remove() {
                self.rows.counted[group as usize] += 1;
                groups.push(group);
            }
        }
        let is_end = watermark == i64::MAX;
        if is_end {
            groups = self.rows.table.groups();
        }
        groups.sort_unstable();
        groups.dedup();
        let section = |group: &u32| {
            let from = self.rows.emitted[*group as usize];
            let complete = match self.looks.rows_after {
                _ if is_end => self.rows.table.len(*group),
                Some(after) => self.rows.counted[*group as usize].saturating_sub(after),
                None => 0,
            };
            Section { group: *group, from, to: complete.max(from) }
        };
        let sections: Vec<Section> = groups.iter().map(section).filter(|section| section.from < section.to).collect();
        let out = if sections.is_empty() { None } else { Some(self.evaluate(&sections)?) };
        while let Some(first) = self.cleanups.first_entry().filter(|first| *first.key() <= watermark) {
            groups.extend(first.remove());
        }
        self.forget(groups)?;
        Ok(out)
    }

    /// The rows of sections come out.
    fn evaluate(&mut self, sections: &[Section]) -> Result<Batch> {
        let results = self.evaluator.evaluate(&self.rows.table, sections, true)?;
        let times = self.times(&results.ids)?;
        self.rows.close(&times);
        let groups: Vec<u32> = sections.iter().map(|section| section.group).collect();
        self.rows.note_written(&groups);
        for (number, section) in sections.iter().enumerate() {
            self.rows.emitted[section.group as usize] = section.to;
            let last = times[results.starts[number + 1] - 1];
            if let (Some(before), Some(_)) = (self.looks.time_before, self.looks.rows_before) {
                self.cleanups.entry(last.saturating_add(before)).or_default().push(section.group);
            }
        }
        let mut columns = self.rows.table.store().take(&results.ids)?;
        columns.extend(results.values);
        Ok(Batch::new(columns, results.ids.len()))
    }

    /// Forgets the rows of these partitions that no row looks at any more.
    fn forget(&mut self, mut groups: Vec<u32>) -> Result<()> {
        let Some(rows_before) = self.looks.rows_before else { return Ok(()) };
        groups.sort_unstable();
        groups.dedup();
        let reached = self.first_in_reach(&groups)?;
        for (group, reached) in groups.iter().zip(reached) {
            let unneeded = self.rows.emitted[*group as usize].saturating_sub(rows_before).min(reached);
            self.rows.forget(*group, unneeded);
        }
        self.rows.release(&groups);
        Ok(())
    }

    /// For each partition the position of the first row that is in reach by its time of one to come out.
    fn first_in_reach(&self, groups: &[u32]) -> Result<Vec<usize>> {
        let Some(before) = self.looks.time_before else { return Ok(vec![usize::MAX; groups.len()]) };
        let Some(key) = self.key else { return Ok(self.first_peers(groups)) };
        let first = |group: &u32| self.rows.table.entries(*group, self.rows.emitted[*group as usize]).next();
        let ids: Vec<RowId> = groups.iter().map(|group| first(group).map_or(RowId::NONE, |(_, id)| id)).collect();
        let column = Arc::clone(&self.rows.table.store().take_columns(&ids, &[self.rowtime])?[0]);
        // Rows to come are behind the watermark.
        let next = self.progress.time.saturating_add(1);
        let waiting: Vec<Option<i64>> = {
            let known: Vec<RowId> = ids.iter().copied().filter(|id| id.is_some()).collect();
            let mut times = self.times(&known)?.into_iter();
            ids.iter().map(|id| if id.is_some() { times.next() } else { None }).collect()
        };
        let units = DataType::units_per_ms(self.precision);
        let earliest = waiting.iter().map(|time| time.map_or(next, |time| time.min(next)).saturating_mul(units));
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(earliest));
        let keys = key.after(&compute::cast(&keys, column.data_type())?, -before, RangeUnit::Milliseconds, &self.rows.table)?;
        Ok(groups
            .iter()
            .enumerate()
            .map(|(row, group)| self.rows.table.position(*group, &K::of(keys.bytes(row)), false))
            .collect())
    }

    /// For each partition the position of the first peer of its first row to come out: what a frame of RANGE over several order keys, which
    /// has no distance, begins with.
    fn first_peers(&self, groups: &[u32]) -> Vec<usize> {
        let table = &self.rows.table;
        let first_waiting = |group: u32| table.entries(group, self.rows.emitted[group as usize]).next();
        let first_peer = |group: &u32| first_waiting(*group).map_or(usize::MAX, |(key, _)| table.position(*group, key, false));
        groups.iter().map(first_peer).collect()
    }

    /// Rows of partitions that ended come out; event time is not held back by them any more.
    fn give_out_ended(&mut self, output: &mut dyn Output) -> Result<()> {
        if self.ended.is_empty() {
            return Ok(());
        }
        self.ended.drain(..).try_for_each(|rows| output.batch(rows))?;
        output.watermark(self.held_back(self.progress.time))
    }

    /// Event time behind the operator: no row comes out later that is not after it.
    fn held_back(&self, watermark: i64) -> Watermark {
        Watermark(self.rows.earliest_open().map_or(watermark, |time| watermark.min(time.saturating_sub(1))))
    }
}

impl<K: RankKey> Operator for FrameOver<K> {
    fn process_batch(&mut self, input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        self.begin()?;
        let steps = batch.take_steps();
        self.add(&batch, steps.as_slice())?;
        self.late.give_out(input, &batch, output)?;
        self.give_out_ended(output)?;
        steps.last().map_or(Ok(()), |watermark| self.process_watermark(watermark, output))
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        self.begin()?;
        self.give_out_ended(output)?;
        if let Some(rows) = self.advance(watermark.0)? {
            output.batch(rows)?;
        }
        output.watermark(self.held_back(watermark.0))
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.rows.ttl.as_ref().and_then(KeyTtl::next_timer)
    }

    fn process_time(&mut self, _now_ms: i64, output: &mut dyn Output) -> Result<()> {
        self.begin()?;
        self.give_out_ended(output)
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("rows", &mut self.rows), ("marks", &mut self.evaluator), ("progress", &mut self.progress)]
    }
}
