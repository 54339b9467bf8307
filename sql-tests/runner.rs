//! Runs every sqllogictest file of this folder in every mode of execution.

use std::process::ExitCode;

fn main() -> ExitCode {
    flott::client::slt::run_folder("sql-tests")
}
