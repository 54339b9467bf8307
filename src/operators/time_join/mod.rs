//! Joins whose rows meet for a while only: rows of the same window, and rows whose times lie within an interval.

mod interval_join;
mod key_index;
mod pairs;
mod timed_rows;
mod window_join;
mod window_rows;

pub use interval_join::IntervalJoin;
pub use window_join::WindowJoin;

#[cfg(test)]
mod nested_loop_tests;
#[cfg(test)]
mod tests;
