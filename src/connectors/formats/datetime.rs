//! Dates and times from and to text in the fixed layouts of Flink's formats. Civil days are counted in the proleptic Gregorian
//! calendar, as in Java's `LocalDate`.

use crate::expr::{Ymd, days_of_month};
use crate::types::DataType;

/// Milliseconds of a day.
pub const MS_PER_DAY: i64 = 86_400_000;

/// Days since the epoch of a civil date that exists.
#[inline]
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    Ymd { year, month, day }.to_days()
}

/// Year, month and day of a day since the epoch.
#[inline]
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let Ymd { year, month, day } = Ymd::of_days(days);
    (year, month, day)
}

/// The number that these bytes are, if all are digits.
#[inline(always)]
fn digits(text: &[u8]) -> Option<u32> {
    let mut number = 0u32;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u32::from(digit);
    }
    Some(number)
}

/// `yyyy-MM-dd`, in days since the epoch.
pub fn parse_date(text: &[u8]) -> Option<i32> {
    if text.len() != 10 || text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let (year, month, day) = (i64::from(digits(&text[..4])?), digits(&text[5..7])?, digits(&text[8..])?);
    if !(1..=12).contains(&month) || day < 1 || day > days_of_month(year, month) {
        return None;
    }
    Some(days_from_civil(year, month, day) as i32)
}

/// Nanoseconds of the day from `HH:mm:ss[.f…]`; with `short`, also `HH:mm`.
pub fn parse_time_nanos(text: &[u8], short: bool) -> Option<i64> {
    if text.len() < 5 || text[2] != b':' {
        return None;
    }
    let (hour, minute) = (digits(&text[..2])?, digits(&text[3..5])?);
    let (second, nanos) = match &text[5..] {
        [] if short => (0, 0),
        [b':', tens, ones, fraction @ ..] => (digits(&[*tens, *ones])?, parse_fraction_nanos(fraction)?),
        _ => return None,
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some((i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second)) * 1_000_000_000 + nanos)
}

/// Nanoseconds from `` or `.f…` with up to nine digits.
fn parse_fraction_nanos(text: &[u8]) -> Option<i64> {
    match text {
        [] => Some(0),
        [b'.', fraction @ ..] if fraction.len() <= 9 => {
            let missing = 9 - fraction.len() as u32;
            Some(i64::from(digits(fraction)?) * 10i64.pow(missing))
        }
        _ => None,
    }
}

/// A timestamp of days and nanoseconds of the day, in the unit of `precision`, digits beyond it cut; none = out of range.
fn timestamp(days: i64, nanos_of_day: i64, precision: u8) -> Option<i64> {
    let nanos_of_day = nanos_of_day - nanos_of_day % 10i64.pow(9 - u32::from(precision.min(9)));
    let units_per_ms = DataType::units_per_ms(precision);
    let nanos_per_unit = 1_000_000 / units_per_ms;
    days.checked_mul(MS_PER_DAY * units_per_ms)?.checked_add(nanos_of_day / nanos_per_unit)
}

/// Parses timestamps, and remembers the minute of the last one: in a stream the next one mostly has the same.
#[derive(Debug, Default)]
pub struct TimestampParser {
    minute: [u8; 17],
    /// Milliseconds since the epoch of `minute`; meaningless while `minute` is zeros, which no text is.
    minute_ms: i64,
}

impl TimestampParser {
    /// `yyyy-MM-dd{separator}HH:mm:ss[.f…]` (with `short` also without seconds) in the unit of `precision`.
    #[inline]
    pub fn parse(&mut self, text: &[u8], separator: u8, short: bool, precision: u8) -> Option<i64> {
        if precision == 3 && text.len() == 23 && text[..17] == self.minute && text[10] == separator && text[19] == b'.' {
            let second = digits(&text[17..19])?;
            let ms = digits(&text[20..])?;
            return if second < 60 { Some(self.minute_ms + i64::from(second * 1000 + ms)) } else { None };
        }
        self.parse_slowly(text, separator, short, precision)
    }

    #[cold]
    fn parse_slowly(&mut self, text: &[u8], separator: u8, short: bool, precision: u8) -> Option<i64> {
        if text.len() < 16 || text[10] != separator {
            return None;
        }
        let days = i64::from(parse_date(&text[..10])?);
        let nanos = parse_time_nanos(&text[11..], short)?;
        if text.len() >= 17 {
            self.minute.copy_from_slice(&text[..17]);
            self.minute_ms = days * MS_PER_DAY + nanos / 60_000_000_000 * 60_000;
        }
        timestamp(days, nanos, precision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_civil_dates_are_inverse() {
        for days in (-800_000..800_000).step_by(97) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
        assert_eq!(days_from_civil(1970, 1, 1), 0);
    }

    #[test]
    fn timestamps_in_the_same_minute_take_the_short_way() {
        let mut parser = TimestampParser::default();
        assert_eq!(parser.parse(b"1970-01-01 00:01:02.003", b' ', false, 3), Some(62_003));
        assert_eq!(parser.parse(b"1970-01-01 00:01:59.999", b' ', false, 3), Some(119_999));
        assert_eq!(parser.parse(b"1970-01-01 00:01:60.000", b' ', false, 3), None);
        assert_eq!(parser.parse(b"1970-01-01 00:01:02", b' ', false, 3), Some(62_000));
        assert_eq!(parser.parse(b"1970-01-01 00:01", b' ', false, 3), None);
        assert_eq!(parser.parse(b"1970-01-01T00:01", b'T', true, 3), Some(60_000));
        assert_eq!(parser.parse(b"1970-01-01 00:00:00.123456", b' ', false, 3), Some(123));
        assert_eq!(parser.parse(b"1970-01-01 00:00:00.123456", b' ', false, 6), Some(123_456));
        assert_eq!(parser.parse(b"1970-02-30 00:00:00", b' ', false, 3), None);
        assert_eq!(parser.parse(b"9999-01-01 00:00:00", b' ', false, 9), None);
    }
}
