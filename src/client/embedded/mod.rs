//! What a Rust program can give to its session: tables of its own rows, and functions of its own.
//!
//! [`EmbeddedTable`] makes record batches and async streams readable by SQL; [`ScalarFn`] and [`TableFn`] make closures callable
//! from it. All can be registered before and while jobs run.

#[cfg(test)]
mod function_tests;
mod guard;
mod rows;
mod scalar_fn;
mod signature;
mod table;
mod table_fn;
#[cfg(test)]
mod tests;

pub use rows::{Argument, Arguments, Returned, ReturnedRow};
pub use scalar_fn::ScalarFn;
pub use table::EmbeddedTable;
pub use table_fn::{Finished, Rows, TableFn};
