//! The prompt: a line editor that knows SQL, and what it does with a line.
//!
//! Statements end with a semicolon and may span lines; commands of the prompt start with a backslash. Ctrl-C stops the running query,
//! or clears the line; Ctrl-D leaves. INSERT jobs run on while the prompt is back.

mod commands;
mod helper;
mod lexer;
mod live;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, RwLock};

use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};

use self::commands::Command;
use self::helper::is_client_command;
use super::cli::OutputFormat;
use super::output::{PrintOptions, printer};
use super::result::{Outcome, RowStream, StatementResult};
use super::session::Session;
use super::stopwatch::Stopwatch;
use crate::error::{Error, Result};

pub use helper::{KnownNames, SqlHelper};

/// Lines of history that are kept.
const HISTORY_LINES: usize = 10_000;

/// What the prompt remembers between lines.
struct Repl {
    session: Session,
    format: OutputFormat,
    timing: bool,
    names: Arc<RwLock<KnownNames>>,
}

/// Runs the prompt until the user leaves it.
pub async fn run(session: Session, format: Option<OutputFormat>) -> Result<ExitCode> {
    let names = Arc::new(RwLock::new(session.known_names()));
    let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut editor = editor(SqlHelper::new(Arc::clone(&names), colours))?;
    let history = history_file();
    if let Some(history) = &history {
        let _ = editor.load_history(history); // there is none at the first start
    }
    println!("Flott {}: Flink SQL without the JVM. \\? for help, \\q to leave.", env!("CARGO_PKG_VERSION"));
    let mut repl = Repl { session, format: format.unwrap_or(OutputFormat::Table), timing: false, names };
    loop {
        match editor.readline("flott> ") {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => {
                let _ = editor.add_history_entry(line.trim());
                if repl.line(line.trim()).await.is_break() {
                    break;
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(terminal_error(&error)),
        }
    }
    if let Some(history) = &history {
        let _ = editor.save_history(history); // a folder that cannot be written costs the history, not the session
    }
    repl.session.shutdown().await;
    Ok(ExitCode::SUCCESS)
}

fn editor(helper: SqlHelper) -> Result<Editor<SqlHelper, FileHistory>> {
    let mut config = Config::builder().auto_add_history(false).build();
    let _ = config.set_max_history_size(HISTORY_LINES);
    let mut editor = Editor::with_config(config).map_err(|error| terminal_error(&error))?;
    editor.set_helper(Some(helper));
    Ok(editor)
}

fn terminal_error(error: &ReadlineError) -> Error {
    Error::new(crate::error::ErrorKind::Io, "the terminal cannot be read").with_detail(error.to_string())
}

fn history_file() -> Option<PathBuf> {
    std::env::var_os("FLOTT_HISTORY")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".flott_history")))
}

impl Repl {
    /// Handles what was entered; break = leave.
    async fn line(&mut self, line: &str) -> std::ops::ControlFlow<()> {
        let outcome = if line.starts_with('\\') || is_client_command(line) {
            match Command::parse(line) {
                Ok(Command::Quit) => return std::ops::ControlFlow::Break(()),
                Ok(command) => self.command(command).await,
                Err(error) => Err(error),
            }
        } else {
            self.statements(line).await
        };
        if let Err(error) = outcome {
            eprintln!("{}", error.render());
        }
        *self.names.write().expect("no holder of this lock panics") = self.session.known_names();
        std::ops::ControlFlow::Continue(())
    }

    async fn command(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Quit => {}
            Command::Help => println!("{}", commands::HELP),
            Command::Clear => print!("\x1b[2J\x1b[H"),
            Command::Timing(wanted) => {
                self.timing = wanted.unwrap_or(!self.timing);
                println!("timing is {}", if self.timing { "on" } else { "off" });
            }
            Command::Format(format) => self.format = format,
            Command::List => self.statements("SHOW TABLES").await?,
            Command::Describe(name) => self.statements(&format!("DESCRIBE {name}")).await?,
            Command::Jobs => self.statements("SHOW JOBS").await?,
            Command::Read(file) => {
                let sql = super::run::read_script(&file)?;
                self.statements(&sql).await?;
            }
        }
        Ok(std::io::stdout().flush()?)
    }

    async fn statements(&mut self, sql: &str) -> Result<()> {
        for statement in self.session.parse(sql)? {
            let watch = Stopwatch::start();
            let result = self.session.execute_statement(&statement).await.map_err(|error| error.with_sql(sql))?;
            self.show(result).await.map_err(|error| error.with_sql(sql))?;
            if self.timing {
                println!("time: {}", watch.text());
            }
        }
        Ok(())
    }

    async fn show(&self, result: StatementResult) -> Result<()> {
        for notice in &result.notices {
            eprintln!("notice: {notice}");
        }
        match result.outcome {
            Outcome::Done => println!("ok"),
            Outcome::Text(text) => println!("{}", text.trim_end()),
            Outcome::Job(job) => println!("job {} runs: {}", job.id, job.name),
            Outcome::Rows(rows) => {
                // Dropping the rows cancels the query.
                tokio::select! {
                    done = self.print(rows) => done?,
                    _ = tokio::signal::ctrl_c() => println!("stopped"),
                }
            }
        }
        Ok(())
    }

    async fn print(&self, mut rows: RowStream) -> Result<()> {
        let zone = self.session.configuration().time_zone();
        let options = PrintOptions { format: self.format, time_zone: zone, width: live::terminal_width() };
        let unbounded = rows.job().is_some_and(|job| !job.bounded);
        if unbounded && self.format == OutputFormat::Table && std::io::stdout().is_terminal() {
            return live::show(rows, &options).await;
        }
        let mut out = std::io::stdout();
        let mut printer = printer(&options, rows.schema(), rows.changelog(), &mut out)?;
        let mut progress = super::progress::Progress::start(rows.job().cloned());
        while let Some(batch) = progress.watch(rows.next_batch()).await? {
            printer.batch(&batch, &mut out)?;
        }
        let count = printer.finish(&mut out)?;
        println!("{count} row{}", if count == 1 { "" } else { "s" });
        progress.footer().await;
        Ok(())
    }
}
