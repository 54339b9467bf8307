//! Final rows as JSON, one object a line: numbers, booleans and NULL as such, ARRAY as an array, ROW, MAP and MULTISET as objects (their
//! keys as text), VARIANT as the JSON that it is, everything else as a string.

use std::io::Write;

use arrow::array::{Array, AsArray};

use super::{PrintOptions, ResultPrinter};
use crate::error::{Error, Result};
use crate::expr::text::{TextStyle, ValueWriter};
use crate::types::{Batch, DataType, Maps, SchemaRef, TimeZone, TypeKind};

pub(super) struct JsonPrinter {
    columns: Vec<(String, JsonWriter)>,
    rows: u64,
}

impl JsonPrinter {
    pub(super) fn boxed(options: &PrintOptions, schema: &SchemaRef) -> Result<Box<dyn ResultPrinter>> {
        let column = |field: &crate::types::Field| keyed(&field.name, &field.data_type, options.time_zone);
        Ok(Box::new(JsonPrinter { columns: schema.fields.iter().map(column).collect::<Result<_>>()?, rows: 0 }))
    }
}

impl ResultPrinter for JsonPrinter {
    fn batch(&mut self, batch: &Batch, out: &mut dyn Write) -> Result<()> {
        let mut line = String::new();
        for row in 0..batch.num_rows() {
            line.clear();
            let columns = self.columns.iter().enumerate();
            write_object(&mut line, columns.map(|(at, (key, writer))| (key.as_str(), writer, &**batch.column(at), row)))?;
            writeln!(out, "{line}")?;
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>, _: &mut dyn Write) -> Result<u64> {
        Ok(self.rows)
    }
}

/// Writes the values of one type.
enum JsonWriter {
    /// Text that is JSON.
    Bare(ValueWriter),
    /// A number of floating point, which may be none of JSON's.
    Float(ValueWriter),
    /// Any text.
    Quoted(ValueWriter),
    Array(Box<JsonWriter>),
    /// How keys become text, and values.
    Map(ValueWriter, Box<JsonWriter>),
    Row(Vec<(String, JsonWriter)>),
}

impl JsonWriter {
    fn new(data_type: &DataType, zone: TimeZone) -> Result<Self> {
        let text = || ValueWriter::new(data_type, TextStyle::Display, zone);
        Ok(match &data_type.kind {
            TypeKind::Float | TypeKind::Double => JsonWriter::Float(text()),
            TypeKind::Boolean | TypeKind::Variant => JsonWriter::Bare(text()),
            _ if data_type.is_numeric() => JsonWriter::Bare(text()),
            TypeKind::Array(element) => JsonWriter::Array(Box::new(JsonWriter::new(element, zone)?)),
            TypeKind::Map(key, value) => JsonWriter::map(key, value, zone)?,
            TypeKind::Multiset(element) => JsonWriter::map(element, &DataType::not_null(TypeKind::Int), zone)?,
            TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
                let field = |field: &crate::types::RowField| keyed(&field.name, &field.data_type, zone);
                JsonWriter::Row(fields.iter().map(field).collect::<Result<_>>()?)
            }
            _ => JsonWriter::Quoted(text()),
        })
    }

    fn map(key: &DataType, value: &DataType, zone: TimeZone) -> Result<Self> {
        Ok(JsonWriter::Map(ValueWriter::new(key, TextStyle::Display, zone), Box::new(JsonWriter::new(value, zone)?)))
    }

    fn write(&self, out: &mut String, array: &dyn Array, row: usize) -> Result<()> {
        if array.is_null(row) {
            out.push_str("null");
            return Ok(());
        }
        match self {
            JsonWriter::Bare(text) => text.write(out, array, row),
            JsonWriter::Float(text) => {
                let number = text_of(text, array, row);
                let is_json = number.ends_with(|c: char| c.is_ascii_digit());
                out.push_str(&if is_json { number } else { json_string(&number)? });
            }
            JsonWriter::Quoted(text) => out.push_str(&json_string(&text_of(text, array, row))?),
            JsonWriter::Array(element) => {
                let values = array.as_list::<i32>().value(row);
                out.push('[');
                for at in 0..values.len() {
                    separate(out, at);
                    element.write(out, &*values, at)?;
                }
                out.push(']');
            }
            JsonWriter::Map(key, value) => {
                let maps = Maps::of(array);
                out.push('{');
                for (count, at) in maps.range(row).enumerate() {
                    separate(out, count);
                    out.push_str(&json_string(&text_of(key, &**maps.keys(), at))?);
                    out.push(':');
                    value.write(out, &**maps.values(), at)?;
                }
                out.push('}');
            }
            JsonWriter::Row(fields) => {
                let columns = array.as_struct();
                let fields = fields.iter().enumerate();
                write_object(out, fields.map(|(at, (key, writer))| (key.as_str(), writer, &**columns.column(at), row)))?;
            }
        }
        Ok(())
    }
}

/// A key, as JSON has it, and how its values are written.
fn keyed(name: &str, data_type: &DataType, zone: TimeZone) -> Result<(String, JsonWriter)> {
    Ok((json_string(name)?, JsonWriter::new(data_type, zone)?))
}

fn write_object<'a>(
    out: &mut String,
    fields: impl Iterator<Item = (&'a str, &'a JsonWriter, &'a dyn Array, usize)>,
) -> Result<()> {
    out.push('{');
    for (at, (key, writer, array, row)) in fields.enumerate() {
        separate(out, at);
        out.push_str(key);
        out.push(':');
        writer.write(out, array, row)?;
    }
    out.push('}');
    Ok(())
}

fn separate(out: &mut String, at: usize) {
    if at > 0 {
        out.push(',');
    }
}

fn text_of(writer: &ValueWriter, array: &dyn Array, row: usize) -> String {
    let mut text = String::new();
    writer.write(&mut text, array, row);
    text
}

fn json_string(text: &str) -> Result<String> {
    serde_json::to_string(text).map_err(|error| Error::internal(format!("text cannot become JSON: {error}")))
}
