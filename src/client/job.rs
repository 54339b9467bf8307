//! A job as a session holds it: its id, its progress, its end.

use std::fmt;
use std::time::Duration;

use super::watermarks::WatermarkReport;
use crate::cluster::{
    AwaitFlush, AwaitResult, CancelJob, Dispatcher, JobMetrics, JobResult, RequestJobInfo, RequestMetrics, StopJob,
    StopWithSavepoint,
};
use crate::error::{Error, ErrorKind, Result};
use crate::rpc::Gateway;
use crate::runtime::FlushId;
use crate::types::JobId;

/// How long the session waits for an answer of the Dispatcher that needs no work.
pub(super) const ASK_TIMEOUT: Option<Duration> = Some(Duration::from_secs(30));

/// A job as a session holds it. Dropping it leaves the job running.
#[derive(Clone)]
pub struct JobHandle {
    /// Its id.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Whether all its sources are bounded: then it ends by itself.
    pub bounded: bool,
    pub(super) dispatcher: Gateway<Dispatcher>,
}

impl fmt::Debug for JobHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobHandle({} {})", self.id, self.name)
    }
}

impl JobHandle {
    /// Waits until the job has ended; a failed or cancelled job is an error.
    pub async fn wait(&self) -> Result<JobMetrics> {
        self.result().await?.into_result()
    }

    /// Waits until the job has ended, and tells how.
    pub async fn result(&self) -> Result<JobResult> {
        self.dispatcher.ask(AwaitResult { job: self.id }, None).await
    }

    /// Its counters now.
    pub async fn metrics(&self) -> Result<JobMetrics> {
        match self.dispatcher.ask(RequestMetrics { job: self.id }, ASK_TIMEOUT).await {
            // It ended while it was asked.
            Err(error) if error.kind() == ErrorKind::NotRunning => Ok(self.result().await?.metrics),
            metrics => metrics,
        }
    }

    /// How far it is in event time: each source with its splits, each operator, and what holds event time back.
    pub async fn watermarks(&self) -> Result<WatermarkReport> {
        let ended = match self.dispatcher.ask(RequestJobInfo { job: self.id }, ASK_TIMEOUT).await {
            Ok(info) => info.state.is_terminal(),
            Err(error) => return Err(error),
        };
        Ok(WatermarkReport::of(&self.metrics().await?, ended))
    }

    /// Cancels it and waits until it has stopped. A job that has ended already stays as it is.
    pub async fn cancel(&self) -> Result<()> {
        // Ended: by itself, long ago and forgotten, or with its session.
        let ended = |error: &Error| matches!(error.kind(), ErrorKind::NotRunning | ErrorKind::UndefinedObject);
        match self.dispatcher.ask(CancelJob { job: self.id }, ASK_TIMEOUT).await {
            Ok(()) => match self.result().await {
                Err(error) if !ended(&error) => Err(error),
                _ => Ok(()),
            },
            Err(error) if ended(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Has its sources end, as if all had been read, and waits until what they gave has gone through. A job whose tasks have not
    /// started yet is cancelled: the result says so.
    pub async fn stop(&self) -> Result<JobResult> {
        self.dispatcher.ask(StopJob { job: self.id }, ASK_TIMEOUT).await?;
        self.result().await
    }

    /// Stops it with a savepoint and waits until it has ended: gives the savepoint's directory. Its sources stop, and nothing comes
    /// behind what the savepoint has; `drain`: event time goes to its end before. The job must have a directory for savepoints
    /// (`execution.checkpointing.savepoint-dir`).
    pub async fn stop_with_savepoint(&self, drain: bool) -> Result<String> {
        let directory = self.dispatcher.ask(StopWithSavepoint { job: self.id, drain }, None).await?;
        self.wait().await?;
        Ok(directory)
    }

    /// Cancels it without waiting.
    pub fn cancel_in_background(&self) {
        self.dispatcher.tell(CancelJob { job: self.id });
    }

    /// Waits until all its sinks have made visible what came before a flush (or the job has ended).
    pub(super) async fn await_flush(&self, flush: FlushId) -> Result<()> {
        match self.dispatcher.ask(AwaitFlush { job: self.id, flush }, ASK_TIMEOUT).await {
            Err(error) if error.kind() == ErrorKind::NotRunning => self.result().await?.error.map_or(Ok(()), Err),
            passed => passed,
        }
    }
}
