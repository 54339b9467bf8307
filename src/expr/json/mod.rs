//! JSON texts as Flink's JSON functions see them: parsed to a flat tape, searched by JSON paths, written in one canonical form.
//!
//! What is a JSON text, which paths there are and how numbers print follow Jackson and Jayway's JsonPath, which Flink uses.

mod aggregate;
mod filter;
mod number;
mod path;
mod select;
mod tape;
mod value;
mod write;

pub(super) use path::{Mode, Path, PathError};
pub(super) use select::Found;
pub(super) use tape::{Document, Kind, Parser, has_duplicate_key, unescape};
pub(super) use value::JsonForm;
pub(super) use write::{compare_keys, write_found, write_node, write_scalar, write_string, write_variant};
