//! What bounds the state of each operator: the end of its input, event time, the number of keys, or nothing.
//!
//! An operator that keeps rows keeps the table that its input is at the time. A stream that only adds rows, and does not end, is a table
//! that grows for ever; one whose rows change by a key has as many as there are keys. So two questions are asked: how many rows can
//! a plan have ([`size`]), and can ever new keys come ([`keys`])?

mod contract;
mod keys;
mod over;
mod size;
mod warning;

pub use contract::{contract, of_materializer};
pub use warning::{UnboundedState, unbounded};
