//! What the reading thread does for one batch: block, decode, check, metadata.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use arrow::array::{Array, ArrayRef, Int64Array, StringViewArray, TimestampMillisecondArray};

use super::blocks::{BlockReader, SpareBuffers, block_bytes, line_number};
use super::path::io_error;
use super::split::FileSplit;
use crate::connectors::formats::{BadRecord, Block, Decoded, RecordDecoder};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::OperatorMetrics;
use crate::types::{Batch, Field, SplitId};

/// Files that are kept open, each with a block in memory; the one not used for longest is closed, and opened again where it was.
const OPEN_FILES_MAX: usize = 128;

/// What some programs put before UTF-8 text: no part of the first record.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads and decodes files.
pub struct FileWorker {
    /// Turns blocks into columns.
    pub decoder: Box<dyn RecordDecoder>,
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
                match block.map_err(|error| io_error("read", &split.path, error))? {
                    None => return Ok(Produced::End),
                    Some(raw) => {
                        let marked = raw.offset == 0 && raw.bytes.starts_with(BYTE_ORDER_MARK);
                        file.from = if marked { BYTE_ORDER_MARK.len() } else { 0 };
                        file.block = Some((Block::new(raw.bytes), raw.offset));
                    }
                }
                continue;
            };
            let decoded = self
                .decoder
                .decode(block, file.from, self.batch_rows)
                .map_err(|bad| bad_record(&split.path, *offset, &bad, &self.skip_option))?;
            file.from = decoded.next;
            file.next = offset + decoded.next as u64;
            if decoded.next >= block.bytes.len()
                && let Some((block, _)) = file.block.take()
            {
                self.spare.keep(block.bytes);
            }
            self.metrics.skipped_records.fetch_add(decoded.skipped, Ordering::Relaxed);
            if decoded.num_rows > 0 {
                self.check_not_null(&decoded, &split.path)?;
                let batch = self.with_metadata(decoded, file, &split.path);
                return Ok(Produced::Batch { batch, next: file.next });
            }
        }
    }

    fn open(&self, split: &FileSplit, position: Option<u64>) -> Result<OpenFile> {
        let reader = match position {
            Some(position) => BlockReader::open(&split.path, position, split.end),
            None => BlockReader::open_range(&split.path, split.start, split.end),
        };
        let reader = reader.map_err(|error| io_error("open", &split.path, error))?;
        let metadata = if self.metadata.is_empty() { None } else { Some(file_metadata(&split.path)?) };
        Ok(OpenFile { reader, block: None, from: 0, next: 0, used: 0, metadata })
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

    fn check_not_null(&self, decoded: &Decoded, path: &Path) -> Result<()> {
        for (column, name) in &self.not_null {
            if decoded.columns[*column].null_count() > 0 {
                let message = format!("column \"{name}\" is NOT NULL, but a record has no value");
                return Err(Error::new(ErrorKind::DataFormat, message)
                    .with_detail(path.display().to_string())
                    .with_hint("declare the column without NOT NULL, or correct the data"));
            }
        }
        Ok(())
    }

    fn with_metadata(&self, decoded: Decoded, file: &OpenFile, path: &Path) -> Batch {
        let rows = decoded.num_rows;
        let mut columns = decoded.columns;
        if let Some(metadata) = &file.metadata {
            columns.extend(self.metadata.iter().map(|field| metadata_column(&field.name, path, metadata, rows)));
        }
        Batch::new(columns, rows)
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
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(FileMetadata { size: metadata.len() as i64, modified_ms: modified.map_or(0, |since| since.as_millis() as i64) })
}

fn bad_record(path: &Path, block_offset: u64, bad: &BadRecord, skip_option: &str) -> Error {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let place = match line_number(path, block_offset + bad.at as u64) {
        Ok(line) => format!("{name} line {line}"),
        Err(_) => name.to_string(),
    };
    Error::new(ErrorKind::DataFormat, format!("cannot read a record of '{}'", path.display()))
        .with_detail(format!("{place}: {}", bad.reason))
        .with_hint(format!("correct the data, or set '{skip_option}' = 'true' to let bad records pass"))
}
