//! GROUP BY a session with early or late firing: results are shown before a session ends, and updated after it.
//!
//! A session is kept until event time has passed its end by the allowed lateness. A row that joins it changes its bounds, and may make it
//! one with others: then what was shown of all of them is taken back, and the new one is shown. One that keeps its bounds is updated.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute;

use super::super::time::WindowTime;
use super::open_sessions::Placed;
use super::placed_rows::PlacedRows;
use super::session_state::{SessionState, bounds_of};
use super::shown_rows::ShownRows;
use super::updating_groups::UpdatingGroups;
use super::{SessionContent, SessionGroups};
use crate::config::BATCH_ROWS;
use crate::error::{Error, Result};
use crate::operators::change_rows::{ChangeRows, Differ};
use crate::operators::late_rows::LateRows;
use crate::operators::progress::Progress;
use crate::runtime::{Operator, OperatorContext, Output, StateTable};
use crate::stream_graph::{EmitStrategy, WindowAggregateSpec, WindowSpec};
use crate::types::{Batch, InputNumber, RowKind, Watermark};

/// GROUP BY a session with early or late firing.
pub struct UpdatingSessions {
    window: WindowSpec,
    emit: EmitStrategy,
    emit_update_before: bool,
    time: WindowTime,
    is_proctime: bool,
    state: SessionState<UpdatingGroups>,
    shown: ShownRows,
    /// The ends of sessions as they were when it was begun to wait for them.
    ends: BinaryHeap<Reverse<(i64, u32)>>,
    progress: Progress,
    late: LateRows,
    next_timer: Option<i64>,
    /// Whether what follows from the state was found since the start.
    is_settled: bool,
    batch_rows: usize,
    context: OperatorContext,
}

/// What is under way within a batch.
#[derive(Default)]
struct Pass {
    placed: PlacedRows,
    /// Sessions that rows came for.
    touched: Vec<u32>,
    /// Those of them whose shown rows must be noted before more is added.
    to_note: Vec<u32>,
    /// Sessions that are no more.
    gone: Vec<u32>,
}

impl UpdatingSessions {
    /// `window` is that of the spec, which has an emit strategy.
    pub fn new(spec: &WindowAggregateSpec, window: &WindowSpec, context: &OperatorContext) -> Result<Self> {
        let emit = spec.emit.ok_or_else(|| Error::internal("a session whose results are updated has an emit strategy"))?;
        let groups = UpdatingGroups::new(SessionGroups::new(spec, context)?);
        Ok(UpdatingSessions {
            emit,
            emit_update_before: spec.emit_update_before,
            time: WindowTime::new(&window.time_type, context.configuration.time_zone()),
            is_proctime: window.time_type.is_proctime(),
            state: SessionState::new(window, groups, context.max_parallelism)?,
            shown: ShownRows::new(spec.keys.len(), context.max_parallelism),
            ends: BinaryHeap::new(),
            progress: Progress::new(i64::MIN, context.key_groups),
            late: LateRows::new(context),
            next_timer: None,
            is_settled: false,
            batch_rows: context.configuration.integer(&BATCH_ROWS).max(1) as usize,
            context: context.clone(),
            window: window.clone(),
        })
    }

    fn now_ms(&self) -> i64 {
        self.context.environment.clock.now_ms()
    }

    /// Whether a session with this end has ended by `time`.
    fn has_ended(&self, end: i64, time: i64) -> bool {
        self.time.trigger(end - 1) <= time
    }

    /// Whether a session with this end is closed by `time`.
    fn is_over(&self, end: i64, time: i64) -> bool {
        self.time.trigger((end - 1).saturating_add(self.emit.allowed_lateness_ms())) <= time
    }

    /// The local time of each row.
    fn times(&self, batch: &Batch) -> Result<Vec<i64>> {
        if self.is_proctime {
            return Ok(vec![self.time.to_local(self.now_ms()); batch.num_rows()]);
        }
        self.time.local_times(batch.column(self.window.time_column))
    }

    fn add_batch(&mut self, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        let steps = batch.take_steps();
        // By the clock, event time only passes.
        let looked_at = if self.is_proctime { &[] } else { steps.as_slice() };
        let mut pass = Pass::default();
        if batch.num_rows() > 0 {
            let times = self.times(&batch)?;
            self.state.find_keys(&batch)?;
            let mut row = 0;
            for step in looked_at {
                self.place(&batch, &times, row..step.rows_before as usize, &mut pass)?;
                row = row.max(step.rows_before as usize);
                if self.is_due(step.watermark.0) {
                    self.add_placed(&batch, &mut pass)?;
                    self.fire_touched(&mut pass, output)?;
                    self.advance(step.watermark.0, &mut pass, output)?;
                }
                self.progress.time = self.progress.time.max(step.watermark.0);
            }
            self.place(&batch, &times, row..batch.num_rows(), &mut pass)?;
            self.add_placed(&batch, &mut pass)?;
            self.fire_touched(&mut pass, output)?;
            self.late.give_out(InputNumber(0), &batch, output)?;
            self.state.open.release(&pass.gone);
        } else if let Some(step) = looked_at.last() {
            return self.advance_alone(step.watermark.0, output);
        }
        steps.last().map_or(Ok(()), |watermark| output.watermark(watermark))
    }

    /// Finds the sessions of rows that came at the event time of now.
    fn place(&mut self, batch: &Batch, times: &[i64], rows: Range<usize>, pass: &mut Pass) -> Result<()> {
        for row in rows {
            let (progress, is_proctime) = (self.progress.time, self.is_proctime);
            let lateness = self.emit.allowed_lateness_ms();
            let time = &self.time;
            let is_over = |end: i64| !is_proctime && time.trigger((end - 1).saturating_add(lateness)) <= progress;
            match self.state.open.place(row, times[row], is_over) {
                Placed::In(session) => {
                    self.touch(session, pass);
                    pass.placed.push(session);
                }
                Placed::Late => {
                    let end = times[row].saturating_add(self.state.gap);
                    self.late.add(row, progress, self.time.trigger((end - 1).saturating_add(lateness)));
                    pass.placed.push_late();
                }
                Placed::Merged { into, from } => {
                    self.touch(into, pass);
                    self.touch(from, pass);
                    // What both hold must be there before it is put together.
                    self.add_placed(batch, pass)?;
                    self.state.content.merge(into, from)?;
                    pass.gone.push(from);
                    pass.placed.push(into);
                }
            }
        }
        Ok(())
    }

    /// A row came for a session.
    fn touch(&mut self, session: u32, pass: &mut Pass) {
        let end = self.state.open.bounds(session).1;
        let mark = self.state.content.mark(session);
        mark.open = true;
        if !std::mem::replace(&mut mark.touched, true) {
            pass.touched.push(session);
        }
        if mark.shown.is_some() && mark.former.is_empty() && !std::mem::replace(&mut mark.queued, true) {
            pass.to_note.push(session);
        }
        if !std::mem::replace(&mut mark.awaited, true) {
            self.ends.push(Reverse((end, session)));
        }
    }

    /// Notes what was shown of sessions, before they change.
    fn note(&mut self, sessions: &[u32]) -> Result<()> {
        if sessions.is_empty() {
            return Ok(());
        }
        let SessionState { open, content, .. } = &mut self.state;
        let bounds = sessions.iter().map(|session| content.mark(*session).shown.unwrap_or_default()).unzip();
        let (starts, ends): (Vec<i64>, Vec<i64>) = bounds;
        let rows = content.groups.rows_within(open, sessions, [starts.clone(), ends], &self.time)?;
        let first = self.shown.note(rows, starts);
        for (number, session) in (first..).zip(sessions) {
            let mark = content.mark(*session);
            mark.queued = false;
            mark.former.push(number);
        }
        Ok(())
    }

    /// Adds the rows that were placed to their sessions.
    fn add_placed(&mut self, batch: &Batch, pass: &mut Pass) -> Result<()> {
        self.note(&std::mem::take(&mut pass.to_note))?;
        pass.placed.add_to(&mut self.state, batch)
    }

    /// Fires the sessions that rows came for, or sets when they fire.
    fn fire_touched(&mut self, pass: &mut Pass, output: &mut dyn Output) -> Result<()> {
        let (mut at_once, now, progress) = (Vec::new(), self.now_ms(), self.progress.time);
        for session in std::mem::take(&mut pass.touched) {
            let end = self.state.open.bounds(session).1;
            let has_ended = !self.is_proctime && self.has_ended(end, progress);
            let mark = self.state.content.mark(session);
            mark.touched = false;
            if !mark.open {
                continue; // it has become a part of another one
            }
            match if has_ended || mark.ended { self.emit.late.map(|late| late.delay_ms) } else { self.emit.early_delay_ms } {
                None => {}
                Some(0) => at_once.push(session),
                Some(delay) => {
                    let fire_at = *mark.fire_at.get_or_insert(now.saturating_add(delay));
                    self.next_timer = Some(self.next_timer.map_or(fire_at, |timer| timer.min(fire_at)));
                }
            }
        }
        self.fire(&at_once, output)
    }

    /// Whether a session ends or is closed by `time`.
    fn is_due(&self, time: i64) -> bool {
        self.ends.peek().is_some_and(|Reverse((end, _))| self.has_ended(*end, time))
            || self.state.open.next_timer().is_some_and(|end| self.is_over(end, time))
    }

    /// Fires the sessions that end by `time`, and closes those that are over.
    fn advance(&mut self, time: i64, pass: &mut Pass, output: &mut dyn Output) -> Result<()> {
        self.progress.time = self.progress.time.max(time);
        let mut ended = Vec::new();
        while let Some(Reverse((end, session))) = self.ends.peek().copied().filter(|Reverse((end, _))| self.has_ended(*end, time))
        {
            self.ends.pop();
            let now = self.state.open.bounds(session).1;
            let mark = self.state.content.mark(session);
            mark.awaited = mark.open && now > end;
            if mark.awaited {
                self.ends.push(Reverse((now, session)));
            } else if mark.open {
                ended.push(session);
            }
        }
        self.fire(&ended, output)?;
        let mut closed = Vec::new();
        let (lateness, zone) = (self.emit.allowed_lateness_ms(), &self.time);
        self.state.open.close(|end| zone.trigger((end - 1).saturating_add(lateness)) <= time, &mut closed);
        self.fire(&closed, output)?;
        self.state.content.clear(&closed)?;
        pass.gone.extend(closed);
        self.next_timer = self.first_timer();
        if self.is_proctime { Ok(()) } else { output.watermark(Watermark(time)) }
    }

    /// The same between batches.
    fn advance_alone(&mut self, time: i64, output: &mut dyn Output) -> Result<()> {
        let mut pass = Pass::default();
        self.advance(time, &mut pass, output)?;
        self.state.open.release(&pass.gone);
        Ok(())
    }

    /// Shows what has become of sessions since they were shown.
    fn fire(&mut self, sessions: &[u32], output: &mut dyn Output) -> Result<()> {
        for chunk in sessions.chunks(self.batch_rows) {
            let changes = self.changes(chunk)?;
            output.batch(changes)?;
        }
        Ok(())
    }

    fn changes(&mut self, sessions: &[u32]) -> Result<Batch> {
        let progress = self.progress.time;
        let SessionState { open, content, .. } = &mut self.state;
        let new = content.groups.rows(open, sessions, &self.time)?;
        let [starts, ends] = bounds_of(open, sessions);
        // For each old row the new one of its session beside it, and the other way round: a change has both at the same place.
        let (mut numbers, mut beside, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for (at, session) in sessions.iter().enumerate() {
            let is = content.num_rows(*session) != 0;
            let mark = content.mark(*session);
            let bounds = (starts[at], ends[at]);
            let former = std::mem::take(&mut mark.former);
            let keeps = is && former.len() == 1 && mark.shown == Some(bounds);
            let is_new = is && !keeps && (mark.shown.is_none() || !former.is_empty());
            let is_unchanged = mark.shown.is_some() && former.is_empty();
            rows.push((numbers.len()..numbers.len() + former.len(), keeps, is_new));
            beside.extend(std::iter::repeat_n(at as u32, former.len()));
            numbers.extend(former);
            mark.fire_at = None;
            mark.ended = !self.is_proctime && self.time.trigger(ends[at] - 1) <= progress;
            if !is_unchanged {
                mark.shown = is.then_some(bounds);
            }
        }
        let old = self.shown.rows(&numbers)?;
        let first_new = numbers.len();
        let all = beside.iter().copied().chain(0..sessions.len() as u32);
        let all = UInt32Array::from_iter_values(all);
        let new: Vec<ArrayRef> =
            new.columns().iter().map(|column| compute::take(column, &all, None)).collect::<Result<_, _>>()?;
        let old = if old.is_empty() { new.iter().map(|column| column.slice(0, 0)).collect() } else { old };
        let aligned: Vec<ArrayRef> = new.iter().map(|column| column.slice(0, first_new)).collect();
        let differ = Differ::new(&old, &aligned)?;
        let mut changes = ChangeRows::default();
        for (at, (former, keeps, is_new)) in rows.into_iter().enumerate() {
            for number in former {
                match keeps {
                    true if differ.differs(number) => {
                        if self.emit_update_before {
                            changes.old_row(RowKind::UpdateBefore, number);
                        }
                        changes.new_row(RowKind::UpdateAfter, number);
                    }
                    true => {}
                    false => changes.old_row(RowKind::Delete, number),
                }
            }
            if is_new {
                changes.new_row(RowKind::Insert, first_new + at);
            }
        }
        let batch = changes.into_batch(&[], &old, &new)?;
        self.shown.settle(&numbers);
        Ok(batch)
    }

    fn first_timer(&self) -> Option<i64> {
        self.state.content.marks.iter().filter_map(|mark| mark.fire_at).min()
    }

    /// After a start: what follows from the state.
    fn settle(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_settled, true) {
            return Ok(());
        }
        for session in self.state.open.open() {
            let end = self.state.open.bounds(session).1;
            self.state.content.mark(session).awaited = true;
            self.ends.push(Reverse((end, session)));
        }
        let num_keys = self.state.content.key_columns().len();
        for (rows, starts) in self.shown.take_restored() {
            self.state.find(&rows.columns()[..num_keys], rows.num_rows())?;
            let first = self.shown.note(rows, starts.clone());
            for (row, start) in starts.into_iter().enumerate() {
                // The session that has grown out of it is there still.
                if let Placed::In(session) = self.state.open.place(row, start, |_| true) {
                    self.state.content.mark(session).former.push(first + row as u32);
                }
            }
        }
        self.next_timer = self.first_timer();
        Ok(())
    }
}

impl Operator for UpdatingSessions {
    fn process_batch(&mut self, _input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        self.settle()?;
        if self.is_proctime {
            self.process_time(self.now_ms(), output)?;
        }
        self.add_batch(batch, output)
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        self.settle()?;
        if self.is_proctime { output.watermark(watermark) } else { self.advance_alone(watermark.0, output) }
    }

    fn next_processing_timer(&self) -> Option<i64> {
        let timer = if self.is_settled { self.next_timer } else { self.first_timer() };
        let end = self.state.open.next_timer().filter(|_| self.is_proctime);
        // The clock must have passed the last millisecond of the session.
        [timer, end.map(|end| self.time.trigger(end - 1).saturating_add(1))].into_iter().flatten().min()
    }

    fn process_time(&mut self, now_ms: i64, output: &mut dyn Output) -> Result<()> {
        self.settle()?;
        if self.is_proctime {
            self.advance_alone(now_ms - 1, output)?;
        }
        if self.next_timer.is_some_and(|timer| timer <= now_ms) {
            let is_due = |session: &u32| self.state.content.marks[*session as usize].fire_at.is_some_and(|time| time <= now_ms);
            let due: Vec<u32> = self.state.open.open().into_iter().filter(is_due).collect();
            self.fire(&due, output)?;
            self.next_timer = self.first_timer();
        }
        Ok(())
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("sessions", &mut self.state), ("shown", &mut self.shown), ("progress", &mut self.progress)]
    }
}
