//! What an operator is, as data: the runtime hands it, unread, to the operator factory of the process that runs it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::emit::EmitStrategy;
use super::over::OverOperatorSpec;
use super::rank::{ChangeCut, RankOperatorSpec, SortLimitSpec};
use super::{ExpandSpec, IntervalJoinSpec, WatermarkTiming, WindowJoinSpec};
use crate::catalog::{ObjectPath, Options};
use crate::expr::{AggregateCall, Expr, SortKey};
use crate::types::{ChangelogMode, DataType, Field, ResultId, Schema, SchemaRef, TypeKind, Value};

/// What an operator is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum OperatorSpec {
    /// Reads a table. No input.
    Source(Box<SourceSpec>),
    /// Constant rows, produced by subtask 0. No input.
    Values {
        /// The rows.
        rows: Vec<Vec<Value>>,
        /// Their columns.
        schema: SchemaRef,
    },
    /// Filter, then projection (Flink's Calc). Input columns → `projection`.
    Calc {
        /// Rows where it is not true are left out.
        predicate: Option<Expr>,
        /// Output columns; none = all input columns as they are.
        projection: Option<Vec<Expr>>,
    },
    /// Gives the stream its watermarks where that could not be done in the source.
    WatermarkAssigner(WatermarkSpec),
    /// Window table function without aggregation: appends window_start, window_end, window_time; a row for each window.
    WindowTableFunction(WindowSpec),
    /// UNNEST: a row for each element of a collection in the row.
    Unnest(UnnestSpec),
    /// GROUPING SETS: each row once for each set.
    Expand(ExpandSpec),
    /// GROUP BY without window. Output: key columns, then aggregates.
    GroupAggregate {
        /// Key columns; none = one global group (which exists from the first row on).
        keys: Vec<usize>,
        /// Aggregates.
        aggregates: Vec<AggregateCall>,
        /// Whether the input takes rows back.
        input_retracts: bool,
        /// Whether someone needs `-U`.
        emit_update_before: bool,
    },
    /// GROUP BY window_start, window_end [, keys]. Output: key columns, aggregates, window properties.
    WindowAggregate(WindowAggregateSpec),
    /// ORDER BY … LIMIT: keeps the first rows of the changing table. Runs at parallelism 1.
    SortLimit(SortLimitSpec),
    /// ORDER BY rowtime ASC [, more]: emits rows in order as the watermark passes them. Runs at parallelism 1.
    TemporalSort {
        /// Order; the first key is the rowtime, ascending.
        keys: Vec<SortKey>,
    },
    /// ORDER BY of a bounded input without LIMIT: emits all rows in order at the end of input. Runs at parallelism 1.
    BoundedSort {
        /// Order.
        keys: Vec<SortKey>,
        /// Whether the input takes rows back.
        input_retracts: bool,
    },
    /// LIMIT without ORDER BY over an insert-only input. Runs at parallelism 1.
    Limit {
        /// Rows left out first.
        offset: u64,
        /// Rows passed after them; none = all.
        fetch: Option<u64>,
    },
    /// Aggregates with OVER: each row with the results over its frame. Output: input columns, then the calls.
    OverAggregate(OverOperatorSpec),
    /// ROW_NUMBER with a bound on the number: Top-N and deduplication, also by window.
    Rank(RankOperatorSpec),
    /// Joins each left row with the one row (or none) of the right input: an uncorrelated scalar subquery. Runs at parallelism 1.
    ScalarJoin(ScalarJoinSpec),
    /// Joins two changing tables that are both kept for ever. Rows with equal keys meet in one subtask; without keys it runs at
    /// parallelism 1.
    RegularJoin(Box<RegularJoinSpec>),
    /// Joins rows of the same window.
    WindowJoin(Box<WindowJoinSpec>),
    /// Joins rows whose times lie within an interval of one another.
    IntervalJoin(Box<IntervalJoinSpec>),
    /// Keeps the last row of each key, and makes of changes by key (without former content, or repeated) a full changelog.
    ChangelogNormalize {
        /// Key columns.
        keys: Vec<usize>,
        /// Columns.
        schema: SchemaRef,
        /// Whether someone needs `-U`.
        emit_update_before: bool,
        /// Which changes must all come, since someone sorts them into windows of event time; none = one for each row and batch will do.
        changes: Option<ChangeCut>,
    },
    /// Shows an upsert sink the last of the rows that share its primary key.
    SinkMaterializer(SinkMaterializerSpec),
    /// Writes a table.
    Sink(Box<SinkSpec>),
    /// Hands the rows of a SELECT to the session that asked.
    Collect {
        /// Where to.
        result: ResultId,
        /// Columns.
        schema: SchemaRef,
    },
}

/// A table to read. The source operator does, in this order: read the produced columns, compute `computed`, generate watermarks
/// per split, filter by `predicate`, stop at `limit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceSpec {
    /// The table, as it is kept ([`ObjectPath::stored`]).
    pub table: ObjectPath,
    /// Connector, as in `'connector' = '…'`.
    pub connector: String,
    /// Options of WITH and of hints, `connector` included.
    pub options: Options,
    /// What relative paths start from.
    pub base_dir: PathBuf,
    /// All physical columns of the table, in the order of its definition.
    pub physical: SchemaRef,
    /// Which of them are produced, by position, rising.
    pub projection: Vec<usize>,
    /// Metadata columns produced after them: the field's name is the connector's key.
    pub metadata: Vec<Field>,
    /// PARTITIONED BY columns, by position in `physical`.
    pub partition_keys: Vec<usize>,
    /// Output columns over the produced ones; none = the produced ones.
    pub computed: Option<Vec<Expr>>,
    /// Watermark over the output columns.
    pub watermark: Option<WatermarkSpec>,
    /// Filter over the output columns, applied after the watermarks were taken.
    pub predicate: Option<Expr>,
    /// No more rows than this are needed (from each subtask).
    pub limit: Option<u64>,
    /// Which changes the rows have; where nobody needs `-U`, the source leaves them out.
    pub changelog: ChangelogMode,
    /// PRIMARY KEY columns, by position in `physical`.
    pub primary_key: Vec<usize>,
    /// Output columns.
    pub schema: SchemaRef,
}

/// How the watermark follows from a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatermarkSpec {
    /// The rowtime column.
    pub rowtime: usize,
    /// The watermark of a row, a timestamp of the rowtime's type; NULL = none from this row.
    pub expr: Expr,
    /// When it is told, and for which splits it waits.
    pub timing: WatermarkTiming,
}

/// How rows are assigned to windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WindowKind {
    /// Windows of `size_ms` side by side.
    Tumble {
        /// Length.
        size_ms: i64,
        /// Shift of all windows.
        offset_ms: i64,
    },
    /// Windows of `size_ms` that start every `slide_ms`.
    Hop {
        /// Distance of starts.
        slide_ms: i64,
        /// Length.
        size_ms: i64,
        /// Shift of all windows.
        offset_ms: i64,
    },
    /// Windows that start every `size_ms` and grow by `step_ms` until they are `size_ms` long.
    Cumulate {
        /// Distance of ends.
        step_ms: i64,
        /// The greatest length.
        size_ms: i64,
        /// Shift of all windows.
        offset_ms: i64,
    },
    /// Windows of rows with less than `gap_ms` between any two that follow one another.
    Session {
        /// How long no row must come for the window to end.
        gap_ms: i64,
    },
}

impl WindowKind {
    /// As it is called.
    pub fn name(&self) -> &'static str {
        match self {
            WindowKind::Tumble { .. } => "TUMBLE",
            WindowKind::Hop { .. } => "HOP",
            WindowKind::Cumulate { .. } => "CUMULATE",
            WindowKind::Session { .. } => "SESSION",
        }
    }

    /// Whether windows depend on the rows: such are not the same for all keys.
    pub fn is_session(&self) -> bool {
        matches!(self, WindowKind::Session { .. })
    }
}

/// A window over a time attribute.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WindowSpec {
    /// How rows are assigned.
    pub kind: WindowKind,
    /// The time attribute's column.
    pub time_column: usize,
    /// Its type: rowtime or proctime, TIMESTAMP or TIMESTAMP_LTZ (then windows are aligned in `table.local-time-zone`).
    pub time_type: DataType,
    /// Columns whose values each have sessions of their own; of other kinds none.
    pub partition_keys: Vec<usize>,
    /// When an aggregation of it shows its results besides at its end, where a hint says so; else it is as the session's settings say.
    pub emit: Option<EmitStrategy>,
}

impl WindowSpec {
    /// One that is the same for all rows.
    pub fn new(kind: WindowKind, time_column: usize, time_type: DataType) -> Self {
        WindowSpec { kind, time_column, time_type, partition_keys: Vec::new(), emit: None }
    }

    /// The columns that it reads.
    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.partition_keys.iter().copied().chain([self.time_column])
    }

    /// The same over columns that were moved.
    pub fn moved(self, place: &dyn Fn(usize) -> usize) -> Self {
        let partition_keys = self.partition_keys.iter().map(|key| place(*key)).collect();
        WindowSpec { time_column: place(self.time_column), partition_keys, ..self }
    }
}

/// Elements of a collection as rows. All columns are: the input's, then those of an element, then its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnnestSpec {
    /// ARRAY, MAP or MULTISET, over the input's columns; or a BIGINT: so many elements without columns (INTERSECT ALL, EXCEPT ALL).
    pub collection: Expr,
    /// Whether the collection is a call of a table function: the rows that it gives.
    pub is_call: bool,
    /// Whether a row without elements stays, with NULLs (LEFT JOIN).
    pub outer: bool,
    /// WITH ORDINALITY: whether elements are numbered, from 1.
    pub ordinality: bool,
    /// BOOLEAN over all columns: elements where it is not true count as not there.
    pub condition: Option<Expr>,
    /// Output columns by their position among all, rising.
    pub kept: Vec<usize>,
}

impl UnnestSpec {
    /// All columns over this input, before those that nobody reads are left out.
    pub fn all_columns(&self, input: &Schema) -> Schema {
        let mut fields = input.fields.clone();
        let mut own = element_columns(&self.collection.data_type());
        if self.ordinality {
            own.push(Field::new("ORDINALITY", DataType::not_null(TypeKind::Int)));
        }
        own.iter_mut().for_each(|field| field.data_type.nullable |= self.outer);
        fields.extend(own);
        Schema::new(fields)
    }
}

/// The columns that an element of a collection makes: the fields of a ROW, key and value of a MAP, else one. None of another type.
pub fn element_columns(collection: &DataType) -> Vec<Field> {
    match &collection.kind {
        TypeKind::Map(key, value) => vec![Field::new("KEY", (**key).clone()), Field::new("VALUE", (**value).clone())],
        TypeKind::Array(element) | TypeKind::Multiset(element) => match &element.kind {
            TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
                fields.iter().map(|field| Field::new(&field.name, field.data_type.clone())).collect()
            }
            _ => vec![Field::new("EXPR$0", (**element).clone())],
        },
        _ => Vec::new(),
    }
}

/// Where the window of a row comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WindowSource {
    /// Assigned here, by slices.
    Assigned(WindowSpec),
    /// The input carries its window (a window join, a window aggregate, a window table function below).
    Attached {
        /// window_start, TIMESTAMP(3).
        start: usize,
        /// window_end, TIMESTAMP(3).
        end: usize,
        /// The time attribute it was made from: for proctime the window closes by the clock.
        time_type: DataType,
    },
}

/// A property of a window in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WindowProperty {
    /// window_start, TIMESTAMP(3) NOT NULL.
    Start,
    /// window_end, TIMESTAMP(3) NOT NULL.
    End,
    /// window_time: window_end − 1 ms, of the time attribute's type.
    Time,
}

/// GROUP BY a window and keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowAggregateSpec {
    /// The window.
    pub window: WindowSource,
    /// Key columns.
    pub keys: Vec<usize>,
    /// Aggregates.
    pub aggregates: Vec<AggregateCall>,
    /// Window properties after the aggregates, in this order.
    pub properties: Vec<WindowProperty>,
    /// Whether the input takes rows back.
    pub input_retracts: bool,
    /// When results come besides at the end of the window; none = then alone, and they stay.
    pub emit: Option<EmitStrategy>,
    /// Whether someone needs `-U`. Results that stay have none.
    pub emit_update_before: bool,
}

/// A scalar subquery as a join: input 0 is the query, input 1 the subquery. Output: left columns, then the right ones (NULL while
/// the subquery has no row). More than one row on the right fails the task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScalarJoinSpec {
    /// Rows where it is not true are left out; over left then right columns.
    pub predicate: Option<Expr>,
    /// Whether the left input takes rows back.
    pub left_retracts: bool,
    /// Whether left rows come without the right row too (NULLs) or wait for it.
    pub outer: bool,
    /// Columns of the left input.
    pub left_schema: SchemaRef,
    /// Columns of the right input.
    pub right_schema: SchemaRef,
}

/// How a join treats rows without a partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum JoinType {
    /// Left out.
    Inner,
    /// Left rows come with NULLs.
    Left,
    /// Right rows come with NULLs.
    Right,
    /// Both.
    Full,
    /// Left rows with a partner, left columns only.
    Semi,
    /// Left rows without a partner, left columns only.
    Anti,
}

impl JoinType {
    /// Whether left rows without a partner come with NULLs.
    pub fn pads_right(self) -> bool {
        matches!(self, JoinType::Left | JoinType::Full)
    }

    /// Whether right rows without a partner come with NULLs.
    pub fn pads_left(self) -> bool {
        matches!(self, JoinType::Right | JoinType::Full)
    }

    /// Whether the output has left columns only.
    pub fn is_left_only(self) -> bool {
        matches!(self, JoinType::Semi | JoinType::Anti)
    }
}

/// Two columns that are equal in rows that join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JoinKey {
    /// Column of the left input.
    pub left: usize,
    /// Column of the right input, of the same type.
    pub right: usize,
    /// Whether NULL joins NULL (IS NOT DISTINCT FROM).
    pub null_safe: bool,
}

/// A join of two changing tables: input 0 is the left one, input 1 the right one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegularJoinSpec {
    /// Kind.
    pub join_type: JoinType,
    /// What is equal in rows that join; none = each row meets each.
    pub keys: Vec<JoinKey>,
    /// What else must be true; over left, then right columns.
    pub residual: Option<Expr>,
    /// Whether the left input takes rows back.
    pub left_retracts: bool,
    /// Whether the right input takes rows back.
    pub right_retracts: bool,
    /// Columns of the left input.
    pub left_schema: SchemaRef,
    /// Columns of the right input.
    pub right_schema: SchemaRef,
    /// Output columns, of left, then right ones.
    pub output: Vec<usize>,
    /// How long the rows of each input are kept, milliseconds, where a hint says so.
    pub ttl: [Option<u64>; 2],
}

/// Rows of a query whose own key is not the primary key of the sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkMaterializerSpec {
    /// PRIMARY KEY columns of the sink.
    pub primary_key: Vec<usize>,
    /// What tells the rows of the query apart; none = nothing but the whole row.
    pub upsert_key: Option<Vec<usize>>,
    /// Columns.
    pub schema: SchemaRef,
}

/// A table to write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SinkSpec {
    /// The table, as it is kept ([`ObjectPath::stored`]).
    pub table: ObjectPath,
    /// Connector.
    pub connector: String,
    /// Options of WITH and of hints, `connector` included.
    pub options: Options,
    /// What relative paths start from.
    pub base_dir: PathBuf,
    /// Columns that are written, all of the sink's persisted columns in order.
    pub schema: SchemaRef,
    /// PARTITIONED BY columns, by position.
    pub partition_keys: Vec<usize>,
    /// PRIMARY KEY columns, by position.
    pub primary_key: Vec<usize>,
    /// Which changes arrive.
    pub changelog: ChangelogMode,
}
