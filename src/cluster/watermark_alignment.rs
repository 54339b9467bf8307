//! The alignment groups of a job: how far its sources are in event time, and how far each may go before the slowest.
//!
//! A value without clock: it is told and answers. A subtask that has not told anything holds all others back; one that has nothing to wait for,
//! or has ended, holds back nobody.

use std::collections::BTreeMap;

use crate::stream_graph::WatermarkAlignment;
use crate::types::{OperatorId, SubtaskIndex, Watermark};

/// The alignment groups of a job.
#[derive(Debug, Default)]
pub(super) struct AlignmentGroups {
    sources: BTreeMap<OperatorId, WatermarkAlignment>,
    /// How far each subtask is; none = nobody need wait for it.
    reached: BTreeMap<(OperatorId, SubtaskIndex), Option<Watermark>>,
}

impl AlignmentGroups {
    /// Of these sources: operator, group, subtasks. None has told anything.
    pub(super) fn new(sources: impl IntoIterator<Item = (OperatorId, WatermarkAlignment, u32)>) -> Self {
        let mut groups = AlignmentGroups::default();
        for (operator, alignment, parallelism) in sources {
            groups.sources.insert(operator, alignment);
            groups.reached.extend((0..parallelism).map(|subtask| ((operator, SubtaskIndex(subtask)), Some(Watermark::MIN))));
        }
        groups
    }

    /// A subtask tells how far it is. How far its splits may go.
    pub(super) fn report(&mut self, operator: OperatorId, subtask: SubtaskIndex, waited_for: Option<Watermark>) -> Watermark {
        let Some(alignment) = self.sources.get(&operator) else { return Watermark::MAX };
        self.reached.insert((operator, subtask), waited_for);
        let is_member = |source: &OperatorId| self.sources.get(source).is_some_and(|other| other.group == alignment.group);
        let members = self.reached.iter().filter(|((source, _), _)| is_member(source));
        let slowest = members.filter_map(|(_, reached)| *reached).min();
        slowest.map_or(Watermark::MAX, |slowest| Watermark(slowest.0.saturating_add_unsigned(alignment.max_drift_ms)))
    }

    /// A subtask has ended.
    pub(super) fn ended(&mut self, operator: OperatorId, subtask: SubtaskIndex) {
        if let Some(reached) = self.reached.get_mut(&(operator, subtask)) {
            *reached = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: OperatorId = OperatorId(1);
    const SLOW: OperatorId = OperatorId(2);
    const ALONE: OperatorId = OperatorId(3);

    #[test]
    fn a_source_may_run_ahead_of_the_slowest_of_its_group_by_the_drift() {
        let source = |operator, group: &str, parallelism| {
            let alignment = WatermarkAlignment { group: group.to_string(), max_drift_ms: 100, update_interval_ms: 1 };
            (operator, alignment, parallelism)
        };
        let mut groups = AlignmentGroups::new([source(FAST, "g", 1), source(SLOW, "g", 2), source(ALONE, "other", 1)]);
        let mut report =
            |operator, subtask, reached: i64| groups.report(operator, SubtaskIndex(subtask), Some(Watermark(reached))).0;
        assert!(report(FAST, 0, 500) < 0, "nobody knows how far the other one is");
        assert!(report(SLOW, 0, 40) < 0, "its second subtask is not known");
        assert_eq!(report(SLOW, 1, 30), 130);
        assert_eq!(report(FAST, 0, 500), 130);
        assert_eq!(report(ALONE, 0, 7), 107);
        assert_eq!(groups.report(SLOW, SubtaskIndex(1), None), Watermark(140), "the first one is left");
        groups.ended(SLOW, SubtaskIndex(0));
        assert_eq!(groups.report(FAST, SubtaskIndex(0), Some(Watermark(600))), Watermark(700), "it waits for itself only");
        assert_eq!(groups.report(FAST, SubtaskIndex(0), None), Watermark::MAX);
    }
}
