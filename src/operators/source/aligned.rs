//! A source in an alignment group: which of its splits wait for the slowest source of the group.

use std::collections::BTreeSet;

use crate::operators::split_watermarks::SplitWatermarks;
use crate::runtime::SplitState;
use crate::stream_graph::WatermarkAlignment;
use crate::types::{SplitId, Watermark};

/// A source in an alignment group.
pub(super) struct Aligned {
    spec: WatermarkAlignment,
    /// Splits above this wait. The least value until the group has told one: nobody runs ahead before all are known.
    pub(super) limit: Watermark,
    paused: BTreeSet<SplitId>,
}

impl Aligned {
    pub(super) fn new(spec: WatermarkAlignment) -> Self {
        Aligned { spec, limit: Watermark::MIN, paused: BTreeSet::new() }
    }

    pub(super) fn interval_ms(&self) -> u64 {
        self.spec.update_interval_ms
    }

    /// The splits that wait.
    pub(super) fn paused(&self) -> &BTreeSet<SplitId> {
        &self.paused
    }

    /// Whether there are splits and all of them wait.
    pub(super) fn all_wait(&self, splits: &SplitWatermarks) -> bool {
        !self.paused.is_empty() && self.paused.len() == splits.num_open()
    }

    /// Looks again which splits wait; gives those for which that has changed.
    pub(super) fn update(&mut self, splits: &SplitWatermarks) -> Vec<(SplitId, SplitState)> {
        // A split without a watermark of its own is never ahead.
        let limit = self.limit.max(crate::operators::watermark_generator::FIRST_WATERMARK);
        let ahead: BTreeSet<SplitId> = splits.above(limit).collect();
        let back = self.paused.difference(&ahead).map(|split| (*split, SplitState::Active));
        let waiting = ahead.difference(&self.paused).map(|split| (*split, SplitState::Paused));
        let changed = back.chain(waiting).collect();
        self.paused = ahead;
        changed
    }
}
