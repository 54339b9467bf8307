//! The ways in: session, embedded API, REPL, command line, test runner.
