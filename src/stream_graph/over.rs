//! OVER as data: which rows an aggregate looks at, beside the row that it is computed for.

use serde::{Deserialize, Serialize};

use crate::expr::{AggregateCall, SortKey};
use crate::types::SchemaRef;

/// Calls over one window: each input row comes out with a column for each call. Output: input columns, then the calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverSpec {
    /// PARTITION BY columns.
    pub partition_keys: Vec<usize>,
    /// ORDER BY.
    pub order_keys: Vec<SortKey>,
    /// The rows of the partition that a call looks at.
    pub frame: OverFrame,
    /// The calls: aggregates by their name in the registry, or a function that exists with OVER only (ROW_NUMBER, LAG, …).
    pub calls: Vec<AggregateCall>,
}

/// The rows of a partition that a call looks at, seen from its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OverFrame {
    /// What bounds count.
    pub unit: FrameUnit,
    /// The first row.
    pub start: FrameBound,
    /// The last row.
    pub end: FrameBound,
}

/// What the bounds of a frame count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FrameUnit {
    /// Rows.
    Rows,
    /// Distances of the order key: milliseconds. Rows of one key come in and go together.
    Range,
}

/// Where a frame starts or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FrameBound {
    /// At the start of the partition.
    UnboundedPreceding,
    /// So many rows, or milliseconds, before.
    Preceding(i64),
    /// At the row (for RANGE: at the rows with its key).
    CurrentRow,
    /// So many rows, or milliseconds, after.
    Following(i64),
    /// At the end of the partition.
    UnboundedFollowing,
}

/// What orders the rows of an OVER, and so decides when they come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OverStrategy {
    /// The rowtime in this column: rows come out when the watermark passes them.
    EventTime(usize),
    /// The clock.
    ProcessingTime,
    /// Another column: results change as rows come and go.
    Sorted,
}

/// Calls with OVER and how they are computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverOperatorSpec {
    /// Window and calls.
    pub over: OverSpec,
    /// What orders the rows.
    pub strategy: OverStrategy,
    /// Whether someone needs `-U`.
    pub emit_update_before: bool,
    /// Columns of the input.
    pub input: SchemaRef,
}

impl OverFrame {
    /// What OVER with an ORDER BY and without a frame looks at.
    pub const RANGE_TO_CURRENT: OverFrame =
        OverFrame { unit: FrameUnit::Range, start: FrameBound::UnboundedPreceding, end: FrameBound::CurrentRow };

    /// What functions look at that number rows.
    pub const ROWS_TO_CURRENT: OverFrame =
        OverFrame { unit: FrameUnit::Rows, start: FrameBound::UnboundedPreceding, end: FrameBound::CurrentRow };
}
