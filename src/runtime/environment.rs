//! What a task finds in its process: clock, functions, connectors, results. Graphs name these things; here they are.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::checkpoint::Stores;
use super::task::Watermarked;
use super::{ConnectorFactory, Operator, ResultHub, SourceMetrics, SourceOperator};
use crate::clock::Clock;
use crate::config::Configuration;
use crate::error::Result;
use crate::expr::FunctionRegistry;
use crate::stream_graph::OperatorSpec;
use crate::types::{CheckpointId, JobId, KeyGroupRange, OperatorId, SubtaskIndex};

/// Makes operators from their specs.
pub trait OperatorFactory: Send + Sync {
    /// The operator of a spec. Sources come through [`OperatorFactory::build_source`] instead.
    fn build(&self, spec: &OperatorSpec, context: &OperatorContext) -> Result<Box<dyn Operator>>;

    /// The source operator of a spec without input (a table to read, constant rows); none = the spec has inputs.
    fn build_source(&self, spec: &OperatorSpec, context: &OperatorContext) -> Result<Option<Box<dyn SourceOperator>>>;
}

/// What the tasks of a process share.
pub struct Environment {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Functions by name.
    pub functions: Arc<FunctionRegistry>,
    /// Connectors.
    pub connectors: Arc<dyn ConnectorFactory>,
    /// Operators.
    pub operators: Arc<dyn OperatorFactory>,
    /// Where SELECTs are collected.
    pub results: Arc<ResultHub>,
    /// Where checkpoints are kept.
    pub stores: Arc<dyn Stores>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment")
    }
}

/// What an operator may know of itself.
#[derive(Debug, Clone)]
pub struct OperatorContext {
    /// Its job.
    pub job: JobId,
    /// Its id.
    pub operator: OperatorId,
    /// Its name, for errors.
    pub name: String,
    /// Its subtask.
    pub subtask: SubtaskIndex,
    /// Subtasks.
    pub parallelism: u32,
    /// Key groups of the job.
    pub max_parallelism: u32,
    /// Key groups of this subtask.
    pub key_groups: KeyGroupRange,
    /// State of each input that is not written for so long is dropped, milliseconds; 0, or none for an input = kept for ever.
    pub state_ttl_ms: Vec<u64>,
    /// Settings of the job.
    pub configuration: Arc<Configuration>,
    /// When the job was submitted, milliseconds since the epoch.
    pub job_start_ms: i64,
    /// The checkpoint that it starts from.
    pub restored: Option<CheckpointId>,
    /// The process.
    pub environment: Arc<Environment>,
    /// Counters.
    pub metrics: Arc<OperatorMetrics>,
}

/// The counters of one operator in one subtask; read by the JobMaster while the task runs.
#[derive(Debug, Default)]
pub struct OperatorMetrics {
    /// Rows that went in.
    pub rows_in: AtomicU64,
    /// Rows that came out.
    pub rows_out: AtomicU64,
    /// Rows that came too late for their window.
    pub late_rows: AtomicU64,
    /// By how much the latest of them would have had to come earlier, in milliseconds.
    pub lateness_ms_max: AtomicU64,
    /// The watermark that it emitted last.
    pub watermark: Watermarked,
    /// Whether it waits for event time.
    pub waits_for_event_time: bool,
    /// Whether it waits for the clock.
    pub waits_for_clock: bool,
    /// Of a source that has splits: what it tells of them.
    pub source: Option<SourceMetrics>,
    /// Records that a format could not read and was told to skip.
    pub skipped_records: AtomicU64,
    /// Rows dropped for any other reason that the user allowed (NOT NULL enforcer DROP …).
    pub dropped_rows: AtomicU64,
    /// Entries of state that were dropped because nobody wrote them for as long as their time to live.
    pub expired: AtomicU64,
}

impl OperatorMetrics {
    /// Of an operator that has done nothing yet.
    pub fn new(spec: &OperatorSpec) -> Self {
        let source = match spec {
            OperatorSpec::Source(spec) => Some(SourceMetrics::new(spec)),
            _ => None,
        };
        OperatorMetrics {
            waits_for_event_time: spec.waits_for_event_time(),
            waits_for_clock: spec.waits_for_clock(),
            source,
            ..OperatorMetrics::default()
        }
    }
}
