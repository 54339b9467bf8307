//! `filesystem`: tables of files, read from a file, a folder or a pattern, written as part files.
//!
//! A reader works on a thread of its own ([`reader`]); what it reads are splits ([`split`]): whole files where the table has a
//! watermark, ranges of files otherwise.

mod blocks;
mod board;
mod commit;
mod committer;
mod descriptor;
mod part;
mod partition;
mod partition_values;
mod path;
mod reader;
#[cfg(test)]
mod recovery_tests;
mod sink;
mod split;
#[cfg(test)]
mod tests;
mod worker;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use regex::Regex;

pub use board::CommitBoards;
pub use committer::FileCommitter;
pub use descriptor::{FilesystemDescriptor, NAME};
pub use sink::FileSink;

use self::partition_values::PartitionValues;
use self::path::TablePath;
use self::reader::FileReader;
use self::split::FileEnumerator;
use self::worker::FileWorker;
use super::formats::{Format, RecordDecoder};
use super::options::{OptionReader, does_not_fit};
use crate::config;
use crate::error::{Error, ErrorKind, Result, regex_problem};
use crate::runtime::{ReaderContext, Source, SourceReader, SplitEnumerator};
use crate::stream_graph::SourceSpec;
use crate::types::{ChangelogMode, Field};

/// A table of files to read.
pub struct FilesystemSource {
    spec: SourceSpec,
    path: TablePath,
    pattern: Option<Regex>,
    partition: PartitionValues,
    format: Format,
    interval_ms: Option<u64>,
}

impl fmt::Debug for FilesystemSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilesystemSource({:?})", self.path)
    }
}

impl FilesystemSource {
    /// The source of a spec.
    pub fn new(spec: &SourceSpec) -> Result<Self> {
        let options = OptionReader::new(&spec.options);
        let format = Format::from_options(&spec.options)?;
        let known = [&descriptor::METADATA_KEYS[..], &format.metadata().iter().map(|(key, _)| *key).collect::<Vec<_>>()].concat();
        if let Some(field) = spec.metadata.iter().find(|field| !known.contains(&field.name.as_str())) {
            return Err(Error::new(ErrorKind::UndefinedColumn, format!("metadata key '{}' not found", field.name))
                .with_hint(format!("the table has {}", known.join(", "))));
        }
        Ok(FilesystemSource {
            spec: spec.clone(),
            path: TablePath::new(options.required("path")?, &spec.base_dir)?,
            pattern: path_pattern(&options)?,
            partition: PartitionValues::new(spec),
            format,
            interval_ms: options.duration_ms("source.monitor-interval")?,
        })
    }
}

impl FilesystemSource {
    /// A decoder of the projected columns that stand in the files: all but those of the partition.
    fn decoder(&self) -> Result<Box<dyn RecordDecoder>> {
        let in_files = |index: &usize| !self.spec.partition_keys.contains(index);
        let written: Vec<usize> = (0..self.spec.physical.len()).filter(in_files).collect();
        let projection = written.iter().enumerate().filter(|(_, index)| self.spec.projection.contains(index));
        let projection: Vec<usize> = projection.map(|(at, _)| at).collect();
        let of_files = |field: &&Field| !descriptor::METADATA_KEYS.contains(&field.name.as_str());
        let metadata: Vec<String> = self.spec.metadata.iter().filter(of_files).map(|field| field.name.clone()).collect();
        self.format.decoder(&self.spec.physical.project(&written), &projection, &metadata)
    }

    /// The projected columns that must have a value. Where the sink leaves out rows without one, they may pass.
    fn not_null(&self, context: &ReaderContext) -> Vec<(usize, String)> {
        let dropped = context.operator.configuration.text(&config::NOT_NULL_ENFORCER).trim().eq_ignore_ascii_case("DROP");
        let fields = self.spec.projection.iter().map(|index| self.spec.physical.field(*index)).enumerate();
        let not_null = fields.filter(|(_, field)| !field.data_type.nullable && !dropped);
        not_null.map(|(column, field)| (column, field.name.clone())).collect()
    }
}

/// `source.path.regex-pattern`, which must match the whole path.
fn path_pattern(options: &OptionReader<'_>) -> Result<Option<Regex>> {
    const KEY: &str = "source.path.regex-pattern";
    let Some(text) = options.text(KEY) else { return Ok(None) };
    let pattern = Regex::new(&format!("^(?:{text})$"));
    pattern.map(Some).map_err(|error| does_not_fit(KEY, text, "a regular expression").with_detail(regex_problem(&error)))
}

impl Source for FilesystemSource {
    fn enumerator(&self, parallelism: u32) -> Result<Box<dyn SplitEnumerator>> {
        // Changes are read file by file: those of a row may stand in several.
        let with_watermark = self.spec.watermark.is_some() && self.format.changelog() == ChangelogMode::InsertOnly;
        Ok(Box::new(FileEnumerator {
            path: self.path.clone(),
            pattern: self.pattern.clone(),
            partition: self.partition.clone(),
            by_ranges: !with_watermark && self.format.can_be_cut(),
            all_at_start: with_watermark,
            interval_ms: self.interval_ms,
            parallelism,
            known: HashSet::new(),
            splits: 0,
            complete: false,
        }))
    }

    fn reader(&self, context: ReaderContext) -> Result<Box<dyn SourceReader>> {
        let worker = FileWorker {
            decoder: self.decoder()?,
            partition: self.partition.clone(),
            not_null: self.not_null(&context),
            metadata: self.spec.metadata.clone(),
            batch_rows: context.batch_rows.max(1),
            skip_option: format!("{}.ignore-parse-errors", self.format.name()),
            metrics: Arc::clone(&context.operator.metrics),
            files: HashMap::new(),
            closed: HashMap::new(),
            calls: 0,
            spare: Default::default(),
        };
        Ok(Box::new(FileReader::new(worker)))
    }
}
