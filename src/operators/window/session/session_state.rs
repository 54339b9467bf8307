//! Sessions and what they hold, behind the contract of state.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};

use super::SessionContent;
use super::open_sessions::OpenSessions;
use crate::error::{Error, Result};
use crate::operators::keyed_state::{key_groups_of, rows_in_range, state_rows};
use crate::runtime::{StateTable, StateTableSnapshot};
use crate::stream_graph::{WindowKind, WindowSpec};
use crate::types::{Batch, KeyGroupRange};

/// Sessions and what they hold.
pub(super) struct SessionState<C> {
    pub(super) open: OpenSessions,
    pub(super) content: C,
    pub(super) gap: i64,
    /// Whether the types of columns are known: with the first rows.
    is_open: bool,
    max_parallelism: u32,
}

impl<C: SessionContent> SessionState<C> {
    /// Without sessions.
    pub(super) fn new(window: &WindowSpec, content: C, max_parallelism: u32) -> Result<Self> {
        let WindowKind::Session { gap_ms: gap } = window.kind else {
            return Err(Error::internal("windows of another kind are no sessions"));
        };
        Ok(SessionState { open: OpenSessions::new(gap, &[])?, content, gap, is_open: false, max_parallelism })
    }

    /// Looks up the keys of rows.
    pub(super) fn find_keys(&mut self, batch: &Batch) -> Result<()> {
        let keys: Vec<ArrayRef> = self.content.key_columns().iter().map(|key| Arc::clone(batch.column(*key))).collect();
        self.find(&keys, batch.num_rows())
    }

    pub(super) fn find(&mut self, keys: &[ArrayRef], num_rows: usize) -> Result<()> {
        if !self.is_open {
            let types: Vec<DataType> = keys.iter().map(|column| column.data_type().clone()).collect();
            self.open = OpenSessions::new(self.gap, &types)?;
            self.is_open = true;
        }
        self.open.find_keys(keys, num_rows)
    }
}

/// Start and end of sessions, as columns of state and of results.
pub(super) fn bounds_of(open: &OpenSessions, sessions: &[u32]) -> [Vec<i64>; 2] {
    let (starts, ends) = sessions.iter().map(|session| open.bounds(*session)).unzip();
    [starts, ends]
}

/// Rows of state: key group, start, end, key columns, and what the session holds, which has a row for each of `sessions`.
pub(super) fn rows_of_state(
    open: &OpenSessions,
    sessions: &[u32],
    held: Vec<ArrayRef>,
    max_parallelism: u32,
) -> Result<RecordBatch> {
    let key_groups = key_groups_of(open.hashes(sessions), max_parallelism);
    let bounds = bounds_of(open, sessions).map(|times| Arc::new(Int64Array::from(times)) as ArrayRef);
    state_rows(key_groups, bounds.into_iter().chain(open.keys(sessions)?).chain(held).collect())
}

impl<C: SessionContent> StateTable for SessionState<C> {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        self.content.freeze(&self.open, self.max_parallelism)
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        let num_keys = self.content.key_columns().len();
        snapshot.for_each_batch(|rows| {
            let rows = rows_in_range(&rows, range)?;
            if rows.num_rows() == 0 {
                return Ok(());
            }
            let bounds = |index: usize| rows.column(index).as_primitive::<Int64Type>().values();
            let (starts, ends) = (bounds(0), bounds(1));
            let (keys, held) = rows.columns()[2..].split_at(num_keys);
            self.find(keys, rows.num_rows())?;
            let sessions: Vec<u32> = (0..rows.num_rows()).map(|row| self.open.restore(row, starts[row], ends[row])).collect();
            self.content.restore(held, &sessions, self.open.num_sessions())
        })
    }

    fn bytes(&self) -> usize {
        self.open.bytes() + self.content.bytes()
    }
}
