//! Sessions that hold accumulators and were shown already: what was shown of each, and when it is to be shown again.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::Int64Type;

use super::super::time::WindowTime;
use super::open_sessions::OpenSessions;
use super::session_state::rows_of_state;
use super::{SessionContent, SessionGroups};
use crate::error::Result;
use crate::runtime::StateTableSnapshot;
use crate::types::Batch;

/// Columns of state before what the session holds.
const MARK_COLUMNS: usize = 5;

/// What is known of a session.
#[derive(Debug, Clone, Default)]
pub(super) struct Mark {
    /// Whether it is open.
    pub(super) open: bool,
    /// Its bounds when it was shown; none = it was not.
    pub(super) shown: Option<(i64, i64)>,
    /// Whether it had ended when it was shown: what comes then is late.
    pub(super) ended: bool,
    /// When it is shown at the latest, by the clock, if that was set.
    pub(super) fire_at: Option<i64>,
    /// The rows that were shown of it and of those that became a part of it, since it has changed, by number.
    pub(super) former: Vec<u32>,
    /// Whether it is among the sessions that rows came for just now.
    pub(super) touched: bool,
    /// Whether what was shown of it is about to be noted.
    pub(super) queued: bool,
    /// Whether its end is waited for. Stays with the number of the session.
    pub(super) awaited: bool,
}

/// Accumulators of sessions, and what was shown of each.
pub struct UpdatingGroups {
    pub(super) groups: SessionGroups,
    pub(super) marks: Vec<Mark>,
}

impl UpdatingGroups {
    /// Without sessions.
    pub(super) fn new(groups: SessionGroups) -> Self {
        UpdatingGroups { groups, marks: Vec::new() }
    }

    /// What is known of a session.
    pub(super) fn mark(&mut self, session: u32) -> &mut Mark {
        let needed = session as usize + 1;
        if self.marks.len() < needed {
            self.marks.resize(needed, Mark::default());
        }
        &mut self.marks[session as usize]
    }

    /// Forgets what is known of a session that is no more.
    pub(super) fn forget(&mut self, session: u32) -> Mark {
        let mark = self.mark(session);
        let awaited = mark.awaited;
        std::mem::replace(mark, Mark { awaited, ..Mark::default() })
    }
}

impl SessionContent for UpdatingGroups {
    const SKIPS_NULL_TIMES: bool = SessionGroups::SKIPS_NULL_TIMES;

    fn key_columns(&self) -> &[usize] {
        self.groups.key_columns()
    }

    fn used_columns(&self) -> Option<&[bool]> {
        self.groups.used_columns()
    }

    fn add(&mut self, rows: &Batch, sessions: &[u32], num_sessions: usize) -> Result<()> {
        self.groups.add(rows, sessions, num_sessions)
    }

    fn merge(&mut self, into: u32, from: u32) -> Result<()> {
        self.groups.merge(into, from)?;
        let Mark { shown, ended, fire_at, former, .. } = self.forget(from);
        let mark = self.mark(into);
        mark.shown = mark.shown.or(shown);
        mark.ended |= ended;
        mark.fire_at = [mark.fire_at, fire_at].into_iter().flatten().min();
        mark.former.extend(former);
        Ok(())
    }

    fn num_rows(&self, session: u32) -> usize {
        self.groups.num_rows(session)
    }

    fn rows(&self, open: &OpenSessions, sessions: &[u32], time: &WindowTime) -> Result<Batch> {
        self.groups.rows(open, sessions, time)
    }

    fn clear(&mut self, sessions: &[u32]) -> Result<()> {
        sessions.iter().for_each(|session| {
            self.forget(*session);
        });
        self.groups.clear(sessions)
    }

    fn freeze(&self, open: &OpenSessions, max_parallelism: u32) -> Result<StateTableSnapshot> {
        let sessions = open.open();
        if sessions.is_empty() {
            return Ok(StateTableSnapshot::new(Vec::new()));
        }
        let marks = || sessions.iter().map(|session| &self.marks[*session as usize]);
        let held: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter(marks().map(|mark| mark.shown.map(|(start, _)| start)))),
            Arc::new(Int64Array::from_iter(marks().map(|mark| mark.shown.map(|(_, end)| end)))),
            Arc::new(BooleanArray::from_iter(marks().map(|mark| Some(mark.ended)))),
            Arc::new(Int64Array::from_iter(marks().map(|mark| mark.fire_at))),
            Arc::new(BooleanArray::from_iter(marks().map(|mark| Some(!mark.former.is_empty())))),
        ];
        let held = held.into_iter().chain(self.groups.held(&sessions)?).collect();
        Ok(StateTableSnapshot::new(vec![rows_of_state(open, &sessions, held, max_parallelism)?]))
    }

    fn restore(&mut self, columns: &[ArrayRef], sessions: &[u32], num_sessions: usize) -> Result<()> {
        let number = |column: usize, row: usize| {
            let values = columns[column].as_primitive::<Int64Type>();
            values.is_valid(row).then(|| values.value(row))
        };
        let ended = columns[2].as_boolean();
        for (row, session) in sessions.iter().enumerate() {
            let mark = self.mark(*session);
            mark.open = true;
            mark.shown = number(0, row).zip(number(1, row));
            mark.ended = ended.value(row);
            mark.fire_at = number(3, row);
        }
        self.groups.restore(&columns[MARK_COLUMNS..], sessions, num_sessions)
    }

    fn bytes(&self) -> usize {
        self.groups.bytes() + self.marks.capacity() * size_of::<Mark>()
    }
}
