//! Values of columns as JSON: what JSON_STRING, JSON_OBJECT and JSON_ARRAY write.

use std::cell::Cell;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::number::write_decimal_literal;
use super::write::{compare_keys, write_string};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::text::{number, time};
use crate::expr::values::timestamp_units;
use crate::types::{Maps, is_map};

/// The values of an array, ready to be written as JSON.
#[derive(Debug)]
pub(in crate::expr) struct JsonForm {
    array: ArrayRef,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Null,
    Boolean,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Float,
    Double,
    Decimal(u8),
    Text,
    Bytes,
    Timestamp {
        units: arrow::array::Int64Array,
        units_per_ms: i64,
        is_instant: bool,
    },
    List(Box<JsonForm>),
    /// The values, and whether a NULL key was met.
    Map(Box<JsonForm>, Cell<bool>),
    Row(Vec<(String, JsonForm)>),
}

impl JsonForm {
    /// For the values of an array.
    pub(in crate::expr) fn new(array: &ArrayRef) -> Result<Self> {
        let form = match array.data_type() {
            ArrowType::Null => Form::Null,
            ArrowType::Boolean => Form::Boolean,
            ArrowType::Int8 => Form::TinyInt,
            ArrowType::Int16 => Form::SmallInt,
            ArrowType::Int32 => Form::Int,
            ArrowType::Int64 => Form::BigInt,
            ArrowType::Float32 => Form::Float,
            ArrowType::Float64 => Form::Double,
            ArrowType::Decimal128(_, scale) => Form::Decimal(*scale as u8),
            ArrowType::Utf8View => Form::Text,
            ArrowType::BinaryView => Form::Bytes,
            ArrowType::Timestamp(unit, zone) => {
                let units_per_ms = match unit {
                    TimeUnit::Microsecond => 1_000,
                    TimeUnit::Nanosecond => 1_000_000,
                    TimeUnit::Second | TimeUnit::Millisecond => 1,
                };
                Form::Timestamp { units: timestamp_units(array), units_per_ms, is_instant: zone.is_some() }
            }
            maps if is_map(maps) => Form::Map(Box::new(JsonForm::new(Maps::of(array).values())?), Cell::new(false)),
            ArrowType::List(_) => Form::List(Box::new(JsonForm::new(array.as_list::<i32>().values())?)),
            ArrowType::Struct(fields) => {
                let columns = fields.iter().zip(array.as_struct().columns());
                let named = columns.map(|(field, column)| Ok((field.name().clone(), JsonForm::new(column)?)));
                let mut named = named.collect::<Result<Vec<_>>>()?;
                named.sort_by(|a, b| compare_keys(&a.0, &b.0));
                Form::Row(named)
            }
            other => return Err(Error::internal(format!("{other} cannot be written as JSON"))),
        };
        Ok(JsonForm { array: ArrayRef::clone(array), form })
    }

    /// Fails when a value that was written had a map with a NULL key, which JSON has not.
    pub(in crate::expr) fn check(&self) -> Result<()> {
        match &self.form {
            Form::Map(_, null_key) if null_key.get() => {
                Err(Error::new(ErrorKind::InvalidArgument, "a map with a NULL key cannot be written as JSON"))
            }
            Form::Map(part, _) | Form::List(part) => part.check(),
            Form::Row(fields) => fields.iter().try_for_each(|(_, field)| field.check()),
            _ => Ok(()),
        }
    }

    /// Appends the value at a row; none = it is NULL, and nothing is appended.
    pub(in crate::expr) fn write_valid(&self, out: &mut String, row: usize) -> Option<()> {
        if self.array.is_null(row) || matches!(self.form, Form::Null) {
            return None;
        }
        self.write(out, row);
        Some(())
    }

    /// Appends a string at a row that is JSON already; none = it is NULL.
    pub(in crate::expr) fn write_raw(&self, out: &mut String, row: usize) -> Option<()> {
        if self.array.is_null(row) {
            return None;
        }
        out.push_str(self.array.as_string_view().value(row));
        Some(())
    }

    fn write_part(&self, out: &mut String, row: usize) {
        if self.write_valid(out, row).is_none() {
            out.push_str("null");
        }
    }

    fn write(&self, out: &mut String, row: usize) {
        let array = &self.array;
        match &self.form {
            Form::Null => {}
            Form::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
            Form::TinyInt => number::write_integer(out, array.as_primitive::<Int8Type>().value(row).into()),
            Form::SmallInt => number::write_integer(out, array.as_primitive::<Int16Type>().value(row).into()),
            Form::Int => number::write_integer(out, array.as_primitive::<Int32Type>().value(row).into()),
            Form::BigInt => number::write_integer(out, array.as_primitive::<Int64Type>().value(row)),
            Form::Float => write_double(out, array.as_primitive::<Float32Type>().value(row).into()),
            Form::Double => write_double(out, array.as_primitive::<Float64Type>().value(row)),
            Form::Decimal(scale) => {
                let mut text = String::new();
                number::write_decimal(&mut text, array.as_primitive::<Decimal128Type>().value(row), *scale);
                write_decimal_literal(out, &text);
            }
            Form::Text => write_string(out, array.as_string_view().value(row)),
            Form::Bytes => {
                out.push('"');
                STANDARD.encode_string(array.as_binary_view().value(row), out);
                out.push('"');
            }
            Form::Timestamp { units, units_per_ms, is_instant } => {
                write_timestamp(out, units.value(row), *units_per_ms, *is_instant);
            }
            Form::List(elements) => {
                let offsets = array.as_list::<i32>().value_offsets();
                out.push('[');
                for at in offsets[row]..offsets[row + 1] {
                    out.push_str(if at > offsets[row] { "," } else { "" });
                    elements.write_part(out, at as usize);
                }
                out.push(']');
            }
            Form::Map(values, null_key) => {
                let maps = Maps::of(array);
                let keys = maps.keys().as_string_view();
                let mut entries: Vec<usize> = maps.range(row).collect();
                if entries.iter().any(|entry| keys.is_null(*entry)) {
                    null_key.set(true);
                    return;
                }
                entries.sort_by(|a, b| compare_keys(keys.value(*a), keys.value(*b)));
                out.push('{');
                for (index, entry) in entries.into_iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    write_string(out, keys.value(entry));
                    out.push(':');
                    values.write_part(out, entry);
                }
                out.push('}');
            }
            Form::Row(fields) => {
                out.push('{');
                for (index, (name, column)) in fields.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    write_string(out, name);
                    out.push(':');
                    column.write_part(out, row);
                }
                out.push('}');
            }
        }
    }
}

/// A number as Java's `BigDecimal` prints it; what is none in quotes.
fn write_double(out: &mut String, value: f64) {
    let mut text = String::new();
    number::write_double(&mut text, value);
    if value.is_finite() {
        write_decimal_literal(out, &text);
    } else {
        out.extend(["\"", &text, "\""]);
    }
}

/// `"2020-01-01T10:00:00.123"`, with as many fraction digits as it needs.
fn write_timestamp(out: &mut String, units: i64, units_per_ms: i64, is_instant: bool) {
    let (days, ms_of_day, nanos_of_ms) = time::split_timestamp(units, units_per_ms);
    out.push('"');
    time::write_date(out, days);
    out.push('T');
    time::write_seconds(out, ms_of_day);
    let nanos = ms_of_day % 1_000 * 1_000_000 + nanos_of_ms;
    if nanos > 0 {
        let digits = format!("{nanos:09}");
        out.extend([".", digits.trim_end_matches('0')]);
    }
    out.push_str(if is_instant { "Z\"" } else { "\"" });
}
