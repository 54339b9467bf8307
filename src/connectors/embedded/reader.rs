//! Reads a table of the program: its one split, batch by batch.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::StreamExt;

use super::EmbeddedTables;
use super::store::Opened;
use crate::catalog::ObjectPath;
use crate::error::{Error, Result};
use crate::runtime::{SourceEvent, SourceReader, Split};
use crate::types::{Batch, SplitId};

/// The reader.
pub struct EmbeddedReader {
    tables: Arc<EmbeddedTables>,
    table: ObjectPath,
    projection: Vec<usize>,
    batch_rows: usize,
    open: Option<Open>,
    no_more_splits: bool,
    asked: bool,
}

/// The split that is being read.
struct Open {
    id: SplitId,
    source: Opened,
    /// Rows that were given on: where to begin again with a table of batches.
    read: usize,
    /// Rows that are there, at most one batch of the program.
    pending: VecDeque<Batch>,
}

impl EmbeddedReader {
    /// Of a table; with these columns, and so many rows a batch at most.
    pub fn new(tables: Arc<EmbeddedTables>, table: ObjectPath, projection: Vec<usize>, batch_rows: usize) -> Self {
        EmbeddedReader { tables, table, projection, batch_rows, open: None, no_more_splits: false, asked: false }
    }

    fn open(&self, split: &Split) -> Result<Open> {
        let mut skip: usize =
            split.state.parse().map_err(|_| Error::internal("the state of a split of the program is not readable"))?;
        let read = skip;
        let source = self.tables.open(&self.table)?;
        let mut pending = VecDeque::new();
        if let Opened::Batches(batches) = &source {
            for batch in batches.iter() {
                let skipped = skip.min(batch.num_rows());
                skip -= skipped;
                pending.push_back(batch.slice(skipped, batch.num_rows() - skipped));
            }
        }
        Ok(Open { id: split.id, source, read, pending })
    }
}

impl Open {
    /// The next rows, at most `batch_rows`; none at the end.
    fn poll_rows(&mut self, batch_rows: usize, context: &mut Context<'_>) -> Poll<Result<Option<Batch>>> {
        loop {
            if let Some(batch) = self.pending.pop_front() {
                let count = batch.num_rows().min(batch_rows);
                if count < batch.num_rows() {
                    self.pending.push_front(batch.slice(count, batch.num_rows() - count));
                }
                self.read += count;
                return Poll::Ready(Ok(Some(batch.slice(0, count))));
            }
            let Opened::Stream { rows, import, runtime } = &mut self.source else { return Poll::Ready(Ok(None)) };
            let entered = runtime.as_ref().map(|runtime| runtime.enter());
            let next = ready!(rows.poll_next_unpin(context));
            drop(entered);
            match next {
                Some(rows) => self.pending.push_back(import.batch(&rows?)?),
                None => return Poll::Ready(Ok(None)),
            }
        }
    }
}

fn no_rewind(table: &ObjectPath) -> Error {
    Error::unsupported(format!("a checkpoint of a job that reads the stream of table {table}"))
        .with_detail("the rows of a stream of the program cannot be read again")
        .with_hint("register record batches, read a table of files, or run the job without checkpoints")
}

impl SourceReader for EmbeddedReader {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        for split in splits {
            self.open = Some(self.open(&split)?);
        }
        self.asked = false;
        Ok(())
    }

    fn no_more_splits(&mut self) {
        self.no_more_splits = true;
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<SourceEvent>> {
        let Some(open) = &mut self.open else {
            if self.no_more_splits {
                return Poll::Ready(Ok(SourceEvent::End));
            }
            return match std::mem::replace(&mut self.asked, true) {
                true => Poll::Pending,
                false => Poll::Ready(Ok(SourceEvent::NeedSplit)),
            };
        };
        let id = open.id;
        Poll::Ready(Ok(match ready!(open.poll_rows(self.batch_rows, context))? {
            Some(batch) => SourceEvent::Batch(id, batch.project(&self.projection)),
            None => {
                self.open = None;
                SourceEvent::SplitFinished(id)
            }
        }))
    }

    /// Of a stream nothing can be read again; one that was read to its end need not be.
    fn snapshot(&self) -> Result<Vec<Split>> {
        let split = |open: &Open| match open.source {
            Opened::Batches(_) => Ok(Split { id: open.id, state: open.read.to_string() }),
            Opened::Stream { .. } => Err(no_rewind(&self.table)),
        };
        self.open.iter().map(split).collect()
    }
}
