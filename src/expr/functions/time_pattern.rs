//! Patterns of dates and times (`yyyy-MM-dd HH:mm:ss.SSS`), in the letters of Java's `DateTimeFormatter`.

use crate::error::{Error, ErrorKind, Result};
use crate::expr::datetime::{MS_PER_DAY, Ymd, day_of_week};
use crate::expr::text::time::pad;

/// A pattern taken apart.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    items: Vec<Item>,
}

#[derive(Debug, Clone)]
enum Item {
    Literal(String),
    /// A letter and how often it stands there.
    Field(char, usize),
}

const LETTERS: &str = "yuYMLdDHhKkmsSnNaEecwQqGA";
const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl Pattern {
    pub(super) fn parse(pattern: &str) -> Result<Self> {
        let invalid = |what: String| {
            Error::new(ErrorKind::InvalidArgument, format!("'{pattern}' is no pattern of a date or time")).with_detail(what)
        };
        let mut items = Vec::new();
        let mut rest = pattern;
        while let Some(c) = rest.chars().next() {
            if c == '\'' {
                let (text, after) = quoted(&rest[1..]).ok_or_else(|| invalid("a quote is not closed".to_string()))?;
                items.push(Item::Literal(text));
                rest = after;
            } else if c.is_ascii_alphabetic() {
                if !LETTERS.contains(c) {
                    return Err(invalid(format!("unknown letter {c}")));
                }
                let count = rest.chars().take_while(|next| *next == c).count();
                items.push(Item::Field(c, count));
                rest = &rest[count..];
            } else {
                items.push(Item::Literal(c.to_string()));
                rest = &rest[c.len_utf8()..];
            }
        }
        Ok(Pattern { items })
    }

    /// How many digits of a fraction the pattern has.
    pub(super) fn fraction_digits(&self) -> usize {
        let digits = |item: &Item| if let Item::Field('S', count) = item { *count } else { 0 };
        self.items.iter().map(digits).max().unwrap_or(0)
    }

    /// How long a text stays the same: all times between two multiples of so many milliseconds are written alike. None = it changes
    /// within a millisecond.
    pub(super) fn span_ms(&self) -> Option<i64> {
        let spans = self.items.iter().map(|item| match item {
            Item::Field('S' | 'n' | 'N', _) => None,
            Item::Field('A', _) => Some(1),
            Item::Field('s', _) => Some(1_000),
            Item::Field('m', _) => Some(60_000),
            Item::Field('H' | 'h' | 'K' | 'k' | 'a', _) => Some(3_600_000),
            Item::Field(..) | Item::Literal(_) => Some(MS_PER_DAY),
        });
        spans.min().unwrap_or(Some(MS_PER_DAY))
    }

    /// Writes local milliseconds, with the nanoseconds of the millisecond.
    pub(super) fn format(&self, out: &mut String, ms: i64, nanos: i64) {
        let (days, time) = (ms.div_euclid(MS_PER_DAY), ms.rem_euclid(MS_PER_DAY));
        let time = Time { days, time, nanos: time % 1_000 * 1_000_000 + nanos, date: Ymd::of_days(days) };
        for item in &self.items {
            match item {
                Item::Literal(text) => out.push_str(text),
                Item::Field(letter, count) => time.write(out, *letter, *count),
            }
        }
    }

    /// Reads a text as local milliseconds and the nanoseconds of the millisecond; none = it does not fit the pattern.
    pub(super) fn read(&self, text: &str) -> Option<(i64, i64)> {
        let mut fields = Fields::default();
        let mut rest = text;
        for (index, item) in self.items.iter().enumerate() {
            match item {
                Item::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                Item::Field(letter, count) => {
                    let adjacent = matches!(self.items.get(index + 1), Some(Item::Field(next, _)) if !"aE".contains(*next));
                    rest = fields.read(rest, *letter, *count, adjacent)?;
                }
            }
        }
        if rest.is_empty() { fields.resolve() } else { None }
    }
}

/// The text up to the closing quote, and what follows; two quotes are one.
fn quoted(text: &str) -> Option<(String, &str)> {
    if let Some(after) = text.strip_prefix('\'') {
        return Some(("'".to_string(), after));
    }
    let mut content = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('\'')?;
        content.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('\'') {
            Some(after) => {
                content.push('\'');
                rest = after;
            }
            None => return Some((content, rest)),
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
        let number = match letter {
            'y' | 'u' => return write_year(out, self.date.year, count),
            'Y' => return write_year(out, week_based(self.days).0, count),
            'M' | 'L' if count >= 3 => return write_name(out, MONTHS[self.date.month as usize - 1], count),
            'q' | 'Q' if count >= 3 => return write_quarter(out, self.date.month.div_ceil(3), count),
            'E' => return write_name(out, WEEKDAYS[day_of_week(self.days) as usize - 1], count),
            'a' => return out.push_str(if hour < 12 { "AM" } else { "PM" }),
            'G' => return out.push_str(if self.date.year > 0 { "AD" } else { "BC" }),
            'S' => return write_fraction(out, self.nanos, count),
            'M' | 'L' => self.date.month.into(),
            'd' => self.date.day.into(),
            'D' => self.date.day_of_year().into(),
            'H' => hour,
            'h' => (hour + 11) % 12 + 1,
            'K' => hour % 12,
            'k' => (hour + 23) % 24 + 1,
            'm' => self.time / 60_000 % 60,
            's' => self.time / 1_000 % 60,
            'n' => self.nanos,
            'N' => self.time * 1_000_000 + self.nanos % 1_000_000,
            'A' => self.time,
            'e' | 'c' => day_of_week(self.days),
            'w' => week_based(self.days).1,
            _ => i64::from(self.date.month.div_ceil(3)), // q, Q
        };
        pad(out, number, count);
    }
}

fn write_year(out: &mut String, year: i64, count: usize) {
    if count == 2 { pad(out, year.rem_euclid(100), 2) } else { pad(out, year, count) }
}

fn write_name(out: &mut String, name: &str, count: usize) {
    out.push_str(match count {
        4 => name,
        5 => &name[..1],
        _ => &name[..3],
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

/// So many digits of the nanoseconds of a second.
fn write_fraction(out: &mut String, nanos: i64, count: usize) {
    let kept = count.min(9);
    pad(out, nanos / 10_i64.pow(9 - kept as u32), kept);
    (kept..count).for_each(|_| out.push('0'));
}

/// Year and week where weeks begin on Sunday and that of 1 January is the first, as in the locale of the United States.
fn week_based(days: i64) -> (i64, i64) {
    let first_week = |year: i64| {
        let january = Ymd { year, month: 1, day: 1 }.to_days();
        january - (day_of_week(january) - 1)
    };
    let year = Ymd::of_days(days).year;
    if days >= first_week(year + 1) { (year + 1, 1) } else { (year, (days - first_week(year)) / 7 + 1) }
}

/// What was read of a time.
#[derive(Debug, Default)]
struct Fields {
    year: Option<i64>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<u32>,
    hour: Option<i64>,
    half_hour: Option<i64>,
    afternoon: Option<bool>,
    minute: i64,
    second: i64,
    nanos: i64,
}

impl Fields {
    /// Reads a field at the start of the text and gives the rest.
    fn read<'t>(&mut self, text: &'t str, letter: char, count: usize, adjacent: bool) -> Option<&'t str> {
        match letter {
            'a' => {
                let (half, rest) = text.split_at_checked(2)?;
                self.afternoon = Some(if half.eq_ignore_ascii_case("PM") {
                    true
                } else if half.eq_ignore_ascii_case("AM") {
                    false
                } else {
                    return None;
                });
                return Some(rest);
            }
            'M' | 'L' if count >= 3 => {
                let (month, rest) = read_name(text, &MONTHS, count)?;
                self.month = Some(month as u32 + 1);
                return Some(rest);
            }
            'E' => return read_name(text, &WEEKDAYS, count).map(|(_, rest)| rest),
            _ => {}
        }
        let most = match letter {
            'S' if !adjacent => 9,
            _ if adjacent || count == 2 || count == 3 => count,
            'y' | 'u' if count >= 4 => 10,
            _ => count.max(19),
        };
        let least = if letter == 'S' && !adjacent { 1 } else { count.min(most) };
        let digits = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if digits < least {
            return None;
        }
        let (digits, rest) = text.split_at(digits);
        let number: i64 = digits.parse().ok()?;
        match letter {
            'y' | 'u' if count == 2 => self.year = Some(2000 + number),
            'y' | 'u' => self.year = Some(number),
            'M' | 'L' => self.month = Some(number.try_into().ok()?),
            'd' => self.day = Some(number.try_into().ok()?),
            'D' => self.day_of_year = Some(number.try_into().ok()?),
            'H' => self.hour = Some(number),
            'k' => self.hour = Some(number % 24),
            'h' => self.half_hour = Some(number % 12),
            'K' => self.half_hour = Some(number),
            'm' => self.minute = number,
            's' => self.second = number,
            'S' => self.nanos = number * 10_i64.checked_pow(9_u32.checked_sub(digits.len() as u32)?)?,
            'n' => self.nanos = number,
            _ => return None,
        }
        Some(rest)
    }

    /// The time; what was not read is the first of its kind, the year 1970.
    fn resolve(&self) -> Option<(i64, i64)> {
        let year = self.year.unwrap_or(1970);
        let days = match self.day_of_year {
            Some(day) => Ymd::checked(year, 1, 1)?.to_days() + i64::from(day) - 1,
            None => Ymd::checked(year, self.month.unwrap_or(1), self.day.unwrap_or(1))?.to_days(),
        };
        let half = self.half_hour.map(|hour| hour + if self.afternoon == Some(true) { 12 } else { 0 });
        let hour = self.hour.or(half).unwrap_or(0);
        if hour > 23 || self.minute > 59 || self.second > 59 {
            return None;
        }
        let ms = ((hour * 60 + self.minute) * 60 + self.second) * 1_000 + self.nanos / 1_000_000;
        Some((days.checked_mul(MS_PER_DAY)?.checked_add(ms)?, self.nanos % 1_000_000))
    }
}

fn read_name<'t>(text: &'t str, names: &[&str], count: usize) -> Option<(usize, &'t str)> {
    names.iter().enumerate().find_map(|(index, name)| {
        let shown = if count == 4 { name } else { &name[..3] };
        text.strip_prefix(shown).map(|rest| (index, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(pattern: &str, ms: i64) -> String {
        let mut out = String::new();
        Pattern::parse(pattern).unwrap().format(&mut out, ms, 0);
        out
    }

    #[test]
    fn times_are_written_by_pattern() {
        let ms = Ymd { year: 2020, month: 3, day: 4 }.to_days() * MS_PER_DAY + 54_367_891;
        assert_eq!(format("yyyy-MM-dd HH:mm:ss.SSS", ms), "2020-03-04 15:06:07.891");
        assert_eq!(format("yy/M/d H:m:s a hh EEE EEEE MMM MMMM D", ms), "20/3/4 15:6:7 PM 03 Wed Wednesday Mar March 64");
        assert_eq!(format("yyyy-MM-dd'T'HH:mm:ss.SSSSSS", ms), "2020-03-04T15:06:07.891000");
        assert_eq!(format("YYYY-ww u e Q G k K", ms), "2020-10 2020 4 1 AD 15 3");
        assert_eq!(format("Q QQ QQQ QQQQ", ms), "1 01 Q1 1st quarter");
        assert!(Pattern::parse("bbb").is_err());
    }

    #[test]
    fn a_text_stays_the_same_as_long_as_its_smallest_field() {
        let span = |pattern: &str| Pattern::parse(pattern).unwrap().span_ms();
        assert_eq!(
            ["yyyy-MM-dd", "HH:mm", "h a", "E HH:mm:ss", "''"].map(span),
            [86_400_000, 60_000, 3_600_000, 1_000, 86_400_000].map(Some)
        );
        assert_eq!(["ss.SSS", "n"].map(span), [None, None]);
    }

    #[test]
    fn times_are_read_by_pattern() {
        let read = |pattern: &str, text: &str| Pattern::parse(pattern).unwrap().read(text);
        let day = Ymd { year: 2000, month: 2, day: 2 }.to_days() * MS_PER_DAY;
        assert_eq!(read("yyyyMMddHH", "2000020210"), Some((day + 36_000_000, 0)));
        assert_eq!(read("dd.MM.yyyy H:m", "02.02.2000 5:6"), Some((day + 18_360_000, 0)));
        assert_eq!(read("yyyy-MM-dd HH:mm:ss.SSS", "1970-01-01 00:00:00.12345"), Some((123, 450_000)));
        assert_eq!(read("SSSSSSS", "1234567"), Some((123, 456_700)));
        assert_eq!(read("yyyy-MM-dd", "2020-02-30"), None);
        assert_eq!(read("yyyy", "x"), None);
    }
}
