//! `flott run` and `flott -e`: statements one after another, results on standard output, everything else on standard error.
//!
//! An INSERT over bounded tables is waited for before the next statement, so that what it wrote can be read; one over unbounded tables
//! runs on beside the others and is waited for at the end.

use std::io::{IsTerminal, Write};
use std::path::Path;

use super::cli::{ExplainAs, OutputFormat, RunOptions};
use super::explain::{ExplainFormat, explain};
use super::job::JobHandle;
use super::output::{PrintOptions, printer};
use super::progress::Progress;
use super::result::{Outcome, RowStream, StatementResult};
use super::session::{Session, SessionBuilder};
use crate::config::PARALLELISM;
use crate::error::{Error, ErrorKind, Result};
use crate::sql::{ExplainDetail, Statement};

/// Statements one after another, for a program that ends.
pub struct ScriptRunner {
    session: Session,
    format: OutputFormat,
    unbounded: Vec<JobHandle>,
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
    Ok(builder.build())
}

impl ScriptRunner {
    /// In a session; without a format, a table for a terminal and CSV for a pipe.
    pub fn new(session: Session, format: Option<OutputFormat>) -> Self {
        let default = if std::io::stdout().is_terminal() { OutputFormat::Table } else { OutputFormat::Csv };
        ScriptRunner { session, format: format.unwrap_or(default), unbounded: Vec::new() }
    }

    /// Runs a script; relative paths in it start from its folder.
    pub async fn run_file(&mut self, file: &Path) -> Result<()> {
        let sql = read_script(file)?;
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.session.set_base_dir(folder);
        self.run_text(&sql).await
    }

    /// Runs the statements of a text.
    pub async fn run_text(&mut self, sql: &str) -> Result<()> {
        for statement in self.session.parse(sql)? {
            let result = self.session.execute_statement(&statement).await.map_err(|error| error.with_sql(sql))?;
            self.show(result).await.map_err(|error| error.with_sql(sql))?;
        }
        Ok(())
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
            eprintln!("notice: {notice}");
        }
        match result.outcome {
            Outcome::Done => Ok(()),
            Outcome::Text(text) => Ok(writeln!(std::io::stdout(), "{}", text.trim_end())?),
            Outcome::Rows(rows) => self.print(rows).await,
            Outcome::Job(job) if job.bounded => wait_for(&job).await,
            Outcome::Job(job) => {
                eprintln!("job {} runs: {}", job.id, job.name);
                self.unbounded.push(job);
                Ok(())
            }
        }
    }

    async fn print(&self, mut rows: RowStream) -> Result<()> {
        let options = PrintOptions { format: self.format, time_zone: self.session.configuration().time_zone(), width: None };
        let mut out = std::io::BufWriter::new(std::io::stdout());
        let mut printer = printer(&options, rows.schema(), rows.changelog(), &mut out)?;
        let mut progress = Progress::start(rows.job().cloned());
        while let Some(batch) = progress.watch(rows.next_batch()).await? {
            printer.batch(&batch, &mut out)?;
        }
        printer.finish(&mut out)?;
        out.flush()?;
        progress.footer().await;
        Ok(())
    }
}

async fn wait_for(job: &JobHandle) -> Result<()> {
    let mut progress = Progress::start(Some(job.clone()));
    progress.watch(job.wait()).await?;
    progress.footer().await;
    Ok(())
}

/// The text of a script, with errors that name the file.
pub fn read_script(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).map_err(|cause| {
        let error = Error::from(cause);
        Error::new(error.kind(), format!("cannot read script '{}'", file.display())).with_detail(error.message().to_string())
    })
}

/// `flott explain`: carries out the definitions of a script and explains its queries and INSERTs.
pub async fn explain_file(session: &Session, file: &Path, format: ExplainAs) -> Result<()> {
    let sql = read_script(file)?;
    let format = match format {
        ExplainAs::Text => ExplainFormat::Text,
        ExplainAs::Json => ExplainFormat::Json,
        ExplainAs::Dot => ExplainFormat::Dot,
        ExplainAs::Mermaid => ExplainFormat::Mermaid,
    };
    for parsed in session.parse(&sql)? {
        let explained = match &parsed.statement {
            Statement::Query(_) | Statement::Insert(_) | Statement::StatementSet(_) => &parsed.statement,
            Statement::Explain { statement, .. } => statement.as_ref(),
            Statement::CreateTable(create) if create.query.is_some() => {
                return Err(Error::unsupported("explaining CREATE TABLE AS").with_hint("explain its SELECT").with_sql(sql));
            }
            _ => {
                session.execute_statement(&parsed).await.map_err(|error| error.with_sql(sql.as_str()))?;
                continue;
            }
        };
        let planned = session.plan_for_explain(explained, &parsed.hints).map_err(|error| error.with_sql(sql.as_str()))?;
        writeln!(std::io::stdout(), "{}", explain(&planned, format, &[ExplainDetail::ChangelogMode])?.trim_end())?;
    }
    Ok(())
}
