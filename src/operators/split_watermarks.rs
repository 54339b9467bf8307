//! The watermarks of the splits of one reader, merged to the one of its source.
//!
//! The minimum over all splits that are not finished, those left out that had no row for too long. What comes out only rises. A split
//! that is finished holds nobody back; when none is left the watermark stays where it is, and the end of the task brings the last one.

use std::collections::BTreeMap;

use super::watermark_generator::FIRST_WATERMARK;
use crate::runtime::WatermarkStatus;
use crate::types::{SplitId, Watermark, WatermarkSteps};

/// The watermarks of splits.
#[derive(Debug)]
pub struct SplitWatermarks {
    splits: BTreeMap<SplitId, SplitState>,
    emitted: Watermark,
    idle_timeout_ms: Option<i64>,
    /// Whether the source said that it is idle.
    idle: bool,
}

#[derive(Debug)]
struct SplitState {
    /// The highest watermark of its rows.
    highest: Watermark,
    /// When its last row came, by the clock.
    active_ms: i64,
    idle: bool,
}

/// What the source emits because time went by or a split is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// Event time has advanced.
    pub watermark: Option<Watermark>,
    /// The source falls idle (after the watermark) or is back.
    pub status: Option<WatermarkStatus>,
}

impl SplitWatermarks {
    /// Without splits.
    pub fn new(idle_timeout_ms: Option<u64>) -> Self {
        let idle_timeout_ms = idle_timeout_ms.filter(|timeout| *timeout > 0).map(|timeout| timeout.min(i64::MAX as u64) as i64);
        SplitWatermarks { splits: BTreeMap::new(), emitted: FIRST_WATERMARK, idle_timeout_ms, idle: false }
    }

    /// A split is to be read: it holds the watermark back from now on.
    pub fn add(&mut self, split: SplitId, now_ms: i64) {
        self.splits.insert(split, SplitState { highest: FIRST_WATERMARK, active_ms: now_ms, idle: false });
    }

    /// Rows of a split have come: it is not idle. The status if the source was.
    pub fn active(&mut self, split: SplitId, now_ms: i64) -> Option<WatermarkStatus> {
        let state = self.state(split, now_ms);
        state.active_ms = now_ms;
        state.idle = false;
        std::mem::replace(&mut self.idle, false).then_some(WatermarkStatus::Active)
    }

    /// The highest watermark of a split so far, to be raised by its rows.
    pub fn highest(&mut self, split: SplitId, now_ms: i64) -> &mut Watermark {
        &mut self.state(split, now_ms).highest
    }

    /// The steps of the source from those of a split.
    pub fn merge(&mut self, split: SplitId, steps: &WatermarkSteps) -> WatermarkSteps {
        let others = self.minimum(Some(split));
        steps.map_watermarks(|watermark| {
            let merged = others.map_or(watermark, |others| others.min(watermark));
            self.rise(merged)
        })
    }

    /// The connector knows a watermark of a split.
    pub fn watermark(&mut self, split: SplitId, watermark: Watermark, now_ms: i64) -> Option<Watermark> {
        let highest = self.highest(split, now_ms);
        *highest = (*highest).max(watermark);
        let minimum = self.minimum(None)?;
        self.rise(minimum)
    }

    /// A split is read to its end.
    pub fn finish(&mut self, split: SplitId) -> Option<Watermark> {
        self.splits.remove(&split);
        let minimum = self.minimum(None)?;
        self.rise(minimum)
    }

    /// The split furthest behind, when there are several.
    pub fn furthest_behind(&self) -> Option<SplitId> {
        if self.splits.len() < 2 {
            return None;
        }
        self.splits.iter().min_by_key(|(_, state)| state.highest).map(|(split, _)| *split)
    }

    /// When a split falls idle unless rows come.
    pub fn next_timer(&self) -> Option<i64> {
        let timeout = self.idle_timeout_ms?;
        let active = self.splits.values().filter(|state| !state.idle);
        active.map(|state| state.active_ms.saturating_add(timeout)).min()
    }

    /// Leaves out the splits without rows for too long.
    pub fn on_time(&mut self, now_ms: i64) -> Change {
        let Some(timeout) = self.idle_timeout_ms else { return Change::default() };
        for state in self.splits.values_mut() {
            state.idle |= state.active_ms.saturating_add(timeout) <= now_ms;
        }
        let all_idle = !self.splits.is_empty() && self.splits.values().all(|state| state.idle);
        let fell_idle = all_idle && !std::mem::replace(&mut self.idle, all_idle);
        let candidate = if all_idle { self.splits.values().map(|state| state.highest).max() } else { self.minimum(None) };
        let watermark = candidate.and_then(|watermark| self.rise(watermark));
        Change { watermark, status: fell_idle.then_some(WatermarkStatus::Idle) }
    }

    /// A split that was not announced counts from its first row on.
    fn state(&mut self, split: SplitId, now_ms: i64) -> &mut SplitState {
        self.splits.entry(split).or_insert(SplitState { highest: FIRST_WATERMARK, active_ms: now_ms, idle: false })
    }

    fn minimum(&self, except: Option<SplitId>) -> Option<Watermark> {
        let counted = self.splits.iter().filter(|(split, state)| !state.idle && Some(**split) != except);
        counted.map(|(_, state)| state.highest).min()
    }

    fn rise(&mut self, watermark: Watermark) -> Option<Watermark> {
        if watermark <= self.emitted {
            return None;
        }
        self.emitted = watermark;
        Some(watermark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: SplitId = SplitId(1);
    const B: SplitId = SplitId(2);

    fn steps(of: &[(u32, i64)]) -> WatermarkSteps {
        let mut steps = WatermarkSteps::none();
        of.iter().for_each(|(rows, watermark)| steps.push(*rows, Watermark(*watermark)));
        steps
    }

    #[test]
    fn a_split_that_is_not_yet_opened_holds_the_others_back() {
        let mut splits = SplitWatermarks::new(None);
        splits.add(A, 0);
        splits.add(B, 0);
        *splits.highest(A, 0) = Watermark(50);
        assert!(splits.merge(A, &steps(&[(1, 20), (2, 50)])).is_empty());
        assert_eq!(splits.furthest_behind(), Some(B));
        *splits.highest(B, 0) = Watermark(60);
        assert_eq!(splits.merge(B, &steps(&[(1, 10), (2, 60)])), steps(&[(1, 10), (2, 50)]));
        assert_eq!(splits.finish(A), Some(Watermark(60)));
        assert_eq!(splits.finish(B), None);
    }

    #[test]
    fn an_idle_split_is_left_out_until_it_has_rows() {
        let mut splits = SplitWatermarks::new(Some(100));
        splits.add(A, 0);
        splits.add(B, 0);
        splits.active(A, 50);
        *splits.highest(A, 50) = Watermark(7);
        assert_eq!(splits.next_timer(), Some(100));
        assert_eq!(splits.on_time(100), Change { watermark: Some(Watermark(7)), status: None });
        assert_eq!(splits.on_time(150).status, Some(WatermarkStatus::Idle));
        assert_eq!(splits.next_timer(), None);
        assert_eq!(splits.active(B, 160), Some(WatermarkStatus::Active));
        assert!(splits.merge(B, &steps(&[(1, 5)])).is_empty(), "never back");
    }
}
