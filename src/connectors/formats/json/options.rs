//! The options of `json`, and those that the formats of changes share with it.

use super::{JsonFormat, MapNullKey, TimestampFormat};
use crate::catalog::{OptionDescriptor, Options};
use crate::config::SettingType;
use crate::connectors::options::{OptionReader, optional};
use crate::error::{Error, ErrorKind, Result};

/// The options that all formats of JSON have, after these.
macro_rules! with_shared_options {
    ($format:literal, $($own:expr),* $(,)?) => {
        &[
            $crate::connectors::options::optional(
                concat!($format, ".ignore-parse-errors"),
                $crate::config::SettingType::Boolean,
                "false",
                "Fields that cannot be read become NULL, broken records are skipped, instead of failing the job.",
            ),
            $($own,)*
            $crate::connectors::options::optional(
                concat!($format, ".timestamp-format.standard"),
                $crate::config::SettingType::OneOf(&["SQL", "ISO-8601"]),
                "SQL",
                "How timestamps are written: SQL is 'yyyy-MM-dd HH:mm:ss.s', ISO-8601 has a T between date and time.",
            ),
            $crate::connectors::options::optional(
                concat!($format, ".map-null-key.mode"),
                $crate::config::SettingType::OneOf(&["FAIL", "DROP", "LITERAL"]),
                "FAIL",
                "What becomes of a map entry with a NULL key when it is written.",
            ),
            $crate::connectors::options::optional(
                concat!($format, ".map-null-key.literal"),
                $crate::config::SettingType::Text,
                "null",
                "The key that replaces NULL in mode LITERAL.",
            ),
            $crate::connectors::options::optional(
                concat!($format, ".encode.decimal-as-plain-number"),
                $crate::config::SettingType::Boolean,
                "false",
                "Write decimals without exponent: 0.000000027 instead of 2.7E-8.",
            ),
            $crate::connectors::options::optional(
                concat!($format, ".encode.ignore-null-fields"),
                $crate::config::SettingType::Boolean,
                "false",
                "Leave out fields that are NULL when writing.",
            ),
        ]
    };
}
pub(super) use with_shared_options;

/// The options of the format.
pub const OPTIONS: &[OptionDescriptor] = with_shared_options!(
    "json",
    optional(
        "json.fail-on-missing-field",
        SettingType::Boolean,
        "false",
        "Fail when a record lacks a field; otherwise the field is NULL.",
    ),
    optional(
        "json.decode.json-parser.enabled",
        SettingType::Boolean,
        "true",
        "Accepted, no effect: there is one parser, and it is a streaming one.",
    ),
);

impl JsonFormat {
    /// The format with the options of a table.
    pub fn from_options(options: &Options) -> Result<Self> {
        let mut format = JsonFormat::with_shared_options("json", options)?;
        format.fail_on_missing_field = OptionReader::new(options).boolean("json.fail-on-missing-field", false)?;
        if format.ignore_parse_errors && format.fail_on_missing_field {
            return Err(Error::new(
                ErrorKind::InvalidOption,
                "options 'json.fail-on-missing-field' and 'json.ignore-parse-errors' exclude each other",
            )
            .with_hint("set only one of them to true"));
        }
        Ok(format)
    }

    /// What the format called `name` shares with `json`, with the options of a table.
    pub(super) fn with_shared_options(name: &'static str, options: &Options) -> Result<Self> {
        let reader = OptionReader::new(options);
        let key = |option: &str| format!("{name}.{option}");
        Ok(JsonFormat {
            name,
            ignore_parse_errors: reader.boolean(&key("ignore-parse-errors"), false)?,
            fail_on_missing_field: false,
            timestamp_format: match reader.word(&key("timestamp-format.standard"), &["SQL", "ISO-8601"], "SQL")? {
                "SQL" => TimestampFormat::Sql,
                _ => TimestampFormat::Iso8601,
            },
            map_null_key: match reader.word(&key("map-null-key.mode"), &["FAIL", "DROP", "LITERAL"], "FAIL")? {
                "FAIL" => MapNullKey::Fail,
                "DROP" => MapNullKey::Drop,
                _ => MapNullKey::Literal(reader.text(&key("map-null-key.literal")).unwrap_or("null").to_string()),
            },
            plain_decimals: reader.boolean(&key("encode.decimal-as-plain-number"), false)?,
            leave_out_nulls: reader.boolean(&key("encode.ignore-null-fields"), false)?,
        })
    }
}
