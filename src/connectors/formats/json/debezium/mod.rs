//! The `debezium-json` format: one change a line, as Debezium writes it, with the row before and after and what was done to it.
//!
//! `{"before": …, "after": …, "op": "c" | "r" | "u" | "d"}`. An update is read as -U and +U; written it is the deletion of the former
//! row and the creation of the new one, as Flink writes it.

mod decoder;
mod encoder;
mod metadata;
#[cfg(test)]
mod tests;

use super::JsonFormat;
use super::options::with_shared_options;
use crate::catalog::{OptionDescriptor, Options};
use crate::config::SettingType;
use crate::connectors::formats::{RecordDecoder, RecordEncoder};
use crate::connectors::options::{OptionReader, optional};
use crate::error::{Error, ErrorKind, Result};
use crate::types::{DataType, Schema, TypeKind};

/// The format's name, which is also what its options begin with.
pub const NAME: &str = "debezium-json";

const SCHEMA_INCLUDE: &str = "debezium-json.schema-include";

/// The format with its options.
#[derive(Debug, Clone)]
pub struct DebeziumFormat {
    json: JsonFormat,
    /// Whether the change stands in the field `payload` of an object that also has its schema.
    schema_include: bool,
}

/// The options of the format.
pub const OPTIONS: &[OptionDescriptor] = with_shared_options!(
    "debezium-json",
    optional(
        SCHEMA_INCLUDE,
        SettingType::Boolean,
        "false",
        "The changes are read from the field 'payload' of objects that also hold their schema.",
    ),
);

impl DebeziumFormat {
    /// The format with the options of a table.
    pub fn from_options(options: &Options) -> Result<Self> {
        let schema_include = OptionReader::new(options).boolean(SCHEMA_INCLUDE, false)?;
        Ok(DebeziumFormat { json: JsonFormat::with_shared_options(NAME, options)?, schema_include })
    }

    /// Whether all columns can be carried.
    pub fn check_schema(&self, physical: &Schema) -> Result<()> {
        self.json.check_schema(physical)
    }

    /// A decoder of the projected columns and of metadata.
    pub fn decoder(&self, physical: &Schema, projection: &[usize], metadata: &[String]) -> Result<Box<dyn RecordDecoder>> {
        Ok(Box::new(decoder::DebeziumDecoder::new(self, &physical.project(projection), metadata)?))
    }

    /// An encoder of rows of this schema.
    pub fn encoder(&self, schema: &Schema) -> Result<Box<dyn RecordEncoder>> {
        if self.schema_include {
            let message = format!("option '{SCHEMA_INCLUDE}' does not allow writing: changes are written without their schema");
            return Err(Error::new(ErrorKind::InvalidOption, message)
                .with_hint(format!("leave it out: INSERT INTO … /*+ OPTIONS('{SCHEMA_INCLUDE}' = 'false') */")));
        }
        Ok(Box::new(encoder::DebeziumEncoder::new(self.json.clone(), schema)))
    }
}

/// The metadata of a change: keys and types.
pub fn metadata_columns() -> Vec<(&'static str, DataType)> {
    let time = || DataType::nullable(TypeKind::TimestampLtz(3));
    let properties = TypeKind::Map(Box::new(DataType::string()), Box::new(DataType::string()));
    vec![
        ("schema", DataType::string()),
        ("ingestion-timestamp", time()),
        ("source.timestamp", time()),
        ("source.database", DataType::string()),
        ("source.schema", DataType::string()),
        ("source.table", DataType::string()),
        ("source.properties", DataType::nullable(properties)),
    ]
}
