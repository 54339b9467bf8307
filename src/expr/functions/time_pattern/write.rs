//! Writes a time by a pattern.

use super::{Item, MONTHS, Pattern, WEEKDAYS, week_based};
use crate::expr::datetime::{MS_PER_DAY, Ymd, day_of_week};
use crate::expr::text::time::pad;

/// The epoch in modified Julian days.
const EPOCH_IN_JULIAN_DAYS: i64 = 40_587;

impl Pattern {
    /// Writes local milliseconds, with the nanoseconds of the millisecond.
    pub(in crate::expr::functions) fn format(&self, out: &mut String, ms: i64, nanos: i64) {
        let (days, time) = (ms.div_euclid(MS_PER_DAY), ms.rem_euclid(MS_PER_DAY));
        let time = Time { days, time, nanos: time % 1_000 * 1_000_000 + nanos, date: Ymd::of_days(days) };
        let mut width = 0;
        for item in &self.items {
            match item {
                Item::Literal(text) => out.push_str(text),
                Item::Pad(blanks) => width = *blanks,
                Item::Start | Item::End => {}
                Item::Field(letter, count) => {
                    let start = out.len();
                    time.write(out, *letter, *count);
                    let blanks = std::mem::take(&mut width).saturating_sub(out.len() - start);
                    out.insert_str(start, &" ".repeat(blanks));
                }
            }
        }
    }
}

/// A time to write.
struct Time {
    days: i64,
    time: i64,
    nanos: i64,
    date: Ymd,
}

impl Time {
    fn write(&self, out: &mut String, letter: char, count: usize) {
        let hour = self.time / 3_600_000;
        let year_of_era = if self.date.year > 0 { self.date.year } else { 1 - self.date.year };
        let weekday = day_of_week(self.days);
        let number = match letter {
            'y' => return write_year(out, year_of_era, count),
            'u' => return write_year(out, self.date.year, count),
            'Y' => return write_year(out, week_based(self.days).0, count),
            'M' | 'L' if count >= 3 => return write_name(out, MONTHS[self.date.month as usize - 1], count),
            'q' | 'Q' if count >= 3 => return write_quarter(out, self.date.month.div_ceil(3), count),
            'E' => return write_name(out, WEEKDAYS[weekday as usize - 1], count),
            'e' | 'c' if count >= 3 => return write_name(out, WEEKDAYS[weekday as usize - 1], count),
            'a' => return out.push_str(if hour < 12 { "AM" } else { "PM" }),
            'B' => return out.push_str(period_of_day(self.time)),
            'G' => return write_era(out, self.date.year > 0, count),
            'S' => return write_fraction(out, self.nanos, count),
            'M' | 'L' => self.date.month.into(),
            'd' => self.date.day.into(),
            'D' => self.date.day_of_year().into(),
            'F' => i64::from((self.date.day - 1) % 7 + 1),
            'g' => self.days + EPOCH_IN_JULIAN_DAYS,
            'H' => hour,
            'h' => (hour + 11) % 12 + 1,
            'K' => hour % 12,
            'k' => (hour + 23) % 24 + 1,
            'm' => self.time / 60_000 % 60,
            's' => self.time / 1_000 % 60,
            'n' => self.nanos,
            'N' => self.time * 1_000_000 + self.nanos % 1_000_000,
            'A' => self.time,
            'e' | 'c' => weekday,
            'w' => week_based(self.days).1,
            'W' => week_of_month(self.days, self.date.day),
            _ => i64::from(self.date.month.div_ceil(3)), // q, Q
        };
        pad(out, number, count);
    }
}

/// The week of the month, that of the first day being 1.
pub(in crate::expr::functions) fn week_of_month(days: i64, day: u32) -> i64 {
    let first = day_of_week(days - i64::from(day) + 1);
    (i64::from(day) + first - 2) / 7 + 1
}

/// Two digits; or so many at least, with a sign where there are more than four or more of them were asked for.
fn write_year(out: &mut String, year: i64, count: usize) {
    if count == 2 {
        return pad(out, year.rem_euclid(100), 2);
    }
    if count >= 4 && year.checked_ilog10().is_some_and(|log| log as usize >= count) {
        out.push('+');
    }
    pad(out, year, count);
}

/// A name: whole, its first letter, or its first three.
fn write_name(out: &mut String, name: &str, count: usize) {
    out.push_str(match count {
        4 => name,
        5 => &name[..1],
        _ => &name[..3],
    });
}

fn write_era(out: &mut String, is_after: bool, count: usize) {
    out.push_str(match (count, is_after) {
        (4, true) => "Anno Domini",
        (4, false) => "Before Christ",
        (5, true) => "A",
        (5, false) => "B",
        (_, true) => "AD",
        (_, false) => "BC",
    });
}

fn write_quarter(out: &mut String, quarter: u32, count: usize) {
    let long = ["1st quarter", "2nd quarter", "3rd quarter", "4th quarter"][quarter as usize - 1];
    match count {
        3 => out.push_str(&format!("Q{quarter}")),
        4 => out.push_str(long),
        _ => out.push_str(&long[..1]),
    }
}

/// What English calls a time of the day.
fn period_of_day(ms: i64) -> &'static str {
    match (ms / 3_600_000, ms % 3_600_000 / 60_000) {
        (0, 0) => "midnight",
        (12, 0) => "noon",
        (6..12, _) => "in the morning",
        (12..18, _) => "in the afternoon",
        (18..21, _) => "in the evening",
        _ => "at night",
    }
}

/// So many digits of the nanoseconds of a second.
fn write_fraction(out: &mut String, nanos: i64, count: usize) {
    pad(out, nanos / 10_i64.pow(9 - count as u32), count);
}

/// `+0530` or `+05:30`.
pub(in crate::expr::functions) fn write_offset(out: &mut String, seconds: i64, colon: &str) {
    out.push(if seconds < 0 { '-' } else { '+' });
    pad(out, seconds.abs() / 3_600, 2);
    out.push_str(colon);
    pad(out, seconds.abs() / 60 % 60, 2);
}
