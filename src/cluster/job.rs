//! What the session learns of a job: its state, its outcome, its counters. Plain data.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::runtime::task::{OperatorMetricsSnapshot, TaskMetricsSnapshot};
use crate::types::{CheckpointId, JobId, VertexId};

/// How far a job is: Flink's JobStatus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum JobState {
    /// Submitted, nothing deployed.
    Created,
    /// Its tasks are deployed or run.
    Running,
    /// A task has failed; the others are being cancelled.
    Failing,
    /// Failed, all tasks have ended.
    Failed,
    /// A task has failed; the others are being cancelled, then it starts again from its last checkpoint.
    Restarting,
    /// It is being cancelled on request.
    Cancelling,
    /// Cancelled, all tasks have ended.
    Canceled,
    /// All tasks have finished.
    Finished,
}

impl JobState {
    /// Whether it will not change any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, JobState::Failed | JobState::Canceled | JobState::Finished)
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            JobState::Created => "CREATED",
            JobState::Running => "RUNNING",
            JobState::Failing => "FAILING",
            JobState::Failed => "FAILED",
            JobState::Restarting => "RESTARTING",
            JobState::Cancelling => "CANCELLING",
            JobState::Canceled => "CANCELED",
            JobState::Finished => "FINISHED",
        })
    }
}

/// A line of SHOW JOBS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobInfo {
    /// Id.
    pub id: JobId,
    /// Name.
    pub name: String,
    /// How far it is.
    pub state: JobState,
    /// When it was submitted, milliseconds since the epoch.
    pub start_ms: i64,
    /// When it ended, milliseconds since the epoch.
    pub end_ms: Option<i64>,
}

/// The outcome of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobResult {
    /// Its last state.
    pub state: JobState,
    /// Why it failed: the first cause, with its operator.
    pub error: Option<Error>,
    /// Its counters at the end.
    pub metrics: JobMetrics,
    /// The directory of its last checkpoint (or the savepoint that it was stopped with), if that is kept.
    pub checkpoint: Option<String>,
}

impl JobResult {
    /// The outcome as a result: a cancelled job is an error too.
    pub fn into_result(self) -> crate::error::Result<JobMetrics> {
        match (self.error, self.state) {
            (Some(error), _) => Err(error),
            (None, JobState::Canceled) => Err(Error::new(crate::error::ErrorKind::Cancelled, "the job was cancelled")),
            (None, _) => Ok(self.metrics),
        }
    }
}

/// The counters of a job, per vertex in the order of its graph.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobMetrics {
    /// The vertices.
    pub vertices: Vec<VertexMetrics>,
    /// How often the job has started again.
    pub restarts: u32,
    /// Why it did the last time.
    pub last_failure: Option<String>,
    /// The checkpoint that it last started from; none = from the beginning.
    pub started_from: Option<CheckpointId>,
    /// Its checkpoints.
    pub checkpoints: CheckpointCounts,
    /// Why the last one failed that did.
    pub last_failed_checkpoint: Option<String>,
    /// When they were taken, milliseconds since the epoch.
    pub at_ms: i64,
}

/// How many checkpoints a job has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CheckpointCounts {
    /// Begun. Those that were given up since the job came to its end have neither completed nor failed.
    pub triggered: u64,
    /// Completed.
    pub completed: u64,
    /// Failed or expired.
    pub failed: u64,
}

/// The counters of a vertex: sums over its subtasks unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VertexMetrics {
    /// The vertex.
    pub vertex: VertexId,
    /// Its name.
    pub name: String,
    /// Its subtasks.
    pub parallelism: u32,
    /// Rows and bytes in and out, times and state. `input_watermark` and `output_watermark` are minima over the subtasks,
    /// `batch_rows_max` is the maximum; `operators` are summed one by one; `backlogs` are those of one subtask after another.
    pub total: TaskMetricsSnapshot,
    /// Rows that came too late, over all operators.
    pub late_rows: u64,
    /// Records that a format skipped, over all operators.
    pub skipped_records: u64,
    /// Entries of state whose time to live was over, over all operators.
    pub expired: u64,
}

impl VertexMetrics {
    /// Rows that came in from channels, or that its source read.
    pub fn rows_in(&self) -> u64 {
        let read = self.total.operators.first().filter(|first| first.rows_in == 0).map_or(0, |first| first.rows_out);
        self.total.rows_in.max(read)
    }

    /// Rows that went out to channels, or that its last operator wrote or handed over.
    pub fn rows_out(&self) -> u64 {
        let written = self.total.operators.last().filter(|last| last.rows_out == 0).map_or(0, |last| last.rows_in);
        if self.total.rows_out == 0 { written } else { self.total.rows_out }
    }

    /// The counters of a vertex over its subtasks' (those that are known).
    pub fn aggregate<'a>(
        vertex: VertexId,
        name: &str,
        parallelism: u32,
        subtasks: impl IntoIterator<Item = &'a TaskMetricsSnapshot>,
    ) -> Self {
        let total = subtasks.into_iter().cloned().reduce(add).unwrap_or_else(|| TaskMetricsSnapshot {
            input_watermark: i64::MIN,
            output_watermark: i64::MIN,
            ..TaskMetricsSnapshot::default()
        });
        let sum = |count: fn(&OperatorMetricsSnapshot) -> u64| total.operators.iter().map(count).sum();
        VertexMetrics {
            vertex,
            name: name.to_string(),
            parallelism,
            late_rows: sum(|operator| operator.late_rows),
            skipped_records: sum(|operator| operator.skipped_records),
            expired: sum(|operator| operator.expired),
            total,
        }
    }
}

/// The counters of two subtasks of one vertex as one.
fn add(mut left: TaskMetricsSnapshot, right: TaskMetricsSnapshot) -> TaskMetricsSnapshot {
    left.rows_in += right.rows_in;
    left.bytes_in += right.bytes_in;
    left.rows_out += right.rows_out;
    left.bytes_out += right.bytes_out;
    left.batches_in += right.batches_in;
    left.batch_rows_max = left.batch_rows_max.max(right.batch_rows_max);
    left.busy_nanos += right.busy_nanos;
    left.idle_nanos += right.idle_nanos;
    left.backpressured_nanos += right.backpressured_nanos;
    left.input_watermark = left.input_watermark.min(right.input_watermark);
    left.output_watermark = left.output_watermark.min(right.output_watermark);
    left.state_bytes += right.state_bytes;
    left.latency_markers += right.latency_markers;
    left.latency_nanos += right.latency_nanos;
    left.latency_nanos_max = left.latency_nanos_max.max(right.latency_nanos_max);
    left.backlogs.extend(right.backlogs);
    for (sum, operator) in left.operators.iter_mut().zip(right.operators) {
        sum.rows_in += operator.rows_in;
        sum.rows_out += operator.rows_out;
        sum.late_rows += operator.late_rows;
        sum.lateness_ms_max = sum.lateness_ms_max.max(operator.lateness_ms_max);
        sum.watermark = sum.watermark.min(operator.watermark);
        match (&mut sum.source, operator.source) {
            (Some(source), Some(other)) => source.add(other),
            (source, other) => *source = source.take().or(other),
        }
        sum.skipped_records += operator.skipped_records;
        sum.dropped_rows += operator.dropped_rows;
        sum.expired += operator.expired;
    }
    left
}
