//! What a task does at the barriers of checkpoints: passes them on, freezes its state, waits where its job stops with a savepoint.

use std::sync::Arc;

use super::stream_task::Work;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::StreamElement;
use crate::runtime::checkpoint::{CheckpointBarrier, CheckpointResponder, RestoredTask, TaskSnapshot};
use crate::types::{CheckpointId, KeyGroupRange};

/// Where a task is with its checkpoints.
pub(super) struct Checkpoints {
    pub(super) responder: Arc<dyn CheckpointResponder>,
    /// What the task starts from, until it does.
    pub(super) restored: Option<RestoredTask>,
    pub(super) key_groups: KeyGroupRange,
    /// The last one that was given up.
    pub(super) aborted: Option<CheckpointId>,
    /// The task has passed the barrier of a savepoint with which its job stops: nothing runs until that is complete, or was given up.
    pub(super) suspended: Option<CheckpointBarrier>,
    /// Whether the sources were asked to end before their input does: more comes when the job is started again from its last state.
    pub(super) sources_stopped: bool,
    /// Whether the last state of the task is wanted when it has finished.
    pub(super) keeps_last_state: bool,
}

impl Work {
    /// Puts the barrier into all partitions and hands over the frozen state.
    pub(super) fn barrier(&mut self, barrier: CheckpointBarrier) -> Result<()> {
        if self.checkpoints.aborted.is_some_and(|aborted| barrier.id <= aborted) {
            return Ok(());
        }
        if barrier.kind.drains() {
            self.end_open_inputs()?;
            self.chain.finish_operators()?;
        }
        self.chain.control(StreamElement::Barrier(barrier))?;
        self.acknowledge(Some(barrier))?;
        self.checkpoints.suspended = barrier.kind.stops().then_some(barrier);
        Ok(())
    }

    pub(super) fn acknowledge(&mut self, barrier: Option<CheckpointBarrier>) -> Result<()> {
        let input_has_ended = barrier.is_none() && !self.checkpoints.sources_stopped;
        let operators = self.chain.snapshot(barrier.map(|barrier| barrier.id), input_has_ended)?;
        let splits_received = self.source.as_ref().map_or(0, |source| source.received);
        let input_watermark = self.input.watermark();
        self.checkpoints.responder.acknowledge(TaskSnapshot { barrier, input_watermark, splits_received, operators });
        Ok(())
    }

    /// Whether the task has ended by it: the savepoint with which its job stops is complete.
    pub(super) fn checkpoint_completed(&mut self, checkpoint: CheckpointId) -> Result<bool> {
        self.chain.checkpoint_completed(checkpoint)?;
        let stops = self.checkpoints.suspended.is_some_and(|barrier| barrier.id == checkpoint);
        if stops {
            self.chain.finish_partitions()?;
        }
        Ok(stops)
    }

    pub(super) fn checkpoint_aborted(&mut self, checkpoint: CheckpointId) -> Result<()> {
        self.checkpoints.aborted = self.checkpoints.aborted.max(Some(checkpoint));
        self.input.abort_checkpoint(checkpoint);
        match self.checkpoints.suspended.take_if(|barrier| barrier.id <= checkpoint) {
            Some(barrier) if barrier.kind.drains() => {
                Err(Error::new(ErrorKind::JobFailed, "the savepoint failed after everything was drained for it"))
            }
            _ => Ok(()),
        }
    }
}
