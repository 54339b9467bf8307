//! What others hold of a running task: cancel it, see its status, read its metrics; and where a task gets its splits from.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::{ExecutionAttemptId, Mail, Mailbox, TaskMetrics, TaskMetricsSnapshot};
use crate::error::{Error, Result};
use crate::runtime::{FlushId, Split};
use crate::types::{OperatorId, SubtaskIndex, Watermark};

/// How far a task is.
#[derive(Debug, Clone)]
pub enum TaskStatus {
    /// Built, its operators not yet open.
    Created,
    /// Running.
    Running,
    /// All its input was processed and its output handed on.
    Finished,
    /// Cancelled on request.
    Canceled,
    /// Failed.
    Failed(Error),
}

impl TaskStatus {
    /// Whether it will not change any more.
    pub fn is_terminal(&self) -> bool {
        matches!(self, TaskStatus::Finished | TaskStatus::Canceled | TaskStatus::Failed(_))
    }
}

/// What others hold of a task. Clones are the same handle.
#[derive(Debug, Clone)]
pub struct TaskHandle {
    attempt: ExecutionAttemptId,
    mailbox: Mailbox,
    status: watch::Receiver<TaskStatus>,
    flushed: watch::Receiver<Option<FlushId>>,
    metrics: Arc<TaskMetrics>,
}

impl TaskHandle {
    /// The handle of a task: what its builder gives out.
    pub fn new(
        attempt: ExecutionAttemptId,
        mailbox: Mailbox,
        status: watch::Receiver<TaskStatus>,
        flushed: watch::Receiver<Option<FlushId>>,
        metrics: Arc<TaskMetrics>,
    ) -> Self {
        TaskHandle { attempt, mailbox, status, flushed, metrics }
    }

    /// Which attempt it is.
    pub fn attempt(&self) -> ExecutionAttemptId {
        self.attempt
    }

    /// Asks it to stop as soon as possible. A task that has ended does not mind.
    pub fn cancel(&self) {
        self.mailbox.send(Mail::Cancel);
    }

    /// Its mailbox.
    pub fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// How far it is.
    pub fn status(&self) -> TaskStatus {
        self.status.borrow().clone()
    }

    /// How far it is, to be watched. The sender drops with the task.
    pub fn watch(&self) -> watch::Receiver<TaskStatus> {
        self.status.clone()
    }

    /// The last flush that has passed its whole chain, sinks included, to be watched.
    pub fn watch_flushes(&self) -> watch::Receiver<Option<FlushId>> {
        self.flushed.clone()
    }

    /// Waits for its end. A task that was dropped before its end counts as cancelled.
    pub async fn ended(&self) -> TaskStatus {
        let mut status = self.status.clone();
        match status.wait_for(TaskStatus::is_terminal).await {
            Ok(status) => status.clone(),
            Err(_) => TaskStatus::Canceled,
        }
    }

    /// Its counters, now.
    pub fn metrics(&self) -> TaskMetricsSnapshot {
        self.metrics.snapshot()
    }
}

/// Splits for a reader. They may overtake each other on their way; the reader takes them in the order in which they were given, so that a
/// number says which of them it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitAssignment {
    /// How many splits the reader was given before these, since its task started.
    pub before: u64,
    /// The splits.
    pub splits: Vec<Split>,
}

/// Where the sources of a task get their splits from: the enumerators in the JobMaster.
pub trait SplitProvider: Send + Sync {
    /// The next splits for this reader; none = no more come. Asked once at the start and again whenever the reader has none left.
    /// Pends while there are none yet. For enumerators that assign all at the start the first answer is all splits of this
    /// subtask; those found later come as [`Mail::AddSplits`] or as the answer to the next request.
    fn request_splits(&self, operator: OperatorId, subtask: SubtaskIndex) -> BoxFuture<'static, Result<Option<SplitAssignment>>>;

    /// A source of an alignment group tells how far it is in event time (none = nobody need wait for it); how far its splits may go.
    fn align(
        &self,
        _operator: OperatorId,
        _subtask: SubtaskIndex,
        _reached: Option<Watermark>,
    ) -> BoxFuture<'static, Result<Watermark>> {
        Box::pin(std::future::ready(Ok(Watermark::MAX)))
    }
}
