//! `flott run` and `flott -e`: statements one after another, results on standard output, everything else on standard error.
//!
//! An INSERT over bounded tables is waited for before the next statement, so that what it wrote can be read; one over unbounded tables
//! runs on beside the others and is waited for at the end. A script is parsed as a whole before its first statement runs.

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;

use super::cli::{OutputFormat, RunOptions};
use super::explain::{ExplainFormat, explain};
use super::job::JobHandle;
use super::live;
use super::output::{PrintOptions, folds, printer};
use super::pieces::statements_before;
use super::progress::Progress;
use super::restore::{RestorePlan, Start};
use super::result::{Outcome, RowStream, StatementResult};
use super::session::{Session, SessionBuilder};
use super::state_paths::absolute;
use super::terminal::{screen, stdout, stdout_is_closed};
use crate::config::{Configuration, PARALLELISM, RECOVERY_PATH, RESULT_MODE};
use crate::error::{Error, ErrorKind, Result};
use crate::sql::{ExplainDetail, ParsedStatement, Statement};

/// Statements one after another, for a program that ends.
pub struct ScriptRunner {
    session: Session,
    format: Option<OutputFormat>,
    unbounded: Vec<JobHandle>,
    restore: RestorePlan,
}

/// A session with the settings of the command line.
pub fn session(builder: SessionBuilder, options: &RunOptions) -> Result<Session> {
    let mut builder = builder;
    if let Some(parallelism) = options.parallelism {
        builder = builder.set(PARALLELISM.key, &parallelism.to_string())?;
    }
    for setting in &options.settings {
        let (key, value) = setting.split_once('=').ok_or_else(|| {
            Error::new(ErrorKind::InvalidOption, format!("'{setting}' is no setting")).with_hint("write --set KEY=VALUE")
        })?;
        builder = builder.set(key.trim(), value.trim())?;
    }
    if let Some(path) = &options.restore {
        // A variable of the shell that is not set must not have everything written again.
        if path.trim().is_empty() {
            return Err(Error::new(ErrorKind::InvalidOption, "--restore is given no path").with_hint(
                "name a checkpoint, a savepoint, or the directory of checkpoints; without --restore the job begins anew",
            ));
        }
        // As the shell means it, not as the script would.
        builder = builder.set(RECOVERY_PATH.key, &absolute(path, Path::new("")))?;
    }
    Ok(builder.build())
}

impl ScriptRunner {
    /// In a session; without a format, a table for a terminal and CSV for a pipe.
    pub fn new(session: Session, format: Option<OutputFormat>, restore: RestorePlan) -> Self {
        ScriptRunner { session, format, unbounded: Vec::new(), restore }
    }

    /// Runs a script; relative paths in it start from its folder. Break = it said QUIT.
    pub async fn run_file(&mut self, file: &Path) -> Result<ControlFlow<()>> {
        let sql = read_script(file)?;
        self.session.set_base_dir(folder_of(file));
        self.run_text(&sql, &file.display().to_string()).await
    }

    /// Runs the statements of a text that is known to the user as `name`. Break = one of them was QUIT.
    pub async fn run_text(&mut self, sql: &str, name: &str) -> Result<ControlFlow<()>> {
        for (index, statement) in parse(&self.session, sql, name)?.iter().enumerate() {
            if matches!(statement.statement, Statement::Quit) {
                return Ok(ControlFlow::Break(()));
            }
            let done = match self.execute(statement).await {
                Ok(result) => self.show(result).await,
                Err(error) => Err(error),
            };
            done.map_err(|error| failed_statement(error.at(statement.place).with_sql(sql), name, index + 1))?;
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn execute(&mut self, statement: &ParsedStatement) -> Result<StatementResult> {
        let mut passed_over = None;
        match self.restore.next(&statement.statement) {
            Some(Start::FromPathWith(notice)) => talk!("notice: {notice}"),
            Some(Start::Anew(notice)) => {
                talk!("notice: {notice}");
                let mut state = self.session.locked();
                passed_over = Some(state.configuration.text(&RECOVERY_PATH).to_string());
                state.configuration.reset(Some(RECOVERY_PATH.key))?;
            }
            Some(Start::FromPath) | None => {}
        }
        let executed = self.session.execute_statement(statement).await;
        if let Some(path) = passed_over {
            self.session.locked().configuration.set(RECOVERY_PATH.key, &path)?;
        }
        executed
    }

    /// Waits for the INSERTs that run on.
    pub async fn finish(self) -> Result<()> {
        for job in self.unbounded {
            wait_for(&job).await?;
        }
        self.session.shutdown().await;
        Ok(())
    }

    async fn show(&mut self, result: StatementResult) -> Result<()> {
        for notice in &result.notices {
            talk!("{notice}");
        }
        match result.outcome {
            Outcome::Done => Ok(()),
            Outcome::Text(text) => Ok(writeln!(stdout(), "{}", text.trim_end())?),
            Outcome::Rows(rows) => self.print(rows).await,
            Outcome::Job(job) if job.bounded => wait_for(&job).await,
            Outcome::Job(job) => {
                talk!("job {} runs: {}", job.id, job.name);
                self.unbounded.push(job);
                Ok(())
            }
        }
    }

    async fn print(&self, rows: RowStream) -> Result<()> {
        let default = if std::io::stdout().is_terminal() { OutputFormat::Table } else { OutputFormat::Csv };
        let configuration = self.session.configuration();
        let format = format_of(self.format, &configuration, default);
        let options = PrintOptions::of(format, &configuration, None);
        if live::is_live(&rows, format) && std::io::stdout().is_terminal() {
            return live::show(rows, &options, &mut screen()).await;
        }
        print_rows(rows, &options).await.map(drop)
    }
}

/// The format that was asked for; else what `sql-client.execution.result-mode` says.
pub(super) fn format_of(asked: Option<OutputFormat>, configuration: &Configuration, default: OutputFormat) -> OutputFormat {
    let changelog = configuration.text(&RESULT_MODE).eq_ignore_ascii_case("changelog");
    asked.unwrap_or(if changelog { OutputFormat::Changelog } else { default })
}

/// Prints rows as they come, or at the end, as the format has it. Gives how many.
pub(super) async fn print_rows(mut rows: RowStream, options: &PrintOptions) -> Result<u64> {
    let bounded = rows.job().is_none_or(|job| job.bounded);
    if !bounded && folds(options.format, rows.changelog()) {
        talk!("notice: this query does not end by itself, and its rows are printed when it has; changelog shows each change");
    }
    let mut out = std::io::BufWriter::new(stdout());
    // Begun with the first rows: one that fails before it has any leaves no head of a table behind.
    let mut begun = None;
    let mut progress = Progress::start(rows.job().cloned());
    while let Some(batch) = progress.watch(rows.next_batch()).await? {
        let printer = match &mut begun {
            Some(printer) => printer,
            none => none.insert(printer(options, rows.schema(), rows.changelog(), &mut out)?),
        };
        printer.batch(&batch, &mut out)?;
        if !bounded {
            out.flush()?;
        }
        tokio::task::yield_now().await; // lets Ctrl-C through where rows come without a pause
    }
    let printer = match begun {
        Some(printer) => printer,
        None => printer(options, rows.schema(), rows.changelog(), &mut out)?,
    };
    let count = printer.finish(&mut out)?;
    out.flush()?;
    progress.footer(Some(count)).await;
    Ok(count)
}

pub(super) async fn wait_for(job: &JobHandle) -> Result<()> {
    let mut progress = Progress::start(Some(job.clone()));
    let ended = progress.watch(job.wait()).await;
    progress.footer(None).await;
    ended.map(drop)
}

/// The text of a script, with errors that name the file.
pub fn read_script(file: &Path) -> Result<String> {
    let bytes = std::fs::read(file).map_err(|cause| {
        let error = Error::from(cause);
        Error::new(error.kind(), format!("cannot read script '{}'", file.display())).with_detail(error.message().to_string())
    })?;
    script_text(bytes, &format!("script '{}'", file.display()))
}

/// The text of a script: UTF-8, with or without a byte order mark.
pub fn script_text(bytes: Vec<u8>, source: &str) -> Result<String> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Error::new(ErrorKind::DataFormat, format!("{source} is not UTF-8 text"))
            .with_detail(format!("the first wrong byte is in line {line}"))
            .with_hint("save it as UTF-8")
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_string(),
        None => text,
    })
}

/// What relative paths in a script start from.
pub(super) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The statements of a script. Says which one does not parse, and that none was run for it.
fn parse(session: &Session, sql: &str, name: &str) -> Result<Vec<ParsedStatement>> {
    session.parse(sql).inspect_err(|error| {
        let number = error.span().map_or(0, |span| statements_before(sql, span.start)) + 1;
        if number > 1 {
            talk!("{name}: statement {number} does not parse; none was run");
        }
    })
}

/// Says which statement of a script failed, if it has several.
fn failed_statement(error: Error, name: &str, number: usize) -> Error {
    if number > 1 && !stdout_is_closed() {
        talk!("{name}: statement {number} failed; those before it were run");
    }
    error
}

/// `flott explain`: carries out the definitions of a script and explains its queries and INSERTs.
pub async fn explain_file(session: &Session, file: &Path, format: ExplainFormat) -> Result<()> {
    let sql = read_script(file)?;
    let name = file.display().to_string();
    session.set_base_dir(folder_of(file));
    for (index, parsed) in parse(session, &sql, &name)?.iter().enumerate() {
        if matches!(parsed.statement, Statement::Quit) {
            break;
        }
        let explained = explain_statement(session, parsed, format).await;
        explained.map_err(|error| failed_statement(error.at(parsed.place).with_sql(sql.as_str()), &name, index + 1))?;
    }
    Ok(())
}

async fn explain_statement(session: &Session, parsed: &ParsedStatement, format: ExplainFormat) -> Result<()> {
    let explained = match &parsed.statement {
        Statement::Query(_) | Statement::Insert(_) | Statement::StatementSet(_) => &parsed.statement,
        Statement::Explain { statement, .. } => statement.as_ref(),
        Statement::CreateTable(create) if create.query.is_some() => {
            return Err(Error::unsupported("explaining CREATE TABLE AS").with_hint("explain its SELECT"));
        }
        _ => return session.execute_statement(parsed).await.map(drop),
    };
    let planned = session.plan_for_explain(explained, &parsed.hints)?;
    writeln!(stdout(), "{}", explain(&planned, format, &[ExplainDetail::ChangelogMode])?.trim_end())?;
    Ok(())
}
