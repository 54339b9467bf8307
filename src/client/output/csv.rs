//! Final rows as comma-separated text: with a header line for people and programs, or in the form of the conformance suite.

use std::io::Write;

use super::row_text::RowText;
use super::{PrintOptions, ResultPrinter};
use crate::error::Result;
use crate::expr::text::TextStyle;
use crate::types::{Batch, SchemaRef};

pub(super) struct CsvPrinter {
    text: RowText,
    rows: u64,
}

impl CsvPrinter {
    pub(super) fn boxed(options: &PrintOptions, schema: &SchemaRef, out: &mut dyn Write) -> Result<Box<dyn ResultPrinter>> {
        let names: Vec<String> = schema.fields.iter().map(|field| quoted(&field.name)).collect();
        writeln!(out, "{}", names.join(","))?;
        Ok(Box::new(CsvPrinter { text: RowText::new(schema, TextStyle::Conformance, options), rows: 0 }))
    }

    pub(super) fn boxed_conformance(
        options: &PrintOptions,
        schema: &SchemaRef,
        out: &mut dyn Write,
    ) -> Result<Box<dyn ResultPrinter>> {
        writeln!(out, "# schema: {schema}")?;
        Ok(Box::new(CsvPrinter { text: RowText::new(schema, TextStyle::Conformance, options), rows: 0 }))
    }
}

fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\n']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_string() }
}

impl ResultPrinter for CsvPrinter {
    fn batch(&mut self, batch: &Batch, out: &mut dyn Write) -> Result<()> {
        let mut lines = String::new();
        for row in 0..batch.num_rows() {
            self.text.write_row(batch, row, ",", &mut lines);
            lines.push('\n');
        }
        self.rows += batch.num_rows() as u64;
        Ok(out.write_all(lines.as_bytes())?)
    }

    fn finish(self: Box<Self>, _: &mut dyn Write) -> Result<u64> {
        Ok(self.rows)
    }
}
