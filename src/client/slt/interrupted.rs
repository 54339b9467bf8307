//! Jobs that are stopped with a savepoint in the middle of their input and go on from it, with more subtasks, on a new cluster.
//!
//! A job that ends by itself is stopped when all its sources have stopped half-way ([`Pauses`]). One that follows memory tables is stopped
//! between two records, when a flush has passed, so that it is known what it had seen. The rows of a SELECT before the savepoint are kept,
//! and those after it follow them.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use tokio::select;

use super::pause::{Pauses, STOPS_HALF_WAY};
use crate::client::Session;
use crate::client::engine::Engine;
use crate::client::flush::FollowingJob;
use crate::client::job::JobHandle;
use crate::cluster::{JobMetrics, JobResult, StopWithSavepoint};
use crate::config::{BATCH_ROWS, RECOVERY_PATH, SAVEPOINT_DIR};
use crate::error::{Error, ErrorKind, Result};
use crate::job_graph;
use crate::runtime::ResultStream;
use crate::stream_graph::{OperatorSpec, StreamGraph};
use crate::types::{Batch, JobId};

/// Subtasks before a savepoint, and after it; jobs that are interrupted again go from one to the other.
pub const BEFORE: u32 = 2;
pub const AFTER: u32 = 3;

/// Rows of the batches that sources give: few, so that there is a middle.
const BATCH_ROWS_BEFORE: u32 = 2;

/// How often a job that follows tables is interrupted.
const INTERRUPTIONS_MAX: u32 = 3;

/// What a session needs to interrupt its jobs, and whether it has.
#[derive(Debug, Default)]
pub struct Interruptions {
    /// Where sources stop.
    pub pauses: Arc<Pauses>,
    /// A job went on from a savepoint that had state of operators.
    had_state: AtomicBool,
    /// Rows came before a savepoint, and after one.
    had_rows: AtomicBool,
    had_rows_after: AtomicBool,
    /// The graphs of jobs that follow tables, and how often they were interrupted.
    following: Mutex<Vec<(JobId, StreamGraph, u32)>>,
    /// Jobs that went on from savepoints, in this cluster.
    restored: Mutex<Vec<JobHandle>>,
}

impl Interruptions {
    /// Whether there was state, and rows before and after.
    pub async fn showed(&self) -> Result<bool> {
        self.look_at_restored().await?;
        Ok(self.had_state.load(Relaxed) && self.had_rows.load(Relaxed) && self.had_rows_after.load(Relaxed))
    }

    fn restored(&self, job: &JobHandle) {
        self.restored.lock().expect("no holder of this lock panics").push(job.clone());
    }

    /// Sees whether the jobs that went on from savepoints had rows: as long as their cluster knows.
    async fn look_at_restored(&self) -> Result<()> {
        let jobs = std::mem::take(&mut *self.restored.lock().expect("no holder of this lock panics"));
        for job in jobs {
            self.had_rows_after.fetch_or(has_rows(&job.metrics().await?), Relaxed);
        }
        Ok(())
    }

    fn before(&self, metrics: &JobMetrics) {
        self.had_state.fetch_or(metrics.vertices.iter().any(|vertex| vertex.total.state_bytes > 0), Relaxed);
        self.had_rows.fetch_or(has_rows(metrics), Relaxed);
    }
}

fn has_rows(metrics: &JobMetrics) -> bool {
    metrics.vertices.iter().flat_map(|vertex| &vertex.total.operators).any(|operator| operator.rows_out > 0)
}

/// A job with the rows that it has collected so far: what is left of both is the session's.
pub struct Interrupted {
    /// The job that goes on, or that has ended before it could be interrupted.
    pub job: JobHandle,
    /// All rows, for a SELECT.
    pub rows: Option<ResultStream>,
}

/// Runs a job that ends by itself and interrupts it.
pub async fn run(session: &Session, graph: &StreamGraph, rows: Option<ResultStream>) -> Result<Interrupted> {
    let engine = &session.engine;
    let interruptions = engine.interruptions.as_ref().expect("asked of sessions that interrupt");
    let mut first = with_savepoints(graph);
    first.configuration.insert(STOPS_HALF_WAY.to_string(), "true".to_string());
    first.configuration.insert(BATCH_ROWS.key.to_string(), BATCH_ROWS_BEFORE.to_string());
    let is_source = |spec: &OperatorSpec| match spec {
        OperatorSpec::Source(_) => true,
        OperatorSpec::Values { rows, .. } => !rows.is_empty(),
        _ => false,
    };
    let sources = first.nodes.iter().filter(|node| is_source(&node.spec)).map(|node| node.parallelism as usize).sum();
    let job = engine.submit(job_graph::generate(&first)?, true).await?;
    let mut collected = Collected { rows, batches: Vec::new() };
    let stopped = {
        let is_asked = AtomicBool::new(false);
        let mut ended = pin!(job.result());
        let mut paused = pin!(interruptions.pauses.all_stopped(job.id, sources));
        let mut savepoint = pin!(async {
            paused.as_mut().await;
            is_asked.store(true, Relaxed);
            let stop = StopWithSavepoint { job: job.id, drain: false };
            job.dispatcher.ask(stop, None).await
        });
        let mut directory = None;
        loop {
            select! {
                biased;
                _ = collected.next() => {}
                stopped = &mut savepoint, if directory.is_none() => {
                    // Its sources have stopped: of a job that goes on without a savepoint nothing would come any more.
                    if let Err(error) = &stopped
                        && error.kind() != ErrorKind::NotRunning
                    {
                        job.cancel_in_background();
                        return Err(error.clone());
                    }
                    directory = Some(stopped);
                }
                result = &mut ended => {
                    // The news of the end may have overtaken that of the savepoint.
                    let directory = if directory.is_none() && is_asked.load(Relaxed) { Some(savepoint.await) } else { directory };
                    break (directory, result?);
                }
            }
        }
    };
    let (directory, result) = stopped;
    collected.finish(&result).await;
    let directory = match directory {
        Some(Ok(directory)) if result.error.is_none() => directory,
        // It had read all already, or it fails of something.
        _ => return Ok(Interrupted { job, rows: collected.into_stream(engine, &result) }),
    };
    interruptions.before(&result.metrics);
    restart_cluster(session).await?;
    let mut second = rescaled(graph, AFTER);
    second.configuration.insert(RECOVERY_PATH.key.to_string(), directory);
    let rows = collected.rows.is_some().then(|| {
        let (id, stream) = engine.new_result();
        second.nodes.iter_mut().for_each(|node| {
            if let OperatorSpec::Collect { result, .. } = &mut node.spec {
                *result = id;
            }
        });
        stream.put_before(collected.batches);
        stream
    });
    let job = engine.submit(job_graph::generate(&second)?, true).await?;
    interruptions.restored(&job);
    Ok(Interrupted { job, rows })
}

/// A job that follows tables runs: it will be interrupted between records.
pub fn follow(interruptions: &Interruptions, job: &JobHandle, graph: &StreamGraph) {
    let mut following = interruptions.following.lock().expect("no holder of this lock panics");
    following.push((job.id, graph.clone(), 0));
}

/// Interrupts the jobs that follow tables, when a flush has passed them.
pub async fn interrupt_following(session: &Session) -> Result<()> {
    let Some(interruptions) = &session.engine.interruptions else { return Ok(()) };
    let mut stopped: Vec<(FollowingJob, StreamGraph, u32, String)> = Vec::new();
    for job in session.following_jobs() {
        let known = {
            let mut following = interruptions.following.lock().expect("no holder of this lock panics");
            let at = following.iter().position(|(id, _, times)| *id == job.handle.id && *times < INTERRUPTIONS_MAX);
            at.map(|at| following.remove(at))
        };
        let Some((id, graph, times)) = known else { continue };
        let stop = StopWithSavepoint { job: id, drain: false };
        match job.handle.dispatcher.ask(stop, None).await {
            Ok(directory) => {
                let result = job.handle.result().await?;
                interruptions.before(&result.metrics);
                session.forget_job(id);
                stopped.push((job, graph, times + 1, directory));
            }
            // It ends by itself.
            Err(error) if error.kind() == ErrorKind::NotRunning => {}
            Err(error) => return Err(error),
        }
    }
    if stopped.is_empty() {
        return Ok(());
    }
    restart_cluster(session).await?;
    for (job, graph, times, directory) in stopped {
        let mut next = rescaled(&graph, if times % 2 == 1 { AFTER } else { BEFORE });
        next.configuration.insert(RECOVERY_PATH.key.to_string(), directory);
        let handle = session.engine.submit(job_graph::generate(&next)?, job.handle.bounded).await?;
        interruptions.restored(&handle);
        interruptions.following.lock().expect("no holder of this lock panics").push((handle.id, graph, times));
        session.add_following(FollowingJob { handle, tables: job.tables });
    }
    // Whoever looks at the jobs next sees them run.
    session.flush().await
}

/// A graph whose job can be stopped with a savepoint.
pub fn with_savepoints(graph: &StreamGraph) -> StreamGraph {
    let mut graph = graph.clone();
    graph.configuration.insert(SAVEPOINT_DIR.key.to_string(), "memory://savepoints".to_string());
    graph
}

/// A graph with other numbers of subtasks, where they are those of before.
fn rescaled(graph: &StreamGraph, subtasks: u32) -> StreamGraph {
    let mut graph = with_savepoints(graph);
    let scaled = graph.nodes.iter_mut().filter(|node| node.parallelism == BEFORE && node.max_parallelism >= subtasks);
    scaled.for_each(|node| node.parallelism = subtasks);
    graph
}

/// Throws the cluster away, unless other jobs run on it, or have failed and are still to be asked why: nothing of a job is left in it.
async fn restart_cluster(session: &Session) -> Result<()> {
    let runs = session.jobs().await?.iter().any(|job| !job.state.is_terminal());
    if !runs && session.following_jobs().is_empty() {
        if let Some(interruptions) = &session.engine.interruptions {
            interruptions.look_at_restored().await?;
        }
        session.engine.shutdown().await;
    }
    Ok(())
}

/// The rows that a job has collected.
struct Collected {
    rows: Option<ResultStream>,
    batches: Vec<Batch>,
}

impl Collected {
    /// Takes the next rows; pends for ever when there are none.
    async fn next(&mut self) {
        let next = match &mut self.rows {
            Some(rows) => rows.next().await,
            None => None,
        };
        match next {
            Some(Ok(batch)) => self.batches.push(batch),
            // The end of the job says more.
            Some(Err(_)) | None => futures::future::pending().await,
        }
    }

    /// Takes what is left when the job has ended.
    async fn finish(&mut self, result: &JobResult) {
        let Some(rows) = &mut self.rows else { return };
        (rows.closer())(result.error.clone().map_or(Ok(()), Err));
        while let Some(Ok(batch)) = rows.next().await {
            self.batches.push(batch);
        }
    }

    /// As if they had just been collected.
    fn into_stream(self, engine: &Engine, result: &JobResult) -> Option<ResultStream> {
        self.rows.as_ref()?;
        let (_, stream) = engine.new_result();
        stream.put_before(self.batches);
        let ended: Option<Error> = result.error.clone();
        (stream.closer())(ended.map_or(Ok(()), Err));
        Some(stream)
    }
}
