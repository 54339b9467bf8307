//! Every change as it comes: its kind, then the row, as comma-separated text.

use std::io::Write;

use super::row_text::RowText;
use super::{PrintOptions, ResultPrinter};
use crate::error::Result;
use crate::expr::text::TextStyle;
use crate::types::{Batch, SchemaRef};

pub(super) struct ChangelogPrinter {
    text: RowText,
    changes: u64,
}

impl ChangelogPrinter {
    pub(super) fn new(options: &PrintOptions, schema: &SchemaRef, out: &mut dyn Write) -> Result<Self> {
        writeln!(out, "# schema: {schema}")?;
        Ok(ChangelogPrinter { text: RowText::new(schema, TextStyle::Conformance, options), changes: 0 })
    }
}

impl ResultPrinter for ChangelogPrinter {
    fn batch(&mut self, batch: &Batch, out: &mut dyn Write) -> Result<()> {
        let mut lines = String::new();
        for row in 0..batch.num_rows() {
            lines.push_str(batch.kind(row).symbol());
            lines.push(',');
            self.text.write_row(batch, row, ",", &mut lines);
            lines.push('\n');
        }
        self.changes += batch.num_rows() as u64;
        out.write_all(lines.as_bytes())?;
        Ok(out.flush()?)
    }

    fn finish(self: Box<Self>, _: &mut dyn Write) -> Result<u64> {
        Ok(self.changes)
    }
}
