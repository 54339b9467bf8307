//! Casts: a value of one type made one of another, with Flink's results.
//!
//! A [`Cast`] is prepared once for a pair of types and then applied to batches. What cannot be cast is an error (CAST) or NULL
//! (TRY_CAST); what overflows between numbers wraps as in Java, a DECIMAL that does not fit is NULL.

mod from_text;
mod kernel;
mod nested;
mod number;
mod rules;
mod time;
mod to_text;

pub(super) use from_text::{parse_double, parse_timestamp};
pub(super) use kernel::Cast;
pub(super) use number::double_to_decimal;
pub use rules::{can_cast, can_cast_implicitly};
