//! The database that sqllogictest talks to: a session on virtual time under one mode.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType};

use super::interrupted::interrupt_following;
use super::modes::Mode;
use super::proof::Proof;
use crate::client::result::{Outcome, RowStream};
use crate::client::{ChangelogFold, Session};
use crate::clock::VirtualClock;
use crate::config::RESULT_MODE;
use crate::error::{Error, Result};
use crate::expr::text::{TextStyle, ValueWriter};
use crate::types::Batch;

/// The time at which every file starts: 2024-01-01 00:00:00 UTC.
const START_MS: i64 = 1_704_067_200_000;

/// Threads for the tasks of a file: two show races, more would only fight with the other files.
const WORKER_THREADS: usize = 2;

/// A session on virtual time under one mode.
pub struct Database {
    session: Session,
    mode: &'static Mode,
}

/// An error as a user sees it: with its place in the statement, its cause and its hint, so that files can expect them too.
#[derive(Debug)]
pub struct ShownError(Error);

impl fmt::Display for ShownError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.render())
    }
}

impl std::error::Error for ShownError {}

impl From<Error> for ShownError {
    fn from(error: Error) -> Self {
        ShownError(error)
    }
}

impl Database {
    /// For a file, whose folder is where relative paths start from.
    pub fn new(file: &Path, mode: &'static Mode) -> Result<Self> {
        let mut builder = Session::builder()
            .virtual_clock(VirtualClock::new(START_MS))
            .worker_threads(WORKER_THREADS)
            .base_dir(file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")));
        for (key, value) in mode.settings {
            builder = builder.set(key, value)?;
        }
        if mode.proof == Proof::RestoredHalfWay {
            builder = builder.interrupt_jobs();
        }
        Ok(Database { session: builder.build(), mode })
    }

    /// The session, for the mode's proof.
    pub fn session(&self) -> &Session {
        &self.session
    }

    async fn execute(&self, sql: &str) -> Result<DBOutput<DefaultColumnType>> {
        let result = self.session.execute(sql).await?;
        let output = match result.outcome {
            Outcome::Done => DBOutput::StatementComplete(0),
            // An empty line would end the expected result.
            Outcome::Text(text) => {
                lines(text.lines().filter(|line| !line.trim().is_empty()).map(|line| vec![line.trim_end().to_string()]))
            }
            Outcome::Rows(rows) => self.rows(rows).await?,
            Outcome::Job(job) => {
                if job.bounded {
                    job.wait().await?;
                }
                DBOutput::StatementComplete(0)
            }
        };
        self.session.flush().await?;
        interrupt_following(&self.session).await?;
        Ok(output)
    }

    async fn rows(&self, mut rows: RowStream) -> Result<DBOutput<DefaultColumnType>> {
        let schema = Arc::clone(rows.schema());
        let zone = self.session.configuration().time_zone();
        let writers: Vec<ValueWriter> =
            schema.fields.iter().map(|field| ValueWriter::new(&field.data_type, TextStyle::Conformance, zone)).collect();
        let cells = |batch: &Batch, row: usize| -> Vec<String> {
            let texts = writers.iter().zip(batch.columns()).map(|(writer, column)| {
                let mut text = String::new();
                writer.write(&mut text, column.as_ref(), row);
                text.replace('\n', "\\n")
            });
            texts.collect()
        };
        let mut table = Vec::new();
        if self.mode.shows_changes && self.session.configuration().text(&RESULT_MODE).eq_ignore_ascii_case("changelog") {
            while let Some(batch) = rows.next_batch().await? {
                for row in 0..batch.num_rows() {
                    table.push([batch.kind(row).to_string()].into_iter().chain(cells(&batch, row)).collect());
                }
            }
        } else {
            let mut fold = ChangelogFold::new(&schema)?;
            while let Some(batch) = rows.next_batch().await? {
                fold.apply(&batch)?;
            }
            let batch = fold.to_batch()?;
            table.extend((0..batch.num_rows()).map(|row| cells(&batch, row)));
        }
        Ok(lines(table))
    }
}

/// Rows of text; sqllogictest is told that every column is text.
fn lines(rows: impl IntoIterator<Item = Vec<String>>) -> DBOutput<DefaultColumnType> {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    let columns = rows.first().map_or(0, Vec::len);
    DBOutput::Rows { types: vec![DefaultColumnType::Text; columns], rows }
}

#[async_trait::async_trait]
impl AsyncDB for Database {
    type Error = ShownError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> std::result::Result<DBOutput<DefaultColumnType>, ShownError> {
        self.execute(sql).await.map_err(ShownError)
    }

    async fn shutdown(&mut self) {
        self.session.shutdown().await;
    }

    fn engine_name(&self) -> &str {
        self.mode.name
    }

    fn error_sql_state(error: &ShownError) -> Option<String> {
        Some(error.0.kind().sqlstate().to_string())
    }
}
