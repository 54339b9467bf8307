//! OVER as data: which rows an aggregate looks at, beside the row that it is computed for.

use serde::{Deserialize, Serialize};

use super::rank::ChangeCut;
use crate::expr::{AggregateCall, SortKey};
use crate::types::SchemaRef;

/// Calls over the partitions of a window: each input row comes out with a column for each call. Output: input columns, then the calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OverSpec {
    /// PARTITION BY columns.
    pub partition_keys: Vec<usize>,
    /// ORDER BY; none = rows are in the order in which they came, and all are peers.
    pub order_keys: Vec<SortKey>,
    /// The calls.
    pub calls: Vec<OverCall>,
    /// Of a single RANK or DENSE_RANK the last number that is wanted: rows behind need not come out.
    pub limit: Option<u64>,
    /// How long a partition is kept without new rows, milliseconds, where a hint says so and time does not bound it.
    pub ttl: Option<u64>,
}

/// A call with OVER.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverCall {
    /// The rows of the partition that it looks at. What numbers rows or looks at a row some rows away says here how far it looks.
    pub frame: OverFrame,
    /// An aggregate by its name in the registry, or a function that exists with OVER only (ROW_NUMBER, LEAD, …).
    pub call: AggregateCall,
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
    /// What the distances of a RANGE are.
    pub counts: RangeUnit,
}

/// What the distances of a RANGE are. Of a frame of ROWS it says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RangeUnit {
    /// Milliseconds.
    Milliseconds,
    /// Months of the calendar: a month before 31 March is the last day of February.
    Months,
    /// Numbers with so many digits after the point.
    Numbers {
        /// Digits after the point.
        scale: u8,
    },
}

/// What the bounds of a frame count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FrameUnit {
    /// Rows.
    Rows,
    /// Distances of the order key. Rows of one key come in and go together.
    Range,
}

/// Where a frame starts or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FrameBound {
    /// At the start of the partition.
    UnboundedPreceding,
    /// So many rows, or so far, before.
    Preceding(i64),
    /// At the row (for RANGE: at the rows with its key).
    CurrentRow,
    /// So many rows, or so far, after.
    Following(i64),
    /// At the end of the partition.
    UnboundedFollowing,
}

/// What orders the rows of an OVER, and so decides when they come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OverStrategy {
    /// The rowtime in this column, over frames that end with the row: rows come out when the watermark passes them.
    EventTime(usize),
    /// The rowtime in this column: rows come out when the watermark has passed all rows that they look at.
    EventTimeFrames(usize),
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
    /// Whether rows of the input can be taken back.
    pub input_retracts: bool,
    /// Whether someone needs `-U`.
    pub emit_update_before: bool,
    /// Which changes must all come, since someone sorts them into windows of event time; none = one for each row and batch will do.
    pub changes: Option<ChangeCut>,
    /// Columns of the input.
    pub input: SchemaRef,
}

impl OverSpec {
    /// Whether RANK and DENSE_RANK count all rows up to the last with the key, as Flink's do. It runs them over one ascending key only,
    /// and not as a Top-N; elsewhere they are those of the standard.
    pub fn ranks_count_peers(&self) -> bool {
        self.limit.is_none() && matches!(self.order_keys.as_slice(), [key] if !key.descending)
    }
}

impl OverOperatorSpec {
    /// Whether time bounds all that is kept, since no frame reaches further than a stretch of it.
    pub fn is_bounded_by_time(&self) -> bool {
        self.strategy != OverStrategy::Sorted && self.over.calls.iter().all(|over| over.running_frame().is_stretch_of_time())
    }
}

impl OverCall {
    /// The frame, where it is run through by letting rows in one after the other. The value some rows back is seen from the last peer
    /// then, as in Flink.
    pub fn running_frame(&self) -> OverFrame {
        match self.call.function.as_str() {
            "LAG" => OverFrame::RANGE_TO_CURRENT,
            _ => self.frame,
        }
    }
}

impl FrameBound {
    /// How far a start lies before its row, in rows or distances; less than 0 = after it, none = without bound.
    pub fn before(self) -> Option<i64> {
        match self {
            FrameBound::Preceding(distance) => Some(distance),
            FrameBound::CurrentRow => Some(0),
            FrameBound::Following(distance) => Some(-distance),
            FrameBound::UnboundedPreceding | FrameBound::UnboundedFollowing => None,
        }
    }

    /// How far an end lies after its row; less than 0 = before it, none = without bound.
    pub fn after(self) -> Option<i64> {
        self.before().map(|before| -before)
    }
}

impl OverFrame {
    /// A frame of rows or of milliseconds.
    pub const fn new(unit: FrameUnit, start: FrameBound, end: FrameBound) -> Self {
        OverFrame { unit, start, end, counts: RangeUnit::Milliseconds }
    }

    /// What OVER with an ORDER BY and without a frame looks at.
    pub const RANGE_TO_CURRENT: OverFrame =
        OverFrame::new(FrameUnit::Range, FrameBound::UnboundedPreceding, FrameBound::CurrentRow);

    /// The rows up to the current one: what functions look at that number rows.
    pub const ROWS_TO_CURRENT: OverFrame =
        OverFrame::new(FrameUnit::Rows, FrameBound::UnboundedPreceding, FrameBound::CurrentRow);

    /// The whole partition.
    pub const PARTITION: OverFrame =
        OverFrame::new(FrameUnit::Range, FrameBound::UnboundedPreceding, FrameBound::UnboundedFollowing);

    /// Whether its row is always one of its rows.
    pub fn has_its_row(&self) -> bool {
        self.start.before().is_none_or(|before| before >= 0) && self.end.after().is_none_or(|after| after >= 0)
    }

    /// Whether it is so far before its row and so far after it, by RANGE.
    pub fn is_stretch_of_time(&self) -> bool {
        self.unit == FrameUnit::Range && self.start.before().is_some() && self.end.after().is_some()
    }

    /// A distance of a RANGE over times in milliseconds; of months, the most that they can be.
    pub fn at_most_ms(&self, distance: i64) -> i64 {
        const DAY_MS: i64 = 86_400_000;
        match self.counts {
            RangeUnit::Months => distance.saturating_mul(if distance < 0 { 28 } else { 31 }).saturating_mul(DAY_MS),
            RangeUnit::Milliseconds | RangeUnit::Numbers { .. } => distance,
        }
    }

    /// Whether bounds are distances of the order key.
    pub fn has_distances(&self) -> bool {
        let is_distance = |bound| matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_));
        self.unit == FrameUnit::Range && (is_distance(self.start) || is_distance(self.end))
    }
}
