//! The watermarks of the splits of one reader, merged to the one of its source.
//!
//! The minimum over all splits that are not finished, those left out that had no row for too long. What comes out only rises. A split
//! that is finished holds nobody back; when none is left the watermark stays where it is, and the end of the task brings the last one.
//!
//! "Too long" counts only the time in which the source had nothing to read: a file that waits while others are read, or while the task
//! waits for those behind it, is not idle. A source that has no split at all falls idle like one. Unless it is to fall idle alone, a split is
//! left out only while there are others, here or in other subtasks.

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
    /// Whether a single split is left out too.
    idle_alone: bool,
    /// Whether the source said that it is idle.
    idle: bool,
    /// Whether it has had a split.
    had_splits: bool,
    starvation: Starvation,
    /// When the last split was finished, in time of starvation.
    without_splits_ms: i64,
}

/// How long the source had nothing to read, all in all: the clock of idleness.
#[derive(Debug)]
struct Starvation {
    /// Up to the last time that it had something.
    total_ms: i64,
    /// Since when it has nothing.
    since_ms: Option<i64>,
}

impl Starvation {
    fn at(&self, now_ms: i64) -> i64 {
        self.total_ms + self.since_ms.map_or(0, |since| (now_ms - since).max(0))
    }
}

#[derive(Debug)]
struct SplitState {
    /// The highest watermark of its rows.
    highest: Watermark,
    /// When its last row came, in time of starvation.
    active_ms: i64,
    idle: bool,
}

/// What the source emits because time went by or a split is back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// Event time has advanced.
    pub watermark: Option<Watermark>,
    /// The source falls idle (after the watermark) or is back.
    pub status: Option<WatermarkStatus>,
    /// The splits that are left out from now on.
    pub idle: Vec<SplitId>,
}

impl SplitWatermarks {
    /// Without splits, and so with nothing to read. `idle_alone`: a single split falls idle too.
    pub fn new(idle_timeout_ms: Option<u64>, idle_alone: bool, now_ms: i64) -> Self {
        SplitWatermarks {
            splits: BTreeMap::new(),
            emitted: FIRST_WATERMARK,
            idle_timeout_ms: idle_timeout_ms.filter(|timeout| *timeout > 0).map(|timeout| timeout.min(i64::MAX as u64) as i64),
            idle_alone,
            idle: false,
            had_splits: false,
            starvation: Starvation { total_ms: 0, since_ms: Some(now_ms) },
            without_splits_ms: 0,
        }
    }

    /// Whether idleness is asked for at all: if not, nobody need tell what the source has to read.
    pub fn can_fall_idle(&self) -> bool {
        self.idle_timeout_ms.is_some()
    }

    /// The source has nothing to read.
    pub fn starve(&mut self, now_ms: i64) {
        self.starvation.since_ms.get_or_insert(now_ms);
    }

    /// The source has something to read.
    pub fn feed(&mut self, now_ms: i64) {
        self.starvation.total_ms = self.starvation.at(now_ms);
        self.starvation.since_ms = None;
    }

    /// A split is to be read: it holds the watermark back from now on.
    pub fn add(&mut self, split: SplitId, now_ms: i64) {
        self.restore(split, FIRST_WATERMARK, now_ms);
    }

    /// A split is to be read on whose rows had brought this watermark.
    pub fn restore(&mut self, split: SplitId, highest: Watermark, now_ms: i64) {
        let active_ms = self.starvation.at(now_ms);
        self.had_splits = true;
        self.splits.insert(split, SplitState { highest, active_ms, idle: false });
    }

    /// What was emitted before a restart.
    pub fn restore_emitted(&mut self, emitted: Watermark) {
        self.emitted = emitted;
    }

    /// The watermark of the source so far.
    pub fn emitted(&self) -> Watermark {
        self.emitted
    }

    /// Rows of a split have come: it is not idle. The status if the source was.
    pub fn active(&mut self, split: SplitId, now_ms: i64) -> Option<WatermarkStatus> {
        let active_ms = self.starvation.at(now_ms);
        let state = self.state(split, now_ms);
        state.active_ms = active_ms;
        state.idle = false;
        std::mem::replace(&mut self.idle, false).then_some(WatermarkStatus::Active)
    }

    /// The highest watermark of a split so far, to be raised by its rows.
    pub fn highest(&mut self, split: SplitId, now_ms: i64) -> &mut Watermark {
        &mut self.state(split, now_ms).highest
    }

    /// The highest watermark of a split so far.
    pub fn highest_of(&self, split: SplitId) -> Watermark {
        self.splits.get(&split).map_or(FIRST_WATERMARK, |state| state.highest)
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
    pub fn finish(&mut self, split: SplitId, now_ms: i64) -> Option<Watermark> {
        self.splits.remove(&split);
        self.without_splits_ms = self.starvation.at(now_ms);
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
        let (timeout, since) = (self.effective_timeout()?, self.starvation.since_ms?);
        let active = self.splits.values().filter(|state| !state.idle).map(|state| state.active_ms);
        let without_splits = (self.splits.is_empty() && !self.idle).then_some(self.without_splits_ms);
        let first = active.chain(without_splits).min()?;
        Some(since.saturating_add(first - self.starvation.total_ms).saturating_add(timeout))
    }

    /// Leaves out the splits without rows for too long.
    pub fn on_time(&mut self, now_ms: i64) -> Change {
        let Some(timeout) = self.effective_timeout() else { return Change::default() };
        let starved_ms = self.starvation.at(now_ms);
        let is_due = |since_ms: i64| since_ms.saturating_add(timeout) <= starved_ms;
        let mut idle = Vec::new();
        for (split, state) in self.splits.iter_mut().filter(|(_, state)| !state.idle && is_due(state.active_ms)) {
            state.idle = true;
            idle.push(*split);
        }
        let all_idle = match self.splits.is_empty() {
            true => self.idle || is_due(self.without_splits_ms),
            false => self.splits.values().all(|state| state.idle),
        };
        let fell_idle = all_idle && !std::mem::replace(&mut self.idle, all_idle);
        let candidate = if all_idle { self.splits.values().map(|state| state.highest).max() } else { self.minimum(None) };
        let watermark = candidate.and_then(|watermark| self.rise(watermark));
        Change { watermark, status: fell_idle.then_some(WatermarkStatus::Idle), idle }
    }

    /// The timeout, where one split or more may be left out.
    fn effective_timeout(&self) -> Option<i64> {
        self.idle_timeout_ms.filter(|_| self.idle_alone || self.splits.len() > 1)
    }

    /// What an alignment group is to wait for: the least watermark of the splits that count; none = it need not wait.
    pub fn waited_for(&self) -> Option<Watermark> {
        let has_begun = self.idle || self.had_splits;
        self.minimum(None).or_else(|| (!has_begun).then_some(Watermark::MIN))
    }

    /// The splits whose watermark is above this.
    pub fn above(&self, limit: Watermark) -> impl Iterator<Item = SplitId> {
        self.splits.iter().filter(move |(_, state)| state.highest > limit).map(|(split, _)| *split)
    }

    /// How many splits are open.
    pub fn num_open(&self) -> usize {
        self.splits.len()
    }

    /// A split that was not announced counts from its first row on.
    fn state(&mut self, split: SplitId, now_ms: i64) -> &mut SplitState {
        let active_ms = self.starvation.at(now_ms);
        self.splits.entry(split).or_insert(SplitState { highest: FIRST_WATERMARK, active_ms, idle: false })
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
        let mut splits = SplitWatermarks::new(None, false, 0);
        splits.add(A, 0);
        splits.add(B, 0);
        *splits.highest(A, 0) = Watermark(50);
        assert!(splits.merge(A, &steps(&[(1, 20), (2, 50)])).is_empty());
        assert_eq!(splits.furthest_behind(), Some(B));
        *splits.highest(B, 0) = Watermark(60);
        assert_eq!(splits.merge(B, &steps(&[(1, 10), (2, 60)])), steps(&[(1, 10), (2, 50)]));
        assert_eq!(splits.finish(A, 0), Some(Watermark(60)));
        assert_eq!(splits.finish(B, 0), None);
    }

    #[test]
    fn an_idle_split_is_left_out_until_it_has_rows() {
        let mut splits = SplitWatermarks::new(Some(100), true, 0);
        splits.add(A, 0);
        splits.add(B, 0);
        splits.active(A, 50);
        *splits.highest(A, 50) = Watermark(7);
        assert_eq!(splits.next_timer(), Some(100));
        assert_eq!(splits.on_time(100), Change { watermark: Some(Watermark(7)), status: None, idle: vec![B] });
        assert_eq!(splits.on_time(150).status, Some(WatermarkStatus::Idle));
        assert_eq!(splits.next_timer(), None);
        assert_eq!(splits.active(B, 160), Some(WatermarkStatus::Active));
        assert!(splits.merge(B, &steps(&[(1, 5)])).is_empty(), "never back");
    }

    #[test]
    fn only_time_with_nothing_to_read_counts() {
        let mut splits = SplitWatermarks::new(Some(100), true, 0);
        splits.add(A, 0);
        splits.add(B, 0);
        splits.feed(10);
        assert_eq!(splits.next_timer(), None);
        assert_eq!(splits.on_time(500), Change::default(), "it has been reading all the time");
        splits.active(A, 500);
        splits.starve(500);
        assert_eq!(splits.next_timer(), Some(590), "ten milliseconds had passed before the first row");
        splits.feed(550);
        splits.active(A, 550);
        splits.starve(551);
        assert_eq!(splits.next_timer(), Some(591));
        assert_eq!(splits.on_time(591), Change { idle: vec![B], ..Change::default() }, "A had a row");
        assert_eq!(splits.next_timer(), Some(651));
        assert_eq!(splits.on_time(651).status, Some(WatermarkStatus::Idle));
    }

    #[test]
    fn a_source_without_splits_falls_idle_until_it_has_rows() {
        let mut splits = SplitWatermarks::new(Some(100), true, 5);
        assert_eq!(splits.next_timer(), Some(105));
        assert_eq!(splits.on_time(105), Change { status: Some(WatermarkStatus::Idle), ..Change::default() });
        assert_eq!((splits.next_timer(), splits.on_time(300)), (None, Change::default()));
        splits.add(A, 300);
        splits.feed(300);
        assert_eq!(splits.active(A, 300), Some(WatermarkStatus::Active));
        splits.finish(A, 310);
        splits.starve(310);
        assert_eq!(splits.next_timer(), Some(410));
        assert_eq!(splits.on_time(410).status, Some(WatermarkStatus::Idle));
    }

    #[test]
    fn by_default_a_split_is_left_out_only_beside_others() {
        let mut splits = SplitWatermarks::new(Some(100), false, 0);
        splits.add(A, 0);
        assert_eq!((splits.next_timer(), splits.on_time(1_000)), (None, Change::default()));
        splits.add(B, 1_000);
        assert_eq!(splits.next_timer(), Some(100), "it has been without rows for long");
        assert_eq!(splits.on_time(1_000).idle, [A]);
        assert_eq!(splits.waited_for(), Some(FIRST_WATERMARK), "B");
        splits.finish(A, 1_050);
        assert_eq!((splits.next_timer(), splits.on_time(2_000)), (None, Change::default()), "B is alone");
    }
}
