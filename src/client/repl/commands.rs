//! The commands of the prompt: what starts with a backslash, and Flink's own QUIT, EXIT, CLEAR and HELP.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::client::cli::OutputFormat;
use crate::error::{Error, ErrorKind, Result, nearest};

/// A command of the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Quit,
    Help,
    Clear,
    /// `\timing [on|off]`; none = the other way round.
    Timing(Option<bool>),
    /// `\format table|csv|json|changelog|conformance`
    Format(OutputFormat),
    /// `\d`
    List,
    /// `\d name`
    Describe(String),
    /// `\jobs`
    Jobs,
    /// `\set`
    Settings,
    /// `\i file`
    Read(PathBuf),
}

pub(super) const NAMES: &[&str] = &["?", "help", "q", "quit", "exit", "clear", "timing", "format", "d", "jobs", "set", "i"];

/// What `\?` prints.
pub(super) const HELP: &str = "\
SQL ends with a semicolon and may span lines. Tab completes, arrows recall, Ctrl-R searches, Ctrl-C stops a query, Ctrl-D leaves.
INSERTs run in the background.

  \\d                 the tables and views
  \\d NAME            the columns of a table or view
  \\timing [on|off]   shows how long each statement takes
  \\format FORMAT     how results are shown: table, csv, json, changelog, conformance
  \\jobs              the jobs (STOP JOB 'id' stops one)
  \\set               all settings, with their values and meaning (SET 'key' = 'value' changes one)
  \\i FILE            runs a script; relative paths in statements then start from its folder
  \\clear             clears the screen
  \\?                 this help
  \\q                 leaves

Start with: SHOW TABLES; SHOW FUNCTIONS; EXPLAIN SELECT …; SET;";

impl Command {
    /// Reads a command.
    pub(super) fn parse(line: &str) -> Result<Command> {
        let line = line.trim().trim_end_matches(';').trim_end().trim_start_matches('\\');
        let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim();
        match name.to_lowercase().as_str() {
            "q" | "quit" | "exit" => Ok(Command::Quit),
            "?" | "help" => Ok(Command::Help),
            "clear" => Ok(Command::Clear),
            "timing" => match argument {
                "" => Ok(Command::Timing(None)),
                "on" => Ok(Command::Timing(Some(true))),
                "off" => Ok(Command::Timing(Some(false))),
                other => Err(wrong(format!("\\timing takes on or off, not '{other}'"))),
            },
            "format" => OutputFormat::from_str(argument, true)
                .map(Command::Format)
                .map_err(|_| wrong(format!("\\format takes table, csv, json, changelog or conformance, not '{argument}'"))),
            "d" if argument.is_empty() => Ok(Command::List),
            "d" => Ok(Command::Describe(argument.to_string())),
            "jobs" => Ok(Command::Jobs),
            "set" => Ok(Command::Settings),
            "i" if argument.is_empty() => Err(wrong("\\i takes a file".to_string())),
            "i" => Ok(Command::Read(PathBuf::from(argument))),
            other => {
                let error = wrong(format!("unknown command \\{other}"));
                Err(match nearest(other, NAMES.iter().copied()) {
                    Some(near) => error.with_hint(format!("did you mean \\{near}? \\? lists all")),
                    None => error.with_hint("\\? lists all commands"),
                })
            }
        }
    }
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Syntax, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_with_their_arguments() {
        assert_eq!(Command::parse("\\q").unwrap(), Command::Quit);
        assert_eq!(Command::parse("QUIT;").unwrap(), Command::Quit);
        assert_eq!(Command::parse("\\timing on").unwrap(), Command::Timing(Some(true)));
        assert_eq!(Command::parse("\\d bids").unwrap(), Command::Describe("bids".into()));
        assert_eq!(Command::parse("\\format changelog").unwrap(), Command::Format(OutputFormat::Changelog));
    }

    #[test]
    fn a_misspelt_command_is_met_with_the_nearest() {
        let error = Command::parse("\\timin").unwrap_err();
        assert_eq!(error.hint(), Some("did you mean \\timing? \\? lists all"));
    }
}
