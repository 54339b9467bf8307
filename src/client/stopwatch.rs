//! How long a statement took, for the prompt.

use crate::clock::{Clock, SystemClock};

/// Runs from its start.
pub(super) struct Stopwatch {
    clock: SystemClock,
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        Stopwatch { clock: SystemClock::new() }
    }

    /// `3 ms`, `1.24 s`.
    pub(super) fn text(&self) -> String {
        match self.clock.monotonic_nanos() / 1_000_000 {
            ms @ 0..1_000 => format!("{ms} ms"),
            ms => format!("{}.{:02} s", ms / 1_000, ms % 1_000 / 10),
        }
    }
}
