//! Reads a text by a pattern, as strictly as Java does: a number has the digits that its letters say.

use super::resolve::Fields;
use super::{Item, MONTHS, Pattern, WEEKDAYS};
use crate::types::TimeZone;

impl Pattern {
    /// Reads a text as local milliseconds and the nanoseconds of the millisecond; none = it does not fit the pattern.
    pub(in crate::expr::functions) fn read(&self, text: &str) -> Option<(i64, i64)> {
        let mut fields = Fields::default();
        let rest = read_items(&self.items, text, &mut fields)?;
        if rest.is_empty() { fields.resolve() } else { None }
    }

    /// The same; a text that does not fit is read as `2024-2-9` or `2024-2-9 1:2:3.4`.
    pub(in crate::expr::functions) fn read_or_plain(&self, text: &str) -> Option<(i64, i64)> {
        self.read(text).or_else(|| super::resolve::read_plain(text.trim()))
    }
}

/// Reads items up to the end of the pattern; the rest of the text.
fn read_items<'t>(items: &[Item], text: &'t str, fields: &mut Fields) -> Option<&'t str> {
    let mut rest = text;
    let mut at = 0;
    while at < items.len() {
        match &items[at] {
            Item::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
            Item::Pad(width) => {
                let blanks = rest.bytes().take(*width).take_while(|byte| *byte == b' ').count();
                rest = &rest[blanks..];
            }
            Item::Start => {
                let end = closing(items, at);
                let mut inner = fields.clone();
                if let Some(after) = read_items(&items[at + 1..end], rest, &mut inner) {
                    (*fields, rest) = (inner, after);
                }
                at = end;
            }
            Item::End => {}
            Item::Field(letter, count) => {
                rest = read_field(fields, rest, *letter, *count, digits_behind(&items[at + 1..]))?;
            }
        }
        at += 1;
    }
    Some(rest)
}

/// Where an optional part ends.
fn closing(items: &[Item], start: usize) -> usize {
    let mut depth = 0;
    for (at, item) in items.iter().enumerate().skip(start) {
        match item {
            Item::Start => depth += 1,
            Item::End => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    items.len()
}

/// The least and the most digits of a numeric field; none = it is no number.
fn digits_of(letter: char, count: usize) -> Option<(usize, usize)> {
    match letter {
        'y' | 'u' | 'Y' if count == 2 => Some((2, 2)),
        'y' | 'u' | 'Y' | 'A' | 'n' | 'N' | 'g' => Some((count, 19)),
        'M' | 'L' | 'Q' | 'q' | 'e' | 'c' if count >= 3 => None,
        'D' if count == 1 => Some((1, 19)),
        'D' => Some((count, 3)),
        'S' => Some((count, count)),
        'M' | 'L' | 'Q' | 'q' | 'e' | 'c' | 'd' | 'h' | 'H' | 'k' | 'K' | 'm' | 's' | 'w' | 'W' | 'F' => {
            Some(if count == 1 { (1, 19) } else { (count, count) })
        }
        _ => None,
    }
}

/// How many digits numbers of a fixed width take that follow without anything between; none = no number follows, or one of any width.
fn digits_behind(items: &[Item]) -> Following {
    let mut digits = 0;
    for item in items {
        match item {
            Item::Field(letter, count) => match digits_of(*letter, *count) {
                Some((least, most)) if least == most => digits += least,
                Some(_) if digits == 0 => return Following::Number,
                _ => break,
            },
            _ => break,
        }
    }
    Following::Digits(digits)
}

/// What follows a field.
#[derive(Debug, Clone, Copy)]
enum Following {
    /// Numbers of so many digits in all.
    Digits(usize),
    /// A number of any width.
    Number,
}

/// Reads a field at the start of the text and gives the rest.
fn read_field<'t>(fields: &mut Fields, text: &'t str, letter: char, count: usize, behind: Following) -> Option<&'t str> {
    if let Some((least, most)) = digits_of(letter, count) {
        let (number, digits, rest) = read_number(text, letter, least, most, behind)?;
        fields.set(letter, count, number, digits)?;
        return Some(rest);
    }
    match letter {
        'M' | 'L' => {
            let (month, rest) = read_name(text, &MONTHS, count)?;
            fields.month = Some(month as i64 + 1);
            Some(rest)
        }
        'E' | 'e' | 'c' => {
            let (day, rest) = read_name(text, &WEEKDAYS, count)?;
            fields.weekday = Some(day as i64 + 1);
            Some(rest)
        }
        'Q' | 'q' => {
            let (text, of) =
                if count == 3 { (text.strip_prefix('Q')?, "") } else { (text, if count == 4 { " quarter" } else { "" }) };
            let (digit, rest) = text.split_at_checked(1)?;
            fields.quarter = Some(digit.parse().ok().filter(|quarter| (1..=4).contains(quarter))?);
            if of.is_empty() { Some(rest) } else { rest.get(2..)?.strip_prefix(of) }
        }
        'a' => {
            let (half, rest) = text.split_at_checked(2)?;
            fields.afternoon = Some(match half {
                "AM" => false,
                "PM" => true,
                _ => return None,
            });
            Some(rest)
        }
        'G' => {
            let names = match count {
                4 => ["Anno Domini", "Before Christ"],
                5 => ["A", "B"],
                _ => ["AD", "BC"],
            };
            let (index, rest) = names.iter().enumerate().find_map(|(index, name)| Some((index, text.strip_prefix(name)?)))?;
            fields.before_christ = Some(index == 1);
            Some(rest)
        }
        // Zones are read and, as in Flink, change nothing.
        'X' | 'x' | 'Z' | 'O' | 'z' | 'V' | 'v' => read_zone(text).map(|(_, rest)| rest),
        _ => None,
    }
}

/// A number, how many digits it had, and the rest of the text.
fn read_number(text: &str, letter: char, least: usize, most: usize, behind: Following) -> Option<(i64, usize, &str)> {
    let is_year = matches!(letter, 'y' | 'u' | 'Y');
    let signed = least < most && (is_year || matches!(letter, 'A' | 'n' | 'N' | 'g' | 'M' | 'L' | 'd' | 'H' | 'm' | 's'));
    let (sign, digits_text) = match text.as_bytes().first()? {
        b'-' if signed => (-1, &text[1..]),
        b'+' if is_year && least >= 4 && most == 19 => (1, &text[1..]),
        _ => (1, text),
    };
    let has_plus = text.starts_with('+');
    let found = digits_text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let taken = match behind {
        Following::Number => found.min(least),
        Following::Digits(0) => found,
        Following::Digits(reserved) if least < most => {
            let all = digits_text.bytes().take(most + reserved).take_while(u8::is_ascii_digit).count();
            all.saturating_sub(reserved).max(least).min(found)
        }
        Following::Digits(_) => found,
    };
    if taken < least {
        return None;
    }
    // A year of more digits than were asked for has a plus before it, and no other has one.
    if is_year && least >= 4 && most == 19 && sign > 0 && has_plus != (taken > least) {
        return None;
    }
    let (digits, rest) = digits_text.split_at(taken);
    Some((sign * digits.parse::<i64>().ok()?, taken, rest))
}

fn read_name<'t>(text: &'t str, names: &[&str], count: usize) -> Option<(usize, &'t str)> {
    names.iter().enumerate().find_map(|(index, name)| {
        let shown = match count {
            4 => name,
            5 => &name[..1],
            _ => &name[..3],
        };
        text.strip_prefix(shown).map(|rest| (index, rest))
    })
}

/// The zone at the start of a text, by name or offset, as long as it gets; and the rest.
pub(in crate::expr::functions) fn read_zone(text: &str) -> Option<(TimeZone, &str)> {
    let may_be_zone = |c: char| c.is_ascii_alphanumeric() || "/_+-:".contains(c);
    let longest = text.find(|c: char| !may_be_zone(c)).unwrap_or(text.len());
    (1..=longest).rev().find_map(|end| Some((TimeZone::parse(&text[..end])?, &text[end..])))
}
