//! Rows as lines of JSON, as Flink writes them.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Decimal128Type, Float32Type, Float64Type};

use super::{JsonFormat, MapNullKey, TimestampFormat};
use crate::connectors::formats::RecordEncoder;
use crate::connectors::formats::text::{
    write_boolean, write_decimal, write_decimal_scientific, write_double, write_float, write_format_text, write_integer,
};
use crate::error::{Error, ErrorKind, Result};
use crate::types::{Batch, DataType, Maps, Schema, TypeKind};

/// Writes rows as lines of JSON.
pub struct JsonEncoder {
    format: JsonFormat,
    fields: Vec<(String, DataType)>,
}

impl JsonEncoder {
    /// For rows of this schema.
    pub fn new(format: JsonFormat, schema: &Schema) -> Self {
        let fields = schema.fields.iter().map(|field| (field.name.clone(), field.data_type.clone())).collect();
        JsonEncoder { format, fields }
    }
}

impl RecordEncoder for JsonEncoder {
    fn encode(&mut self, batch: &Batch, out: &mut Vec<u8>) -> Result<()> {
        let fields: Vec<Field<'_>> =
            self.fields.iter().enumerate().map(|(at, (name, data_type))| Field::new(name, data_type, batch.column(at))).collect();
        for row in 0..batch.num_rows() {
            self.format.write_object(&fields, row, out)?;
            out.push(b'\n');
        }
        Ok(())
    }
}

/// A field of an object: its key, written once, and its values.
pub struct Field<'a> {
    key: Vec<u8>,
    data_type: &'a DataType,
    array: &'a ArrayRef,
}

impl<'a> Field<'a> {
    /// Of a column.
    pub fn new(name: &str, data_type: &'a DataType, array: &'a ArrayRef) -> Self {
        let mut key = Vec::new();
        write_string(name, &mut key);
        key.push(b':');
        Field { key, data_type, array }
    }
}

impl JsonFormat {
    /// Appends a row as an object.
    pub(super) fn write_object(&self, fields: &[Field<'_>], row: usize, out: &mut Vec<u8>) -> Result<()> {
        out.push(b'{');
        let mut first = true;
        for field in fields {
            if self.leave_out_nulls && field.array.is_null(row) {
                continue;
            }
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            out.extend_from_slice(&field.key);
            self.write_value(field.array, row, field.data_type, out)?;
        }
        out.push(b'}');
        Ok(())
    }

    fn write_value(&self, array: &ArrayRef, row: usize, data_type: &DataType, out: &mut Vec<u8>) -> Result<()> {
        if array.is_null(row) || data_type.kind == TypeKind::Null {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match &data_type.kind {
            TypeKind::Char(_) | TypeKind::Varchar(_) => write_string(array.as_string_view().value(row), out),
            TypeKind::Boolean => write_boolean(array, row, out),
            TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::Int | TypeKind::BigInt => {
                write_integer(array, row, data_type, out)
            }
            TypeKind::Float => {
                let value = array.as_primitive::<Float32Type>().value(row);
                quoted_unless(value.is_finite(), out, |out| write_float(value, out));
            }
            TypeKind::Double => {
                let value = array.as_primitive::<Float64Type>().value(row);
                quoted_unless(value.is_finite(), out, |out| write_double(value, out));
            }
            TypeKind::Decimal(_, scale) => {
                let value = array.as_primitive::<Decimal128Type>().value(row);
                if self.plain_decimals {
                    write_decimal(value, *scale, out);
                } else {
                    write_decimal_scientific(value, *scale, true, out);
                }
            }
            TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
                let columns = array.as_struct();
                let fields: Vec<Field<'_>> = fields
                    .iter()
                    .enumerate()
                    .map(|(at, field)| Field::new(&field.name, &field.data_type, columns.column(at)))
                    .collect();
                self.write_object(&fields, row, out)?;
            }
            TypeKind::Array(element) => {
                let values = array.as_list::<i32>().value(row);
                out.push(b'[');
                for at in 0..values.len() {
                    if at > 0 {
                        out.push(b',');
                    }
                    self.write_value(&values, at, element, out)?;
                }
                out.push(b']');
            }
            TypeKind::Map(_, value) => self.write_map(array, row, value, out)?,
            TypeKind::Multiset(_) => self.write_map(array, row, &DataType::not_null(TypeKind::Int), out)?,
            _ => self.write_quoted(array, row, data_type, out)?,
        }
        Ok(())
    }

    /// The types that are strings in JSON.
    fn write_quoted(&self, array: &ArrayRef, row: usize, data_type: &DataType, out: &mut Vec<u8>) -> Result<()> {
        out.push(b'"');
        let separator = if self.timestamp_format == TimestampFormat::Iso8601 { b'T' } else { b' ' };
        if !write_format_text(array, row, data_type, separator, out) {
            return Err(Error::unsupported(format!("writing type {} in format '{}'", data_type.kind_text(), self.name)));
        }
        out.push(b'"');
        Ok(())
    }

    fn write_map(&self, array: &ArrayRef, row: usize, value: &DataType, out: &mut Vec<u8>) -> Result<()> {
        let maps = Maps::of(array);
        let (keys, values) = (maps.keys(), maps.values());
        out.push(b'{');
        let mut first = true;
        for at in maps.range(row) {
            let key = match (&self.map_null_key, keys.is_null(at)) {
                (_, false) => keys.as_string_view().value(at),
                (MapNullKey::Drop, true) => continue,
                (MapNullKey::Literal(literal), true) => literal,
                (MapNullKey::Fail, true) => {
                    return Err(Error::new(ErrorKind::DataFormat, "a map with a NULL key cannot be written as JSON")
                        .with_hint(format!("set '{}.map-null-key.mode' to 'DROP' or 'LITERAL'", self.name)));
                }
            };
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            write_string(key, out);
            out.push(b':');
            self.write_value(values, at, value, out)?;
        }
        out.push(b'}');
        Ok(())
    }
}

fn quoted_unless(plain: bool, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let quote: &[u8] = if plain { b"" } else { b"\"" };
    out.extend_from_slice(quote);
    write(out);
    out.extend_from_slice(quote);
}

/// Appends a string in quotes. Characters beyond the basic plane are escaped as pairs of surrogates, as Flink writes them.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte < b' ' || byte == b'"' || byte == b'\\' || byte >= 0xF0) {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let character = rest[at..].chars().next().expect("a byte was found there");
        escape(character, out);
        rest = &rest[at + character.len_utf8()..];
    }
    out.extend_from_slice(rest.as_bytes());
    out.push(b'"');
}

fn escape(character: char, out: &mut Vec<u8>) {
    let short = match character {
        '"' => b'"',
        '\\' => b'\\',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        _ => {
            let mut units = [0u16; 2];
            for unit in character.encode_utf16(&mut units) {
                out.extend_from_slice(format!("\\u{unit:04X}").as_bytes());
            }
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}
