//! Top-N of each window: rows come out when event time (or the clock) passes the end of the window, once and for all.
//!
//! Each window has a table of its own, which goes with it. Rows of a window that is over are dropped and counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, UInt32Array};

use super::keys::RankKey;
use super::table::RankTable;
use crate::config::BATCH_ROWS;
use crate::error::{Error, Result};
use crate::operators::keyed_state::rows_in_range;
use crate::operators::late_rows::LateRows;
use crate::operators::progress::Progress;
use crate::operators::window::slices::SliceKey;
use crate::operators::window::time::{WindowTime, milliseconds};
use crate::runtime::state::RowId;
use crate::runtime::{FrozenState, Operator, OperatorContext, Output, StateTable, StateTableSnapshot, TakeBatch};
use crate::stream_graph::{AttachedWindow, RankOperatorSpec};
use crate::types::{Batch, InputNumber, KeyGroupRange, Watermark};

/// Top-N of each window.
pub(super) struct WindowRank<K> {
    windows: Windows<K>,
    time: WindowTime,
    is_proctime: bool,
    progress: Progress,
    output_number: bool,
    batch_rows: usize,
    late: LateRows,
    context: OperatorContext,
}

/// The open windows, the first to end first.
struct Windows<K> {
    open: BTreeMap<SliceKey, RankTable<K>>,
    window: AttachedWindow,
    spec: RankOperatorSpec,
    max_parallelism: u32,
}

/// Rows that wait to be added, by window.
type Pending = BTreeMap<SliceKey, Vec<u32>>;

impl<K: RankKey> WindowRank<K> {
    /// From its spec.
    pub(super) fn new(spec: &RankOperatorSpec, context: &OperatorContext) -> Result<Self> {
        let window = spec.rank.window.clone().ok_or_else(|| Error::internal("a rank by window has its window"))?;
        Ok(WindowRank {
            time: WindowTime::new(&window.time_type, context.configuration.time_zone()),
            is_proctime: window.time_type.is_proctime(),
            windows: Windows { open: BTreeMap::new(), window, spec: spec.clone(), max_parallelism: context.max_parallelism },
            progress: Progress::new(i64::MIN, context.key_groups),
            output_number: spec.rank.output_number,
            batch_rows: context.configuration.integer(&BATCH_ROWS).max(1) as usize,
            late: LateRows::new(context),
            context: context.clone(),
        })
    }

    fn is_over(&self, window: SliceKey, time: i64) -> bool {
        self.time.trigger(window.end - 1) <= time
    }

    /// Takes in a batch, cutting it where a step ends a window.
    fn add_batch(&mut self, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        let steps = batch.take_steps();
        let windows = self.windows.of_rows(&batch)?;
        let mut pending = Pending::new();
        let mut from = 0;
        for step in steps.as_slice() {
            let to = step.rows_before as usize;
            self.gather(&windows, from, to, &mut pending);
            from = to;
            let first = [self.windows.open.keys().next(), pending.keys().next()].into_iter().flatten().min();
            if first.is_some_and(|first| self.is_over(*first, step.watermark.0)) {
                self.windows.add(&batch, std::mem::take(&mut pending))?;
                self.advance(step.watermark.0, output)?;
            }
            self.progress.time = self.progress.time.max(step.watermark.0);
        }
        self.gather(&windows, from, windows.len(), &mut pending);
        self.windows.add(&batch, pending)?;
        self.late.give_out(InputNumber(0), &batch, output)?;
        steps.last().map_or(Ok(()), |watermark| output.watermark(watermark))
    }

    /// Sorts rows by window, leaving out and counting the late ones.
    fn gather(&mut self, windows: &[SliceKey], from: usize, to: usize, pending: &mut Pending) {
        let mut first = from as u32;
        for stretch in windows[from..to].chunk_by(|a, b| a == b) {
            let rows = first..first + stretch.len() as u32;
            first = rows.end;
            if !self.is_proctime && self.is_over(stretch[0], self.progress.time) {
                let end = self.time.trigger(stretch[0].end - 1);
                rows.for_each(|row| self.late.add(row as usize, self.progress.time, end));
            } else {
                pending.entry(stretch[0]).or_default().extend(rows);
            }
        }
    }

    /// Emits all windows that are over at `time`, in the order of their ends.
    fn advance(&mut self, time: i64, output: &mut dyn Output) -> Result<()> {
        while let Some(first) = self.windows.open.first_entry() {
            if self.time.trigger(first.key().end - 1) > time {
                break;
            }
            let table = first.remove();
            self.emit(&table, output)?;
        }
        self.progress.time = self.progress.time.max(time);
        Ok(())
    }

    fn emit(&self, table: &RankTable<K>, output: &mut dyn Output) -> Result<()> {
        let (mut ids, mut numbers): (Vec<RowId>, Vec<i64>) = (Vec::new(), Vec::new());
        let mut flush = |ids: &mut Vec<RowId>, numbers: &mut Vec<i64>| {
            let mut columns: Vec<ArrayRef> = table.store().take(ids)?;
            let numbers = std::mem::take(numbers);
            if self.output_number {
                columns.push(Arc::new(Int64Array::from(numbers)));
            }
            let rows = Batch::new(columns, ids.len());
            ids.clear();
            output.batch(rows)
        };
        for group in table.groups() {
            let before = ids.len();
            table.visible(group, &mut ids);
            let first = table.first_number() as i64;
            numbers.extend((0..(ids.len() - before) as i64).map(|place| first + place));
            if ids.len() >= self.batch_rows {
                flush(&mut ids, &mut numbers)?;
            }
        }
        if ids.is_empty() { Ok(()) } else { flush(&mut ids, &mut numbers) }
    }
}

impl<K: RankKey> Windows<K> {
    /// The window of each row.
    fn of_rows(&self, batch: &Batch) -> Result<Vec<SliceKey>> {
        let starts = milliseconds(batch.column(self.window.start), 3)?;
        let ends = milliseconds(batch.column(self.window.end), 3)?;
        Ok(starts.into_iter().zip(ends).map(|(start, end)| SliceKey { end, start }).collect())
    }

    fn table(&mut self, window: SliceKey) -> Result<&mut RankTable<K>> {
        Ok(match self.open.entry(window) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(RankTable::new(&self.spec, self.max_parallelism)?),
        })
    }

    fn add(&mut self, batch: &Batch, pending: Pending) -> Result<()> {
        for (window, rows) in pending {
            let rows =
                if rows.len() == batch.num_rows() { batch.clone() } else { batch.take_rising(&UInt32Array::from(rows))? };
            let table = self.table(window)?;
            table.update(&rows, None)?;
            table.release(&[]);
        }
        Ok(())
    }
}

impl<K: RankKey> Operator for WindowRank<K> {
    fn process_batch(&mut self, _input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        if self.is_proctime {
            self.process_time(self.context.environment.clock.now_ms(), output)?;
            let mut batch = batch;
            let steps = batch.take_steps();
            let windows = self.windows.of_rows(&batch)?;
            let mut pending = Pending::new();
            self.gather(&windows, 0, windows.len(), &mut pending);
            self.windows.add(&batch, pending)?;
            return steps.last().map_or(Ok(()), |watermark| output.watermark(watermark));
        }
        self.add_batch(batch, output)
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        if !self.is_proctime {
            self.advance(watermark.0, output)?;
        }
        output.watermark(watermark)
    }

    fn next_processing_timer(&self) -> Option<i64> {
        let first = self.windows.open.keys().next().filter(|_| self.is_proctime)?;
        // The clock must have passed the last millisecond of the window.
        Some(self.time.trigger(first.end - 1).saturating_add(1))
    }

    fn process_time(&mut self, now_ms: i64, output: &mut dyn Output) -> Result<()> {
        if self.is_proctime { self.advance(now_ms - 1, output) } else { Ok(()) }
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("windows", &mut self.windows), ("progress", &mut self.progress)]
    }
}

/// The rows of all windows; they carry their windows.
impl<K: RankKey> StateTable for Windows<K> {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let parts: Vec<_> = self.open.values().map(RankTable::frozen).collect();
        Ok(StateTableSnapshot::frozen(move |take: &mut TakeBatch<'_>| {
            parts.iter().try_for_each(|part| part.for_each_batch(take))
        }))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        snapshot.for_each_batch(|rows| {
            let rows = rows_in_range(&rows, range)?;
            let mut by_window = Pending::new();
            for (row, window) in self.of_rows(&rows)?.into_iter().enumerate() {
                by_window.entry(window).or_default().push(row as u32);
            }
            by_window.into_iter().try_for_each(|(window, indices)| {
                let rows = rows.take_rising(&UInt32Array::from(indices))?;
                self.table(window)?.merge(&rows)
            })
        })
    }

    fn bytes(&self) -> usize {
        self.open.values().map(RankTable::bytes).sum()
    }
}
