//! Dates, times, timestamps and intervals as text.

use crate::expr::datetime::{MS_PER_DAY, Ymd};

/// Writes a number with at least `width` digits.
pub(crate) fn pad(out: &mut String, number: i64, width: usize) {
    let mut digits = itoa::Buffer::new();
    let text = digits.format(number.unsigned_abs());
    if number < 0 {
        out.push('-');
    }
    (text.len()..width).for_each(|_| out.push('0'));
    out.push_str(text);
}

/// Writes `2024-01-31`.
pub(crate) fn write_date(out: &mut String, days: i64) {
    let date = Ymd::of_days(days);
    if date.year > 9999 {
        out.push('+');
    }
    pad(out, date.year, 4);
    out.push('-');
    pad(out, date.month.into(), 2);
    out.push('-');
    pad(out, date.day.into(), 2);
}

/// Writes `12:30:00` of milliseconds of the day.
pub(crate) fn write_seconds(out: &mut String, ms_of_day: i64) {
    let seconds = ms_of_day / 1_000;
    pad(out, seconds / 3_600, 2);
    out.push(':');
    pad(out, seconds / 60 % 60, 2);
    out.push(':');
    pad(out, seconds % 60, 2);
}

/// Writes a TIME as CAST does: seconds, then as many digits of the fraction as the precision has, without trailing zeros but the first.
pub(crate) fn write_time(out: &mut String, ms_of_day: i64, precision: u8) {
    write_seconds(out, ms_of_day);
    if precision > 0 {
        out.push('.');
        let mut rest = ms_of_day % 1_000;
        for _ in 0..precision {
            pad(out, rest / 100, 1);
            rest = rest % 100 * 10;
            if rest == 0 {
                break;
            }
        }
    }
}

/// Writes a TIME as Java's `LocalTime` prints itself: zero seconds left out, 3 digits of a fraction or none.
pub(crate) fn write_local_time(out: &mut String, ms_of_day: i64, nanos_of_ms: i64) {
    let seconds = ms_of_day / 1_000;
    pad(out, seconds / 3_600, 2);
    out.push(':');
    pad(out, seconds / 60 % 60, 2);
    let nanos = ms_of_day % 1_000 * 1_000_000 + nanos_of_ms;
    if seconds % 60 == 0 && nanos == 0 {
        return;
    }
    out.push(':');
    pad(out, seconds % 60, 2);
    write_java_fraction(out, nanos);
}

/// Writes `.123`, `.123456` or `.123456789`, whichever is exact; nothing for 0.
pub(crate) fn write_java_fraction(out: &mut String, nanos: i64) {
    let (digits, width) = match nanos {
        0 => return,
        n if n % 1_000_000 == 0 => (n / 1_000_000, 3),
        n if n % 1_000 == 0 => (n / 1_000, 6),
        n => (n, 9),
    };
    out.push('.');
    pad(out, digits, width);
}

/// A timestamp taken apart: days, milliseconds of the day, and nanoseconds of the millisecond.
pub(crate) fn split_timestamp(units: i64, units_per_ms: i64) -> (i64, i64, i64) {
    let (ms, rest) = (units.div_euclid(units_per_ms), units.rem_euclid(units_per_ms));
    (ms.div_euclid(MS_PER_DAY), ms.rem_euclid(MS_PER_DAY), rest * (1_000_000 / units_per_ms))
}

/// Writes `2024-01-31 12:30:00` and, for a precision above 0, `.` and exactly that many digits.
pub(crate) fn write_timestamp(out: &mut String, units: i64, units_per_ms: i64, precision: u8) {
    let (days, ms_of_day, nanos_of_ms) = split_timestamp(units, units_per_ms);
    write_date(out, days);
    out.push(' ');
    write_seconds(out, ms_of_day);
    if precision > 0 {
        let nanos = ms_of_day % 1_000 * 1_000_000 + nanos_of_ms;
        out.push('.');
        pad(out, nanos / 10_i64.pow(9 - u32::from(precision)), precision.into());
    }
}

/// Writes a timestamp as Java's `LocalDateTime` prints itself: `2024-01-31T12:30`.
pub(crate) fn write_local_date_time(out: &mut String, units: i64, units_per_ms: i64) {
    let (days, ms_of_day, nanos_of_ms) = split_timestamp(units, units_per_ms);
    write_date(out, days);
    out.push('T');
    write_local_time(out, ms_of_day, nanos_of_ms);
}

/// Writes an instant as Java's `Instant` prints itself: `2024-01-31T12:30:00Z`.
pub(crate) fn write_instant(out: &mut String, units: i64, units_per_ms: i64) {
    let (days, ms_of_day, nanos_of_ms) = split_timestamp(units, units_per_ms);
    write_date(out, days);
    out.push('T');
    write_seconds(out, ms_of_day);
    write_java_fraction(out, ms_of_day % 1_000 * 1_000_000 + nanos_of_ms);
    out.push('Z');
}

/// Writes an interval of days to seconds as Java's `Duration` prints itself: `PT24H`, `PT1.5S`, `PT-1M`.
pub(crate) fn write_duration(out: &mut String, ms: i64) {
    if ms == 0 {
        return out.push_str("PT0S");
    }
    out.push_str("PT");
    let (seconds, rest) = (ms / 1_000, ms % 1_000);
    let mut part = |amount: i64, unit: char| {
        if amount != 0 {
            pad(out, amount, 1);
            out.push(unit);
        }
    };
    part(seconds / 3_600, 'H');
    part(seconds / 60 % 60, 'M');
    let seconds = seconds % 60;
    if seconds != 0 || rest != 0 {
        if ms < 0 && seconds == 0 {
            out.push('-');
        }
        pad(out, seconds, 1);
        if rest != 0 {
            let start = out.len();
            out.push('.');
            pad(out, rest.abs(), 3);
            let trimmed = out[start..].trim_end_matches('0').len();
            out.truncate(start + trimmed);
        }
        out.push('S');
    }
}

/// Writes an interval of years and months as Java's `Period` of months prints itself: `P13M`.
pub(crate) fn write_period(out: &mut String, months: i32) {
    if months == 0 {
        return out.push_str("P0D");
    }
    out.push('P');
    pad(out, months.into(), 1);
    out.push('M');
}

/// Writes an interval of years and months as CAST does: `+1-01`.
pub(crate) fn write_year_month(out: &mut String, months: i32) {
    let amount = i64::from(months).abs();
    out.push(if months < 0 { '-' } else { '+' });
    pad(out, amount / 12, 1);
    out.push('-');
    pad(out, amount % 12, 2);
}

/// Writes an interval of days to seconds as CAST does: `+1 02:03:04.567`.
pub(crate) fn write_day_time(out: &mut String, ms: i64) {
    let amount = ms.unsigned_abs() as i64;
    out.push(if ms < 0 { '-' } else { '+' });
    pad(out, amount / MS_PER_DAY, 1);
    out.push(' ');
    write_seconds(out, amount % MS_PER_DAY);
    out.push('.');
    pad(out, amount % 1_000, 3);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut String)) -> String {
        let mut out = String::new();
        write(&mut out);
        out
    }

    #[test]
    fn timestamps_have_the_digits_of_their_precision() {
        assert_eq!(text(|out| write_timestamp(out, 1, 1, 3)), "1970-01-01 00:00:00.001");
        assert_eq!(text(|out| write_timestamp(out, -1, 1, 0)), "1969-12-31 23:59:59");
        assert_eq!(text(|out| write_timestamp(out, 1_500_000, 1_000, 6)), "1970-01-01 00:00:01.500000");
        assert_eq!(text(|out| write_local_date_time(out, 60_000, 1)), "1970-01-01T00:01");
        assert_eq!(text(|out| write_instant(out, 60_000, 1)), "1970-01-01T00:01:00Z");
    }

    #[test]
    fn durations_print_as_in_java() {
        let duration = |ms| text(|out| write_duration(out, ms));
        assert_eq!(
            [duration(86_400_000), duration(1_500), duration(-60_000), duration(-500), duration(0), duration(3_661_001)],
            ["PT24H", "PT1.5S", "PT-1M", "PT-0.5S", "PT0S", "PT1H1M1.001S"]
        );
        assert_eq!(text(|out| write_day_time(out, 93_784_567)), "+1 02:03:04.567");
        assert_eq!(text(|out| write_year_month(out, -13)), "-1-01");
    }
}
