//! The `json` format: one JSON object a line (or an array of objects), read straight into columns, written as Flink writes it.

mod cursor;
mod debezium;
mod decoder;
mod encoder;
mod keys;
mod lines;
mod minify;
mod object;
mod options;
mod scalar;
#[cfg(test)]
mod tests;

use std::fmt;

pub use debezium::{DebeziumFormat, NAME as DEBEZIUM, OPTIONS as DEBEZIUM_OPTIONS, metadata_columns};
pub use options::OPTIONS;

use super::{RecordDecoder, RecordEncoder};
use crate::error::{Error, Result};
use crate::types::{DataType, Schema, TypeKind};

/// How dates and times are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampFormat {
    /// `yyyy-MM-dd HH:mm:ss.f`.
    Sql,
    /// `yyyy-MM-ddTHH:mm:ss.f`.
    Iso8601,
}

/// What becomes of a map entry whose key is NULL when it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MapNullKey {
    /// An error.
    Fail,
    /// It is left out.
    Drop,
    /// It is written under this key.
    Literal(String),
}

/// The format with its options.
#[derive(Debug, Clone)]
pub struct JsonFormat {
    /// The format that it is part of: what its options begin with.
    name: &'static str,
    ignore_parse_errors: bool,
    fail_on_missing_field: bool,
    timestamp_format: TimestampFormat,
    map_null_key: MapNullKey,
    plain_decimals: bool,
    leave_out_nulls: bool,
}

/// Why a record could not be read.
#[derive(Debug)]
pub enum Malformed {
    /// The line ends within a value.
    EndOfInput,
    /// The character at this place (in bytes) of the line does not belong there.
    Unexpected(usize, char),
    /// Text follows the record, at this place.
    Trailing(usize),
    /// Values are nested too deeply.
    TooDeep,
    /// The record is no object.
    NotAnObject,
    /// The record is not UTF-8.
    NotUtf8,
    /// The record is a JSON object, but not a change.
    Change(String),
    /// A field's value does not fit its type, or the field is missing.
    Field(Box<FieldProblem>),
}

/// What is wrong with a field.
#[derive(Debug)]
pub struct FieldProblem {
    /// Its name, with those of the rows around it.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::EndOfInput => f.write_str("the line ends within the record: a record is one line"),
            Malformed::Unexpected(at, found) => write!(f, "unexpected '{found}' at byte {}", at + 1),
            Malformed::Trailing(at) => write!(f, "text follows the record at byte {}: a line holds one record", at + 1),
            Malformed::TooDeep => f.write_str("values are nested too deeply"),
            Malformed::NotAnObject => f.write_str("the record is not a JSON object"),
            Malformed::NotUtf8 => f.write_str("the record is not valid UTF-8"),
            Malformed::Change(reason) => f.write_str(reason),
            Malformed::Field(problem) => write!(f, "field \"{}\" {}", problem.path, problem.reason),
        }
    }
}

impl JsonFormat {
    /// Whether all columns can be carried.
    pub fn check_schema(&self, physical: &Schema) -> Result<()> {
        physical.fields.iter().try_for_each(|field| check_type(self.name, &field.data_type, &field.name))
    }

    /// A decoder of the projected columns.
    pub fn decoder(&self, physical: &Schema, projection: &[usize]) -> Result<Box<dyn RecordDecoder>> {
        Ok(Box::new(decoder::JsonDecoder::new(self, &physical.project(projection))?))
    }

    /// An encoder of rows of this schema.
    pub fn encoder(&self, schema: &Schema) -> Result<Box<dyn RecordEncoder>> {
        Ok(Box::new(encoder::JsonEncoder::new(self.clone(), schema)))
    }
}

fn check_type(format: &str, data_type: &DataType, column: &str) -> Result<()> {
    let unsupported =
        || Error::unsupported(format!("type {} of column \"{column}\" in format '{format}'", data_type.kind_text()));
    let key_fits = |key: &DataType| {
        if key.is_character() {
            return Ok(());
        }
        Err(unsupported().with_hint("JSON has only strings as keys of a map: declare the key as STRING"))
    };
    match &data_type.kind {
        TypeKind::IntervalYearMonth | TypeKind::IntervalDayTime | TypeKind::Bitmap | TypeKind::Variant => Err(unsupported()),
        TypeKind::Array(element) => check_type(format, element, column),
        TypeKind::Map(key, value) => key_fits(key).and_then(|()| check_type(format, value, column)),
        TypeKind::Multiset(element) => key_fits(element),
        TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
            fields.iter().try_for_each(|field| check_type(format, &field.data_type, column))
        }
        _ => Ok(()),
    }
}
