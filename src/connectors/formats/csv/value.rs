//! The text of a field as a value.

use base64::Engine;

use super::CsvFormat;
use crate::connectors::formats::column::push;
use crate::connectors::formats::numbers::{ParsedDecimal, parse_decimal, parse_java_float};
use crate::connectors::formats::{Column, TimestampParser, Values, days_from_civil, parse_time_nanos};

/// The text of a field.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Where in the block they lie; none = elsewhere.
    pub offset: Option<usize>,
}

/// Reads values.
pub struct ValueReader {
    null_literal: Option<Vec<u8>>,
    array_delimiter: Vec<u8>,
    ignore_errors: bool,
    timestamps: TimestampParser,
}

impl ValueReader {
    /// By the options of the format.
    pub fn new(format: &CsvFormat) -> Self {
        ValueReader {
            null_literal: format.null_literal.as_ref().map(|literal| literal.as_bytes().to_vec()),
            array_delimiter: format.array_delimiter.as_bytes().to_vec(),
            ignore_errors: format.ignore_parse_errors,
            timestamps: TimestampParser::default(),
        }
    }

    /// Appends a value; false if it does not fit: then parts of it may have been appended.
    #[inline]
    pub fn read(&mut self, column: &mut Column, text: Text<'_>) -> bool {
        if self.null_literal.as_deref() == Some(text.bytes) {
            column.push_null();
            return true;
        }
        let bytes = text.bytes;
        if bytes.is_empty() && self.null_literal.is_none() && matches!(column.values, Values::Row(_)) {
            // A row has at least one element: this is how a NULL one is written.
            column.push_null();
            return true;
        }
        let fits = match &mut column.values {
            Values::Int64(values) => push(values, integer(bytes)),
            Values::Int32(values) => push(values, integer(bytes).and_then(|value| i32::try_from(value).ok())),
            Values::String(views) => {
                match text.offset {
                    Some(offset) => views.push_in_block(bytes, offset),
                    None => views.push_copy(bytes),
                }
                true
            }
            Values::Timestamp { values, precision, zoned } => {
                let text = if *zoned { bytes.strip_suffix(b"Z") } else { Some(bytes) };
                push(values, text.and_then(|text| self.timestamps.parse(text, b' ', false, *precision)))
            }
            Values::Array { .. } | Values::Row(_) => return self.read_elements(column, text),
            _ => read_other(column, bytes),
        };
        match fits {
            true if column_is_null(column) => true,
            true => {
                column.push_valid();
                true
            }
            false => false,
        }
    }

    /// An ARRAY or a ROW. An element that does not fit is NULL if errors are ignored.
    fn read_elements(&mut self, column: &mut Column, text: Text<'_>) -> bool {
        let mut elements = Elements { rest: (!text.bytes.is_empty()).then_some(text.bytes), offset: text.offset };
        let mut next = || elements.next(&self.array_delimiter);
        let mut texts = Vec::new();
        while let Some(element) = next() {
            texts.push(element);
        }
        let ignore_errors = self.ignore_errors;
        let mut element_into = |column: &mut Column, text: Text<'_>| {
            let row = column.len();
            if self.read(column, text) {
                return true;
            }
            column.truncate(row);
            column.push_null();
            ignore_errors
        };
        let fits = match &mut column.values {
            Values::Array { offsets, element } => {
                let fits = texts.into_iter().all(|text| element_into(element, text));
                offsets.push(element.len() as i32);
                fits
            }
            Values::Row(fields) => {
                if texts.is_empty() || texts.len() > fields.len() || (texts.len() < fields.len() && !ignore_errors) {
                    return false;
                }
                let mut texts = texts.into_iter();
                fields.iter_mut().all(|field| match texts.next() {
                    Some(text) => element_into(field, text),
                    None => {
                        field.push_null();
                        true
                    }
                })
            }
            _ => unreachable!("only ARRAY and ROW have elements"),
        };
        if fits {
            column.push_valid();
        }
        fits
    }
}

/// The parts of a field between delimiters.
struct Elements<'a> {
    rest: Option<&'a [u8]>,
    offset: Option<usize>,
}

impl<'a> Elements<'a> {
    fn next(&mut self, delimiter: &[u8]) -> Option<Text<'a>> {
        let rest = self.rest?;
        let offset = self.offset;
        let end = if delimiter.is_empty() { None } else { memchr::memmem::find(rest, delimiter) };
        let bytes = match end {
            Some(end) => {
                let after = end + delimiter.len();
                self.rest = Some(&rest[after..]);
                self.offset = offset.map(|offset| offset + after);
                &rest[..end]
            }
            None => {
                self.rest = None;
                rest
            }
        };
        Some(Text { bytes, offset })
    }
}

/// Whether the value was appended as NULL already: a DECIMAL with too many digits.
fn column_is_null(column: &Column) -> bool {
    matches!(&column.values, Values::Decimal { values, .. } if values.len() == column.len())
}

/// A whole number with blanks around it, as Java's `parseLong` of the trimmed text.
#[inline]
fn integer(bytes: &[u8]) -> Option<i64> {
    if bytes.is_empty() || bytes.len() > 18 || !bytes.iter().all(u8::is_ascii_digit) {
        return std::str::from_utf8(bytes).ok()?.trim().parse().ok();
    }
    Some(bytes.iter().fold(0, |sum, byte| sum * 10 + i64::from(byte - b'0')))
}

fn trimmed(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or("").trim()
}

/// The types that are seldom in a hot path.
fn read_other(column: &mut Column, bytes: &[u8]) -> bool {
    match &mut column.values {
        Values::Boolean(values) => push(values, Some(trimmed(bytes).eq_ignore_ascii_case("true"))),
        Values::Int8(values) => push(values, integer(bytes).and_then(|value| i8::try_from(value).ok())),
        Values::Int16(values) => push(values, integer(bytes).and_then(|value| i16::try_from(value).ok())),
        Values::Float32(values) => push(values, parse_java_float(trimmed(bytes)).map(|value| value as f32)),
        Values::Float64(values) => push(values, parse_java_float(trimmed(bytes))),
        Values::Decimal { values, precision, scale } => match parse_decimal(trimmed(bytes).as_bytes(), *precision, *scale) {
            ParsedDecimal::Value(value) => push(values, Some(value)),
            ParsedDecimal::TooLarge => {
                column.push_null();
                true
            }
            ParsedDecimal::Invalid => false,
        },
        Values::Date(values) => push(values, date(trimmed(bytes))),
        Values::Time(values) => {
            // The fraction is cut: Flink keeps whole seconds of a TIME in CSV.
            push(values, parse_time_nanos(bytes, true).map(|nanos| (nanos / 1_000_000_000) as i32 * 1000))
        }
        Values::Binary(views) => match base64::engine::general_purpose::STANDARD.decode(bytes) {
            Ok(bytes) => {
                views.push_copy(&bytes);
                true
            }
            Err(_) => false,
        },
        _ => false,
    }
}

/// A date as Java's `java.sql.Date.valueOf` reads it: month and day may have one digit, and a day that the month does not have runs
/// into the next month.
fn date(text: &str) -> Option<i32> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() != 4 || month.len() > 2 || day.len() > 2 {
        return None;
    }
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u32>().ok()).flatten();
    let (year, month, day) = (digits(year)?, digits(month)?, digits(day)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(days_from_civil(i64::from(year), month, 1) as i32 + day as i32 - 1)
}
