//! Patterns of dates and times (`yyyy-MM-dd HH:mm:ss.SSS`), in the letters of Java's `DateTimeFormatter`, names in English.
//!
//! DATE_FORMAT of timestamps, TO_TIMESTAMP and TO_TIMESTAMP_LTZ take them. Functions over texts and over UNIX time take the patterns
//! of an older class, whose letters differ: [`super::calendar_pattern`].

mod read;
mod resolve;
mod write;

use crate::error::{Error, ErrorKind, Result};
use crate::expr::datetime::{MS_PER_DAY, day_of_week};

pub(super) use read::read_zone;
pub(super) use write::{week_of_month, write_offset};

/// Names of months.
pub(super) const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

/// Names of days, from the first of an American week.
pub(super) const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

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
    /// The next field is filled up with blanks to this width.
    Pad(usize),
    /// `[`: what follows may be missing.
    Start,
    /// `]`.
    End,
}

/// The letters, and how often each may stand there at most. Those of zones are read only.
const LETTERS: &[(&str, usize)] = &[
    ("yuYAnNg", 19),
    ("GMLQqEe", 5),
    ("c", 5),
    ("B", 5),
    ("dhHkKms", 2),
    ("wX", 5),
    ("xZ", 5),
    ("D", 3),
    ("FWa", 1),
    ("S", 9),
    ("VOzv", 4),
];

impl Pattern {
    pub(super) fn parse(pattern: &str) -> Result<Self> {
        let invalid = |what: String| {
            Error::new(ErrorKind::InvalidArgument, format!("'{pattern}' is no pattern of a date or time")).with_detail(what)
        };
        let (mut items, mut depth) = (Vec::new(), 0);
        let mut rest = pattern;
        while let Some(c) = rest.chars().next() {
            if c == '\'' {
                let (text, after) = quoted(&rest[1..]).ok_or_else(|| invalid("a quote is not closed".to_string()))?;
                items.push(Item::Literal(text));
                rest = after;
                continue;
            }
            let count = if c.is_ascii_alphabetic() { rest.chars().take_while(|next| *next == c).count() } else { 1 };
            match c {
                '[' => {
                    depth += 1;
                    items.push(Item::Start);
                }
                ']' if depth == 0 => return Err(invalid("a ] without [".to_string())),
                ']' => {
                    depth -= 1;
                    items.push(Item::End);
                }
                '{' | '}' | '#' => return Err(invalid(format!("{c} is reserved"))),
                'p' if rest[count..].starts_with(|next: char| next.is_ascii_alphabetic()) => items.push(Item::Pad(count)),
                c if c.is_ascii_alphabetic() => {
                    check_letter(c, count).map_err(invalid)?;
                    items.push(Item::Field(c, count));
                }
                c => items.push(Item::Literal(c.to_string())),
            }
            rest = &rest[if count > 1 { count } else { c.len_utf8() }..];
        }
        Ok(Pattern { items })
    }

    /// A pattern that times without a zone are written by: an optional section that asks for one is left out.
    pub(super) fn for_writing(pattern: &str) -> Result<Self> {
        // The sections that are open: where each begins, and whether it asks for a zone.
        let (mut items, mut open): (Vec<Item>, Vec<(usize, bool)>) = (Vec::new(), Vec::new());
        for item in Pattern::parse(pattern)?.items {
            match item {
                Item::Start => open.push((items.len(), false)),
                Item::Field('X' | 'x' | 'Z' | 'O' | 'z' | 'V' | 'v', _) => match open.last_mut() {
                    Some((_, asks)) => *asks = true,
                    None => {
                        let message = format!("'{pattern}' asks for a zone, and the time has none");
                        return Err(Error::new(ErrorKind::InvalidArgument, message));
                    }
                },
                Item::End => {
                    if let Some((start, true)) = open.pop() {
                        items.truncate(start);
                    }
                }
                item => items.push(item),
            }
        }
        // A section that is not closed ends with the pattern.
        if let Some((start, _)) = open.into_iter().find(|(_, asks)| *asks) {
            items.truncate(start);
        }
        Ok(Pattern { items })
    }

    /// How many digits of a fraction the pattern ends with.
    pub(super) fn fraction_digits(&self) -> usize {
        match self.items.last() {
            Some(Item::Field('S', count)) => *count,
            _ => 0,
        }
    }

    /// How long a text stays the same: all times between two multiples of so many milliseconds are written alike. None = it changes
    /// within a millisecond.
    pub(super) fn span_ms(&self) -> Option<i64> {
        let spans = self.items.iter().map(|item| match item {
            Item::Field('S' | 'n' | 'N', _) => None,
            Item::Field('A' | 'B', _) => Some(1),
            Item::Field('s', _) => Some(1_000),
            Item::Field('m', _) => Some(60_000),
            Item::Field('H' | 'h' | 'K' | 'k' | 'a', _) => Some(3_600_000),
            _ => Some(MS_PER_DAY),
        });
        spans.min().unwrap_or(Some(MS_PER_DAY))
    }
}

/// Whether a letter may stand there so often.
fn check_letter(letter: char, count: usize) -> std::result::Result<(), String> {
    let most = LETTERS.iter().find(|(letters, _)| letters.contains(letter)).map(|(_, most)| *most);
    match most {
        None => Err(format!("unknown letter {letter}")),
        Some(most)
            if count > most || (letter == 'c' && count == 2) || (letter == 'V' && count != 2) || (letter == 'w' && count > 2) =>
        {
            Err(format!("too many letters {letter}"))
        }
        Some(_) => Ok(()),
    }
}

/// The text up to the closing quote, and what follows; two quotes within are one, and nothing within is one.
fn quoted(text: &str) -> Option<(String, &str)> {
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
            None => return Some((if content.is_empty() { "'".to_string() } else { content }, rest)),
        }
    }
}

/// The first day of the first week of a year, where weeks begin on Sunday and that of 1 January is the first, as in the United States.
fn first_week(year: i64) -> i64 {
    let january = crate::expr::datetime::Ymd { year, month: 1, day: 1 }.to_days();
    january - (day_of_week(january) - 1)
}

/// Year and week by those weeks.
pub(super) fn week_based(days: i64) -> (i64, i64) {
    let year = crate::expr::datetime::Ymd::of_days(days).year;
    if days >= first_week(year + 1) { (year + 1, 1) } else { (year, (days - first_week(year)) / 7 + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::datetime::Ymd;

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
        assert_eq!(
            format("eee ccc F W g [B] GGGG 'a''b' '''' ppppH", ms),
            "Wed Wed 4 1 58912 in the afternoon Anno Domini a'b '   15"
        );
        for wrong in ["bbb", "ddd", "aa", "{", "]", "'x", "SSSSSSSSSS", "cc"] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
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
        let ms = |year, month, day, ms: i64| Some((Ymd { year, month, day }.to_days() * MS_PER_DAY + ms, 0));
        assert_eq!(read("yyyyMMddHH", "2000020210"), ms(2000, 2, 2, 36_000_000));
        assert_eq!(read("dd.MM.yyyy H:m", "02.02.2000 5:6"), ms(2000, 2, 2, 18_360_000));
        assert_eq!(read("SSSSSSS", "1234567"), Some((123, 456_700)));
        assert_eq!(read("yyyy-MM-dd", "2020-02-30"), ms(2020, 2, 29, 0));
        assert_eq!(read("yyyy-MM-dd HH:mm:ss", "2020-02-29 24:00:00"), ms(2020, 3, 1, 0));
        assert_eq!(read("G yyyy-MM-dd", "BC 0005-02-28"), ms(-4, 2, 28, 0));
        assert_eq!(read("YYYY-'W'ww-e", "2024-W09-4"), ms(2024, 2, 28, 0));
        assert_eq!(read("EEE yyyy-MM-dd", "Thu 2024-02-29"), ms(2024, 2, 29, 0));
        assert_eq!(read("yyyy-MM-dd[ HH:mm]", "2024-02-29"), ms(2024, 2, 29, 0));
        assert_eq!(read("yyyy-MM-dd HH:mm:ssXXX", "2024-02-29 00:00:01+02:00"), ms(2024, 2, 29, 1_000));
        assert_eq!(read("EEE yyyy-MM-dd", "Fri 2024-02-29"), None);
        assert_eq!(read("yyyy", "x"), None);
    }

    #[test]
    fn what_the_pattern_does_not_fit_is_read_as_java_reads_timestamps() {
        let read = |pattern: &str, text: &str| Pattern::parse(pattern).unwrap().read_or_plain(text);
        let day = Ymd { year: 2024, month: 2, day: 9 }.to_days() * MS_PER_DAY;
        assert_eq!(read("yyyy-MM-dd", " 2024-2-9 "), Some((day, 0)));
        assert_eq!(read("yyyy-MM-dd HH:mm:ss.SSS", "2024-2-9 0:0:0.12345"), Some((day + 123, 450_000)));
        assert_eq!(read("yyyy-MM-dd HH:mm:ss", "2024-02-08 23:59:60"), Some((day, 0)));
        assert_eq!(read("yyyy-MM-dd", "2024-2-30"), Some((day + 21 * MS_PER_DAY, 0)));
        assert_eq!(read("yyyy-MM-dd", "24-2-30"), None);
    }
}
