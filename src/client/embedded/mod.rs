//! What a Rust program can give to its session: tables of its own rows, and functions of its own.
//!
//! [`EmbeddedTable`] makes record batches and async streams readable by SQL; [`ScalarFn`] makes closures callable from it. Both can be
//! registered before and while jobs run.

mod function;
mod rows;
mod table;
#[cfg(test)]
mod tests;

pub use function::ScalarFn;
pub use rows::{Argument, Arguments, Returned};
pub use table::EmbeddedTable;
