//! Rows as separated values, as Flink writes them.
//!
//! A text is put in quotes if it is longer than 24 characters or holds a character that is no greater than a delimiter, quote or
//! line end: the rule of the library that Flink uses. Numbers never are.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Decimal128Type, Float32Type, Float64Type};

use super::CsvFormat;
use crate::connectors::formats::RecordEncoder;
use crate::connectors::formats::text::{
    write_boolean, write_decimal, write_decimal_scientific, write_double, write_float, write_format_text, write_integer,
};
use crate::error::{Error, Result};
use crate::types::{Batch, DataType, Schema, TypeKind};

/// Longer texts are put in quotes without being looked at.
const UNQUOTED_CHARS_MAX: usize = 24;

/// Writes rows as separated values.
pub struct CsvEncoder {
    format: CsvFormat,
    types: Vec<DataType>,
    /// A text with a byte below this one is put in quotes.
    safe_from: u8,
    cell: Vec<u8>,
}

impl CsvEncoder {
    /// For rows of this schema.
    pub fn new(format: CsvFormat, schema: &Schema) -> Self {
        let special = [Some(format.delimiter), format.quote, format.escape, Some(b'\n'), Some(b'\r')];
        let safe_from = special.into_iter().flatten().max().unwrap_or(b'"') + 1;
        let types = schema.fields.iter().map(|field| field.data_type.clone()).collect();
        CsvEncoder { format, types, safe_from, cell: Vec::new() }
    }

    fn write_cell(&mut self, array: &ArrayRef, row: usize, column: usize, out: &mut Vec<u8>) -> Result<()> {
        let data_type = &self.types[column];
        if array.is_null(row) || data_type.kind == TypeKind::Null {
            out.extend_from_slice(self.format.null_literal.as_deref().unwrap_or("").as_bytes());
            return Ok(());
        }
        if data_type.is_numeric() || data_type.kind == TypeKind::Boolean {
            return self.format.write_text(array, row, data_type, out);
        }
        self.cell.clear();
        self.format.write_text(array, row, data_type, &mut self.cell)?;
        self.write_quoted_if_needed(out);
        Ok(())
    }

    fn write_quoted_if_needed(&self, out: &mut Vec<u8>) {
        let needs_quotes = self.cell.len() > UNQUOTED_CHARS_MAX && utf16_length(&self.cell) > UNQUOTED_CHARS_MAX
            || self.cell.iter().any(|byte| *byte < self.safe_from);
        let Some(quote) = self.format.quote.filter(|_| needs_quotes) else {
            return out.extend_from_slice(&self.cell);
        };
        let escape = self.format.escape.unwrap_or(quote);
        out.push(quote);
        for byte in &self.cell {
            if *byte == quote || Some(*byte) == self.format.escape {
                out.push(escape);
            }
            out.push(*byte);
        }
        out.push(quote);
    }
}

fn utf16_length(text: &[u8]) -> usize {
    String::from_utf8_lossy(text).encode_utf16().count()
}

impl RecordEncoder for CsvEncoder {
    fn encode(&mut self, batch: &Batch, out: &mut Vec<u8>) -> Result<()> {
        for row in 0..batch.num_rows() {
            for (at, column) in batch.columns().iter().enumerate() {
                if at > 0 {
                    out.push(self.format.delimiter);
                }
                self.write_cell(column, row, at, out)?;
            }
            out.push(b'\n');
        }
        Ok(())
    }
}

impl CsvFormat {
    /// Appends a value that is not NULL, without quotes.
    fn write_text(&self, array: &ArrayRef, row: usize, data_type: &DataType, out: &mut Vec<u8>) -> Result<()> {
        match &data_type.kind {
            TypeKind::Char(_) | TypeKind::Varchar(_) => out.extend_from_slice(array.as_string_view().value(row).as_bytes()),
            TypeKind::Boolean => write_boolean(array, row, out),
            TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::Int | TypeKind::BigInt => {
                write_integer(array, row, data_type, out)
            }
            TypeKind::Float => write_float(array.as_primitive::<Float32Type>().value(row), out),
            TypeKind::Double => write_double(array.as_primitive::<Float64Type>().value(row), out),
            TypeKind::Decimal(_, scale) => {
                let value = array.as_primitive::<Decimal128Type>().value(row);
                if self.scientific_decimals {
                    write_decimal_scientific(value, *scale, true, out);
                } else {
                    write_decimal(value, *scale, out);
                }
            }
            TypeKind::Array(element) => {
                let values = array.as_list::<i32>().value(row);
                for at in 0..values.len() {
                    self.write_element(&values, at, at, element, out)?;
                }
            }
            TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
                let columns = array.as_struct();
                for (at, field) in fields.iter().enumerate() {
                    self.write_element(columns.column(at), row, at, &field.data_type, out)?;
                }
            }
            _ if write_format_text(array, row, data_type, b' ', out) => {}
            _ => return Err(Error::unsupported(format!("writing type {} in format 'csv'", data_type.kind_text()))),
        }
        Ok(())
    }

    fn write_element(&self, array: &ArrayRef, row: usize, at: usize, data_type: &DataType, out: &mut Vec<u8>) -> Result<()> {
        if at > 0 {
            out.extend_from_slice(self.array_delimiter.as_bytes());
        }
        if array.is_null(row) {
            out.extend_from_slice(self.null_literal.as_deref().unwrap_or("").as_bytes());
            return Ok(());
        }
        self.write_text(array, row, data_type, out)
    }
}
