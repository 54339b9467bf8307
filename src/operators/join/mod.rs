//! Joins of two changing tables.

mod condition;
mod emission;
#[cfg(test)]
mod harness_tests;
mod key_groups;
mod regular_join;
mod row_lookup;
mod side;

pub use regular_join::RegularJoin;
