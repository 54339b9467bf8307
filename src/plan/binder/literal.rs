//! Literals and their types, as Flink gives them: `'abc'` is CHAR(3) NOT NULL, `1` INT, `0.12` DECIMAL(3, 2), `1e3` DOUBLE.

use sqlparser::ast::{self, DateTimeField, Spanned, Value as SqlValue, ValueWithSpan};

use super::span::Located;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::Expr;
use crate::types::{DataType, TIME_PRECISION_MAX, TypeKind, Value};

/// Digits that a DECIMAL can have.
const MAX_DECIMAL_DIGITS: usize = 38;

/// A literal.
pub(super) fn bind_value(literal: &ValueWithSpan) -> Result<Expr> {
    let ValueWithSpan { value, span: _ } = literal;
    match value {
        SqlValue::Number(text, _long_suffix) => number(text, false),
        SqlValue::SingleQuotedString(text)
        | SqlValue::NationalStringLiteral(text)
        | SqlValue::UnicodeStringLiteral(text)
        | SqlValue::EscapedStringLiteral(text) => Ok(string(text)),
        SqlValue::HexStringLiteral(text) => binary(text),
        SqlValue::Boolean(value) => Ok(Expr::literal(Value::Boolean(*value), DataType::not_null(TypeKind::Boolean))),
        SqlValue::Null => Ok(Expr::literal(Value::Null, DataType::nullable(TypeKind::Null))),
        SqlValue::DoubleQuotedString(text) => Err(Error::new(ErrorKind::Syntax, format!("\"{text}\" is no string in Flink SQL"))
            .with_hint("put strings in single quotes and identifiers in back-ticks")),
        SqlValue::Placeholder(text) => Err(Error::unsupported(format!("the placeholder {text}"))),
        other => Err(Error::unsupported(format!("the literal {other}"))),
    }
    .at_node(literal)
}

/// A string literal.
pub(super) fn string(text: &str) -> Expr {
    let length = u32::try_from(text.encode_utf16().count()).unwrap_or(crate::types::VARCHAR_MAX);
    Expr::literal(Value::String(text.to_string()), DataType::not_null(TypeKind::Char(length)))
}

/// An INT literal.
pub(super) fn int(value: i32) -> Expr {
    Expr::literal(Value::Int(value), DataType::not_null(TypeKind::Int))
}

/// A number: INT, BIGINT or DECIMAL by size, DECIMAL with a fraction, DOUBLE with an exponent.
pub(super) fn number(text: &str, negative: bool) -> Result<Expr> {
    let out_of_range =
        || Error::new(ErrorKind::NumericOutOfRange, format!("numeric literal '{text}' is out of range: more than 38 digits"));
    if text.contains(['e', 'E']) {
        let value: f64 = text.parse().map_err(|_| Error::new(ErrorKind::Syntax, format!("'{text}' is not a number")))?;
        if value.is_infinite() {
            return Err(Error::new(ErrorKind::NumericOutOfRange, format!("numeric literal '{text}' is out of range")));
        }
        return Ok(Expr::literal(Value::Double(if negative { -value } else { value }), DataType::not_null(TypeKind::Double)));
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction}");
    let magnitude: i128 = digits.parse().map_err(|_| out_of_range())?;
    let value = if negative { -magnitude } else { magnitude };
    if fraction.is_empty() {
        if let Ok(value) = i32::try_from(value) {
            return Ok(int(value));
        }
        if let Ok(value) = i64::try_from(value) {
            return Ok(Expr::literal(Value::BigInt(value), DataType::not_null(TypeKind::BigInt)));
        }
    }
    let precision = if fraction.is_empty() { digits.trim_start_matches('0').len() } else { digits.len() };
    if precision > MAX_DECIMAL_DIGITS {
        return Err(out_of_range());
    }
    let kind = TypeKind::Decimal(precision as u8, fraction.len() as u8);
    Ok(Expr::literal(Value::Decimal(value), DataType::not_null(kind)))
}

/// `x'0aff'`.
fn binary(text: &str) -> Result<Expr> {
    let invalid = |message: &str| Error::new(ErrorKind::Syntax, format!("binary literal x'{text}' {message}"));
    if !text.is_ascii() || text.bytes().any(|byte| !byte.is_ascii_hexdigit()) {
        return Err(invalid("holds other characters than hexadecimal digits"));
    }
    if text.len() % 2 == 1 {
        return Err(invalid("must contain an even number of hexadecimal digits"));
    }
    let bytes: Vec<u8> = (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("two hexadecimal digits make a byte"))
        .collect();
    let kind = TypeKind::Binary(bytes.len() as u32);
    Ok(Expr::literal(Value::Bytes(bytes), DataType::not_null(kind)))
}

/// `DATE '…'`, `TIME '…'`, `TIMESTAMP '…'`.
pub(super) fn typed_string(literal: &ast::TypedString) -> Result<Expr> {
    let ast::TypedString { data_type, value, uses_odbc_syntax: _ } = literal;
    let Some(text) = value.value.clone().into_string() else {
        return Err(Error::unsupported(format!("the literal {literal}")));
    };
    let span = super::span::convert(data_type_span(literal));
    let typed = match data_type {
        ast::DataType::Date => date(&text),
        ast::DataType::Time(_, ast::TimezoneInfo::None) => time(&text),
        ast::DataType::Timestamp(_, ast::TimezoneInfo::None) => timestamp(&text),
        other => {
            Err(Error::unsupported(format!("the literal {other} '{text}'")).with_hint(format!("use CAST('{text}' AS {other})")))
        }
    };
    typed.at_span(span)
}

fn data_type_span(literal: &ast::TypedString) -> sqlparser::tokenizer::Span {
    literal.value.span()
}

fn illegal(kind: &str, text: &str, format: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("illegal {kind} literal '{text}': not in format '{format}'"))
}

fn date(text: &str) -> Result<Expr> {
    let date = parse_date(text).ok_or_else(|| illegal("DATE", text, "yyyy-MM-dd"))?;
    Ok(Expr::literal(Value::Date(days(date)), DataType::not_null(TypeKind::Date)))
}

fn time(text: &str) -> Result<Expr> {
    let (nanos, precision) = parse_time(text).ok_or_else(|| illegal("TIME", text, "HH:mm:ss"))?;
    Ok(Expr::literal(
        Value::Time((nanos / 1_000_000) as i32),
        DataType::not_null(TypeKind::Time(precision.min(TIME_PRECISION_MAX))),
    ))
}

fn timestamp(text: &str) -> Result<Expr> {
    let format = || illegal("TIMESTAMP", text, "yyyy-MM-dd HH:mm:ss");
    let (date, time) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let date = parse_date(date).ok_or_else(format)?;
    let (nanos, precision) = parse_time(time).ok_or_else(format)?;
    let units_per_second = DataType::units_per_ms(precision) * 1_000;
    let value = (i64::from(days(date)) * 86_400)
        .checked_mul(units_per_second)
        .and_then(|units| units.checked_add(nanos / (1_000_000_000 / units_per_second)))
        .ok_or_else(|| Error::new(ErrorKind::NumericOutOfRange, format!("TIMESTAMP literal '{text}' is out of range")))?;
    Ok(Expr::literal(Value::Timestamp(value), DataType::not_null(TypeKind::Timestamp(precision))))
}

fn parse_date(text: &str) -> Option<chrono::NaiveDate> {
    chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()
}

fn days(date: chrono::NaiveDate) -> i32 {
    let epoch = chrono::NaiveDate::from_ymd_opt(1970, 1, 1).expect("the epoch is a date");
    i32::try_from(date.signed_duration_since(epoch).num_days()).expect("chrono's dates fit 32 bits of days")
}

/// `HH:mm:ss[.f]`: nanoseconds of the day and number of fraction digits.
fn parse_time(text: &str) -> Option<(i64, u8)> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.split(':').map(|part| part.parse::<i64>().ok().filter(|_| part.len() <= 2 && !part.starts_with('+')));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let in_range = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    if parts.next().is_some() || !in_range || fraction.len() > 9 || fraction.bytes().any(|byte| !byte.is_ascii_digit()) {
        return None;
    }
    let fraction_nanos: i64 = if fraction.is_empty() { 0 } else { format!("{fraction:0<9}").parse().ok()? };
    Some((((hour * 60 + minute) * 60 + second) * 1_000_000_000 + fraction_nanos, fraction.len() as u8))
}

/// `INTERVAL '…' unit [TO unit]`.
pub(super) fn interval(literal: &ast::Interval) -> Result<Expr> {
    let ast::Interval { value, leading_field, leading_precision, last_field, fractional_seconds_precision } = literal;
    let _ = (leading_precision, fractional_seconds_precision); // they bound digits; the value is exact without them
    let (negative, text) = interval_text(value)?;
    let Some(leading) = leading_field else {
        return Err(Error::new(ErrorKind::Syntax, "an INTERVAL needs a unit").with_hint("write INTERVAL '5' SECOND"));
    };
    let illegal = || {
        let to = last_field.as_ref().map_or(String::new(), |last| format!(" TO {last}"));
        Error::new(ErrorKind::InvalidArgument, format!("illegal interval literal format '{text}' for INTERVAL {leading}{to}"))
    };
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (!negative, rest),
        None => (negative, text.strip_prefix('+').unwrap_or(&text)),
    };
    let span = parse_interval(digits, leading, last_field.as_ref()).ok_or_else(illegal)?;
    let out_of_range = || Error::new(ErrorKind::NumericOutOfRange, format!("interval '{text}' {leading} is out of range"));
    match span {
        IntervalLength::Months(months) => {
            let months = i32::try_from(if negative { -months } else { months }).map_err(|_| out_of_range())?;
            Ok(Expr::literal(Value::IntervalYearMonth(months), DataType::not_null(TypeKind::IntervalYearMonth)))
        }
        IntervalLength::Millis(millis) => {
            let millis = if negative { -millis } else { millis };
            Ok(Expr::literal(Value::IntervalDayTime(millis), DataType::not_null(TypeKind::IntervalDayTime)))
        }
    }
}

/// The text of an interval and whether a minus stands before it: `INTERVAL -'3' HOUR`.
fn interval_text(value: &ast::Expr) -> Result<(bool, String)> {
    match value {
        ast::Expr::Value(value) => match value.value.clone() {
            SqlValue::Number(text, _) => Ok((false, text)),
            other => match other.into_string() {
                Some(text) => Ok((false, text.trim().to_string())),
                None => Err(Error::new(ErrorKind::Syntax, "the length of an INTERVAL must be a string").at_node(value)),
            },
        },
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => {
            interval_text(expr).map(|(negative, text)| (!negative, text))
        }
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Plus, expr } => interval_text(expr),
        other => Err(Error::unsupported("an INTERVAL with a length that is not constant")
            .with_hint("multiply instead: x * INTERVAL '1' SECOND")
            .at_node(other)),
    }
}

enum IntervalLength {
    Months(i64),
    Millis(i64),
}

/// The fields from days down to seconds, with their milliseconds, and how many of the next finer one they hold.
const DAY_TIME: [(&str, i64); 4] = [("DAY", 86_400_000), ("HOUR", 3_600_000), ("MINUTE", 60_000), ("SECOND", 1_000)];

fn parse_interval(text: &str, leading: &DateTimeField, last: Option<&DateTimeField>) -> Option<IntervalLength> {
    let unit = |field: &DateTimeField| {
        let name = field.to_string().to_uppercase();
        name.strip_suffix('S').map_or(name.clone(), str::to_string)
    };
    let leading = unit(leading);
    let Some(last) = last.map(unit) else { return parse_single(text, &leading) };
    if leading == "YEAR" && last == "MONTH" {
        let (years, months) = text.split_once('-')?;
        let months = whole(months).filter(|months| *months < 12)?;
        return Some(IntervalLength::Months(whole(years)?.checked_mul(12)?.checked_add(months)?));
    }
    let first = DAY_TIME.iter().position(|(name, _)| *name == leading)?;
    let end = DAY_TIME.iter().position(|(name, _)| *name == last).filter(|end| *end > first)?;
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = text;
    if first == 0 {
        let (days, time) = rest.split_once(' ')?;
        parts.push(days);
        rest = time.trim_start();
    }
    parts.extend(rest.split(':'));
    if parts.len() != end - first + 1 {
        return None;
    }
    let mut total: i64 = 0;
    for (position, part) in parts.iter().enumerate() {
        let (name, millis) = DAY_TIME[first + position];
        let value = if name == "SECOND" { seconds_as_millis(part)? } else { whole(part)?.checked_mul(millis)? };
        let limit = [i64::MAX, 86_400_000, 3_600_000, 60_000][first + position];
        if position > 0 && value >= limit {
            return None;
        }
        total = total.checked_add(value)?;
    }
    Some(IntervalLength::Millis(total))
}

fn parse_single(text: &str, unit: &str) -> Option<IntervalLength> {
    let millis = |factor: i64| whole(text)?.checked_mul(factor).map(IntervalLength::Millis);
    let months = |factor: i64| whole(text)?.checked_mul(factor).map(IntervalLength::Months);
    match unit {
        "YEAR" => months(12),
        "QUARTER" => months(3),
        "MONTH" => months(1),
        "WEEK" => millis(7 * 86_400_000),
        "DAY" => millis(86_400_000),
        "HOUR" => millis(3_600_000),
        "MINUTE" => millis(60_000),
        "SECOND" => seconds_as_millis(text).map(IntervalLength::Millis),
        _ => None,
    }
}

fn whole(text: &str) -> Option<i64> {
    if text.is_empty() || text.bytes().any(|byte| !byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn seconds_as_millis(text: &str) -> Option<i64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = if fraction.is_empty() { 0 } else { whole(&format!("{fraction:0<3}")[..3])? };
    whole(seconds)?.checked_mul(1_000)?.checked_add(fraction)
}
