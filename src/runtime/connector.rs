//! The contract of connectors: a source is an enumerator of splits (one, in the JobMaster) and readers (one a subtask); a sink is a
//! writer a subtask.

use std::sync::Arc;
use std::task::{Context, Poll};

use serde::{Deserialize, Serialize};

use super::{FlushId, OperatorContext};
use crate::clock::Clock;
use crate::error::Result;
use crate::stream_graph::{SinkSpec, SourceSpec};
use crate::types::{Batch, JobId, SplitId, SubtaskIndex, Watermark};

/// A piece of a source that one reader reads: a file, a range of a file, a range of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Number, unique within the source.
    pub id: SplitId,
    /// What it is and how far it was read, in the connector's own JSON form.
    pub state: String,
}

/// Finds the splits of a source. Lives in the JobMaster.
pub trait SplitEnumerator: Send {
    /// New splits since the last call (the first call: all there are).
    fn discover(&mut self) -> Result<Vec<Split>>;

    /// After how long to look again; none = the source is bounded by the first look.
    fn discovery_interval_ms(&self) -> Option<u64>;

    /// Whether a reader needs all its splits from the start (because their watermarks are merged by minimum) rather than one at a
    /// time on request.
    fn assign_all_at_start(&self) -> bool;
}

/// What a reader gives.
#[derive(Debug)]
pub enum SourceEvent {
    /// Rows of a split: the produced columns of the spec, projection then metadata. May carry row kinds; no steps.
    Batch(SplitId, Batch),
    /// A watermark that the connector itself knows, for one split.
    Watermark(SplitId, Watermark),
    /// A flush element that the connector injects (memory tables under test).
    Flush(FlushId),
    /// The split is read to its end.
    SplitFinished(SplitId),
    /// Nothing left to read of the splits given so far: asks for another (unless [`SourceReader::no_more_splits`] was called).
    NeedSplit,
    /// All splits are read and no more come.
    End,
}

/// Reads splits, on behalf of one subtask. Polled by the task, never blocking: slow work happens on threads of its own.
pub trait SourceReader: Send {
    /// Gives it splits.
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()>;

    /// No further splits come.
    fn no_more_splits(&mut self);

    /// The next event, or pending (the waker is woken when there is one).
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<SourceEvent>>;

    /// Whether the rows of the open splits are there already, as in files: while they take their time to come, none of them is idle.
    fn is_busy(&self) -> bool {
        false
    }

    /// Of several open splits, which one is furthest behind in event time: serve it first.
    fn prefer(&mut self, _split: SplitId) {}

    /// The splits that are not finished, with how far they were read: what a checkpoint keeps.
    fn snapshot(&self) -> Vec<Split>;
}

/// What a reader may ask of its surroundings.
#[derive(Clone)]
pub struct ReaderContext {
    /// Which subtask reads.
    pub subtask: SubtaskIndex,
    /// Of how many.
    pub parallelism: u32,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Rows of a batch, at most.
    pub batch_rows: usize,
    /// The operator, with its metrics: for counting rows that were skipped.
    pub operator: OperatorContext,
}

/// A table to read, made from its spec.
pub trait Source: Send + Sync {
    /// The enumerator.
    fn enumerator(&self, parallelism: u32) -> Result<Box<dyn SplitEnumerator>>;

    /// A reader.
    fn reader(&self, context: ReaderContext) -> Result<Box<dyn SourceReader>>;
}

/// What a writer may ask of its surroundings.
#[derive(Clone)]
pub struct SinkContext {
    /// Which subtask writes.
    pub subtask: SubtaskIndex,
    /// Of how many.
    pub parallelism: u32,
    /// The operator: job id, clock, metrics.
    pub operator: OperatorContext,
}

/// Writes rows, on behalf of one subtask.
pub trait SinkWriter: Send {
    /// Writes rows; their steps are of no concern.
    fn write(&mut self, batch: Batch) -> Result<()>;

    /// Event time has advanced (partition commit).
    fn watermark(&mut self, _watermark: Watermark) -> Result<()> {
        Ok(())
    }

    /// Makes visible what can be: a flush element passed, or the buffer timeout.
    fn flush(&mut self) -> Result<()>;

    /// When it wants [`SinkWriter::on_time`] (rolling by age).
    fn next_timer(&self) -> Option<i64> {
        None
    }

    /// The clock has reached the wanted time.
    fn on_time(&mut self, _now_ms: i64) -> Result<()> {
        Ok(())
    }

    /// The input has ended: commits all. Not called when the job fails or is cancelled; then what is not whole stays invisible.
    fn finish(&mut self) -> Result<()>;
}

/// Makes sources and sinks from their specs: the connectors of this process.
pub trait ConnectorFactory: Send + Sync {
    /// A source.
    fn source(&self, spec: &SourceSpec) -> Result<Box<dyn Source>>;

    /// A writer of a sink.
    fn sink(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn SinkWriter>>;

    /// A job has ended, well or not: what was kept for its sources and sinks is kept no longer.
    fn release_job(&self, _job: JobId) {}
}
