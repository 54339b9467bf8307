//! Where the binary begins: arguments in, exit status out.

use std::future::Future;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use clap::Parser;

use super::cli::{Cli, Command, RunOptions};
use super::explain::ExplainFormat;
use super::restore::{RestorePlan, Script};
use super::run::{ScriptRunner, explain_file, script_text, session};
use super::session::{Session, SessionBuilder};
use super::state_paths::absolute;
use super::terminal::{stdout, stdout_is_closed};
use super::{repl, slt};
use crate::connectors::ConnectorServices;
use crate::error::{Error, ErrorKind, Result};

/// Wrong usage: unknown arguments, options that do not fit.
const USAGE: u8 = 2;
/// A construct that is not supported.
const UNSUPPORTED: u8 = 77;
/// Interrupted by Ctrl-C.
const INTERRUPTED: u8 = 130;
/// SIGTERM: 128 and its number.
const TERMINATED: u8 = 143;

/// Runs the binary with the arguments of the process.
pub fn main() -> ExitCode {
    quiet_task_panics();
    let cli = Cli::parse();
    // The caller's side needs one thread: tasks and endpoints run on threads of the cluster.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    let outcome = runtime.block_on(async {
        let _guard = outlive_file_size_limit();
        dispatch(cli).await
    });
    match outcome {
        Ok(status) => status,
        Err(error) => failed(&error),
    }
}

/// A file that grows beyond the limit of the process (`ulimit -f`) is to give an error like a full disk, not to end the process.
#[cfg(unix)]
fn outlive_file_size_limit() -> Option<tokio::signal::unix::Signal> {
    /// SIGXFSZ on Linux and macOS.
    const FILE_SIZE_EXCEEDED: i32 = 25;
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(FILE_SIZE_EXCEEDED)).ok()
}

#[cfg(not(unix))]
fn outlive_file_size_limit() {}

async fn dispatch(cli: Cli) -> Result<ExitCode> {
    match cli.command {
        Some(Command::Run { files, options }) => {
            interruptible(async {
                let mut runner = runner(&options, || files.iter().filter_map(|file| Script::of_file(file)).collect()).await?;
                for file in &files {
                    if runner.run_file(file).await?.is_break() {
                        break;
                    }
                }
                runner.finish().await
            })
            .await
        }
        Some(Command::Explain { file, explain_format, parallelism, settings }) => {
            let options = RunOptions { parallelism, settings, ..RunOptions::default() };
            explain(&options, &file, explain_format).await
        }
        Some(Command::Test { paths, mode, update }) => slt::run_tests(&paths, &usage(slt::modes_named(&mode))?, update),
        None if !cli.execute.is_empty() => {
            interruptible(async {
                let mut runner = runner(&cli.options, || cli.execute.iter().map(|sql| Script::of_text(sql)).collect()).await?;
                for sql in &cli.execute {
                    if runner.run_text(sql, "--execute").await?.is_break() {
                        break;
                    }
                }
                runner.finish().await
            })
            .await
        }
        None if !std::io::stdin().is_terminal() => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes)?;
            let sql = script_text(bytes, "the script on standard input")?;
            interruptible(async {
                let mut runner = runner(&cli.options, || vec![Script::of_text(&sql)]).await?;
                let _quits = runner.run_text(&sql, "standard input").await?; // nothing follows
                runner.finish().await
            })
            .await
        }
        None => repl::run(usage(session(builder(), &cli.options))?, cli.options.format).await,
    }
}

/// A session whose `print` tables print where its results do.
fn builder() -> SessionBuilder {
    Session::builder().services(ConnectorServices { stdout: Arc::new(Mutex::new(stdout())), ..ConnectorServices::default() })
}

/// Panics of tasks and endpoints are caught, fail what they are part of, and are shown as its error: they need not be shown twice.
/// RUST_BACKTRACE=1 shows them where they happen.
fn quiet_task_panics() {
    let default = std::panic::take_hook();
    let verbose = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
    std::panic::set_hook(Box::new(move |panic| {
        let caught = std::thread::current().name().is_some_and(|name| name.starts_with("flott-"));
        if verbose || !caught {
            default(panic);
        }
    }));
}

/// A runner of these scripts, which are read twice when they are to be restored.
async fn runner(options: &RunOptions, scripts: impl FnOnce() -> Vec<Script>) -> Result<ScriptRunner> {
    let restore = match &options.restore {
        Some(path) => {
            let path = absolute(path, Path::new(""));
            RestorePlan::new(&usage(session(builder(), options))?, &path, &scripts()).await?
        }
        None => RestorePlan::default(),
    };
    Ok(ScriptRunner::new(usage(session(builder(), options))?, options.format, restore))
}

async fn explain(options: &RunOptions, file: &Path, format: ExplainFormat) -> Result<ExitCode> {
    let session = usage(session(builder(), options))?;
    explain_file(&session, file, format).await?;
    Ok(ExitCode::SUCCESS)
}

/// Settings of the command line that do not fit are wrong usage, not a failed script.
fn usage<T>(result: Result<T>) -> Result<T> {
    if let Err(error) = &result {
        talk!("{}", error.render());
        std::process::exit(i32::from(USAGE));
    }
    result
}

/// Runs until done, until Ctrl-C or until the process is told to end. Dropping the work drops the session, which cancels its jobs and ends
/// its threads; what jobs have written and not made visible is removed by that.
async fn interruptible(work: impl Future<Output = Result<()>>) -> Result<ExitCode> {
    tokio::select! {
        done = work => done.map(|()| ExitCode::SUCCESS),
        _ = tokio::signal::ctrl_c() => {
            talk!("interrupted");
            Ok(ExitCode::from(INTERRUPTED))
        }
        () = terminated() => {
            talk!("terminated");
            Ok(ExitCode::from(TERMINATED))
        }
    }
}

/// Ends when the process is told to end.
#[cfg(unix)]
async fn terminated() {
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(mut signal) => drop(signal.recv().await),
        Err(_) => futures::future::pending().await, // then the system ends it the hard way
    }
}

/// There is no such signal.
#[cfg(not(unix))]
async fn terminated() {
    futures::future::pending().await
}

fn failed(error: &Error) -> ExitCode {
    // Who stopped reading wants no more: neither rows nor complaints.
    if stdout_is_closed() {
        return ExitCode::SUCCESS;
    }
    talk!("{}", error.render());
    match error.kind() {
        ErrorKind::Unsupported => ExitCode::from(UNSUPPORTED),
        ErrorKind::Cancelled => ExitCode::from(INTERRUPTED),
        _ => ExitCode::FAILURE,
    }
}
