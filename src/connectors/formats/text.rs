//! Values as Java prints them: what Flink's `print` connector shows, and the numbers in its text formats.

use std::io::Write;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};
use base64::Engine;

use super::datetime::civil_from_days;
use crate::expr::text::{TextStyle, write_value};
use crate::types::{DataType, Maps, TimeZone, TypeKind};

/// Appends a number as Java's `Double.toString`.
pub fn write_double(value: f64, out: &mut Vec<u8>) {
    write_shortest(value.is_nan(), value.is_infinite(), value.is_sign_negative(), &format!("{:e}", value.abs()), out);
}

/// Appends a number as Java's `Float.toString`.
pub fn write_float(value: f32, out: &mut Vec<u8>) {
    write_shortest(value.is_nan(), value.is_infinite(), value.is_sign_negative(), &format!("{:e}", value.abs()), out);
}

/// `scientific` is `d.ddde±x` with the fewest digits that identify the number. Java writes numbers from 10^-3 to 10^7 plainly.
fn write_shortest(nan: bool, infinite: bool, negative: bool, scientific: &str, out: &mut Vec<u8>) {
    if nan {
        return out.extend_from_slice(b"NaN");
    }
    if negative {
        out.push(b'-');
    }
    if infinite {
        return out.extend_from_slice(b"Infinity");
    }
    let (mantissa, exponent) = scientific.split_once('e').expect("the e format has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    let digits: Vec<u8> = mantissa.bytes().filter(|byte| *byte != b'.').collect();
    let zero = digits == b"0";
    if !(zero || (-3..7).contains(&exponent)) {
        out.extend_from_slice(&digits[..1]);
        out.push(b'.');
        out.extend_from_slice(if digits.len() > 1 { &digits[1..] } else { b"0" });
        return write!(out, "E{exponent}").expect("writing to memory does not fail");
    }
    let point = exponent + 1;
    if point <= 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', -point as usize));
        return out.extend_from_slice(&digits);
    }
    let point = point as usize;
    let whole = digits.len().min(point);
    out.extend_from_slice(&digits[..whole]);
    out.extend(std::iter::repeat_n(b'0', point - whole));
    out.push(b'.');
    out.extend_from_slice(if digits.len() > point { &digits[point..] } else { b"0" });
}

/// Appends a decimal with all digits of its scale.
pub fn write_decimal(value: i128, scale: u8, out: &mut Vec<u8>) {
    let digits = value.unsigned_abs().to_string();
    let scale = usize::from(scale);
    if value < 0 {
        out.push(b'-');
    }
    if scale == 0 {
        return out.extend_from_slice(digits.as_bytes());
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.as_bytes().split_at(padded.len() - scale);
    out.extend_from_slice(whole);
    out.push(b'.');
    out.extend_from_slice(fraction);
}

/// Appends a decimal as Java's `BigDecimal.toString`: with an exponent where the scale is negative or the number very small.
/// With `strip`, zeros at the end are no part of the number.
pub fn write_decimal_scientific(value: i128, scale: u8, strip: bool, out: &mut Vec<u8>) {
    let (mut value, mut scale) = (value, i32::from(scale));
    if strip {
        if value == 0 {
            scale = 0;
        }
        while value != 0 && value % 10 == 0 {
            value /= 10;
            scale -= 1;
        }
    }
    let digits = value.unsigned_abs().to_string();
    let exponent = digits.len() as i32 - 1 - scale;
    if scale >= 0 && exponent >= -6 {
        return write_decimal(value, scale as u8, out);
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits.as_bytes()[..1]);
    if digits.len() > 1 {
        out.push(b'.');
        out.extend_from_slice(&digits.as_bytes()[1..]);
    }
    write!(out, "E{exponent:+}").expect("writing to memory does not fail");
}

/// Appends `yyyy-MM-dd`.
pub fn write_date(days: i64, out: &mut Vec<u8>) {
    let (year, month, day) = civil_from_days(days);
    if (0..=9999).contains(&year) {
        let year = year as u32;
        let digit = |number: u32| b'0' + (number % 10) as u8;
        return out.extend_from_slice(&[
            digit(year / 1000),
            digit(year / 100),
            digit(year / 10),
            digit(year),
            b'-',
            digit(month / 10),
            digit(month),
            b'-',
            digit(day / 10),
            digit(day),
        ]);
    }
    let sign = if year < 0 { "-" } else { "+" };
    write!(out, "{sign}{:04}-{month:02}-{day:02}", year.abs()).expect("writing to memory does not fail");
}

/// How the time of the day is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeStyle {
    /// `HH:mm:ss` and as many digits of the fraction as are not zero: the formats.
    Formats,
    /// `HH:mm`, seconds where they are not zero, fractions in threes: Java's `LocalTime.toString`.
    Java,
    /// As [`TimeStyle::Java`], with seconds in any case: Java's `Instant.toString`.
    Instant,
}

/// Appends the time of the day.
pub fn write_time(nanos_of_day: i64, style: TimeStyle, out: &mut Vec<u8>) {
    let seconds = (nanos_of_day / 1_000_000_000) as u32;
    let nanos = (nanos_of_day % 1_000_000_000) as u32;
    let digit = |number: u32| b'0' + (number % 10) as u8;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    out.extend_from_slice(&[digit(hour / 10), digit(hour), b':', digit(minute / 10), digit(minute)]);
    if style == TimeStyle::Java && second == 0 && nanos == 0 {
        return;
    }
    out.extend_from_slice(&[b':', digit(second / 10), digit(second)]);
    if nanos == 0 {
        return;
    }
    let fraction = format!("{nanos:09}");
    let shown = match style {
        TimeStyle::Formats => fraction.trim_end_matches('0').len(),
        _ if nanos.is_multiple_of(1_000_000) => 3,
        _ if nanos.is_multiple_of(1_000) => 6,
        _ => 9,
    };
    out.push(b'.');
    out.extend_from_slice(&fraction.as_bytes()[..shown]);
}

/// Days and nanoseconds of the day of a timestamp in the unit of `precision`.
pub fn split_timestamp(value: i64, precision: u8) -> (i64, i64) {
    let units_per_day = DataType::units_per_ms(precision) * super::MS_PER_DAY;
    let nanos_per_unit = 1_000_000 / DataType::units_per_ms(precision);
    (value.div_euclid(units_per_day), value.rem_euclid(units_per_day) * nanos_per_unit)
}

/// The value of a timestamp array, in the unit of `precision`.
pub fn timestamp_value(array: &dyn Array, row: usize, precision: u8) -> i64 {
    match precision {
        0..=3 => array.as_primitive::<TimestampMillisecondType>().value(row),
        4..=6 => array.as_primitive::<TimestampMicrosecondType>().value(row),
        _ => array.as_primitive::<TimestampNanosecondType>().value(row),
    }
}

/// Appends `true` or `false`.
pub fn write_boolean(array: &dyn Array, row: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(if array.as_boolean().value(row) { b"true" } else { b"false" });
}

/// Appends a whole number of any width.
pub fn write_integer(array: &dyn Array, row: usize, data_type: &DataType, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = match data_type.kind {
        TypeKind::TinyInt => buffer.format(array.as_primitive::<Int8Type>().value(row)),
        TypeKind::SmallInt => buffer.format(array.as_primitive::<Int16Type>().value(row)),
        TypeKind::Int => buffer.format(array.as_primitive::<Int32Type>().value(row)),
        _ => buffer.format(array.as_primitive::<Int64Type>().value(row)),
    };
    out.extend_from_slice(digits.as_bytes());
}

/// Appends a value that formats write as text: bytes in base64, dates, times and timestamps with `separator` between date and time.
/// False for values of other types, of which nothing is appended.
pub fn write_format_text(array: &dyn Array, row: usize, data_type: &DataType, separator: u8, out: &mut Vec<u8>) -> bool {
    match data_type.kind {
        TypeKind::Binary(_) | TypeKind::Varbinary(_) => {
            let text = base64::engine::general_purpose::STANDARD.encode(array.as_binary_view().value(row));
            out.extend_from_slice(text.as_bytes());
        }
        TypeKind::Date => write_date(i64::from(array.as_primitive::<Date32Type>().value(row)), out),
        TypeKind::Time(_) => {
            let ms = array.as_primitive::<Time32MillisecondType>().value(row);
            write_time(i64::from(ms) * 1_000_000, TimeStyle::Formats, out);
        }
        TypeKind::Timestamp(precision) | TypeKind::TimestampLtz(precision) => {
            let (days, nanos) = split_timestamp(timestamp_value(array, row, precision), precision);
            write_date(days, out);
            out.push(separator);
            write_time(nanos, TimeStyle::Formats, out);
            if matches!(data_type.kind, TypeKind::TimestampLtz(_)) {
                out.push(b'Z');
            }
        }
        _ => return false,
    }
    true
}

/// Appends a value as Java's `toString` of Flink's external form of it.
pub fn write_java(array: &dyn Array, row: usize, data_type: &DataType, out: &mut Vec<u8>) {
    if array.is_null(row) || data_type.kind == TypeKind::Null {
        return out.extend_from_slice(b"null");
    }
    match &data_type.kind {
        TypeKind::Null => unreachable!("handled above"),
        TypeKind::Char(_) | TypeKind::Varchar(_) | TypeKind::Variant => {
            out.extend_from_slice(array.as_string_view().value(row).as_bytes());
        }
        TypeKind::Bitmap => {
            let mut text = String::new();
            write_value(&mut text, array, row, data_type, TextStyle::Print, TimeZone::UTC);
            out.extend_from_slice(text.as_bytes());
        }
        TypeKind::Binary(_) | TypeKind::Varbinary(_) => {
            let bytes = array.as_binary_view().value(row);
            let mut integer = itoa::Buffer::new();
            write_list(bytes.len(), b"[]", out, |at, out| {
                out.extend_from_slice(integer.format(bytes[at] as i8).as_bytes());
            });
        }
        TypeKind::Boolean => write_boolean(array, row, out),
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::Int | TypeKind::BigInt => write_integer(array, row, data_type, out),
        TypeKind::Float => write_float(array.as_primitive::<Float32Type>().value(row), out),
        TypeKind::Double => write_double(array.as_primitive::<Float64Type>().value(row), out),
        TypeKind::Decimal(_, scale) => {
            write_decimal_scientific(array.as_primitive::<Decimal128Type>().value(row), *scale, false, out);
        }
        TypeKind::Date => write_date(i64::from(array.as_primitive::<Date32Type>().value(row)), out),
        TypeKind::Time(_) => {
            let ms = array.as_primitive::<Time32MillisecondType>().value(row);
            write_time(i64::from(ms) * 1_000_000, TimeStyle::Java, out);
        }
        TypeKind::Timestamp(precision) | TypeKind::TimestampLtz(precision) => {
            let (days, nanos) = split_timestamp(timestamp_value(array, row, *precision), *precision);
            let zoned = matches!(data_type.kind, TypeKind::TimestampLtz(_));
            write_date(days, out);
            out.push(b'T');
            write_time(nanos, if zoned { TimeStyle::Instant } else { TimeStyle::Java }, out);
            out.extend_from_slice(if zoned { b"Z" } else { b"" });
        }
        TypeKind::IntervalYearMonth | TypeKind::IntervalDayTime => out.extend_from_slice(b"interval"),
        TypeKind::Array(element) => {
            let values = array.as_list::<i32>().value(row);
            write_list(values.len(), b"[]", out, |at, out| write_java(&values, at, element, out));
        }
        TypeKind::Map(key, value) => write_map(array, row, key, value, out),
        TypeKind::Multiset(element) => write_map(array, row, element, &DataType::not_null(TypeKind::Int), out),
        TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
            let columns = array.as_struct();
            out.extend_from_slice(b"+I");
            write_list(fields.len(), b"[]", out, |at, out| {
                write_java(columns.column(at), row, &fields[at].data_type, out);
            });
        }
    }
}

fn write_map(array: &dyn Array, row: usize, key: &DataType, value: &DataType, out: &mut Vec<u8>) {
    let maps = Maps::of(array);
    let entries = maps.range(row);
    write_list(entries.len(), b"{}", out, |at, out| {
        write_java(maps.keys(), entries.start + at, key, out);
        out.push(b'=');
        write_java(maps.values(), entries.start + at, value, out);
    });
}

fn write_list(len: usize, brackets: &[u8; 2], out: &mut Vec<u8>, mut write: impl FnMut(usize, &mut Vec<u8>)) {
    out.push(brackets[0]);
    for at in 0..len {
        if at > 0 {
            out.extend_from_slice(b", ");
        }
        write(at, out);
    }
    out.push(brackets[1]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_are_written_as_java_does() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.5, "1.5"),
            (100.0, "100.0"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (1.25e10, "1.25E10"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (123456.789, "123456.789"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (number, expected) in cases {
            assert_eq!(text(|out| write_double(number, out)), expected);
        }
        assert_eq!(text(|out| write_float(1.1, out)), "1.1");
    }

    #[test]
    fn decimals_are_written_with_their_scale_or_scientifically() {
        assert_eq!(text(|out| write_decimal(-5, 2, out)), "-0.05");
        assert_eq!(text(|out| write_decimal(150, 2, out)), "1.50");
        assert_eq!(text(|out| write_decimal_scientific(10_000, 2, true, out)), "1E+2");
        assert_eq!(text(|out| write_decimal_scientific(270, 10, true, out)), "2.7E-8");
        assert_eq!(text(|out| write_decimal_scientific(0, 2, true, out)), "0");
        assert_eq!(text(|out| write_decimal_scientific(150, 2, false, out)), "1.50");
    }

    #[test]
    fn times_show_what_is_not_zero() {
        assert_eq!(text(|out| write_time(36_660_000_000_000, TimeStyle::Java, out)), "10:11");
        assert_eq!(text(|out| write_time(36_660_500_000_000, TimeStyle::Java, out)), "10:11:00.500");
        assert_eq!(text(|out| write_time(36_660_500_000_000, TimeStyle::Formats, out)), "10:11:00.5");
        assert_eq!(text(|out| write_time(36_660_000_000_000, TimeStyle::Instant, out)), "10:11:00");
    }
}
