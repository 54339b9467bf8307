//! What a statement gives: nothing, text, rows, or a job that runs on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use futures::{Stream, StreamExt};

use super::ChangelogFold;
use super::job::JobHandle;
use crate::config::Notice;
use crate::error::Result;
use crate::runtime::ResultStream;
use crate::types::{Batch, ChangelogMode, RowKind, SchemaRef};

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
    source: RowSource,
}

#[derive(Debug)]
enum RowSource {
    Ready(Option<Batch>),
    Job { stream: ResultStream, job: JobHandle, finished: bool },
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
        RowStream { schema, changelog: ChangelogMode::InsertOnly, source: RowSource::Ready(Some(batch)) }
    }

    /// The rows that a job collects.
    pub fn of_job(schema: SchemaRef, changelog: ChangelogMode, stream: ResultStream, job: JobHandle) -> Self {
        RowStream { schema, changelog, source: RowSource::Job { stream, job, finished: false } }
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
            RowSource::Job { job, .. } => Some(job),
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
            RowSource::Job { stream, finished, .. } => {
                let next = futures::ready!(stream.poll_next_unpin(context));
                *finished |= !matches!(next, Some(Ok(_)));
                Poll::Ready(next)
            }
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
}

impl Stream for RowStream {
    type Item = Result<ChangeBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = futures::ready!(self.poll_batch(context));
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
        if let RowSource::Job { job, finished: false, .. } = &self.source {
            job.cancel_in_background();
        }
    }
}

impl From<Outcome> for StatementResult {
    fn from(outcome: Outcome) -> Self {
        StatementResult { outcome, notices: Vec::new() }
    }
}
