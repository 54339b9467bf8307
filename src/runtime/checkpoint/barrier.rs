//! A barrier: the mark in a stream between what a checkpoint covers and what comes after.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::types::CheckpointId;

/// What a checkpoint is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CheckpointKind {
    /// To go on from after a failure.
    Checkpoint,
    /// To go on from after the job was stopped: behind the barrier comes nothing but the end.
    StopWithSavepoint {
        /// Whether event time goes to its end before the barrier, so that everything that waits for it comes out.
        drain: bool,
    },
}

impl CheckpointKind {
    /// Whether the job ends with it.
    pub fn stops(self) -> bool {
        matches!(self, CheckpointKind::StopWithSavepoint { .. })
    }

    /// Whether operators finish before it.
    pub fn drains(self) -> bool {
        self == CheckpointKind::StopWithSavepoint { drain: true }
    }
}

impl fmt::Display for CheckpointKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.stops() { "savepoint" } else { "checkpoint" })
    }
}

/// The mark in a stream between what a checkpoint covers and what comes after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CheckpointBarrier {
    /// Which checkpoint.
    pub id: CheckpointId,
    /// What for.
    pub kind: CheckpointKind,
}
