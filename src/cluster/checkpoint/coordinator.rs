//! The CheckpointCoordinator: which checkpoint is under way, who has acknowledged it, which are complete.
//!
//! ```text
//!   trigger ─▶ pending ── all tasks acknowledged, or finished ──▶ complete (its manifest is being written) ─▶ completed
//!                 └── declined, expired, job stopped ──────────────────────┴─▶ failed: tells the tasks, harms nobody
//! ```
//!
//! Laws: at most one is under way; ids rise over all attempts of a job; what is said of another checkpoint than the pending one, or by
//! another attempt than it waits for, changes nothing; a task that has finished stands in every later checkpoint with its last state, also
//! in one that it had not acknowledged (its end, like a barrier, comes after all that it sent).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::{CheckpointSettings, Manifest};
use crate::cluster::job::CheckpointCounts;
use crate::error::{Error, ErrorKind};
use crate::runtime::checkpoint::{CheckpointBarrier, CheckpointKind, TaskState};
use crate::runtime::task::ExecutionAttemptId;
use crate::types::{CheckpointId, SubtaskIndex, VertexId};

/// A subtask, whatever its attempt.
pub type SubtaskId = (VertexId, SubtaskIndex);

fn subtask_of(attempt: ExecutionAttemptId) -> SubtaskId {
    (attempt.vertex, attempt.subtask)
}

/// A checkpoint under way.
#[derive(Debug, Clone)]
pub struct PendingCheckpoint {
    /// Its number and purpose.
    pub barrier: CheckpointBarrier,
    /// When it began.
    pub triggered_ms: i64,
    /// Who has not acknowledged it.
    awaited: BTreeSet<ExecutionAttemptId>,
    /// What those who have wrote, and the last state of those who had finished.
    pub states: BTreeMap<SubtaskId, TaskState>,
    /// Whose state is their last.
    pub finished: BTreeSet<SubtaskId>,
}

/// A checkpoint that a job can go back to.
#[derive(Debug, Clone)]
pub struct CompletedCheckpoint {
    /// Its directory.
    pub directory: String,
    /// What it consists of.
    pub manifest: Arc<Manifest>,
}

/// What an acknowledgement led to.
#[derive(Debug)]
pub enum Acknowledged {
    /// Others are still awaited.
    Waiting,
    /// It was the last one.
    Complete(Box<PendingCheckpoint>),
    /// It is of a checkpoint that nobody waits for any more: its files are litter.
    Stale,
}

/// A checkpoint has failed.
#[derive(Debug)]
pub struct CheckpointFailure {
    /// Which.
    pub barrier: CheckpointBarrier,
    /// Too many have failed in a row: the job fails with this.
    pub job_failure: Option<Error>,
}

/// A checkpoint that is being completed.
#[derive(Debug)]
struct Finalizing {
    barrier: CheckpointBarrier,
    /// The tasks whose last state is in it.
    finished: BTreeSet<SubtaskId>,
}

impl Finalizing {
    fn of(complete: &PendingCheckpoint) -> Self {
        Finalizing { barrier: complete.barrier, finished: complete.finished.clone() }
    }
}

/// The coordinator of one job.
#[derive(Debug)]
pub struct CheckpointCoordinator {
    settings: CheckpointSettings,
    next: CheckpointId,
    pending: Option<PendingCheckpoint>,
    /// The one whose manifest is being written, or whose sinks are being committed.
    finalizing: Option<Finalizing>,
    /// The last state of tasks that have finished, in this attempt of the job.
    finished: BTreeMap<SubtaskId, TaskState>,
    completed: VecDeque<CompletedCheckpoint>,
    /// When the last one ended, well or not.
    last_end_ms: Option<i64>,
    failures_in_a_row: u32,
    counts: CheckpointCounts,
}

impl CheckpointCoordinator {
    /// Of a job whose first checkpoint has this number.
    pub fn new(settings: CheckpointSettings, first: CheckpointId) -> Self {
        CheckpointCoordinator {
            settings,
            next: first,
            pending: None,
            finalizing: None,
            finished: BTreeMap::new(),
            completed: VecDeque::new(),
            last_end_ms: None,
            failures_in_a_row: 0,
            counts: CheckpointCounts::default(),
        }
    }

    /// The settings.
    pub fn settings(&self) -> &CheckpointSettings {
        &self.settings
    }

    /// How many there were.
    pub fn counts(&self) -> CheckpointCounts {
        self.counts
    }

    /// Checkpoints are numbered from here on, or from where they are if that is further.
    pub fn number_from(&mut self, first: CheckpointId) {
        self.next = self.next.max(first);
    }

    /// The one under way.
    pub fn pending(&self) -> Option<&PendingCheckpoint> {
        self.pending.as_ref()
    }

    /// Whether one is being completed.
    pub fn is_finalizing(&self) -> bool {
        self.finalizing.is_some()
    }

    /// The last one that is complete.
    pub fn latest(&self) -> Option<&CompletedCheckpoint> {
        self.completed.back()
    }

    /// How long a periodic checkpoint has to wait yet for the pause after the last one; none = one is under way.
    pub fn pause_ms(&self, now_ms: i64) -> Option<u64> {
        if self.pending.is_some() || self.finalizing.is_some() {
            return None;
        }
        let end = self.last_end_ms.map_or(i64::MIN, |end| end.saturating_add_unsigned(self.settings.min_pause_ms));
        Some(end.saturating_sub(now_ms).max(0) as u64)
    }

    /// A checkpoint begins over the tasks that run. None while another one is under way.
    pub fn trigger(
        &mut self,
        kind: CheckpointKind,
        running: impl IntoIterator<Item = ExecutionAttemptId>,
        now_ms: i64,
    ) -> Option<CheckpointBarrier> {
        if self.pending.is_some() || self.finalizing.is_some() {
            return None;
        }
        let barrier = CheckpointBarrier { id: self.next, kind };
        self.next = CheckpointId(self.next.0 + 1);
        self.counts.triggered += 1;
        self.pending = Some(PendingCheckpoint {
            barrier,
            triggered_ms: now_ms,
            awaited: running.into_iter().collect(),
            states: self.finished.clone(),
            finished: self.finished.keys().copied().collect(),
        });
        Some(barrier)
    }

    /// A task has written its state.
    pub fn acknowledge(&mut self, attempt: ExecutionAttemptId, checkpoint: CheckpointId, state: TaskState) -> Acknowledged {
        let pending = self.pending.as_mut().filter(|pending| pending.barrier.id == checkpoint);
        let Some(pending) = pending.filter(|pending| pending.awaited.contains(&attempt)) else { return Acknowledged::Stale };
        pending.awaited.remove(&attempt);
        pending.states.insert(subtask_of(attempt), state);
        self.take_complete()
    }

    /// A task has finished with this state. The pending checkpoint may be complete by that.
    pub fn task_finished(&mut self, attempt: ExecutionAttemptId, state: TaskState) -> Acknowledged {
        self.finished.insert(subtask_of(attempt), state.clone());
        let Some(pending) = &mut self.pending else { return Acknowledged::Waiting };
        if !pending.awaited.remove(&attempt) {
            return Acknowledged::Waiting;
        }
        pending.states.insert(subtask_of(attempt), state);
        pending.finished.insert(subtask_of(attempt));
        self.take_complete()
    }

    fn take_complete(&mut self) -> Acknowledged {
        match self.pending.take_if(|pending| pending.awaited.is_empty()) {
            Some(complete) => {
                self.finalizing = Some(Finalizing::of(&complete));
                Acknowledged::Complete(Box::new(complete))
            }
            None => Acknowledged::Waiting,
        }
    }

    /// All tasks have finished: the checkpoint of the end, which needs nobody's acknowledgement. None when the last state of a task is not
    /// known, or another one is being completed.
    pub fn trigger_final(&mut self, subtasks: &BTreeSet<SubtaskId>, now_ms: i64) -> Option<PendingCheckpoint> {
        if !subtasks.iter().all(|subtask| self.finished.contains_key(subtask)) {
            return None;
        }
        self.trigger(CheckpointKind::Checkpoint, [], now_ms)?;
        let complete = self.pending.take()?;
        self.finalizing = Some(Finalizing::of(&complete));
        Some(complete)
    }

    /// The manifest of the checkpoint that was being completed is written. Gives those that need not be kept any longer.
    pub fn completed(&mut self, checkpoint: CompletedCheckpoint) -> Vec<CompletedCheckpoint> {
        self.counts.completed += 1;
        self.failures_in_a_row = 0;
        // A savepoint belongs to the user: it is never deleted here.
        let is_savepoint = checkpoint.manifest.kind.stops();
        self.completed.push_back(checkpoint);
        if is_savepoint {
            return Vec::new();
        }
        let superfluous = self.completed.len().saturating_sub(self.settings.retained);
        self.completed.drain(..superfluous).filter(|old| !old.manifest.kind.stops()).collect()
    }

    /// Its sinks are committed too: the next one may begin.
    pub fn finalized(&mut self, now_ms: i64) {
        self.last_end_ms = Some(now_ms);
        // What they had prepared is visible now: later checkpoints need not have it again.
        for subtask in self.finalizing.take().into_iter().flat_map(|done| done.finished) {
            let operators = self.finished.get_mut(&subtask).into_iter().flat_map(|state| &mut state.operators);
            operators.for_each(|operator| operator.committables.clear());
        }
    }

    /// A checkpoint was declined, has expired, or could not be completed. None when it is not the one under way.
    pub fn fail(&mut self, checkpoint: CheckpointId, cause: &Error, now_ms: i64) -> Option<CheckpointFailure> {
        let barrier = match self.pending.take_if(|pending| pending.barrier.id == checkpoint) {
            Some(pending) => pending.barrier,
            None => self.finalizing.take_if(|done| done.barrier.id == checkpoint)?.barrier,
        };
        self.last_end_ms = Some(now_ms);
        self.counts.failed += 1;
        self.failures_in_a_row += 1;
        // Who asks for a savepoint is told why there is none; the job is none the worse for it.
        let too_many = !barrier.kind.stops() && self.failures_in_a_row > self.settings.tolerable_failures;
        let job_failure = too_many.then(|| {
            Error::new(ErrorKind::JobFailed, format!("checkpoint {checkpoint} failed: {}", cause.message()))
                .with_detail(cause.detail().map_or_else(|| "too many checkpoints failed".to_string(), str::to_string))
                .with_hint("'execution.checkpointing.tolerable-failed-checkpoints' says how many may fail in a row")
        });
        Some(CheckpointFailure { barrier, job_failure })
    }

    /// Nothing but the writing of a checkpoint keeps the job from its end: nobody will ever go back to it. Gives the one that was under way.
    /// A savepoint goes on: it is for the user.
    pub fn give_up(&mut self, now_ms: i64) -> Option<CheckpointBarrier> {
        let pending = self.pending.take_if(|pending| !pending.barrier.kind.stops())?;
        self.last_end_ms = Some(now_ms);
        Some(pending.barrier)
    }

    /// Whether nobody has a use for what is written for a checkpoint: it was given up, or has failed.
    pub fn is_litter(&self, checkpoint: CheckpointId) -> bool {
        let is_under_way = self.pending.as_ref().is_some_and(|pending| pending.barrier.id == checkpoint)
            || self.finalizing.as_ref().is_some_and(|done| done.barrier.id == checkpoint);
        // Ids rise: what is later than all that is complete, and not under way, never was completed.
        !is_under_way && self.latest().is_none_or(|latest| latest.manifest.checkpoint < checkpoint)
    }

    /// Whether a checkpoint is still under way when its time is up.
    pub fn expire(&mut self, checkpoint: CheckpointId, now_ms: i64) -> Option<(CheckpointFailure, Error)> {
        let pending = self.pending.as_ref().filter(|pending| pending.barrier.id == checkpoint)?;
        let missing = pending.awaited.len();
        let cause = Error::new(ErrorKind::Timeout, format!("it took longer than {} ms", self.settings.timeout_ms))
            .with_detail(format!("{missing} tasks have not acknowledged it"));
        Some((self.fail(checkpoint, &cause, now_ms)?, cause))
    }

    /// The job stops, to start again or for good: nobody acknowledges any more. Gives the checkpoint that was under way and what the tasks
    /// had prepared, for it or when they finished, that no complete checkpoint has.
    pub fn abort(&mut self, now_ms: i64) -> (Option<CheckpointBarrier>, Vec<TaskState>) {
        let mut states: BTreeMap<SubtaskId, Vec<TaskState>> = BTreeMap::new();
        let pending = self.pending.take();
        if let Some(pending) = &pending {
            self.counts.failed += 1;
            self.last_end_ms = Some(now_ms);
            let of_barrier = pending.states.iter().filter(|(subtask, _)| !pending.finished.contains(subtask));
            of_barrier.for_each(|(subtask, state)| states.entry(*subtask).or_default().push(state.clone()));
        }
        for (subtask, state) in std::mem::take(&mut self.finished) {
            states.entry(subtask).or_default().push(state);
        }
        (pending.map(|pending| pending.barrier), states.into_values().flatten().collect())
    }

    /// The checkpoints of the job that are complete, the oldest first.
    pub fn retained(&self) -> impl Iterator<Item = &CompletedCheckpoint> {
        self.completed.iter()
    }
}

#[cfg(test)]
mod tests;
