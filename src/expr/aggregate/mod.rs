//! Aggregate functions: the state of all groups in columns, updated a batch at a time; and the keys that number the groups.

mod adapted;
mod arrival;
mod arrived_values;
mod average;
mod bitmap;
mod builtin;
mod count;
mod covariance;
mod discrete;
mod distinct;
mod extreme_by;
mod first_last;
mod group_keys;
mod group_values;
mod json_object;
mod key_columns;
mod lag;
mod min_max;
mod multiset;
mod nth_value;
mod packed_keys;
mod percentile;
mod row_codec;
mod rows;
mod set;
mod statistics;
mod sum;
#[cfg(test)]
mod tests;
mod text_extreme;
mod variance;

pub use builtin::builtin_aggregates;
pub use group_keys::GroupKeys;
pub(crate) use rows::Rows;
pub use set::AggregateSet;
pub(crate) use variance::{Moments, variances};
