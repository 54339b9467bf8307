//! OVER ordered by a time attribute: a row comes out when its time has come, with the results over the rows up to it.
//!
//! By event time that is when the watermark passes it; rows that are late are dropped and counted. What is late depends on the frame, as in
//! Flink: where it has no start, what the watermark has passed; else what is not after the last row of its partition that came out. By
//! processing time a row comes out at once, unless its frame is a stretch of time: then when the clock moves on.
//!
//! Frames that look back over a time bound what is kept: a partition goes when no row to come can look at its rows. Others keep something of
//! each partition, which has a time to live: a partition goes when so long no row came to it and none came out, unless rows wait for their time.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Int64Type, UInt32Type};

use super::kept_rows::{KeptRows, TimedRow};
use super::partitions::{NEVER, PartitionTime, Partitions};
use super::values::{FrameStart, evaluate};
use crate::error::Result;
use crate::operators::late_rows::LateRows;
use crate::operators::progress::Progress;
use crate::operators::state_ttl::KeyTtl;
use crate::operators::window::time::{milliseconds, null_rowtime};
use crate::runtime::state::RowId;
use crate::runtime::{Operator, OperatorContext, Output, StateTable};
use crate::stream_graph::{FrameUnit, OverCall, OverFrame, OverOperatorSpec, OverStrategy};
use crate::types::{Batch, InputNumber, TypeKind, Watermark, WatermarkStep};

/// OVER ordered by a time attribute.
pub(super) struct TimeOver {
    partition_keys: Vec<usize>,
    /// The rowtime and its digits; none: processing time.
    rowtime: Option<(usize, u8)>,
    frame: FrameStart,
    partitions: Partitions,
    kept: KeptRows,
    progress: Progress,
    /// Rows whose time has come.
    due: Vec<TimedRow>,
    /// What comes out of the call that is processed.
    ready: Vec<Batch>,
    /// Partitions that were cleaned up.
    emptied: Vec<u32>,
    /// Whether restored rows may wait to be put in their places.
    is_restored: bool,
    late: LateRows,
    context: OperatorContext,
}

impl TimeOver {
    /// From its spec.
    pub(super) fn new(spec: &OverOperatorSpec, context: &OperatorContext) -> Result<Self> {
        // All calls have one frame.
        let frame = spec.over.calls.first().map_or(OverFrame::RANGE_TO_CURRENT, OverCall::running_frame);
        let preceding = frame.start.before();
        let rowtime = match spec.strategy {
            OverStrategy::EventTime(column) => Some((column, precision(&spec.input.field(column).data_type.kind))),
            OverStrategy::ProcessingTime | OverStrategy::EventTimeFrames(_) | OverStrategy::Sorted => None,
        };
        // Rows that come by the clock are no peers where frames have no start, as in Flink.
        let unit = if rowtime.is_none() && preceding.is_none() { FrameUnit::Rows } else { frame.unit };
        let partition_keys = spec.over.partition_keys.clone();
        Ok(TimeOver {
            rowtime,
            frame: FrameStart { unit, preceding },
            partitions: Partitions::new(spec, preceding.is_some(), context)?,
            kept: KeptRows::new(&spec.input, partition_keys.clone(), preceding.is_some(), context.max_parallelism)?,
            partition_keys,
            progress: Progress::new(i64::MIN, context.key_groups),
            due: Vec::new(),
            ready: Vec::new(),
            emptied: Vec::new(),
            is_restored: false,
            late: LateRows::new(context),
            context: context.clone(),
        })
    }

    /// The stretch of time that frames look back over, if they do.
    fn range(&self) -> Option<i64> {
        self.frame.preceding.filter(|_| self.frame.unit == FrameUnit::Range)
    }

    /// Whether rows wait for the clock to move on.
    fn waits_for_clock(&self) -> bool {
        self.rowtime.is_none() && self.range().is_some()
    }

    /// Finds or makes the partition of each row; one whose time to live is over begins anew.
    fn assign(&mut self, columns: &[ArrayRef], num_rows: usize) -> Result<Vec<u32>> {
        let mut groups = self.place(columns, num_rows)?;
        let over = self.partitions.ttl.as_mut().map(|ttl| ttl.take_over(&groups)).unwrap_or_default();
        if self.forget(over)? {
            groups = self.place(columns, num_rows)?;
        }
        if let Some(ttl) = &mut self.partitions.ttl {
            ttl.write(&groups);
        }
        Ok(groups)
    }

    fn place(&mut self, columns: &[ArrayRef], num_rows: usize) -> Result<Vec<u32>> {
        let keys: Vec<ArrayRef> = self.partition_keys.iter().map(|key| Arc::clone(&columns[*key])).collect();
        self.partitions.assign(&keys, num_rows)?;
        self.kept.frames.resize(self.partitions.times.len(), VecDeque::new());
        Ok(self.partitions.table.groups().to_vec())
    }

    /// What a call begins with: restored rows are put in their places, and partitions go whose time to live is over.
    fn begin(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_restored) {
            self.load()?;
        }
        let over = self.partitions.ttl.as_mut().map(KeyTtl::tick).unwrap_or_default();
        self.forget(over)?;
        Ok(())
    }

    /// Partitions whose time to live is over go, unless rows wait for their time there; whether some went.
    fn forget(&mut self, over: Vec<u32>) -> Result<bool> {
        if over.is_empty() {
            return Ok(false);
        }
        let waits = |group: &u32| self.partitions.times[*group as usize].waiting > 0;
        let (waiting, gone): (Vec<u32>, Vec<u32>) = over.into_iter().partition(waits);
        if let Some(ttl) = &mut self.partitions.ttl {
            ttl.spare(&waiting);
        }
        gone.iter().for_each(|group| self.kept.forget(*group));
        self.partitions.table.remove(&gone)?;
        Ok(!gone.is_empty())
    }

    fn load(&mut self) -> Result<()> {
        for rows in self.kept.take_restored() {
            let (columns, numbers) = rows.columns().split_at(self.kept.store.num_columns());
            let times = numbers[0].as_primitive::<Int64Type>();
            let framed = numbers.get(1).map(|framed| framed.as_primitive::<UInt32Type>());
            let groups = self.place(columns, rows.num_rows())?;
            let mut ids = Vec::new();
            self.kept.store.append(columns, rows.num_rows(), &mut ids)?;
            for (row, (group, id)) in groups.into_iter().zip(ids).enumerate() {
                let timed = TimedRow { group, time: times.value(row), id };
                if framed.is_some_and(|framed| framed.value(row) > 0) { self.kept.frame(timed) } else { self.wait(timed) }
            }
        }
        if self.rowtime.is_some() {
            self.kept.sort_frames();
        }
        Ok(())
    }

    fn wait(&mut self, row: TimedRow) {
        self.partitions.times[row.group as usize].waiting += 1;
        self.kept.wait(row);
    }

    /// The time of a row has come.
    fn is_due(&mut self, row: TimedRow) {
        let time = self.partitions.time_of(row.group);
        (time.last, time.waiting) = (row.time, time.waiting - 1);
        self.due.push(row);
    }

    fn add_by_event_time(&mut self, batch: &Batch, column: usize, precision: u8, steps: &[WatermarkStep]) -> Result<()> {
        if batch.column(column).null_count() > 0 {
            return Err(null_rowtime());
        }
        let times = milliseconds(batch.column(column), precision)?;
        let groups = self.assign(batch.columns(), batch.num_rows())?;
        let mut ids = Vec::new();
        self.kept.store.append(batch.columns(), batch.num_rows(), &mut ids)?;
        let mut steps = steps.iter().peekable();
        let mut gone: Vec<RowId> = Vec::new();
        for (row, time) in times.into_iter().enumerate() {
            while let Some(step) = steps.next_if(|step| step.rows_before as usize <= row) {
                self.advance(step.watermark.0)?;
            }
            let timed = TimedRow { group: groups[row], time, id: ids[row] };
            if self.is_late(timed) {
                gone.push(timed.id);
                self.late.add(row, self.progress.time, time);
            } else {
                self.schedule_cleanup(timed);
                self.wait(timed);
            }
        }
        self.kept.delete(&gone);
        steps.try_for_each(|step| self.advance(step.watermark.0))
    }

    fn is_late(&self, row: TimedRow) -> bool {
        match self.frame.preceding {
            None => row.time <= self.progress.time,
            Some(_) => row.time <= self.partitions.times[row.group as usize].last,
        }
    }

    /// When no row after this one can have it in its frame, all of the partition goes: a while later, so that it is seldom asked.
    fn schedule_cleanup(&mut self, row: TimedRow) {
        let Some(range) = self.range() else { return };
        let known = self.partitions.times[row.group as usize].cleanup;
        let earliest = row.time.saturating_add(range).saturating_add(1);
        if known == NEVER || known < earliest {
            let at = row.time.saturating_add(range).saturating_add(range / 2 + 1);
            self.partitions.time_of(row.group).cleanup = at;
            self.partitions.cleanups.entry(at).or_default().push(row.group);
        }
    }

    /// The watermark is here now. One that does not move it on is heard after a restart; rows that came behind it wait for the next one
    /// all the same, since others of their partition may come that are earlier.
    fn advance(&mut self, watermark: i64) -> Result<()> {
        if watermark <= self.progress.time {
            return Ok(());
        }
        self.progress.time = watermark;
        while let Some(first) = self.kept.pending.first_entry().filter(|first| *first.key() <= watermark) {
            first.remove().into_iter().for_each(|row| self.is_due(row));
        }
        self.clean_up_until(watermark)
    }

    /// Time has passed the frames of some partitions.
    fn clean_up_until(&mut self, time: i64) -> Result<()> {
        while let Some(first) = self.partitions.cleanups.first_entry().filter(|first| *first.key() <= time) {
            let (at, groups) = first.remove_entry();
            for group in groups {
                let time = self.partitions.time_of(group);
                if time.cleanup <= at {
                    self.clean_up(group)?;
                } else {
                    // Rows have put it off; in Flink the timer that does nothing else still moves on what counts as late.
                    time.last = time.last.max(at);
                }
            }
        }
        Ok(())
    }

    /// Forgets all rows of a partition.
    fn clean_up(&mut self, group: u32) -> Result<()> {
        self.compute()?;
        *self.partitions.time_of(group) = PartitionTime::START;
        self.partitions.table.aggregates.clear(&[group])?;
        self.kept.forget(group);
        self.emptied.push(group);
        Ok(())
    }

    /// Works out the results of the rows whose time has come.
    fn compute(&mut self) -> Result<()> {
        let due = std::mem::take(&mut self.due);
        if due.is_empty() {
            return Ok(());
        }
        for row in &due {
            self.kept.note(*row, true);
            self.partitions.time_of(row.group);
        }
        let aggregates = &mut self.partitions.table.aggregates;
        let (values, gone) = evaluate(&due, self.frame, &self.kept.store, &mut self.kept.frames, aggregates)?;
        let ids: Vec<RowId> = due.iter().map(|row| row.id).collect();
        let mut columns = self.kept.store.take(&ids)?;
        columns.extend(values);
        self.ready.push(Batch::new(columns, ids.len()));
        self.kept.delete(&gone);
        if let (Some(ttl), Some(_)) = (&mut self.partitions.ttl, self.rowtime) {
            due.iter().for_each(|row| ttl.write(&[row.group]));
        }
        Ok(())
    }

    /// Emits what is ready. Partitions of which nothing is left are removed.
    fn emit(&mut self, output: &mut dyn Output) -> Result<()> {
        self.compute()?;
        self.ready.drain(..).try_for_each(|batch| output.batch(batch))?;
        let mut emptied = std::mem::take(&mut self.emptied);
        emptied.sort_unstable();
        emptied.dedup();
        // Some have rows again.
        emptied.retain(|group| self.partitions.times[*group as usize].cleanup == NEVER);
        self.partitions.table.remove(&emptied)
    }

    fn add_by_clock(&mut self, batch: &Batch) -> Result<()> {
        let now = self.context.environment.clock.now_ms();
        let groups = self.assign(batch.columns(), batch.num_rows())?;
        let mut ids = Vec::new();
        self.kept.store.append(batch.columns(), batch.num_rows(), &mut ids)?;
        let rows = groups.into_iter().zip(ids).map(|(group, id)| TimedRow { group, time: now, id });
        if self.waits_for_clock() {
            rows.for_each(|row| {
                self.schedule_cleanup(row);
                self.wait(row);
            });
        } else {
            self.due.extend(rows);
        }
        Ok(())
    }

    /// The clock has passed some rows.
    fn advance_clock(&mut self, now: i64) -> Result<()> {
        while let Some(first) = self.kept.pending.first_entry().filter(|first| *first.key() < now) {
            first.remove().into_iter().for_each(|row| self.is_due(row));
        }
        self.clean_up_until(now)
    }
}

fn precision(kind: &TypeKind) -> u8 {
    match kind {
        TypeKind::Timestamp(precision) | TypeKind::TimestampLtz(precision) => *precision,
        _ => 3,
    }
}

impl Operator for TimeOver {
    fn process_batch(&mut self, input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        self.begin()?;
        let steps = batch.take_steps();
        match self.rowtime {
            Some((column, precision)) => {
                self.add_by_event_time(&batch, column, precision, steps.as_slice())?;
                self.late.give_out(input, &batch, output)?;
            }
            None => {
                self.advance_clock(self.context.environment.clock.now_ms())?;
                self.add_by_clock(&batch)?;
            }
        }
        self.emit(output)?;
        steps.last().map_or(Ok(()), |watermark| output.watermark(watermark))
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        if self.rowtime.is_some() {
            self.begin()?;
            self.advance(watermark.0)?;
            self.emit(output)?;
        }
        output.watermark(watermark)
    }

    fn next_processing_timer(&self) -> Option<i64> {
        if self.kept.has_restored() {
            // They are put in their places first.
            return Some(i64::MIN);
        }
        let of_ttl = self.partitions.ttl.as_ref().and_then(KeyTtl::next_timer);
        let (waiting, cleanup) = match self.waits_for_clock() {
            true => (
                self.kept.pending.keys().next().map(|first| first.saturating_add(1)),
                self.partitions.cleanups.keys().next().copied(),
            ),
            false => (None, None),
        };
        of_ttl.into_iter().chain(waiting).chain(cleanup).min()
    }

    fn process_time(&mut self, now_ms: i64, output: &mut dyn Output) -> Result<()> {
        self.begin()?;
        if self.waits_for_clock() {
            self.advance_clock(now_ms)?;
            self.emit(output)?;
        }
        Ok(())
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        self.is_restored = true;
        vec![("partitions", &mut self.partitions), ("rows", &mut self.kept), ("progress", &mut self.progress)]
    }
}
