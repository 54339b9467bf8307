//! The text of values: as CAST prints them, as the print connector does, as the conformance suite wants them, and for tables.

pub mod number;
pub(crate) mod time;
mod writer;

pub use writer::{TextStyle, ValueWriter, write_value};
