//! The splits of a table of files, and who finds them.

use std::collections::{BTreeSet, HashSet};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::blocks::Compression;
use super::partition_values::PartitionValues;
use super::path::{TablePath, io_error};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::{Split, SplitEnumerator};
use crate::types::SplitId;

/// A range of a file is not made shorter than this: opening it must cost little against reading it.
const RANGE_BYTES_MIN: u64 = 16 << 20;
/// Ranges for each reader, so that a slow one does not hold up the rest for long.
const RANGES_PER_READER: u64 = 4;

/// A file, or a range of one, and how far it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSplit {
    /// The file.
    pub path: PathBuf,
    /// The first record is the one after the first line end at or after this offset (at 0: the first one).
    pub start: u64,
    /// The record that begins at or before this offset is the last one; none = the file's end.
    pub end: Option<u64>,
    /// Where the next unread record begins, in decompressed bytes; none = nothing was read.
    pub position: Option<u64>,
    /// Bytes of the file when it was found.
    pub size: u64,
    /// When it had been changed last by then, milliseconds since the epoch.
    pub modified_ms: i64,
}

impl FileSplit {
    /// From its JSON form.
    pub fn parse(state: &str) -> Result<Self> {
        serde_json::from_str(state)
            .map_err(|error| Error::internal(format!("the state of a file split is not readable: {error}")))
    }

    /// Refuses a file that is not what it was when it was found, if a part of it was read since: its rows would not fit together. A file
    /// may grow.
    pub fn check_unchanged(&self) -> Result<()> {
        let metadata = std::fs::metadata(&self.path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => changed(&self.path, "is gone"),
            _ => io_error("read", &self.path, error),
        })?;
        match metadata.len() {
            size if size < self.size => Err(changed(&self.path, &format!("has shrunk from {} to {size} bytes", self.size))),
            size if size == self.size && modified_ms(&metadata) != self.modified_ms => {
                Err(changed(&self.path, "was written anew"))
            }
            _ => Ok(()),
        }
    }

    /// With its id, in JSON form.
    pub fn to_split(&self, id: SplitId) -> Split {
        Split { id, state: serde_json::to_string(self).expect("a file split has plain fields, its path is text") }
    }
}

/// When a file was changed last, milliseconds since the epoch.
pub fn modified_ms(metadata: &Metadata) -> i64 {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    modified.map_or(0, |since| since.as_millis() as i64)
}

fn changed(path: &Path, how: &str) -> Error {
    Error::new(ErrorKind::NotRestorable, format!("cannot go on reading '{}'", path.display()))
        .with_detail(format!("a part of it was read, and since then it {how}"))
        .with_hint("put the file back as it was, or start the job anew")
}

/// Finds the files of a table.
#[derive(Debug)]
pub struct FileEnumerator {
    /// What `path` stands for.
    pub path: TablePath,
    /// Only files whose whole path matches.
    pub pattern: Option<Regex>,
    /// PARTITIONED BY: files outside of partitions are no part of the table.
    pub partition: PartitionValues,
    /// Whether files may be cut into ranges.
    pub by_ranges: bool,
    /// Whether all splits go to readers at the start.
    pub all_at_start: bool,
    /// `source.monitor-interval`.
    pub interval_ms: Option<u64>,
    /// Readers.
    pub parallelism: u32,
    /// Files that were found before.
    pub known: HashSet<PathBuf>,
    /// Splits so far.
    pub splits: u64,
    /// Whether there is nothing to look for any more: a bounded table was looked at before a restart.
    pub complete: bool,
}

/// What a checkpoint keeps of the enumerator.
#[derive(Debug, Serialize, Deserialize)]
struct Found {
    /// Files that are not to be found again, sorted.
    files: BTreeSet<PathBuf>,
    splits: u64,
}

impl FileEnumerator {
    /// Files outside of partitions are passed over, as in Flink; but when all are, the table is not what it is declared to be.
    fn check_partitions(&self, listed: &[PathBuf]) -> Result<()> {
        if listed.is_empty() || listed.iter().any(|path| self.partition.holds(path)) {
            return Ok(());
        }
        let folders: Vec<String> = self.partition.keys().iter().map(|key| format!("{key}=…")).collect();
        let message = format!("no file of the table lies in a partition folder '{}'", folders.join("/"));
        Err(Error::new(ErrorKind::FileNotFound, message)
            .with_detail(format!("the first one is {}", listed[0].display()))
            .with_hint("leave out PARTITIONED BY if the columns stand in the files"))
    }

    fn ranges(&self, size: u64) -> Vec<(u64, Option<u64>)> {
        let readers = u64::from(self.parallelism);
        let length = (size / (readers * RANGES_PER_READER)).max(RANGE_BYTES_MIN);
        if !self.by_ranges || readers == 1 || size < 2 * length {
            return vec![(0, None)];
        }
        let count = size / length;
        (0..count).map(|at| (at * length, (at + 1 < count).then_some((at + 1) * length))).collect()
    }
}

impl SplitEnumerator for FileEnumerator {
    fn discover(&mut self) -> Result<Vec<Split>> {
        let mut found = Vec::new();
        if self.complete {
            return Ok(found);
        }
        let listed = self.path.list()?;
        self.check_partitions(&listed)?;
        for path in listed {
            let fits = self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(&path.to_string_lossy()));
            if !fits || self.known.contains(&path) || !self.partition.holds(&path) {
                continue;
            }
            let (size, modified_ms) = match std::fs::metadata(&path) {
                Ok(metadata) => (metadata.len(), modified_ms(&metadata)),
                // Gone since it was listed.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(io_error("read", &path, error)),
            };
            if path.to_str().is_none() {
                return Err(Error::unsupported(format!("file name '{}', which is not UTF-8,", path.display()))
                    .with_hint("rename the file"));
            }
            let compressed = Compression::of(&path) != Compression::None;
            let ranges = if compressed { vec![(0, None)] } else { self.ranges(size) };
            for (start, end) in ranges {
                let split = FileSplit { path: path.clone(), start, end, position: None, size, modified_ms };
                found.push(split.to_split(SplitId(self.splits)));
                self.splits += 1;
            }
            self.known.insert(path);
        }
        Ok(found)
    }

    fn discovery_interval_ms(&self) -> Option<u64> {
        self.interval_ms
    }

    fn assign_all_at_start(&self) -> bool {
        self.all_at_start
    }

    fn snapshot(&self) -> String {
        // A bounded table is looked at once.
        let files = if self.interval_ms.is_some() { self.known.iter().cloned().collect() } else { BTreeSet::new() };
        serde_json::to_string(&Found { files, splits: self.splits }).expect("names of files are text: others are refused")
    }

    fn restore(&mut self, state: &str) -> Result<()> {
        let found: Found = serde_json::from_str(state)
            .map_err(|error| Error::internal(format!("the state of a file enumerator is not readable: {error}")))?;
        self.known = found.files.into_iter().collect();
        self.splits = found.splits;
        self.complete = self.interval_ms.is_none();
        Ok(())
    }
}
