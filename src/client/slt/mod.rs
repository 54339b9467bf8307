//! sqllogictest: files of statements and expected results, each run in every mode of execution.
//!
//! The crate `sqllogictest` reads the files and compares; here are the database that it talks to, the modes, and the list of trials.
//! Time is virtual: the clock stands still until `CALL sys.advance_time(…)`. After each record a flush goes through all running jobs,
//! and the next record waits for their sinks: so a file sees what its INSERTs have written.

mod database;
mod execution;
mod files;
pub(in crate::client) mod interrupted;
mod modes;
mod pause;
mod progress;
mod proof;
mod records;
mod trials;

pub(in crate::client) use interrupted::{Interrupted, Interruptions};
pub use modes::{MODES, Mode, mode};
pub(in crate::client) use pause::{PausingConnectors, PausingOperators};
pub use proof::Proof;
pub use trials::{modes_named, run_folder, run_tests};
