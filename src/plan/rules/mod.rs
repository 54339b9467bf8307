//! The rules that rewrite a bound plan, one a file, and their order.
//!
//! Every rule keeps the rows and the columns of the plan: names, types and order. A mandatory one lowers what the generator knows
//! no operator for; all others only make the job cheaper and are left out when `sql.optimizer.enabled` is false.

mod defer_computed;
mod drop_watermark;
mod expressions;
mod factor_terms;
mod fold_constants;
mod fold_empty;
mod fold_values;
mod interval_join;
mod join_condition;
mod late_rows;
mod materialize_time;
mod merge_projects;
mod never_true;
mod null_rejection;
mod order_joins;
mod prune_columns;
mod push_filters;
mod push_into_scan;
mod push_join_terms;
mod push_watermark;
mod rank;
mod regular_join;
mod rule;
mod share_aggregates;
mod share_scans;
#[cfg(test)]
mod tests;
mod window_aggregate;
mod window_join;

pub use expressions::{conjuncts, is_deterministic};
pub use interval_join::is_interval_join;
pub use null_rejection::rejects_nulls;
pub use rule::{is_enabled, optimize};
pub use share_aggregates::is_same_call;
pub use share_scans::share_scans;
