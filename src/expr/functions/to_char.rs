//! TO_CHAR: times as texts by PostgreSQL's templates, `YYYY-MM-DD HH24:MI:SS`. More than Flink has, whose DATE_FORMAT takes Java's patterns.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType as ArrowType, Int64Type, TimeUnit};

use super::args::{Numbers, Text, build_text};
use super::builtin::{Builtin, Param, bind_with, coerce, literal_text, string_by_args};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::compile::map_array;
use crate::expr::datetime::{MS_PER_DAY, Ymd, day_of_week, iso_week};
use crate::expr::values::timestamp_units;
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] =
    &[Builtin::new("TO_CHAR", "TO_CHAR(<TIMESTAMP>, <STRING>)\nTO_CHAR(<DATE>, <STRING>)", bind, evaluate).failing()];

const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
/// From Sunday, as days of the week are counted.
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// How letters are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Upper,
    Title,
    Lower,
}

/// A field of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    /// The last digits of the year.
    Year(usize),
    /// The last digits of the year to which the week of ISO 8601 belongs.
    IsoYear(usize),
    Quarter,
    Month,
    MonthName(Case),
    MonthShort(Case),
    /// The week of the year: its first day begins the first one.
    Week,
    IsoWeek,
    WeekOfMonth,
    DayOfYear,
    Day,
    /// From Sunday = 1.
    DayOfWeek,
    /// From Monday = 1.
    IsoDayOfWeek,
    DayName(Case),
    DayShort(Case),
    Hour24,
    Hour12,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    /// Whether with points.
    HalfOfDay(Case, bool),
}

/// A part of a template; `fills`: without FM.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Field { field: Field, fills: bool },
}

/// A word of templates with its field.
type Word = (&'static str, fn(Case) -> Field);

/// The words of templates, longer ones before those they begin with.
const WORDS: &[Word] = &[
    ("HH24", |_| Field::Hour24),
    ("HH12", |_| Field::Hour12),
    ("MONTH", Field::MonthName),
    ("YYYY", |_| Field::Year(4)),
    ("IYYY", |_| Field::IsoYear(4)),
    ("A.M.", |case| Field::HalfOfDay(case, true)),
    ("P.M.", |case| Field::HalfOfDay(case, true)),
    ("YYY", |_| Field::Year(3)),
    ("IYY", |_| Field::IsoYear(3)),
    ("MON", Field::MonthShort),
    ("DDD", |_| Field::DayOfYear),
    ("DAY", Field::DayName),
    ("HH", |_| Field::Hour12),
    ("MI", |_| Field::Minute),
    ("SS", |_| Field::Second),
    ("MS", |_| Field::Millisecond),
    ("US", |_| Field::Microsecond),
    ("AM", |case| Field::HalfOfDay(case, false)),
    ("PM", |case| Field::HalfOfDay(case, false)),
    ("YY", |_| Field::Year(2)),
    ("IY", |_| Field::IsoYear(2)),
    ("IW", |_| Field::IsoWeek),
    ("ID", |_| Field::IsoDayOfWeek),
    ("MM", |_| Field::Month),
    ("WW", |_| Field::Week),
    ("DD", |_| Field::Day),
    ("DY", Field::DayShort),
    ("Y", |_| Field::Year(1)),
    ("Q", |_| Field::Quarter),
    ("W", |_| Field::WeekOfMonth),
    ("D", |_| Field::DayOfWeek),
];

/// A template taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Template(Vec<Part>);

impl Template {
    fn parse(text: &str) -> Result<Self> {
        let mut parts = Vec::new();
        let mut rest = text;
        let mut fills = true;
        while let Some(first) = rest.chars().next() {
            if let Some(quoted) = rest.strip_prefix('"') {
                let Some((inner, after)) = quoted.split_once('"') else {
                    return Err(Error::new(ErrorKind::InvalidArgument, format!("the template '{text}' has a quote without end")));
                };
                push_text(&mut parts, inner);
                rest = after;
                continue;
            }
            if starts_with(rest, "FM") {
                (fills, rest) = (false, &rest[2..]);
                continue;
            }
            match WORDS.iter().find(|(word, _)| starts_with(rest, word)) {
                Some((word, field)) => {
                    let (written, after) = rest.split_at(word.len());
                    parts.push(Part::Field { field: field(case_of(written)), fills: std::mem::replace(&mut fills, true) });
                    rest = after;
                }
                None if first.is_ascii_alphabetic() => {
                    let message = format!("the template '{text}' of TO_CHAR has '{first}', which means nothing");
                    return Err(Error::new(ErrorKind::InvalidArgument, message).with_hint(
                        "write YYYY, MM, DD, HH24, MI, SS, MS, US, Month, Day and the like, and text in double quotes",
                    ));
                }
                None => {
                    let (character, after) = rest.split_at(first.len_utf8());
                    push_text(&mut parts, character);
                    rest = after;
                }
            }
        }
        Ok(Template(parts))
    }

    /// Writes a time: milliseconds since the epoch and the microseconds beyond them.
    fn format(&self, ms: i64, micros: i64, out: &mut String) {
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Field { field, fills } => field.write(ms, micros, *fills, out),
            }
        }
    }
}

fn starts_with(text: &str, word: &str) -> bool {
    text.as_bytes().get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
}

fn push_text(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        Some(Part::Text(known)) => known.push_str(text),
        _ => parts.push(Part::Text(text.to_string())),
    }
}

/// `MONTH`, `Month` or `month`, by the first two letters.
fn case_of(written: &str) -> Case {
    let mut letters = written.chars().filter(char::is_ascii_alphabetic).map(|letter| letter.is_ascii_uppercase());
    match (letters.next(), letters.next()) {
        (Some(false), _) => Case::Lower,
        (_, Some(false)) => Case::Title,
        _ => Case::Upper,
    }
}

impl Field {
    fn write(self, ms: i64, micros: i64, fills: bool, out: &mut String) {
        let (days, time) = (ms.div_euclid(MS_PER_DAY), ms.rem_euclid(MS_PER_DAY));
        let date = Ymd::of_days(days);
        let hour = time / 3_600_000;
        let mut number = |number: i64, width: usize| {
            let width = if fills { width } else { 0 };
            write!(out, "{number:0width$}").expect("a string takes all that is written");
        };
        let last_digits = |year: i64, digits: usize| if digits == 4 { year } else { year.rem_euclid(10i64.pow(digits as u32)) };
        match self {
            Field::Year(digits) => number(last_digits(date.year, digits), digits),
            Field::IsoYear(digits) => number(last_digits(iso_week(days).0, digits), digits),
            Field::Quarter => number((i64::from(date.month) - 1) / 3 + 1, 1),
            Field::Month => number(date.month.into(), 2),
            Field::Week => number((i64::from(date.day_of_year()) - 1) / 7 + 1, 2),
            Field::IsoWeek => number(iso_week(days).1, 2),
            Field::WeekOfMonth => number((i64::from(date.day) - 1) / 7 + 1, 1),
            Field::DayOfYear => number(date.day_of_year().into(), 3),
            Field::Day => number(date.day.into(), 2),
            Field::DayOfWeek => number(day_of_week(days), 1),
            Field::IsoDayOfWeek => number((day_of_week(days) + 5) % 7 + 1, 1),
            Field::Hour24 => number(hour, 2),
            Field::Hour12 => number((hour + 11) % 12 + 1, 2),
            Field::Minute => number(time / 60_000 % 60, 2),
            Field::Second => number(time / 1_000 % 60, 2),
            Field::Millisecond => number(time % 1_000, 3),
            Field::Microsecond => number(time % 1_000 * 1_000 + micros, 6),
            Field::MonthName(case) => word(MONTHS[date.month as usize - 1], case, fills, out),
            Field::MonthShort(case) => word(&MONTHS[date.month as usize - 1][..3], case, false, out),
            Field::DayName(case) => word(DAYS[day_of_week(days) as usize - 1], case, fills, out),
            Field::DayShort(case) => word(&DAYS[day_of_week(days) as usize - 1][..3], case, false, out),
            Field::HalfOfDay(case, points) => {
                let half = match (hour < 12, points) {
                    (true, false) => "AM",
                    (false, false) => "PM",
                    (true, true) => "A.M.",
                    (false, true) => "P.M.",
                };
                word(half, if case == Case::Title { Case::Upper } else { case }, false, out);
            }
        }
    }
}

/// A name, as wide as the longest one if it fills.
fn word(name: &str, case: Case, fills: bool, out: &mut String) {
    match case {
        Case::Upper => out.push_str(&name.to_ascii_uppercase()),
        Case::Title => out.push_str(name),
        Case::Lower => out.push_str(&name.to_ascii_lowercase()),
    }
    if fills {
        out.extend(std::iter::repeat_n(' ', 9usize.saturating_sub(name.len())));
    }
}

/// Instants become local times, dates their midnight.
fn bind(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [value, template]: [Expr; 2] = args.try_into().map_err(|args: Vec<Expr>| function.mismatch(&args))?;
    let value = match value.data_type().kind {
        TypeKind::Timestamp(_) => value,
        TypeKind::TimestampLtz(precision) => coerce(value, &TypeKind::Timestamp(precision)),
        TypeKind::Date | TypeKind::Null => coerce(value, &TypeKind::Timestamp(3)),
        _ => {
            return Err(function.mismatch(&[value, template]).with_hint("times are written; CAST or PRINTF write numbers"));
        }
    };
    if let Some(template) = literal_text(&template) {
        Template::parse(template)?;
    }
    bind_with(function, vec![value, template], &[Param::Any, Param::Text], 2, string_by_args)
}

fn evaluate(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let units_per_ms = match args[0].array().data_type() {
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => 1_000_000,
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        _ => 1,
    };
    let units = map_array(args[0].clone(), |array| Ok(Arc::new(timestamp_units(array)) as ArrayRef))?;
    let (units, templates) = (Numbers::<Int64Type>::of(&units), Text::of(&args[1]));
    let mut known: Option<(&str, Template)> = None;
    let mut failure = None;
    let result = build_text(args, context, |row, out| {
        let (units, text) = (units.get(row)?, templates.get(row)?);
        if known.as_ref().is_none_or(|(known, _)| *known != text) {
            match Template::parse(text) {
                Ok(template) => known = Some((text, template)),
                Err(error) => {
                    failure.get_or_insert(error);
                    return None;
                }
            }
        }
        let (_, template) = known.as_ref()?;
        let (ms, rest) = (units.div_euclid(units_per_ms), units.rem_euclid(units_per_ms));
        template.format(ms, rest * 1_000 / units_per_ms, out);
        Some(())
    });
    failure.map_or(result, Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(template: &str) -> String {
        let mut out = String::new();
        // Thursday, 9 May 2024, 15:04:05.006007.
        Template::parse(template).unwrap().format(1_715_267_045_006, 7, &mut out);
        out
    }

    #[test]
    fn fields_are_written_as_postgresql_does() {
        assert_eq!(formatted("YYYY-MM-DD HH24:MI:SS.US"), "2024-05-09 15:04:05.006007");
        assert_eq!(formatted("yy/mon/DD HH12:MI:SS.MS am"), "24/may/09 03:04:05.006 pm");
        assert_eq!(formatted("Day, DD Month"), "Thursday , 09 May      ");
        assert_eq!(formatted("FMDay, FMDD FMMonth YYYY"), "Thursday, 9 May 2024");
        assert_eq!(formatted("DDD D ID Q WW IW IYYY W"), "130 5 4 2 19 19 2024 2");
        assert_eq!(formatted("DY Dy dy P.M."), "THU Thu thu P.M.");
        assert_eq!(formatted("\"at\" HH24\"h\""), "at 15h");
    }

    #[test]
    fn what_means_nothing_is_an_error() {
        assert!(Template::parse("YYYY-xx").is_err());
        assert!(Template::parse("\"open").is_err());
    }
}
