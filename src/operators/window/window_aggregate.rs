//! GROUP BY a window: rows go into slices, and when event time (or the clock) passes the end of a window its slices are merged and emitted.
//!
//! A batch is cut only where one of its watermark steps makes a window due. A row is late when *all* its windows have fired: it is
//! dropped and counted. A row whose first windows have fired counts for the others, as in Flink.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute;

use super::assigner::WindowAssigner;
use super::assignment::Assignment;
use super::merged_slices::MergedSlices;
use super::rows_by_window::RowsByWindow;
use super::slices::{SliceKey, Slices};
use super::time::constant_timestamps;
use crate::config::BATCH_ROWS;
use crate::error::Result;
use crate::expr::AggregateCall;
use crate::operators::group_table::GroupTable;
use crate::operators::late_rows::LateRows;
use crate::operators::progress::Progress;
use crate::runtime::{Operator, OperatorContext, Output, StateTable};
use crate::stream_graph::{WindowAggregateSpec, WindowProperty};
use crate::types::{Batch, InputNumber, Watermark, WatermarkSteps};

/// GROUP BY a window.
pub struct WindowAggregate {
    spec: WindowAggregateSpec,
    assignment: Assignment,
    slices: Slices,
    progress: Progress,
    /// Input columns that are read: of others nothing is copied.
    used: Vec<bool>,
    batch_rows: usize,
    late: LateRows,
    context: OperatorContext,
}

/// Where the rows of a slice go.
#[derive(Clone, Copy)]
enum Target {
    /// To a slice.
    Slice(SliceKey),
    /// Nowhere: all windows that they belong to have fired.
    Late,
    /// Nowhere: windows lie apart, and these rows between them.
    NoWindow,
}

impl WindowAggregate {
    /// From its spec.
    pub fn new(spec: WindowAggregateSpec, context: &OperatorContext) -> Result<Self> {
        let assignment = Assignment::new(&spec.window, context)?;
        let functions = &context.environment.functions;
        let is_exact =
            |call: &AggregateCall| functions.aggregate(&call.function).is_some_and(|function| function.merges_exactly(call));
        let merged = MergedSlices::new(assignment.assigner, spec.aggregates.iter().all(is_exact));
        let slices = Slices {
            open: Default::default(),
            merged,
            num_keys: spec.keys.len(),
            aggregates: spec.aggregates.clone(),
            input_retracts: spec.input_retracts,
            functions: Arc::clone(&context.environment.functions),
            max_parallelism: context.max_parallelism,
            contents: Default::default(),
        };
        let read = slices.new_table(&[])?.aggregates.input_columns();
        let mut used = vec![false; spec.keys.iter().chain(&read).map(|column| column + 1).max().unwrap_or(0)];
        spec.keys.iter().chain(&read).for_each(|column| used[*column] = true);
        Ok(WindowAggregate {
            assignment,
            slices,
            progress: Progress::new(i64::MIN, context.key_groups),
            used,
            batch_rows: context.configuration.integer(&BATCH_ROWS).max(1) as usize,
            late: LateRows::new(context),
            context: context.clone(),
            spec,
        })
    }

    /// The slice of each row.
    fn slices_of(&self, batch: &Batch) -> Result<Vec<SliceKey>> {
        let now_ms = if self.assignment.is_proctime { self.context.environment.clock.now_ms() } else { 0 };
        self.assignment.slices(batch, now_ms)
    }

    /// The ends of the first and the last window of a slice.
    fn window_ends(&self, slice: SliceKey) -> (i64, i64) {
        match &self.assignment.assigner {
            Some(assigner) => (assigner.first_window_end(slice), assigner.last_window_end(slice)),
            None => (slice.end, slice.end),
        }
    }

    /// Whether a window has fired by `time`.
    fn has_fired(&self, window_end: i64, time: i64) -> bool {
        self.assignment.time.trigger(window_end - 1) <= time
    }

    /// The end of the first window of a slice that has not fired by `time`; none = all have.
    fn next_window_end(&self, slice: SliceKey, time: i64) -> Option<i64> {
        self.next_window_end_after(slice, time, i64::MIN)
    }

    /// The same, of the windows that end after `fired`.
    fn next_window_end_after(&self, slice: SliceKey, time: i64, fired: i64) -> Option<i64> {
        let (mut end, last) = self.window_ends(slice);
        let is_over = |end: i64| end <= fired || self.has_fired(end, time);
        if let Some(WindowAssigner::Hopping { slide, .. }) = self.assignment.assigner {
            // Of many windows those that are over come first.
            let (mut over, mut windows) = (0, if end <= last { (last - end) / slide + 1 } else { 0 });
            while over < windows {
                let middle = over + (windows - over) / 2;
                if is_over(end + middle * slide) { over = middle + 1 } else { windows = middle }
            }
            end += over * slide;
        }
        while end <= last && is_over(end) {
            end = self.assignment.assigner.map_or(end + 1, |assigner| assigner.next_window_end(slice, end));
        }
        (end <= last).then_some(end)
    }

    /// Takes in a batch, cutting it where a step makes a window due.
    fn add_batch(&mut self, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        let steps = batch.take_steps();
        if batch.num_rows() == 0 {
            return steps.last().map_or(Ok(()), |watermark| self.advance(watermark.0, output));
        }
        let slices = self.slices_of(&batch)?;
        let mut pending = RowsByWindow::default();
        let mut row = 0;
        let mut border = self.next_border();
        for step in steps.as_slice() {
            if step.watermark.0 < border {
                continue;
            }
            row = self.gather(&slices, row, step.rows_before as usize, &steps, &mut pending);
            let earliest = self.slices.open.keys().next().copied().into_iter().chain(pending.earliest()).min();
            let due = earliest.and_then(|slice| self.next_window_end(slice, self.progress.time));
            if due.is_some_and(|end| self.has_fired(end, step.watermark.0)) {
                self.add_rows(&batch, std::mem::take(&mut pending))?;
                self.advance(step.watermark.0, output)?;
            }
            self.progress.time = self.progress.time.max(step.watermark.0);
            border = self.next_border();
        }
        self.gather(&slices, row, slices.len(), &steps, &mut pending);
        self.progress.time = self.progress.time.max(steps.last().map_or(i64::MIN, |last| last.0));
        self.add_rows(&batch, pending)?;
        self.late.give_out(InputNumber(0), &batch, output)?;
        steps.last().map_or(Ok(()), |watermark| output.watermark(watermark))
    }

    /// The least watermark after the present one that can end a window: steps before it change nothing, and there are as many as rows.
    fn next_border(&self) -> i64 {
        /// Far from where the borders of slices overflow.
        const TIMES: std::ops::Range<i64> = -(1 << 60)..1 << 60;
        match &self.assignment.assigner {
            Some(assigner) if self.assignment.time.is_uniform() && TIMES.contains(&self.progress.time) => {
                assigner.slice(self.progress.time + 1).end - 1
            }
            _ => i64::MIN,
        }
    }

    /// Sorts rows into slices, leaving out and counting the late ones.
    fn gather(
        &mut self,
        slices: &[SliceKey],
        from: usize,
        to: usize,
        steps: &WatermarkSteps,
        pending: &mut RowsByWindow,
    ) -> usize {
        let mut known: Option<(SliceKey, Target, usize)> = None;
        for (row, slice) in slices.iter().enumerate().take(to).skip(from) {
            let (target, place) = match known {
                Some((last, target, place)) if last == *slice => (target, place),
                _ => match self.target(*slice) {
                    Target::Slice(target) => (Target::Slice(target), pending.place(target)),
                    target => (target, 0),
                },
            };
            known = Some((*slice, target, place));
            match target {
                Target::Slice(_) => pending.push(place, row),
                Target::Late => {
                    let last_end = self.window_ends(*slice).1;
                    let time = steps.before(row as u32).map_or(i64::MIN, |watermark| watermark.0);
                    self.late.add(row, self.progress.time.max(time), self.assignment.time.trigger(last_end - 1));
                }
                Target::NoWindow => {}
            }
        }
        to.max(from)
    }

    /// Where rows of a slice go now.
    fn target(&self, slice: SliceKey) -> Target {
        let (first_end, last_end) = self.window_ends(slice);
        if first_end > last_end {
            return Target::NoWindow;
        }
        if self.assignment.is_proctime {
            return Target::Slice(slice);
        }
        let time = self.progress.time;
        if self.has_fired(last_end, time) {
            return Target::Late;
        }
        // Of windows that cumulate those that have fired are one slice.
        match self.assignment.assigner.filter(WindowAssigner::is_cumulating) {
            Some(assigner) if self.has_fired(slice.end, time) => {
                let ends = std::iter::successors(Some(slice.end), |end| Some(assigner.next_window_end(slice, *end)));
                let fired = ends.take_while(|end| self.has_fired(*end, time)).last();
                Target::Slice(fired.map_or(slice, |end| assigner.slice(end - 1)))
            }
            _ => Target::Slice(slice),
        }
    }

    fn add_rows(&mut self, batch: &Batch, pending: RowsByWindow) -> Result<()> {
        for (slice, rows) in pending.into_windows() {
            if rows.len() == batch.num_rows() {
                self.add_to_slice(slice, batch)?;
            } else {
                self.add_to_slice(slice, &self.take(batch, rows)?)?;
            }
        }
        Ok(())
    }

    /// Rows of a batch, with the columns that are read; in place of others stands any column of theirs.
    fn take(&self, batch: &Batch, rows: Vec<u32>) -> Result<Batch> {
        let (first, count) = (rows[0] as usize, rows.len());
        if rows[count - 1] as usize - first + 1 == count {
            return Ok(batch.slice(first, count));
        }
        let rows = UInt32Array::from(rows);
        let mut columns = Vec::with_capacity(self.used.len());
        for (column, used) in batch.columns().iter().zip(&self.used) {
            columns.push(if *used { compute::take(column, &rows, None)? } else { column.slice(0, count) });
        }
        Ok(Batch::new(columns, count).with_kinds(batch.kinds().map(|kinds| kinds.take(&rows))))
    }

    fn add_to_slice(&mut self, slice: SliceKey, batch: &Batch) -> Result<()> {
        let keys: Vec<ArrayRef> = self.spec.keys.iter().map(|key| Arc::clone(batch.column(*key))).collect();
        self.slices.merged.forget(slice);
        let table = self.slices.table(slice, &keys)?;
        table.assign(&keys, batch.num_rows())?;
        table.update(batch.columns(), batch.kinds())
    }

    /// Fires all windows that are due at `time`, in the order of their ends.
    fn advance(&mut self, time: i64, output: &mut dyn Output) -> Result<()> {
        // What has fired in this call is told by the windows' ends: where clocks leap, several windows become due at one instant.
        let (before, mut fired) = (self.progress.time, i64::MIN);
        while let Some(slice) = self.slices.open.keys().next().copied() {
            let Some(end) = self.next_window_end_after(slice, before, fired) else {
                self.slices.open.pop_first();
                continue;
            };
            if !self.has_fired(end, time) {
                break;
            }
            self.fire(slice, end, output)?;
            // Windows that came with the rows may share their end; the one that fired is closed.
            fired = if self.assignment.assigner.is_some() { end } else { end - 1 };
        }
        self.progress.time = self.progress.time.max(time);
        output_watermark(self.assignment.is_proctime, time, output)
    }

    /// Emits a window and closes the slices that no later window needs.
    fn fire(&mut self, first: SliceKey, end: i64, output: &mut dyn Output) -> Result<()> {
        let Some(assigner) = self.assignment.assigner else {
            let table = self.slices.open.remove(&first).expect("it is the first one");
            return self.emit(&table, first.start, first.end, output);
        };
        let start = assigner.window_start(end);
        if self.slices.merged.is_used() {
            return self.fire_merged(assigner, first, (start, end), output);
        }
        let in_window: Vec<SliceKey> =
            self.slices.open.keys().take_while(|slice| slice.end <= end).filter(|slice| slice.end > start).copied().collect();
        if assigner.is_cumulating() {
            return self.fire_cumulated(assigner, &in_window, end, output);
        }
        if let [slice] = in_window[..] {
            let table = self.slices.open.remove(&slice).expect("it is open");
            self.emit(&table, start, end, output)?;
            if assigner.last_window_end(slice) > end {
                self.slices.open.insert(slice, table);
            }
            return Ok(());
        }
        let mut merged: Option<GroupTable> = None;
        for slice in &in_window {
            let table = &self.slices.open[slice];
            if merged.is_none() {
                merged = Some(self.slices.new_table(&table.key_types()?)?);
            }
            merged.as_mut().expect("made above").merge_table(table)?;
        }
        if let Some(merged) = merged {
            self.emit(&merged, start, end, output)?;
        }
        in_window.iter().filter(|slice| assigner.last_window_end(**slice) <= end).for_each(|slice| {
            self.slices.open.remove(slice);
        });
        Ok(())
    }

    /// Emits a window of many slices, most of which the next one will have too.
    fn fire_merged(
        &mut self,
        assigner: WindowAssigner,
        first: SliceKey,
        (start, end): (i64, i64),
        output: &mut dyn Output,
    ) -> Result<()> {
        let WindowAggregate { slices, spec, assignment, batch_rows, .. } = self;
        slices.window((start, end), |table| emit(spec, assignment, *batch_rows, table, (start, end), output))?;
        while let Some(slice) = slices.open.first_entry()
            && assigner.last_window_end(*slice.key()) <= end
        {
            slice.remove();
        }
        slices.merged.close(if slices.open.is_empty() {
            i64::MAX
        } else {
            assigner.window_start(assigner.next_window_end(first, end))
        });
        Ok(())
    }

    /// Emits a window whose groups the next one will have too: they become one slice.
    fn fire_cumulated(&mut self, assigner: WindowAssigner, slices: &[SliceKey], end: i64, output: &mut dyn Output) -> Result<()> {
        let mut tables = slices.iter().map(|slice| self.slices.open.remove(slice).expect("it is open"));
        let Some(mut cumulated) = tables.next() else { return Ok(()) };
        tables.try_for_each(|table| cumulated.merge_table(&table))?;
        self.emit(&cumulated, assigner.window_start(end), end, output)?;
        let slice = assigner.slice(end - 1);
        if assigner.last_window_end(slice) > end {
            self.slices.open.insert(slice, cumulated);
        }
        Ok(())
    }

    fn emit(&self, table: &GroupTable, start: i64, end: i64, output: &mut dyn Output) -> Result<()> {
        emit(&self.spec, &self.assignment, self.batch_rows, table, (start, end), output)
    }
}

/// Emits the groups of a window.
fn emit(
    spec: &WindowAggregateSpec,
    assignment: &Assignment,
    batch_rows: usize,
    table: &GroupTable,
    (start, end): (i64, i64),
    output: &mut dyn Output,
) -> Result<()> {
    let mut groups = table.keys.groups();
    groups.retain(|group| !table.is_settled(*group));
    for chunk in groups.chunks(batch_rows) {
        let mut columns = table.keys.keys(chunk)?;
        columns.extend(table.aggregates.evaluate(chunk)?);
        for property in &spec.properties {
            columns.push(match property {
                WindowProperty::Start => constant_timestamps(start, chunk.len()),
                WindowProperty::End => constant_timestamps(end, chunk.len()),
                WindowProperty::Time => assignment.time.window_times(std::iter::repeat_n(end, chunk.len())),
            });
        }
        output.batch(Batch::new(columns, chunk.len()))?;
    }
    Ok(())
}

/// Of the clock's progress nobody downstream is told.
fn output_watermark(is_proctime: bool, time: i64, output: &mut dyn Output) -> Result<()> {
    if is_proctime { Ok(()) } else { output.watermark(Watermark(time)) }
}

impl Operator for WindowAggregate {
    fn process_batch(&mut self, _input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        if !self.assignment.is_proctime {
            return self.add_batch(batch, output);
        }
        self.process_time(self.context.environment.clock.now_ms(), output)?;
        let steps = batch.take_steps();
        let mut pending = RowsByWindow::default();
        let slices = self.slices_of(&batch)?;
        self.gather(&slices, 0, slices.len(), &WatermarkSteps::none(), &mut pending);
        self.add_rows(&batch, pending)?;
        steps.last().map_or(Ok(()), |watermark| output.watermark(watermark))
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        if self.assignment.is_proctime { output.watermark(watermark) } else { self.advance(watermark.0, output) }
    }

    fn next_processing_timer(&self) -> Option<i64> {
        let slice = *self.slices.open.keys().next().filter(|_| self.assignment.is_proctime)?;
        // The clock must have passed the last millisecond of the window.
        self.next_window_end(slice, self.progress.time).map(|end| self.assignment.time.trigger(end - 1).saturating_add(1))
    }

    fn process_time(&mut self, now_ms: i64, output: &mut dyn Output) -> Result<()> {
        if self.assignment.is_proctime { self.advance(now_ms - 1, output) } else { Ok(()) }
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("slices", &mut self.slices), ("progress", &mut self.progress)]
    }
}

#[cfg(test)]
#[path = "window_aggregate_tests.rs"]
mod tests;
