//! The `json` format: one JSON object a line (or an array of objects), read straight into columns, written as Flink writes it.

mod cursor;
mod decoder;
mod encoder;
mod minify;
mod object;
mod scalar;
#[cfg(test)]
mod tests;

use std::fmt;

use super::{RecordDecoder, RecordEncoder};
use crate::catalog::{OptionDescriptor, Options};
use crate::config::SettingType;
use crate::connectors::options::OptionReader;
use crate::error::{Error, ErrorKind, Result};
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
    ignore_parse_errors: bool,
    fail_on_missing_field: bool,
    timestamp_format: TimestampFormat,
    map_null_key: MapNullKey,
    plain_decimals: bool,
    leave_out_nulls: bool,
}

/// The options of the format.
pub const OPTIONS: &[OptionDescriptor] = &[
    option(
        "json.ignore-parse-errors",
        SettingType::Boolean,
        "false",
        "Fields that cannot be read become NULL, broken records are skipped, instead of failing the job.",
    ),
    option(
        "json.fail-on-missing-field",
        SettingType::Boolean,
        "false",
        "Fail when a record lacks a field; otherwise the field is NULL.",
    ),
    option(
        "json.timestamp-format.standard",
        SettingType::OneOf(&["SQL", "ISO-8601"]),
        "SQL",
        "How timestamps are written: SQL is 'yyyy-MM-dd HH:mm:ss.s', ISO-8601 has a T between date and time.",
    ),
    option(
        "json.map-null-key.mode",
        SettingType::OneOf(&["FAIL", "DROP", "LITERAL"]),
        "FAIL",
        "What becomes of a map entry with a NULL key when it is written.",
    ),
    option("json.map-null-key.literal", SettingType::Text, "null", "The key that replaces NULL in mode LITERAL."),
    option(
        "json.encode.decimal-as-plain-number",
        SettingType::Boolean,
        "false",
        "Write decimals without exponent: 0.000000027 instead of 2.7E-8.",
    ),
    option("json.encode.ignore-null-fields", SettingType::Boolean, "false", "Leave out fields that are NULL when writing."),
    option(
        "json.decode.json-parser.enabled",
        SettingType::Boolean,
        "true",
        "Accepted, no effect: there is one parser, and it is a streaming one.",
    ),
];

const fn option(key: &'static str, option_type: SettingType, default: &'static str, doc: &'static str) -> OptionDescriptor {
    OptionDescriptor { key, option_type, default: Some(default), required: false, doc }
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
            Malformed::Field(problem) => write!(f, "field \"{}\" {}", problem.path, problem.reason),
        }
    }
}

impl JsonFormat {
    /// The format with the options of a table.
    pub fn from_options(options: &Options) -> Result<Self> {
        let reader = OptionReader::new(options);
        let format = JsonFormat {
            ignore_parse_errors: reader.boolean("json.ignore-parse-errors", false)?,
            fail_on_missing_field: reader.boolean("json.fail-on-missing-field", false)?,
            timestamp_format: match reader.word("json.timestamp-format.standard", &["SQL", "ISO-8601"], "SQL")? {
                "SQL" => TimestampFormat::Sql,
                _ => TimestampFormat::Iso8601,
            },
            map_null_key: match reader.word("json.map-null-key.mode", &["FAIL", "DROP", "LITERAL"], "FAIL")? {
                "FAIL" => MapNullKey::Fail,
                "DROP" => MapNullKey::Drop,
                _ => MapNullKey::Literal(reader.text("json.map-null-key.literal").unwrap_or("null").to_string()),
            },
            plain_decimals: reader.boolean("json.encode.decimal-as-plain-number", false)?,
            leave_out_nulls: reader.boolean("json.encode.ignore-null-fields", false)?,
        };
        if format.ignore_parse_errors && format.fail_on_missing_field {
            return Err(Error::new(
                ErrorKind::InvalidOption,
                "options 'json.fail-on-missing-field' and 'json.ignore-parse-errors' exclude each other",
            )
            .with_hint("set only one of them to true"));
        }
        Ok(format)
    }

    /// Whether all columns can be carried.
    pub fn check_schema(&self, physical: &Schema) -> Result<()> {
        physical.fields.iter().try_for_each(|field| check_type(&field.data_type, &field.name))
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

fn check_type(data_type: &DataType, column: &str) -> Result<()> {
    match &data_type.kind {
        TypeKind::IntervalYearMonth | TypeKind::IntervalDayTime => {
            Err(Error::unsupported(format!("type {} of column \"{column}\" in format 'json'", data_type.kind_text())))
        }
        TypeKind::Array(element) => check_type(element, column),
        TypeKind::Map(key, value) => check_key(data_type, key, column).and_then(|()| check_type(value, column)),
        TypeKind::Multiset(element) => check_key(data_type, element, column),
        TypeKind::Row(fields) => fields.iter().try_for_each(|field| check_type(&field.data_type, column)),
        _ => Ok(()),
    }
}

fn check_key(data_type: &DataType, key: &DataType, column: &str) -> Result<()> {
    if key.is_character() {
        return Ok(());
    }
    Err(Error::unsupported(format!("type {} of column \"{column}\" in format 'json'", data_type.kind_text()))
        .with_hint("JSON has only strings as keys of a map: declare the key as STRING"))
}
