//! What a Rust program can give to its session: tables of its own rows, and functions of its own.
//!
//! [`EmbeddedTable`] makes record batches and async streams readable by SQL; [`ScalarFn`], [`TableFn`] and
//! [`AggregateFn`] make its code callable from it. All can be registered before and while jobs run.

mod accumulator;
mod aggregate_fn;
#[cfg(test)]
mod aggregate_tests;
#[cfg(test)]
mod function_tests;
mod guard;
mod kept;
mod rows;
mod scalar_fn;
mod signature;
mod table;
mod table_fn;
#[cfg(test)]
mod tests;

pub use accumulator::{Accumulator, Merge, Retract};
pub use aggregate_fn::AggregateFn;
pub use kept::{Kept, KeptRow};
pub use rows::{Argument, Arguments, Returned, ReturnedRow};
pub use scalar_fn::ScalarFn;
pub use table::EmbeddedTable;
pub use table_fn::{Finished, Rows, TableFn};
