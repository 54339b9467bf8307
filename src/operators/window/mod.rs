//! Windows over a time attribute: which rows belong to which, aggregation by slices, and rows with their windows attached.

mod assigner;
#[cfg(test)]
mod harness_tests;
pub(super) mod slices;
pub(super) mod time;
mod window_aggregate;
mod window_table_function;

pub(super) use time::{WindowTime, milliseconds, null_rowtime};
pub use window_aggregate::WindowAggregate;
pub use window_table_function::WindowTableFunction;
