//! PRINTF: a text by a pattern of Java's; NULL where Java throws.

use std::borrow::Cow;

use arrow::array::{Array, AsArray, PrimitiveArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, Date32Type, Decimal128Type, DurationMillisecondType, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, IntervalYearMonthType, Time32MillisecondType, TimeUnit,
};

use super::args::{Text, build_text};
use super::builtin::{Builtin, Param, coerce, nullable_string};
use super::java_format::{Format, FormatError, FormatValue};
use crate::error::{Error, Result};
use crate::expr::text::{number, time};
use crate::expr::values::timestamp_units;
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind, VARCHAR_MAX};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[Builtin::new("PRINTF", "PRINTF(<STRING> [, <ANY>]*)", bind_printf, printf).failing()];

/// Bytes and nested values are formatted by their text as strings: Java would print an address.
fn bind_printf(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let Some(pattern) = args.first().and_then(|pattern| Param::Text.accept(pattern.clone())) else {
        return Err(function.mismatch(&args));
    };
    let values = args.into_iter().skip(1).map(|arg| {
        let data_type = arg.data_type();
        let has_no_text = data_type.is_binary() || data_type.is_nested() || data_type.kind == TypeKind::Null;
        if has_no_text { coerce(arg, &TypeKind::Varchar(VARCHAR_MAX)) } else { arg }
    });
    let args: Vec<Expr> = std::iter::once(pattern).chain(values).collect();
    let data_type = nullable_string(&args);
    Ok(function.call(args, data_type))
}

fn printf(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let patterns = Text::of(&args[0]);
    let readers = args[1..].iter().map(reader).collect::<Result<Vec<_>>>()?;
    let mut known: Option<(&str, Result<Format, FormatError>)> = None;
    let mut unsupported = None;
    let mut values = Vec::with_capacity(readers.len());
    let result = build_text(args, context, |row, out| {
        let pattern = patterns.get(row)?;
        if !matches!(&known, Some((text, _)) if *text == pattern) {
            known = Some((pattern, Format::parse(pattern)));
        }
        let (_, format) = known.as_ref()?;
        values.clear();
        values.extend(readers.iter().map(|read| read(row)));
        match format.as_ref().map_err(|error| *error).and_then(|format| format.write(out, &values)) {
            Ok(()) => Some(()),
            Err(FormatError::Illegal) => None,
            Err(FormatError::Unsupported(letter)) => {
                unsupported.get_or_insert(letter);
                None
            }
        }
    });
    match unsupported {
        None => result,
        Some(letter) => Err(Error::unsupported(format!("%{letter} in a pattern of PRINTF"))
            .with_hint("%b %s %c %d %o %x %f %e %g %% and %n are supported; format times with DATE_FORMAT")),
    }
}

type Reader<'a> = Box<dyn Fn(usize) -> FormatValue<'a> + 'a>;

/// How a row of an argument is read.
fn reader(datum: &Datum) -> Result<Reader<'_>> {
    let array = datum.array();
    let read: Reader<'_> = match array.data_type() {
        ArrowType::Utf8View => Box::new(|row| FormatValue::Text(Cow::Borrowed(array.as_string_view().value(row)))),
        ArrowType::Boolean => Box::new(|row| FormatValue::Boolean(array.as_boolean().value(row))),
        ArrowType::Int8 => integer::<Int8Type>(array.as_primitive(), 8),
        ArrowType::Int16 => integer::<Int16Type>(array.as_primitive(), 16),
        ArrowType::Int32 => integer::<Int32Type>(array.as_primitive(), 32),
        ArrowType::Int64 => integer::<Int64Type>(array.as_primitive(), 64),
        ArrowType::Date32 => integer::<Date32Type>(array.as_primitive(), 32),
        ArrowType::Time32(_) => integer::<Time32MillisecondType>(array.as_primitive(), 32),
        ArrowType::Interval(_) => integer::<IntervalYearMonthType>(array.as_primitive(), 32),
        ArrowType::Duration(_) => integer::<DurationMillisecondType>(array.as_primitive(), 64),
        ArrowType::Float32 => Box::new(|row| {
            let value = array.as_primitive::<Float32Type>().value(row);
            FormatValue::Double(value.into(), written(|out| number::write_float(out, value)))
        }),
        ArrowType::Float64 => Box::new(|row| {
            let value = array.as_primitive::<Float64Type>().value(row);
            FormatValue::Double(value, written(|out| number::write_double(out, value)))
        }),
        ArrowType::Decimal128(_, scale) => {
            let scale = *scale as u8;
            Box::new(move |row| {
                let value = array.as_primitive::<Decimal128Type>().value(row);
                FormatValue::Text(written(|out| number::write_decimal(out, value, scale)).into())
            })
        }
        ArrowType::Timestamp(unit, _) => {
            let units_per_ms = match unit {
                TimeUnit::Microsecond => 1_000,
                TimeUnit::Nanosecond => 1_000_000,
                TimeUnit::Second | TimeUnit::Millisecond => 1,
            };
            let units = timestamp_units(array);
            Box::new(move |row| {
                FormatValue::Text(written(|out| time::write_local_date_time(out, units.value(row), units_per_ms)).into())
            })
        }
        other => return Err(Error::internal(format!("PRINTF got an argument of type {other}"))),
    };
    let scalar = datum.is_scalar();
    Ok(Box::new(move |row| {
        let at = if scalar { 0 } else { row };
        if array.is_null(at) { FormatValue::Null } else { read(at) }
    }))
}

fn written(write: impl FnOnce(&mut String)) -> String {
    let mut text = String::new();
    write(&mut text);
    text
}

fn integer<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, bits: u32) -> Reader<'_>
where
    T::Native: Into<i64>,
{
    Box::new(move |row| FormatValue::Integer(array.value(row).into(), bits))
}
