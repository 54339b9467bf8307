//! What a source tells of its splits: how far each was read, in rows and in event time, and whether event time waits for it.
//!
//! Written by the source once a batch, read by the JobMaster at any time.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use crate::stream_graph::SourceSpec;
use crate::types::{SplitId, Watermark};

/// What a source tells of its splits.
#[derive(Debug)]
pub struct SourceMetrics {
    state: Mutex<SourceSnapshot>,
}

/// What a source has told of its splits, at some moment, or several subtasks of it together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SourceSnapshot {
    /// The table.
    pub table: String,
    /// Whether it makes watermarks: only where a query looks at event time.
    pub has_watermark: bool,
    /// After how long without rows a split is left out, in milliseconds; none = never.
    pub idle_timeout_ms: Option<u64>,
    /// Rows that were read, before any filter.
    pub rows: u64,
    /// Splits that were read to their end.
    pub finished: u64,
    /// The others.
    pub splits: BTreeMap<SplitId, SplitProgress>,
}

/// How far a split was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitProgress {
    /// What the user knows it by.
    pub name: String,
    /// Its watermark, milliseconds since the epoch; `i64::MIN` before the first.
    pub watermark: i64,
    /// Rows that were read.
    pub rows: u64,
    /// When the last of them came, by the clock.
    pub last_row_ms: Option<i64>,
    /// Whether event time waits for it.
    pub state: SplitState,
}

/// Whether event time waits for a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SplitState {
    /// It does.
    Active,
    /// It had no rows for too long, and is left out.
    Idle,
    /// It is ahead of the other sources of its alignment group, which it waits for.
    Paused,
}

impl SourceMetrics {
    /// Of a source that has read nothing.
    pub fn new(spec: &SourceSpec) -> Self {
        let watermark = spec.watermark.as_ref();
        let state = SourceSnapshot {
            table: spec.table.name.clone(),
            has_watermark: watermark.is_some(),
            idle_timeout_ms: watermark.and_then(|watermark| watermark.timing.idle_timeout_ms),
            ..SourceSnapshot::default()
        };
        SourceMetrics { state: Mutex::new(state) }
    }

    /// A split is to be read, known to the user as `name`, whose rows had brought this watermark before.
    pub fn open(&self, split: SplitId, name: String, watermark: Watermark) {
        let watermark = shown(watermark);
        let progress = SplitProgress { name, watermark, rows: 0, last_row_ms: None, state: SplitState::Active };
        self.lock().splits.insert(split, progress);
    }

    /// Rows of a split came.
    pub fn read(&self, split: SplitId, rows: u64, watermark: Watermark, now_ms: i64) {
        let mut state = self.lock();
        state.rows += rows;
        let Some(progress) = state.splits.get_mut(&split) else { return };
        progress.rows += rows;
        progress.watermark = shown(watermark);
        progress.last_row_ms = Some(now_ms);
        if progress.state == SplitState::Idle {
            progress.state = SplitState::Active;
        }
    }

    /// A split has a watermark of its own, without rows.
    pub fn raise(&self, split: SplitId, watermark: Watermark) {
        if let Some(progress) = self.lock().splits.get_mut(&split) {
            progress.watermark = shown(watermark);
        }
    }

    /// Event time waits, or no longer waits, for a split.
    pub fn set_state(&self, split: SplitId, to: SplitState) {
        if let Some(progress) = self.lock().splits.get_mut(&split) {
            progress.state = to;
        }
    }

    /// A split was read to its end.
    pub fn finish(&self, split: SplitId) {
        let mut state = self.lock();
        state.finished += u64::from(state.splits.remove(&split).is_some());
    }

    /// All of it, now.
    pub fn snapshot(&self) -> SourceSnapshot {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, SourceSnapshot> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

impl SourceSnapshot {
    /// Adds what another subtask tells.
    pub fn add(&mut self, other: SourceSnapshot) {
        self.rows += other.rows;
        self.finished += other.finished;
        self.splits.extend(other.splits);
    }
}

/// Nothing at or before the epoch is a watermark.
fn shown(watermark: Watermark) -> i64 {
    if watermark.0 > 0 { watermark.0 } else { i64::MIN }
}
