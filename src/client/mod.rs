//! The ways in: session, embedded API, REPL, command line, test runner.
//!
//! A [`Session`] takes statements and gives results; everything else here is a way to talk to one. The client reaches the runtime only
//! through the Dispatcher's gateway, and it alone prints.

/// A line for the user on standard error. Where nobody listens it is lost, and does no harm: the work goes on.
macro_rules! talk {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

/// The same without an end of the line.
macro_rules! talk_on {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = write!(std::io::stderr(), $($text)*);
    }};
}

mod builtin_rows;
mod call;
pub mod cli;
mod ddl;
pub mod embedded;
mod engine;
mod entry;
pub mod explain;
mod flush;
mod fold;
#[cfg(test)]
mod function_docs;
mod job;
mod known_names;
mod live;
mod output;
mod pieces;
mod progress;
mod repl;
mod restore;
mod result;
mod run;
mod session;
mod show;
mod show_jobs;
mod silence;
pub mod slt;
mod state_paths;
#[cfg(test)]
mod state_tests;
mod stopwatch;
mod terminal;
mod watermarks;

#[cfg(test)]
mod checkpoint_tests;
#[cfg(test)]
mod watermark_tests;
#[cfg(test)]
mod window_fuzz;

pub use embedded::{Accumulator, AggregateFn, EmbeddedTable, Merge, Retract, Rows, ScalarFn, TableFn};
pub use entry::main;
pub use fold::ChangelogFold;
pub use job::JobHandle;
pub use result::{ChangeBatch, Outcome, RowStream, StatementResult};
pub use session::{Session, SessionBuilder};
pub use watermarks::{WatermarkLine, WatermarkReport};
