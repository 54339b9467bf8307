//! The calls of a JobMaster.

use serde::{Deserialize, Serialize};

use crate::cluster::{ExecutionEnd, JobMetrics};
use crate::runtime::task::{ExecutionAttemptId, TaskMetricsSnapshot};
use crate::runtime::{FlushId, Split};
use crate::types::OperatorId;

/// A task executor tells how far a task is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UpdateTask {
    /// The task.
    pub attempt: ExecutionAttemptId,
    /// How far.
    pub update: TaskUpdate,
}

/// News of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum TaskUpdate {
    /// It runs.
    Running,
    /// It has ended; told once.
    Ended {
        /// How.
        end: ExecutionEnd,
        /// Its last counters.
        metrics: Option<TaskMetricsSnapshot>,
    },
}

/// A reader asks for splits; answered when there are some, none = no more come.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RequestSplits {
    /// The task.
    pub attempt: ExecutionAttemptId,
    /// Its source.
    pub operator: OperatorId,
}

/// All sinks of a task have made visible what came before a flush.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct AcknowledgeFlush {
    /// The task.
    pub attempt: ExecutionAttemptId,
    /// The flush.
    pub flush: FlushId,
}

/// Answered when a flush has passed all sinks of the job.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct AwaitJobFlush {
    /// The flush.
    pub flush: FlushId,
}

/// Cancels the job: it stops as soon as possible.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct CancelExecution;

/// Stops the job: its sources end, what was read is processed to the end.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct StopExecution;

/// The counters of the job, now.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RequestJobMetrics;

crate::rpc_call!(
    UpdateTask => (),
    RequestSplits => Option<Vec<Split>>,
    AcknowledgeFlush => (),
    AwaitJobFlush => (),
    CancelExecution => (),
    StopExecution => (),
    RequestJobMetrics => JobMetrics,
);
