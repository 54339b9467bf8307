//! When a window shows its result besides at its end: Flink's `table.exec.emit.*`, and the hint EMIT.

use std::fmt;

use serde::{Deserialize, Serialize};

/// When a window shows its result besides at its end. What was shown is updated then, so that results are a changelog by window and
/// keys. At least one of the two is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EmitStrategy {
    /// Before the end: how long after a row at the latest, in milliseconds of processing time; 0 = with each batch.
    pub early_delay_ms: Option<i64>,
    /// After the end.
    pub late: Option<LateFire>,
}

/// What becomes of rows that come after the end of their window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LateFire {
    /// How far event time may have passed the end of a window for its rows to count, in milliseconds.
    pub allowed_lateness_ms: i64,
    /// How long after such a row the result is updated at the latest, in milliseconds of processing time; 0 = with each batch.
    pub delay_ms: i64,
}

impl EmitStrategy {
    /// The same, with each batch.
    pub fn without_delay(self) -> Self {
        let late = self.late.map(|late| LateFire { delay_ms: 0, ..late });
        EmitStrategy { early_delay_ms: self.early_delay_ms.map(|_| 0), late }
    }

    /// How far event time may have passed the end of a window for its rows to count, in milliseconds.
    pub fn allowed_lateness_ms(&self) -> i64 {
        self.late.map_or(0, |late| late.allowed_lateness_ms)
    }
}

impl fmt::Display for EmitStrategy {
    /// As in Flink's plans, with the allowed lateness behind it: `early delay 1000 millisecond, late no delay, allowed lateness 10000
    /// millisecond`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let delay = |ms: i64| if ms == 0 { "no delay".to_string() } else { format!("delay {ms} millisecond") };
        let early = self.early_delay_ms.map(|ms| format!("early {}", delay(ms)));
        let late = self
            .late
            .map(|late| format!("late {}, allowed lateness {} millisecond", delay(late.delay_ms), late.allowed_lateness_ms));
        f.write_str(&early.into_iter().chain(late).collect::<Vec<_>>().join(", "))
    }
}
