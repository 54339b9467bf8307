//! What runs inside a task: one operator per file, built from its spec by the factory.

mod change_rows;
pub mod collect;
mod factory;
mod group_aggregate;
mod group_table;
mod keyed_state;
pub mod sink;
pub mod source;
pub mod split_watermarks;
#[cfg(test)]
mod testing;
pub mod values;
pub mod watermark_generator;
mod window;

pub use factory::Operators;
pub use group_aggregate::GroupAggregate;
pub use window::{WindowAggregate, WindowTableFunction};
