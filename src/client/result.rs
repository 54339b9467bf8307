//! What a statement gives: nothing, text, rows, or a job that runs on.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::RecordBatch;
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};

use super::ChangelogFold;
use super::job::JobHandle;
use crate::cluster::JobResult;
use crate::config::Notice;
use crate::error::Result;
use crate::expr::text::{TextStyle, ValueWriter};
use crate::runtime::ResultStream;
use crate::types::{Batch, ChangelogMode, Field, RowKind, SchemaRef, TimeZone};

/// What a statement gave, with what should be said about it.
#[derive(Debug)]
pub struct StatementResult {
    /// The outcome.
    pub outcome: Outcome,
    /// Notices: options without effect and the like.
    pub notices: Vec<Notice>,
}

/// What a statement gave.
#[derive(Debug)]
pub enum Outcome {
    /// Done, nothing to show.
    Done,
    /// Text: EXPLAIN, SHOW CREATE TABLE.
    Text(String),
    /// Rows: SELECT, SHOW, DESCRIBE.
    Rows(RowStream),
    /// A job that writes: INSERT, EXECUTE STATEMENT SET.
    Job(JobHandle),
}

/// The rows (changes) of a query as they come. Dropping it cancels the query.
#[derive(Debug)]
pub struct RowStream {
    schema: SchemaRef,
    changelog: ChangelogMode,
    time_zone: TimeZone,
    source: RowSource,
}

#[derive(Debug)]
enum RowSource {
    Ready(Option<Batch>),
    Job(Box<Running>),
}

/// The rows of a job that runs.
struct Running {
    stream: ResultStream,
    job: JobHandle,
    /// How the job ends; none = it has ended. Where the collector cannot say how the query ended (it failed, or never started), the
    /// job's own end does.
    end: Option<BoxFuture<'static, Result<JobResult>>>,
    finished: bool,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.job)
    }
}

impl Running {
    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Batch>>> {
        if self.finished {
            return Poll::Ready(None);
        }
        if let Some(end) = &mut self.end
            && let Poll::Ready(ended) = end.poll_unpin(context)
        {
            self.end = None;
            (self.stream.closer())(ended.and_then(JobResult::into_result).map(drop));
        }
        let next = ready!(self.stream.poll_next_unpin(context));
        self.finished = !matches!(next, Some(Ok(_)));
        Poll::Ready(next)
    }
}

/// A record batch with the kind of each row.
#[derive(Debug, Clone)]
pub struct ChangeBatch {
    /// The rows.
    pub rows: RecordBatch,
    /// One kind a row.
    pub kinds: Vec<RowKind>,
}

impl RowStream {
    /// Rows that are there already.
    pub fn ready(schema: SchemaRef, batch: Batch) -> Self {
        let source = RowSource::Ready(Some(batch));
        RowStream { schema, changelog: ChangelogMode::InsertOnly, time_zone: TimeZone::UTC, source }
    }

    /// The rows that a job collects.
    pub fn of_job(schema: SchemaRef, changelog: ChangelogMode, stream: ResultStream, job: JobHandle) -> Self {
        let watched = job.clone();
        let end = async move { watched.result().await }.boxed();
        let running = Running { stream, job, end: Some(end), finished: false };
        RowStream { schema, changelog, time_zone: TimeZone::UTC, source: RowSource::Job(Box::new(running)) }
    }

    /// The same rows, whose instants are shown in a zone: the session's.
    pub(super) fn in_time_zone(mut self, time_zone: TimeZone) -> Self {
        self.time_zone = time_zone;
        self
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Which changes can come.
    pub fn changelog(&self) -> ChangelogMode {
        self.changelog
    }

    /// The job behind it, if there is one.
    pub fn job(&self) -> Option<&JobHandle> {
        match &self.source {
            RowSource::Ready(_) => None,
            RowSource::Job(running) => Some(&running.job),
        }
    }

    /// The next rows, in the engine's own form.
    pub async fn next_batch(&mut self) -> Result<Option<Batch>> {
        self.next_inner().await.transpose()
    }

    async fn next_inner(&mut self) -> Option<Result<Batch>> {
        futures::future::poll_fn(|context| self.poll_batch(context)).await
    }

    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Batch>>> {
        match &mut self.source {
            RowSource::Ready(batch) => Poll::Ready(batch.take().map(Ok)),
            RowSource::Job(running) => running.poll_batch(context),
        }
    }

    /// The table that the changes describe once the query has ended: waits for the end.
    pub async fn collect(mut self) -> Result<RecordBatch> {
        let mut fold = ChangelogFold::new(&self.schema)?;
        while let Some(batch) = self.next_batch().await? {
            fold.apply(&batch)?;
        }
        fold.to_batch()?.to_record_batch(&self.schema)
    }

    /// As [`RowStream::collect`], each value as the text that a table shows: `<NULL>`, `2024-01-01 00:00:00.000`, `[1, 2]`. Instants
    /// are shown in the session's zone.
    pub async fn collect_text(mut self) -> Result<Vec<Vec<String>>> {
        let mut fold = ChangelogFold::new(&self.schema)?;
        while let Some(batch) = self.next_batch().await? {
            fold.apply(&batch)?;
        }
        Ok(self.text_of(&fold.to_batch()?))
    }

    /// The next rows as text, whatever their kinds; none at the end.
    pub async fn next_text(&mut self) -> Result<Option<Vec<Vec<String>>>> {
        Ok(self.next_batch().await?.map(|batch| self.text_of(&batch)))
    }

    fn text_of(&self, batch: &Batch) -> Vec<Vec<String>> {
        let writer = |field: &Field| ValueWriter::new(&field.data_type, TextStyle::Display, self.time_zone);
        let writers: Vec<ValueWriter> = self.schema.fields.iter().map(writer).collect();
        let cell = |row: usize, column: usize| {
            let mut text = String::new();
            writers[column].write(&mut text, batch.column(column).as_ref(), row);
            text
        };
        (0..batch.num_rows()).map(|row| (0..writers.len()).map(|column| cell(row, column)).collect()).collect()
    }
}

impl Stream for RowStream {
    type Item = Result<ChangeBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.poll_batch(context));
        let schema = Arc::clone(&self.schema);
        Poll::Ready(next.map(|batch| {
            let batch = batch?;
            let kinds = (0..batch.num_rows()).map(|row| batch.kind(row)).collect();
            Ok(ChangeBatch { rows: batch.to_record_batch(&schema)?, kinds })
        }))
    }
}

impl Drop for RowStream {
    fn drop(&mut self) {
        if let RowSource::Job(running) = &self.source
            && !running.finished
        {
            running.job.cancel_in_background();
        }
    }
}

impl From<Outcome> for StatementResult {
    fn from(outcome: Outcome) -> Self {
        StatementResult { outcome, notices: Vec::new() }
    }
}
