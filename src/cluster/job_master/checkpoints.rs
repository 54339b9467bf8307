//! The checkpoints of a job, as its master takes them: what the [`CheckpointCoordinator`](crate::cluster::checkpoint) decides is done here.
//!
//! ```text
//!   due ─▶ trigger (sources) ─▶ acknowledged by all ─▶ manifest (beside) ─▶ tasks are told ─▶ sinks are committed (beside) ─▶ old ones deleted
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::committers::{Committers, note_committed};
use super::{AcknowledgeCheckpoint, DeclineCheckpoint, JobMaster, StopExecutionWithSavepoint};
use crate::cluster::JobState;
use crate::cluster::checkpoint::{
    Acknowledged, CheckpointFailure, CompletedCheckpoint, Manifest, OperatorName, PendingCheckpoint, SubtaskId, VertexState,
    write_manifest,
};
use crate::cluster::execution_graph::ExecutionState;
use crate::cluster::task_executor::{NotifyCheckpointAborted, NotifyCheckpointComplete, TriggerCheckpoint};
use crate::error::{Error, ErrorKind, Result};
use crate::rpc::{Answer, Handle, MainThread, Reply};
use crate::runtime::Environment;
use crate::runtime::checkpoint::{
    CheckpointBarrier, CheckpointKind, CheckpointStore, FINISHED_DIRECTORY, StateLocation, StateSection, TaskState, resolve,
    shared_directory,
};
use crate::runtime::task::ExecutionAttemptId;
use crate::types::{CheckpointId, SubtaskIndex};

/// Who asked for a savepoint, and with what.
pub(super) struct SavepointRequest {
    kind: CheckpointKind,
    reply: Reply<String>,
}

impl JobMaster {
    /// The tasks are deployed: the first periodic checkpoint is due after the interval.
    pub(super) fn start_checkpoints(&mut self, main: &MainThread<Self>) {
        self.checkpoint_timer += 1;
        if let Some(interval) = self.checkpoints.settings().interval_ms {
            self.schedule_checkpoint(interval, main);
        }
    }

    fn schedule_checkpoint(&mut self, delay_ms: u64, main: &MainThread<Self>) {
        let timer = self.checkpoint_timer;
        self.checkpoint_is_overdue = false;
        main.schedule(Duration::from_millis(delay_ms), move |master, main| {
            if master.checkpoint_timer == timer {
                master.checkpoint_due(main);
            }
        });
    }

    fn checkpoint_due(&mut self, main: &MainThread<Self>) {
        let Some(interval) = self.checkpoints.settings().interval_ms else { return };
        if self.execution.state() != JobState::Running {
            return;
        }
        match self.checkpoints.pause_ms(main.clock().now_ms()) {
            None => self.checkpoint_is_overdue = true,
            Some(0) => {
                if self.savepoint.is_none() && self.can_trigger() {
                    self.trigger_checkpoint(CheckpointKind::Checkpoint, main);
                }
                self.schedule_checkpoint(interval, main);
            }
            Some(pause_ms) => self.schedule_checkpoint(pause_ms, main),
        }
    }

    /// Whether all tasks run (or have finished), sources among them: where no source reads, the rest is about to finish.
    fn can_trigger(&self) -> bool {
        let runs_or_ran = |state| matches!(state, ExecutionState::Running | ExecutionState::Finished);
        self.execution.state() == JobState::Running
            && self.execution.executions().all(|execution| runs_or_ran(execution.state))
            && !self.running_sources().is_empty()
    }

    fn running_sources(&self) -> Vec<ExecutionAttemptId> {
        let reads = |attempt: &ExecutionAttemptId| {
            self.graph.vertex(attempt.vertex).inputs.is_empty() && !self.processed.contains(attempt)
        };
        self.running().into_iter().filter(reads).collect()
    }

    /// The tasks that have not ended.
    fn running(&self) -> Vec<ExecutionAttemptId> {
        let running = self.execution.executions().filter(|execution| !execution.state.is_terminal());
        running.map(|execution| execution.attempt).collect()
    }

    fn trigger_checkpoint(&mut self, kind: CheckpointKind, main: &MainThread<Self>) {
        let Some(barrier) = self.checkpoints.trigger(kind, self.running(), main.clock().now_ms()) else { return };
        for (executor, attempts) in self.by_executor(&self.running_sources()) {
            executor.tell(TriggerCheckpoint { attempts, barrier });
        }
        let timeout = Duration::from_millis(self.checkpoints.settings().timeout_ms);
        main.schedule(timeout, move |master, main| {
            if let Some((failure, cause)) = master.checkpoints.expire(barrier.id, main.clock().now_ms()) {
                master.checkpoint_failed(failure, cause, main);
            }
        });
    }

    /// Begins the savepoint that was asked for, as soon as one can begin, or refuses it when none will be able to.
    pub(super) fn try_savepoint(&mut self, main: &MainThread<Self>) {
        let Some(request) = &self.savepoint else { return };
        let is_free = self.checkpoints.pending().is_none() && !self.checkpoints.is_finalizing();
        if is_free && self.can_trigger() {
            self.trigger_checkpoint(request.kind, main);
        } else if is_free && self.has_read_all() {
            self.answer_savepoint(Err(read_all()));
        }
    }

    /// Whether no source has anything to read any more: the job is about to end.
    fn has_read_all(&self) -> bool {
        self.execution.state() == JobState::Running && !self.placement.is_empty() && self.running_sources().is_empty()
    }

    fn answer_savepoint(&mut self, result: Result<String>) {
        if let Some(request) = self.savepoint.take() {
            request.reply.send(result);
        }
    }

    pub(super) fn acknowledged(&mut self, acknowledged: Acknowledged, main: &MainThread<Self>) {
        if let Acknowledged::Complete(complete) = acknowledged {
            self.complete_checkpoint(*complete, main);
        }
    }

    /// All tasks have acknowledged: what they wrote becomes a checkpoint.
    pub(super) fn complete_checkpoint(&mut self, complete: PendingCheckpoint, main: &MainThread<Self>) {
        let barrier = complete.barrier;
        let manifest = self.manifest(complete, main.clock().now_ms());
        let (environment, location) = (Arc::clone(&self.services.environment), Arc::clone(&self.location));
        main.run_blocking(
            move || write_checkpoint(&environment, &location, barrier, manifest),
            move |master, main, written| match written {
                Ok(checkpoint) => master.checkpoint_completed(barrier, checkpoint, main),
                Err(cause) => {
                    if let Some(failure) = master.checkpoints.fail(barrier.id, &cause, main.clock().now_ms()) {
                        master.checkpoint_failed(failure, cause, main);
                    }
                }
            },
        );
    }

    fn checkpoint_completed(&mut self, barrier: CheckpointBarrier, checkpoint: CompletedCheckpoint, main: &MainThread<Self>) {
        let manifest = Arc::clone(&checkpoint.manifest);
        self.sources.completed(|operator, subtask| splits_received(&manifest, operator, subtask));
        let superfluous = self.checkpoints.completed(checkpoint.clone());
        let retained: Vec<_> = self.checkpoints.retained().map(|checkpoint| Arc::clone(&checkpoint.manifest)).collect();
        if barrier.kind.stops() {
            self.stopped_with = Some(checkpoint.directory.clone());
        }
        let mut committers = self.committers.take().unwrap_or_default();
        let (environment, directory) = (Arc::clone(&self.services.environment), checkpoint.directory.clone());
        let claimed = self.claimed.clone();
        main.run_blocking(
            move || {
                let committed = committers.commit(manifest.tasks());
                if committed.is_ok() {
                    if manifest.has_committables() {
                        note_committed(&environment, &directory);
                    }
                    claimed.iter().for_each(|earlier| discard(&environment, earlier));
                    discard_superfluous(&environment, &superfluous, &retained);
                }
                Ok((committers, committed))
            },
            move |master, main, done: Result<(Committers, Result<()>)>| {
                let committed = match done {
                    Ok((committers, committed)) => {
                        master.committers = Some(committers);
                        committed
                    }
                    Err(panic) => Err(panic),
                };
                master.checkpoint_finalized(barrier, checkpoint.directory, committed, main);
            },
        );
    }

    fn checkpoint_finalized(
        &mut self,
        barrier: CheckpointBarrier,
        directory: String,
        committed: Result<()>,
        main: &MainThread<Self>,
    ) {
        self.checkpoints.finalized(main.clock().now_ms());
        let failure = committed.err();
        if barrier.kind.stops() {
            self.answer_savepoint(failure.clone().map_or(Ok(directory), Err));
        }
        match failure {
            Some(cause) if self.execution.state() == JobState::Finished => self.execution.fail_finished(cause),
            Some(cause) => self.fail(cause, main),
            None => {
                self.claimed.clear();
                for (executor, attempts) in self.by_executor(&self.running()) {
                    executor.tell(NotifyCheckpointComplete { attempts, checkpoint: barrier.id });
                }
            }
        }
        self.after_checkpoint(main);
    }

    pub(super) fn checkpoint_failed(&mut self, failure: CheckpointFailure, cause: Error, main: &MainThread<Self>) {
        let CheckpointFailure { barrier, job_failure } = failure;
        self.last_failed_checkpoint = Some(cause.clone());
        self.tell_aborted(barrier);
        self.discard_beside(barrier, main);
        if barrier.kind.stops() {
            let error = Error::new(cause.kind(), format!("the savepoint failed: {}", cause.message()));
            self.answer_savepoint(Err(cause.detail().map_or(error.clone(), |detail| error.with_detail(detail))));
        }
        match job_failure {
            Some(cause) if self.execution.state() == JobState::Finished => self.execution.fail_finished(cause),
            Some(cause) => self.fail(cause, main),
            None if self.execution.state() == JobState::Finished => self.execution.fail_finished(cause),
            None => {}
        }
        self.after_checkpoint(main);
    }

    /// A checkpoint has ended, well or not: goes on with what has waited for that.
    fn after_checkpoint(&mut self, main: &MainThread<Self>) {
        self.after_change(main);
        self.try_savepoint(main);
        if self.checkpoint_is_overdue {
            let pause = self.checkpoints.pause_ms(main.clock().now_ms());
            pause.into_iter().for_each(|pause| self.schedule_checkpoint(pause, main));
        }
    }

    /// The tasks stop or are about to: nothing that is under way will be acknowledged. Gives what they had prepared.
    pub(super) fn abort_checkpoints(&mut self, why: &str, main: &MainThread<Self>) -> Vec<TaskState> {
        self.checkpoint_timer += 1;
        let (pending, prepared) = self.checkpoints.abort(main.clock().now_ms());
        if let Some(barrier) = pending {
            self.discard_beside(barrier, main);
        }
        if !self.checkpoints.is_finalizing() {
            self.answer_savepoint(Err(Error::new(ErrorKind::NotRunning, format!("there is no savepoint: {why}"))));
        }
        prepared
    }

    /// Gives up the checkpoint that is under way when all tasks have processed everything: nothing is left that could make the job go back
    /// to it, and it would only delay the end. What sinks had prepared for it is in the last state of their tasks.
    pub(super) fn give_up_useless_checkpoint(&mut self, main: &MainThread<Self>) {
        let is_at_end =
            self.execution.state() == JobState::Running && self.running().iter().all(|attempt| self.processed.contains(attempt));
        if let Some(barrier) = is_at_end.then(|| self.checkpoints.give_up(main.clock().now_ms())).flatten() {
            self.tell_aborted(barrier);
            self.discard_beside(barrier, main);
            self.after_checkpoint(main);
        }
    }

    /// Something was written for a checkpoint that failed or was given up before.
    fn discard_litter(&self, attempt: ExecutionAttemptId, checkpoint: CheckpointId, main: &MainThread<Self>) {
        if self.execution.execution(attempt).is_some() && self.checkpoints.is_litter(checkpoint) {
            self.discard_beside(CheckpointBarrier { id: checkpoint, kind: CheckpointKind::Checkpoint }, main);
        }
    }

    fn tell_aborted(&self, barrier: CheckpointBarrier) {
        for (executor, attempts) in self.by_executor(&self.running()) {
            executor.tell(NotifyCheckpointAborted { attempts, checkpoint: barrier.id });
        }
    }

    /// Deletes what was written for a checkpoint that failed.
    fn discard_beside(&self, barrier: CheckpointBarrier, main: &MainThread<Self>) {
        let Ok(directory) = self.location.directory(barrier) else { return };
        let shared = format!("{}/{}", self.location.job_directory(), shared_directory(barrier.id));
        let environment = Arc::clone(&self.services.environment);
        main.run_blocking(
            move || {
                discard(&environment, &directory);
                discard(&environment, &shared);
                Ok(())
            },
            |_, _, _| {},
        );
    }

    fn manifest(&self, complete: PendingCheckpoint, now_ms: i64) -> Manifest {
        let PendingCheckpoint { barrier, triggered_ms, mut states, finished, .. } = complete;
        let vertices = self.graph.vertices.iter().map(|vertex| {
            let subtasks = (0..vertex.parallelism).map(|subtask| (vertex.id, SubtaskIndex(subtask)));
            VertexState {
                name: vertex.name.clone(),
                max_parallelism: vertex.max_parallelism,
                operators: vertex
                    .operators
                    .iter()
                    .map(|operator| OperatorName { id: operator.id, name: operator.name.clone() })
                    .collect(),
                finished: subtasks.clone().map(|subtask| finished.contains(&subtask)).collect(),
                subtasks: subtasks
                    .map(|subtask| states.remove(&subtask).expect("a complete checkpoint has the state of every subtask"))
                    .collect(),
            }
        });
        let mut manifest = Manifest {
            job: self.execution.job(),
            name: self.execution.name().to_string(),
            ordinal: self.ordinal,
            checkpoint: barrier.id,
            kind: barrier.kind,
            triggered_ms,
            completed_ms: now_ms,
            is_final: self.execution.state() == JobState::Finished,
            vertices: vertices.collect(),
            sources: Default::default(),
            committers: self.committers.as_ref().map(Committers::snapshot).unwrap_or_default(),
        };
        manifest.sources = self.sources.snapshot(|operator, subtask| splits_received(&manifest, operator, subtask));
        manifest
    }

    /// The subtasks of the job.
    pub(super) fn subtasks(&self) -> std::collections::BTreeSet<SubtaskId> {
        self.execution.executions().map(|execution| (execution.attempt.vertex, execution.attempt.subtask)).collect()
    }
}

/// Why there is no savepoint.
fn read_all() -> Error {
    Error::new(ErrorKind::NotRunning, "the job has read all its input and is about to end")
}

/// How many splits the reader of a source in a subtask had received.
fn splits_received(manifest: &Manifest, operator: crate::types::OperatorId, subtask: SubtaskIndex) -> u64 {
    let vertex = manifest.vertices.iter().find(|vertex| vertex.operators.iter().any(|name| name.id == operator));
    vertex.map_or(0, |vertex| vertex.subtasks[subtask.0 as usize].splits_received)
}

/// Writes the manifest, last of all. A savepoint gets copies of what lies elsewhere. Blocks.
fn write_checkpoint(
    environment: &Environment,
    location: &StateLocation,
    barrier: CheckpointBarrier,
    mut manifest: Manifest,
) -> Result<CompletedCheckpoint> {
    let store = CheckpointStore::create(&*environment.stores, &location.parent(barrier)?)?;
    let name = location.name(barrier);
    if barrier.kind.stops() {
        copy_finished(environment, location, &store, &name, &mut manifest)?;
    }
    write_manifest(&store, &name, &manifest)?;
    Ok(CompletedCheckpoint { directory: location.directory(barrier)?, manifest: Arc::new(manifest) })
}

/// Copies the last state of finished tasks from beside the job's checkpoints into a savepoint.
fn copy_finished(
    environment: &Environment,
    location: &StateLocation,
    savepoint: &CheckpointStore,
    name: &str,
    manifest: &mut Manifest,
) -> Result<()> {
    let beside = format!("../{FINISHED_DIRECTORY}/");
    let tasks = manifest.vertices.iter_mut().flat_map(|vertex| &mut vertex.subtasks);
    let tables = tasks.flat_map(|task| &mut task.operators).flat_map(|operator| &mut operator.tables);
    let mut copied: Vec<String> = Vec::new();
    let files = tables.flat_map(|table| &mut table.sections).flat_map(StateSection::files_mut);
    for file in files.filter(|file| file.starts_with(&beside)) {
        let copy = format!("{FINISHED_DIRECTORY}-{}", &file[beside.len()..]);
        if !copied.contains(&copy) {
            let job = CheckpointStore::open(&*environment.stores, &location.job_directory())?;
            savepoint.put(&format!("{name}/{copy}"), job.get(&resolve("", file))?)?;
            copied.push(copy.clone());
        }
        *file = copy;
    }
    Ok(())
}

/// Deletes checkpoints, and of what they share with others that which no retained one has.
fn discard_superfluous(environment: &Environment, superfluous: &[CompletedCheckpoint], retained: &[Arc<Manifest>]) {
    let wanted: BTreeSet<&str> = retained.iter().flat_map(|manifest| manifest.shared_files()).collect();
    for old in superfluous {
        discard(environment, &old.directory);
        let files: BTreeSet<&str> = old.manifest.shared_files().filter(|file| !wanted.contains(file)).collect();
        if let Some((parent, name)) = old.directory.rsplit_once('/')
            && !files.is_empty()
            && let Ok(store) = CheckpointStore::open(&*environment.stores, parent)
        {
            let _ = store.delete(files.into_iter().map(|file| resolve(name, file)));
        }
    }
}

/// Deletes a checkpoint. That it cannot be deleted harms nobody. Blocks.
pub(super) fn discard(environment: &Environment, directory: &str) {
    if let Some((parent, name)) = directory.rsplit_once('/')
        && let Ok(store) = CheckpointStore::open(&*environment.stores, parent)
    {
        let _ = store.delete_directory(name);
        environment.stores.sweep(directory);
    }
}

impl Handle<AcknowledgeCheckpoint> for JobMaster {
    fn handle(&mut self, call: AcknowledgeCheckpoint, main: &MainThread<Self>) -> Answer<()> {
        match self.checkpoints.acknowledge(call.attempt, call.checkpoint, call.state) {
            Acknowledged::Stale => self.discard_litter(call.attempt, call.checkpoint, main),
            acknowledged => self.acknowledged(acknowledged, main),
        }
        Ok(()).into()
    }
}

impl Handle<DeclineCheckpoint> for JobMaster {
    fn handle(&mut self, call: DeclineCheckpoint, main: &MainThread<Self>) -> Answer<()> {
        let DeclineCheckpoint { attempt, checkpoint, cause } = call;
        let is_current = self.execution.execution(attempt).is_some();
        let is_pending = self.checkpoints.pending().is_some_and(|pending| pending.barrier.id == checkpoint);
        // A task that was cancelled, or failed, has stopped writing: why the job ends is told elsewhere.
        let was_given_up = cause.kind() == ErrorKind::Cancelled;
        if !is_pending || was_given_up {
            self.discard_litter(attempt, checkpoint, main);
        } else if is_current && let Some(failure) = self.checkpoints.fail(checkpoint, &cause, main.clock().now_ms()) {
            let cause = cause.in_operator(self.execution.display_name(attempt));
            self.checkpoint_failed(failure, cause, main);
        }
        Ok(()).into()
    }
}

impl Handle<StopExecutionWithSavepoint> for JobMaster {
    fn handle(&mut self, call: StopExecutionWithSavepoint, main: &MainThread<Self>) -> Answer<String> {
        let kind = CheckpointKind::StopWithSavepoint { drain: call.drain };
        let refused = |kind, message: &str| Err(Error::new(kind, message)).into();
        if let Err(cause) = self.location.parent(CheckpointBarrier { id: CheckpointId(0), kind }) {
            return Err(cause).into();
        }
        if self.savepoint.is_some() || self.stopped_with.is_some() {
            return refused(ErrorKind::InvalidArgument, "the job is already being stopped with a savepoint");
        }
        if self.execution.state().is_terminal() || self.has_read_all() {
            return Err(read_all()).into();
        }
        let (reply, answer) = Answer::later();
        self.savepoint = Some(SavepointRequest { kind, reply });
        self.try_savepoint(main);
        answer
    }
}
