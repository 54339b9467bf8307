//! The prompt: a line editor that knows SQL, and what it does with a line.
//!
//! Statements end with a semicolon and may span lines; commands of the prompt start with a backslash. Ctrl-C stops the running query,
//! or clears the line; Ctrl-D leaves. INSERT jobs run on while the prompt is back; their end is told before the next one.

mod commands;
mod completion;
mod helper;

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};

use self::commands::Command;
use self::helper::{SqlHelper, is_client_command};
use super::cli::OutputFormat;
use super::job::JobHandle;
use super::known_names::KnownNames;
use super::live;
use super::output::PrintOptions;
use super::progress;
use super::result::{Outcome, RowStream, StatementResult};
use super::run::{folder_of, format_of, print_rows, read_script, wait_for};
use super::session::Session;
use super::show;
use super::stopwatch::Stopwatch;
use super::terminal::{ScreenSize, stdout};
use crate::error::{Error, ErrorKind, Result};
use crate::sql::Statement;

/// Lines of history that are kept.
const HISTORY_LINES: usize = 10_000;
/// How long the prompt waits for an INSERT before it comes back: most that end by themselves have ended by then.
const INSERT_PATIENCE: Duration = Duration::from_millis(300);

/// What the prompt remembers between lines.
struct Repl {
    session: Session,
    format: Option<OutputFormat>,
    timing: bool,
    names: Arc<RwLock<KnownNames>>,
    /// INSERTs that run in the background.
    jobs: Vec<JobHandle>,
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
    say(&format!("Flott {}: Flink SQL without the JVM. \\? for help, \\q to leave.", env!("CARGO_PKG_VERSION")))?;
    let mut repl = Repl { session, format, timing: false, names, jobs: Vec::new() };
    loop {
        repl.tell_ended_jobs().await?;
        match editor.readline("flott> ") {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => {
                remember(&mut editor, history.as_ref(), line.trim());
                if repl.line(line.trim(), &mut || editor.dimensions()).await?.is_break() {
                    break;
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(terminal_error(&error)),
        }
    }
    repl.tell_ended_jobs().await?;
    for job in &repl.jobs {
        talk!("job {} is cancelled: {}", job.id, job.name);
    }
    repl.session.shutdown().await;
    Ok(ExitCode::SUCCESS)
}

fn editor(helper: SqlHelper) -> Result<Editor<SqlHelper, FileHistory>> {
    let mut config = Config::builder().auto_add_history(false).completion_type(rustyline::CompletionType::List).build();
    let _ = config.set_max_history_size(HISTORY_LINES);
    let mut editor = Editor::with_config(config).map_err(|error| terminal_error(&error))?;
    editor.set_helper(Some(helper));
    Ok(editor)
}

/// Keeps a line for later, at once: a terminal may be closed without a word.
fn remember(editor: &mut Editor<SqlHelper, FileHistory>, history: Option<&PathBuf>, line: &str) {
    let _ = editor.add_history_entry(line);
    if let Some(history) = history {
        let _ = editor.append_history(history); // a folder that cannot be written costs the history, not the session
    }
}

fn terminal_error(error: &ReadlineError) -> Error {
    Error::new(ErrorKind::Io, "the terminal cannot be read").with_detail(error.to_string())
}

fn history_file() -> Option<PathBuf> {
    std::env::var_os("FLOTT_HISTORY")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".flott_history")))
}

fn say(text: &str) -> Result<()> {
    Ok(writeln!(stdout(), "{text}")?)
}

impl Repl {
    /// Handles what was entered; break = leave.
    async fn line(&mut self, line: &str, size: ScreenSize<'_>) -> Result<ControlFlow<()>> {
        let command = (line.starts_with('\\') || is_client_command(line)).then(|| Command::parse(line)).transpose();
        if matches!(command, Ok(Some(Command::Quit))) {
            return Ok(ControlFlow::Break(()));
        }
        // Dropping the work drops the rows that it reads, which cancels their query.
        let done = tokio::select! {
            biased;
            done = async {
                match command? {
                    Some(command) => self.command(command, size).await.map(ControlFlow::Continue),
                    None => self.statements(line, size).await,
                }
            } => done,
            _ = tokio::signal::ctrl_c() => say("\r\x1b[Kstopped").map(ControlFlow::Continue), // over the terminal's own ^C
        };
        let leaves = done.unwrap_or_else(|error| {
            talk!("{}", error.render());
            ControlFlow::Continue(())
        });
        let mut names = self.session.known_names();
        let running = self.session.jobs().await.unwrap_or_default();
        names.jobs = running.iter().filter(|info| !info.state.is_terminal()).map(|info| info.id.to_string()).collect();
        *self.names.write().expect("no holder of this lock panics") = names;
        Ok(leaves)
    }

    async fn command(&mut self, command: Command, size: ScreenSize<'_>) -> Result<()> {
        match command {
            Command::Quit => Ok(()),
            Command::Help => say(commands::HELP),
            Command::Clear => say("\x1b[2J\x1b[H"),
            Command::Timing(wanted) => {
                self.timing = wanted.unwrap_or(!self.timing);
                say(if self.timing { "timing is on" } else { "timing is off" })
            }
            Command::Format(format) => {
                self.format = Some(format);
                Ok(())
            }
            Command::List => self.statements("SHOW TABLES", size).await.map(drop),
            Command::Describe(name) => self.statements(&format!("DESCRIBE {name}"), size).await.map(drop),
            Command::Jobs => self.statements("SHOW JOBS", size).await.map(drop),
            Command::Settings => self.print(show::all_settings(&self.session.configuration()), size).await,
            Command::Read(file) => {
                let sql = read_script(&file)?;
                self.session.set_base_dir(folder_of(&file));
                self.statements(&sql, size).await.map(drop)
            }
        }
    }

    /// Runs statements. Break = one of them was QUIT: those behind it are not run.
    async fn statements(&mut self, sql: &str, size: ScreenSize<'_>) -> Result<ControlFlow<()>> {
        let statements = self.session.parse(sql)?;
        for (index, statement) in statements.iter().enumerate() {
            if matches!(statement.statement, Statement::Quit) {
                return Ok(ControlFlow::Break(()));
            }
            let watch = Stopwatch::start();
            let is_last = index + 1 == statements.len();
            let done = match self.session.execute_statement(statement).await {
                Ok(result) => self.show(result, is_last, size).await,
                Err(error) => Err(error),
            };
            done.map_err(|error| error.with_sql(sql))?;
            if self.timing {
                say(&format!("time: {}", watch.text()))?;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn show(&mut self, result: StatementResult, is_last: bool, size: ScreenSize<'_>) -> Result<()> {
        for notice in &result.notices {
            talk!("{notice}");
        }
        match result.outcome {
            Outcome::Done => say("ok"),
            Outcome::Text(text) => say(text.trim_end()),
            Outcome::Rows(rows) => self.print(rows, size).await,
            // What follows may read what it writes.
            Outcome::Job(job) if job.bounded && !is_last => {
                wait_for(&job).await?;
                say("ok")
            }
            Outcome::Job(job) => self.run_in_background(job).await,
        }
    }

    async fn run_in_background(&mut self, job: JobHandle) -> Result<()> {
        match tokio::time::timeout(INSERT_PATIENCE, job.wait()).await {
            Ok(ended) => {
                let metrics = ended?;
                say("ok")?;
                progress::tell_end(&metrics, None);
                Ok(())
            }
            Err(_) => {
                say(&format!("job {} runs in the background: {}", job.id, job.name))?;
                self.jobs.push(job);
                Ok(())
            }
        }
    }

    /// Tells of INSERTs that have ended since the last prompt.
    async fn tell_ended_jobs(&mut self) -> Result<()> {
        if self.jobs.is_empty() {
            return Ok(());
        }
        let running = self.session.jobs().await.unwrap_or_default();
        let runs = |job: &JobHandle| running.iter().any(|info| info.id == job.id && !info.state.is_terminal());
        let (running, ended): (Vec<JobHandle>, Vec<JobHandle>) = self.jobs.drain(..).partition(runs);
        self.jobs = running;
        for job in ended {
            match job.wait().await {
                Ok(metrics) => {
                    say(&format!("job {} has finished", job.id))?;
                    progress::tell_end(&metrics, None);
                }
                Err(error) if error.kind() == ErrorKind::Cancelled => say(&format!("job {} was cancelled", job.id))?,
                Err(error) => talk!("job {} has failed\n{}", job.id, error.render()),
            }
        }
        Ok(())
    }

    async fn print(&self, rows: RowStream, size: ScreenSize<'_>) -> Result<()> {
        let screen = size();
        let configuration = self.session.configuration();
        let format = format_of(self.format, &configuration, OutputFormat::Table);
        let options = PrintOptions::of(format, &configuration, screen.map(|(columns, _)| usize::from(columns)));
        if screen.is_some() && live::is_live(&rows, options.format) {
            return live::show(rows, &options, size).await;
        }
        let count = print_rows(rows, &options).await?;
        say(&format!("{count} row{}", if count == 1 { "" } else { "s" }))
    }
}
