//! The `csv` format: fields by position, read straight into columns, written as Flink writes them.

mod decoder;
mod encoder;
mod fields;
#[cfg(test)]
mod tests;
mod value;

use super::{RecordDecoder, RecordEncoder};
use crate::catalog::{OptionDescriptor, Options};
use crate::config::SettingType;
use crate::connectors::options::{OptionReader, does_not_fit, optional, without_default};
use crate::error::{Error, Result};
use crate::types::{DataType, Schema, TypeKind};

/// The format with its options.
#[derive(Debug, Clone)]
pub struct CsvFormat {
    delimiter: u8,
    /// None = quotes have no meaning.
    quote: Option<u8>,
    escape: Option<u8>,
    comments: bool,
    ignore_parse_errors: bool,
    array_delimiter: String,
    null_literal: Option<String>,
    scientific_decimals: bool,
}

/// The options of the format.
pub const OPTIONS: &[OptionDescriptor] = &[
    optional("csv.field-delimiter", SettingType::Text, ",", "The character between fields; \\t is a tab."),
    optional("csv.quote-character", SettingType::Text, "\"", "The character around fields that hold delimiters or line ends."),
    optional("csv.disable-quote-character", SettingType::Boolean, "false", "Quotes have no meaning; excludes a quote character."),
    optional("csv.allow-comments", SettingType::Boolean, "false", "Leave out lines that begin with #."),
    optional(
        "csv.ignore-parse-errors",
        SettingType::Boolean,
        "false",
        "Fields that cannot be read become NULL, broken records are skipped, instead of failing the job.",
    ),
    optional("csv.array-element-delimiter", SettingType::Text, ";", "What stands between the elements of an ARRAY or ROW."),
    without_default("csv.escape-character", SettingType::Text, "The character that takes the meaning from the next one."),
    without_default("csv.null-literal", SettingType::Text, "The text of a field that is NULL."),
    optional(
        "csv.write-bigdecimal-in-scientific-notation",
        SettingType::Boolean,
        "true",
        "Write decimals as 1E+2 where that is shorter; otherwise plainly.",
    ),
];

impl CsvFormat {
    /// The format with the options of a table.
    pub fn from_options(options: &Options) -> Result<Self> {
        let reader = OptionReader::new(options);
        let character = |key: &str, default: Option<u8>| match reader.text(key) {
            None => Ok(default),
            Some(text) => single_character(text).map(Some).ok_or_else(|| does_not_fit(key, text, "a single ASCII character")),
        };
        let quote = character("csv.quote-character", Some(b'"'))?;
        let no_quotes = reader.boolean("csv.disable-quote-character", false)?;
        if no_quotes && reader.text("csv.quote-character").is_some() {
            return Err(does_not_fit("csv.disable-quote-character", "true", "either it or 'csv.quote-character'"));
        }
        Ok(CsvFormat {
            delimiter: character("csv.field-delimiter", Some(b','))?.unwrap_or(b','),
            quote: quote.filter(|_| !no_quotes),
            escape: character("csv.escape-character", None)?,
            comments: reader.boolean("csv.allow-comments", false)?,
            ignore_parse_errors: reader.boolean("csv.ignore-parse-errors", false)?,
            array_delimiter: reader.text("csv.array-element-delimiter").unwrap_or(";").to_string(),
            null_literal: reader.text("csv.null-literal").map(String::from),
            scientific_decimals: reader.boolean("csv.write-bigdecimal-in-scientific-notation", true)?,
        })
    }

    /// Whether all columns can be carried.
    pub fn check_schema(&self, physical: &Schema) -> Result<()> {
        physical.fields.iter().try_for_each(|field| check_type(&field.data_type, &field.name, 0))
    }

    /// Whether a line end always ends a record.
    pub fn has_one_record_a_line(&self) -> bool {
        self.quote.is_none() && self.escape.is_none()
    }

    /// A decoder of the projected columns.
    pub fn decoder(&self, physical: &Schema, projection: &[usize]) -> Result<Box<dyn RecordDecoder>> {
        Ok(Box::new(decoder::CsvDecoder::new(self, physical, projection)?))
    }

    /// An encoder of rows of this schema.
    pub fn encoder(&self, schema: &Schema) -> Result<Box<dyn RecordEncoder>> {
        Ok(Box::new(encoder::CsvEncoder::new(self.clone(), schema)))
    }
}

/// The one character of an option, escapes of Java (`\t`, `\u0001`) resolved.
fn single_character(text: &str) -> Option<u8> {
    let byte = match text {
        "\\t" => b'\t',
        "\\\\" => b'\\',
        "\\n" | "\\r" => return None,
        _ => match text.strip_prefix("\\u") {
            Some(hex) => u8::try_from(u32::from_str_radix(hex, 16).ok()?).ok()?,
            None => *text.as_bytes().first().filter(|_| text.len() == 1)?,
        },
    };
    (byte.is_ascii() && byte != b'\n' && byte != b'\r').then_some(byte)
}

fn check_type(data_type: &DataType, column: &str, depth: usize) -> Result<()> {
    let unsupported =
        || Err(Error::unsupported(format!("type {} of column \"{column}\" in format 'csv'", data_type.kind_text())));
    match &data_type.kind {
        TypeKind::Map(..)
        | TypeKind::Multiset(_)
        | TypeKind::IntervalYearMonth
        | TypeKind::IntervalDayTime
        | TypeKind::Bitmap
        | TypeKind::Variant => unsupported(),
        // A field can be cut into elements, an element cannot.
        TypeKind::Array(_) | TypeKind::Row(_) | TypeKind::Structured(..) if depth > 0 => unsupported(),
        TypeKind::Array(element) => check_type(element, column, depth + 1),
        TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
            fields.iter().try_for_each(|field| check_type(&field.data_type, column, depth + 1))
        }
        _ => Ok(()),
    }
}
