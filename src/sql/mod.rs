//! SQL text → statements.
//!
//! Queries and expressions stay sqlparser's AST (it has the spans); everything else of Flink's dialect has its own node in
//! [`Statement`]. Types are converted here, once ([`crate::types::DataType`]).

mod statement;

pub use statement::{
    AlterTable, ColumnDefinition, CreateTable, CreateTableAs, CreateView, DescribeTarget, DropKind, ExplainDetail, HintedOptions,
    Insert, LikeClause, LikeFeature, LikeStrategy, Name, ParsedStatement, Show, Statement, UseTarget, WatermarkClause,
};
