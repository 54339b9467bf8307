//! The JobMaster: one per job. Holds its ExecutionGraph, gets slots for it, deploys its tasks, coordinates its sources, and tells
//! the Dispatcher how it ends.
//!
//! ```text
//!   on_start: open sources (beside the main thread) ─▶ request slots ─▶ deploy ─▶ tasks report ─▶ … ─▶ last task ended: report
//! ```
//!
//! Whatever fails on this way fails the job: [`ExecutionGraph::fail`] says what to cancel, and when all tasks have ended the job starts again
//! from its last checkpoint, or the slots are released and the result is told. Both begin in one place only, [`JobMaster::after_change`].

mod calls;
mod checkpoints;
mod committers;
mod ending;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use tokio::sync::oneshot;

pub use calls::{
    AcknowledgeCheckpoint, AcknowledgeFlush, AwaitJobFlush, CancelExecution, DeclineCheckpoint, ReportWatermark,
    RequestJobMetrics, RequestSplits, StopExecution, StopExecutionWithSavepoint, TaskUpdate, UpdateTask,
};
use checkpoints::SavepointRequest;
use committers::Committers;
use ending::Ending;
use sources::Sources;

use super::checkpoint::{CheckpointCoordinator, CheckpointSettings, JobRestore, JobStart, Owner, RestartStrategy, find_restore};

use super::deployment::{self, SlotPlan, SourceOfVertex};
use super::dispatcher::{Dispatcher, JobStateChanged};
use super::execution_graph::{ExecutionEnd, ExecutionGraph, ExecutionState};
use super::flush::FlushTracker;
use super::job::{JobMetrics, JobState, VertexMetrics};
use super::resource_manager::{RequestSlots, ResourceManager, SlotId};
use super::task_executor::{CancelTasks, RequestTaskMetrics, StopSources, SubmitTasks, TaskExecutor};
use super::watermark_alignment::AlignmentGroups;
use crate::config::{Configuration, IGNORE_UNCLAIMED_STATE, RECOVERY_PATH};
use crate::error::{Error, ErrorKind, Result};
use crate::job_graph::JobGraph;
use crate::rpc::{Answer, CallTable, FencingToken, Gateway, Handle, MainThread, Reply, RpcAddress, RpcEndpoint, RpcService};
use crate::runtime::Environment;
use crate::runtime::checkpoint::{Lock, StateLocation, TaskRestore, TaskState};
use crate::runtime::task::{ExecutionAttemptId, TaskDescriptor, TaskMetricsSnapshot};
use crate::types::{CheckpointId, JobId, VertexId, Watermark};

/// How long a job waits for its slots: other jobs may hold them, and task executors may still be starting.
const SLOT_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a task executor may take to answer: it only puts tasks into its runtime.
const TASK_EXECUTOR_TIMEOUT: Duration = Duration::from_secs(10);

/// What a JobMaster needs of its surroundings.
#[derive(Debug, Clone)]
pub struct JobServices {
    /// For connections to task executors.
    pub service: RpcService,
    /// Who has the slots.
    pub resource_manager: Gateway<ResourceManager>,
    /// Who wants to know how the job ends.
    pub dispatcher: Gateway<Dispatcher>,
    /// The connectors whose enumerators run here.
    pub environment: Arc<Environment>,
}

/// The endpoint.
pub struct JobMaster {
    services: JobServices,
    graph: Arc<JobGraph>,
    token: FencingToken,
    start_ms: i64,
    execution: ExecutionGraph,
    sources: Sources,
    alignment: AlignmentGroups,
    flushes: FlushTracker<Reply<()>>,
    executors: BTreeMap<RpcAddress, Gateway<TaskExecutor>>,
    placement: BTreeMap<ExecutionAttemptId, RpcAddress>,
    /// The tasks that have processed everything, whether or not they have ended.
    processed: BTreeSet<ExecutionAttemptId>,
    slots: Vec<SlotId>,
    told: JobState,
    closing: Option<oneshot::Sender<()>>,
    configuration: Arc<Configuration>,
    /// The how manieth job of its name this is.
    ordinal: u32,
    location: Arc<StateLocation>,
    checkpoints: CheckpointCoordinator,
    /// Tells the timers of one attempt of the job from those of others.
    checkpoint_timer: u64,
    /// A checkpoint was due while another one was under way.
    checkpoint_is_overdue: bool,
    /// Why the last one failed that did.
    last_failed_checkpoint: Option<Error>,
    /// Away while they commit, beside the main thread.
    committers: Option<Committers>,
    savepoint: Option<SavepointRequest>,
    /// The savepoint that the job was stopped with.
    stopped_with: Option<String>,
    /// What the job started from at first.
    initial: JobRestore,
    /// The directories of its earlier lives, which its own first checkpoint supersedes.
    claimed: Vec<String>,
    /// Keep other processes away from these, and from its own.
    locks: Vec<Lock>,
    restart: RestartStrategy,
    /// How often the job has started again.
    restarts: u32,
    /// Why it did the last time.
    last_failure: Option<Error>,
    /// The checkpoint that the current attempt of the job started from.
    started_from: Option<CheckpointId>,
    ending: Ending,
}

impl JobMaster {
    /// The master of a job that was submitted at `start_ms`. Task executors call it with `token`.
    pub fn new(services: JobServices, job: JobId, graph: JobGraph, ordinal: u32, token: FencingToken, start_ms: i64) -> Self {
        let execution = ExecutionGraph::new(job, &graph.name, deployment::vertices(&graph));
        let flushes = FlushTracker::new(sink_attempts(&execution, &graph));
        let configuration = Arc::new(Configuration(graph.configuration.clone()));
        JobMaster {
            services,
            graph: Arc::new(graph),
            token,
            start_ms,
            execution,
            sources: Sources::default(),
            alignment: AlignmentGroups::default(),
            flushes,
            executors: BTreeMap::new(),
            placement: BTreeMap::new(),
            processed: BTreeSet::new(),
            slots: Vec::new(),
            told: JobState::Created,
            closing: None,
            ordinal,
            location: Arc::new(StateLocation::new(job, &configuration)),
            checkpoints: CheckpointCoordinator::new(CheckpointSettings::new(&configuration), CheckpointId(1)),
            checkpoint_timer: 0,
            checkpoint_is_overdue: false,
            last_failed_checkpoint: None,
            committers: None,
            savepoint: None,
            stopped_with: None,
            initial: JobRestore::default(),
            claimed: Vec::new(),
            locks: Vec::new(),
            restart: RestartStrategy::new(&configuration, job.0 as u64),
            restarts: 0,
            last_failure: None,
            started_from: None,
            ending: Ending::default(),
            configuration,
        }
    }

    /// Tries whether checkpoints can be written, and finds the one that the job is to start from, if there is to be one; then starts.
    fn recover(&mut self, main: &MainThread<Self>) {
        let path = self.configuration.text(&RECOVERY_PATH).trim().to_string();
        let writes = self.checkpoints.settings().interval_ms.is_some();
        if path.is_empty() && !(writes && self.location.is_durable()) {
            return self.start(JobRestore::default(), main);
        }
        let (graph, environment, ordinal) = (Arc::clone(&self.graph), Arc::clone(&self.services.environment), self.ordinal);
        let (location, ignore_unclaimed) = (Arc::clone(&self.location), self.configuration.boolean(&IGNORE_UNCLAIMED_STATE));
        main.run_blocking(
            move || {
                let stores = &*environment.stores;
                if writes {
                    location.check(stores)?;
                }
                let mut start = JobStart::default();
                if !path.is_empty() {
                    start = find_restore(stores, &path, &graph, ordinal, ignore_unclaimed)?;
                }
                if writes && location.is_durable() {
                    start.locks.push(Owner::here(&graph, ordinal).hold(stores, &location.job_directory())?);
                }
                Ok(start)
            },
            |master, main, found| match found {
                Ok(JobStart { restore, claimed, locks }) => {
                    if let Some(checkpoint) = restore.checkpoint() {
                        master.checkpoints.number_from(CheckpointId(checkpoint.manifest.checkpoint.0 + 1));
                    }
                    master.initial = restore.clone();
                    master.claimed = claimed;
                    master.locks = locks;
                    master.start(restore, main);
                }
                Err(cause) => master.fail(cause, main),
            },
        );
    }

    /// Opens sources and sinks with the state of a checkpoint, then has the tasks deployed with theirs.
    fn start(&mut self, restore: JobRestore, main: &MainThread<Self>) {
        self.started_from = restore.checkpoint().map(|checkpoint| checkpoint.manifest.checkpoint);
        let (graph, environment) = (Arc::clone(&self.graph), Arc::clone(&self.services.environment));
        let (sources, sinks, job) = (deployment::sources(&graph), deployment::sinks(&graph), self.execution.job());
        let alignment = |source: &SourceOfVertex| source.spec.watermark.as_ref().and_then(|spec| spec.timing.alignment.clone());
        let aligned = sources.iter().filter_map(|source| Some((source.operator, alignment(source)?, source.parallelism)));
        self.alignment = AlignmentGroups::new(aligned);
        if sources.is_empty() && sinks.is_empty() {
            return self.request_slots(restore, main);
        }
        main.run_blocking(
            move || {
                let committers = Committers::open(&sinks, &environment, job, &restore)?;
                Ok((Sources::open(&sources, &environment, &restore.sources())?, committers, restore))
            },
            |master, main, opened| match opened {
                Ok((sources, committers, restore)) => {
                    master.sources = sources;
                    master.committers = Some(committers);
                    master.start_discovery(main);
                    master.request_slots(restore, main);
                }
                Err(cause) => master.fail(cause, main),
            },
        );
    }

    fn request_slots(&mut self, restore: JobRestore, main: &MainThread<Self>) {
        if !self.execution.schedule() {
            return;
        }
        self.after_change(main);
        let plan = SlotPlan::new(&self.graph);
        if !self.executors.is_empty() {
            return self.deploy(&plan, &restore, main);
        }
        let request = RequestSlots { job: self.execution.job(), slots: plan.slots() };
        let slots = self.services.resource_manager.ask(request, Some(SLOT_REQUEST_TIMEOUT));
        main.when(slots, move |master, main, slots| match slots {
            Ok(slots) => master.connect_executors(plan, slots, restore, main),
            Err(cause) if cause.kind() == ErrorKind::Timeout => {
                let message = format!("the job has waited {} s for {} slots", SLOT_REQUEST_TIMEOUT.as_secs(), plan.slots());
                let cause = Error::new(ErrorKind::Timeout, message);
                master.fail(cause.with_hint("wait until other jobs have ended, or add slots"), main);
            }
            Err(cause) => master.fail(cause, main),
        });
    }

    fn connect_executors(&mut self, plan: SlotPlan, slots: Vec<SlotId>, restore: JobRestore, main: &MainThread<Self>) {
        let mut addresses: Vec<RpcAddress> = slots.iter().map(|slot| slot.executor.clone()).collect();
        addresses.dedup();
        let (service, caller) = (self.services.service.clone(), main.address().endpoint.clone());
        let connections = async move {
            let mut executors = BTreeMap::new();
            for address in addresses {
                executors.insert(address.clone(), service.connect::<TaskExecutor>(&caller, &address).await?);
            }
            Ok(executors)
        };
        main.when(connections, move |master, main, executors: Result<_>| match executors {
            Ok(executors) => {
                master.executors = executors;
                master.slots = slots;
                master.deploy(&plan, &restore, main);
            }
            Err(cause) => master.fail(cause, main),
        });
    }

    /// Sends each task executor its tasks, all at once.
    fn deploy(&mut self, plan: &SlotPlan, restore: &JobRestore, main: &MainThread<Self>) {
        let attempts: Vec<ExecutionAttemptId> = self.execution.executions().map(|execution| execution.attempt).collect();
        // What fails from here on was possible once.
        self.execution.set_may_restart(self.configuration.may_restart());
        let mut restores: BTreeMap<VertexId, Vec<Option<TaskRestore>>> =
            self.graph.vertices.iter().map(|vertex| (vertex.id, restore.tasks(&self.graph, vertex))).collect();
        let mut tasks: BTreeMap<RpcAddress, Vec<TaskDescriptor>> = BTreeMap::new();
        for attempt in attempts {
            if self.execution.deploy(attempt) {
                let executor = &self.slots[plan.slot_of(attempt.vertex, attempt.subtask)].executor;
                self.placement.insert(attempt, executor.clone());
                let restored = restores.get_mut(&attempt.vertex).and_then(|tasks| tasks[attempt.subtask.0 as usize].take());
                let descriptor = deployment::task_descriptor(&self.graph, attempt, &self.configuration, self.start_ms, restored);
                tasks.entry(executor.clone()).or_default().push(descriptor);
            }
        }
        for (address, tasks) in tasks {
            let attempts: Vec<ExecutionAttemptId> = tasks.iter().map(|task| task.attempt).collect();
            let call = SubmitTasks { job_master: main.address().clone(), token: self.token, tasks };
            let submitted = self.executors[&address].ask(call, Some(TASK_EXECUTOR_TIMEOUT));
            main.when(submitted, move |master, main, submitted| {
                if let Err(cause) = submitted {
                    for attempt in attempts {
                        master.task_ended(attempt, ExecutionEnd::Failed(cause.clone()), None, None, main);
                    }
                }
            });
        }
        self.start_checkpoints(main);
    }

    fn task_ended(
        &mut self,
        attempt: ExecutionAttemptId,
        end: ExecutionEnd,
        metrics: Option<TaskMetricsSnapshot>,
        last_state: Option<TaskState>,
        main: &MainThread<Self>,
    ) {
        if let (ExecutionEnd::Finished, Some(state), true) = (&end, last_state, self.execution.execution(attempt).is_some()) {
            let acknowledged = self.checkpoints.task_finished(attempt, state);
            self.acknowledged(acknowledged, main);
        }
        let operators = &self.graph.vertex(attempt.vertex).operators;
        operators.iter().for_each(|operator| self.alignment.ended(operator.id, attempt.subtask));
        let cancel = self.execution.ended(attempt, end, metrics);
        let passed = self.flushes.ended(attempt);
        self.answer_flushes(passed);
        self.cancel_tasks(&cancel);
        self.give_up_useless_checkpoint(main);
        self.after_change(main);
        // It may have been the last one that was not known to run.
        self.try_savepoint(main);
    }

    /// Of a job that fails nothing becomes visible any more, not even when all its sinks have ended or have seen the flush.
    fn answer_flushes(&self, passed: Vec<Reply<()>>) {
        let outcome = self.execution.failure().cloned().map_or(Ok(()), Err);
        passed.into_iter().for_each(|reply| reply.send(outcome.clone()));
    }

    fn fail(&mut self, cause: Error, main: &MainThread<Self>) {
        let cancel = self.execution.fail(cause);
        self.cancel_tasks(&cancel);
        self.after_change(main);
    }

    fn cancel(&mut self, main: &MainThread<Self>) {
        let cancel = self.execution.cancel();
        self.cancel_tasks(&cancel);
        self.after_change(main);
    }

    fn cancel_tasks(&self, cancel: &[ExecutionAttemptId]) {
        for (executor, attempts) in self.by_executor(cancel) {
            executor.tell(CancelTasks { attempts });
        }
    }

    /// Executions by the task executor that runs them.
    fn by_executor(&self, attempts: &[ExecutionAttemptId]) -> Vec<(&Gateway<TaskExecutor>, Vec<ExecutionAttemptId>)> {
        let mut by_address: BTreeMap<&RpcAddress, Vec<ExecutionAttemptId>> = BTreeMap::new();
        for attempt in attempts {
            if let Some(address) = self.placement.get(attempt) {
                by_address.entry(address).or_default().push(*attempt);
            }
        }
        by_address.into_iter().map(|(address, attempts)| (&self.executors[address], attempts)).collect()
    }

    /// Tells the Dispatcher how far the job is, if that has changed; has it start again or end when it is time.
    fn after_change(&mut self, main: &MainThread<Self>) {
        main.assert_main_thread();
        let (state, job) = (self.execution.state(), self.execution.job());
        if state.is_terminal() {
            return self.end(main);
        }
        if state != self.told {
            self.told = state;
            self.services.dispatcher.tell(JobStateChanged { job, state });
        }
        if state == JobState::Restarting {
            self.prepare_restart(main);
        }
    }

    /// The counters of the job: those of tasks that have ended, and `live` ones of those that run.
    fn metrics(&self, live: &BTreeMap<ExecutionAttemptId, TaskMetricsSnapshot>) -> JobMetrics {
        let vertices = self.execution.vertices().map(|vertex| {
            let executions = vertex.executions.iter();
            let subtasks = executions.filter_map(|execution| execution.metrics.as_ref().or_else(|| live.get(&execution.attempt)));
            VertexMetrics::aggregate(vertex.vertex, &vertex.name, vertex.executions.len() as u32, subtasks)
        });
        JobMetrics {
            vertices: vertices.collect(),
            restarts: self.restarts,
            last_failure: self.last_failure.as_ref().map(ToString::to_string),
            started_from: self.started_from,
            checkpoints: self.checkpoints.counts(),
            last_failed_checkpoint: self.last_failed_checkpoint.as_ref().map(ToString::to_string),
            at_ms: self.services.environment.clock.now_ms(),
        }
    }
}

impl RpcEndpoint for JobMaster {
    const GATEWAY: &'static str = "JobMaster";

    fn calls(table: CallTable<Self>) -> CallTable<Self> {
        table
            .with::<UpdateTask>()
            .with::<RequestSplits>()
            .with::<ReportWatermark>()
            .with::<AcknowledgeFlush>()
            .with::<AwaitJobFlush>()
            .with::<CancelExecution>()
            .with::<StopExecution>()
            .with::<StopExecutionWithSavepoint>()
            .with::<AcknowledgeCheckpoint>()
            .with::<DeclineCheckpoint>()
            .with::<RequestJobMetrics>()
    }

    fn on_start(&mut self, main: &MainThread<Self>) -> Result<()> {
        self.recover(main);
        Ok(())
    }

    /// Ends once the job has; a job that still runs is cancelled.
    fn on_stop(&mut self, main: &MainThread<Self>) -> BoxFuture<'static, Result<()>> {
        let (closing, closed) = oneshot::channel();
        if !self.has_ended() {
            self.closing = Some(closing);
            self.cancel(main);
        }
        closed.map(|_| Ok(())).boxed()
    }
}

impl Handle<UpdateTask> for JobMaster {
    fn handle(&mut self, call: UpdateTask, main: &MainThread<Self>) -> Answer<()> {
        match call.update {
            TaskUpdate::Running => {
                self.execution.running(call.attempt);
                self.try_savepoint(main);
            }
            TaskUpdate::Processed => {
                self.processed.insert(call.attempt);
                self.give_up_useless_checkpoint(main);
                self.try_savepoint(main);
            }
            TaskUpdate::Ended { end, metrics, last_state } => {
                self.task_ended(call.attempt, end, metrics.map(|metrics| *metrics), last_state, main)
            }
        }
        Ok(()).into()
    }
}

impl Handle<CancelExecution> for JobMaster {
    fn handle(&mut self, _: CancelExecution, main: &MainThread<Self>) -> Answer<()> {
        self.cancel(main);
        Ok(()).into()
    }
}

impl Handle<StopExecution> for JobMaster {
    fn handle(&mut self, _: StopExecution, main: &MainThread<Self>) -> Answer<()> {
        if self.placement.is_empty() {
            // Nothing has been read yet, so there is nothing to finish.
            self.cancel(main);
        }
        let running = self.execution.executions().filter(|execution| !execution.state.is_terminal());
        let attempts: Vec<ExecutionAttemptId> = running.map(|execution| execution.attempt).collect();
        for (executor, attempts) in self.by_executor(&attempts) {
            executor.tell(StopSources { attempts });
        }
        Ok(()).into()
    }
}

impl Handle<ReportWatermark> for JobMaster {
    fn handle(&mut self, call: ReportWatermark, _: &MainThread<Self>) -> Answer<Watermark> {
        let ReportWatermark { attempt, operator, reached } = call;
        match self.execution.execution(attempt) {
            Some(_) => Ok(self.alignment.report(operator, attempt.subtask, reached)).into(),
            // Of an attempt that is over: it is not heard any more.
            None => Ok(Watermark::MAX).into(),
        }
    }
}

impl Handle<AcknowledgeFlush> for JobMaster {
    fn handle(&mut self, call: AcknowledgeFlush, _: &MainThread<Self>) -> Answer<()> {
        let passed = self.flushes.acknowledge(call.attempt, call.flush);
        self.answer_flushes(passed);
        Ok(()).into()
    }
}

impl Handle<AwaitJobFlush> for JobMaster {
    fn handle(&mut self, AwaitJobFlush { flush }: AwaitJobFlush, _: &MainThread<Self>) -> Answer<()> {
        let (reply, answer) = Answer::later();
        let passed = self.flushes.wait(flush, reply);
        self.answer_flushes(passed);
        answer
    }
}

impl Handle<RequestJobMetrics> for JobMaster {
    fn handle(&mut self, _: RequestJobMetrics, main: &MainThread<Self>) -> Answer<JobMetrics> {
        let job = self.execution.job();
        let ask = |executor: &Gateway<TaskExecutor>| executor.ask(RequestTaskMetrics { job }, Some(TASK_EXECUTOR_TIMEOUT));
        let asked = futures::future::try_join_all(self.executors.values().map(ask).collect::<Vec<_>>());
        let main = main.clone();
        Answer::of_future(async move {
            let live = asked.await?.into_iter().flatten().collect();
            main.call_async(move |master, _| Ok(master.metrics(&live))).await
        })
    }
}

/// The attempts of a job in which a flush ends.
fn sink_attempts(execution: &ExecutionGraph, graph: &JobGraph) -> BTreeSet<ExecutionAttemptId> {
    let attempts = execution.executions().map(|execution| execution.attempt);
    attempts.filter(|attempt| deployment::has_sink(graph, attempt.vertex)).collect()
}

/// The error for a job that has no running master any more.
pub(super) fn not_running(job: JobId, state: JobState) -> Error {
    Error::new(ErrorKind::NotRunning, format!("job {job} is {state}"))
}

/// Whether an execution still wants what is sent to it.
fn is_live(state: ExecutionState) -> bool {
    matches!(state, ExecutionState::Deploying | ExecutionState::Running)
}
