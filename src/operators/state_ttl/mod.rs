//! Time to live: state that nobody has written for so long is not seen any more, and its memory is given back.
//!
//! As in Flink time is the clock's, and writing counts, reading does not. An entry is over at the very millisecond: whoever finds an
//! entry asks. What nobody asks for goes with its *slice*: entries are noted in slices of an eighth of the time to live by when they
//! were written, once for each slice at most, and a slice that is over is swept as a whole. So a batch costs a comparison for each
//! entry that it touches, no timer an entry is needed, and memory is given back an eighth of the time too late at most. Notes of entries
//! that have gone before their time are thrown away when there are many more notes than entries.
//!
//! [`KeyTtl`] is for what is known by the number of its key, [`RowTtl`] for single rows of a store. In a snapshot the times stand in a last
//! column, [`WRITTEN`]; rows without one were written, so to say, when they are restored.

mod keys;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};

pub(super) use keys::KeyTtl;
pub(super) use rows::{FrozenTimes, RowTtl};

use crate::clock::Clock;
use crate::error::Result;
use crate::runtime::{OperatorContext, OperatorMetrics};

/// The column of a snapshot that says when its rows were written, milliseconds since the epoch.
const WRITTEN: &str = "written_ms";

/// Slices of a time to live.
const SLICES: i64 = 8;

/// No time: nothing is kept there.
const NEVER: i64 = i64::MIN;

/// Notes for each entry that is there, and notes beside, from which on they are looked through.
const NOTES_MAX: (usize, usize) = (4, 4_096);

/// What keys and rows have in common: the time, and the slices. `I`: an entry.
#[derive(Debug)]
struct Slices<I> {
    ttl_ms: i64,
    slice_ms: i64,
    clock: Arc<dyn Clock>,
    metrics: Arc<OperatorMetrics>,
    /// The latest time that was read: a clock that is set back does not make anything younger.
    now: i64,
    entries: BTreeMap<i64, Vec<I>>,
    /// How many notes there are in all slices.
    notes: usize,
    /// How many entries are there.
    live: usize,
}

impl<I: Copy + Ord> Slices<I> {
    fn new(context: &OperatorContext, input: usize) -> Option<Self> {
        let ttl_ms = context.state_ttl_ms.get(input).copied().filter(|ttl| *ttl > 0)?;
        let ttl_ms = i64::try_from(ttl_ms).unwrap_or(i64::MAX);
        Some(Slices {
            ttl_ms,
            slice_ms: (ttl_ms / SLICES).max(1),
            clock: Arc::clone(&context.environment.clock),
            metrics: Arc::clone(&context.metrics),
            now: NEVER,
            entries: BTreeMap::new(),
            notes: 0,
            live: 0,
        })
    }

    /// Reads the clock.
    fn tick(&mut self) -> i64 {
        self.now = self.now.max(self.clock.now_ms());
        self.now
    }

    /// Whether what was written then is over.
    #[inline]
    fn is_over(&self, written: i64) -> bool {
        written.saturating_add(self.ttl_ms) <= self.now
    }

    fn slice_of(&self, written: i64) -> i64 {
        written.div_euclid(self.slice_ms)
    }

    /// An entry is written at this time; `before`: when it was written before. It is noted once a slice.
    #[inline]
    fn note(&mut self, entry: I, before: i64, written: i64) {
        let slice = self.slice_of(written);
        if before == NEVER || self.slice_of(before) != slice {
            self.entries.entry(slice).or_default().push(entry);
            self.notes += 1;
        }
        self.live += usize::from(before == NEVER);
    }

    /// So many entries are gone.
    fn forget(&mut self, entries: usize) {
        self.live = self.live.saturating_sub(entries);
    }

    /// Throws away notes that say nothing any more, if there are many. `written`: when an entry was written last.
    fn tidy(&mut self, written: impl Fn(I) -> i64) {
        let (for_each, beside) = NOTES_MAX;
        if self.notes <= self.live * for_each + beside {
            return;
        }
        let slice_ms = self.slice_ms;
        self.entries.retain(|slice, entries| {
            entries.sort_unstable();
            entries.dedup();
            entries.retain(|entry| {
                let written = written(*entry);
                written != NEVER && written.div_euclid(slice_ms) == *slice
            });
            entries.shrink_to_fit();
            !entries.is_empty()
        });
        self.notes = self.entries.values().map(Vec::len).sum();
    }

    /// When the first slice is over.
    fn next_sweep(&self) -> Option<i64> {
        let (slice, _) = self.entries.first_key_value()?;
        Some(slice.saturating_add(1).saturating_mul(self.slice_ms).saturating_add(self.ttl_ms - 1))
    }

    /// Takes out the entries of all slices that are over, each with its slice; some have been written again since.
    fn sweep(&mut self) -> Vec<(i64, Vec<I>)> {
        let mut swept = Vec::new();
        while self.next_sweep().is_some_and(|at| at <= self.now) {
            swept.extend(self.entries.pop_first());
        }
        self.notes -= swept.iter().map(|(_, entries): &(i64, Vec<I>)| entries.len()).sum::<usize>();
        swept
    }

    /// So many entries are over.
    fn expire(&mut self, entries: usize) {
        self.forget(entries);
        self.count_expired(entries);
    }

    fn count_expired(&self, entries: usize) {
        self.metrics.expired.fetch_add(entries as u64, Ordering::Relaxed);
    }

    fn count_spared(&self, entries: usize) {
        self.metrics.expired.fetch_sub(entries as u64, Ordering::Relaxed);
    }

    fn bytes(&self) -> usize {
        self.entries.values().map(|entries| entries.capacity() * size_of::<I>()).sum()
    }
}

/// Rows of a snapshot with the times at which they were written, where these are known.
pub(super) fn with_times(rows: RecordBatch, times: Option<ArrayRef>) -> Result<RecordBatch> {
    let Some(times) = times else { return Ok(rows) };
    let written = Arc::new(Field::new(WRITTEN, DataType::Int64, false));
    let fields = rows.schema().fields().iter().cloned().chain([written]).collect::<Vec<_>>();
    let columns = rows.columns().iter().cloned().chain([times]).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Whether rows of a snapshot have their times, in the last column.
pub(super) fn has_times(rows: &RecordBatch) -> bool {
    rows.schema().fields().last().is_some_and(|last| last.name() == WRITTEN)
}

/// Columns of a snapshot without the times, and the times. `timed`: whether there are some.
pub(super) fn split_times(columns: &[ArrayRef], timed: bool) -> (&[ArrayRef], Option<&Int64Array>) {
    match columns.split_last() {
        Some((times, columns)) if timed => (columns, Some(times.as_primitive::<Int64Type>())),
        _ => (columns, None),
    }
}
