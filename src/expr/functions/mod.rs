//! The built-in scalar functions, one family a file; operators are functions too.

#[allow(dead_code)] // the string and time functions use the rest
mod args;
mod arithmetic;
#[allow(dead_code)]
mod builtin;
mod comparison;
mod datetime_arithmetic;
mod logic;
mod registry;

pub use registry::builtin_functions;
