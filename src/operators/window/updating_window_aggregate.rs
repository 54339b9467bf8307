//! GROUP BY a window with early or late firing: results are shown before the end of a window, and updated after it.
//!
//! A window fires when its end has passed; before that, with early firing, and after it, with late firing, a delay after rows came for
//! it, by the clock (none: with their batch). It is kept until event time has passed its end by the allowed lateness; a row is late when
//! that is so for all its windows. What a delayed firing owes comes out when the window is closed, where Flink forgets it. The
//! groups of a window fire together; in Flink each has a timer of its own.

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute;

use super::assignment::Assignment;
use super::rows_by_window::RowsByWindow;
use super::slices::SliceKey;
use super::time::constant_timestamps;
use super::updating_windows::UpdatingWindows;
use crate::config::BATCH_ROWS;
use crate::error::{Error, Result};
use crate::operators::late_rows::LateRows;
use crate::operators::progress::Progress;
use crate::runtime::{Operator, OperatorContext, Output, StateTable};
use crate::stream_graph::{EmitStrategy, WindowAggregateSpec, WindowProperty};
use crate::types::{Batch, InputNumber, Watermark};

/// GROUP BY a window with early or late firing.
pub struct UpdatingWindowAggregate {
    spec: WindowAggregateSpec,
    emit: EmitStrategy,
    assignment: Assignment,
    windows: UpdatingWindows,
    progress: Progress,
    /// When, by event time, the first of the open windows ends or is to be closed; of none never.
    next_due: i64,
    /// When, by the clock, the first delayed firing is.
    next_timer: Option<i64>,
    /// Input columns that are read: of others nothing is copied.
    used: Vec<bool>,
    batch_rows: usize,
    late: LateRows,
    context: OperatorContext,
}

impl UpdatingWindowAggregate {
    /// From its spec, which has an emit strategy.
    pub fn new(spec: WindowAggregateSpec, context: &OperatorContext) -> Result<Self> {
        let emit = spec.emit.ok_or_else(|| Error::internal("a window whose results are updated has an emit strategy"))?;
        let windows = UpdatingWindows::new(&spec, context);
        let read = windows.read_columns()?;
        let mut used = vec![false; spec.keys.iter().chain(&read).map(|column| column + 1).max().unwrap_or(0)];
        spec.keys.iter().chain(&read).for_each(|column| used[*column] = true);
        Ok(UpdatingWindowAggregate {
            emit,
            assignment: Assignment::new(&spec.window, context)?,
            windows,
            progress: Progress::new(i64::MIN, context.key_groups),
            next_due: i64::MAX,
            next_timer: None,
            used,
            batch_rows: context.configuration.integer(&BATCH_ROWS).max(1) as usize,
            late: LateRows::new(context),
            context: context.clone(),
            spec,
        })
    }

    fn now_ms(&self) -> i64 {
        self.context.environment.clock.now_ms()
    }

    /// When event time (of processing-time windows the clock) has passed the end of a window.
    fn end_of(&self, window: SliceKey) -> i64 {
        self.assignment.time.trigger(window.end - 1)
    }

    /// When a window is closed.
    fn close_of(&self, window: SliceKey) -> i64 {
        match self.assignment.is_proctime {
            true => self.end_of(window),
            false => self.assignment.time.trigger((window.end - 1).saturating_add(self.emit.allowed_lateness_ms())),
        }
    }

    /// When a window has something to do next.
    fn due_of(&self, window: SliceKey) -> i64 {
        let end = self.end_of(window);
        if end > self.progress.time { end } else { self.close_of(window) }
    }

    /// Takes in a batch, cutting it where a step makes a window due.
    fn add_batch(&mut self, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        let steps = batch.take_steps();
        if batch.num_rows() == 0 {
            return steps.last().map_or(Ok(()), |watermark| self.advance(watermark.0, output));
        }
        self.settle_restored()?;
        let slices = self.assignment.slices(&batch, self.now_ms())?;
        let mut pending = RowsByWindow::default();
        let mut row = 0;
        for step in steps.as_slice() {
            row = self.gather(&slices, row, step.rows_before as usize, &mut pending);
            if self.next_due <= step.watermark.0 {
                self.add_rows(&batch, std::mem::take(&mut pending), output)?;
                self.advance(step.watermark.0, output)?;
            }
            self.progress.time = self.progress.time.max(step.watermark.0);
        }
        self.gather(&slices, row, slices.len(), &mut pending);
        self.add_rows(&batch, pending, output)?;
        self.late.give_out(InputNumber(0), &batch, output)?;
        steps.last().map_or(Ok(()), |watermark| output.watermark(watermark))
    }

    /// Sorts rows into windows, leaving out and counting the late ones.
    fn gather(&mut self, slices: &[SliceKey], from: usize, to: usize, pending: &mut RowsByWindow) -> usize {
        // Rows come slice by slice mostly: the places of the windows of the last one are kept.
        let mut known: Option<(SliceKey, Vec<usize>)> = None;
        for (row, slice) in slices.iter().enumerate().take(to).skip(from) {
            if known.as_ref().is_none_or(|(last, _)| last != slice) {
                let places = self.open_windows(*slice).into_iter().map(|window| pending.place(window)).collect();
                known = Some((*slice, places));
            }
            let (_, places) = known.as_ref().expect("found above");
            places.iter().for_each(|place| pending.push(*place, row));
            if places.is_empty()
                && let Some(last) = self.assignment.windows(*slice).last()
            {
                self.late.add(row, self.progress.time, self.close_of(*last));
            }
        }
        to.max(from)
    }

    /// The windows of a slice that take rows.
    fn open_windows(&mut self, slice: SliceKey) -> Vec<SliceKey> {
        let mut windows = self.assignment.windows(slice);
        if !self.assignment.is_proctime {
            windows.retain(|window| self.close_of(*window) > self.progress.time);
        }
        let first = windows.iter().map(|window| self.due_of(*window)).min();
        self.next_due = self.next_due.min(first.unwrap_or(i64::MAX));
        windows
    }

    /// Adds rows to their windows, and fires those that do so at once.
    fn add_rows(&mut self, batch: &Batch, pending: RowsByWindow, output: &mut dyn Output) -> Result<()> {
        let windows = pending.into_windows();
        for (window, rows) in &windows {
            let rows = if rows.len() == batch.num_rows() { batch.clone() } else { self.take(batch, rows)? };
            let keys: Vec<ArrayRef> = self.spec.keys.iter().map(|key| rows.column(*key).clone()).collect();
            self.windows.add(*window, &keys, &rows)?;
        }
        for (window, _) in windows {
            let has_ended = self.end_of(window) <= self.progress.time;
            let delay = if has_ended { self.emit.late.map(|late| late.delay_ms) } else { self.emit.early_delay_ms };
            match delay {
                None => {}
                Some(0) => self.fire(window, output)?,
                Some(delay) => {
                    let fire_at = self.windows.fire_at(window, self.now_ms().saturating_add(delay));
                    self.next_timer = Some(self.next_timer.map_or(fire_at, |timer| timer.min(fire_at)));
                }
            }
        }
        Ok(())
    }

    /// Rows of a batch, with the columns that are read; in place of others stands any column of theirs.
    fn take(&self, batch: &Batch, rows: &[u32]) -> Result<Batch> {
        let (first, count) = (rows[0] as usize, rows.len());
        if rows[count - 1] as usize - first + 1 == count {
            return Ok(batch.slice(first, count));
        }
        let rows = UInt32Array::from(rows.to_vec());
        let mut columns = Vec::with_capacity(self.used.len());
        for (column, used) in batch.columns().iter().zip(&self.used) {
            columns.push(if *used { compute::take(column, &rows, None)? } else { column.slice(0, count) });
        }
        Ok(Batch::new(columns, count).with_kinds(batch.kinds().map(|kinds| kinds.take(&rows))))
    }

    /// Fires all windows that end by `time`, and closes those that are to be, in the order of their ends.
    fn advance(&mut self, time: i64, output: &mut dyn Output) -> Result<()> {
        self.settle_restored()?;
        let before = self.progress.time;
        if self.next_due <= time {
            let ended: Vec<SliceKey> = self.windows.keys().take_while(|window| self.end_of(*window) <= time).collect();
            for window in ended {
                let closes = self.close_of(window) <= time;
                if self.end_of(window) > before || closes {
                    self.fire(window, output)?;
                }
                if closes {
                    self.windows.close(window);
                }
            }
            self.next_timer = self.windows.first_timer();
        }
        self.progress.time = before.max(time);
        self.next_due = self.first_due();
        if self.assignment.is_proctime { Ok(()) } else { output.watermark(Watermark(time)) }
    }

    /// Shows what has come for a window.
    fn fire(&mut self, window: SliceKey, output: &mut dyn Output) -> Result<()> {
        let (properties, time) = (&self.spec.properties, &self.assignment.time);
        self.windows.fire(window, self.batch_rows, &mut |batch| {
            let (mut columns, count, kinds) = (batch.columns().to_vec(), batch.num_rows(), batch.kinds().cloned());
            for property in properties {
                columns.push(match property {
                    WindowProperty::Start => constant_timestamps(window.start, count),
                    WindowProperty::End => constant_timestamps(window.end, count),
                    WindowProperty::Time => time.window_times(std::iter::repeat_n(window.end, count)),
                });
            }
            output.batch(Batch::new(columns, count).with_kinds(kinds))
        })
    }

    /// When, by event time, the first of the open windows has something to do.
    fn first_due(&self) -> i64 {
        self.windows.keys().map(|window| self.due_of(window)).min().unwrap_or(i64::MAX)
    }

    /// After a restart the first times follow from the windows.
    fn settle_restored(&mut self) -> Result<()> {
        if self.windows.settle_restored()? {
            self.next_due = self.first_due();
            self.next_timer = self.windows.first_timer();
        }
        Ok(())
    }
}

impl Operator for UpdatingWindowAggregate {
    fn process_batch(&mut self, _input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        if !self.assignment.is_proctime {
            return self.add_batch(batch, output);
        }
        let now = self.now_ms();
        self.process_time(now, output)?;
        let steps = batch.take_steps();
        let slices = self.assignment.slices(&batch, now)?;
        let mut pending = RowsByWindow::default();
        self.gather(&slices, 0, slices.len(), &mut pending);
        self.add_rows(&batch, pending, output)?;
        steps.last().map_or(Ok(()), |watermark| output.watermark(watermark))
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        if self.assignment.is_proctime { output.watermark(watermark) } else { self.advance(watermark.0, output) }
    }

    fn next_processing_timer(&self) -> Option<i64> {
        let (due, timer) = match self.windows.is_restored() {
            true => (self.first_due(), self.windows.first_timer()),
            false => (self.next_due, self.next_timer),
        };
        // The clock must have passed the last millisecond of a window.
        let end = Some(due.saturating_add(1)).filter(|_| self.assignment.is_proctime && due < i64::MAX);
        [timer, end].into_iter().flatten().min()
    }

    fn process_time(&mut self, now_ms: i64, output: &mut dyn Output) -> Result<()> {
        self.settle_restored()?;
        if self.assignment.is_proctime {
            self.advance(now_ms - 1, output)?;
        }
        if self.next_timer.is_some_and(|timer| timer <= now_ms) {
            for window in self.windows.due(now_ms) {
                self.fire(window, output)?;
            }
            self.next_timer = self.windows.first_timer();
        }
        Ok(())
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        self.windows.state().into_iter().chain([("progress", &mut self.progress as &mut dyn StateTable)]).collect()
    }
}
