//! The rows of a batch that have found their sessions and are added to them together.

use arrow::array::UInt32Array;

use super::SessionContent;
use super::session_state::SessionState;
use super::session_window::take_used;
use crate::error::Result;
use crate::types::Batch;

/// In place of a session: the row came too late for all.
const LATE: u32 = u32::MAX;

/// Rows that were placed but not added, the last ones before the row that is next.
#[derive(Default)]
pub(super) struct PlacedRows {
    sessions: Vec<u32>,
    /// The first of these rows.
    from: usize,
    has_late: bool,
}

impl PlacedRows {
    /// The next row is one of a session.
    pub(super) fn push(&mut self, session: u32) {
        self.sessions.push(session);
    }

    /// The next row is one of no session.
    pub(super) fn push_late(&mut self) {
        self.has_late = true;
        self.sessions.push(LATE);
    }

    /// Adds the rows to their sessions.
    pub(super) fn add_to<C: SessionContent>(&mut self, state: &mut SessionState<C>, batch: &Batch) -> Result<()> {
        let count = self.sessions.len();
        if count == 0 {
            return Ok(());
        }
        let mut rows = batch.slice(self.from, count);
        if self.has_late {
            let kept: Vec<u32> = (0..count as u32).filter(|row| self.sessions[*row as usize] != LATE).collect();
            rows = take_used(&rows, &UInt32Array::from(kept), state.content.used_columns())?;
            self.sessions.retain(|session| *session != LATE);
        }
        if rows.num_rows() > 0 {
            state.content.add(&rows, &self.sessions, state.open.num_sessions())?;
        }
        self.from += count;
        self.has_late = false;
        self.sessions.clear();
        Ok(())
    }
}
