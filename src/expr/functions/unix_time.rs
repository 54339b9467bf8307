//! Dates from texts, UNIX time and zones, by the patterns of Java's older class: TO_DATE, FROM_UNIXTIME, UNIX_TIMESTAMP, CONVERT_TZ,
//! and DATE_FORMAT of a string.

use std::sync::Arc;

use arrow::array::Int64Array;
use arrow::datatypes::{Date32Type, Int64Type};

use super::args::{Numbers, Text, build_numbers, build_text};
use super::builtin::{Builtin, Param, bind_with, by_args, nullable_string};
use super::calendar_pattern::CalendarPattern;
use super::time_text::{FirstError, Patterns, without_pattern};
use crate::error::{Error, Result};
use crate::expr::datetime::MS_PER_DAY;
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TimeZone, TypeKind};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("TO_DATE", "TO_DATE(<STRING> [, <STRING>])", bind_to_date, to_date).failing(),
    Builtin::new(
        "FROM_UNIXTIME",
        "FROM_UNIXTIME(<BIGINT> [, <STRING>])",
        |f, args| bind_with(f, args, &[Param::BigInt, Param::Text], 1, nullable_string),
        from_unix_time,
    )
    .failing(),
    Builtin::new(
        "UNIX_TIMESTAMP",
        "UNIX_TIMESTAMP()\nUNIX_TIMESTAMP(<STRING> [, <STRING>])",
        |f, args| bind_with(f, args, &[Param::Text; 2], 0, |args| by_args(TypeKind::BigInt, args)),
        unix_timestamp,
    )
    .volatile()
    .failing(),
    Builtin::new(
        "CONVERT_TZ",
        "CONVERT_TZ(<STRING>, <STRING>, <STRING>)",
        |f, args| bind_with(f, args, &[Param::Text; 3], 3, nullable_string),
        convert_zone,
    ),
];

/// What Flink reads and writes when no pattern is given.
const DEFAULT_PATTERN: &str = "yyyy-MM-dd HH:mm:ss";

/// The patterns that an argument gives, or the default.
fn patterns(datum: Option<&Datum>) -> Patterns<'_, CalendarPattern> {
    match datum {
        Some(datum) => Patterns::new(datum, CalendarPattern::parse),
        None => Patterns::of_constant(DEFAULT_PATTERN, CalendarPattern::parse),
    }
}

fn bind_to_date(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let bound = bind_with(function, args, &[Param::Text; 2], 1, |_| DataType::nullable(TypeKind::Date))?;
    Ok(without_pattern(bound, TypeKind::Date))
}

fn to_date(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (text, patterns) = (Text::of(&args[0]), patterns(args.get(1)));
    let mut error = FirstError::default();
    let dates = build_numbers::<Date32Type>(args, context, |row| {
        let pattern = error.note(patterns.at(row)?)?;
        let ms = pattern.read(text.get(row)?, TimeZone::UTC, context.processing_time_ms)?;
        ms.div_euclid(MS_PER_DAY).try_into().ok()
    });
    error.or(dates)
}

fn from_unix_time(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let seconds = Numbers::<Int64Type>::of(&args[0]);
    let patterns = patterns(args.get(1));
    let mut error = FirstError::default();
    let texts = build_text(args, context, |row, out| {
        let pattern = error.note(patterns.at(row)?.and_then(|pattern| writable(pattern, context.time_zone)))?;
        pattern.format(out, seconds.get(row)?.wrapping_mul(1_000), context.time_zone);
        Some(())
    });
    error.or(texts)
}

/// Refuses a pattern that would write what is not known here: the whole name of a zone.
fn writable<P: std::ops::Deref<Target = CalendarPattern>>(pattern: P, zone: TimeZone) -> Result<P> {
    if zone != TimeZone::UTC && pattern.names_zone() {
        return Err(Error::unsupported("zzzz in a pattern, the whole name of a zone").with_hint("z writes its abbreviation"));
    }
    Ok(pattern)
}

/// DATE_FORMAT of a string: it is read by the default pattern.
pub(super) fn format_text(args: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (text, patterns) = (Text::of(&args[0]), patterns(args.get(1)));
    let from = CalendarPattern::parse(DEFAULT_PATTERN)?;
    let mut error = FirstError::default();
    let texts = build_text(args, context, |row, out| {
        let pattern = error.note(patterns.at(row)?)?;
        let ms = from.read(text.get(row)?, TimeZone::UTC, context.processing_time_ms)?;
        pattern.format(out, ms, TimeZone::UTC);
        Some(())
    });
    error.or(texts)
}

/// The seconds of a local time of the session's zone; Java's least number where there is none to read.
fn unix_timestamp(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    if args.is_empty() {
        let seconds = context.processing_time_ms.div_euclid(1_000);
        return Ok(Datum::Scalar(Arc::new(Int64Array::from(vec![seconds]))));
    }
    let (text, patterns) = (Text::of(&args[0]), patterns(args.get(1)));
    let mut error = FirstError::default();
    let seconds = build_numbers::<Int64Type>(args, context, |row| {
        let text = text.get(row)?;
        let pattern = error.note(patterns.at(row)?)?;
        let read = pattern.read(text, context.time_zone, context.processing_time_ms);
        Some(read.map_or(i64::MIN, |ms| ms / 1_000))
    });
    error.or(seconds)
}

/// A text read as a local time of one zone and written as one of another.
fn convert_zone(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (text, from, to) = (Text::of(&args[0]), Text::of(&args[1]), Text::of(&args[2]));
    let pattern = CalendarPattern::parse(DEFAULT_PATTERN)?;
    build_text(args, context, |row, out| {
        let instant = pattern.read(text.get(row)?, zone_of(from.get(row)?), context.processing_time_ms)?;
        pattern.format(out, instant, zone_of(to.get(row)?));
        Some(())
    })
}

/// What Java means by three letters.
const ABBREVIATIONS: &[(&str, &str)] = &[
    ("ACT", "Australia/Darwin"),
    ("AET", "Australia/Sydney"),
    ("AGT", "America/Argentina/Buenos_Aires"),
    ("ART", "Africa/Cairo"),
    ("AST", "America/Anchorage"),
    ("BET", "America/Sao_Paulo"),
    ("BST", "Asia/Dhaka"),
    ("CAT", "Africa/Harare"),
    ("CNT", "America/St_Johns"),
    ("CST", "America/Chicago"),
    ("CTT", "Asia/Shanghai"),
    ("EAT", "Africa/Addis_Ababa"),
    ("ECT", "Europe/Paris"),
    ("EST", "-05:00"),
    ("HST", "-10:00"),
    ("IET", "America/Indiana/Indianapolis"),
    ("IST", "Asia/Kolkata"),
    ("JST", "Asia/Tokyo"),
    ("MIT", "Pacific/Apia"),
    ("MST", "-07:00"),
    ("NET", "Asia/Yerevan"),
    ("NST", "Pacific/Auckland"),
    ("PLT", "Asia/Karachi"),
    ("PNT", "America/Phoenix"),
    ("PRT", "America/Puerto_Rico"),
    ("PST", "America/Los_Angeles"),
    ("SST", "Pacific/Guadalcanal"),
    ("VST", "Asia/Ho_Chi_Minh"),
];

/// A zone as Java's older class takes it: offsets need GMT before them, and what it does not know is GMT.
fn zone_of(name: &str) -> TimeZone {
    if let Some((_, zone)) = ABBREVIATIONS.iter().find(|(short, _)| *short == name) {
        return TimeZone::parse(zone).unwrap_or(TimeZone::UTC);
    }
    let is_offset = name.starts_with(['+', '-']) || name.starts_with("UTC") || name.starts_with("UT+") || name.starts_with("UT-");
    if is_offset { TimeZone::UTC } else { TimeZone::parse(name).unwrap_or(TimeZone::UTC) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_those_of_javas_older_class() {
        let shown = |name: &str| zone_of(name).to_string();
        assert_eq!(shown("PST"), "America/Los_Angeles");
        assert_eq!([shown("EST"), shown("GMT-8")], ["-05:00", "-08:00"]);
        assert!(["+05:30", "UTC+2", "Nowhere/City", "", "utc"].iter().all(|name| zone_of(name) == TimeZone::UTC));
        assert!(ABBREVIATIONS.iter().all(|(_, zone)| TimeZone::parse(zone).is_some()));
    }
}
