//! The binary: one match over the ways in.

use std::process::ExitCode;

fn main() -> ExitCode {
    flott::client::main()
}
