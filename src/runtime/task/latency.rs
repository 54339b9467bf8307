//! Latency markers: sources send them now and then, every task passes them on behind the rows before them, and notes how long they
//! were under way. They do not go through operators: what an operator holds back on purpose (an open window) is no latency.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::config::{Configuration, LATENCY_INTERVAL};

/// When a source sends its next latency marker.
#[derive(Debug)]
pub(super) struct LatencyMarkers {
    interval_ms: i64,
    next_ms: i64,
}

impl LatencyMarkers {
    /// As the settings say, the first one at once; none = never.
    pub(super) fn new(configuration: &Configuration) -> Option<Self> {
        let interval_ms = configuration.duration_ms(&LATENCY_INTERVAL) as i64;
        (interval_ms > 0).then_some(LatencyMarkers { interval_ms, next_ms: i64::MIN })
    }

    /// When the next one is due; none = now.
    pub(super) fn next_timer(&self) -> Option<i64> {
        (self.next_ms > i64::MIN).then_some(self.next_ms)
    }

    /// Whether one is due, and then no more before the interval has passed.
    pub(super) fn is_due(&mut self, now_ms: i64) -> bool {
        let due = now_ms >= self.next_ms;
        if due {
            self.next_ms = now_ms.saturating_add(self.interval_ms);
        }
        due
    }
}

/// How long markers were under way to a task, from all its sources.
#[derive(Debug, Default)]
pub struct Latency {
    /// Markers that came.
    pub markers: AtomicU64,
    /// The sum of their latencies, nanoseconds.
    pub nanos: AtomicU64,
    /// The greatest of them.
    pub nanos_max: AtomicU64,
}

impl Latency {
    /// A marker that was sent at `sent` has come at `now`, both by the monotonic clock, in nanoseconds.
    pub fn record(&self, sent: u64, now: u64) {
        let nanos = now.saturating_sub(sent);
        self.markers.fetch_add(1, Relaxed);
        self.nanos.fetch_add(nanos, Relaxed);
        self.nanos_max.fetch_max(nanos, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_sent_once_an_interval() {
        let mut configuration = Configuration::default();
        assert!(LatencyMarkers::new(&configuration).is_none());
        configuration.set(LATENCY_INTERVAL.key, "2 s").unwrap();
        let mut markers = LatencyMarkers::new(&configuration).unwrap();
        let due: Vec<i64> =
            [0, 1_000, 1_999, 2_000, 9_000, 10_000, 11_000].into_iter().filter(|now| markers.is_due(*now)).collect();
        assert_eq!(due, [0, 2_000, 9_000, 11_000]);
        assert_eq!(markers.next_timer(), Some(13_000));
    }
}
