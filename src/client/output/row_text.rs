//! The rows of a result as text: one writer a column, made once.

use crate::expr::text::{TextStyle, ValueWriter};
use crate::types::{Batch, SchemaRef};

use super::PrintOptions;

/// Writes rows of one schema in one style.
pub(super) struct RowText {
    writers: Vec<ValueWriter>,
}

impl RowText {
    pub(super) fn new(schema: &SchemaRef, style: TextStyle, options: &PrintOptions) -> Self {
        let writer = |field: &crate::types::Field| ValueWriter::new(&field.data_type, style, options.time_zone);
        RowText { writers: schema.fields.iter().map(writer).collect() }
    }

    pub(super) fn write_cell(&self, batch: &Batch, row: usize, column: usize, out: &mut String) {
        self.writers[column].write(out, batch.column(column).as_ref(), row);
    }

    /// All values of a row with `separator` between them.
    pub(super) fn write_row(&self, batch: &Batch, row: usize, separator: &str, out: &mut String) {
        for column in 0..self.writers.len() {
            if column > 0 {
                out.push_str(separator);
            }
            self.write_cell(batch, row, column, out);
        }
    }
}
