//! Times from texts and back: DATE_FORMAT, TO_DATE, TO_TIMESTAMP, TO_TIMESTAMP_LTZ, FROM_UNIXTIME, UNIX_TIMESTAMP, CONVERT_TZ.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringViewBuilder, UInt32Array};
use arrow::compute;
use arrow::datatypes::{DataType as ArrowType, Date32Type, Float64Type, Int64Type, TimeUnit};

use super::args::{Numbers, Rows, Text, build_numbers, build_text};
use super::builtin::{Builtin, Param, bind_with, by_args, coerce, literal_text, nullable_string};
use super::time_pattern::Pattern;
use super::time_shift::try_cast;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::compile::map_array;
use crate::expr::datetime::MS_PER_DAY;
use crate::expr::values::{timestamp_units, timestamps_of_units};
use crate::expr::{CastMode, Datum, EvalContext, Expr, zone};
use crate::types::{DataType, TimeZone, TypeKind, Value};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("DATE_FORMAT", "DATE_FORMAT(<TIMESTAMP>, <STRING>)\nDATE_FORMAT(<STRING>, <STRING>)", bind_format, format)
        .failing(),
    Builtin::new("TO_DATE", "TO_DATE(<STRING> [, <STRING>])", bind_to_date, |args, _, context| {
        let (text, patterns) = (Text::of(&args[0]), Patterns::new(&args[1]));
        build_numbers::<Date32Type>(args, context, |row| {
            let (ms, _) = patterns.at(row)?.read(text.get(row)?)?;
            Some(ms.div_euclid(MS_PER_DAY) as i32)
        })
    }),
    Builtin::new("TO_TIMESTAMP", "TO_TIMESTAMP(<STRING> [, <STRING>])", bind_to_timestamp, |args, data_type, context| {
        read_timestamps(args, data_type, context, |ms, _| Some(ms))
    }),
    Builtin::new(
        "TO_TIMESTAMP_LTZ",
        "TO_TIMESTAMP_LTZ(<NUMERIC> [, <INT>])\nTO_TIMESTAMP_LTZ(<STRING> [, <STRING> [, <STRING>]])",
        bind_to_instant,
        to_instant,
    ),
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
        bind_unix_timestamp,
        unix_timestamp,
    )
    .volatile(),
    Builtin::new(
        "CONVERT_TZ",
        "CONVERT_TZ(<STRING>, <STRING>, <STRING>)",
        |f, args| bind_with(f, args, &[Param::Text; 3], 3, nullable_string),
        convert_zone,
    ),
];

/// What Flink reads and writes when no pattern is given.
const DEFAULT_PATTERN: &str = "yyyy-MM-dd HH:mm:ss";

/// An argument of patterns, constant or not.
struct Patterns<'a> {
    constant: Option<std::result::Result<Pattern, Error>>,
    texts: Option<Text<'a>>,
}

impl<'a> Patterns<'a> {
    fn new(datum: &'a Datum) -> Self {
        let texts = Text::of(datum);
        match datum.is_scalar() {
            true => Patterns { constant: texts.get(0).map(Pattern::parse), texts: None },
            false => Patterns { constant: None, texts: Some(texts) },
        }
    }

    fn default() -> Self {
        Patterns { constant: Some(Pattern::parse(DEFAULT_PATTERN)), texts: None }
    }

    /// The pattern of a row; none = NULL, or it is no pattern.
    fn at(&self, row: usize) -> Option<std::borrow::Cow<'_, Pattern>> {
        use std::borrow::Cow;
        match &self.texts {
            Some(texts) => Pattern::parse(texts.get(row)?).ok().map(Cow::Owned),
            None => self.constant.as_ref()?.as_ref().ok().map(Cow::Borrowed),
        }
    }

    /// The pattern, if all rows have the same.
    fn constant(&self) -> Option<&Pattern> {
        self.constant.as_ref()?.as_ref().ok()
    }

    /// The error of a constant that is no pattern.
    fn check(&self) -> Result<()> {
        match &self.constant {
            Some(Err(error)) => Err(error.clone()),
            _ => Ok(()),
        }
    }
}

/// Strings are read as timestamps, instants become local times.
fn bind_format(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [value, pattern]: [Expr; 2] = args.try_into().map_err(|args: Vec<Expr>| function.mismatch(&args))?;
    let value = match value.data_type().kind {
        TypeKind::Timestamp(_) => value,
        TypeKind::TimestampLtz(precision) => coerce(value, &TypeKind::Timestamp(precision)),
        TypeKind::Char(_) | TypeKind::Varchar(_) => try_cast(value, TypeKind::Timestamp(6)),
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
    let patterns = Patterns::new(&args[1]);
    patterns.check()?;
    let per_ms = units_per_ms(args[0].array().data_type());
    let units = map_array(args[0].clone(), |array| Ok(Arc::new(timestamp_units(array)) as ArrayRef))?;
    let units = Numbers::<Int64Type>::of(&units);
    if let Some((pattern, span_ms)) = patterns.constant().and_then(|pattern| Some((pattern, pattern.span_ms()?))) {
        return format_spans(args, context, &units, span_ms * per_ms, |out, units| {
            pattern.format(out, units.div_euclid(per_ms), 0);
        });
    }
    build_text(args, context, |row, out| {
        let units = units.get(row)?;
        let nanos = units.rem_euclid(per_ms) * (1_000_000 / per_ms);
        patterns.at(row)?.format(out, units.div_euclid(per_ms), nanos);
        Some(())
    })
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

fn bind_to_date(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let bound = bind_with(function, args, &[Param::Text; 2], 1, |_| DataType::nullable(TypeKind::Date))?;
    Ok(without_pattern(bound, TypeKind::Date))
}

fn bind_to_timestamp(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let bound = bind_with(function, args, &[Param::Text; 2], 1, |_| DataType::nullable(TypeKind::Timestamp(3)))?;
    Ok(without_pattern(bound, TypeKind::Timestamp(3)))
}

/// Without a pattern a text is read as CAST does, NULL where it cannot be.
fn without_pattern(call: Expr, kind: TypeKind) -> Expr {
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
    let (text, patterns) = (Text::of(&args[0]), Patterns::new(&args[1]));
    let (TypeKind::Timestamp(precision) | TypeKind::TimestampLtz(precision)) = data_type.kind else {
        return Err(Error::internal(format!("a timestamp was to be read as {data_type}")));
    };
    let per_ms = DataType::units_per_ms(precision);
    let units = build_numbers::<Int64Type>(args, context, |row| {
        let (ms, nanos) = patterns.at(row)?.read(text.get(row)?)?;
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
        Some(zones) => Some(zone::to_instant_ms(ms, TimeZone::parse(zones.get(row)?)?)),
    })
}

fn from_unix_time(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let seconds = Numbers::<Int64Type>::of(&args[0]);
    let patterns = args.get(1).map_or_else(Patterns::default, Patterns::new);
    patterns.check()?;
    build_text(args, context, |row, out| {
        let ms = seconds.get(row)?.checked_mul(1_000)?;
        patterns.at(row)?.format(out, zone::to_local_ms(ms, context.time_zone), 0);
        Some(())
    })
}

fn bind_unix_timestamp(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    bind_with(function, args, &[Param::Text; 2], 0, |args| by_args(TypeKind::BigInt, args))
}

/// The seconds of a local time of the session's zone; Java's least number where there is none to read.
fn unix_timestamp(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    if args.is_empty() {
        let seconds = context.processing_time_ms.div_euclid(1_000);
        return Ok(Datum::Scalar(Arc::new(arrow::array::Int64Array::from(vec![seconds]))));
    }
    let text = Text::of(&args[0]);
    let patterns = args.get(1).map_or_else(Patterns::default, Patterns::new);
    let is_null = |row: usize| args.len() > 1 && Text::of(&args[1]).get(row).is_none();
    build_numbers::<Int64Type>(args, context, |row| {
        let text = text.get(row)?;
        if is_null(row) {
            return None;
        }
        let read = patterns.at(row).and_then(|pattern| pattern.read(text).or_else(|| pattern.read(text.split('.').next()?)));
        Some(read.map_or(i64::MIN, |(ms, _)| zone::to_instant_ms(ms, context.time_zone).div_euclid(1_000)))
    })
}

/// The text up to its seconds: as in Flink, what stands behind them is not looked at.
fn up_to_seconds(text: &str) -> &str {
    let Some((minutes_end, _)) = text.match_indices(':').nth(1) else { return text };
    let seconds = text[minutes_end + 1..].bytes().take_while(u8::is_ascii_digit).count();
    &text[..minutes_end + 1 + seconds]
}

fn convert_zone(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let (text, from, to) = (Text::of(&args[0]), Text::of(&args[1]), Text::of(&args[2]));
    let pattern = Pattern::parse(DEFAULT_PATTERN)?;
    // Java takes a zone that it does not know for GMT.
    let zone_of = |name: &str| TimeZone::parse(name).unwrap_or(TimeZone::UTC);
    build_text(args, context, |row, out| {
        let (local, _) = pattern.read(up_to_seconds(text.get(row)?))?;
        let instant = zone::to_instant_ms(local, zone_of(from.get(row)?));
        pattern.format(out, zone::to_local_ms(instant, zone_of(to.get(row)?)), 0);
        Some(())
    })
}
