//! Timestamps from texts and back: DATE_FORMAT, TO_TIMESTAMP, TO_TIMESTAMP_LTZ.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringViewBuilder, UInt32Array};
use arrow::compute;
use arrow::datatypes::{DataType as ArrowType, Float64Type, Int64Type, TimeUnit};

use super::args::{Numbers, Rows, Text, build_numbers, build_text};
use super::builtin::{Builtin, Param, bind_with, coerce, literal_text, nullable_string};
use super::time_pattern::Pattern;
use super::time_shift::try_cast;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::compile::map_array;
use crate::expr::values::{timestamp_units, timestamps_of_units};
use crate::expr::{CastMode, Datum, EvalContext, Expr, zone};
use crate::types::{DataType, TimeZone, TypeKind, Value};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("DATE_FORMAT", "DATE_FORMAT(<TIMESTAMP>, <STRING>)\nDATE_FORMAT(<STRING>, <STRING>)", bind_format, format)
        .failing(),
    Builtin::new("TO_TIMESTAMP", "TO_TIMESTAMP(<STRING> [, <STRING>])", bind_to_timestamp, |args, data_type, context| {
        read_timestamps(args, data_type, context, |ms, _| Some(ms))
    }),
    Builtin::new(
        "TO_TIMESTAMP_LTZ",
        "TO_TIMESTAMP_LTZ(<NUMERIC> [, <INT>])\nTO_TIMESTAMP_LTZ(<STRING> [, <STRING> [, <STRING>]])",
        bind_to_instant,
        to_instant,
    ),
];

/// An argument of patterns of one class, constant or not.
pub(super) struct Patterns<'a, P> {
    parse: fn(&str) -> Result<P>,
    constant: Option<Result<P>>,
    texts: Option<Text<'a>>,
}

impl<'a, P: Clone> Patterns<'a, P> {
    pub(super) fn new(datum: &'a Datum, parse: fn(&str) -> Result<P>) -> Self {
        let texts = Text::of(datum);
        match datum.is_scalar() {
            true => Patterns { parse, constant: texts.get(0).map(parse), texts: None },
            false => Patterns { parse, constant: None, texts: Some(texts) },
        }
    }

    /// The same pattern for all rows.
    pub(super) fn of_constant(pattern: &str, parse: fn(&str) -> Result<P>) -> Self {
        Patterns { parse, constant: Some(parse(pattern)), texts: None }
    }

    /// The pattern of a row, or why it is none; none = NULL.
    pub(super) fn at(&self, row: usize) -> Option<Result<Cow<'_, P>>> {
        match &self.texts {
            Some(texts) => Some((self.parse)(texts.get(row)?).map(Cow::Owned)),
            None => Some(self.constant.as_ref()?.as_ref().map(Cow::Borrowed).map_err(Clone::clone)),
        }
    }

    /// The pattern, if all rows have the same.
    pub(super) fn constant(&self) -> Option<&P> {
        self.constant.as_ref()?.as_ref().ok()
    }
}

/// The first error of rows that are computed one by one and cannot fail by themselves.
#[derive(Default)]
pub(super) struct FirstError(Option<Error>);

impl FirstError {
    /// The value; an error is kept.
    pub(super) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.0.get_or_insert(error)).ok()
    }

    /// The result of all rows.
    pub(super) fn or<T>(self, result: Result<T>) -> Result<T> {
        self.0.map_or(result, Err)
    }
}

/// Instants become local times. Strings are read and written by patterns of the older class.
fn bind_format(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [value, pattern]: [Expr; 2] = args.try_into().map_err(|args: Vec<Expr>| function.mismatch(&args))?;
    let value = match value.data_type().kind {
        TypeKind::Timestamp(_) => value,
        TypeKind::TimestampLtz(precision) => coerce(value, &TypeKind::Timestamp(precision)),
        TypeKind::Char(_) | TypeKind::Varchar(_) => value,
        TypeKind::Null => coerce(value, &TypeKind::Timestamp(3)),
        _ => return Err(function.mismatch(&[value, pattern])),
    };
    bind_with(function, vec![value, pattern], &[Param::Any, Param::Text], 2, nullable_string)
}

fn units_per_ms(data_type: &ArrowType) -> i64 {
    match data_type {
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => 1_000_000,
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        _ => 1,
    }
}

fn format(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    if args[0].array().data_type() == &ArrowType::Utf8View {
        return super::unix_time::format_text(args, context);
    }
    let patterns = Patterns::new(&args[1], Pattern::for_writing);
    let per_ms = units_per_ms(args[0].array().data_type());
    let units = map_array(args[0].clone(), |array| Ok(Arc::new(timestamp_units(array)) as ArrayRef))?;
    let units = Numbers::<Int64Type>::of(&units);
    if let Some((pattern, span_ms)) = patterns.constant().and_then(|pattern| Some((pattern, pattern.span_ms()?))) {
        return format_spans(args, context, &units, span_ms * per_ms, |out, units| {
            pattern.format(out, units.div_euclid(per_ms), 0);
        });
    }
    let mut error = FirstError::default();
    let texts = build_text(args, context, |row, out| {
        let units = units.get(row)?;
        let nanos = units.rem_euclid(per_ms) * (1_000_000 / per_ms);
        error.note(patterns.at(row)?)?.format(out, units.div_euclid(per_ms), nanos);
        Some(())
    });
    error.or(texts)
}

/// Texts that are the same for all times of a span (a day, a minute …): each is written once, however many rows have it.
fn format_spans(
    args: &[Datum],
    context: &EvalContext,
    units: &Numbers<'_, Int64Type>,
    span: i64,
    write: impl Fn(&mut String, i64),
) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let mut texts = StringViewBuilder::new();
    let mut count = 0u32;
    let mut last = None;
    let mut buffer = String::new();
    let text_of = |row: usize| {
        let units = units.get(row)?;
        let index = units.div_euclid(span);
        if last != Some(index) {
            buffer.clear();
            write(&mut buffer, units);
            texts.append_value(&buffer);
            count += 1;
            last = Some(index);
        }
        Some(count - 1)
    };
    let indices: UInt32Array = (0..rows.count).map(text_of).collect();
    Ok(rows.finish(compute::take(&texts.finish(), &indices, None)?))
}

fn bind_to_timestamp(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let bound = bind_with(function, args, &[Param::Text; 2], 1, |_| DataType::nullable(TypeKind::Timestamp(3)))?;
    Ok(without_pattern(bound, TypeKind::Timestamp(3)))
}

/// Without a pattern a text is read as CAST does, NULL where it cannot be.
pub(super) fn without_pattern(call: Expr, kind: TypeKind) -> Expr {
    match call {
        Expr::Call { mut args, .. } if args.len() == 1 => try_cast(args.remove(0), kind),
        other => other,
    }
}

/// Texts read by patterns, as timestamps of the result's precision; `place` makes an instant of local milliseconds.
fn read_timestamps(
    args: &[Datum],
    data_type: &DataType,
    context: &EvalContext,
    place: impl Fn(i64, usize) -> Option<i64>,
) -> Result<Datum> {
    let (text, patterns) = (Text::of(&args[0]), Patterns::new(&args[1], Pattern::parse));
    let (TypeKind::Timestamp(precision) | TypeKind::TimestampLtz(precision)) = data_type.kind else {
        return Err(Error::internal(format!("a timestamp was to be read as {data_type}")));
    };
    let per_ms = DataType::units_per_ms(precision);
    let units = build_numbers::<Int64Type>(args, context, |row| {
        // What is no pattern gives NULL here, as in Flink.
        let (ms, nanos) = patterns.at(row)?.ok()?.read_or_plain(text.get(row)?)?;
        place(ms, row)?.checked_mul(per_ms)?.checked_add(nanos / (1_000_000 / per_ms))
    })?;
    let arrow_type = data_type.to_arrow();
    map_array(units, |array| Ok(timestamps_of_units(array.as_primitive(), &arrow_type)))
}

fn bind_to_instant(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let numeric = args.first().is_some_and(|arg| arg.data_type().is_numeric());
    let instant = |precision: u8| DataType::nullable(TypeKind::TimestampLtz(precision.max(3)));
    if !numeric {
        let pattern = match args.get(1).and_then(literal_text) {
            Some(text) => Some(Pattern::parse(text)?),
            None => None,
        };
        let precision = pattern.map_or(0, |pattern| pattern.fraction_digits().min(9) as u8);
        return bind_with(function, args, &[Param::Text; 3], 1, |_| instant(precision));
    }
    // A DECIMAL is cut to whole units, as in Flink; a FLOAT and a DOUBLE keep their fraction.
    let mut args = args;
    if matches!(args[0].data_type().kind, TypeKind::Decimal(..)) {
        let whole = DataType::new(TypeKind::BigInt, args[0].data_type().nullable);
        let input = Box::new(args.remove(0));
        args.insert(0, Expr::Cast { input, data_type: whole, mode: CastMode::Implicit });
    }
    let unit = if args[0].data_type().is_integer() { Param::BigInt } else { Param::Double };
    let precision = match args.get(1) {
        None => 3,
        Some(Expr::Literal { value: Value::Int(digits @ 0..=9), .. }) => *digits as u8,
        Some(_) => {
            return Err(Error::new(ErrorKind::InvalidArgument, "the precision of TO_TIMESTAMP_LTZ is a literal from 0 to 9")
                .with_hint("0 = the number is in seconds, 3 = in milliseconds"));
        }
    };
    let mut args = accept_number(function, args, unit)?;
    args.truncate(1);
    args.push(Expr::literal(Value::Int(precision.into()), DataType::not_null(TypeKind::Int)));
    Ok(function.call(args, instant(precision)))
}

fn accept_number(function: &Builtin, args: Vec<Expr>, unit: Param) -> Result<Vec<Expr>> {
    super::builtin::accept_all(function, args, &[unit, Param::Int], 1)
}

/// The years that an instant made from a number can have: 0 to 9999.
const INSTANT_MS: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;

fn to_instant(args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    if args[0].array().data_type() == &ArrowType::Utf8View {
        return text_to_instant(args, data_type, context);
    }
    let precision = Numbers::<arrow::datatypes::Int32Type>::of(&args[1]).get(0).unwrap_or(3);
    let TypeKind::TimestampLtz(result) = data_type.kind else { return Err(Error::internal("no instant")) };
    let per_ms = DataType::units_per_ms(result);
    let in_range = |ms: i64| INSTANT_MS.contains(&ms).then_some(());
    let numbers = &args[..1];
    // A number in units of 10^-precision seconds.
    let units = if args[0].array().data_type() == &ArrowType::Float64 {
        let number = Numbers::<Float64Type>::of(&args[0]);
        build_numbers::<Int64Type>(numbers, context, |row| {
            let ms = number.get(row)? * 10_f64.powi(3 - precision);
            in_range(ms as i64)?;
            Some((ms * per_ms as f64).floor() as i64)
        })?
    } else {
        let number = Numbers::<Int64Type>::of(&args[0]);
        build_numbers::<Int64Type>(numbers, context, |row| {
            let scaled = i128::from(number.get(row)?) * 1_000_000_000 / 10_i128.pow(precision as u32);
            let ms = i64::try_from(scaled.div_euclid(1_000_000)).ok()?;
            in_range(ms)?;
            i64::try_from(scaled.div_euclid(1_000_000 / i128::from(per_ms))).ok()
        })?
    };
    let arrow_type = data_type.to_arrow();
    map_array(units, |array| Ok(timestamps_of_units(array.as_primitive(), &arrow_type)))
}

/// Texts are local times of the zone that is the third argument, else of UTC.
fn text_to_instant(args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    let zones = args.get(2).map(Text::of);
    if args.len() == 1 {
        let TypeKind::TimestampLtz(precision) = data_type.kind else { return Err(Error::internal("no instant")) };
        let text = Text::of(&args[0]);
        let units =
            build_numbers::<Int64Type>(args, context, |row| crate::expr::cast::parse_timestamp(text.get(row)?, precision))?;
        let arrow_type = data_type.to_arrow();
        return map_array(units, |array| Ok(timestamps_of_units(array.as_primitive(), &arrow_type)));
    }
    read_timestamps(args, data_type, context, |ms, row| match &zones {
        None => Some(ms),
        Some(zones) => Some(zone::to_instant_ms(ms, zone_id(zones.get(row)?)?)),
    })
}

/// A zone by its name or offset. Java takes three names of the time zone database for abbreviations, and refuses them.
fn zone_id(name: &str) -> Option<TimeZone> {
    if matches!(name, "EST" | "MST" | "HST") { None } else { TimeZone::parse(name) }
}
