//! Which flushes have passed all sinks of a job: so a test, or a session, can wait until what it wrote is visible.

use std::collections::{BTreeMap, BTreeSet};

use crate::runtime::FlushId;
use crate::runtime::task::ExecutionAttemptId;

/// Counts the acknowledgements of the sink tasks. `R` is what those who wait left to be answered with.
#[derive(Debug)]
pub(super) struct FlushTracker<R> {
    /// The latest flush that passed each sink task that still runs. A flush that passed implies all before it, as ids rise.
    passed: BTreeMap<ExecutionAttemptId, Option<FlushId>>,
    waiting: Vec<(FlushId, R)>,
}

impl<R> FlushTracker<R> {
    /// For these sink tasks.
    pub(super) fn new(sinks: BTreeSet<ExecutionAttemptId>) -> Self {
        FlushTracker { passed: sinks.into_iter().map(|sink| (sink, None)).collect(), waiting: Vec::new() }
    }

    /// The job has started again, with these sink tasks: who waits goes on waiting.
    pub(super) fn restart(&mut self, sinks: BTreeSet<ExecutionAttemptId>) {
        self.passed = sinks.into_iter().map(|sink| (sink, None)).collect();
    }

    /// A flush has passed the sinks of a task. Gives who need wait no longer.
    pub(super) fn acknowledge(&mut self, sink: ExecutionAttemptId, flush: FlushId) -> Vec<R> {
        if let Some(passed) = self.passed.get_mut(&sink) {
            *passed = (*passed).max(Some(flush));
        }
        self.take_passed()
    }

    /// A task has ended: nothing of it becomes visible any more. Gives who need wait no longer.
    pub(super) fn ended(&mut self, sink: ExecutionAttemptId) -> Vec<R> {
        self.passed.remove(&sink);
        self.take_passed()
    }

    /// Somebody waits. Given back at once when the flush has passed.
    pub(super) fn wait(&mut self, flush: FlushId, reply: R) -> Vec<R> {
        self.waiting.push((flush, reply));
        self.take_passed()
    }

    fn take_passed(&mut self) -> Vec<R> {
        let least = self.passed.values().min().copied();
        let passed = |flush: &FlushId| least.is_none_or(|least| least.is_some_and(|least| least >= *flush));
        self.waiting.extract_if(.., |(flush, _)| passed(flush)).map(|(_, reply)| reply).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{JobId, SubtaskIndex, VertexId};

    #[test]
    fn a_flush_has_passed_when_every_running_sink_says_so() {
        let sink =
            |subtask| ExecutionAttemptId { job: JobId(1), vertex: VertexId(0), subtask: SubtaskIndex(subtask), attempt: 0 };
        let mut tracker = FlushTracker::new([sink(0), sink(1), sink(2)].into());
        assert!(tracker.wait(FlushId(2), "two").is_empty());
        assert!(tracker.acknowledge(sink(0), FlushId(1)).is_empty());
        assert!(tracker.acknowledge(sink(0), FlushId(2)).is_empty());
        assert!(tracker.acknowledge(sink(1), FlushId(3)).is_empty());
        assert_eq!(tracker.ended(sink(2)), ["two"]);
        assert_eq!(tracker.wait(FlushId(1), "one"), ["one"]);
        assert!(tracker.wait(FlushId(3), "three").is_empty());
    }
}
