//! The rules that rewrite a bound plan, one a file, and their order.
//!
//! Every rule keeps the rows and the columns of the plan: names, types and order. A mandatory one lowers what the generator knows no operator for;
//! all others only make the job cheaper and are left out when `sql.optimizer.enabled` is false.

mod null_rejection;
mod rule;
mod window_aggregate;

pub use null_rejection::rejects_nulls;
pub use rule::optimize;
