//! The contract of an operator without input: the head of a source task, polled by it.

use std::task::{Context, Poll};

use super::{FlushId, Output, Split, StateTable};
use crate::error::Result;
use crate::types::Watermark;

/// What a source operator did when it was polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceStatus {
    /// It emitted something or moved on: poll again.
    More,
    /// It has read all its splits and asks for others.
    NeedSplits,
    /// A flush element is due here.
    Flush(FlushId),
    /// Nothing more comes.
    End,
}

/// An operator without input.
pub trait SourceOperator: Send {
    /// Gives it splits.
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()>;

    /// No further splits come.
    fn no_more_splits(&mut self);

    /// Does one step of work (about one batch) or pends; the waker is woken when there is work again.
    fn poll(&mut self, context: &mut Context<'_>, output: &mut dyn Output) -> Poll<Result<SourceStatus>>;

    /// When it wants [`SourceOperator::process_time`], milliseconds since the epoch.
    fn next_processing_timer(&self) -> Option<i64> {
        None
    }

    /// The clock has reached `now_ms`, at or after the wanted time: a split fell idle.
    fn process_time(&mut self, _now_ms: i64, _output: &mut dyn Output) -> Result<()> {
        Ok(())
    }

    /// How often it compares its watermark with the other sources of its alignment group; none = it has no group.
    fn alignment_interval_ms(&self) -> Option<u64> {
        None
    }

    /// The least watermark of its splits, which an alignment group waits for; none = it need not wait for this source.
    fn waited_for(&self) -> Option<Watermark> {
        None
    }

    /// Splits whose watermark is above this are not read on until it is raised.
    fn set_limit(&mut self, _limit: Watermark) {}

    /// Whether it asks for splits at all (constant rows do not).
    fn needs_splits(&self) -> bool {
        true
    }

    /// Whether it has splits to read, given or restored.
    fn has_splits(&self) -> bool {
        true
    }

    /// All tables of its state: splits and how far they were read, watermarks of splits.
    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        Vec::new()
    }
}
