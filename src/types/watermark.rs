//! Watermarks, also those inside a batch.
//!
//! A watermark `t` says: no row with a time ≤ `t` is expected any more. Flink advances it per record; here a batch carries its
//! *steps*, so that a whole batch is still processed at once and lateness is judged against the watermark before each row.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A point in event time, in milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Watermark(pub i64);

impl Watermark {
    /// Before any watermark.
    pub const MIN: Watermark = Watermark(i64::MIN);
    /// The end of time: sent when a bounded input ends.
    pub const MAX: Watermark = Watermark(i64::MAX);
}

impl fmt::Display for Watermark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Watermark::MIN => f.write_str("min"),
            Watermark::MAX => f.write_str("max"),
            Watermark(ms) => write!(f, "{ms}"),
        }
    }
}

/// A watermark inside a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatermarkStep {
    /// How many rows of the batch come before it: 0 to the number of rows.
    pub rows_before: u32,
    /// The watermark from there on.
    pub watermark: Watermark,
}

/// The watermark steps of a batch: both `rows_before` and `watermark` strictly rising.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WatermarkSteps(Vec<WatermarkStep>);

impl WatermarkSteps {
    /// No step.
    pub const fn none() -> Self {
        WatermarkSteps(Vec::new())
    }

    /// Adds a step at or after the last one. One at the same place replaces it; one that does not rise is left out.
    pub fn push(&mut self, rows_before: u32, watermark: Watermark) {
        if let Some(last) = self.0.last_mut() {
            assert!(last.rows_before <= rows_before, "watermark steps go forward");
            if watermark <= last.watermark {
                return;
            }
            if last.rows_before == rows_before {
                last.watermark = watermark;
                return;
            }
        }
        self.0.push(WatermarkStep { rows_before, watermark });
    }

    /// The steps in order.
    pub fn as_slice(&self) -> &[WatermarkStep] {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The watermark after the batch.
    pub fn last(&self) -> Option<Watermark> {
        self.0.last().map(|step| step.watermark)
    }

    /// The watermark that holds for a row.
    pub fn before(&self, row: u32) -> Option<Watermark> {
        let at = self.0.partition_point(|step| step.rows_before <= row);
        at.checked_sub(1).map(|at| self.0[at].watermark)
    }

    /// The steps with every `rows_before` mapped by `f`, which must not decrease: for filters, takes and slices.
    pub fn remap(&self, mut f: impl FnMut(u32) -> u32) -> Self {
        let mut steps = WatermarkSteps(Vec::with_capacity(self.0.len()));
        for step in &self.0 {
            steps.push(f(step.rows_before), step.watermark);
        }
        steps
    }

    /// The steps with every watermark mapped by `f` (none = left out): for valves.
    pub fn map_watermarks(&self, mut f: impl FnMut(Watermark) -> Option<Watermark>) -> Self {
        let mut steps = WatermarkSteps::none();
        for step in &self.0 {
            if let Some(watermark) = f(step.watermark) {
                steps.push(step.rows_before, watermark);
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_at_one_place_merge_and_never_go_back() {
        let mut steps = WatermarkSteps::none();
        steps.push(1, Watermark(5));
        steps.push(2, Watermark(4));
        steps.push(2, Watermark(7));
        steps.push(2, Watermark(9));
        assert_eq!(
            steps.as_slice(),
            [
                WatermarkStep { rows_before: 1, watermark: Watermark(5) },
                WatermarkStep { rows_before: 2, watermark: Watermark(9) }
            ]
        );
        assert_eq!([0, 1, 2].map(|row| steps.before(row)), [None, Some(Watermark(5)), Some(Watermark(9))]);
        assert_eq!(steps.remap(|_| 0).as_slice(), [WatermarkStep { rows_before: 0, watermark: Watermark(9) }]);
    }
}
