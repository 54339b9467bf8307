//! The operator of SESSION windows: goes through the rows of a batch with the event time that each came at.
//!
//! Sessions that end within a batch come out behind it in one piece, with the watermarks between them where they belong, so that a batch
//! is not cut wherever one of its many keys falls silent.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute;

use super::super::time::WindowTime;
use super::open_sessions::Placed;
use super::placed_rows::PlacedRows;
use super::session_state::SessionState;
use super::{SessionContent, SessionGroups, SessionRows};
use crate::config::BATCH_ROWS;
use crate::error::Result;
use crate::operators::late_rows::LateRows;
use crate::operators::progress::Progress;
use crate::runtime::{Operator, OperatorContext, Output, StateTable};
use crate::stream_graph::{WindowAggregateSpec, WindowSpec};
use crate::types::{Batch, InputNumber, Watermark, WatermarkSteps};

/// The operator of SESSION windows.
pub struct SessionWindow<C> {
    window: WindowSpec,
    time: WindowTime,
    is_proctime: bool,
    state: SessionState<C>,
    progress: Progress,
    late: LateRows,
    batch_rows: usize,
    context: OperatorContext,
}

/// What is under way within a batch.
#[derive(Default)]
struct Pass {
    placed: PlacedRows,
    /// Sessions that have ended, in that order.
    closed: Vec<u32>,
    /// After how many of them which watermark came.
    steps: WatermarkSteps,
    /// Sessions that have become a part of others.
    merged: Vec<u32>,
}

impl SessionWindow<SessionGroups> {
    /// With aggregation. `window` is that of the spec.
    pub fn aggregate(spec: &WindowAggregateSpec, window: &WindowSpec, context: &OperatorContext) -> Result<Self> {
        Self::new(window, SessionGroups::new(spec, context)?, context)
    }
}

impl SessionWindow<SessionRows> {
    /// Without: each row comes out with its session.
    pub fn rows(window: &WindowSpec, context: &OperatorContext) -> Result<Self> {
        Self::new(window, SessionRows::new(window.partition_keys.clone()), context)
    }
}

#[allow(private_bounds)] // contents are known in this module alone
impl<C: SessionContent> SessionWindow<C> {
    fn new(window: &WindowSpec, content: C, context: &OperatorContext) -> Result<Self> {
        Ok(SessionWindow {
            time: WindowTime::new(&window.time_type, context.configuration.time_zone()),
            is_proctime: window.time_type.is_proctime(),
            state: SessionState::new(window, content, context.max_parallelism)?,
            progress: Progress::new(i64::MIN, context.key_groups),
            late: LateRows::new(context),
            batch_rows: context.configuration.integer(&BATCH_ROWS).max(1) as usize,
            context: context.clone(),
            window: window.clone(),
        })
    }

    /// The local time of each row.
    fn times(&self, batch: &Batch) -> Result<Vec<i64>> {
        if self.is_proctime {
            let now = self.time.to_local(self.context.environment.clock.now_ms());
            return Ok(vec![now; batch.num_rows()]);
        }
        self.time.local_times(batch.column(self.window.time_column))
    }

    fn add_batch(&mut self, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        let steps = batch.take_steps();
        let mut pass = Pass::default();
        let mut row = 0;
        if batch.num_rows() > 0 {
            let times = self.times(&batch)?;
            self.state.find_keys(&batch)?;
            for step in steps.as_slice() {
                self.place(&batch, &times, row..step.rows_before as usize, &mut pass)?;
                row = step.rows_before as usize;
                self.take_step(step.watermark, &mut pass);
            }
            self.place(&batch, &times, row..batch.num_rows(), &mut pass)?;
            self.add_placed(&batch, &mut pass)?;
        } else {
            steps.last().into_iter().for_each(|watermark| self.take_step(watermark, &mut pass));
        }
        self.fire(pass, output)?;
        self.late.give_out(InputNumber(0), &batch, output)
    }

    /// Finds the sessions of rows that came at the event time of now.
    fn place(&mut self, batch: &Batch, times: &[i64], rows: Range<usize>, pass: &mut Pass) -> Result<()> {
        for row in rows {
            let (progress, is_proctime) = (self.progress.time, self.is_proctime);
            let is_over = |end: i64| !is_proctime && self.time.trigger(end - 1) <= progress;
            match self.state.open.place(row, times[row], is_over) {
                Placed::In(session) => pass.placed.push(session),
                Placed::Late => {
                    let end = times[row].saturating_add(self.state.gap);
                    self.late.add(row, progress, self.time.trigger(end - 1));
                    pass.placed.push_late();
                }
                Placed::Merged { into, from } => {
                    // What both hold must be there before it is put together.
                    self.add_placed(batch, pass)?;
                    self.state.content.merge(into, from)?;
                    pass.merged.push(from);
                    pass.placed.push(into);
                }
            }
        }
        Ok(())
    }

    /// Adds the rows that were placed to their sessions.
    fn add_placed(&mut self, batch: &Batch, pass: &mut Pass) -> Result<()> {
        pass.placed.add_to(&mut self.state, batch)
    }

    /// Event time has advanced.
    fn take_step(&mut self, watermark: Watermark, pass: &mut Pass) {
        if !self.is_proctime {
            self.close(watermark.0, pass);
        }
        pass.steps.push(pass.closed.len() as u32, watermark);
    }

    /// Closes the sessions that are over at `time`.
    fn close(&mut self, time: i64, pass: &mut Pass) {
        self.state.open.close(|end| self.time.trigger(end - 1) <= time, &mut pass.closed);
        self.progress.time = self.progress.time.max(time);
    }

    /// Emits what was closed, and forgets it.
    fn fire(&mut self, pass: Pass, output: &mut dyn Output) -> Result<()> {
        self.emit(&pass, output)?;
        let mut gone = pass.closed;
        self.state.content.clear(&gone)?;
        gone.extend(pass.merged);
        self.state.open.release(&gone);
        Ok(())
    }

    /// Emits the rows of closed sessions, and the watermarks between them.
    fn emit(&self, pass: &Pass, output: &mut dyn Output) -> Result<()> {
        let SessionState { open, content, .. } = &self.state;
        let mut steps = pass.steps.as_slice().iter().peekable();
        let (mut chunk, mut num_rows, mut passed) = (Vec::new(), 0, WatermarkSteps::none());
        for (position, session) in pass.closed.iter().enumerate() {
            while let Some(step) = steps.next_if(|step| step.rows_before as usize <= position) {
                passed.push(num_rows as u32, step.watermark);
            }
            let own = content.num_rows(*session);
            if own == 0 {
                continue;
            }
            chunk.push(*session);
            num_rows += own;
            if num_rows >= self.batch_rows {
                let rows = content.rows(open, &std::mem::take(&mut chunk), &self.time)?;
                output.batch(rows.with_steps(std::mem::replace(&mut passed, WatermarkSteps::none())))?;
                num_rows = 0;
            }
        }
        steps.for_each(|step| passed.push(num_rows as u32, step.watermark));
        if num_rows > 0 {
            return output.batch(content.rows(open, &chunk, &self.time)?.with_steps(passed));
        }
        passed.last().map_or(Ok(()), |watermark| output.watermark(watermark))
    }

    /// The clock or event time has advanced between batches.
    fn advance(&mut self, time: i64, watermark: Option<Watermark>, output: &mut dyn Output) -> Result<()> {
        let mut pass = Pass::default();
        self.close(time, &mut pass);
        if let Some(watermark) = watermark {
            pass.steps.push(pass.closed.len() as u32, watermark);
        }
        self.fire(pass, output)
    }
}

/// Some rows; in place of columns that nobody reads stands any of theirs.
pub(super) fn take_used(rows: &Batch, indices: &UInt32Array, used: Option<&[bool]>) -> Result<Batch> {
    let count = indices.len();
    let is_used = |at: usize| used.is_none_or(|used| used.get(at).copied().unwrap_or(false));
    let take = |(at, column): (usize, &ArrayRef)| -> Result<ArrayRef> {
        Ok(if is_used(at) { compute::take(column, indices, None)? } else { column.slice(0, count) })
    };
    let columns = rows.columns().iter().enumerate().map(take).collect::<Result<_>>()?;
    Ok(Batch::new(columns, count).with_kinds(rows.kinds().map(|kinds| kinds.take(indices))))
}

#[allow(private_bounds)]
impl<C: SessionContent> Operator for SessionWindow<C> {
    fn process_batch(&mut self, _input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        if self.is_proctime {
            self.process_time(self.context.environment.clock.now_ms(), output)?;
        } else if C::SKIPS_NULL_TIMES && batch.column(self.window.time_column).null_count() > 0 {
            batch = batch.filter(&compute::is_not_null(batch.column(self.window.time_column))?)?;
        }
        self.add_batch(batch, output)
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        if self.is_proctime { output.watermark(watermark) } else { self.advance(watermark.0, Some(watermark), output) }
    }

    fn next_processing_timer(&self) -> Option<i64> {
        let first = self.state.open.next_timer().filter(|_| self.is_proctime)?;
        // The clock must have passed the last millisecond of the session.
        Some(self.time.trigger(first - 1).saturating_add(1))
    }

    fn process_time(&mut self, now_ms: i64, output: &mut dyn Output) -> Result<()> {
        if self.is_proctime { self.advance(now_ms - 1, None, output) } else { Ok(()) }
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("sessions", &mut self.state), ("progress", &mut self.progress)]
    }
}
