//! The contract of connectors: a source is an enumerator of splits (one, in the JobMaster) and readers (one a subtask); a sink is a
//! writer a subtask and a committer (one, in the JobMaster).
//!
//! What a checkpoint holds of a source is exact: the positions of the readers at their barriers, what the enumerator has found, and the
//! splits that it has found and no reader had received at its barrier. What a sink has written before a barrier is described by
//! [`Committable`]s and becomes visible when the checkpoint is complete: once, however often that is tried.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::{Context, Poll};

use serde::{Deserialize, Serialize};

use super::{FlushId, OperatorContext};
use crate::clock::Clock;
use crate::error::Result;
use crate::stream_graph::{SinkSpec, SourceSpec};
use crate::types::{Batch, CheckpointId, JobId, OperatorId, SplitId, SubtaskIndex, Watermark};

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

    /// What it has found so far, in the connector's own JSON form: as much as it needs to find nothing twice and to lose nothing. Splits
    /// that it gave out are kept by others: the coordinator, then the readers.
    fn snapshot(&self) -> String;

    /// Goes on from a snapshot, before the first [`SplitEnumerator::discover`].
    fn restore(&mut self, state: &str) -> Result<()>;
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

    /// What the user knows a split by.
    fn split_name(&self, split: &Split) -> String {
        format!("split {}", split.id)
    }

    /// Of several open splits, which one is furthest behind in event time: serve it first.
    fn prefer(&mut self, _split: SplitId) {}

    /// Gives no rows of these splits until it is told otherwise. While they are all that it has it is not polled.
    fn pause(&mut self, _splits: &BTreeSet<SplitId>) {}

    /// The splits that are not finished, each with its position behind the last batch that [`SourceReader::poll_next`] gave: a reader that
    /// is given them later begins with the next row. An error when rows cannot be read again.
    fn snapshot(&self) -> Result<Vec<Split>>;
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
    /// Whether checkpoints are taken: then nothing becomes visible but through the committer.
    pub checkpointing: bool,
    /// The operator: job id, clock, metrics.
    pub operator: OperatorContext,
}

/// What a writer has written and closed, and what is left to be done to make it visible, in the connector's own JSON form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Committable(pub String);

/// Writes rows, on behalf of one subtask.
pub trait SinkWriter: Send {
    /// Writes rows; their steps are of no concern.
    fn write(&mut self, batch: Batch) -> Result<()>;

    /// Event time has advanced (partition commit).
    fn watermark(&mut self, _watermark: Watermark) -> Result<()> {
        Ok(())
    }

    /// Makes visible what it has written since the last [`SinkWriter::prepare_commit`], at once: a flush element passed. No checkpoint
    /// covers that, so a restart from an earlier one writes it again.
    fn flush(&mut self) -> Result<()>;

    /// A barrier has passed (`checkpoint`), or all input has ended and [`SinkWriter::finish`] was called (none): closes what it has
    /// written, without making it visible, and says how that is done. Sinks whose rows are visible when they are written have nothing to
    /// say.
    fn prepare_commit(&mut self, _checkpoint: Option<CheckpointId>) -> Result<Vec<Committable>> {
        Ok(Vec::new())
    }

    /// When it wants [`SinkWriter::on_time`] (rolling by age).
    fn next_timer(&self) -> Option<i64> {
        None
    }

    /// The clock has reached the wanted time.
    fn on_time(&mut self, _now_ms: i64) -> Result<()> {
        Ok(())
    }

    /// The input has ended: writes out all; [`SinkWriter::prepare_commit`] follows. Not called when the job fails or is cancelled; then
    /// what is not committed stays invisible.
    fn finish(&mut self) -> Result<()>;
}

/// Makes visible what the writers of a sink have prepared. One a sink, in the JobMaster, called beside its main thread, one call after
/// another. A checkpoint keeps its state as it was *before* the committables of that checkpoint were committed, and those.
pub trait Committer: Send {
    /// Before the tasks are deployed, at each start: begins with the state of a checkpoint, commits its committables (again), and removes
    /// what earlier attempts of this job, or of the one that took the checkpoint, have left behind. None: begins with nothing.
    /// `were_committed`: it is known that the committables were committed; what is missing since then was taken away by who may.
    fn recover(&mut self, state: Option<&str>, committables: &[Committable], were_committed: bool) -> Result<()>;

    /// The committables of all writers at one checkpoint that is complete, or at the end of all input: makes them visible. Those that
    /// are visible already are no error.
    fn commit(&mut self, committables: &[Committable]) -> Result<()>;

    /// The job has ended, and these will never be committed: no complete checkpoint holds them. What else its writers have left behind goes
    /// too, but for `kept`, which a checkpoint holds that outlives the job.
    fn abort(&mut self, committables: &[Committable], kept: &[Committable]) -> Result<()>;

    /// Its state, in the connector's own JSON form.
    fn snapshot(&self) -> String;
}

/// Makes sources and sinks from their specs: the connectors of this process.
pub trait ConnectorFactory: Send + Sync {
    /// A source.
    fn source(&self, spec: &SourceSpec) -> Result<Box<dyn Source>>;

    /// A writer of a sink.
    fn sink(&self, spec: &SinkSpec, context: SinkContext) -> Result<Box<dyn SinkWriter>>;

    /// The committer of a sink of a job; none when its rows are visible when they are written. Made before the first writer.
    fn committer(&self, _spec: &SinkSpec, _job: JobId, _operator: OperatorId) -> Result<Option<Box<dyn Committer>>> {
        Ok(None)
    }

    /// A job has ended, well or not: what was kept for its sources and sinks is kept no longer.
    fn release_job(&self, _job: JobId) {}
}
