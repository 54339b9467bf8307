//! How a job starts again after a failure, and how it ends.
//!
//! ```text
//!   RESTARTING: the strategy says when ─▶ all tasks have ended, the delay is over ─▶ new attempts start from the last checkpoint
//!   FINISHED:   last checkpoint ─▶ sinks are committed ─▶ … as all that have ended: checkpoints are kept or deleted ─▶ told
//! ```
//!
//! Neither begins while a checkpoint is being completed: whether there is one more decides what comes.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::checkpoints::discard;
use super::{JobMaster, sink_attempts};
use crate::cluster::JobState;
use crate::cluster::checkpoint::{CompletedCheckpoint, JobRestore};
use crate::cluster::dispatcher::JobEnded;
use crate::cluster::job::JobResult;
use crate::cluster::resource_manager::ReleaseSlots;
use crate::error::ErrorKind;
use crate::rpc::MainThread;
use crate::runtime::Committable;
use crate::runtime::checkpoint::TaskState;
use crate::stream_graph::OperatorSpec;

/// How far the end or the restart of a job is.
#[derive(Debug, Default)]
pub(super) struct Ending {
    restart: Restart,
    /// The checkpoint of the end was taken, or could not be.
    has_final_checkpoint: bool,
    cleanup: Cleanup,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Restart {
    #[default]
    None,
    /// The delay is not over.
    Delayed,
    /// It waits for tasks to end.
    Due,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Cleanup {
    #[default]
    ToDo,
    UnderWay,
    /// Done, and the end is told.
    Done,
}

impl JobMaster {
    /// Whether the job has ended and that was told.
    pub(super) fn has_ended(&self) -> bool {
        self.ending.cleanup == Cleanup::Done
    }

    /// The job has failed and may start again: asks the strategy, once for each failure, and starts when it is time.
    pub(super) fn prepare_restart(&mut self, main: &MainThread<Self>) {
        if self.ending.restart == Restart::None {
            drop(self.abort_checkpoints("the job failed", main));
            // What is not supported stays so, what a checkpoint needs and is gone does not come back, nor a function of a program; and who stopped the job with a savepoint
            // does not want it to go on.
            let is_lasting =
                |kind| matches!(kind, ErrorKind::Unsupported | ErrorKind::NotRestorable | ErrorKind::UndefinedFunction);
            let is_hopeless =
                self.execution.failure().is_some_and(|cause| is_lasting(cause.kind())) || self.stopped_with.is_some();
            let delay = self.restart.on_failure(main.clock().now_ms()).filter(|_| !is_hopeless);
            let Some(delay_ms) = delay else {
                self.execution.set_may_restart(false);
                self.execution.give_up();
                return self.after_change(main);
            };
            self.ending.restart = Restart::Delayed;
            main.schedule(Duration::from_millis(delay_ms), |master, main| {
                if master.ending.restart == Restart::Delayed {
                    master.ending.restart = Restart::Due;
                    master.after_change(main);
                }
            });
        }
        let is_due = self.ending.restart == Restart::Due && self.execution.has_ended() && !self.checkpoints.is_finalizing();
        if is_due {
            self.start_again(main);
        }
    }

    fn start_again(&mut self, main: &MainThread<Self>) {
        self.ending = Ending::default();
        self.last_failure = self.execution.restart();
        self.restarts += 1;
        self.placement.clear();
        self.processed.clear();
        self.flushes.restart(sink_attempts(&self.execution, &self.graph));
        let restore = match self.checkpoints.latest() {
            Some(latest) => JobRestore::of(Some(latest.clone())),
            None => self.initial.clone(),
        };
        self.start(restore, main);
    }

    /// The job has ended: brings to its end what is still under way, then gives back what it held and tells the result.
    pub(super) fn end(&mut self, main: &MainThread<Self>) {
        if self.checkpoints.is_finalizing() || self.ending.cleanup != Cleanup::ToDo {
            return;
        }
        if self.needs_final_checkpoint() {
            self.ending.has_final_checkpoint = true;
            if let Some(complete) = self.checkpoints.trigger_final(&self.subtasks(), main.clock().now_ms()) {
                return self.complete_checkpoint(complete, main);
            }
        }
        self.clean_up(main);
    }

    fn needs_final_checkpoint(&self) -> bool {
        let is_wanted = self.checkpoints.settings().interval_ms.is_some() && self.stopped_with.is_none();
        is_wanted && self.execution.state() == JobState::Finished && !self.ending.has_final_checkpoint
    }

    /// Deletes the checkpoints that need not be kept, and what tasks had prepared in vain.
    fn clean_up(&mut self, main: &MainThread<Self>) {
        let state = self.execution.state();
        let mut prepared: Vec<TaskState> = self.abort_checkpoints("the job has ended", main);
        self.leave_committed_out(&mut prepared);
        let keeps = self.checkpoints.settings().retention.keeps(state);
        let checkpoints: Vec<CompletedCheckpoint> = self.checkpoints.retained().cloned().collect();
        let kept = checkpoints.last().filter(|last| last.manifest.kind.stops() || keeps && self.location.is_durable()).cloned();
        let told = self.stopped_with.clone().or_else(|| kept.as_ref().map(|kept| kept.directory.clone()));
        // Without checkpoints of its own, a job that is done leaves nothing to go on from either.
        let is_finished = state == JobState::Finished;
        let claimed = if is_finished && !keeps { std::mem::take(&mut self.claimed) } else { Vec::new() };
        if self.locks.is_empty() && self.checkpoints.counts().triggered == 0 && self.committers.is_none() && claimed.is_empty() {
            return self.tell_end(told);
        }
        self.ending.cleanup = Cleanup::UnderWay;
        let (environment, committers) = (Arc::clone(&self.services.environment), self.committers.take());
        let is_of_use = keeps && !checkpoints.is_empty();
        let wrote = !self.locks.is_empty() || self.checkpoints.counts().triggered > 0;
        let job_directory = (wrote && !is_of_use).then(|| self.location.job_directory());
        main.run_blocking(
            move || {
                job_directory.iter().chain(&claimed).for_each(|directory| discard(&environment, directory));
                // What has finished was committed; otherwise the next start commits what a checkpoint has, so only the rest is undone.
                let mut aborted = committers.into_iter().filter(|_| !is_finished);
                aborted.try_for_each(|mut committers| committers.abort(&prepared, kept.as_ref()))
            },
            move |master, _, _cleaned| master.tell_end(told),
        );
    }

    /// What the last checkpoint has of a SELECT is shown, whether or not its collector was told in time.
    fn show_results(&self) {
        let Some(latest) = self.checkpoints.latest() else { return };
        for operator in self.graph.vertices.iter().flat_map(|vertex| &vertex.operators) {
            if let OperatorSpec::Collect { result, .. } = &operator.spec {
                self.services.environment.results.checkpoint_completed(*result, latest.manifest.checkpoint);
            }
        }
    }

    /// Tasks say again what they have prepared until they know that a checkpoint has it.
    fn leave_committed_out(&self, prepared: &mut [TaskState]) {
        let latest = self.checkpoints.latest().into_iter().flat_map(|latest| latest.manifest.tasks());
        let committed: HashSet<&Committable> =
            latest.flat_map(|task| &task.operators).flat_map(|operator| &operator.committables).collect();
        for operator in prepared.iter_mut().flat_map(|task| &mut task.operators) {
            operator.committables.retain(|committable| !committed.contains(committable));
        }
    }

    fn tell_end(&mut self, checkpoint: Option<String>) {
        let (state, job) = (self.execution.state(), self.execution.job());
        self.ending.cleanup = Cleanup::Done;
        self.locks.clear();
        self.told = state;
        self.show_results();
        self.services.resource_manager.tell(ReleaseSlots { job });
        let metrics = self.metrics(&BTreeMap::new());
        let result = JobResult { state, error: self.execution.failure().cloned(), metrics, checkpoint };
        self.services.dispatcher.tell(JobEnded { job, result });
        if let Some(closing) = self.closing.take() {
            let _ = closing.send(());
        }
    }
}
