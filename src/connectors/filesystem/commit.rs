//! When a partition is complete, and how that is made known: a file `_SUCCESS` in its folder.

use std::path::Path;

use super::partition::partition_time_ms;
use super::path::io_error;
use crate::connectors::options::{OptionReader, does_not_fit};
use crate::error::Result;

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

/// When partitions are complete, and what is done then.
#[derive(Debug)]
pub struct PartitionCommit {
    trigger: Trigger,
    delay_ms: i64,
    file_name: String,
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
        }))
    }

    /// After when, by the clock or the watermark, a partition is complete that begins now.
    pub fn complete_ms(&self, values: impl FnOnce() -> Vec<(String, String)>, now_ms: i64) -> Result<i64> {
        let time_ms = match &self.trigger {
            Trigger::ProcessTime => now_ms,
            Trigger::PartitionTime { pattern } => partition_time_ms(pattern, &values())?,
        };
        Ok(time_ms.saturating_add(self.delay_ms))
    }

    /// Whether the clock completes partitions, rather than the watermark.
    pub fn is_by_clock(&self) -> bool {
        self.trigger == Trigger::ProcessTime
    }

    /// Makes known that a partition is complete.
    pub fn mark(&self, folder: &Path) -> Result<()> {
        let path = folder.join(&self.file_name);
        std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, b"")).map_err(|error| io_error("write", &path, error))
    }
}
