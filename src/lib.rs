//! Flott: Flink SQL without the JVM.
//!
//! The life of a query, by module and type: text → [`sql`] `Statement` → [`plan`] `LogicalPlan` → [`stream_graph`] `StreamGraph` →
//! [`job_graph`] `JobGraph` → [`cluster`] `ExecutionGraph` → [`runtime`] tasks that drive [`operators`] and [`connectors`].
#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod catalog;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod config;
pub mod connectors;
pub mod error;
pub mod expr;
pub mod job_graph;
pub mod operators;
pub mod plan;
pub mod rpc;
pub mod runtime;
pub mod sql;
pub mod stream_graph;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tidy;
pub mod types;

pub use arrow;
pub use chrono;
pub use client::{
    Accumulator, AggregateFn, ChangeBatch, EmbeddedTable, JobHandle, Merge, Outcome, Retract, RowStream, Rows, ScalarFn, Session,
    SessionBuilder, StatementResult, TableFn, WatermarkLine, WatermarkReport,
};
pub use error::{Error, ErrorKind, Result};
pub use expr::{GroupsAccumulator, TableRows};
pub use types::{DataType, RowKind, RowKinds, TypeKind};
