//! What a table source has read so far, as state: its splits with their positions and watermarks, and its own watermark.
//!
//! A split belongs to the key group that follows from its number, so that a restart with another parallelism shares the splits out. The
//! watermark of the source stands in a row for each key group; the least of several counts, so that no row is late that was not.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array, StringArray, UInt16Array};
use arrow::datatypes::Int64Type;

use crate::clock::Clock;
use crate::error::Result;
use crate::operators::keyed_state::{rows_in_range, state_rows};
use crate::operators::split_watermarks::SplitWatermarks;
use crate::runtime::{OperatorMetrics, SourceMetrics, SourceReader, Split, StateTable, StateTableSnapshot};
use crate::types::{KeyGroup, KeyGroupRange, SplitId, Watermark};

/// Spreads the low numbers of splits over all key groups (the golden ratio, as a fraction of 2^64).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// What a source has read so far.
pub(super) struct Reading {
    pub(super) reader: Box<dyn SourceReader>,
    pub(super) splits: SplitWatermarks,
    pub(super) metrics: Arc<OperatorMetrics>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) key_groups: KeyGroupRange,
    pub(super) max_parallelism: u32,
    /// Whether a watermark was restored.
    pub(super) restored: bool,
}

impl Reading {
    /// A split is to be read on, whose rows had brought this watermark.
    pub(super) fn open(&mut self, split: &Split, watermark: Watermark, now_ms: i64) {
        self.splits.restore(split.id, watermark, now_ms);
        self.tell(|metrics, _| metrics.open(split.id, self.reader.split_name(split), watermark));
    }

    /// Tells how far the splits are.
    pub(super) fn tell(&self, tell: impl FnOnce(&SourceMetrics, &SplitWatermarks)) {
        if let Some(metrics) = &self.metrics.source {
            tell(metrics, &self.splits);
        }
    }

    fn key_group(&self, split: SplitId) -> KeyGroup {
        KeyGroup::of_hash(split.0.wrapping_mul(SPREAD), self.max_parallelism)
    }
}

/// Columns: key group, number of the split, its state, its watermark; without number and state, the watermark of the source.
impl StateTable for Reading {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let splits = self.reader.snapshot()?;
        let own = self.key_groups.groups().map(|group| (group, None, None, self.splits.emitted().0));
        let rows: Vec<(u16, Option<i64>, Option<&str>, i64)> = splits
            .iter()
            .map(|split| {
                let highest = self.splits.highest_of(split.id).0;
                (self.key_group(split.id).0, Some(split.id.0 as i64), Some(split.state.as_str()), highest)
            })
            .chain(own)
            .collect();
        let rows = state_rows(
            UInt16Array::from_iter_values(rows.iter().map(|row| row.0)),
            vec![
                Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.1))),
                Arc::new(StringArray::from_iter(rows.iter().map(|row| row.2))),
                Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.3))),
            ],
        )?;
        Ok(StateTableSnapshot::new(vec![rows]))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        let now_ms = self.clock.now_ms();
        let mut found = Vec::new();
        for rows in &snapshot.rows()? {
            let rows = rows_in_range(rows, range)?;
            let (ids, watermarks) = (rows.column(0).as_primitive::<Int64Type>(), rows.column(2).as_primitive::<Int64Type>());
            let states = rows.column(1).as_string::<i32>();
            for row in 0..ids.len() {
                let watermark = Watermark(watermarks.value(row));
                if ids.is_null(row) {
                    let least = if self.restored { watermark.min(self.splits.emitted()) } else { watermark };
                    self.splits.restore_emitted(least);
                    self.restored = true;
                    continue;
                }
                let id = SplitId(ids.value(row) as u64);
                let split = Split { id, state: states.value(row).to_string() };
                self.open(&split, watermark, now_ms);
                found.push(split);
            }
        }
        if found.is_empty() { Ok(()) } else { self.reader.add_splits(found) }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}
