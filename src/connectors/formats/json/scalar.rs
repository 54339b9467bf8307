//! Scalar values, each with the leniency that Flink has: numbers may be quoted, fractions are cut for INT, any value is a STRING.

use base64::Engine;

use super::Malformed;
use super::cursor::{Cursor, RawString};
use super::minify::minify;
use super::object::Rules;
use crate::connectors::formats::column::push;
use crate::connectors::formats::numbers::{ParsedDecimal, parse_decimal, parse_java_float};
use crate::connectors::formats::{Column, Values, parse_date, parse_time_nanos};

type Parsed<T> = std::result::Result<T, Malformed>;

/// Appends the value at the cursor; false if it does not fit the type: then it is passed, and nothing is appended.
#[inline]
pub fn decode(column: &mut Column, cursor: &mut Cursor<'_>, rules: &mut Rules) -> Parsed<bool> {
    let first = cursor.peek_token();
    if first == b'n' {
        cursor.word()?;
        column.push_null();
        return Ok(true);
    }
    let pushed = match &mut column.values {
        Values::Int64(values) => match short_integer(cursor) {
            Some(value) => push(values, Some(value)),
            None => push(values, integer(cursor, first)?),
        },
        Values::Int32(values) => {
            let value = match short_integer(cursor) {
                Some(value) => Some(value),
                None => integer(cursor, first)?,
            };
            push(values, value.and_then(|value| i32::try_from(value).ok()))
        }
        Values::String(views) => match first {
            b'"' => {
                let text = cursor.string()?;
                if text.escaped {
                    rules.scratch.clear();
                    text.unescape(&mut rules.scratch);
                    views.push_copy(&rules.scratch);
                } else {
                    views.push_in_block(text.bytes, text.offset);
                }
                true
            }
            b'{' | b'[' => {
                let value = cursor.skip_value()?;
                rules.scratch.clear();
                minify(value, &mut rules.scratch);
                views.push_copy(&rules.scratch);
                true
            }
            _ => {
                let value = cursor.skip_value()?;
                views.push_in_block(value, cursor.base + cursor.at - value.len());
                true
            }
        },
        Values::Timestamp { values, precision, zoned } => {
            let (precision, zoned) = (*precision, *zoned);
            let value = with_text(cursor, rules, |text, rules| {
                let text = if zoned { text.strip_suffix(b"Z")? } else { text };
                rules.timestamps.parse(text, rules.separator, rules.short_times, precision)
            })?;
            push(values, value)
        }
        _ => return decode_other(column, cursor, rules, first),
    };
    if pushed {
        column.push_valid();
    }
    Ok(pushed)
}

/// The types that are seldom in a hot path.
fn decode_other(column: &mut Column, cursor: &mut Cursor<'_>, rules: &mut Rules, first: u8) -> Parsed<bool> {
    let pushed = match &mut column.values {
        Values::Boolean(values) => push(values, Some(boolean(cursor, rules, first)?)),
        Values::Int8(values) => push(values, small(cursor, rules)?.and_then(|value| i8::try_from(value).ok())),
        Values::Int16(values) => push(values, small(cursor, rules)?.and_then(|value| i16::try_from(value).ok())),
        Values::Float32(values) => {
            push(values, number_text(cursor, rules, |text| parse_java_float(text).map(|v: f64| v as f32))?)
        }
        Values::Float64(values) => push(values, number_text(cursor, rules, parse_java_float)?),
        Values::Decimal { values, precision, scale } => {
            let (precision, scale) = (*precision, *scale);
            match number_text(cursor, rules, |text| Some(parse_decimal(text.as_bytes(), precision, scale)))? {
                Some(ParsedDecimal::Value(value)) => push(values, Some(value)),
                Some(ParsedDecimal::TooLarge) => {
                    column.push_null();
                    return Ok(true);
                }
                _ => false,
            }
        }
        Values::Date(values) => push(values, with_text(cursor, rules, |text, _| parse_date(text))?),
        Values::Time(values) => {
            let nanos = with_text(cursor, rules, |text, _| parse_time_nanos(text, false))?;
            push(values, nanos.map(|nanos| (nanos / 1_000_000) as i32))
        }
        Values::Binary(views) => {
            let bytes = with_text(cursor, rules, |text, _| base64::engine::general_purpose::STANDARD.decode(text).ok())?;
            if let Some(bytes) = &bytes {
                views.push_copy(bytes);
            }
            bytes.is_some()
        }
        Values::Null => {
            cursor.skip_value()?;
            false
        }
        _ => unreachable!("a scalar shape has a scalar column"),
    };
    if pushed {
        column.push_valid();
    }
    Ok(pushed)
}

/// Appends a key to a column of strings.
pub fn push_string(column: &mut Column, text: &RawString<'_>, rules: &mut Rules) {
    let Values::String(views) = &mut column.values else { unreachable!("keys of JSON are strings") };
    if text.escaped {
        rules.scratch.clear();
        text.unescape(&mut rules.scratch);
        views.push_copy(&rules.scratch);
    } else {
        views.push_in_block(text.bytes, text.offset);
    }
    column.push_valid();
}

/// Digits alone, at most 18 of them, with a comma or brace right after: nearly every integer there is. Otherwise the cursor stays.
#[inline(always)]
fn short_integer(cursor: &mut Cursor<'_>) -> Option<i64> {
    let rest = cursor.line.get(cursor.at..)?;
    let mut value = 0i64;
    let mut length = 0;
    for byte in rest.iter().take(18) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value * 10 + i64::from(digit);
        length += 1;
    }
    let ends = matches!(rest.get(length), Some(b',' | b'}'));
    if length == 0 || !ends || (rest[0] == b'0' && length > 1) {
        return None;
    }
    cursor.at += length;
    Some(value)
}

/// A whole number from any value: fractions of numbers are cut, strings must be whole.
#[cold]
fn integer(cursor: &mut Cursor<'_>, first: u8) -> Parsed<Option<i64>> {
    match first {
        b'"' => {
            let text = cursor.string()?;
            Ok(std::str::from_utf8(text.bytes).ok().and_then(|text| text.trim().parse().ok()))
        }
        b'-' | b'0'..=b'9' => {
            let (text, whole) = cursor.number()?;
            let text = std::str::from_utf8(text).unwrap_or("");
            if whole {
                return Ok(text.parse().ok());
            }
            let value: f64 = text.parse().unwrap_or(f64::NAN);
            Ok((value > -9.3e18 && value < 9.3e18 && value.trunc() as i128 == i128::from(value as i64)).then_some(value as i64))
        }
        _ => cursor.skip_value().map(|_| None),
    }
}

/// A whole number for TINYINT and SMALLINT: as text, so that a fraction is an error.
fn small(cursor: &mut Cursor<'_>, rules: &mut Rules) -> Parsed<Option<i64>> {
    number_text(cursor, rules, |text| text.parse().ok())
}

fn boolean(cursor: &mut Cursor<'_>, rules: &mut Rules, first: u8) -> Parsed<bool> {
    match first {
        b't' | b'f' => Ok(cursor.word()? == b"true"),
        b'"' => Ok(with_text(cursor, rules, |text, _| Some(text.trim_ascii().eq_ignore_ascii_case(b"true")))?.unwrap_or(false)),
        _ => cursor.skip_value().map(|_| false),
    }
}

/// What `parse` makes of a number or of a string without its outer blanks.
fn number_text<T>(cursor: &mut Cursor<'_>, rules: &mut Rules, parse: impl Fn(&str) -> Option<T>) -> Parsed<Option<T>> {
    match cursor.peek() {
        b'"' => with_text(cursor, rules, |text, _| std::str::from_utf8(text).ok().and_then(|text| parse(text.trim()))),
        b'-' | b'0'..=b'9' => {
            let (text, _) = cursor.number()?;
            Ok(std::str::from_utf8(text).ok().and_then(parse))
        }
        _ => cursor.skip_value().map(|_| None),
    }
}

/// What `parse` makes of a string; none for other values.
#[inline]
fn with_text<T>(
    cursor: &mut Cursor<'_>,
    rules: &mut Rules,
    parse: impl FnOnce(&[u8], &mut Rules) -> Option<T>,
) -> Parsed<Option<T>> {
    if cursor.peek() != b'"' {
        cursor.skip_value()?;
        return Ok(None);
    }
    let text = cursor.string()?;
    if !text.escaped {
        return Ok(parse(text.bytes, rules));
    }
    let mut unescaped = Vec::new();
    text.unescape(&mut unescaped);
    Ok(parse(&unescaped, rules))
}
