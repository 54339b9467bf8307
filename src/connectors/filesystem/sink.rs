//! Writes a table as part files.
//!
//! A part is written under a hidden name and renamed when it is whole, so that a reader of the folder never sees half a record and a
//! job that fails leaves nothing behind. Parts are closed by size, by age, at a flush element and at the end.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::UInt32Array;

use super::commit::PartitionCommit;
use super::part::Part;
use super::partition::PartitionColumns;
use super::path::TablePath;
use crate::clock::{Clock, random_seed};
use crate::connectors::formats::{Format, RecordEncoder};
use crate::connectors::options::OptionReader;
use crate::error::Result;
use crate::runtime::{SinkContext, SinkWriter};
use crate::stream_graph::SinkSpec;
use crate::types::{Batch, Watermark};

/// Bytes that all open parts of a writer may hold in memory together.
const BUFFERS_BYTES: usize = 16 << 20;
/// A part's buffer is written out when it holds this much: the most and, with very many parts, the least.
const BUFFER_BYTES_MAX: usize = 1 << 20;
const BUFFER_BYTES_MIN: usize = 16 << 10;

/// Writes the rows of one subtask.
pub struct FileSink {
    folder: PathBuf,
    encoder: Box<dyn RecordEncoder>,
    /// The columns that are written: all but those of the partition.
    written: Vec<usize>,
    partition: PartitionColumns,
    /// Open parts by the folder of their partition.
    parts: HashMap<Vec<u8>, Part>,
    names: PartNames,
    rolling: Rolling,
    commit: Option<PartitionCommit>,
    clock: Arc<dyn Clock>,
    next_check_ms: i64,
}

/// Names of parts: `part-<uid>-<subtask>-<n>`.
struct PartNames {
    prefix: String,
    count: u64,
}

/// When a part is closed.
struct Rolling {
    file_bytes: u64,
    rollover_ms: i64,
    check_ms: i64,
}

impl FileSink {
    /// A writer of a spec.
    pub fn new(spec: &SinkSpec, context: &SinkContext) -> Result<Self> {
        let options = OptionReader::new(&spec.options);
        let written: Vec<usize> = (0..spec.schema.len()).filter(|index| !spec.partition_keys.contains(index)).collect();
        let columns = spec.partition_keys.iter().map(|index| (*index, spec.schema.field(*index).clone())).collect();
        let clock = Arc::clone(&context.operator.environment.clock);
        let rolling = Rolling::from_options(&options)?;
        let next_check_ms = clock.now_ms() + rolling.check_ms;
        Ok(FileSink {
            folder: TablePath::new(options.required("path")?, &spec.base_dir)?.resolved().to_path_buf(),
            encoder: Format::from_options(&spec.options)?.encoder(&spec.schema.project(&written))?,
            written,
            partition: PartitionColumns {
                columns,
                default_name: options.text("partition.default-name").unwrap_or("__DEFAULT_PARTITION__").to_string(),
            },
            parts: HashMap::new(),
            names: PartNames { prefix: format!("part-{}-{}", random_uid(), context.subtask), count: 0 },
            rolling,
            commit: PartitionCommit::from_options(&options)?,
            clock,
            next_check_ms,
        })
    }

    fn write_rows(&mut self, partition: &[u8], rows: &Batch) -> Result<()> {
        let buffer_bytes = (BUFFERS_BYTES / (self.parts.len() + 1)).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
        if !self.parts.contains_key(partition) {
            let folder = self.folder.join(String::from_utf8_lossy(partition).as_ref());
            let name = self.names.next();
            self.parts.insert(partition.to_vec(), Part::new(folder, &name, self.clock.now_ms()));
        }
        let part = self.parts.get_mut(partition).expect("it was put there");
        self.encoder.encode(&rows.project(&self.written), &mut part.buffer)?;
        if part.buffer.len() >= buffer_bytes {
            part.write_out()?;
        }
        if part.bytes() >= self.rolling.file_bytes {
            let part = self.parts.remove(partition).expect("it was there");
            part.publish()?;
        }
        Ok(())
    }

    fn write_partitioned(&mut self, batch: &Batch) -> Result<()> {
        let mut rows: HashMap<Vec<u8>, Vec<u32>> = HashMap::new();
        let mut order = Vec::new();
        let mut folder = Vec::new();
        for row in 0..batch.num_rows() {
            folder.clear();
            self.partition.folder(batch, row, &mut folder);
            match rows.get_mut(folder.as_slice()) {
                Some(rows) => rows.push(row as u32),
                None => {
                    rows.insert(folder.clone(), vec![row as u32]);
                    order.push(folder.clone());
                    if let Some(commit) = &mut self.commit {
                        commit.seen(&folder, || self.partition.values(batch, row), self.clock.now_ms())?;
                    }
                }
            }
        }
        for folder in order {
            let rows = rows.remove(&folder).expect("each folder is there once");
            self.write_rows(&folder, &batch.take_rising(&UInt32Array::from(rows))?)?;
        }
        Ok(())
    }

    fn publish_all(&mut self) -> Result<()> {
        let mut parts: Vec<Part> = std::mem::take(&mut self.parts).into_values().collect();
        // In the order of their numbers, so that a failure half-way leaves the earlier ones.
        parts.sort_by_key(|part| part.created_ms());
        parts.into_iter().try_for_each(Part::publish)
    }

    fn commit(&mut self, due: Vec<Vec<u8>>) -> Result<()> {
        for partition in due {
            if let Some(part) = self.parts.remove(&partition) {
                part.publish()?;
            }
            if let Some(commit) = &self.commit {
                commit.mark(&self.folder.join(String::from_utf8_lossy(&partition).as_ref()))?;
            }
        }
        Ok(())
    }
}

impl SinkWriter for FileSink {
    fn write(&mut self, batch: Batch) -> Result<()> {
        if self.partition.columns.is_empty() { self.write_rows(b"", &batch) } else { self.write_partitioned(&batch) }
    }

    fn watermark(&mut self, watermark: Watermark) -> Result<()> {
        let due = self.commit.as_mut().map_or_else(Vec::new, |commit| commit.due_by_watermark(watermark));
        self.commit(due)
    }

    fn flush(&mut self) -> Result<()> {
        self.publish_all()
    }

    fn next_timer(&self) -> Option<i64> {
        let waiting = !self.parts.is_empty() || self.commit.as_ref().is_some_and(PartitionCommit::waits_for_clock);
        waiting.then_some(self.next_check_ms)
    }

    fn on_time(&mut self, now_ms: i64) -> Result<()> {
        self.next_check_ms = now_ms + self.rolling.check_ms;
        let old = |part: &Part| now_ms - part.created_ms() >= self.rolling.rollover_ms;
        let due: Vec<Vec<u8>> = self.parts.iter().filter(|(_, part)| old(part)).map(|(folder, _)| folder.clone()).collect();
        for folder in due {
            self.parts.remove(&folder).expect("it was found there").publish()?;
        }
        let due = self.commit.as_mut().map_or_else(Vec::new, |commit| commit.due_by_clock(now_ms));
        self.commit(due)
    }

    fn finish(&mut self) -> Result<()> {
        self.publish_all()?;
        let due = self.commit.as_mut().map_or_else(Vec::new, PartitionCommit::due_at_end);
        self.commit(due)
    }
}

impl PartNames {
    fn next(&mut self) -> String {
        let name = format!("{}-{}", self.prefix, self.count);
        self.count += 1;
        name
    }
}

impl Rolling {
    fn from_options(options: &OptionReader<'_>) -> Result<Self> {
        let duration =
            |key: &str, default: u64| Ok::<_, crate::error::Error>(options.duration_ms(key)?.unwrap_or(default) as i64);
        Ok(Rolling {
            file_bytes: options.bytes("sink.rolling-policy.file-size")?.unwrap_or(128 << 20),
            rollover_ms: duration("sink.rolling-policy.rollover-interval", 30 * 60_000)?,
            check_ms: duration("sink.rolling-policy.check-interval", 60_000)?.max(1),
        })
    }
}

/// A random id in the layout of a UUID.
fn random_uid() -> String {
    let hex = format!("{:016x}{:016x}", random_seed(), random_seed());
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
