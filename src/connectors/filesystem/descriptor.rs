//! What the planner knows of `filesystem`.

use std::path::Path;

use super::commit::PartitionCommit;
use super::partition_values::is_readable;
use super::path::TablePath;
use super::path_pattern;
use crate::catalog::{CatalogTable, ConnectorDescriptor, OptionDescriptor, SinkAbilities, SourceAbilities};
use crate::config::SettingType;
use crate::connectors::descriptor::physical_schema;
use crate::connectors::formats::{FORMATS, Format};
use crate::connectors::options::{OptionReader, optional, required, without_default};
use crate::error::{Error, Result};
use crate::types::{ChangelogMode, DataType, TypeKind};

/// The connector's name.
pub const NAME: &str = "filesystem";

/// The keys of the metadata columns.
pub const METADATA_KEYS: [&str; 4] = ["file.path", "file.name", "file.size", "file.modification-time"];

const OPTIONS: &[OptionDescriptor] = &[
    required(
        "path",
        SettingType::Text,
        "A file, a folder (all files below it; names that begin with '.' or '_' are left out) or a pattern with '*'. Relative to the script's folder.",
    ),
    required("format", SettingType::OneOf(&FORMATS), "The format of the files; those that end in .gz or .zst are decompressed."),
    without_default(
        "source.monitor-interval",
        SettingType::Duration,
        "Look for new files this often; the table is then unbounded.",
    ),
    without_default("source.path.regex-pattern", SettingType::Text, "Only files whose whole path matches."),
    without_default("scan.parallelism", SettingType::Integer, "Subtasks of the source."),
    without_default("sink.parallelism", SettingType::Integer, "Subtasks of the sink."),
    optional(
        "partition.default-name",
        SettingType::Text,
        "__DEFAULT_PARTITION__",
        "The folder of rows whose partition column is NULL or empty.",
    ),
    optional("sink.rolling-policy.file-size", SettingType::MemorySize, "128 mb", "A part file is closed when it is this large."),
    optional(
        "sink.rolling-policy.rollover-interval",
        SettingType::Duration,
        "30 min",
        "A part file is closed when it is this old.",
    ),
    optional(
        "sink.rolling-policy.check-interval",
        SettingType::Duration,
        "1 min",
        "How often the age of part files is looked at.",
    ),
    optional(
        "sink.partition-commit.trigger",
        SettingType::OneOf(&["process-time", "partition-time"]),
        "process-time",
        "What completes a partition: the clock after its first row, or the watermark after the partition's own time.",
    ),
    optional("sink.partition-commit.delay", SettingType::Duration, "0 s", "How long after that a partition is complete."),
    without_default(
        "sink.partition-commit.policy.kind",
        SettingType::OneOf(&["success-file"]),
        "How it is made known that a partition is complete: a file in its folder.",
    ),
    optional("sink.partition-commit.success-file.name", SettingType::Text, "_SUCCESS", "The name of that file."),
    without_default(
        "partition.time-extractor.timestamp-pattern",
        SettingType::Text,
        "The time of a partition from its columns: '$dt $hm:00'.",
    ),
];

/// The descriptor.
#[derive(Debug)]
pub struct FilesystemDescriptor;

impl ConnectorDescriptor for FilesystemDescriptor {
    fn name(&self) -> &'static str {
        NAME
    }

    fn options(&self, table: &CatalogTable) -> Result<Vec<OptionDescriptor>> {
        let mut options = OPTIONS.to_vec();
        options.extend_from_slice(Format::options(&table.options)?);
        Ok(options)
    }

    fn validate(&self, table: &CatalogTable) -> Result<()> {
        let options = OptionReader::new(&table.options);
        TablePath::new(options.required("path")?, Path::new(""))?;
        options.duration_ms("source.monitor-interval")?;
        path_pattern(&options)?;
        Format::from_options(&table.options)?.check_schema(&physical_schema(table))
    }

    fn source(&self, table: &CatalogTable) -> Result<SourceAbilities> {
        let options = OptionReader::new(&table.options);
        let mut keys = physical_schema(table).fields.into_iter().filter(|field| table.partition_keys.contains(&field.name));
        if let Some(key) = keys.find(|key| !is_readable(&key.data_type)) {
            let message = format!("reading partition column \"{}\" of type {}", key.name, key.data_type);
            return Err(Error::unsupported(message).with_hint("partition by a string, number, date or time"));
        }
        let text = DataType::string().with_nullable(false);
        let types = [text.clone(), text, DataType::not_null(TypeKind::BigInt), DataType::not_null(TypeKind::TimestampLtz(3))];
        let format = Format::from_options(&table.options)?;
        let changelog = format.changelog();
        let in_order = (changelog != ChangelogMode::InsertOnly).then_some(1);
        Ok(SourceAbilities {
            bounded: options.text("source.monitor-interval").is_none(),
            changelog,
            metadata: METADATA_KEYS.into_iter().zip(types).chain(format.metadata()).collect(),
            // Changes must stay in the order of the files, unless the user knows that each file stands for itself.
            parallelism: options.parallelism("scan.parallelism")?.or(in_order),
            watermarks: false,
        })
    }

    fn sink(&self, table: &CatalogTable) -> Result<SinkAbilities> {
        let options = OptionReader::new(&table.options);
        PartitionCommit::from_options(&options)?;
        Ok(SinkAbilities {
            accepts: Format::from_options(&table.options)?.changelog(),
            by_key: false,
            metadata: Vec::new(),
            parallelism: options.parallelism("sink.parallelism")?,
        })
    }
}
