//! Rows of a table as stretches of a file: Arrow IPC streams, written as they lie in memory.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType as ArrowType, SchemaRef, UInt16Type};
use arrow::ipc::writer::StreamEncoder;

use super::StateSection;
use super::store::Upload;
use crate::error::{Error, Result};

/// A file in the making, and what it is called where sections name it.
pub(super) struct StateFile {
    upload: Upload,
    name: String,
}

impl StateFile {
    pub(super) fn new(upload: Upload, name: String) -> Self {
        StateFile { upload, name }
    }

    /// Bytes written so far.
    pub(super) fn written(&self) -> u64 {
        self.upload.written()
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The file is whole; one without rows is not made.
    pub(super) fn complete(self) -> Result<()> {
        if self.upload.written() > 0 { self.upload.complete() } else { Ok(()) }
    }

    /// Copies a section of another file, whose bytes these are.
    pub(super) fn copy(&mut self, section: &StateSection, bytes: &[u8]) -> Result<StateSection> {
        let copied = StateSection { file: self.name.clone(), offset: self.written(), ..section.clone() };
        self.upload.put(bytes)?;
        Ok(copied)
    }

    /// Writes one batch as a section of its own.
    pub(super) fn section(&mut self, rows: &RecordBatch) -> Result<StateSection> {
        let mut open = OpenSection::new(self, rows.schema())?;
        open.add(rows, self)?;
        open.close(self)
    }
}

/// Rows of one schema in the making.
pub(super) struct OpenSection {
    schema: SchemaRef,
    section: StateSection,
    encoder: StreamEncoder,
    checksum: crc32fast::Hasher,
}

impl OpenSection {
    /// A section that begins at the end of a file.
    pub(super) fn new(file: &StateFile, schema: SchemaRef) -> Result<Self> {
        let section =
            StateSection { file: file.name.clone(), offset: file.written(), first_group: u16::MAX, ..StateSection::default() };
        let encoder = StreamEncoder::try_new(&schema)?;
        Ok(OpenSection { schema, section, encoder, checksum: crc32fast::Hasher::new() })
    }

    /// Whether it has rows with these columns.
    pub(super) fn has(&self, schema: &SchemaRef) -> bool {
        self.schema == *schema
    }

    /// Adds rows. Where the first column is one of key groups, they are noted.
    pub(super) fn add(&mut self, batch: &RecordBatch, file: &mut StateFile) -> Result<()> {
        if let Some(groups) = batch.column(0).as_primitive_opt::<UInt16Type>() {
            let (first, last) =
                groups.values().iter().fold((u16::MAX, 0), |(first, last), group| (first.min(*group), last.max(*group)));
            self.section.first_group = self.section.first_group.min(first);
            self.section.last_group = self.section.last_group.max(last);
        } else if !matches!(batch.column(0).data_type(), ArrowType::Boolean) {
            return Err(Error::internal("state without key groups"));
        }
        self.section.rows += batch.num_rows() as u64;
        let columns: Vec<ArrayRef> = batch.columns().iter().map(compact).collect();
        let encoded = self.encoder.encode(&RecordBatch::try_new(batch.schema(), columns)?)?;
        self.put(encoded, file)
    }

    /// It has all its rows.
    pub(super) fn close(mut self, file: &mut StateFile) -> Result<StateSection> {
        let encoder = std::mem::replace(&mut self.encoder, StreamEncoder::try_new(&self.schema)?);
        self.put(encoder.finish()?, file)?;
        self.section.bytes = file.written() - self.section.offset;
        self.section.checksum = self.checksum.finalize();
        Ok(self.section)
    }

    fn put(&mut self, encoded: Vec<Buffer>, file: &mut StateFile) -> Result<()> {
        for buffer in encoded {
            self.checksum.update(&buffer);
            file.upload.put(&buffer)?;
        }
        Ok(())
    }
}

/// The column without the bytes of strings that other rows use: views would drag along the whole blocks that they look into.
fn compact(column: &ArrayRef) -> ArrayRef {
    let is_sparse = |held: usize, used: usize| held > 2 * used + 4096;
    match column.data_type() {
        ArrowType::Utf8View => {
            let views = column.as_string_view();
            let held: usize = views.data_buffers().iter().map(Buffer::len).sum();
            if is_sparse(held, views.total_buffer_bytes_used()) { std::sync::Arc::new(views.gc()) } else { column.clone() }
        }
        ArrowType::BinaryView => {
            let views = column.as_binary_view();
            let held: usize = views.data_buffers().iter().map(Buffer::len).sum();
            if is_sparse(held, views.total_buffer_bytes_used()) { std::sync::Arc::new(views.gc()) } else { column.clone() }
        }
        _ => column.clone(),
    }
}
