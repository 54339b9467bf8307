//! The Dispatcher: takes jobs, starts a JobMaster for each, and remembers how they ended. The only door to the runtime.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use serde::{Deserialize, Serialize};

use super::job::{JobInfo, JobMetrics, JobResult, JobState};
use super::job_master::{
    AwaitJobFlush, CancelExecution, JobMaster, JobServices, RequestJobMetrics, StopExecution, StopExecutionWithSavepoint,
    not_running,
};
use super::resource_manager::{ReleaseSlots, ResourceManager};
use crate::clock::random_id;
use crate::error::{Error, ErrorKind, Result};
use crate::job_graph::JobGraph;
use crate::rpc::{
    Answer, CallTable, FencingToken, Gateway, Handle, MainThread, Reply, RpcCall, RpcEndpoint, RpcServer, RpcService, Termination,
};
use crate::runtime::{Environment, FlushId};
use crate::types::JobId;

/// How many ended jobs are remembered: as many as a user may want to look back at, few enough to never matter.
const ENDED_JOBS_MAX: usize = 100;

/// Runs a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SubmitJob {
    /// What to run.
    pub graph: JobGraph,
}

/// All jobs that run, and the last ones that have ended, in the order of submission.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ListJobs;

/// How far a job is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RequestJobInfo {
    /// The job.
    pub job: JobId,
}

/// Cancels a job: it stops as soon as possible. Answered at once; [`AwaitResult`] says when it has.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct CancelJob {
    /// The job.
    pub job: JobId,
}

/// Stops a job: its sources end, and what was read is processed to the end. Answered at once.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct StopJob {
    /// The job.
    pub job: JobId,
}

/// Stops a job with a savepoint: its sources stop, and nothing comes behind what the savepoint has. Answered with its directory when it is
/// complete; [`AwaitResult`] says when the job has ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct StopWithSavepoint {
    /// The job.
    pub job: JobId,
    /// Whether event time goes to its end before, so that everything that waits for it comes out.
    pub drain: bool,
}

/// Answered when a job has ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct AwaitResult {
    /// The job.
    pub job: JobId,
}

/// The counters of a job, now or at its end.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RequestMetrics {
    /// The job.
    pub job: JobId,
}

/// Answered when all sinks of a job have made visible what came before a flush, or the job has ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct AwaitFlush {
    /// The job.
    pub job: JobId,
    /// The flush.
    pub flush: FlushId,
}

/// A JobMaster tells how far its job is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct JobStateChanged {
    /// The job.
    pub job: JobId,
    /// How far.
    pub state: JobState,
}

/// A JobMaster tells how its job ended: its last words.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobEnded {
    /// The job.
    pub job: JobId,
    /// How.
    pub result: JobResult,
}

crate::rpc_call!(
    SubmitJob => JobId,
    ListJobs => Vec<JobInfo>,
    RequestJobInfo => JobInfo,
    CancelJob => (),
    StopJob => (),
    StopWithSavepoint => String,
    AwaitResult => JobResult,
    RequestMetrics => JobMetrics,
    AwaitFlush => (),
    JobStateChanged => (),
    JobEnded => (),
);

/// The endpoint.
pub struct Dispatcher {
    service: RpcService,
    resource_manager: Gateway<ResourceManager>,
    environment: Arc<Environment>,
    token: FencingToken,
    jobs: BTreeMap<JobId, Job>,
    /// Jobs in the order of submission.
    order: Vec<JobId>,
    /// How many jobs of each name were submitted.
    names: BTreeMap<String, u32>,
    closing: bool,
}

struct Job {
    info: JobInfo,
    master: RpcServer<JobMaster>,
    gateway: Gateway<JobMaster>,
    result: Option<JobResult>,
    waiting: Vec<Reply<JobResult>>,
}

impl Dispatcher {
    /// Without any job. JobMasters call it with `token`.
    pub fn new(
        service: RpcService,
        resource_manager: Gateway<ResourceManager>,
        environment: Arc<Environment>,
        token: FencingToken,
    ) -> Self {
        Dispatcher {
            service,
            resource_manager,
            environment,
            token,
            jobs: BTreeMap::new(),
            order: Vec::new(),
            names: BTreeMap::new(),
            closing: false,
        }
    }

    fn submit(&mut self, graph: JobGraph, main: &MainThread<Self>) -> Result<JobId> {
        if self.closing {
            return Err(Error::new(ErrorKind::NotRunning, "the dispatcher is shutting down, it takes no more jobs"));
        }
        let (job, token) = (JobId(random_id()), FencingToken(random_id()));
        let start_ms = main.clock().now_ms();
        let services = JobServices {
            service: self.service.clone(),
            resource_manager: self.resource_manager.clone(),
            dispatcher: main.gateway(&format!("job master of {job}"), Some(self.token)),
            environment: Arc::clone(&self.environment),
        };
        let info = JobInfo { id: job, name: graph.name.clone(), state: JobState::Created, start_ms, end_ms: None };
        let ordinal = self.names.entry(graph.name.clone()).or_default();
        let master = JobMaster::new(services, job, graph, *ordinal, token, start_ms);
        *ordinal += 1;
        let master = self.service.add_server(&format!("jobmaster-{job}"), master, Some(token))?;
        master.start();
        main.when(master.termination().wait(), move |dispatcher, main, outcome| {
            if let Err(cause) = outcome {
                dispatcher.master_lost(job, cause, main);
            }
        });
        let gateway = master.gateway("dispatcher");
        self.jobs.insert(job, Job { info, master, gateway, result: None, waiting: Vec::new() });
        self.order.push(job);
        Ok(job)
    }

    fn job(&self, job: JobId) -> Result<&Job> {
        self.jobs.get(&job).ok_or_else(|| unknown(job))
    }

    fn job_ended(&mut self, job: JobId, result: JobResult, main: &MainThread<Self>) {
        let Some(entry) = self.jobs.get_mut(&job).filter(|entry| entry.result.is_none()) else { return };
        entry.info.state = result.state;
        entry.info.end_ms = Some(main.clock().now_ms());
        entry.waiting.drain(..).for_each(|reply| reply.send(Ok(result.clone())));
        entry.result = Some(result);
        drop(entry.master.terminate());
        self.forget_oldest();
    }

    /// The JobMaster itself has failed: nobody else can say how the job ended, or stop its tasks.
    fn master_lost(&mut self, job: JobId, cause: Error, main: &MainThread<Self>) {
        self.resource_manager.tell(ReleaseSlots { job });
        let result = JobResult { state: JobState::Failed, error: Some(cause), metrics: JobMetrics::default(), checkpoint: None };
        self.job_ended(job, result, main);
    }

    /// An endpoint has failed that all jobs need: their masters cannot learn any more how their tasks end.
    pub(super) fn cluster_lost(&mut self, cause: &Error, main: &MainThread<Self>) {
        self.closing = true;
        let running: Vec<JobId> = self.jobs.iter().filter(|(_, job)| job.result.is_none()).map(|(id, _)| *id).collect();
        running.into_iter().for_each(|job| self.master_lost(job, cause.clone(), main));
    }

    fn forget_oldest(&mut self) {
        let jobs = &self.jobs;
        let has_ended = |job: &JobId| jobs.get(job).is_some_and(|entry| entry.result.is_some());
        let ended: Vec<JobId> = self.order.iter().copied().filter(has_ended).collect();
        for job in ended.iter().take(ended.len().saturating_sub(ENDED_JOBS_MAX)) {
            self.jobs.remove(job);
            self.order.retain(|kept| kept != job);
        }
    }

    /// Passes a call on to the master of a job that runs; for one that has ended, gives what `ended` makes of its result.
    fn forward<C: RpcCall>(&self, job: JobId, call: C, ended: impl FnOnce(&JobResult) -> Result<C::Answer>) -> Answer<C::Answer>
    where
        JobMaster: Handle<C>,
    {
        match self.job(job) {
            Err(error) => Err(error).into(),
            Ok(Job { result: Some(result), .. }) => ended(result).into(),
            Ok(running) => Answer::of_future(running.gateway.ask(call, None)),
        }
    }
}

fn unknown(job: JobId) -> Error {
    Error::new(ErrorKind::UndefinedObject, format!("job {job} not found")).with_hint("SHOW JOBS lists all jobs")
}

impl RpcEndpoint for Dispatcher {
    const GATEWAY: &'static str = "Dispatcher";

    fn calls(table: CallTable<Self>) -> CallTable<Self> {
        table
            .with::<SubmitJob>()
            .with::<ListJobs>()
            .with::<RequestJobInfo>()
            .with::<CancelJob>()
            .with::<StopJob>()
            .with::<StopWithSavepoint>()
            .with::<AwaitResult>()
            .with::<RequestMetrics>()
            .with::<AwaitFlush>()
            .with::<JobStateChanged>()
            .with::<JobEnded>()
    }

    /// Cancels all jobs and waits for their end.
    fn on_stop(&mut self, _: &MainThread<Self>) -> BoxFuture<'static, Result<()>> {
        self.closing = true;
        let ends: Vec<Termination> = self.jobs.values().map(|job| job.master.terminate()).collect();
        futures::future::join_all(ends.into_iter().map(Termination::wait)).map(|_| Ok(())).boxed()
    }
}

impl Handle<SubmitJob> for Dispatcher {
    fn handle(&mut self, SubmitJob { graph }: SubmitJob, main: &MainThread<Self>) -> Answer<JobId> {
        self.submit(graph, main).into()
    }
}

impl Handle<ListJobs> for Dispatcher {
    fn handle(&mut self, _: ListJobs, _: &MainThread<Self>) -> Answer<Vec<JobInfo>> {
        Ok(self.order.iter().filter_map(|job| self.jobs.get(job)).map(|job| job.info.clone()).collect()).into()
    }
}

impl Handle<RequestJobInfo> for Dispatcher {
    fn handle(&mut self, RequestJobInfo { job }: RequestJobInfo, _: &MainThread<Self>) -> Answer<JobInfo> {
        self.job(job).map(|job| job.info.clone()).into()
    }
}

impl Handle<CancelJob> for Dispatcher {
    fn handle(&mut self, CancelJob { job }: CancelJob, _: &MainThread<Self>) -> Answer<()> {
        self.forward(job, CancelExecution, |result| Err(not_running(job, result.state)))
    }
}

impl Handle<StopJob> for Dispatcher {
    fn handle(&mut self, StopJob { job }: StopJob, _: &MainThread<Self>) -> Answer<()> {
        self.forward(job, StopExecution, |result| Err(not_running(job, result.state)))
    }
}

impl Handle<StopWithSavepoint> for Dispatcher {
    fn handle(&mut self, StopWithSavepoint { job, drain }: StopWithSavepoint, _: &MainThread<Self>) -> Answer<String> {
        self.forward(job, StopExecutionWithSavepoint { drain }, |result| Err(not_running(job, result.state)))
    }
}

impl Handle<AwaitResult> for Dispatcher {
    fn handle(&mut self, AwaitResult { job }: AwaitResult, _: &MainThread<Self>) -> Answer<JobResult> {
        match self.jobs.get_mut(&job) {
            None => Err(unknown(job)).into(),
            Some(Job { result: Some(result), .. }) => Ok(result.clone()).into(),
            Some(running) => {
                let (reply, answer) = Answer::later();
                running.waiting.push(reply);
                answer
            }
        }
    }
}

impl Handle<RequestMetrics> for Dispatcher {
    fn handle(&mut self, RequestMetrics { job }: RequestMetrics, _: &MainThread<Self>) -> Answer<JobMetrics> {
        self.forward(job, RequestJobMetrics, |result| Ok(result.metrics.clone()))
    }
}

impl Handle<AwaitFlush> for Dispatcher {
    fn handle(&mut self, AwaitFlush { job, flush }: AwaitFlush, _: &MainThread<Self>) -> Answer<()> {
        self.forward(job, AwaitJobFlush { flush }, |result| result.error.clone().map_or(Ok(()), Err))
    }
}

impl Handle<JobStateChanged> for Dispatcher {
    fn handle(&mut self, JobStateChanged { job, state }: JobStateChanged, _: &MainThread<Self>) -> Answer<()> {
        if let Some(job) = self.jobs.get_mut(&job).filter(|job| job.result.is_none()) {
            job.info.state = state;
        }
        Ok(()).into()
    }
}

impl Handle<JobEnded> for Dispatcher {
    fn handle(&mut self, JobEnded { job, result }: JobEnded, main: &MainThread<Self>) -> Answer<()> {
        self.job_ended(job, result, main);
        Ok(()).into()
    }
}
