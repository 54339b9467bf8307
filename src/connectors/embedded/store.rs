//! What a program has given to its session to be read: record batches and streams, by the name of their table.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use arrow::array::RecordBatch;
use futures::stream::BoxStream;
use tokio::runtime::Handle;

use super::Import;
use crate::catalog::ObjectPath;
use crate::error::{Error, ErrorKind, Result};
use crate::types::Batch;

/// Rows of a program, as they come.
pub type RowsStream = BoxStream<'static, Result<RecordBatch>>;

/// Rows of a program.
pub enum EmbeddedRows {
    /// All there already. Can be read any number of times.
    Batches(Arc<[Batch]>),
    /// A stream, which one query can read.
    Stream(Option<RowsStream>),
    /// A new stream for each query.
    Streams(Box<dyn Fn() -> RowsStream + Send + Sync>),
}

impl fmt::Debug for EmbeddedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EmbeddedRows::Batches(_) => "Batches",
            EmbeddedRows::Stream(_) => "Stream",
            EmbeddedRows::Streams(_) => "Streams",
        })
    }
}

/// A table of the program.
#[derive(Debug)]
struct Entry {
    rows: EmbeddedRows,
    import: Import,
    /// The runtime that the program registered the table in: its streams are polled within it, so that timers, sockets and spawned
    /// tasks of theirs find it.
    runtime: Option<Handle>,
}

/// What a reader reads.
pub(super) enum Opened {
    Batches(Arc<[Batch]>),
    Stream { rows: RowsStream, import: Import, runtime: Option<Handle> },
}

/// The tables that a program has given to its session.
#[derive(Debug, Default)]
pub struct EmbeddedTables {
    tables: Mutex<BTreeMap<ObjectPath, Entry>>,
}

impl EmbeddedTables {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectPath, Entry>> {
        self.tables.lock().expect("no holder of this lock panics")
    }

    /// Adds a table, or gives one new rows. Called in the program's runtime, if it has one.
    pub fn insert(&self, table: &ObjectPath, rows: EmbeddedRows, import: Import) {
        let replaced = self.lock().insert(table.clone(), Entry { rows, import, runtime: Handle::try_current().ok() });
        drop(replaced); // a stream of the program may do anything when it is dropped: not under the lock
    }

    /// Drops a table, if it is there. Who reads it already, reads on.
    pub fn drop_table(&self, table: &ObjectPath) {
        let dropped = self.lock().remove(table);
        drop(dropped);
    }

    /// Gives a table another name, if it is there.
    pub fn rename_table(&self, table: &ObjectPath, new_name: &ObjectPath) {
        let mut tables = self.lock();
        if let Some(entry) = tables.remove(table) {
            tables.insert(new_name.clone(), entry);
        }
    }

    /// The rows of a table, to be read once.
    pub(super) fn open(&self, table: &ObjectPath) -> Result<Opened> {
        let mut tables = self.lock();
        let Some(Entry { rows, import, runtime }) = tables.get_mut(table) else {
            return Err(Error::new(ErrorKind::UndefinedTable, format!("table {table} of the program not found"))
                .with_hint("register it again: it was dropped in the meantime"));
        };
        let rows = match rows {
            EmbeddedRows::Batches(batches) => return Ok(Opened::Batches(Arc::clone(batches))),
            EmbeddedRows::Stream(stream) => stream.take().ok_or_else(|| {
                Error::new(ErrorKind::InvalidArgument, format!("the stream of table {table} was read already")).with_hint(
                    "one query can read a stream: register the table with a stream for each query, or drop and register it again",
                )
            })?,
            EmbeddedRows::Streams(make) => make(),
        };
        Ok(Opened::Stream { rows, import: import.clone(), runtime: runtime.clone() })
    }
}
