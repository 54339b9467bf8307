//! Final rows as a table with borders, numbers to the right, long values cut with `…`.

use std::io::Write;

use super::row_text::RowText;
use super::{PrintOptions, ResultPrinter};
use crate::error::Result;
use crate::expr::text::TextStyle;
use crate::types::{Batch, SchemaRef};

/// Characters of a cell, at most, as `sql-client.display.max-column-width` has it by default in Flink.
const CELL_WIDTH_MAX: usize = 40;

pub(super) struct TablePrinter {
    text: RowText,
    names: Vec<String>,
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
    width: Option<usize>,
}

impl TablePrinter {
    pub(super) fn boxed(options: &PrintOptions, schema: &SchemaRef) -> Result<Box<dyn ResultPrinter>> {
        Ok(Box::new(TablePrinter {
            text: RowText::new(schema, TextStyle::Display, options),
            names: schema.fields.iter().map(|field| field.name.clone()).collect(),
            right: schema.fields.iter().map(|field| field.data_type.is_numeric()).collect(),
            rows: Vec::new(),
            width: options.width,
        }))
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.names.iter().map(|name| name.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths.iter_mut().for_each(|width| *width = (*width).min(CELL_WIDTH_MAX));
        widths
    }

    fn line(&self, cells: &[String], widths: &[usize], header: bool) -> String {
        let mut line = String::from("|");
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let cell = cut(&cell.replace(['\n', '\r', '\t'], " "), *width);
            let padding = " ".repeat(width - cell.chars().count());
            match self.right[column] && !header {
                true => line.push_str(&format!(" {padding}{cell} |")),
                false => line.push_str(&format!(" {cell}{padding} |")),
            }
        }
        self.fit(line)
    }

    /// Cuts a line at the terminal's edge.
    fn fit(&self, line: String) -> String {
        match self.width {
            Some(width) if line.chars().count() > width => cut(&line, width),
            _ => line,
        }
    }
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

impl ResultPrinter for TablePrinter {
    fn batch(&mut self, batch: &Batch, _: &mut dyn Write) -> Result<()> {
        for row in 0..batch.num_rows() {
            let mut cells = Vec::with_capacity(self.names.len());
            for column in 0..self.names.len() {
                let mut cell = String::new();
                self.text.write_cell(batch, row, column, &mut cell);
                cells.push(cell);
            }
            self.rows.push(cells);
        }
        Ok(())
    }

    fn finish(self: Box<Self>, out: &mut dyn Write) -> Result<u64> {
        let widths = self.widths();
        let dashes: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        let border = self.fit(format!("+{}+", dashes.join("+")));
        writeln!(out, "{border}\n{}\n{border}", self.line(&self.names, &widths, true))?;
        for row in &self.rows {
            writeln!(out, "{}", self.line(row, &widths, false))?;
        }
        writeln!(out, "{border}")?;
        Ok(self.rows.len() as u64)
    }
}
