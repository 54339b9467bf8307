//! What runs inside a task: one operator per file, built from its spec by the factory.

mod change_rows;
pub mod collect;
mod group_aggregate;
mod group_table;
mod keyed_state;
pub mod sink;
#[cfg(test)]
mod testing;
mod window;

pub use group_aggregate::GroupAggregate;
pub use window::{WindowAggregate, WindowTableFunction};
