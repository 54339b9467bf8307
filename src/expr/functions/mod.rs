//! The built-in scalar functions, one family a file; operators are functions too.

mod args;
mod arithmetic;
mod array_parts;
mod array_sets;
mod builtin;
mod characters;
mod comparison;
mod conditional;
mod datetime_arithmetic;
mod digest;
mod encoding;
mod hash_code;
mod inet;
mod java_format;
mod json_build;
mod json_path;
mod json_text;
mod like;
mod lists;
mod logic;
mod maps;
mod math;
mod moment;
mod nested;
mod printf;
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
