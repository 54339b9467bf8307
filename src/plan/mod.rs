//! Statement → bound LogicalPlan → optimized LogicalPlan → StreamGraph.
//!
//! [`optimize`] runs the rules in their order, [`changelog::derive`] finds out which changes every node emits, and the generator
//! makes the StreamGraph; [`plan_select`] and [`plan_inserts`] do all three and keep every stage for EXPLAIN.

mod advice;
pub mod binder;
pub mod changelog;
mod context;
mod describe;
mod describe_over;
mod display;
mod emit;
mod expr_text;
mod generator;
mod logical;
mod over;
mod planner;
mod rank;
mod rules;
mod sink_keys;
mod sort;
mod stack;
mod state_bounds;
mod table;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod upsert_keys;
mod validate;
mod window_trace;

pub use crate::stream_graph::JoinType;
pub use context::{LateRowsTable, PlannerContext};
pub use describe::describe;
pub use display::tree_text;
pub use emit::idle_lateness;
pub use expr_text::expr_text;
pub use logical::{LogicalPlan, ScanTable};
pub use planner::{PlannedJob, PlannedQuery, plan_inserts, plan_select};
pub use rules::optimize;
pub use sort::is_bounded;
pub use state_bounds::UnboundedState;
