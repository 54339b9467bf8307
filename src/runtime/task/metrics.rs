//! The counters of a task: written by the task alone, read by the JobMaster at any time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use super::latency::Latency;
use crate::runtime::{OperatorMetrics, SourceMetrics, SourceSnapshot};
use crate::types::OperatorId;

/// The counters of a task.
#[derive(Debug, Default)]
pub struct TaskMetrics {
    /// Rows taken from channels.
    pub rows_in: AtomicU64,
    /// Bytes taken from channels, as held in memory.
    pub bytes_in: AtomicU64,
    /// Rows put into channels.
    pub rows_out: AtomicU64,
    /// Bytes put into channels, as held in memory.
    pub bytes_out: AtomicU64,
    /// Batches taken from channels.
    pub batches_in: AtomicU64,
    /// Most rows of a batch taken from a channel.
    pub batch_rows_max: AtomicU64,
    /// Time spent working, in nanoseconds.
    pub busy_nanos: AtomicU64,
    /// Time without input, in nanoseconds.
    pub idle_nanos: AtomicU64,
    /// Time with input but no room for output, in nanoseconds.
    pub backpressured_nanos: AtomicU64,
    /// Event time over all inputs, milliseconds since the epoch; `i64::MIN` before the first watermark.
    pub input_watermark: Watermarked,
    /// Event time of the last operator of the chain that emitted one.
    pub output_watermark: Watermarked,
    /// Bytes of state of all operators.
    pub state_bytes: AtomicU64,
    /// How long latency markers were under way.
    pub latency: Latency,
    /// Buffers that wait in front of each outgoing channel, partition by partition.
    pub backlogs: Box<[AtomicU64]>,
    /// Operators of the chain in order: id, name, counters.
    pub operators: Vec<(OperatorId, String, Arc<OperatorMetrics>)>,
}

/// A watermark that starts at the least value.
#[derive(Debug)]
pub struct Watermarked(AtomicI64);

impl Default for Watermarked {
    fn default() -> Self {
        Watermarked(AtomicI64::new(i64::MIN))
    }
}

impl Watermarked {
    /// Sets it.
    pub fn set(&self, watermark_ms: i64) {
        self.0.store(watermark_ms, Relaxed);
    }

    /// Its value.
    pub fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// The counters of a task at some moment. Fields as in [`TaskMetrics`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct TaskMetricsSnapshot {
    pub rows_in: u64,
    pub bytes_in: u64,
    pub rows_out: u64,
    pub bytes_out: u64,
    pub batches_in: u64,
    pub batch_rows_max: u64,
    pub busy_nanos: u64,
    pub idle_nanos: u64,
    pub backpressured_nanos: u64,
    pub input_watermark: i64,
    pub output_watermark: i64,
    pub state_bytes: u64,
    pub latency_markers: u64,
    pub latency_nanos: u64,
    pub latency_nanos_max: u64,
    pub backlogs: Vec<u64>,
    pub operators: Vec<OperatorMetricsSnapshot>,
}

/// The counters of an operator at some moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorMetricsSnapshot {
    /// The operator.
    pub operator: OperatorId,
    /// Its name.
    pub name: String,
    /// Rows that went in.
    pub rows_in: u64,
    /// Rows that came out.
    pub rows_out: u64,
    /// Rows that came too late.
    pub late_rows: u64,
    /// By how much the latest of them would have had to come earlier, in milliseconds.
    pub lateness_ms_max: u64,
    /// The watermark that it emitted last, milliseconds since the epoch; `i64::MIN` before the first.
    pub watermark: i64,
    /// Whether it waits for event time.
    pub waits_for_event_time: bool,
    /// Whether it waits for the clock.
    pub waits_for_clock: bool,
    /// Of a source that has splits: how far each was read.
    pub source: Option<SourceSnapshot>,
    /// Records that were skipped.
    pub skipped_records: u64,
    /// Rows dropped as the user allowed.
    pub dropped_rows: u64,
    /// Entries of state whose time to live was over.
    pub expired: u64,
}

impl TaskMetrics {
    /// All counters, now.
    pub fn snapshot(&self) -> TaskMetricsSnapshot {
        TaskMetricsSnapshot {
            rows_in: self.rows_in.load(Relaxed),
            bytes_in: self.bytes_in.load(Relaxed),
            rows_out: self.rows_out.load(Relaxed),
            bytes_out: self.bytes_out.load(Relaxed),
            batches_in: self.batches_in.load(Relaxed),
            batch_rows_max: self.batch_rows_max.load(Relaxed),
            busy_nanos: self.busy_nanos.load(Relaxed),
            idle_nanos: self.idle_nanos.load(Relaxed),
            backpressured_nanos: self.backpressured_nanos.load(Relaxed),
            input_watermark: self.input_watermark.get(),
            output_watermark: self.output_watermark.get(),
            state_bytes: self.state_bytes.load(Relaxed),
            latency_markers: self.latency.markers.load(Relaxed),
            latency_nanos: self.latency.nanos.load(Relaxed),
            latency_nanos_max: self.latency.nanos_max.load(Relaxed),
            backlogs: self.backlogs.iter().map(|backlog| backlog.load(Relaxed)).collect(),
            operators: self.operators.iter().map(operator_snapshot).collect(),
        }
    }
}

impl TaskMetricsSnapshot {
    /// Buffers that wait in front of all outgoing channels.
    pub fn backlog(&self) -> u64 {
        self.backlogs.iter().sum()
    }
}

fn operator_snapshot((operator, name, metrics): &(OperatorId, String, Arc<OperatorMetrics>)) -> OperatorMetricsSnapshot {
    OperatorMetricsSnapshot {
        operator: *operator,
        name: name.clone(),
        rows_in: metrics.rows_in.load(Relaxed),
        rows_out: metrics.rows_out.load(Relaxed),
        late_rows: metrics.late_rows.load(Relaxed),
        lateness_ms_max: metrics.lateness_ms_max.load(Relaxed),
        watermark: metrics.watermark.get(),
        waits_for_event_time: metrics.waits_for_event_time,
        waits_for_clock: metrics.waits_for_clock,
        source: metrics.source.as_ref().map(SourceMetrics::snapshot),
        skipped_records: metrics.skipped_records.load(Relaxed),
        dropped_rows: metrics.dropped_rows.load(Relaxed),
        expired: metrics.expired.load(Relaxed),
    }
}
