//! When a source tells its watermarks, and which of its splits event time waits for.

use serde::{Deserialize, Serialize};

/// When a source tells its watermarks, and which of its splits event time waits for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WatermarkTiming {
    /// A split without a row for so long is left out of the minimum; none = never.
    pub idle_timeout_ms: Option<u64>,
    /// Whether that holds for a source of one split too: where the user has asked for it. By default only a split is left out
    /// that has others beside it.
    pub idle_alone: bool,
    /// Watermarks are told this often (milliseconds by the clock); none = after each row that raises them.
    pub emit_interval_ms: Option<u64>,
    /// The sources that are read side by side in event time.
    pub alignment: Option<WatermarkAlignment>,
}

/// Sources of one group wait for each other: a split that is ahead of the slowest by more than a drift is not read on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WatermarkAlignment {
    /// The group's name, within the job.
    pub group: String,
    /// How far a split may be ahead of the slowest source of the group, in milliseconds.
    pub max_drift_ms: u64,
    /// How often the sources compare, in milliseconds by the clock.
    pub update_interval_ms: u64,
}
