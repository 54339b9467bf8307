//! The coordinator of one source: keeps the splits that its enumerator found until readers ask for them.
//!
//! Two ways, as the enumerator wants it: *all at start*, where each reader gets its share at once and later finds are pushed to it
//! (their watermarks are merged by minimum, so a reader must know all its splits); or *on request*, where a reader gets
//! the next split when it has none left (so a fast reader reads more). Lives in the JobMaster's main thread.

use std::collections::{BTreeMap, VecDeque};

use crate::runtime::Split;
use crate::types::SubtaskIndex;

/// Splits pushed to a reader that did not ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// To whom.
    pub subtask: SubtaskIndex,
    /// The splits.
    pub splits: Vec<Split>,
}

/// The coordinator of one source. `R` is what a waiting reader left to be answered with.
#[derive(Debug)]
pub struct SplitCoordinator<R> {
    all_at_start: bool,
    /// All at start: what each reader is owed. On request: everything is owed to whoever asks, under subtask 0.
    owed: Vec<VecDeque<Split>>,
    /// Which readers have had their first answer.
    started: Vec<bool>,
    waiting: BTreeMap<SubtaskIndex, R>,
    /// How many splits were ever found: spreads them over the readers in turn.
    found: usize,
    complete: bool,
}

/// What a reader is answered: splits, or that no more come.
pub type Assignment = Option<Vec<Split>>;

impl<R> SplitCoordinator<R> {
    /// For a source with so many readers.
    pub fn new(parallelism: u32, all_at_start: bool) -> Self {
        let readers = parallelism as usize;
        SplitCoordinator {
            all_at_start,
            owed: (0..readers).map(|_| VecDeque::new()).collect(),
            started: vec![false; readers],
            waiting: BTreeMap::new(),
            found: 0,
            complete: false,
        }
    }

    /// The enumerator found these; `complete` = it will find no more. Gives the answers due now, and the pushes.
    pub fn discovered(&mut self, splits: Vec<Split>, complete: bool) -> (Vec<(R, Assignment)>, Vec<Push>) {
        for split in splits {
            let reader = if self.all_at_start { self.found % self.owed.len() } else { 0 };
            self.found += 1;
            self.owed[reader].push_back(split);
        }
        self.complete |= complete;
        let mut answers = Vec::new();
        for (subtask, reader) in std::mem::take(&mut self.waiting) {
            match self.assign(subtask) {
                Some(assignment) => answers.push((reader, assignment)),
                None => drop(self.waiting.insert(subtask, reader)),
            }
        }
        (answers, self.pushes())
    }

    /// A reader asks. Its answer now, or none: then `reader` is kept until there is one.
    pub fn request(&mut self, subtask: SubtaskIndex, reader: R) -> Option<(R, Assignment)> {
        match self.assign(subtask) {
            Some(assignment) => Some((reader, assignment)),
            None => {
                self.waiting.insert(subtask, reader);
                None
            }
        }
    }

    fn assign(&mut self, subtask: SubtaskIndex) -> Option<Assignment> {
        let index = subtask.0 as usize;
        let splits: Vec<Split> =
            if self.all_at_start { self.owed[index].drain(..).collect() } else { self.owed[0].pop_front().into_iter().collect() };
        if splits.is_empty() {
            return self.complete.then_some(None);
        }
        self.started[index] = true;
        Some(Some(splits))
    }

    /// What is owed to readers that are busy with their first splits and may never ask again.
    fn pushes(&mut self) -> Vec<Push> {
        if !self.all_at_start {
            return Vec::new();
        }
        let mut pushes = Vec::new();
        for (index, owed) in self.owed.iter_mut().enumerate() {
            if self.started[index] && !owed.is_empty() {
                pushes.push(Push { subtask: SubtaskIndex(index as u32), splits: owed.drain(..).collect() });
            }
        }
        pushes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::SplitId;

    fn splits(ids: std::ops::Range<u64>) -> Vec<Split> {
        ids.map(|id| Split { id: SplitId(id), state: String::new() }).collect()
    }

    fn ids(splits: &[Split]) -> Vec<u64> {
        splits.iter().map(|split| split.id.0).collect()
    }

    fn given(answer: Option<(&str, Assignment)>) -> Option<Vec<u64>> {
        answer.expect("an answer is due").1.map(|splits| ids(&splits))
    }

    #[test]
    fn on_request_each_reader_takes_the_next_one() {
        let mut coordinator = SplitCoordinator::new(2, false);
        assert!(coordinator.request(SubtaskIndex(1), "early").is_none());
        let (answers, pushes) = coordinator.discovered(splits(0..3), true);
        assert_eq!(answers.len(), 1);
        assert_eq!(ids(answers[0].1.as_ref().unwrap()), [0]);
        assert!(pushes.is_empty());
        assert_eq!(given(coordinator.request(SubtaskIndex(0), "a")), Some(vec![1]));
        assert_eq!(given(coordinator.request(SubtaskIndex(0), "a")), Some(vec![2]));
        assert_eq!(given(coordinator.request(SubtaskIndex(0), "a")), None);
        assert_eq!(given(coordinator.request(SubtaskIndex(1), "b")), None);
    }

    #[test]
    fn all_at_start_gives_each_reader_its_share_and_pushes_what_is_found_later() {
        let mut coordinator = SplitCoordinator::new(2, true);
        coordinator.discovered(splits(0..3), false);
        assert_eq!(given(coordinator.request(SubtaskIndex(0), "a")), Some(vec![0, 2]));
        let (answers, pushes) = coordinator.discovered(splits(3..5), false);
        assert!(answers.is_empty());
        assert_eq!(pushes, [Push { subtask: SubtaskIndex(0), splits: splits(4..5) }]);
        assert_eq!(given(coordinator.request(SubtaskIndex(1), "b")), Some(vec![1, 3]));
        assert!(coordinator.request(SubtaskIndex(1), "b").is_none());
        let (answers, _) = coordinator.discovered(Vec::new(), true);
        assert!(answers[0].1.is_none());
    }

    #[test]
    fn a_bounded_source_without_splits_ends_its_readers_at_once() {
        for all_at_start in [true, false] {
            let mut coordinator = SplitCoordinator::new(1, all_at_start);
            coordinator.discovered(Vec::new(), true);
            assert_eq!(given(coordinator.request(SubtaskIndex(0), "a")), None);
        }
    }
}
