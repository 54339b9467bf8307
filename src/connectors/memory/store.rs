//! The tables themselves: for each a log of changes, watermarks and flushes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard};
use std::task::{Poll, Waker};

use arrow::array::{Array, BooleanArray};

use super::sink::Staging;
use crate::catalog::ObjectPath;
use crate::connectors::formats::text::write_java;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::FlushId;
use crate::types::{Batch, SchemaRef, Watermark};

/// An entry of a table's log.
#[derive(Debug, Clone)]
pub enum LogEntry {
    /// Changes.
    Rows(Batch),
    /// Event time has advanced.
    Watermark(Watermark),
    /// What came before becomes visible in the sinks.
    Flush(FlushId),
}

/// The memory tables of a process, by name.
#[derive(Debug, Default)]
pub struct MemoryTables {
    tables: Mutex<BTreeMap<ObjectPath, Table>>,
    staging: Staging,
}

#[derive(Debug)]
struct Table {
    schema: SchemaRef,
    primary_key: Vec<usize>,
    log: Vec<LogEntry>,
    finished: bool,
    /// Readers that have read all there is.
    waiting: Vec<Waker>,
}

impl Table {
    fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

impl MemoryTables {
    /// What writers have put aside until their checkpoint is complete.
    pub(in crate::connectors) fn staging(&self) -> &Staging {
        &self.staging
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectPath, Table>> {
        self.tables.lock().expect("no holder of this lock panics")
    }

    fn with<T>(&self, table: &ObjectPath, f: impl FnOnce(&mut Table) -> Result<T>) -> Result<T> {
        match self.lock().get_mut(table) {
            Some(table) => f(table),
            None => Err(Error::new(ErrorKind::UndefinedTable, format!("memory table {table} not found"))
                .with_hint("create it before rows are appended, and do not drop it while it is read")),
        }
    }

    /// Makes an empty table; nothing happens if it is there with the same columns.
    pub fn create(&self, table: &ObjectPath, schema: &SchemaRef, primary_key: &[usize]) -> Result<()> {
        let mut tables = self.lock();
        if let Some(existing) = tables.get(table) {
            if existing.schema == *schema {
                return Ok(());
            }
            if !existing.log.is_empty() {
                return Err(Error::new(ErrorKind::DuplicateObject, format!("memory table {table} exists with other columns"))
                    .with_detail(format!("it has {}", existing.schema)));
            }
        }
        let (schema, primary_key) = (SchemaRef::clone(schema), primary_key.to_vec());
        tables.insert(table.clone(), Table { schema, primary_key, log: Vec::new(), finished: false, waiting: Vec::new() });
        Ok(())
    }

    /// Appends changes.
    pub fn append(&self, table: &ObjectPath, batch: Batch) -> Result<()> {
        self.with(table, |table| {
            let (given, expected) = (batch.columns().len(), table.schema.len());
            if given != expected {
                return Err(Error::internal(format!("{given} columns are appended to a memory table of {expected}")));
            }
            if table.finished {
                return Err(Error::new(ErrorKind::InvalidArgument, "rows are appended to a memory table that was finished"));
            }
            if batch.num_rows() > 0 {
                table.log.push(LogEntry::Rows(batch));
                table.wake();
            }
            Ok(())
        })
    }

    fn push(&self, table: &ObjectPath, entry: LogEntry) -> Result<()> {
        self.with(table, |table| {
            table.log.push(entry);
            table.wake();
            Ok(())
        })
    }

    /// Event time has advanced, for those who read the changes.
    pub fn advance_watermark(&self, table: &ObjectPath, watermark: Watermark) -> Result<()> {
        self.push(table, LogEntry::Watermark(watermark))
    }

    /// What was appended before becomes visible behind those who read the changes. A finished table takes no flush: false.
    pub fn flush(&self, table: &ObjectPath, flush: FlushId) -> Result<bool> {
        if self.with(table, |table| Ok(table.finished))? {
            return Ok(false);
        }
        self.push(table, LogEntry::Flush(flush)).map(|()| true)
    }

    /// No more changes come: those who read them come to their end.
    pub fn finish(&self, table: &ObjectPath) -> Result<()> {
        self.with(table, |table| {
            table.finished = true;
            table.wake();
            Ok(())
        })
    }

    /// Drops a table, if it is there. Its readers fail.
    pub fn drop_table(&self, table: &ObjectPath) {
        if let Some(mut table) = self.lock().remove(table) {
            table.wake();
        }
    }

    /// Gives a table another name, if it is there. Its readers fail: they follow the name.
    pub fn rename_table(&self, table: &ObjectPath, new_name: &ObjectPath) {
        let mut tables = self.lock();
        if let Some(mut renamed) = tables.remove(table) {
            renamed.wake();
            tables.insert(new_name.clone(), renamed);
        }
    }

    /// The rows that the changes so far stand for, in the order in which they came.
    pub fn snapshot(&self, table: &ObjectPath) -> Result<Vec<Batch>> {
        self.snapshot_of(table, None).map(|(_, batches)| batches)
    }

    /// The rows that the first `entries` of the log stand for (none = all), and how many entries those are.
    pub(super) fn snapshot_of(&self, table: &ObjectPath, entries: Option<usize>) -> Result<(usize, Vec<Batch>)> {
        let (schema, primary_key, log) = self.with(table, |table| {
            let entries = entries.unwrap_or(table.log.len()).min(table.log.len());
            Ok((SchemaRef::clone(&table.schema), table.primary_key.clone(), table.log[..entries].to_vec()))
        })?;
        let batches: Vec<&Batch> =
            log.iter().filter_map(|entry| if let LogEntry::Rows(batch) = entry { Some(batch) } else { None }).collect();
        Ok((log.len(), fold(&batches, &schema, &primary_key)?))
    }

    /// An entry of the log; none at its end; pending (and the waker is woken) while there is no such entry yet.
    pub(super) fn poll_entry(&self, table: &ObjectPath, index: usize, waker: &Waker) -> Poll<Result<Option<LogEntry>>> {
        let found = self.with(table, |table| match table.log.get(index) {
            Some(entry) => Ok(Poll::Ready(Some(entry.clone()))),
            None if table.finished => Ok(Poll::Ready(None)),
            None => {
                table.waiting.push(waker.clone());
                Ok(Poll::Pending)
            }
        });
        match found {
            Ok(Poll::Ready(entry)) => Poll::Ready(Ok(entry)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

/// The rows that changes stand for: by key the last one; without key each retraction takes away an equal row.
fn fold(batches: &[&Batch], schema: &SchemaRef, primary_key: &[usize]) -> Result<Vec<Batch>> {
    let all: Vec<usize> = (0..schema.len()).collect();
    let identity = if primary_key.is_empty() { &all } else { primary_key };
    let mut alive: Vec<Vec<bool>> = batches.iter().map(|batch| vec![false; batch.num_rows()]).collect();
    let mut places: HashMap<Vec<u8>, Vec<(usize, usize)>> = HashMap::new();
    for (at, batch) in batches.iter().enumerate() {
        for row in 0..batch.num_rows() {
            let places = places.entry(identity_of(batch, row, identity, schema)).or_default();
            let kind = batch.kind(row);
            if (kind.is_retraction() || !primary_key.is_empty())
                && let Some((batch, row)) = places.pop()
            {
                alive[batch][row] = false;
            }
            if !kind.is_retraction() {
                places.push((at, row));
                alive[at][row] = true;
            }
        }
    }
    let rows = batches.iter().zip(alive).map(|(batch, alive)| Ok(batch.filter(&BooleanArray::from(alive))?.with_kinds(None)));
    rows.filter(|batch| batch.as_ref().map_or(true, |batch| batch.num_rows() > 0)).collect()
}

/// The values of a row at these columns, as bytes that differ when the values do.
fn identity_of(batch: &Batch, row: usize, columns: &[usize], schema: &SchemaRef) -> Vec<u8> {
    let mut identity = Vec::new();
    for index in columns {
        let column = batch.column(*index);
        let start = identity.len();
        identity.extend_from_slice(&[0; 9]);
        write_java(column, row, &schema.field(*index).data_type, &mut identity);
        let length = (identity.len() - start - 9) as u64;
        identity[start] = u8::from(column.is_null(row));
        identity[start + 1..start + 9].copy_from_slice(&length.to_le_bytes());
    }
    identity
}
