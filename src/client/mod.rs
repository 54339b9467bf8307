//! The ways in: session, embedded API, REPL, command line, test runner.

pub mod cli;
pub mod explain;
mod fold;
pub mod repl;

pub use fold::ChangelogFold;
