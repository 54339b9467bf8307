//! Joins whose rows meet for a while only: within a window that both carry, or within an interval of their times.

use serde::{Deserialize, Serialize};

use super::{JoinKey, JoinType};
use crate::expr::Expr;
use crate::types::{DataType, SchemaRef};

/// Where rows carry their window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WindowColumns {
    /// window_start, TIMESTAMP(3).
    pub start: usize,
    /// window_end, TIMESTAMP(3).
    pub end: usize,
}

/// A join of rows of the same window: input 0 is the left one, input 1 the right one, both add rows only. A window is joined when
/// event time has passed its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowJoinSpec {
    /// Kind.
    pub join_type: JoinType,
    /// The window of left rows.
    pub left_window: WindowColumns,
    /// The window of right rows.
    pub right_window: WindowColumns,
    /// The rowtime that the windows were made from.
    pub time_type: DataType,
    /// What is equal in rows that join, beside the window; none = all rows of a window meet.
    pub keys: Vec<JoinKey>,
    /// What else must be true; over left, then right columns.
    pub residual: Option<Expr>,
    /// Columns of the left input.
    pub left_schema: SchemaRef,
    /// Columns of the right input.
    pub right_schema: SchemaRef,
    /// Output columns, of left, then right ones.
    pub output: Vec<usize>,
}

/// A join of rows whose times lie close to one another: input 0 is the left one, input 1 the right one, both add rows only.
///
/// Rows join when `lower_ms` ≤ left time − right time ≤ `upper_ms`, so that event time (or the clock) tells when a row has met all
/// its partners.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntervalJoinSpec {
    /// Kind: INNER, LEFT, RIGHT or FULL.
    pub join_type: JoinType,
    /// The time attribute of the left input.
    pub left_time: usize,
    /// The time attribute of the right input.
    pub right_time: usize,
    /// Whether the time is the clock's: then the values of the columns are not looked at.
    pub is_proctime: bool,
    /// The least difference of left and right time, milliseconds.
    pub lower_ms: i64,
    /// The greatest difference, milliseconds; below `lower_ms` no rows join.
    pub upper_ms: i64,
    /// What is equal in rows that join; none = each row meets each.
    pub keys: Vec<JoinKey>,
    /// What else must be true; over left, then right columns.
    pub residual: Option<Expr>,
    /// Columns of the left input.
    pub left_schema: SchemaRef,
    /// Columns of the right input.
    pub right_schema: SchemaRef,
    /// Output columns, of left, then right ones.
    pub output: Vec<usize>,
}
