//! The contract of an operator: batches, watermarks and time in, batches and watermarks out; its state behind [`StateTable`].

use arrow::array::ArrayRef;

use super::{Committable, OperatorContext, StateTableSnapshot, WatermarkStatus};
use crate::error::Result;
use crate::types::{Batch, CheckpointId, InputNumber, KeyGroupRange, Watermark};

/// Where an operator's output goes: by direct call into the next operator of the chain, or into a result partition.
pub trait Output {
    /// Emits rows (with their watermark steps). An empty batch is dropped.
    fn batch(&mut self, batch: Batch) -> Result<()>;

    /// Emits a watermark after all that was emitted before. One that does not rise is dropped.
    fn watermark(&mut self, watermark: Watermark) -> Result<()>;

    /// Emits that event time is (no longer) to be waited for: an operator that generates watermarks has no rows for too long.
    /// Outputs that merge no channels need not care.
    fn watermark_status(&mut self, _status: WatermarkStatus) -> Result<()> {
        Ok(())
    }

    /// Whether someone wants the rows of an input that come too late.
    fn takes_late_rows(&self, _input: InputNumber) -> bool {
        false
    }

    /// Hands on rows of an input that came too late, as they came; `watermarks`: the event time that had passed each, in milliseconds
    /// (BIGINT).
    fn late_rows(&mut self, _input: InputNumber, _rows: Batch, _watermarks: ArrayRef) -> Result<()> {
        Ok(())
    }
}

/// An operator: one input or several, driven by its task, never by itself.
///
/// The watermark steps of a batch are the event time *of the operator* (the minimum over its inputs), just as if
/// [`Operator::process_watermark`] had been called between the rows; the operator passes them on, after what they made it emit.
pub trait Operator: Send {
    /// Called once before anything else, or before [`Operator::state`] is restored.
    fn open(&mut self, _context: &OperatorContext) -> Result<()> {
        Ok(())
    }

    /// Whether the operator can take more input now; the task asks all operators of its chain before each batch, so that one with
    /// a full queue behind it (a collected result, a sink) holds the task back without blocking a thread.
    fn poll_ready(&mut self, _context: &mut std::task::Context<'_>) -> std::task::Poll<Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    /// Rows of an input.
    fn process_batch(&mut self, input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()>;

    /// Event time has advanced over all inputs.
    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        output.watermark(watermark)
    }

    /// When the operator wants to be called by [`Operator::process_time`], milliseconds since the epoch; none = not at all.
    fn next_processing_timer(&self) -> Option<i64> {
        None
    }

    /// The clock has reached `now_ms`, at or after the wanted time.
    fn process_time(&mut self, _now_ms: i64, _output: &mut dyn Output) -> Result<()> {
        Ok(())
    }

    /// An input has ended. After the last one the task sends the maximal watermark, then [`Operator::finish`].
    fn end_input(&mut self, _input: InputNumber, _output: &mut dyn Output) -> Result<()> {
        Ok(())
    }

    /// All input has ended and the maximal watermark was processed: emit what is left.
    fn finish(&mut self, _output: &mut dyn Output) -> Result<()> {
        Ok(())
    }

    /// A flush element passes: sinks make visible what they have; operators that hold rows back merely for speed emit them.
    fn flush(&mut self, _output: &mut dyn Output) -> Result<()> {
        Ok(())
    }

    /// A barrier has passed, before the state is frozen, or (none) the operator has finished: what it has written and is to be made visible
    /// by its sink's committer.
    fn prepare_commit(&mut self, _checkpoint: Option<CheckpointId>) -> Result<Vec<Committable>> {
        Ok(Vec::new())
    }

    /// A checkpoint is complete: what was prepared at its barrier lasts.
    fn checkpoint_completed(&mut self, _checkpoint: CheckpointId) -> Result<()> {
        Ok(())
    }

    /// Whether no further input can change the output (a LIMIT that is reached): the task may end its sources.
    fn is_satisfied(&self) -> bool {
        false
    }

    /// All tables of its state, each under a name unique within the operator. No state is kept elsewhere.
    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        Vec::new()
    }
}

/// The one contract of state: what a task keeps between batches can be frozen, cut by key group, and filled again.
pub trait StateTable {
    /// A frozen view of all rows, taken while the task waits: as cheap as can be. What is dear (bringing rows into their form, say) belongs
    /// into a [`FrozenState`](super::FrozenState), which does it while the task goes on.
    fn snapshot(&mut self) -> Result<StateTableSnapshot>;

    /// The last snapshot is part of a checkpoint that is complete. Pieces of it that do not change need not be given with their rows again
    /// ([`StatePiece::rows`](super::StatePiece::rows)).
    fn snapshot_completed(&mut self) {}

    /// Adds the rows whose key group is in `range`. The table is empty before the first call; with a changed parallelism it is
    /// called once per old subtask.
    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()>;

    /// Whether it must stand in the checkpoints after all input has ended and the operator has finished. Not that of keys for which no
    /// row can come any more: started again, the operator would have nothing to say about them.
    fn outlives_input(&self) -> bool {
        true
    }

    /// Bytes held, for the memory manager.
    fn bytes(&self) -> usize;
}
