//! The settings of a job's checkpoints.

use crate::cluster::JobState;
use crate::config::{
    CHECKPOINT_MIN_PAUSE, CHECKPOINT_RETENTION, CHECKPOINT_TIMEOUT, Configuration, RETAINED_CHECKPOINTS,
    TOLERABLE_FAILED_CHECKPOINTS,
};

/// Which checkpoints outlive their job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// None.
    Never,
    /// Those of a job that failed.
    OnFailure,
    /// Those of every job. Also of one that has finished, unlike in Flink: a script of several jobs is restored as a whole, and what has
    /// finished must not run again.
    Always,
}

impl Retention {
    /// Whether the checkpoints of a job that ended in `state` are kept.
    pub fn keeps(self, state: JobState) -> bool {
        match self {
            Retention::Never => false,
            Retention::OnFailure => state == JobState::Failed,
            Retention::Always => true,
        }
    }
}

/// The settings of a job's checkpoints.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointSettings {
    /// How often they begin; none = only savepoints are taken.
    pub interval_ms: Option<u64>,
    /// How long one may take.
    pub timeout_ms: u64,
    /// How long after one has ended the next one may begin.
    pub min_pause_ms: u64,
    /// How many in a row may fail.
    pub tolerable_failures: u32,
    /// How many are kept.
    pub retained: usize,
    /// Which outlive their job.
    pub retention: Retention,
}

impl CheckpointSettings {
    /// From a job's settings.
    pub fn new(configuration: &Configuration) -> Self {
        let retention = configuration.text(&CHECKPOINT_RETENTION).trim().to_ascii_uppercase();
        CheckpointSettings {
            interval_ms: configuration.checkpoint_interval_ms(),
            timeout_ms: configuration.duration_ms(&CHECKPOINT_TIMEOUT),
            min_pause_ms: configuration.duration_ms(&CHECKPOINT_MIN_PAUSE),
            tolerable_failures: configuration.integer(&TOLERABLE_FAILED_CHECKPOINTS) as u32,
            retained: configuration.integer(&RETAINED_CHECKPOINTS) as usize,
            retention: match retention.as_str() {
                "RETAIN_ON_CANCELLATION" => Retention::Always,
                "DELETE_ON_CANCELLATION" => Retention::OnFailure,
                _ => Retention::Never,
            },
        }
    }
}
