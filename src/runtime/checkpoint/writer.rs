//! From the frozen state of a task to a file: every table as Arrow IPC streams, one after another.

use std::io::Write;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType as ArrowType, SchemaRef, UInt16Type};
use arrow::ipc::writer::StreamWriter;

use super::location::file_of;
use super::store::{CheckpointStore, Stores, Upload};
use super::{OperatorState, StateLocation, StateSection, TableState, TaskSnapshot, TaskState, resolve};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::StateTableSnapshot;
use crate::runtime::task::ExecutionAttemptId;

/// Writes the frozen state of a task where the checkpoints of its job lie, and says where. Blocks.
pub fn write_task(
    stores: &dyn Stores,
    location: &StateLocation,
    attempt: ExecutionAttemptId,
    snapshot: TaskSnapshot,
) -> Result<TaskState> {
    let (parent, name) = match snapshot.barrier {
        Some(barrier) => (location.parent(barrier)?, location.name(barrier)),
        None => (location.job_directory(), String::new()),
    };
    let store = CheckpointStore::create(stores, &parent)?;
    let file = file_of(attempt, snapshot.barrier);
    let mut writer = TaskWriter { upload: store.upload(&resolve(&name, &file)), file };
    let mut operators = Vec::with_capacity(snapshot.operators.len());
    for operator in snapshot.operators {
        let table = |(name, rows): (&'static str, StateTableSnapshot)| {
            Ok(TableState { name: name.to_string(), sections: writer.table(&rows)? })
        };
        operators.push(OperatorState {
            operator: operator.operator,
            output_watermark: operator.output_watermark.0,
            tables: operator.tables.into_iter().map(table).collect::<Result<_>>()?,
            committables: operator.committables,
        });
    }
    if writer.upload.written() > 0 {
        writer.upload.complete()?;
    }
    let TaskSnapshot { input_watermark, splits_received, .. } = snapshot;
    Ok(TaskState { input_watermark: input_watermark.0, splits_received, operators })
}

/// The file of a task in the making.
struct TaskWriter {
    upload: Upload,
    file: String,
}

/// Rows of one schema in the making.
struct OpenSection {
    schema: SchemaRef,
    section: StateSection,
    writer: StreamWriter<Vec<u8>>,
    checksum: crc32fast::Hasher,
}

impl TaskWriter {
    /// Writes a table: a section for each stretch of batches with the same columns.
    fn table(&mut self, rows: &StateTableSnapshot) -> Result<Vec<StateSection>> {
        let mut sections = Vec::new();
        let mut open: Option<OpenSection> = None;
        rows.for_each_batch(|batch| {
            if batch.num_rows() == 0 {
                return Ok(());
            }
            if let Some(other) = open.take_if(|open| open.schema != batch.schema()) {
                sections.push(self.close(other)?);
            }
            let section = match &mut open {
                Some(section) => section,
                none => none.insert(self.open(batch.schema())?),
            };
            section.add(&batch)?;
            section.hand_over(&mut self.upload)
        })?;
        if let Some(last) = open {
            sections.push(self.close(last)?);
        }
        Ok(sections)
    }

    fn open(&self, schema: SchemaRef) -> Result<OpenSection> {
        let section = StateSection {
            file: self.file.clone(),
            offset: self.upload.written(),
            bytes: 0,
            checksum: 0,
            rows: 0,
            first_group: u16::MAX,
            last_group: 0,
        };
        let writer = StreamWriter::try_new(Vec::new(), &schema)?;
        Ok(OpenSection { schema, section, writer, checksum: crc32fast::Hasher::new() })
    }

    fn close(&mut self, mut open: OpenSection) -> Result<StateSection> {
        open.writer.finish()?;
        open.hand_over(&mut self.upload)?;
        open.section.bytes = self.upload.written() - open.section.offset;
        open.section.checksum = open.checksum.finalize();
        Ok(open.section)
    }
}

impl OpenSection {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let groups =
            batch.column(0).as_primitive_opt::<UInt16Type>().ok_or_else(|| Error::internal("state without key groups"))?;
        let (first, last) =
            groups.values().iter().fold((u16::MAX, 0), |(first, last), group| (first.min(*group), last.max(*group)));
        self.section.first_group = self.section.first_group.min(first);
        self.section.last_group = self.section.last_group.max(last);
        self.section.rows += batch.num_rows() as u64;
        let columns: Vec<ArrayRef> = batch.columns().iter().map(compact).collect();
        let batch = RecordBatch::try_new(batch.schema(), columns)?;
        Ok(self.writer.write(&batch)?)
    }

    /// Moves what was encoded so far into the file.
    fn hand_over(&mut self, upload: &mut Upload) -> Result<()> {
        let encoded = self.writer.get_mut();
        self.checksum.update(encoded);
        upload.write_all(encoded).map_err(|cause| match cause.downcast::<object_store::Error>() {
            Ok(cause) => Error::new(ErrorKind::Io, cause.to_string()),
            Err(cause) => Error::from(cause),
        })?;
        encoded.clear();
        Ok(())
    }
}

/// The column without the bytes of strings that other rows use: views would drag along the whole blocks that they look into.
fn compact(column: &ArrayRef) -> ArrayRef {
    let is_sparse = |held: usize, used: usize| held > 2 * used + 4096;
    match column.data_type() {
        ArrowType::Utf8View => {
            let views = column.as_string_view();
            let held: usize = views.data_buffers().iter().map(arrow::buffer::Buffer::len).sum();
            if is_sparse(held, views.total_buffer_bytes_used()) { std::sync::Arc::new(views.gc()) } else { column.clone() }
        }
        ArrowType::BinaryView => {
            let views = column.as_binary_view();
            let held: usize = views.data_buffers().iter().map(arrow::buffer::Buffer::len).sum();
            if is_sparse(held, views.total_buffer_bytes_used()) { std::sync::Arc::new(views.gc()) } else { column.clone() }
        }
        _ => column.clone(),
    }
}
