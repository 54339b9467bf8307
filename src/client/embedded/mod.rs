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
mod times;

pub use accumulator::{Accumulator, Merge, Retract};
pub use aggregate_fn::AggregateFn;
pub use kept::{Kept, KeptRow};
pub use rows::{Argument, Arguments, Returned, ReturnedRow};
pub use scalar_fn::ScalarFn;
pub use table::EmbeddedTable;
pub use table_fn::{Finished, Rows, TableFn};

use crate::error::{Error, ErrorKind, Result};
use crate::expr::{FunctionRegistry, UserFunction};
use crate::plan::binder;

/// Registers a function of the user. A name that is taken is an error, and so is one that means something in SQL.
pub(super) fn register(functions: &FunctionRegistry, function: UserFunction) -> Result<()> {
    if binder::is_special_function(function.name()) {
        let message = format!("{} is a word of SQL", function.name());
        return Err(Error::new(ErrorKind::DuplicateObject, message).with_hint("give the function another name"));
    }
    functions.register_user(function)
}
