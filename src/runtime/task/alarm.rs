//! The wake-up that a task has ordered from the clock for its next timer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Wake, Waker};

use crate::clock::Clock;

/// The earliest wake-up that was ordered and has not come.
#[derive(Debug, Default)]
pub(super) struct Alarm(Option<(i64, Arc<Ring>)>);

/// Wakes the task, and remembers that it did: the clock alone cannot tell, it may have been set back since.
#[derive(Debug)]
struct Ring {
    has_rung: AtomicBool,
    task: Waker,
}

impl Alarm {
    /// Has the clock wake the task at `at_ms`, unless it will be woken by then anyway.
    pub(super) fn order(&mut self, at_ms: i64, clock: &dyn Clock, task: &Waker) {
        if self.0.as_ref().is_some_and(|(ordered, ring)| *ordered <= at_ms && !ring.has_rung.load(SeqCst)) {
            return;
        }
        let ring = Arc::new(Ring { has_rung: AtomicBool::new(false), task: task.clone() });
        self.0 = Some((at_ms, Arc::clone(&ring)));
        clock.wake_at(at_ms, &Waker::from(ring));
    }
}

impl Wake for Ring {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_rung.store(true, SeqCst);
        self.task.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Rings when the test says so, whatever time it shows: always the same.
    #[derive(Debug, Default)]
    struct StuckClock(Mutex<Vec<(i64, Waker)>>);

    impl Clock for StuckClock {
        fn now_ms(&self) -> i64 {
            0
        }

        fn monotonic_nanos(&self) -> u64 {
            0
        }

        fn wake_at_nanos(&self, _at_nanos: u64, _waker: &Waker) {}

        fn wake_at(&self, at_ms: i64, waker: &Waker) {
            self.0.lock().unwrap().push((at_ms, waker.clone()));
        }
    }

    #[test]
    fn a_timer_is_ordered_again_when_its_alarm_came_and_the_clock_was_set_back() {
        let (clock, mut alarm) = (StuckClock::default(), Alarm::default());
        let mut order = |at_ms: i64| alarm.order(at_ms, &clock, Waker::noop());
        let ordered = || clock.0.lock().unwrap().iter().map(|(at_ms, _)| *at_ms).collect::<Vec<_>>();
        order(10);
        order(10);
        order(20);
        assert_eq!(ordered(), [10], "one alarm is enough");
        order(5);
        assert_eq!(ordered(), [10, 5]);
        clock.0.lock().unwrap()[1].1.wake_by_ref();
        order(5);
        assert_eq!(ordered(), [10, 5, 5]);
    }
}
