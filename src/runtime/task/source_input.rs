//! Where a source task is with its splits: what it was given, what it waits for.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::{SplitAssignment, SplitProvider};
use crate::error::Result;
use crate::runtime::Split;
use crate::runtime::checkpoint::CheckpointBarrier;
use crate::types::{OperatorId, SubtaskIndex};

/// Where a source task is with its splits.
pub(super) struct SourceInput {
    pub(super) operator: OperatorId,
    pub(super) provider: Arc<dyn SplitProvider>,
    pub(super) request: Option<BoxFuture<'static, Result<Option<SplitAssignment>>>>,
    /// It has nothing to read before an answer comes.
    pub(super) starved: bool,
    pub(super) no_more: bool,
    /// Whether it has said that it begins.
    pub(super) begun: bool,
    /// A barrier that came before it could.
    pub(super) early_barrier: Option<CheckpointBarrier>,
    /// How many splits it was given since the task started.
    pub(super) received: u64,
    /// Splits that have overtaken others, by how many were given before them.
    pub(super) early: BTreeMap<u64, Vec<Split>>,
}

impl SourceInput {
    /// Of a task that was given nothing yet.
    pub(super) fn new(operator: OperatorId, provider: Arc<dyn SplitProvider>) -> Self {
        SourceInput {
            operator,
            provider,
            request: None,
            starved: false,
            no_more: false,
            begun: false,
            early_barrier: None,
            received: 0,
            early: BTreeMap::new(),
        }
    }

    /// Asks for splits, unless no more come or it has asked already.
    pub(super) fn request(&mut self, subtask: SubtaskIndex) {
        if self.no_more {
            return;
        }
        self.starved = true;
        if self.request.is_none() {
            self.request = Some(self.provider.request_splits(self.operator, subtask));
        }
    }
}
