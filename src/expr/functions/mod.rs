//! The built-in scalar functions, one family a file; operators are functions too.

mod args;
mod arithmetic;
mod builtin;
mod characters;
mod comparison;
mod conditional;
mod datetime_arithmetic;
mod digest;
mod encoding;
mod like;
mod logic;
mod math;
mod moment;
mod nested;
mod regexp;
mod registry;
mod text_case;
mod text_parts;
mod time_parts;
mod time_pattern;
mod time_shift;
mod time_text;
mod unit;
mod url;

pub use registry::builtin_functions;
