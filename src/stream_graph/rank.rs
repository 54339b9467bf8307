//! Top-N as data: which of a partition's rows, in an order, are kept.

use serde::{Deserialize, Serialize};

use crate::expr::SortKey;
use crate::types::{DataType, SchemaRef};

/// The rows of each partition whose number in its order lies in a range. Output: input columns, then the number if asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankSpec {
    /// PARTITION BY columns; none = all rows are one partition. Without those of `window`.
    pub partition_keys: Vec<usize>,
    /// ORDER BY. Rows with equal keys are numbered in the order in which they came.
    pub order_keys: Vec<SortKey>,
    /// Which numbers are kept.
    pub range: RankRange,
    /// Whether the number, BIGINT NOT NULL, is the last output column.
    pub output_number: bool,
    /// The window that rows carry and that is part of the partition: then rows come out when it ends, once and for all.
    pub window: Option<AttachedWindow>,
    /// How long a partition is kept without new rows, milliseconds, where a hint says so.
    pub ttl: Option<u64>,
}

/// Numbers from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RankRange {
    /// The first one.
    pub start: u64,
    /// The last one, not before the first.
    pub end: RankEnd,
}

/// Where a range of numbers ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RankEnd {
    /// At this number.
    Constant(u64),
    /// At the number in this column of the partition's first row (BIGINT), as in Flink.
    Column(usize),
}

impl RankRange {
    /// The single number of the range, if it has one.
    pub fn single(&self) -> Option<u64> {
        (self.end == RankEnd::Constant(self.start)).then_some(self.start)
    }
}

/// A window that rows carry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AttachedWindow {
    /// window_start, TIMESTAMP(3).
    pub start: usize,
    /// window_end, TIMESTAMP(3).
    pub end: usize,
    /// The time attribute it was made from: for proctime the window closes by the clock.
    pub time_type: DataType,
}

/// How a rank is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RankStrategy {
    /// The first row of each partition to come: `rn = 1` by processing time.
    FirstToCome,
    /// The last row of each partition to come: `rn = 1` by processing time, descending.
    LastToCome,
    /// The earliest row of each partition by this rowtime, once the watermark has passed it.
    Earliest(usize),
    /// The latest row of each partition by this rowtime; of rows with one time the last to come.
    Latest(usize),
    /// The first rows of an input that only adds rows: others are forgotten.
    AppendFast,
    /// Of an input that takes rows back all rows are kept.
    Retract,
    /// When the window ends. `latest_of_ties`: of rows with equal keys the last one to come goes first.
    Window {
        /// Whether of rows with equal keys the last one to come goes first.
        latest_of_ties: bool,
    },
}

/// Where a batch is cut, so that changes on both sides are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeCut {
    /// Where event time advances: what was there before counts in a window that ends then.
    AtWatermarks,
    /// Behind each row: a session reaches as far as any row that was ever there.
    AtRows,
}

/// ORDER BY … LIMIT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SortLimitSpec {
    /// Order.
    pub keys: Vec<SortKey>,
    /// Rows left out at the front.
    pub offset: u64,
    /// Rows kept after them.
    pub fetch: u64,
    /// Whether the input takes rows back.
    pub input_retracts: bool,
    /// Which changes must all come, since someone sorts them into windows of event time; none = one for each row and batch will do.
    pub changes: Option<ChangeCut>,
    /// Columns of the input.
    pub input: SchemaRef,
}

/// A rank and how it is computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankOperatorSpec {
    /// What is kept.
    pub rank: RankSpec,
    /// How.
    pub strategy: RankStrategy,
    /// Whether someone needs `-U`.
    pub emit_update_before: bool,
    /// Which changes must all come, since someone sorts them into windows of event time; none = one for each row and batch will do.
    pub changes: Option<ChangeCut>,
    /// Columns of the input.
    pub input: SchemaRef,
}
