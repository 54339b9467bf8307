//! Patterns of Java's older `SimpleDateFormat`, as Flink takes them for texts and UNIX time: TO_DATE, FROM_UNIXTIME, UNIX_TIMESTAMP,
//! CONVERT_TZ, DATE_FORMAT of a string.
//!
//! It differs from [`super::time_pattern`] in some letters (`u` is the day of the week, `S` counts milliseconds), and is lenient: the
//! 30 February is the 1 March, second 60 is the next minute, what stands behind the text that was read does not matter. Its calendar
//! is the Julian one up to 4 October 1582.

use super::time_pattern::{MONTHS, WEEKDAYS, read_zone, week_based, week_of_month, write_offset};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::datetime::{MS_PER_DAY, Ymd, day_of_week};
use crate::expr::text::time::pad;
use crate::expr::zone;
use crate::types::TimeZone;

/// A pattern taken apart.
#[derive(Debug, Clone)]
pub(super) struct CalendarPattern {
    items: Vec<Item>,
}

#[derive(Debug, Clone)]
enum Item {
    Literal(String),
    /// A letter and how often it stands there.
    Field(char, usize),
}

const LETTERS: &str = "GyMdkHmsSEDFwWahKzZYuXL";

/// 15 October 1582, the first day of the Gregorian calendar.
const FIRST_GREGORIAN_DAY: i64 = -141_427;

/// A two-digit year is at most this many years after the current one.
const YEARS_AHEAD: i64 = 20;

impl CalendarPattern {
    pub(super) fn parse(pattern: &str) -> Result<Self> {
        let invalid = |what: String| {
            Err(Error::new(ErrorKind::InvalidArgument, format!("'{pattern}' is no pattern of a date or time")).with_detail(what))
        };
        let mut items = Vec::new();
        let mut is_quoted = false;
        let mut chars = pattern.chars().peekable();
        let literal = |items: &mut Vec<Item>, c: char| match items.last_mut() {
            Some(Item::Literal(text)) => text.push(c),
            _ => items.push(Item::Literal(c.to_string())),
        };
        while let Some(c) = chars.next() {
            if c == '\'' {
                match chars.next_if_eq(&'\'') {
                    Some(quote) => literal(&mut items, quote),
                    None => is_quoted = !is_quoted,
                }
            } else if is_quoted || !c.is_ascii_alphabetic() {
                literal(&mut items, c);
            } else if LETTERS.contains(c) {
                let more = std::iter::from_fn(|| chars.next_if_eq(&c)).count();
                if c == 'X' && more > 2 {
                    return invalid("too many letters X".to_string());
                }
                items.push(Item::Field(c, more + 1));
            } else {
                return invalid(format!("unknown letter {c}"));
            }
        }
        if is_quoted { invalid("a quote is not closed".to_string()) } else { Ok(CalendarPattern { items }) }
    }

    /// Writes an instant as the local time of a zone.
    pub(super) fn format(&self, out: &mut String, ms: i64, zone: TimeZone) {
        let local = zone::to_local_ms(ms, zone);
        let days = local.div_euclid(MS_PER_DAY);
        let time =
            Time { date: date_of(days), days, ms: local.rem_euclid(MS_PER_DAY), offset: (local - ms) / 1_000, zone, instant: ms };
        for item in &self.items {
            match item {
                Item::Literal(text) => out.push_str(text),
                Item::Field(letter, count) => time.write(out, *letter, *count),
            }
        }
    }

    /// Reads the beginning of a text as an instant; local times are those of `zone`. `now_ms` says what two digits of a year mean.
    /// None = it does not fit the pattern.
    pub(super) fn read(&self, text: &str, zone: TimeZone, now_ms: i64) -> Option<i64> {
        let mut fields = Fields::default();
        let mut rest = text;
        for (index, item) in self.items.iter().enumerate() {
            match item {
                Item::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                Item::Field(letter, count) => {
                    let abuts = matches!(self.items.get(index + 1), Some(Item::Field(next, many)) if is_number(*next, *many));
                    rest = fields.read(rest, *letter, *count, abuts, now_ms)?;
                }
            }
        }
        // A pattern that reads nothing is none, as in Java.
        if rest.len() == text.len() {
            return None;
        }
        Some(zone::to_later_instant_ms(fields.local_ms()?, fields.zone.unwrap_or(zone)))
    }

    /// Whether it writes the whole name of a zone.
    pub(super) fn names_zone(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Field('z', 4..)))
    }
}

/// Whether a field is a number.
fn is_number(letter: char, count: usize) -> bool {
    !matches!(letter, 'G' | 'E' | 'a' | 'z' | 'Z' | 'X') && (!matches!(letter, 'M' | 'L') || count <= 2)
}

/// The date of a day by the calendar in force.
fn date_of(days: i64) -> Ymd {
    if days >= FIRST_GREGORIAN_DAY {
        return Ymd::of_days(days);
    }
    // Julian years have 365.25 days; counted from 1 March of the year 0.
    let shifted = days + 719_470;
    let (era, day_of_era) = (shifted.div_euclid(1_461), shifted.rem_euclid(1_461));
    let year_of_era = (day_of_era - day_of_era / 1_460) / 365;
    let day_of_year = day_of_era - 365 * year_of_era;
    let march_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * march_month + 2) / 5 + 1) as u32;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 } as u32;
    Ymd { year: year_of_era + era * 4 + i64::from(month <= 2), month, day }
}

/// The first day of a month by the calendar in force; months beyond the year are those of the next years.
fn first_of_month(year: i64, month: i64) -> i64 {
    let (year, month) = (year + (month - 1).div_euclid(12), (month - 1).rem_euclid(12) as u32 + 1);
    let days = Ymd { year, month, day: 1 }.to_days();
    if days >= FIRST_GREGORIAN_DAY {
        return days;
    }
    let march_year = if month <= 2 { year - 1 } else { year };
    let march_month = i64::from((month + 9) % 12);
    march_year * 365 + march_year.div_euclid(4) + (153 * march_month + 2) / 5 - 719_470
}

/// A time to write.
struct Time {
    date: Ymd,
    days: i64,
    ms: i64,
    /// Seconds ahead of UTC.
    offset: i64,
    zone: TimeZone,
    instant: i64,
}

impl Time {
    fn write(&self, out: &mut String, letter: char, count: usize) {
        let hour = self.ms / 3_600_000;
        let is_after = self.date.year > 0;
        let year = if is_after { self.date.year } else { 1 - self.date.year };
        let weekday = day_of_week(self.days);
        let number = match letter {
            'G' => return out.push_str(if is_after { "AD" } else { "BC" }),
            'y' if count == 2 => year % 100,
            'y' => year,
            'Y' if count == 2 => week_based(self.days).0 % 100,
            'Y' => week_based(self.days).0,
            'M' | 'L' if count >= 3 => return write_text(out, MONTHS[self.date.month as usize - 1], count),
            'E' => return write_text(out, WEEKDAYS[weekday as usize - 1], count),
            'a' => return out.push_str(if hour < 12 { "AM" } else { "PM" }),
            'z' => return out.push_str(&self.zone_name(count)),
            'Z' => return write_offset(out, self.offset, ""),
            'X' if self.offset == 0 => return out.push('Z'),
            'X' if count == 1 => {
                out.push(if self.offset < 0 { '-' } else { '+' });
                return pad(out, self.offset.abs() / 3_600, 2);
            }
            'X' => return write_offset(out, self.offset, if count == 3 { ":" } else { "" }),
            'M' | 'L' => self.date.month.into(),
            'd' => self.date.day.into(),
            'D' => self.days - first_of_month(self.date.year, 1) + 1,
            'F' => i64::from((self.date.day - 1) / 7 + 1),
            'u' => (weekday + 5) % 7 + 1,
            'w' => week_based(self.days).1,
            'W' => week_of_month(self.days, self.date.day),
            'k' => (hour + 23) % 24 + 1,
            'H' => hour,
            'h' => (hour + 11) % 12 + 1,
            'K' => hour % 12,
            'm' => self.ms / 60_000 % 60,
            's' => self.ms / 1_000 % 60,
            _ => self.ms % 1_000, // S
        };
        pad(out, number, count);
    }

    /// `UTC`, `CEST`, or of a zone without such a name `GMT+02:00`.
    fn zone_name(&self, count: usize) -> String {
        if self.zone == TimeZone::UTC {
            return if count >= 4 { "Coordinated Universal Time" } else { "UTC" }.to_string();
        }
        zone::abbreviation(self.instant, self.zone).unwrap_or_else(|| {
            let mut name = "GMT".to_string();
            write_offset(&mut name, self.offset, ":");
            name
        })
    }
}

fn write_text(out: &mut String, name: &str, count: usize) {
    out.push_str(if count >= 4 { name } else { &name[..3] });
}

/// What was read of a time: numbers of any size.
#[derive(Debug, Default)]
struct Fields {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    week: Option<i64>,
    weekday: Option<i64>,
    before_christ: bool,
    hour: Option<i64>,
    half_hour: Option<i64>,
    afternoon: bool,
    minute: i64,
    second: i64,
    ms: i64,
    zone: Option<TimeZone>,
}

impl Fields {
    /// Reads a field at the start of the text, blanks before it left out, and gives the rest.
    fn read<'t>(&mut self, text: &'t str, letter: char, count: usize, abuts: bool, now_ms: i64) -> Option<&'t str> {
        let text = text.trim_start_matches([' ', '\t']);
        if !is_number(letter, count) {
            return self.read_text(text, letter);
        }
        let (sign, unsigned) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let most = if abuts { count - usize::from(sign < 0).min(count) } else { usize::MAX };
        let digits = unsigned.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = unsigned.split_at(digits);
        let number = sign * digits.parse::<i64>().ok()?;
        match letter {
            'y' | 'Y' if count <= 2 && digits.len() == 2 && sign > 0 => self.year = Some(full_year(number, now_ms)),
            'y' | 'Y' => self.year = Some(number),
            'M' | 'L' => self.month = Some(number),
            'd' => self.day = Some(number),
            'D' => self.day_of_year = Some(number),
            'w' => self.week = Some(number),
            'u' => self.weekday = Some(number % 7 + 1),
            'H' => self.hour = Some(number),
            'k' => self.hour = Some(if number == 24 { 0 } else { number }),
            'h' => self.half_hour = Some(if number == 12 { 0 } else { number }),
            'K' => self.half_hour = Some(number),
            'm' => self.minute = number,
            's' => self.second = number,
            'S' => self.ms = number,
            _ => {} // F, W: they say nothing beside a day
        }
        Some(rest)
    }

    fn read_text<'t>(&mut self, text: &'t str, letter: char) -> Option<&'t str> {
        match letter {
            'M' | 'L' => {
                let (month, rest) = longest_name(text, &MONTHS)?;
                self.month = Some(month as i64 + 1);
                Some(rest)
            }
            'E' => {
                let (day, rest) = longest_name(text, &WEEKDAYS)?;
                self.weekday = Some(day as i64 + 1);
                Some(rest)
            }
            'a' | 'G' => {
                let (word, rest) = text.split_at_checked(2)?;
                match (letter, word.to_ascii_uppercase().as_str()) {
                    ('a', half @ ("AM" | "PM")) => self.afternoon = half == "PM",
                    ('G', era @ ("AD" | "BC")) => self.before_christ = era == "BC",
                    _ => return None,
                }
                Some(rest)
            }
            _ => {
                let (zone, rest) = read_zone(text)?;
                self.zone = Some(zone);
                Some(rest)
            }
        }
    }

    /// The local time; what was not read is the first of its kind, the year 1970.
    fn local_ms(&self) -> Option<i64> {
        let year = self.year.map_or(1970, |year| if self.before_christ { 1 - year } else { year });
        // The years of Java's milliseconds.
        (-292_000_000..=292_000_000).contains(&year).then_some(())?;
        let days = match (self.day, self.day_of_year, self.week) {
            (None, Some(day), _) => first_of_month(year, 1).checked_add(day - 1)?,
            (None, None, Some(week)) => {
                let january = first_of_month(year, 1);
                let first_week = january - (day_of_week(january) - 1);
                first_week.checked_add(week.checked_sub(1)?.checked_mul(7)?)?.checked_add(self.weekday.unwrap_or(1) - 1)?
            }
            (day, ..) => {
                let month = self.month.unwrap_or(1);
                (-1_000_000..=1_000_000).contains(&month).then_some(())?;
                first_of_month(year, month).checked_add(day.unwrap_or(1).checked_sub(1)?)?
            }
        };
        let half = self.half_hour.map(|hour| hour + if self.afternoon { 12 } else { 0 });
        let hour = self.hour.or(half).unwrap_or(0);
        let seconds = hour.checked_mul(60)?.checked_add(self.minute)?.checked_mul(60)?.checked_add(self.second)?;
        days.checked_mul(MS_PER_DAY)?.checked_add(seconds.checked_mul(1_000)?)?.checked_add(self.ms)
    }
}

/// The year that two digits mean: not more than 20 years ahead.
fn full_year(digits: i64, now_ms: i64) -> i64 {
    let latest = Ymd::of_days(now_ms.div_euclid(MS_PER_DAY)).year + YEARS_AHEAD;
    let year = latest - latest.rem_euclid(100) + digits;
    if year > latest { year - 100 } else { year }
}

/// The name at the start of a text, in any case, whole or its first three letters.
fn longest_name<'t>(text: &'t str, names: &[&str]) -> Option<(usize, &'t str)> {
    let starts = |name: &str| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    let whole = names.iter().position(|name| starts(name)).map(|index| (index, names[index].len()));
    let short = || names.iter().position(|name| starts(&name[..3])).map(|index| (index, 3));
    whole.or_else(short).map(|(index, length)| (index, &text[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_704_067_200_000;

    fn read(pattern: &str, text: &str) -> Option<i64> {
        CalendarPattern::parse(pattern).unwrap().read(text, TimeZone::UTC, NOW).map(|ms| ms / 1_000)
    }

    fn format(pattern: &str, seconds: i64) -> String {
        let mut out = String::new();
        CalendarPattern::parse(pattern).unwrap().format(&mut out, seconds * 1_000, TimeZone::UTC);
        out
    }

    #[test]
    fn texts_are_read_leniently() {
        assert_eq!(read("yyyy-MM-dd HH:mm:ss", "2024-02-29 24:00:00"), Some(1_709_251_200));
        assert_eq!(read("yyyy-MM-dd", "2024-02-30"), Some(1_709_251_200));
        assert_eq!(read("yyyy-MM-dd", " 2024-2-29 and so on"), Some(1_709_164_800));
        assert_eq!(read("yyyy-MM-dd HH:mm:ss.SSSSSSSSS", "2024-02-29 12:34:56.123456789"), Some(1_709_333_552));
        assert_eq!([read("d.M.yy", "29.2.24"), read("d.M.yy", "29.2.69")], [Some(1_709_164_800), Some(-26_438_400)]);
        assert_eq!(read("y-MM-dd", "24-02-29"), Some(1_709_164_800));
        assert_eq!(read("yyyyMMdd", "20240229"), Some(1_709_164_800));
        assert_eq!(read("yyyy-MMM-dd", "2024-feb-29"), Some(1_709_164_800));
        assert_eq!(read("uuuu-D", "2024-366"), Some(31_536_000));
        assert_eq!(read("yyyy-MM-dd HH:mm:ssXXX", "2024-02-29 12:34:56+02:00"), Some(1_709_202_896));
        assert_eq!([read("yyyy", ""), read("yyyy-MM-dd", "2024/02/29")], [None; 2]);
    }

    #[test]
    fn the_calendar_was_julian_once() {
        assert_eq!(read("yyyy-MM-dd", "0000-01-01"), Some(-62_167_392_000));
        assert_eq!(read("G yyyy-MM-dd", "BC 0005-02-28"), Some(-62_288_611_200));
        assert_eq!(format("G yyyy-MM-dd D", -62_288_611_200), "BC 0005-02-28 59");
        assert_eq!([format("yyyy-MM-dd", -12_219_292_800), format("yyyy-MM-dd", -12_219_292_801)], ["1582-10-15", "1582-10-04"]);
    }

    #[test]
    fn letters_are_those_of_the_older_class() {
        let leap_day = 1_709_210_096;
        assert_eq!(format("u uu EEEEE MMMMM F W w S", leap_day), "4 04 Thursday February 5 5 9 0");
        assert_eq!(format("z zzzz Z X XXX", leap_day), "UTC Coordinated Universal Time +0000 Z Z");
        assert_eq!(format("'it''s' '' [yyyy]", leap_day), "it's ' [2024]");
        for wrong in ["e", "V", "Q", "'x", "XXXX"] {
            assert!(CalendarPattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
