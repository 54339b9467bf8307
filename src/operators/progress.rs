//! How far event time (or the clock) had come in a subtask, as state: so that late rows stay late after a restart.

use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, UInt16Array};
use arrow::datatypes::Int64Type;

use super::keyed_state::{rows_in_range, state_rows};
use crate::error::Result;
use crate::runtime::{StateTable, StateTableSnapshot};
use crate::types::KeyGroupRange;

/// How far time had come, in milliseconds.
#[derive(Debug)]
pub(super) struct Progress {
    /// The time.
    pub(super) time: i64,
    key_groups: KeyGroupRange,
    restored: bool,
}

impl Progress {
    /// At the beginning, in a subtask with these key groups.
    pub(super) fn new(time: i64, key_groups: KeyGroupRange) -> Self {
        Progress { time, key_groups, restored: false }
    }
}

/// A row for each key group, so that the progress survives whatever the range; the least of several counts, so that none is late
/// that was not.
impl StateTable for Progress {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let key_groups = UInt16Array::from_iter_values(self.key_groups.groups());
        let times = Int64Array::from_value(self.time, key_groups.len());
        Ok(StateTableSnapshot::new(vec![state_rows(key_groups, vec![Arc::new(times)])?]))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            let rows = rows_in_range(rows, range)?;
            if let Some(least) = rows.column(0).as_primitive::<Int64Type>().values().iter().min() {
                self.time = if self.restored { self.time.min(*least) } else { *least };
                self.restored = true;
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        size_of::<i64>()
    }
}
