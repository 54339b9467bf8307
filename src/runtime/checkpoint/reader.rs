//! From files back to what a task starts from. The bytes are read and checked before the task starts; its tables decode them.

use std::collections::BTreeMap;
use std::io::Cursor;

use arrow::ipc::reader::StreamReader;
use bytes::Bytes;

use super::store::{CheckpointStore, Stores};
use super::{StateLocation, StateSection, TaskRestore, resolve};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::{FrozenState, StateTableSnapshot, TakeBatch, assemble};
use crate::types::{CheckpointId, OperatorId, Watermark};

/// What an operator starts from.
#[derive(Debug)]
pub struct RestoredOperator {
    /// The watermark that it had emitted.
    pub output_watermark: Watermark,
    /// Rows of its tables, by name; a name may come several times.
    pub tables: Vec<(String, StateTableSnapshot)>,
}

/// What a task starts from.
#[derive(Debug)]
pub struct RestoredTask {
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// Event time over its inputs.
    pub input_watermark: Watermark,
    /// Its operators.
    pub operators: BTreeMap<OperatorId, RestoredOperator>,
}

/// Reads what a task starts from. Blocks.
pub fn read_task(stores: &dyn Stores, restore: &TaskRestore) -> Result<RestoredTask> {
    let (parent, name) = restore.directory.rsplit_once('/').unwrap_or((".", &restore.directory));
    let mut sections = Sections { store: None, stores, parent, name };
    let mut operators = BTreeMap::new();
    for operator in &restore.operators {
        let mut tables = Vec::new();
        for table in &operator.tables {
            for section in &table.sections {
                let in_table = |error: Error| error.in_operator(table.name.clone());
                let rows = sections.read(section).map_err(in_table)?;
                let beside = section.beside.as_ref().map(|beside| sections.read(beside)).transpose().map_err(in_table)?;
                tables.push((table.name.clone(), StateTableSnapshot::frozen(EncodedRows { rows, beside })));
            }
        }
        let restored = RestoredOperator { output_watermark: Watermark(operator.output_watermark), tables };
        operators.insert(operator.operator, restored);
    }
    Ok(RestoredTask { checkpoint: restore.checkpoint, input_watermark: Watermark(restore.input_watermark), operators })
}

/// The bytes of a section that an earlier checkpoint of the same job wrote for others too. Blocks.
pub(super) fn read_shared(stores: &dyn Stores, location: &StateLocation, section: &StateSection) -> Result<Bytes> {
    let directory = location.job_directory();
    Sections { store: None, stores, parent: &directory, name: "" }.read(section)
}

struct Sections<'a> {
    /// Opened with the first section: a checkpoint without rows has no files.
    store: Option<CheckpointStore>,
    stores: &'a dyn Stores,
    parent: &'a str,
    name: &'a str,
}

impl Sections<'_> {
    fn read(&mut self, section: &StateSection) -> Result<Bytes> {
        let store = match &self.store {
            Some(store) => store,
            None => self.store.insert(CheckpointStore::open(self.stores, self.parent)?),
        };
        let file = resolve(self.name, &section.file);
        let bytes = match store.get_range(&file, section.offset, section.bytes) {
            Ok(bytes) if bytes.len() as u64 == section.bytes => bytes,
            Ok(_) => return Err(unreadable(store, &file, section, Error::internal("a part of a checkpoint file was not read"))),
            Err(cause) => return Err(unreadable(store, &file, section, cause)),
        };
        if crc32fast::hash(&bytes) != section.checksum {
            let message = format!("checkpoint file '{}/{file}' is corrupted", store.directory());
            let detail = format!("{} bytes from {} do not fit their checksum", section.bytes, section.offset);
            return Err(damaged(message).with_detail(detail));
        }
        Ok(bytes)
    }
}

/// A file that is too short or gone stays so; where the storage fails, it may work again.
fn unreadable(store: &CheckpointStore, file: &str, section: &StateSection, cause: Error) -> Error {
    let path = format!("{}/{file}", store.directory());
    match store.size(file) {
        Ok(Some(size)) if size < section.offset + section.bytes => damaged(format!("checkpoint file '{path}' is damaged"))
            .with_detail(format!("it ends after {size} bytes, and was longer")),
        Ok(None) => damaged(format!("checkpoint file '{path}' is gone")),
        _ => cause,
    }
}

fn damaged(message: String) -> Error {
    Error::new(ErrorKind::NotRestorable, message).with_hint("restore another checkpoint, or start the job anew")
}

/// Rows as they stand in files.
struct EncodedRows {
    rows: Bytes,
    /// What changed of them since they were written.
    beside: Option<Bytes>,
}

impl FrozenState for EncodedRows {
    fn for_each_batch(&self, take: &mut TakeBatch<'_>) -> Result<()> {
        let mut beside = self.beside.as_ref().map(|beside| StreamReader::try_new(Cursor::new(beside), None)).transpose()?;
        for rows in StreamReader::try_new(Cursor::new(&self.rows), None)? {
            let beside = beside.as_mut().and_then(Iterator::next).transpose()?;
            take(assemble(rows?, beside.as_ref())?)?;
        }
        Ok(())
    }
}
