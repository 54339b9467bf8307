//! What sessions hold.

use arrow::array::ArrayRef;

use super::super::time::WindowTime;
use super::open_sessions::OpenSessions;
use crate::error::Result;
use crate::runtime::StateTableSnapshot;
use crate::types::Batch;

/// What sessions hold, by their numbers.
pub(super) trait SessionContent: Send + Sized {
    /// Whether rows without a time are left out; else they are an error.
    const SKIPS_NULL_TIMES: bool;

    /// Columns of the input that make the key of a session.
    fn key_columns(&self) -> &[usize];

    /// Input columns that are read; of others any column of theirs may stand in the rows that are added. None: all.
    fn used_columns(&self) -> Option<&[bool]>;

    /// Adds rows, each to its session. Numbers are below `num_sessions`.
    fn add(&mut self, rows: &Batch, sessions: &[u32], num_sessions: usize) -> Result<()>;

    /// Puts what a session holds behind what another one does.
    fn merge(&mut self, into: u32, from: u32) -> Result<()>;

    /// How many rows come out of a session.
    fn num_rows(&self, session: u32) -> usize;

    /// The rows that come out of sessions, in this order.
    fn rows(&self, open: &OpenSessions, sessions: &[u32], time: &WindowTime) -> Result<Batch>;

    /// Empties sessions.
    fn clear(&mut self, sessions: &[u32]) -> Result<()>;

    /// A frozen view: rows of `key_group`, start and end of the session, the columns of its key, and what it holds.
    fn freeze(&self, open: &OpenSessions, max_parallelism: u32) -> Result<StateTableSnapshot>;

    /// Takes in what [`Self::freeze`] gave behind the key, each row for a session.
    fn restore(&mut self, columns: &[ArrayRef], sessions: &[u32], num_sessions: usize) -> Result<()>;

    /// Bytes held.
    fn bytes(&self) -> usize;
}
