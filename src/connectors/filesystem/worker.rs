//! What the reading thread does for one batch: block, decode, check, metadata.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{Array, ArrayRef, Int64Array, StringViewArray, TimestampMillisecondArray};

use super::blocks::{BlockReader, Compression, RECORD_TOO_LONG, SpareBuffers, block_bytes, line_number};
use super::descriptor::METADATA_KEYS;
use super::partition_values::PartitionValues;
use super::path::io_error;
use super::split::{FileSplit, modified_ms};
use crate::connectors::formats::{BadRecord, Block, Decoded, RecordDecoder};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::OperatorMetrics;
use crate::types::{Batch, Field, RowKind, SplitId};

/// Files that are kept open, each with a block in memory; the one not used for longest is closed, and opened again where it was.
const OPEN_FILES_MAX: usize = 128;

/// What some programs put before UTF-8 text: no part of the first record.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads and decodes files.
pub struct FileWorker {
    /// Turns blocks into columns.
    pub decoder: Box<dyn RecordDecoder>,
    /// The columns that the folders of a file give.
    pub partition: PartitionValues,
    /// The columns that must have a value, with their names.
    pub not_null: Vec<(usize, String)>,
    /// The metadata columns; a name is the connector's key.
    pub metadata: Vec<Field>,
    /// Rows of a batch, at most.
    pub batch_rows: usize,
    /// The option that lets bad records pass.
    pub skip_option: String,
    /// Counts records that were skipped.
    pub metrics: Arc<OperatorMetrics>,
    /// Files that are open.
    pub files: HashMap<SplitId, OpenFile>,
    /// Files that were closed to save memory and handles: where the next record begins.
    pub closed: HashMap<SplitId, u64>,
    /// Calls so far.
    pub calls: u64,
    /// Buffers to be used again.
    pub spare: SpareBuffers,
}

/// A file that is being read.
pub struct OpenFile {
    reader: BlockReader,
    block: Option<(Block, u64)>,
    /// Where in the block the next record begins.
    from: usize,
    /// Where in the file that is.
    next: u64,
    used: u64,
    metadata: Option<FileMetadata>,
    partition: Vec<ArrayRef>,
}

#[derive(Debug, Clone)]
struct FileMetadata {
    size: i64,
    modified_ms: i64,
}

/// What came of a call.
pub enum Produced {
    /// Rows, and where the next unread record begins.
    Batch {
        /// The rows.
        batch: Batch,
        /// Offset in the file.
        next: u64,
    },
    /// The split is read to its end.
    End,
}

impl FileWorker {
    /// The next batch of a split.
    pub fn produce(&mut self, id: SplitId, split: &FileSplit, open_files: usize) -> Result<Produced> {
        self.calls += 1;
        let mut file = match self.files.remove(&id) {
            Some(file) => file,
            None => {
                let position = self.closed.remove(&id).or(split.position);
                self.open(split, position)?
            }
        };
        let produced = self.read(&mut file, split, open_files)?;
        if matches!(produced, Produced::Batch { .. }) {
            file.used = self.calls;
            self.files.insert(id, file);
            self.close_oldest();
        }
        Ok(produced)
    }

    fn read(&mut self, file: &mut OpenFile, split: &FileSplit, open_files: usize) -> Result<Produced> {
        loop {
            let Some((block, offset)) = &file.block else {
                let decoder = &self.decoder;
                let block = file.reader.next(block_bytes(open_files), self.spare.take(), |bytes| decoder.whole_records(bytes));
                match block.map_err(|error| unreadable(&split.path, error))? {
                    None => return Ok(Produced::End),
                    Some(raw) => {
                        let marked = raw.offset == 0 && raw.bytes.starts_with(BYTE_ORDER_MARK);
                        file.from = if marked { BYTE_ORDER_MARK.len() } else { 0 };
                        file.block = Some((Block::new(raw.bytes), raw.offset));
                    }
                }
                continue;
            };
            let mut decoded = self
                .decoder
                .decode(block, file.from, self.batch_rows)
                .map_err(|bad| bad_record(&split.path, *offset, &bad, &self.skip_option))?;
            self.partition.insert(&file.partition, decoded.num_rows, &mut decoded.columns);
            if let Some((column, row)) = self.missing_value(&decoded) {
                // Only now is it asked where the row begins: up to it the block is decoded again. The two rows of an update are one
                // record.
                let is_second = decoded.kinds.as_ref().is_some_and(|kinds| kinds.get(row) == RowKind::UpdateAfter);
                let row = row - usize::from(is_second);
                let before =
                    if row == 0 { Ok(file.from) } else { self.decoder.decode(block, file.from, row).map(|rows| rows.next) };
                let at = offset + before.unwrap_or(file.from) as u64;
                return Err(null_in_not_null(&split.path, at, &self.not_null[column].1));
            }
            file.from = decoded.next;
            file.next = offset + decoded.next as u64;
            if decoded.next >= block.bytes.len()
                && let Some((block, _)) = file.block.take()
            {
                self.spare.keep(block.bytes);
            }
            self.metrics.skipped_records.fetch_add(decoded.skipped, Ordering::Relaxed);
            if decoded.num_rows > 0 {
                let batch = self.with_metadata(decoded, file, &split.path);
                return Ok(Produced::Batch { batch, next: file.next });
            }
        }
    }

    fn open(&self, split: &FileSplit, position: Option<u64>) -> Result<OpenFile> {
        if position.is_some() || split.start > 0 {
            split.check_unchanged()?;
        }
        let reader = match position {
            Some(position) => BlockReader::open(&split.path, position, split.end),
            None => BlockReader::open_range(&split.path, split.start, split.end),
        };
        let reader = reader.map_err(|error| unreadable(&split.path, error))?;
        let metadata = if self.metadata.is_empty() { None } else { Some(file_metadata(&split.path)?) };
        let partition = self.partition.of_file(&split.path)?;
        Ok(OpenFile { reader, block: None, from: 0, next: 0, used: 0, metadata, partition })
    }

    /// Closes the file not used for longest; it is opened again when its next batch is due.
    fn close_oldest(&mut self) {
        if self.files.len() <= OPEN_FILES_MAX {
            return;
        }
        if let Some(oldest) = self.files.iter().min_by_key(|(_, file)| file.used).map(|(id, _)| *id)
            && let Some(file) = self.files.remove(&oldest)
        {
            self.closed.insert(oldest, file.next);
        }
    }

    /// The first NOT NULL column (as an index into `not_null`) without a value, with the row.
    fn missing_value(&self, decoded: &Decoded) -> Option<(usize, usize)> {
        self.not_null.iter().enumerate().find_map(|(at, (column, _))| {
            let nulls = decoded.columns[*column].logical_nulls().filter(|nulls| nulls.null_count() > 0)?;
            Some((at, (0..nulls.len()).find(|row| nulls.is_null(*row))?))
        })
    }

    fn with_metadata(&self, decoded: Decoded, file: &OpenFile, path: &Path) -> Batch {
        let rows = decoded.num_rows;
        let mut columns = decoded.columns;
        let mut of_records = decoded.metadata.into_iter();
        columns.extend(self.metadata.iter().map(|field| match &file.metadata {
            Some(metadata) if METADATA_KEYS.contains(&field.name.as_str()) => metadata_column(&field.name, path, metadata, rows),
            _ => of_records.next().expect("the decoder gives the metadata that it was asked for"),
        }));
        Batch::new(columns, rows).with_kinds(decoded.kinds)
    }
}

fn metadata_column(key: &str, path: &Path, metadata: &FileMetadata, rows: usize) -> ArrayRef {
    let text = |text: &str| Arc::new(StringViewArray::from_iter_values(std::iter::repeat_n(text, rows))) as ArrayRef;
    match key {
        "file.path" => text(&path.to_string_lossy()),
        "file.name" => text(&path.file_name().unwrap_or_default().to_string_lossy()),
        "file.size" => Arc::new(Int64Array::from_value(metadata.size, rows)),
        "file.modification-time" => {
            Arc::new(TimestampMillisecondArray::from_value(metadata.modified_ms, rows).with_timezone("UTC"))
        }
        other => unreachable!("metadata column {other} was checked when the source was made"),
    }
}

fn file_metadata(path: &Path) -> Result<FileMetadata> {
    let metadata = std::fs::metadata(path).map_err(|error| io_error("read", path, error))?;
    Ok(FileMetadata { size: metadata.len() as i64, modified_ms: modified_ms(&metadata) })
}

fn bad_record(path: &Path, block_offset: u64, bad: &BadRecord, skip_option: &str) -> Error {
    let error = Error::new(ErrorKind::DataFormat, format!("cannot read a record of '{}'", path.display())).with_detail(format!(
        "{}: {}",
        place(path, block_offset + bad.at as u64),
        bad.reason
    ));
    match Compression::by_content(path) {
        found if found == Compression::of(path) => {
            error.with_hint(format!("correct the data, or set '{skip_option}' = 'true' to let bad records pass"))
        }
        Compression::None => error,
        found => error.with_hint(format!("the file is compressed: its name must end in {}", found.ending())),
    }
}

fn null_in_not_null(path: &Path, offset: u64, column: &str) -> Error {
    Error::new(ErrorKind::DataFormat, format!("cannot read a record of '{}'", path.display()))
        .with_detail(format!("{}: column \"{column}\" is NOT NULL, but the record has no value for it", place(path, offset)))
        .with_hint("correct the data, or declare the column without NOT NULL")
}

/// `data.json line 7`.
fn place(path: &Path, offset: u64) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match line_number(path, offset) {
        Ok(line) => format!("{name} line {line}"),
        Err(_) => name.to_string(),
    }
}

/// The file cannot be read: the system refuses, or it is not compressed as its name says.
fn unreadable(path: &Path, error: std::io::Error) -> Error {
    if error.kind() == RECORD_TOO_LONG && error.raw_os_error().is_none() {
        return Error::new(ErrorKind::DataFormat, format!("cannot read a record of '{}'", path.display()))
            .with_detail(error.to_string())
            .with_hint("check option 'format', and that each record has its line end");
    }
    let compression = Compression::of(path);
    if compression == Compression::None || error.raw_os_error().is_some() {
        return io_error("read", path, error);
    }
    let damaged = Error::new(ErrorKind::DataFormat, format!("cannot decompress '{}'", path.display()));
    if Compression::by_content(path) == compression {
        return damaged.with_detail(format!("it is damaged or incomplete: {error}")).with_hint("copy or compress it anew");
    }
    damaged
        .with_detail("it is not compressed in the way that its name says")
        .with_hint(format!("name it without {}", compression.ending()))
}
