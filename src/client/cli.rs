//! The command line: what `flott` takes, and which way in it chooses.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::explain::ExplainFormat;

/// Flink SQL without the JVM: a streaming SQL engine in one binary.
#[derive(Debug, Parser)]
#[command(name = "flott", version, max_term_width = 100, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do; without a command, a prompt (or, in a pipe, the script on standard input).
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Runs SQL text and ends, once its INSERTs have ended. May be given several times.
    #[arg(short = 'e', long = "execute", value_name = "SQL")]
    pub execute: Vec<String>,

    /// How it runs and prints.
    #[command(flatten)]
    pub options: RunOptions,
}

/// Options of everything that runs statements.
#[derive(Debug, Clone, Default, Args)]
pub struct RunOptions {
    /// Subtasks of each operator (the same as --set parallelism.default=N).
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub parallelism: Option<u32>,

    /// Sets an option before the first statement, as SET 'KEY' = 'VALUE' does. May be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,

    /// How results are printed; the default is table on a terminal and csv in a pipe.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<OutputFormat>,

    /// Where jobs start from: the directory of a checkpoint or savepoint, of a job (its latest checkpoint), or of checkpoints of
    /// several jobs (each finds its own by its name). A job without a checkpoint there begins anew, also when its own checkpoint
    /// directory is still empty.
    #[arg(long, value_name = "PATH")]
    pub restore: Option<String>,
}

/// What `flott` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs scripts one after another and ends, once their INSERTs have ended.
    Run {
        /// SQL scripts, run in this order in one session; relative paths in them start from the script's folder.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// How they run and print.
        #[command(flatten)]
        options: RunOptions,
    },
    /// Shows how the queries of a script would run: plans, StreamGraph, JobGraph.
    Explain {
        /// The SQL script. Its definitions are carried out, its queries and INSERTs are explained.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// How plans are shown.
        #[arg(long = "format", value_name = "FORMAT", value_enum, default_value_t = ExplainFormat::Text)]
        explain_format: ExplainFormat,
        /// Subtasks of each operator (the same as --set parallelism.default=N).
        #[arg(long, value_name = "N")]
        parallelism: Option<u32>,
        /// Sets an option before the first statement, as SET 'KEY' = 'VALUE' does. May be given several times.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
    /// Runs sqllogictest files.
    Test {
        /// Files or folders of *.slt; `file.slt:12` runs only the record at line 12 (and the definitions before it).
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<String>,
        /// Only this mode of execution (all of them by default).
        #[arg(long, value_name = "MODE")]
        mode: Vec<String>,
        /// Writes the actual results into the files.
        #[arg(long)]
        update: bool,
    },
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// A table of the final rows.
    Table,
    /// The final rows as CSV with a header.
    Csv,
    /// The final rows as JSON, one object a line.
    Json,
    /// Every change as it comes, with its kind: +I, -U, +U, -D.
    Changelog,
    /// The final rows in the form of the conformance suite.
    Conformance,
}

const EXAMPLES: &str = "\
Examples:
  flott                                       a prompt; \\? lists its commands
  flott -e \"SELECT 1 + 1\"                     one statement
  echo \"SHOW FUNCTIONS;\" | flott              a script from a pipe
  flott run job.sql                           a script, as you would give it to Flink
  flott run tables.sql job.sql                several, in one session
  flott run job.sql --set table.local-time-zone=Europe/Berlin
  flott run job.sql --parallelism 4           the same with four subtasks an operator
  flott run job.sql --format changelog        every change of a result, not only its final rows
  flott run job.sql --restore /checkpoints    goes on where the job had come to when it was stopped or failed
  flott explain job.sql --format mermaid      the plan as a drawing
  flott test sql-tests                        sqllogictest files, each in every mode

Exit status: 0 done, 1 rejected or failed, 2 wrong usage, 77 not supported (the message names the construct), 130 interrupted, 143 terminated.
Results go to standard output, everything else to standard error.";
