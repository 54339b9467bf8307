//! A source task in an alignment group: it tells the JobMaster again and again how far it is in event time, and hears how far its splits may run
//! ahead of the others.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;

use super::SplitProvider;
use crate::error::Result;
use crate::runtime::SourceOperator;
use crate::types::{OperatorId, SubtaskIndex, Watermark};

/// What a source task knows of its alignment.
pub(super) struct WatermarkAlignment {
    operator: OperatorId,
    provider: Arc<dyn SplitProvider>,
    interval_ms: u64,
    /// When it asks next.
    next_ms: i64,
    asked: Option<BoxFuture<'static, Result<Watermark>>>,
}

impl WatermarkAlignment {
    /// Of a source that asks at once, then at this interval.
    pub(super) fn new(operator: OperatorId, provider: Arc<dyn SplitProvider>, interval_ms: u64) -> Self {
        WatermarkAlignment { operator, provider, interval_ms, next_ms: i64::MIN, asked: None }
    }

    /// When it wants to ask; none = it waits for an answer.
    pub(super) fn next_timer(&self) -> Option<i64> {
        self.asked.is_none().then_some(self.next_ms)
    }

    /// Asks when it is time, and hands the answer to the source.
    pub(super) fn poll(
        &mut self,
        now_ms: i64,
        source: &mut dyn SourceOperator,
        subtask: SubtaskIndex,
        context: &mut Context<'_>,
    ) -> Result<()> {
        if self.asked.is_none() && self.next_ms <= now_ms {
            self.next_ms = now_ms.saturating_add_unsigned(self.interval_ms);
            self.asked = Some(self.provider.align(self.operator, subtask, source.waited_for()));
        }
        if let Some(asked) = &mut self.asked
            && let Poll::Ready(limit) = asked.as_mut().poll(context)
        {
            self.asked = None;
            source.set_limit(limit?);
        }
        Ok(())
    }
}
