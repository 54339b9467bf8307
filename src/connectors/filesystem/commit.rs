//! When a partition is complete, and how that is made known: a file `_SUCCESS` in its folder.

use std::collections::BTreeMap;
use std::path::Path;

use super::partition::partition_time_ms;
use super::path::io_error;
use crate::connectors::options::{OptionReader, does_not_fit};
use crate::error::Result;
use crate::types::Watermark;

/// What completes a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Trigger {
    /// The clock, after the partition was begun.
    ProcessTime,
    /// The watermark, after the partition's own time.
    PartitionTime {
        /// How that time follows from the partition's values.
        pattern: String,
    },
}

/// The partitions that are not complete yet.
#[derive(Debug)]
pub struct PartitionCommit {
    trigger: Trigger,
    delay_ms: i64,
    file_name: String,
    /// When each was begun (by the clock), or its own time.
    pending: BTreeMap<Vec<u8>, i64>,
}

impl PartitionCommit {
    /// By the options; none if there is no policy.
    pub fn from_options(options: &OptionReader<'_>) -> Result<Option<Self>> {
        let Some(kinds) = options.text("sink.partition-commit.policy.kind") else { return Ok(None) };
        if kinds.split(',').any(|kind| kind.trim() != "success-file") {
            return Err(does_not_fit("sink.partition-commit.policy.kind", kinds, "'success-file'"));
        }
        let triggers = ["process-time", "partition-time"];
        let trigger = match options.word("sink.partition-commit.trigger", &triggers, "process-time")? {
            "process-time" => Trigger::ProcessTime,
            _ => Trigger::PartitionTime { pattern: options.required("partition.time-extractor.timestamp-pattern")?.to_string() },
        };
        Ok(Some(PartitionCommit {
            trigger,
            delay_ms: options.duration_ms("sink.partition-commit.delay")?.unwrap_or(0) as i64,
            file_name: options.text("sink.partition-commit.success-file.name").unwrap_or("_SUCCESS").to_string(),
            pending: BTreeMap::new(),
        }))
    }

    /// Rows came for a partition.
    pub fn seen(&mut self, partition: &[u8], values: impl FnOnce() -> Vec<(String, String)>, now_ms: i64) -> Result<()> {
        if self.pending.contains_key(partition) {
            return Ok(());
        }
        let time_ms = match &self.trigger {
            Trigger::ProcessTime => now_ms,
            Trigger::PartitionTime { pattern } => partition_time_ms(pattern, &values())?,
        };
        self.pending.insert(partition.to_vec(), time_ms);
        Ok(())
    }

    /// Whether the clock completes partitions.
    pub fn waits_for_clock(&self) -> bool {
        self.trigger == Trigger::ProcessTime && !self.pending.is_empty()
    }

    /// The partitions that the clock has completed.
    pub fn due_by_clock(&mut self, now_ms: i64) -> Vec<Vec<u8>> {
        if self.trigger == Trigger::ProcessTime { self.take_until(now_ms) } else { Vec::new() }
    }

    /// The partitions that the watermark has completed.
    pub fn due_by_watermark(&mut self, watermark: Watermark) -> Vec<Vec<u8>> {
        if self.trigger == Trigger::ProcessTime { Vec::new() } else { self.take_until(watermark.0) }
    }

    /// All that are left: the input has ended.
    pub fn due_at_end(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.pending).into_keys().collect()
    }

    fn take_until(&mut self, now_ms: i64) -> Vec<Vec<u8>> {
        let due = |time_ms: i64| now_ms >= time_ms.saturating_add(self.delay_ms);
        let taken: Vec<Vec<u8>> = self.pending.iter().filter(|(_, time)| due(**time)).map(|(name, _)| name.clone()).collect();
        taken.iter().for_each(|partition| {
            self.pending.remove(partition);
        });
        taken
    }

    /// Makes known that a partition is complete.
    pub fn mark(&self, folder: &Path) -> Result<()> {
        let path = folder.join(&self.file_name);
        std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, b"")).map_err(|error| io_error("write", &path, error))
    }
}
