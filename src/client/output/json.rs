//! Final rows as JSON, one object a line: numbers, booleans and NULL as such, everything else as a string.

use std::io::Write;

use arrow::array::Array;

use super::row_text::RowText;
use super::{PrintOptions, ResultPrinter};
use crate::error::{Error, Result};
use crate::expr::text::TextStyle;
use crate::types::{Batch, SchemaRef, TypeKind};

pub(super) struct JsonPrinter {
    text: RowText,
    names: Vec<String>,
    bare: Vec<bool>,
    rows: u64,
}

impl JsonPrinter {
    pub(super) fn boxed(options: &PrintOptions, schema: &SchemaRef) -> Result<Box<dyn ResultPrinter>> {
        let names = schema.fields.iter().map(|field| json_string(&field.name)).collect::<Result<_>>()?;
        let bare = schema.fields.iter().map(|field| field.data_type.is_numeric() || field.data_type.kind == TypeKind::Boolean);
        Ok(Box::new(JsonPrinter {
            text: RowText::new(schema, TextStyle::Display, options),
            names,
            bare: bare.collect(),
            rows: 0,
        }))
    }
}

fn json_string(text: &str) -> Result<String> {
    serde_json::to_string(text).map_err(|error| Error::internal(format!("text cannot become JSON: {error}")))
}

impl ResultPrinter for JsonPrinter {
    fn batch(&mut self, batch: &Batch, out: &mut dyn Write) -> Result<()> {
        let mut cell = String::new();
        for row in 0..batch.num_rows() {
            let mut parts = Vec::with_capacity(self.names.len());
            for (column, name) in self.names.iter().enumerate() {
                cell.clear();
                self.text.write_cell(batch, row, column, &mut cell);
                let value = if batch.column(column).is_null(row) {
                    "null".to_string()
                } else if self.bare[column] && !matches!(cell.as_str(), "NaN" | "Infinity" | "-Infinity") {
                    cell.clone()
                } else {
                    json_string(&cell)?
                };
                parts.push(format!("{name}:{value}"));
            }
            writeln!(out, "{{{}}}", parts.join(","))?;
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>, _: &mut dyn Write) -> Result<u64> {
        Ok(self.rows)
    }
}
