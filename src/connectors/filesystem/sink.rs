//! Writes a table as part files.
//!
//! A part is written under a hidden name and renamed when it is whole, so that a reader of the folder never sees half a record.
//!
//! Without checkpoints, parts are closed by size, by age, when their partition is complete, at a flush element and at the end; those of
//! the end become visible when all writers have come there. With checkpoints, parts are closed at each barrier too, and become visible
//! when the checkpoint is complete: the writer describes them, and the [`FileCommitter`](super::committer::FileCommitter) renames them.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::UInt32Array;

use super::board::{CommitBoard, CommitBoards, LastWill};
use super::commit::PartitionCommit;
use super::committer::FileCommittable;
use super::part::Part;
use super::partition::{PartitionColumns, default_name};
use super::path::TablePath;
use crate::clock::Clock;
use crate::connectors::formats::{Format, RecordEncoder};
use crate::connectors::options::OptionReader;
use crate::error::Result;
use crate::runtime::{Committable, SinkContext, SinkWriter};
use crate::stream_graph::SinkSpec;
use crate::types::{Batch, CheckpointId, SubtaskIndex, Watermark};

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
    /// Whether only the committer makes parts visible.
    checkpointing: bool,
    /// Then: parts that were closed since the last barrier.
    closed: Vec<(Vec<u8>, Part)>,
    /// Then: the partitions written to since the last barrier, with their times.
    begun: BTreeMap<String, i64>,
    /// How far event time has come.
    watermark: Watermark,
    names: PartNames,
    rolling: Rolling,
    commit: Option<PartitionCommit>,
    subtask: SubtaskIndex,
    /// What the writers of the sink tell each other.
    board: Arc<CommitBoard>,
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
    pub fn new(spec: &SinkSpec, context: &SinkContext, boards: &CommitBoards) -> Result<Self> {
        let options = OptionReader::new(&spec.options);
        let written: Vec<usize> = (0..spec.schema.len()).filter(|index| !spec.partition_keys.contains(index)).collect();
        let columns = spec.partition_keys.iter().map(|index| (*index, spec.schema.field(*index).clone())).collect();
        let clock = Arc::clone(&context.operator.environment.clock);
        let rolling = Rolling::from_options(&options)?;
        let next_check_ms = clock.now_ms() + rolling.check_ms;
        let board = boards.join(context.operator.job, context.operator.operator, context.parallelism);
        Ok(FileSink {
            folder: TablePath::new(options.required("path")?, &spec.base_dir)?.resolved().to_path_buf(),
            encoder: Format::from_options(&spec.options)?.encoder(&spec.schema.project(&written))?,
            written,
            partition: PartitionColumns { columns, default_name: default_name(&options) },
            parts: HashMap::new(),
            checkpointing: context.checkpointing,
            closed: Vec::new(),
            begun: BTreeMap::new(),
            watermark: Watermark::MIN,
            names: PartNames { prefix: format!("{}{}", board.prefix(), context.subtask), count: 0 },
            rolling,
            commit: PartitionCommit::from_options(&options)?,
            subtask: context.subtask,
            board,
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
            self.publish(partition)?;
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
                    self.begin_partition(&folder, batch, row)?;
                }
            }
        }
        for folder in order {
            let rows = rows.remove(&folder).expect("each folder is there once");
            self.write_rows(&folder, &batch.take_rising(&UInt32Array::from(rows))?)?;
        }
        Ok(())
    }

    /// Rows of a partition come, the first of them is this one: notes when the partition will be complete.
    fn begin_partition(&mut self, folder: &[u8], batch: &Batch, row: usize) -> Result<()> {
        let Some(commit) = &self.commit else { return Ok(()) };
        let time = || commit.complete_ms(|| self.partition.values(batch, row), self.clock.now_ms());
        if !self.checkpointing {
            return self.board.hold(self.subtask, folder, time);
        }
        let folder = String::from_utf8_lossy(folder);
        if !self.begun.contains_key(folder.as_ref()) {
            let time_ms = time()?;
            self.begun.insert(folder.into_owned(), time_ms);
        }
        Ok(())
    }

    /// Closes what there is of a partition, and makes it visible if that is not the committer's business.
    fn publish(&mut self, partition: &[u8]) -> Result<()> {
        if let Some(mut part) = self.parts.remove(partition) {
            if self.checkpointing {
                part.write_out()?;
                self.closed.push((partition.to_vec(), part));
                return Ok(());
            }
            part.publish()?;
        }
        self.board.publish(self.subtask, partition);
        Ok(())
    }

    /// How far the writer has come, for those who mark partitions.
    fn progress(&mut self, commit: &PartitionCommit, at_end: bool) -> FileCommittable {
        let mut partitions = std::mem::take(&mut self.begun);
        if !self.checkpointing {
            partitions.append(&mut self.board.incomplete());
        }
        let time_ms = match commit.is_by_clock() {
            _ if at_end => i64::MAX,
            true => self.clock.now_ms(),
            false => self.watermark.0,
        };
        FileCommittable::Progress { writer: self.subtask, partitions, time_ms }
    }

    fn mark(&self, complete: Vec<Vec<u8>>) -> Result<()> {
        let Some(commit) = &self.commit else { return Ok(()) };
        let folder = |partition: Vec<u8>| self.folder.join(String::from_utf8_lossy(&partition).as_ref());
        complete.into_iter().try_for_each(|partition| commit.mark(&folder(partition)))
    }

    /// Whether this writer marks partitions when the clock says so, or the watermark; none = not at all.
    fn commits_by_clock(&self) -> Option<bool> {
        self.commit.as_ref().filter(|_| !self.checkpointing).map(PartitionCommit::is_by_clock)
    }
}

impl SinkWriter for FileSink {
    fn write(&mut self, batch: Batch) -> Result<()> {
        if self.partition.columns.is_empty() { self.write_rows(b"", &batch) } else { self.write_partitioned(&batch) }
    }

    fn watermark(&mut self, watermark: Watermark) -> Result<()> {
        self.watermark = self.watermark.max(watermark);
        // The end is `finish`'s business.
        if self.commits_by_clock() != Some(false) || watermark == Watermark::MAX {
            return Ok(());
        }
        self.board.due(watermark.0).iter().try_for_each(|partition| self.publish(partition))?;
        let of_all = self.board.advance(self.subtask, watermark);
        self.mark(self.board.take_complete(of_all.0))
    }

    fn flush(&mut self) -> Result<()> {
        let partitions: Vec<Vec<u8>> = self.parts.keys().cloned().collect();
        partitions.iter().try_for_each(|partition| self.publish(partition))?;
        std::mem::take(&mut self.closed).into_iter().try_for_each(|(_, part)| part.publish())?;
        self.board.take_last_parts().into_iter().try_for_each(Part::publish)
    }

    fn prepare_commit(&mut self, checkpoint: Option<CheckpointId>) -> Result<Vec<Committable>> {
        if checkpoint.is_none() && !self.checkpointing {
            return Ok(Vec::new()); // `finish` has made all visible
        }
        let mut parts = std::mem::take(&mut self.closed);
        parts.extend(std::mem::take(&mut self.parts));
        let mut committables = Vec::with_capacity(parts.len() + 1);
        for (folder, part) in parts {
            let folder = String::from_utf8_lossy(&folder).into_owned();
            committables.push(FileCommittable::Part { folder, name: part.hand_over()? }.to_committable());
        }
        if let Some(commit) = self.commit.take() {
            committables.push(self.progress(&commit, checkpoint.is_none()).to_committable());
            self.commit = Some(commit);
        }
        Ok(committables)
    }

    fn next_timer(&self) -> Option<i64> {
        let waiting = !self.parts.is_empty() || (self.commits_by_clock() == Some(true) && self.board.has_pending());
        waiting.then_some(self.next_check_ms)
    }

    fn on_time(&mut self, now_ms: i64) -> Result<()> {
        self.next_check_ms = now_ms + self.rolling.check_ms;
        let old = |part: &Part| now_ms - part.created_ms() >= self.rolling.rollover_ms;
        let mut due: Vec<Vec<u8>> = self.parts.iter().filter(|(_, part)| old(part)).map(|(folder, _)| folder.clone()).collect();
        if self.commits_by_clock() == Some(true) {
            due.extend(self.board.due(now_ms));
        }
        due.iter().try_for_each(|partition| self.publish(partition))?;
        if self.commits_by_clock() == Some(true) { self.mark(self.board.take_complete(now_ms)) } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<()> {
        if self.checkpointing {
            return self.parts.values_mut().try_for_each(Part::write_out);
        }
        let mut parts: Vec<Part> = std::mem::take(&mut self.parts).into_values().collect();
        parts.iter_mut().try_for_each(Part::write_out)?;
        let LastWill { parts, partitions } = self.board.finish(self.subtask, parts);
        parts.into_iter().try_for_each(Part::publish)?;
        self.mark(partitions)
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
