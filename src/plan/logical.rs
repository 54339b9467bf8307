//! The LogicalPlan: what a query computes, as a tree of relational operators over typed columns addressed by position.
//!
//! Made by the binder, rewritten by the rules, read by the changelog pass and the StreamGraph generator. Every node knows its
//! output schema; expressions see the columns of the node's input (of a join: left, then right).

use std::sync::Arc;

use crate::catalog::{CatalogTable, ObjectPath, Options};
use crate::error::Span;
use crate::expr::{AggregateCall, Expr, SortKey};
use crate::sql::OnConflict;
use crate::stream_graph::{
    ExpandSpec, IntervalJoinSpec, JoinType, OverSpec, RankSpec, RegularJoinSpec, UnnestSpec, WatermarkSpec, WindowAggregateSpec,
    WindowJoinSpec, WindowSpec,
};
use crate::types::{Schema, SchemaRef, Value};

/// The table of a scan or a sink.
#[derive(Debug, Clone, PartialEq)]
pub struct ScanTable {
    /// Its name.
    pub path: ObjectPath,
    /// Its definition.
    pub table: Arc<CatalogTable>,
    /// Its options with those of hints put over them.
    pub options: Options,
}

/// What a query computes.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // plans are small trees, built once per statement
pub enum LogicalPlan {
    /// Reads the physical and metadata columns of a table. The binder puts computed columns (a Project) and the watermark (a
    /// WatermarkAssigner) above it; a rule pushes both, filters and pruning into it.
    Scan {
        /// The table.
        table: ScanTable,
        /// Which physical columns are produced, by position among the physical ones, rising.
        projection: Vec<usize>,
        /// Which metadata columns follow: connector key and type.
        metadata: Vec<crate::types::Field>,
        /// Output columns over the produced ones, pushed down; none = the produced ones.
        computed: Option<Vec<Expr>>,
        /// The watermark over the output columns, pushed down.
        watermark: Option<WatermarkSpec>,
        /// A filter over the output columns, applied after the watermark, pushed down.
        predicate: Option<Expr>,
        /// No more rows than this are needed.
        limit: Option<u64>,
        /// Output columns.
        schema: SchemaRef,
    },
    /// Constant rows.
    Values {
        /// The rows.
        rows: Vec<Vec<Value>>,
        /// Their columns.
        schema: SchemaRef,
    },
    /// Computes each output column.
    Project {
        /// Input.
        input: Box<LogicalPlan>,
        /// One per output column.
        exprs: Vec<Expr>,
        /// Output columns.
        schema: SchemaRef,
    },
    /// Keeps the rows where the predicate is true.
    Filter {
        /// Input.
        input: Box<LogicalPlan>,
        /// BOOLEAN.
        predicate: Expr,
    },
    /// Makes a column the rowtime.
    WatermarkAssigner {
        /// Input.
        input: Box<LogicalPlan>,
        /// Column and watermark.
        watermark: WatermarkSpec,
        /// Output columns: the input's, the column being *ROWTIME*.
        schema: SchemaRef,
    },
    /// Window table function: appends window_start, window_end, window_time.
    WindowTableFunction {
        /// Input.
        input: Box<LogicalPlan>,
        /// The window.
        window: WindowSpec,
        /// Output columns.
        schema: SchemaRef,
    },
    /// UNNEST: a row for each element of a collection in the row.
    Unnest {
        /// Input.
        input: Box<LogicalPlan>,
        /// Collection, kind of join and output columns.
        spec: UnnestSpec,
        /// Output columns.
        schema: SchemaRef,
    },
    /// GROUPING SETS: each row once for each set. Output: `spec.columns`, then the number of the set.
    Expand {
        /// Input.
        input: Box<LogicalPlan>,
        /// Columns and copies.
        spec: ExpandSpec,
        /// Output columns.
        schema: SchemaRef,
    },
    /// GROUP BY; without aggregates DISTINCT. Output: keys, then aggregates.
    Aggregate {
        /// Input.
        input: Box<LogicalPlan>,
        /// Key columns.
        keys: Vec<usize>,
        /// Aggregates.
        aggregates: Vec<AggregateCall>,
        /// Output columns.
        schema: SchemaRef,
        /// How long a group without new rows is kept, milliseconds, where a hint says so.
        ttl: Option<u64>,
    },
    /// GROUP BY of a window: made by a rule from Aggregate over a window table function.
    WindowAggregate {
        /// Input.
        input: Box<LogicalPlan>,
        /// Window, keys, aggregates, properties; `input_retracts` is set by the changelog pass.
        spec: WindowAggregateSpec,
        /// Output columns.
        schema: SchemaRef,
    },
    /// Calls with OVER, all over one window. Output: input columns, then the calls.
    Over {
        /// Input.
        input: Box<LogicalPlan>,
        /// Window and calls.
        spec: OverSpec,
        /// Output columns.
        schema: SchemaRef,
    },
    /// The first rows of each partition: made by a rule from a Filter over ROW_NUMBER. Output: input columns, then the number
    /// if asked for.
    Rank {
        /// Input.
        input: Box<LogicalPlan>,
        /// Partition, order and range.
        spec: RankSpec,
        /// Output columns.
        schema: SchemaRef,
    },
    /// A join. Output: left columns, then right ones (Semi, Anti: left ones).
    Join {
        /// Left input.
        left: Box<LogicalPlan>,
        /// Right input.
        right: Box<LogicalPlan>,
        /// Kind.
        join_type: JoinType,
        /// BOOLEAN over left, then right columns.
        condition: Expr,
        /// Output columns.
        schema: SchemaRef,
        /// How long the rows of each input are kept, milliseconds, where a hint says so.
        ttl: [Option<u64>; 2],
    },
    /// A join of rows of the same window: made by a rule from Join. Output: `spec.output`.
    WindowJoin {
        /// Left input.
        left: Box<LogicalPlan>,
        /// Right input.
        right: Box<LogicalPlan>,
        /// Windows, keys, condition.
        spec: WindowJoinSpec,
        /// Output columns.
        schema: SchemaRef,
    },
    /// A join of rows whose times lie within an interval: made by a rule from Join. Output: `spec.output`.
    IntervalJoin {
        /// Left input.
        left: Box<LogicalPlan>,
        /// Right input.
        right: Box<LogicalPlan>,
        /// Times, bounds, keys, condition.
        spec: IntervalJoinSpec,
        /// Output columns.
        schema: SchemaRef,
    },
    /// A join of two changing tables: made by a rule from what is left of Join. Output: `spec.output`.
    RegularJoin {
        /// Left input.
        left: Box<LogicalPlan>,
        /// Right input.
        right: Box<LogicalPlan>,
        /// Keys, condition; the generator says whether inputs take rows back.
        spec: RegularJoinSpec,
        /// Output columns.
        schema: SchemaRef,
    },
    /// Adds the columns of the one row of an uncorrelated scalar subquery (NULLs when it has none) to each row of the input.
    ScalarJoin {
        /// The query.
        left: Box<LogicalPlan>,
        /// The subquery. Whether it can have more than one row is checked as it runs, unless it is a global aggregate.
        right: Box<LogicalPlan>,
        /// Output columns.
        schema: SchemaRef,
        /// How long a row of the query is kept, milliseconds, where a hint says so.
        ttl: Option<u64>,
    },
    /// All rows of all inputs (UNION ALL). Types agree: the binder cast them.
    Union {
        /// Inputs.
        inputs: Vec<LogicalPlan>,
        /// Output columns.
        schema: SchemaRef,
    },
    /// ORDER BY … OFFSET … LIMIT; without keys a plain LIMIT, without fetch a plain ORDER BY.
    Sort {
        /// Input.
        input: Box<LogicalPlan>,
        /// Order.
        keys: Vec<SortKey>,
        /// Rows left out at the front.
        offset: u64,
        /// Rows kept after them.
        fetch: Option<u64>,
        /// How long rows behind the kept ones are kept, milliseconds, where a hint says so.
        ttl: Option<u64>,
    },
    /// Keeps the last row of each key: makes of changes by key (without former content, or repeated) a full changelog.
    ChangelogNormalize {
        /// Input.
        input: Box<LogicalPlan>,
        /// Key columns.
        keys: Vec<usize>,
        /// How long a key without changes is kept, milliseconds, where a hint says so.
        ttl: Option<u64>,
    },
    /// Writes a table. The input has the sink's persisted columns, cast to their types.
    Sink {
        /// Input.
        input: Box<LogicalPlan>,
        /// The table.
        table: ScanTable,
        /// The columns that are written.
        schema: SchemaRef,
        /// What becomes of rows that share a primary key.
        on_conflict: Option<OnConflict>,
        /// Where the statement names the table.
        name: Option<Span>,
    },
}

impl LogicalPlan {
    /// The output columns.
    pub fn schema(&self) -> &SchemaRef {
        match self {
            LogicalPlan::Scan { schema, .. }
            | LogicalPlan::Values { schema, .. }
            | LogicalPlan::Project { schema, .. }
            | LogicalPlan::WatermarkAssigner { schema, .. }
            | LogicalPlan::WindowTableFunction { schema, .. }
            | LogicalPlan::Unnest { schema, .. }
            | LogicalPlan::Expand { schema, .. }
            | LogicalPlan::Aggregate { schema, .. }
            | LogicalPlan::WindowAggregate { schema, .. }
            | LogicalPlan::Over { schema, .. }
            | LogicalPlan::Rank { schema, .. }
            | LogicalPlan::Join { schema, .. }
            | LogicalPlan::WindowJoin { schema, .. }
            | LogicalPlan::IntervalJoin { schema, .. }
            | LogicalPlan::RegularJoin { schema, .. }
            | LogicalPlan::ScalarJoin { schema, .. }
            | LogicalPlan::Union { schema, .. }
            | LogicalPlan::Sink { schema, .. } => schema,
            LogicalPlan::Filter { input, .. }
            | LogicalPlan::Sort { input, .. }
            | LogicalPlan::ChangelogNormalize { input, .. } => input.schema(),
        }
    }

    /// The inputs in order.
    pub fn inputs(&self) -> Vec<&LogicalPlan> {
        match self {
            LogicalPlan::Scan { .. } | LogicalPlan::Values { .. } => Vec::new(),
            LogicalPlan::Project { input, .. }
            | LogicalPlan::Filter { input, .. }
            | LogicalPlan::WatermarkAssigner { input, .. }
            | LogicalPlan::WindowTableFunction { input, .. }
            | LogicalPlan::Unnest { input, .. }
            | LogicalPlan::Expand { input, .. }
            | LogicalPlan::Aggregate { input, .. }
            | LogicalPlan::WindowAggregate { input, .. }
            | LogicalPlan::Over { input, .. }
            | LogicalPlan::Rank { input, .. }
            | LogicalPlan::Sort { input, .. }
            | LogicalPlan::ChangelogNormalize { input, .. }
            | LogicalPlan::Sink { input, .. } => vec![input],
            LogicalPlan::Join { left, right, .. }
            | LogicalPlan::WindowJoin { left, right, .. }
            | LogicalPlan::IntervalJoin { left, right, .. }
            | LogicalPlan::RegularJoin { left, right, .. }
            | LogicalPlan::ScalarJoin { left, right, .. } => vec![left, right],
            LogicalPlan::Union { inputs, .. } => inputs.iter().collect(),
        }
    }

    /// The nodes of the plan.
    pub fn node_count(&self) -> usize {
        let (mut count, mut open) = (0, vec![self]);
        while let Some(node) = open.pop() {
            count += 1;
            open.extend(node.inputs());
        }
        count
    }

    /// The same node with every input mapped by `f`.
    pub fn map_inputs(self, f: &mut dyn FnMut(LogicalPlan) -> crate::Result<LogicalPlan>) -> crate::Result<LogicalPlan> {
        let mut boxed = |input: Box<LogicalPlan>| f(*input).map(Box::new);
        Ok(match self {
            LogicalPlan::Scan { .. } | LogicalPlan::Values { .. } => self,
            LogicalPlan::Project { input, exprs, schema } => LogicalPlan::Project { input: boxed(input)?, exprs, schema },
            LogicalPlan::Filter { input, predicate } => LogicalPlan::Filter { input: boxed(input)?, predicate },
            LogicalPlan::WatermarkAssigner { input, watermark, schema } => {
                LogicalPlan::WatermarkAssigner { input: boxed(input)?, watermark, schema }
            }
            LogicalPlan::WindowTableFunction { input, window, schema } => {
                LogicalPlan::WindowTableFunction { input: boxed(input)?, window, schema }
            }
            LogicalPlan::Unnest { input, spec, schema } => LogicalPlan::Unnest { input: boxed(input)?, spec, schema },
            LogicalPlan::Expand { input, spec, schema } => LogicalPlan::Expand { input: boxed(input)?, spec, schema },
            LogicalPlan::Aggregate { input, keys, aggregates, schema, ttl } => {
                LogicalPlan::Aggregate { input: boxed(input)?, keys, aggregates, schema, ttl }
            }
            LogicalPlan::WindowAggregate { input, spec, schema } => {
                LogicalPlan::WindowAggregate { input: boxed(input)?, spec, schema }
            }
            LogicalPlan::Over { input, spec, schema } => LogicalPlan::Over { input: boxed(input)?, spec, schema },
            LogicalPlan::Rank { input, spec, schema } => LogicalPlan::Rank { input: boxed(input)?, spec, schema },
            LogicalPlan::Join { left, right, join_type, condition, schema, ttl } => {
                LogicalPlan::Join { left: boxed(left)?, right: boxed(right)?, join_type, condition, schema, ttl }
            }
            LogicalPlan::WindowJoin { left, right, spec, schema } => {
                LogicalPlan::WindowJoin { left: boxed(left)?, right: boxed(right)?, spec, schema }
            }
            LogicalPlan::IntervalJoin { left, right, spec, schema } => {
                LogicalPlan::IntervalJoin { left: boxed(left)?, right: boxed(right)?, spec, schema }
            }
            LogicalPlan::RegularJoin { left, right, spec, schema } => {
                LogicalPlan::RegularJoin { left: boxed(left)?, right: boxed(right)?, spec, schema }
            }
            LogicalPlan::ScalarJoin { left, right, schema, ttl } => {
                LogicalPlan::ScalarJoin { left: boxed(left)?, right: boxed(right)?, schema, ttl }
            }
            LogicalPlan::Union { inputs, schema } => {
                LogicalPlan::Union { inputs: inputs.into_iter().map(f).collect::<crate::Result<_>>()?, schema }
            }
            LogicalPlan::Sort { input, keys, offset, fetch, ttl } => {
                LogicalPlan::Sort { input: boxed(input)?, keys, offset, fetch, ttl }
            }
            LogicalPlan::ChangelogNormalize { input, keys, ttl } => {
                LogicalPlan::ChangelogNormalize { input: boxed(input)?, keys, ttl }
            }
            LogicalPlan::Sink { input, table, schema, on_conflict, name } => {
                LogicalPlan::Sink { input: boxed(input)?, table, schema, on_conflict, name }
            }
        })
    }

    /// A node that names its columns itself: shorthand for tests and rules.
    pub fn project(input: LogicalPlan, exprs: Vec<Expr>, names: Vec<String>) -> Self {
        let fields =
            exprs.iter().zip(names).map(|(expr, name)| crate::types::Field::new(name, expr.data_type())).collect::<Vec<_>>();
        LogicalPlan::Project { input: Box::new(input), exprs, schema: Arc::new(Schema::new(fields)) }
    }
}
