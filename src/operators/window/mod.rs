//! Windows over a time attribute: which rows belong to which, aggregation by slices, and rows with their windows attached.

mod assigner;
mod assignment;
#[cfg(test)]
mod harness_tests;
pub(super) mod slices;
pub(super) mod time;
mod updating_window_aggregate;
#[cfg(test)]
mod updating_window_tests;
mod updating_windows;
mod window_aggregate;
mod window_table_function;

pub(super) use time::{WindowTime, milliseconds, null_rowtime};
pub use updating_window_aggregate::UpdatingWindowAggregate;
pub use window_aggregate::WindowAggregate;
pub use window_table_function::WindowTableFunction;
