//! `memory`: tables in this process, as a changelog that can be read again from its start or folded to what it stands for.
//!
//! Rows that are written stand in the table at once; with checkpoints, once the checkpoint is complete that covers them ([`sink`]).

mod sink;
mod store;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use serde::{Deserialize, Serialize};

pub use sink::{MemoryCommitter, MemoryWriter};
pub use store::{LogEntry, MemoryTables};

use super::known_splits::KnownSplits;
use super::options::{OptionReader, optional, without_default};
use crate::catalog::{CatalogTable, ConnectorDescriptor, ObjectPath, OptionDescriptor, Options, SinkAbilities, SourceAbilities};
use crate::config::SettingType;
use crate::error::{Error, Result};
use crate::runtime::{ReaderContext, Source, SourceEvent, SourceReader, Split, SplitEnumerator};
use crate::stream_graph::SourceSpec;
use crate::types::{Batch, ChangelogMode, SplitId};

/// The connector's name.
pub const NAME: &str = "memory";

const MODES: [&str; 2] = ["snapshot", "changelog"];
const CHANGES: [&str; 3] = ["insert-only", "upsert", "retract"];

const OPTIONS: &[OptionDescriptor] = &[
    optional(
        "memory.mode",
        SettingType::OneOf(&MODES),
        "snapshot",
        "How the table is read: the rows that it has now, then the end; or all its changes from the first one on, without end.",
    ),
    without_default(
        "memory.changes",
        SettingType::OneOf(&CHANGES),
        "Which changes the table takes and gives in mode 'changelog'; 'retract' with a PRIMARY KEY, else 'insert-only'.",
    ),
    without_default("scan.parallelism", SettingType::Integer, "Accepted, no effect: one subtask reads the table."),
    without_default("sink.parallelism", SettingType::Integer, "Subtasks of the sink."),
];

/// The descriptor.
#[derive(Debug)]
pub struct MemoryDescriptor;

/// Whether the table is read as its rows rather than as its changes.
fn is_snapshot(options: &Options) -> Result<bool> {
    Ok(OptionReader::new(options).word("memory.mode", &MODES, "snapshot")? == "snapshot")
}

fn changes(table: &CatalogTable) -> Result<ChangelogMode> {
    let default = if table.primary_key.is_empty() { "insert-only" } else { "retract" };
    Ok(match OptionReader::new(&table.options).word("memory.changes", &CHANGES, default)? {
        "insert-only" => ChangelogMode::InsertOnly,
        "upsert" => ChangelogMode::Upsert,
        _ => ChangelogMode::Retract,
    })
}

impl ConnectorDescriptor for MemoryDescriptor {
    fn name(&self) -> &'static str {
        NAME
    }

    fn options(&self, _table: &CatalogTable) -> Result<Vec<OptionDescriptor>> {
        Ok(OPTIONS.to_vec())
    }

    fn validate(&self, table: &CatalogTable) -> Result<()> {
        is_snapshot(&table.options)?;
        changes(table).map(drop)
    }

    fn source(&self, table: &CatalogTable) -> Result<SourceAbilities> {
        let bounded = is_snapshot(&table.options)?;
        let changelog = if bounded { ChangelogMode::InsertOnly } else { changes(table)? };
        Ok(SourceAbilities { bounded, changelog, metadata: Vec::new(), parallelism: Some(1), watermarks: !bounded })
    }

    fn sink(&self, table: &CatalogTable) -> Result<SinkAbilities> {
        let accepts = match is_snapshot(&table.options)? {
            true if table.primary_key.is_empty() => ChangelogMode::Retract,
            true => ChangelogMode::Upsert,
            false => changes(table)?,
        };
        let by_key = accepts == ChangelogMode::Upsert;
        let parallelism = OptionReader::new(&table.options).parallelism("sink.parallelism")?;
        Ok(SinkAbilities { accepts, by_key, metadata: Vec::new(), parallelism })
    }
}

/// A table of this process to read.
#[derive(Debug)]
pub struct MemorySource {
    tables: Arc<MemoryTables>,
    table: ObjectPath,
    projection: Vec<usize>,
    snapshot: bool,
}

impl MemorySource {
    /// The source of a spec.
    pub fn new(spec: &SourceSpec, tables: &Arc<MemoryTables>) -> Result<Self> {
        tables.create(&spec.table, &spec.physical, &spec.primary_key)?;
        Ok(MemorySource {
            tables: Arc::clone(tables),
            table: spec.table.clone(),
            projection: spec.projection.clone(),
            snapshot: is_snapshot(&spec.options)?,
        })
    }
}

impl Source for MemorySource {
    fn enumerator(&self, _parallelism: u32) -> Result<Box<dyn SplitEnumerator>> {
        Ok(Box::new(KnownSplits::one(Position::default().to_split(SplitId(0)))))
    }

    fn reader(&self, context: ReaderContext) -> Result<Box<dyn SourceReader>> {
        Ok(Box::new(MemoryReader {
            tables: Arc::clone(&self.tables),
            table: self.table.clone(),
            projection: self.projection.clone(),
            snapshot: self.snapshot,
            batch_rows: context.batch_rows.max(1),
            split: None,
            pending: VecDeque::new(),
            no_more_splits: false,
            asked: false,
        }))
    }
}

/// How far a table was read.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Position {
    /// Of a snapshot: the entries of the log that it is made of.
    entries: Option<usize>,
    /// Of a snapshot: rows read. Of the log: entries read.
    read: usize,
    /// Of the log: rows read of the next entry.
    rows: usize,
}

impl Position {
    fn to_split(self, id: SplitId) -> Split {
        Split { id, state: serde_json::to_string(&self).expect("a position has only plain fields") }
    }
}

struct MemoryReader {
    tables: Arc<MemoryTables>,
    table: ObjectPath,
    projection: Vec<usize>,
    snapshot: bool,
    batch_rows: usize,
    split: Option<(SplitId, Position)>,
    /// The rest of a snapshot.
    pending: VecDeque<Batch>,
    no_more_splits: bool,
    asked: bool,
}

impl MemoryReader {
    /// The next rows of a snapshot; none at its end.
    fn next_of_snapshot(&mut self) -> Result<Option<Batch>> {
        let Some((_, position)) = &mut self.split else { return Ok(None) };
        if self.pending.is_empty() {
            let (entries, batches) = self.tables.snapshot_of(&self.table, position.entries)?;
            let mut skip = position.read;
            position.entries = Some(entries);
            for batch in batches {
                let skipped = skip.min(batch.num_rows());
                skip -= skipped;
                self.pending.push_back(batch.slice(skipped, batch.num_rows() - skipped));
            }
        }
        while let Some(batch) = self.pending.pop_front() {
            let count = batch.num_rows().min(self.batch_rows);
            if count < batch.num_rows() {
                self.pending.push_front(batch.slice(count, batch.num_rows() - count));
            }
            if count > 0 {
                position.read += count;
                return Ok(Some(batch.slice(0, count).project(&self.projection)));
            }
        }
        Ok(None)
    }

    /// The next entry of the log, large batches in pieces.
    fn poll_log(&mut self, context: &Context<'_>) -> Poll<Result<Option<SourceEvent>>> {
        let Some((id, position)) = &mut self.split else { return Poll::Ready(Ok(None)) };
        let entry = match self.tables.poll_entry(&self.table, position.read, context.waker()) {
            Poll::Ready(Ok(Some(entry))) => entry,
            Poll::Ready(Ok(None)) => return Poll::Ready(Ok(None)),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        };
        let event = match entry {
            LogEntry::Watermark(watermark) => SourceEvent::Watermark(*id, watermark),
            LogEntry::Flush(flush) => SourceEvent::Flush(flush),
            LogEntry::Rows(batch) => {
                let count = (batch.num_rows() - position.rows).min(self.batch_rows);
                let rows = batch.slice(position.rows, count).project(&self.projection);
                position.rows += count;
                if position.rows < batch.num_rows() {
                    return Poll::Ready(Ok(Some(SourceEvent::Batch(*id, rows))));
                }
                SourceEvent::Batch(*id, rows)
            }
        };
        position.read += 1;
        position.rows = 0;
        Poll::Ready(Ok(Some(event)))
    }
}

impl SourceReader for MemoryReader {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        for split in splits {
            let position = serde_json::from_str(&split.state)
                .map_err(|error| Error::internal(format!("the state of a memory split is not readable: {error}")))?;
            self.split = Some((split.id, position));
        }
        self.asked = false;
        Ok(())
    }

    fn no_more_splits(&mut self) {
        self.no_more_splits = true;
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<SourceEvent>> {
        let Some((id, _)) = self.split else {
            if self.no_more_splits {
                return Poll::Ready(Ok(SourceEvent::End));
            }
            return if std::mem::replace(&mut self.asked, true) {
                Poll::Pending
            } else {
                Poll::Ready(Ok(SourceEvent::NeedSplit))
            };
        };
        let event = if self.snapshot {
            self.next_of_snapshot().map(|batch| batch.map(|batch| SourceEvent::Batch(id, batch)))
        } else {
            match self.poll_log(context) {
                Poll::Ready(event) => event,
                Poll::Pending => return Poll::Pending,
            }
        };
        Poll::Ready(event.map(|event| {
            event.unwrap_or_else(|| {
                self.split = None;
                SourceEvent::SplitFinished(id)
            })
        }))
    }

    fn snapshot(&self) -> Result<Vec<Split>> {
        Ok(self.split.iter().map(|(id, position)| position.to_split(*id)).collect())
    }
}
