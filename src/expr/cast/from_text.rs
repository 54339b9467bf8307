//! From strings: what Flink reads as a number, a truth value, a date or a time.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, BooleanBuilder, PrimitiveArray, StringViewArray};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType,
};

use super::kernel::Cast;
use super::to_text::build_bytes;
use crate::error::{Error, Result};
use crate::expr::datetime::{MS_PER_DAY, Ymd, days_of_month};
use crate::expr::values::timestamps_of_units;
use crate::expr::{decimal, zone};
use crate::types::{DataType, TimeZone, TypeKind};

/// Casts strings to what is no string.
pub(super) fn cast(array: &ArrayRef, cast: &Cast, zone: TimeZone) -> Result<ArrayRef> {
    let texts = array.as_string_view();
    Ok(match &cast.to.kind {
        TypeKind::Boolean => Arc::new(booleans(texts, cast)?),
        TypeKind::TinyInt => parse::<Int8Type>(texts, cast, |text| parse_integer(text)?.try_into().ok())?,
        TypeKind::SmallInt => parse::<Int16Type>(texts, cast, |text| parse_integer(text)?.try_into().ok())?,
        TypeKind::Int => parse::<Int32Type>(texts, cast, |text| parse_integer(text)?.try_into().ok())?,
        TypeKind::BigInt => parse::<Int64Type>(texts, cast, |text| parse_integer(text)?.try_into().ok())?,
        TypeKind::Float => parse::<Float32Type>(texts, cast, parse_float)?,
        TypeKind::Double => parse::<Float64Type>(texts, cast, parse_double)?,
        TypeKind::Decimal(precision, scale) => Arc::new(decimals(texts, cast, *precision, *scale)?),
        TypeKind::Date => parse::<Date32Type>(texts, cast, parse_date)?,
        TypeKind::Time(precision) => {
            let step = 10_i32.pow(3 - u32::from(*precision).min(3));
            parse::<Time32MillisecondType>(texts, cast, |text| parse_time(text).map(|ms| ms / step * step))?
        }
        TypeKind::Timestamp(precision) | TypeKind::TimestampLtz(precision) => {
            let local = matches!(cast.to.kind, TypeKind::TimestampLtz(_));
            let units_per_ms = DataType::units_per_ms(*precision);
            let units = parse_array::<Int64Type>(texts, cast, |text| {
                let units = parse_timestamp(text, *precision)?;
                Some(if local { zone::to_instant_units(units, units_per_ms, zone) } else { units })
            })?;
            timestamps_of_units(&units, &cast.to.to_arrow())
        }
        kind @ (TypeKind::Binary(_) | TypeKind::Varbinary(_)) => {
            build_bytes(texts.len(), kind, |row| (!texts.is_null(row)).then(|| texts.value(row).as_bytes()))
        }
        other => return Err(Error::internal(format!("no cast from a string to {other:?}"))),
    })
}

fn parse<T: ArrowPrimitiveType>(
    texts: &StringViewArray,
    cast: &Cast,
    read: impl Fn(&str) -> Option<T::Native>,
) -> Result<ArrayRef> {
    Ok(Arc::new(parse_array::<T>(texts, cast, read)?))
}

fn parse_array<T: ArrowPrimitiveType>(
    texts: &StringViewArray,
    cast: &Cast,
    read: impl Fn(&str) -> Option<T::Native>,
) -> Result<PrimitiveArray<T>> {
    let mut builder = PrimitiveArray::<T>::builder(texts.len());
    for text in texts {
        let value = match text {
            None => None,
            Some(text) => match read(text) {
                None => cast.reject(text)?,
                value => value,
            },
        };
        builder.append_option(value);
    }
    Ok(builder.finish())
}

fn booleans(texts: &StringViewArray, cast: &Cast) -> Result<BooleanArray> {
    let mut builder = BooleanBuilder::with_capacity(texts.len());
    for text in texts {
        let value = match text {
            None => None,
            Some(text) => match parse_boolean(text) {
                None => cast.reject(text)?,
                value => value,
            },
        };
        builder.append_option(value);
    }
    Ok(builder.finish())
}

fn decimals(texts: &StringViewArray, cast: &Cast, precision: u8, scale: u8) -> Result<PrimitiveArray<Decimal128Type>> {
    let mut builder = PrimitiveArray::<Decimal128Type>::builder(texts.len());
    for text in texts {
        let value = match text {
            None => None,
            Some(text) => match parse_decimal(text, precision, scale) {
                Parsed::Number(value) => Some(value),
                Parsed::TooLong => None, // as in Flink, also for CAST
                Parsed::NoNumber => cast.reject(text)?,
            },
        };
        builder.append_option(value);
    }
    Ok(builder.finish().with_data_type(ArrowType::Decimal128(precision, scale as i8)))
}

fn parse_boolean(text: &str) -> Option<bool> {
    let is_one_of = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_one_of(&["t", "true", "y", "yes", "1"]) {
        Some(true)
    } else if is_one_of(&["f", "false", "n", "no", "0"]) {
        Some(false)
    } else {
        None
    }
}

/// An integer, with blanks around; digits after a decimal point are cut off.
fn parse_integer(text: &str) -> Option<i128> {
    let text = text.trim_matches(' ');
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || !all_digits(whole) || !all_digits(fraction) || whole.len() > 38 {
        return None;
    }
    let number = whole.bytes().fold(0_i128, |number, digit| number * 10 + i128::from(digit - b'0'));
    Some(if negative { -number } else { number })
}

/// The digits of a floating-point number as Java reads it; none = it is none.
fn float_text(text: &str) -> Option<&str> {
    let text = text.trim_matches(|c: char| c <= ' ');
    match text.strip_prefix(['+', '-']).unwrap_or(text) {
        // One NaN, whatever its sign.
        "NaN" => return Some("NaN"),
        "Infinity" => return Some(text),
        _ => {}
    }
    let text = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')).then_some(text)
}

/// A DOUBLE as Java reads it.
pub(in crate::expr) fn parse_double(text: &str) -> Option<f64> {
    float_text(text)?.parse().ok()
}

fn parse_float(text: &str) -> Option<f32> {
    float_text(text)?.parse().ok()
}

/// What a text is as a DECIMAL.
pub(super) enum Parsed {
    Number(i128),
    TooLong,
    NoNumber,
}

/// A DECIMAL in plain or scientific notation, rounded HALF_UP to the scale.
pub(super) fn parse_decimal(text: &str, precision: u8, scale: u8) -> Parsed {
    let text = text.trim_matches(|c: char| c <= ' ');
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => match exponent.parse::<i32>() {
            Ok(exponent) if !exponent.to_string().is_empty() => (mantissa, exponent),
            _ => return Parsed::NoNumber,
        },
        None => (text, 0),
    };
    let (negative, mantissa) = match mantissa.as_bytes().first() {
        Some(b'-') => (true, &mantissa[1..]),
        Some(b'+') => (false, &mantissa[1..]),
        _ => (false, mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return Parsed::NoNumber;
    }
    // Digits up to one behind the last that counts; that one decides the rounding.
    let point = whole.len() as i64 + i64::from(exponent);
    let kept = point + i64::from(scale);
    let mut number = 0_i128;
    let mut digits = whole.bytes().chain(fraction.bytes()).map(|byte| i128::from(byte - b'0'));
    for _ in 0..kept.max(0) {
        let digit = match digits.next() {
            Some(digit) => digit,
            None if number == 0 => break,
            None => 0,
        };
        let longer = number.checked_mul(10).map(|number| number + digit);
        match longer.and_then(|longer| decimal::fit(longer, decimal::PRECISION_MAX)) {
            Some(longer) => number = longer,
            None => return Parsed::TooLong,
        }
    }
    if kept >= 0 && digits.next().is_some_and(|digit| digit >= 5) {
        number += 1;
    }
    match decimal::fit(number, precision) {
        Some(number) => Parsed::Number(if negative { -number } else { number }),
        None => Parsed::TooLong,
    }
}

fn small_number(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let valid = digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if valid { text.parse().ok() } else { None }
}

/// A DATE: `2024-01-31`, also without day or month, with blanks around and a time behind.
pub(in crate::expr) fn parse_date(text: &str) -> Option<i32> {
    let text = text.trim();
    let text = text.split_once(' ').map_or(text, |(date, _)| date);
    let mut parts = text.splitn(3, '-');
    let year = small_number(parts.next()?, 1..=4)?;
    let mut part = || parts.next().map_or(Some(1), |text| small_number(text, 1..=2));
    let (month, day) = (part()?, part()?);
    Ymd::checked(year.into(), month, day).map(|date| date.to_days() as i32)
}

/// A TIME: `12:30:00.123`, also without seconds or minutes; milliseconds of the day, rounded.
pub(in crate::expr) fn parse_time(text: &str) -> Option<i32> {
    let mut parts = text.trim().splitn(3, ':');
    let hour = small_number(parts.next()?.trim(), 1..=2)?;
    let minute = parts.next().map_or(Some(0), |text| small_number(text.trim(), 1..=2))?;
    let seconds = parts.next().unwrap_or("0").trim();
    let (second, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let second = small_number(second, 1..=2)?;
    let nanos = fraction_nanos(fraction)?;
    if hour >= 24 || minute >= 60 || second >= 60 {
        return None;
    }
    let ms = ((hour * 60 + minute) * 60 + second) as i32 * 1_000 + ((nanos + 500_000) / 1_000_000) as i32;
    // Flink rounds the last moment of a day to a time that it then cannot show.
    Some(ms.min(MS_PER_DAY as i32 - 1))
}

/// The nanoseconds of up to nine digits of a fraction.
fn fraction_nanos(fraction: &str) -> Option<i64> {
    if fraction.is_empty() {
        return Some(0);
    }
    let number = small_number(fraction, 1..=9)?;
    Some(i64::from(number) * 10_i64.pow(9 - fraction.len() as u32))
}

/// A TIMESTAMP: `2024-01-31 12:30:00[.fraction]` or a date alone, without blanks around; units of its precision, cut to it.
pub(in crate::expr) fn parse_timestamp(text: &str, precision: u8) -> Option<i64> {
    let (date, time) = text.split_once(' ').map_or((text, None), |(date, time)| (date, Some(time)));
    let mut parts = date.splitn(3, '-');
    let year = small_number(parts.next()?, 4..=4)?;
    let (month, day) = (small_number(parts.next()?, 1..=2)?, small_number(parts.next()?, 1..=2)?);
    if year == 0 || day > 31 {
        return None;
    }
    // A day behind the end of its month is its last one.
    let day = day.min(days_of_month(year.into(), month));
    let days = Ymd::checked(year.into(), month, day)?.to_days();
    let (mut ms, mut nanos) = (days * MS_PER_DAY, 0);
    if let Some(time) = time {
        let mut parts = time.splitn(3, ':');
        let hour = small_number(parts.next()?, 1..=2)?;
        let minute = small_number(parts.next()?, 1..=2)?;
        let seconds = parts.next()?;
        let (second, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
        let second = small_number(second, 1..=2)?;
        nanos = fraction_nanos(fraction)?;
        let is_end_of_day = (hour, minute, second, nanos) == (24, 0, 0, 0);
        if (hour > 23 && !is_end_of_day) || minute > 59 || second > 59 || seconds.ends_with('.') {
            return None;
        }
        ms += i64::from((hour * 60 + minute) * 60 + second) * 1_000;
    }
    let units_per_ms = DataType::units_per_ms(precision);
    let unit_nanos = 1_000_000 / units_per_ms;
    let step = unit_nanos.max(10_i64.pow(9 - u32::from(precision.min(9))));
    ms.checked_mul(units_per_ms)?.checked_add(nanos / step * step / unit_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_drop_a_fraction_and_nothing_else() {
        assert_eq!([parse_integer(" 12 "), parse_integer("-1.9"), parse_integer(".5")], [Some(12), Some(-1), Some(0)]);
        assert_eq!([parse_integer(""), parse_integer("-"), parse_integer("1e3"), parse_integer("1.x")], [None; 4]);
    }

    #[test]
    fn floats_are_read_as_java_does() {
        assert_eq!([parse_double(" 1.5d "), parse_double("Infinity")], [Some(1.5), Some(f64::INFINITY)]);
        assert_eq!([parse_double("inf"), parse_double("nan"), parse_double("")], [None; 3]);
    }

    #[test]
    fn decimals_round_half_up_and_notice_overflow() {
        let number = |text, precision, scale| match parse_decimal(text, precision, scale) {
            Parsed::Number(number) => Ok(number),
            Parsed::TooLong => Err("too long"),
            Parsed::NoNumber => Err("no number"),
        };
        assert_eq!(number("123.455", 6, 2), Ok(12346));
        assert_eq!(number("-0.005", 6, 2), Ok(-1));
        assert_eq!(number("1e2", 6, 2), Ok(10000));
        assert_eq!(number("5e-3", 6, 2), Ok(1));
        assert_eq!(number("4e-9", 6, 2), Ok(0));
        assert_eq!(number("99.999", 4, 2), Err("too long"));
        assert_eq!(number("1e", 4, 2), Err("no number"));
        assert_eq!(number(".", 4, 2), Err("no number"));
    }

    #[test]
    fn dates_and_times() {
        assert_eq!(parse_date(" 1970-1-2 "), Some(1));
        assert_eq!(parse_date("1970-01-03 12:00:00"), Some(2));
        assert_eq!([parse_date("2020-02-30"), parse_date("20200101"), parse_date("x")], [None; 3]);
        assert_eq!(parse_time("1:2:3.5"), Some(3_723_500));
        assert_eq!(parse_time("24:00:00"), None);
        assert_eq!(parse_timestamp("1970-01-01 00:00:01.123456789", 9), Some(1_123_456_789));
        assert_eq!(parse_timestamp("1970-01-01 00:00:01.987", 1), Some(1_900));
        assert_eq!([parse_timestamp("1970-01-01T00:00:01", 3), parse_timestamp(" 1970-01-01", 3)], [None; 2]);
    }
}
