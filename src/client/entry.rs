//! Where the binary begins: arguments in, exit status out.

use std::future::Future;
use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use clap::Parser;

use super::cli::{Cli, Command, ExplainAs, RunOptions};
use super::run::{ScriptRunner, explain_file, session};
use super::session::Session;
use super::{repl, slt};
use crate::error::{Error, ErrorKind, Result};

/// Wrong usage: unknown arguments, options that do not fit.
const USAGE: u8 = 2;
/// A construct that is not supported.
const UNSUPPORTED: u8 = 77;
/// Interrupted by Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Runs the binary with the arguments of the process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    // The caller's side needs one thread: tasks and endpoints run on threads of the cluster.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    let outcome = runtime.block_on(dispatch(cli));
    match outcome {
        Ok(status) => status,
        Err(error) => failed(&error),
    }
}

async fn dispatch(cli: Cli) -> Result<ExitCode> {
    match cli.command {
        Some(Command::Run { files, options }) => {
            interruptible(async {
                let mut runner = runner(&options)?;
                for file in &files {
                    runner.run_file(file).await?;
                }
                runner.finish().await
            })
            .await
        }
        Some(Command::Explain { file, explain_format, settings }) => {
            let options = RunOptions { settings, ..RunOptions::default() };
            explain(&options, &file, explain_format).await
        }
        Some(Command::Test { paths, mode, update }) => slt::run_tests(&paths, &mode, update),
        None if !cli.execute.is_empty() => {
            interruptible(async {
                let mut runner = runner(&cli.options)?;
                for sql in &cli.execute {
                    runner.run_text(sql).await?;
                }
                runner.finish().await
            })
            .await
        }
        None if !std::io::stdin().is_terminal() => {
            let mut sql = String::new();
            std::io::stdin().read_to_string(&mut sql)?;
            interruptible(async {
                let mut runner = runner(&cli.options)?;
                runner.run_text(&sql).await?;
                runner.finish().await
            })
            .await
        }
        None => repl::run(usage(session(Session::builder(), &cli.options))?, cli.options.format).await,
    }
}

fn runner(options: &RunOptions) -> Result<ScriptRunner> {
    Ok(ScriptRunner::new(usage(session(Session::builder(), options))?, options.format))
}

async fn explain(options: &RunOptions, file: &std::path::Path, format: ExplainAs) -> Result<ExitCode> {
    let session = usage(session(Session::builder(), options))?;
    explain_file(&session, file, format).await?;
    Ok(ExitCode::SUCCESS)
}

/// Settings of the command line that do not fit are wrong usage, not a failed script.
fn usage<T>(result: Result<T>) -> Result<T> {
    if let Err(error) = &result {
        eprintln!("{}", error.render());
        std::process::exit(i32::from(USAGE));
    }
    result
}

/// Runs until done or until Ctrl-C. Dropping the work drops the session, which cancels its jobs and ends its threads.
async fn interruptible(work: impl Future<Output = Result<()>>) -> Result<ExitCode> {
    tokio::select! {
        done = work => done.map(|()| ExitCode::SUCCESS),
        _ = tokio::signal::ctrl_c() => {
            eprintln!("interrupted");
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

fn failed(error: &Error) -> ExitCode {
    eprintln!("{}", error.render());
    match error.kind() {
        ErrorKind::Unsupported => ExitCode::from(UNSUPPORTED),
        ErrorKind::Cancelled => ExitCode::from(INTERRUPTED),
        _ => ExitCode::FAILURE,
    }
}
