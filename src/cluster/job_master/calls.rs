//! The calls of a JobMaster.

use serde::{Deserialize, Serialize};

use crate::cluster::{ExecutionEnd, JobMetrics};
use crate::error::Error;
use crate::runtime::FlushId;
use crate::runtime::checkpoint::TaskState;
use crate::runtime::task::{ExecutionAttemptId, SplitAssignment, TaskMetricsSnapshot};
use crate::types::{CheckpointId, OperatorId, Watermark};

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
    /// It has processed everything, and waits for its snapshots to be written. Its end follows.
    Processed,
    /// It has ended; told once.
    Ended {
        /// How.
        end: ExecutionEnd,
        /// Its last counters.
        metrics: Option<Box<TaskMetricsSnapshot>>,
        /// If it has finished and checkpoints are taken: its last state.
        last_state: Option<TaskState>,
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

/// A source of an alignment group tells how far it is in event time; answered with how far its splits may go.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ReportWatermark {
    /// The task.
    pub attempt: ExecutionAttemptId,
    /// Its source.
    pub operator: OperatorId,
    /// The least watermark of its splits; none = nobody need wait for it.
    pub reached: Option<Watermark>,
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

/// Stops the job with a savepoint; answered with its directory when it is complete.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct StopExecutionWithSavepoint {
    /// Whether event time goes to its end before.
    pub drain: bool,
}

/// A task has written its state at the barrier of a checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AcknowledgeCheckpoint {
    /// The task.
    pub attempt: ExecutionAttemptId,
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// Where its state is.
    pub state: TaskState,
}

/// The state of a task at the barrier of a checkpoint could not be written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeclineCheckpoint {
    /// The task.
    pub attempt: ExecutionAttemptId,
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// Why.
    pub cause: Error,
}

/// The counters of the job, now.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RequestJobMetrics;

crate::rpc_call!(
    UpdateTask => (),
    RequestSplits => Option<SplitAssignment>,
    ReportWatermark => Watermark,
    AcknowledgeFlush => (),
    AwaitJobFlush => (),
    CancelExecution => (),
    StopExecution => (),
    StopExecutionWithSavepoint => String,
    AcknowledgeCheckpoint => (),
    DeclineCheckpoint => (),
    RequestJobMetrics => JobMetrics,
);
