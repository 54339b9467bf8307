//! The TaskExecutor: runs tasks on the data plane of its process and tells their masters how far they are.
//!
//! The endpoint lives in the control plane; tasks run on threads of their own ([`DataPlane`]), so that a busy one never delays a
//! call. For each task that it was given it tells the JobMaster exactly one end, after everything that the task held is released.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use serde::{Deserialize, Serialize};

use super::execution_graph::ExecutionEnd;
use super::job_master::{
    AcknowledgeCheckpoint, AcknowledgeFlush, DeclineCheckpoint, JobMaster, ReportWatermark, RequestSplits, TaskUpdate, UpdateTask,
};
use super::resource_manager::{RegisterTaskExecutor, ResourceManager};
use crate::clock::{Executor, run_on};
use crate::error::{Error, Result};
use crate::rpc::{Answer, CallTable, FencingToken, Gateway, Handle, MainThread, RpcAddress, RpcEndpoint, RpcService};
use crate::runtime::Environment;
use crate::runtime::channel::ShuffleEnvironment;
use crate::runtime::checkpoint::{
    CheckpointBarrier, CheckpointResponder, GivenUp, KnownPieces, RestoredTask, StateLocation, TaskSnapshot, TaskState,
    read_task, write_task,
};
use crate::runtime::state::MemoryManager;
use crate::runtime::task::{
    ExecutionAttemptId, Mail, SplitAssignment, SplitProvider, StreamTask, TaskDescriptor, TaskHandle, TaskMetricsSnapshot,
    TaskServices, TaskStatus,
};
use crate::types::{CheckpointId, JobId, OperatorId, SubtaskIndex, Watermark};

/// Runs tasks. Each of them is told to the JobMaster; a failure to start one is its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SubmitTasks {
    /// Whom to tell.
    pub job_master: RpcAddress,
    /// Its fencing token.
    pub token: FencingToken,
    /// The tasks, of one job.
    pub tasks: Vec<TaskDescriptor>,
}

/// Cancels tasks. Those that have ended do not mind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CancelTasks {
    /// The tasks.
    pub attempts: Vec<ExecutionAttemptId>,
}

/// Ends the input of source tasks; other tasks do not mind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StopSources {
    /// The tasks.
    pub attempts: Vec<ExecutionAttemptId>,
}

/// Puts the barrier of a checkpoint into the streams of source tasks. Tasks that have ended do not mind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TriggerCheckpoint {
    /// The source tasks.
    pub attempts: Vec<ExecutionAttemptId>,
    /// The barrier.
    pub barrier: CheckpointBarrier,
}

/// A checkpoint is complete.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NotifyCheckpointComplete {
    /// The tasks.
    pub attempts: Vec<ExecutionAttemptId>,
    /// The checkpoint.
    pub checkpoint: CheckpointId,
}

/// A checkpoint was given up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NotifyCheckpointAborted {
    /// The tasks.
    pub attempts: Vec<ExecutionAttemptId>,
    /// The checkpoint.
    pub checkpoint: CheckpointId,
}

/// Gives a reader splits that it did not ask for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PushSplits {
    /// The task.
    pub attempt: ExecutionAttemptId,
    /// Its source.
    pub operator: OperatorId,
    /// The splits.
    pub assignment: SplitAssignment,
}

/// The counters of the tasks of a job that run here.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RequestTaskMetrics {
    /// The job.
    pub job: JobId,
}

/// A job no longer has slots here: what still runs of it is stopped, its channels are released.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct FreeJob {
    /// The job.
    pub job: JobId,
}

crate::rpc_call!(
    SubmitTasks => (),
    CancelTasks => (),
    StopSources => (),
    TriggerCheckpoint => (),
    NotifyCheckpointComplete => (),
    NotifyCheckpointAborted => (),
    PushSplits => (),
    RequestTaskMetrics => Vec<(ExecutionAttemptId, TaskMetricsSnapshot)>,
    FreeJob => (),
);

/// Where tasks run, and what they share.
#[derive(Clone)]
pub struct DataPlane {
    /// Where.
    pub executor: Arc<dyn Executor>,
    /// Clock, functions, connectors, operators, results.
    pub environment: Arc<Environment>,
    /// Channels.
    pub shuffle: Arc<ShuffleEnvironment>,
    /// Bytes of state.
    pub memory: Arc<MemoryManager>,
}

/// The endpoint.
pub struct TaskExecutor {
    service: RpcService,
    resource_manager: Gateway<ResourceManager>,
    data_plane: DataPlane,
    slots: u32,
    tasks: BTreeMap<ExecutionAttemptId, Task>,
}

/// A task that was submitted and has not ended.
enum Task {
    /// Its master is being connected to, or its state is being read; what came for it meanwhile.
    Deploying(Vec<Mail>),
    /// Its future is with the data plane.
    Running(TaskHandle, Box<Writing>),
}

/// The snapshots of a task that are being written.
struct Writing {
    master: Gateway<JobMaster>,
    location: Arc<StateLocation>,
    /// How many.
    pending: u32,
    /// Those for checkpoints, which may be given up.
    under_way: BTreeMap<CheckpointId, GivenUp>,
    /// What checkpoints that are complete have of the task, and need not be written again.
    known: Arc<KnownPieces>,
    /// What will be known once a checkpoint is complete.
    written: BTreeMap<CheckpointId, KnownPieces>,
    /// How the task ended, to be told when all are written.
    ended: Option<(ExecutionEnd, TaskMetricsSnapshot)>,
    /// Its last state, once it is written.
    last_state: Option<TaskState>,
    /// Why its last state could not be written.
    failed: Option<Error>,
}

impl Writing {
    fn new(master: Gateway<JobMaster>, location: Arc<StateLocation>) -> Self {
        let (under_way, known, written) = Default::default();
        Writing { master, location, pending: 0, under_way, known, written, ended: None, last_state: None, failed: None }
    }

    /// What is being written for checkpoints up to this one is of no use.
    fn give_up(&mut self, checkpoint: CheckpointId) {
        self.under_way.range(..=checkpoint).for_each(|(_, given_up)| given_up.set());
    }

    /// What it has need not be written again. What others have that were given up before may be gone.
    fn checkpoint_completed(&mut self, checkpoint: CheckpointId) {
        if let Some(pieces) = self.written.remove(&checkpoint) {
            self.known = Arc::new(pieces);
        }
        self.written.retain(|written, _| *written > checkpoint);
    }
}

impl TaskExecutor {
    /// Offers `slots` to the resource manager when it starts.
    pub fn new(service: RpcService, resource_manager: Gateway<ResourceManager>, data_plane: DataPlane, slots: u32) -> Self {
        TaskExecutor { service, resource_manager, data_plane, slots, tasks: BTreeMap::new() }
    }

    /// Starts a task, after reading the state that it starts from.
    fn restore(&mut self, descriptor: TaskDescriptor, master: &Gateway<JobMaster>, main: &MainThread<Self>) {
        let Some(restore) = descriptor.restore.clone() else { return self.launch(descriptor, None, master, main) };
        let (stores, master) = (Arc::clone(&self.data_plane.environment.stores), master.clone());
        main.run_blocking(
            move || read_task(&*stores, &restore),
            move |executor, main, restored| match restored {
                Ok(restored) => executor.launch(descriptor, Some(restored), &master, main),
                Err(cause) => {
                    let attempt = descriptor.attempt;
                    let end = if executor.is_cancelled(attempt) { ExecutionEnd::Canceled } else { ExecutionEnd::Failed(cause) };
                    executor.tasks.remove(&attempt);
                    tell_end(&master, attempt, end, None, None);
                }
            },
        );
    }

    /// Whether a task is to stop that has not started.
    fn is_cancelled(&self, attempt: ExecutionAttemptId) -> bool {
        let mails = match self.tasks.get(&attempt) {
            Some(Task::Deploying(mails)) => mails.as_slice(),
            _ => &[],
        };
        mails.iter().any(|mail| matches!(mail, Mail::Cancel))
    }

    fn launch(
        &mut self,
        descriptor: TaskDescriptor,
        restored: Option<RestoredTask>,
        master: &Gateway<JobMaster>,
        main: &MainThread<Self>,
    ) {
        let attempt = descriptor.attempt;
        let is_cancelled = self.is_cancelled(attempt);
        let Some(Task::Deploying(mails)) = self.tasks.remove(&attempt) else { return };
        if is_cancelled {
            return tell_end(master, attempt, ExecutionEnd::Canceled, None, None);
        }
        let location = Arc::new(StateLocation::new(attempt.job, &descriptor.configuration));
        match self.start(descriptor, restored, master, main) {
            Ok((task, handle)) => {
                mails.into_iter().for_each(|mail| handle.mailbox().send(mail));
                let writing = Writing::new(master.clone(), location);
                self.tasks.insert(attempt, Task::Running(handle.clone(), Box::new(writing)));
                let running = run_on(&*self.data_plane.executor, task);
                main.spawn(watch(handle.clone(), master.clone()));
                main.when(running, move |executor, _, ended| {
                    // The status says more than the future's own output, unless the future never got to the end.
                    let end = match (ended, handle.status()) {
                        (_, TaskStatus::Finished) => ExecutionEnd::Finished,
                        (_, TaskStatus::Failed(cause)) => ExecutionEnd::Failed(cause),
                        (Some(Err(_)), _) => ExecutionEnd::Failed(Error::internal("the task panicked")),
                        _ => ExecutionEnd::Canceled,
                    };
                    executor.task_ended(attempt, end, handle.metrics());
                });
            }
            Err(cause) => tell_end(master, attempt, ExecutionEnd::Failed(cause), None, None),
        }
    }

    /// A task has ended; that is told when its snapshots are written.
    fn task_ended(&mut self, attempt: ExecutionAttemptId, end: ExecutionEnd, metrics: TaskMetricsSnapshot) {
        if let Some(Task::Running(_, writing)) = self.tasks.get_mut(&attempt) {
            match &end {
                ExecutionEnd::Finished if writing.pending > 0 => {
                    writing.master.tell(UpdateTask { attempt, update: TaskUpdate::Processed });
                }
                ExecutionEnd::Finished => {}
                // The job goes back, or ends: no checkpoint that is under way will be complete.
                ExecutionEnd::Canceled | ExecutionEnd::Failed(_) => writing.give_up(CheckpointId(u64::MAX)),
            }
            writing.ended = Some((end, metrics));
        }
        self.tell_if_ended(attempt);
    }

    fn tell_if_ended(&mut self, attempt: ExecutionAttemptId) {
        let is_done = |writing: &Writing| writing.pending == 0 && writing.ended.is_some();
        match self.tasks.remove(&attempt) {
            Some(Task::Running(_, writing)) if is_done(&writing) => {
                let (mut end, metrics) = writing.ended.expect("checked above");
                // No checkpoint could go on from a task that has finished without leaving its last state.
                if let (ExecutionEnd::Finished, Some(cause)) = (&end, writing.failed) {
                    end = ExecutionEnd::Failed(cause);
                }
                tell_end(&writing.master, attempt, end, Some(metrics), writing.last_state);
            }
            Some(task) => drop(self.tasks.insert(attempt, task)),
            None => {}
        }
    }

    /// Writes a snapshot of a task beside the main thread, then acknowledges it (the last one of a task, with its end).
    fn write_snapshot(&mut self, attempt: ExecutionAttemptId, snapshot: TaskSnapshot, main: &MainThread<Self>) {
        let Some(Task::Running(_, writing)) = self.tasks.get_mut(&attempt) else { return };
        writing.pending += 1;
        let (stores, location) = (Arc::clone(&self.data_plane.environment.stores), Arc::clone(&writing.location));
        let (barrier, known, given_up) = (snapshot.barrier, Arc::clone(&writing.known), GivenUp::default());
        if let Some(barrier) = barrier {
            writing.under_way.insert(barrier.id, given_up.clone());
        }
        main.run_blocking(
            move || write_task(&*stores, &location, attempt, snapshot, &known, &given_up),
            move |executor, _, written| {
                let Some(Task::Running(_, writing)) = executor.tasks.get_mut(&attempt) else { return };
                writing.pending -= 1;
                if let Some(barrier) = barrier {
                    writing.under_way.remove(&barrier.id);
                }
                match (barrier, written) {
                    (Some(barrier), Ok((state, pieces))) => {
                        if !barrier.kind.stops() {
                            writing.written.insert(barrier.id, pieces);
                        }
                        writing.master.tell(AcknowledgeCheckpoint { attempt, checkpoint: barrier.id, state });
                    }
                    (Some(barrier), Err(cause)) => {
                        writing.master.tell(DeclineCheckpoint { attempt, checkpoint: barrier.id, cause });
                    }
                    (None, Ok((state, _))) => writing.last_state = Some(state),
                    (None, Err(cause)) => writing.failed = Some(cause),
                }
                executor.tell_if_ended(attempt);
            },
        );
    }

    /// Builds the task. What panics here fails the task, not this endpoint.
    fn start(
        &self,
        descriptor: TaskDescriptor,
        restored: Option<RestoredTask>,
        master: &Gateway<JobMaster>,
        main: &MainThread<Self>,
    ) -> Result<(StreamTask, TaskHandle)> {
        let (name, attempt) = (descriptor.display_name(), descriptor.attempt);
        let services = TaskServices {
            shuffle: Arc::clone(&self.data_plane.shuffle),
            splits: Arc::new(SplitsOfMaster { attempt, master: master.clone() }),
            memory: Arc::clone(&self.data_plane.memory),
            checkpoints: Arc::new(WritesSnapshots { attempt, main: main.clone() }),
        };
        let environment = Arc::clone(&self.data_plane.environment);
        catch_unwind(AssertUnwindSafe(|| StreamTask::new(descriptor, environment, &services, restored)))
            .unwrap_or_else(|_| Err(Error::internal(format!("task {name} panicked while it was built"))))
            .map_err(|error| error.in_operator(name))
    }

    /// Mail for a task. One that has ended does not mind.
    fn send(&mut self, attempt: ExecutionAttemptId, mail: Mail) {
        match self.tasks.get_mut(&attempt) {
            Some(Task::Deploying(mails)) => mails.push(mail),
            Some(Task::Running(handle, _)) => handle.mailbox().send(mail),
            None => {}
        }
    }
}

/// Tells the master once the task runs, and which flushes pass its sinks.
async fn watch(handle: TaskHandle, master: Gateway<JobMaster>) {
    let attempt = handle.attempt();
    let begun = handle.watch().wait_for(|status| !matches!(status, TaskStatus::Created)).await.is_ok();
    if begun && !handle.status().is_terminal() {
        master.tell(UpdateTask { attempt, update: TaskUpdate::Running });
    }
    let mut flushes = handle.watch_flushes();
    while flushes.changed().await.is_ok() {
        let flush = *flushes.borrow_and_update();
        if let Some(flush) = flush {
            master.tell(AcknowledgeFlush { attempt, flush });
        }
    }
}

fn tell_end(
    master: &Gateway<JobMaster>,
    attempt: ExecutionAttemptId,
    end: ExecutionEnd,
    metrics: Option<TaskMetricsSnapshot>,
    last_state: Option<TaskState>,
) {
    master.tell(UpdateTask { attempt, update: TaskUpdate::Ended { end, metrics: metrics.map(Box::new), last_state } });
}

/// Takes the snapshots of a task to the endpoint, which has them written.
struct WritesSnapshots {
    attempt: ExecutionAttemptId,
    main: MainThread<TaskExecutor>,
}

impl CheckpointResponder for WritesSnapshots {
    fn acknowledge(&self, snapshot: TaskSnapshot) {
        let attempt = self.attempt;
        self.main.run_async(move |executor, main| executor.write_snapshot(attempt, snapshot, main));
    }
}

/// Where a task's sources get their splits: from the enumerators in its JobMaster.
struct SplitsOfMaster {
    attempt: ExecutionAttemptId,
    master: Gateway<JobMaster>,
}

impl SplitProvider for SplitsOfMaster {
    fn request_splits(&self, operator: OperatorId, subtask: SubtaskIndex) -> BoxFuture<'static, Result<Option<SplitAssignment>>> {
        assert_eq!(subtask, self.attempt.subtask, "a task asks for itself");
        self.master.ask(RequestSplits { attempt: self.attempt, operator }, None)
    }

    fn align(
        &self,
        operator: OperatorId,
        _subtask: SubtaskIndex,
        reached: Option<Watermark>,
    ) -> BoxFuture<'static, Result<Watermark>> {
        self.master.ask(ReportWatermark { attempt: self.attempt, operator, reached }, None)
    }
}

impl RpcEndpoint for TaskExecutor {
    const GATEWAY: &'static str = "TaskExecutor";

    fn calls(table: CallTable<Self>) -> CallTable<Self> {
        table
            .with::<SubmitTasks>()
            .with::<CancelTasks>()
            .with::<StopSources>()
            .with::<TriggerCheckpoint>()
            .with::<NotifyCheckpointComplete>()
            .with::<NotifyCheckpointAborted>()
            .with::<PushSplits>()
            .with::<RequestTaskMetrics>()
            .with::<FreeJob>()
    }

    fn on_start(&mut self, main: &MainThread<Self>) -> Result<()> {
        self.resource_manager.tell(RegisterTaskExecutor { address: main.address().clone(), slots: self.slots });
        Ok(())
    }

    /// Stops all tasks and waits for their end.
    fn on_stop(&mut self, _: &MainThread<Self>) -> BoxFuture<'static, Result<()>> {
        let attempts: Vec<ExecutionAttemptId> = self.tasks.keys().copied().collect();
        attempts.into_iter().for_each(|attempt| self.send(attempt, Mail::Cancel));
        let running = self.tasks.values().filter_map(|task| match task {
            Task::Running(handle, _) => Some(handle.clone()),
            Task::Deploying(_) => None,
        });
        let ends: Vec<_> = running.map(|handle| async move { handle.ended().await }).collect();
        futures::future::join_all(ends).map(|_| Ok(())).boxed()
    }
}

impl Handle<SubmitTasks> for TaskExecutor {
    fn handle(&mut self, call: SubmitTasks, main: &MainThread<Self>) -> Answer<()> {
        let SubmitTasks { job_master, token, tasks } = call;
        for task in &tasks {
            self.tasks.insert(task.attempt, Task::Deploying(Vec::new()));
        }
        let (service, caller) = (self.service.clone(), main.address().endpoint.clone());
        let (reply, answer) = Answer::later();
        main.when(
            async move { service.connect_fenced::<JobMaster>(&caller, &job_master, token).await },
            move |executor, main, connected| match connected {
                Ok(master) => {
                    tasks.into_iter().for_each(|task| executor.restore(task, &master, main));
                    reply.send(Ok(()));
                }
                Err(error) => {
                    tasks.iter().for_each(|task| drop(executor.tasks.remove(&task.attempt)));
                    reply.send(Err(error));
                }
            },
        );
        answer
    }
}

impl Handle<CancelTasks> for TaskExecutor {
    fn handle(&mut self, call: CancelTasks, _: &MainThread<Self>) -> Answer<()> {
        call.attempts.into_iter().for_each(|attempt| self.send(attempt, Mail::Cancel));
        Ok(()).into()
    }
}

impl Handle<StopSources> for TaskExecutor {
    fn handle(&mut self, call: StopSources, _: &MainThread<Self>) -> Answer<()> {
        // Those that come last in the graph first: all are to know before the end of the sources' rows reaches them.
        call.attempts.into_iter().rev().for_each(|attempt| self.send(attempt, Mail::StopSources));
        Ok(()).into()
    }
}

impl Handle<TriggerCheckpoint> for TaskExecutor {
    fn handle(&mut self, call: TriggerCheckpoint, _: &MainThread<Self>) -> Answer<()> {
        call.attempts.into_iter().for_each(|attempt| self.send(attempt, Mail::TriggerCheckpoint(call.barrier)));
        Ok(()).into()
    }
}

impl Handle<NotifyCheckpointComplete> for TaskExecutor {
    fn handle(&mut self, call: NotifyCheckpointComplete, _: &MainThread<Self>) -> Answer<()> {
        for attempt in call.attempts {
            if let Some(Task::Running(_, writing)) = self.tasks.get_mut(&attempt) {
                writing.checkpoint_completed(call.checkpoint);
            }
            self.send(attempt, Mail::CheckpointCompleted(call.checkpoint));
        }
        Ok(()).into()
    }
}

impl Handle<NotifyCheckpointAborted> for TaskExecutor {
    fn handle(&mut self, call: NotifyCheckpointAborted, _: &MainThread<Self>) -> Answer<()> {
        for attempt in call.attempts {
            if let Some(Task::Running(_, writing)) = self.tasks.get_mut(&attempt) {
                writing.give_up(call.checkpoint);
            }
            self.send(attempt, Mail::CheckpointAborted(call.checkpoint));
        }
        Ok(()).into()
    }
}

impl Handle<PushSplits> for TaskExecutor {
    fn handle(&mut self, call: PushSplits, _: &MainThread<Self>) -> Answer<()> {
        let PushSplits { attempt, operator, assignment } = call;
        self.send(attempt, Mail::AddSplits { operator, assignment });
        Ok(()).into()
    }
}

impl Handle<RequestTaskMetrics> for TaskExecutor {
    fn handle(
        &mut self,
        call: RequestTaskMetrics,
        _: &MainThread<Self>,
    ) -> Answer<Vec<(ExecutionAttemptId, TaskMetricsSnapshot)>> {
        let of_job = self.tasks.iter().filter(|(attempt, _)| attempt.job == call.job);
        let metrics = of_job.filter_map(|(attempt, task)| match task {
            Task::Running(handle, _) => Some((*attempt, handle.metrics())),
            Task::Deploying(_) => None,
        });
        Ok(metrics.collect()).into()
    }
}

impl Handle<FreeJob> for TaskExecutor {
    fn handle(&mut self, FreeJob { job }: FreeJob, _: &MainThread<Self>) -> Answer<()> {
        let left: Vec<ExecutionAttemptId> = self.tasks.keys().filter(|attempt| attempt.job == job).copied().collect();
        left.into_iter().for_each(|attempt| self.send(attempt, Mail::Cancel));
        self.data_plane.shuffle.release_job(job);
        self.data_plane.environment.connectors.release_job(job);
        Ok(()).into()
    }
}
