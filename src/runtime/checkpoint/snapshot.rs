//! What a task hands over at a barrier, frozen; and who takes it.

use super::CheckpointBarrier;
use crate::runtime::{Committable, StateTableSnapshot};
use crate::types::{OperatorId, Watermark};

/// The state of one operator of a task, frozen.
#[derive(Debug)]
pub struct OperatorSnapshot {
    /// The operator.
    pub operator: OperatorId,
    /// The last watermark that it emitted.
    pub output_watermark: Watermark,
    /// Its tables, by name.
    pub tables: Vec<(&'static str, StateTableSnapshot)>,
    /// What becomes visible once the checkpoint is complete.
    pub committables: Vec<Committable>,
}

/// The state of a task, frozen.
#[derive(Debug)]
pub struct TaskSnapshot {
    /// At which barrier; none = the task has finished, and this is its state in all checkpoints that follow.
    pub barrier: Option<CheckpointBarrier>,
    /// Event time over all its inputs.
    pub input_watermark: Watermark,
    /// How many splits its source has received since it started: those given later are not in its state.
    pub splits_received: u64,
    /// Its operators, in their order.
    pub operators: Vec<OperatorSnapshot>,
}

/// Who takes the snapshots of a task, writes them beside it, and tells the coordinator.
pub trait CheckpointResponder: Send + Sync {
    /// The task has passed a barrier, or has finished.
    fn acknowledge(&self, snapshot: TaskSnapshot);
}
