//! The prompt: a line editor that knows SQL, and what it does with a line.

mod helper;
mod lexer;

pub use helper::{KnownNames, SqlHelper};
