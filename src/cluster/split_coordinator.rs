//! The coordinator of one source: keeps the splits that its enumerator found until readers ask for them.
//!
//! Two ways, as the enumerator wants it: *all at start*, where each reader gets its share at once and later finds are pushed to it
//! (their watermarks are merged by minimum, so a reader must know all its splits); or *on request*, where a reader gets
//! the next split when it has none left (so a fast reader reads more). Lives in the JobMaster's main thread.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::runtime::Split;
use crate::runtime::task::SplitAssignment;
use crate::types::SubtaskIndex;

/// Splits pushed to a reader that did not ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// To whom.
    pub subtask: SubtaskIndex,
    /// The splits.
    pub assignment: SplitAssignment,
}

/// What a checkpoint keeps of a source in the JobMaster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCheckpoint {
    /// What the enumerator has found so far, in its connector's form.
    pub enumerator: String,
    /// The splits of those that no reader had received at its barrier.
    pub unassigned: Vec<Split>,
}

/// Splits given to one reader, until a checkpoint is complete that has them.
#[derive(Debug, Default)]
struct Given {
    /// How many were given before those that are kept.
    before: u64,
    splits: VecDeque<Split>,
}

impl Given {
    fn give(&mut self, splits: Vec<Split>) -> SplitAssignment {
        let before = self.before + self.splits.len() as u64;
        self.splits.extend(splits.iter().cloned());
        SplitAssignment { before, splits }
    }
}

/// The coordinator of one source. `R` is what a waiting reader left to be answered with.
#[derive(Debug)]
pub struct SplitCoordinator<R> {
    all_at_start: bool,
    /// All at start: what each reader is owed. On request: everything is owed to whoever asks, under subtask 0.
    owed: Vec<VecDeque<Split>>,
    /// Which readers have had splits.
    started: Vec<bool>,
    /// Which readers have had an answer: the first one does not wait for splits that may come.
    answered: Vec<bool>,
    /// What each reader was given and may not have received at the barrier of the next checkpoint.
    given: Vec<Given>,
    waiting: BTreeMap<SubtaskIndex, R>,
    /// How many splits were ever found: spreads them over the readers in turn.
    found: usize,
    complete: bool,
}

/// What a reader is answered: splits, or that no more come.
pub type Assignment = Option<SplitAssignment>;

impl<R> SplitCoordinator<R> {
    /// For a source with so many readers.
    pub fn new(parallelism: u32, all_at_start: bool) -> Self {
        let readers = parallelism as usize;
        SplitCoordinator {
            all_at_start,
            owed: (0..readers).map(|_| VecDeque::new()).collect(),
            started: vec![false; readers],
            answered: vec![false; readers],
            given: (0..readers).map(|_| Given::default()).collect(),
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

    /// A reader asks. Its answer now, or none: then `reader` is kept until there is one. The first answer comes at once, without splits if
    /// there are none yet: others wait for the reader to begin.
    pub fn request(&mut self, subtask: SubtaskIndex, reader: R) -> Option<(R, Assignment)> {
        let is_first = !std::mem::replace(&mut self.answered[subtask.0 as usize], true);
        match self.assign(subtask) {
            Some(assignment) => Some((reader, assignment)),
            None if is_first => Some((reader, Some(self.given[subtask.0 as usize].give(Vec::new())))),
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
        Some(Some(self.given[index].give(splits)))
    }

    /// The splits found so far that no reader had received at its barrier, where `received` says how many each had (in this attempt, those
    /// of its restored state left out; a reader that has ended had all). Asked when all barriers have passed; the enumerator's state is of
    /// the same moment. So a split is kept here or by its reader, wherever it was on its way.
    pub fn unassigned(&self, received: impl Fn(SubtaskIndex) -> u64) -> Vec<Split> {
        let mut unassigned: Vec<Split> = Vec::new();
        for (index, given) in self.given.iter().enumerate() {
            let known = received(SubtaskIndex(index as u32)).saturating_sub(given.before);
            unassigned.extend(given.splits.iter().skip(known.min(given.splits.len() as u64) as usize).cloned());
        }
        unassigned.extend(self.owed.iter().flatten().cloned());
        unassigned.sort_by_key(|split| split.id);
        unassigned
    }

    /// A checkpoint is complete at whose barriers the readers had received so many splits: those are not asked for again.
    pub fn forget(&mut self, received: impl Fn(SubtaskIndex) -> u64) {
        for (index, given) in self.given.iter_mut().enumerate() {
            let known = received(SubtaskIndex(index as u32)).saturating_sub(given.before).min(given.splits.len() as u64);
            given.splits.drain(..known as usize);
            given.before += known;
        }
    }

    /// What is owed to readers that are busy with their first splits and may never ask again.
    fn pushes(&mut self) -> Vec<Push> {
        if !self.all_at_start {
            return Vec::new();
        }
        let mut pushes = Vec::new();
        for (index, owed) in self.owed.iter_mut().enumerate() {
            if self.started[index] && !owed.is_empty() {
                let assignment = self.given[index].give(owed.drain(..).collect());
                pushes.push(Push { subtask: SubtaskIndex(index as u32), assignment });
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
        answer.expect("an answer is due").1.map(|assignment| ids(&assignment.splits))
    }

    #[test]
    fn on_request_each_reader_takes_the_next_one() {
        let mut coordinator = SplitCoordinator::new(2, false);
        assert_eq!(given(coordinator.request(SubtaskIndex(1), "early")), Some(vec![]), "it may begin");
        assert!(coordinator.request(SubtaskIndex(1), "early").is_none());
        let (answers, pushes) = coordinator.discovered(splits(0..3), true);
        assert_eq!(answers.len(), 1);
        assert_eq!(ids(&answers[0].1.as_ref().unwrap().splits), [0]);
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
        assert_eq!(pushes, [Push { subtask: SubtaskIndex(0), assignment: SplitAssignment { before: 2, splits: splits(4..5) } }]);
        assert_eq!(given(coordinator.request(SubtaskIndex(1), "b")), Some(vec![1, 3]));
        assert!(coordinator.request(SubtaskIndex(1), "b").is_none());
        let (answers, _) = coordinator.discovered(Vec::new(), true);
        assert!(answers[0].1.is_none());
    }

    #[test]
    fn a_checkpoint_has_each_split_once_wherever_it_is() {
        for all_at_start in [true, false] {
            let mut coordinator = SplitCoordinator::new(2, all_at_start);
            coordinator.discovered(splits(0..6), false);
            let mut given = [ids_of_answer(&mut coordinator, 0), ids_of_answer(&mut coordinator, 1)];
            given[0].extend(
                coordinator
                    .discovered(splits(6..8), false)
                    .1
                    .iter()
                    .flat_map(|push| ids(&push.assignment.splits))
                    .filter(|id| id % 2 == 0),
            );
            for received in 0..=given[0].len() {
                let counts = |subtask: SubtaskIndex| if subtask.0 == 0 { received as u64 } else { u64::MAX };
                let mut all = ids(&coordinator.unassigned(counts));
                all.extend(&given[0][..received]);
                all.extend(&given[1]);
                all.sort_unstable();
                all.dedup();
                let seven = if all_at_start { vec![0, 1, 2, 3, 4, 5, 6] } else { (0..8).collect() };
                assert_eq!(all[..7], seven[..7], "{received} of {given:?}");
            }
            coordinator.forget(|_| 1);
            assert!(!ids(&coordinator.unassigned(|_| 1)).contains(&0));
        }
    }

    fn ids_of_answer(coordinator: &mut SplitCoordinator<&'static str>, subtask: u32) -> Vec<u64> {
        given(coordinator.request(SubtaskIndex(subtask), "r")).unwrap_or_default()
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
