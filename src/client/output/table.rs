//! Final rows as a table with borders, numbers to the right, long values cut with `…`.

use std::io::Write;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::row_text::RowText;
use super::{PrintOptions, ResultPrinter};
use crate::error::Result;
use crate::expr::text::TextStyle;
use crate::types::{Batch, SchemaRef};

/// Where the terminal is narrow, one text after another is cut to this.
const CELL_WIDTH_GOOD: usize = 20;
/// Where that is not enough, all are cut to this.
const CELL_WIDTH_MIN: usize = 8;

/// Columns of which a part is of no use: a user copies them into the next statement.
const WHOLE_COLUMNS: [&str; 2] = ["job id", "savepoint path"];

pub(super) struct TablePrinter {
    text: RowText,
    names: Vec<String>,
    right: Vec<bool>,
    /// Which columns are never cut.
    whole: Vec<bool>,
    rows: Vec<Vec<String>>,
    width: Option<usize>,
    column_width: usize,
}

impl TablePrinter {
    pub(super) fn boxed(options: &PrintOptions, schema: &SchemaRef) -> Result<Box<dyn ResultPrinter>> {
        Ok(Box::new(TablePrinter {
            text: RowText::new(schema, TextStyle::Display, options),
            names: schema.fields.iter().map(|field| field.name.clone()).collect(),
            right: schema.fields.iter().map(|field| field.data_type.is_numeric()).collect(),
            whole: schema.fields.iter().map(|field| WHOLE_COLUMNS.contains(&field.name.as_str())).collect(),
            rows: Vec::new(),
            width: options.width,
            column_width: options.column_width,
        }))
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.names.iter().map(|name| name.width()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        if self.width.is_some_and(|available| table_width(&widths) <= available) {
            return widths;
        }
        let kept = widths.iter_mut().zip(&self.whole);
        kept.filter(|(_, whole)| !**whole).for_each(|(width, _)| *width = (*width).min(self.column_width));
        if let Some(available) = self.width {
            shrink(&mut widths, &self.right, &self.whole, available);
        }
        widths
    }

    fn line(&self, cells: &[String], widths: &[usize], header: bool) -> String {
        let mut line = String::from("|");
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let cell = cut(&cell.replace(['\n', '\r', '\t'], " "), *width);
            let padding = " ".repeat(width.saturating_sub(cell.width()));
            match self.right[column] && !header {
                true => line.push_str(&format!(" {padding}{cell} |")),
                false => line.push_str(&format!(" {cell}{padding} |")),
            }
        }
        self.fit(line)
    }

    /// Cuts a line at the terminal's edge, unless it holds what is never cut.
    fn fit(&self, line: String) -> String {
        match self.width {
            Some(width) if line.width() > width && !self.whole.contains(&true) => cut(&line, width),
            _ => line,
        }
    }
}

/// What a table with columns of these widths takes of a line.
fn table_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + 3 * widths.len() + 1
}

/// Narrows columns until the table fits: the widest texts first, numbers only where nothing else helps, since a part of a number reads
/// as another one.
fn shrink(widths: &mut [usize], is_number: &[bool], is_whole: &[bool], available: usize) {
    let excess = |widths: &[usize]| table_width(widths).saturating_sub(available);
    let mut texts: Vec<usize> = (0..widths.len()).filter(|column| !is_number[*column] && !is_whole[*column]).collect();
    texts.sort_by_key(|column| std::cmp::Reverse(widths[*column]));
    for column in &texts {
        let spare = widths[*column].saturating_sub(CELL_WIDTH_GOOD);
        widths[*column] -= spare.min(excess(widths));
    }
    let all: Vec<usize> = (0..widths.len()).filter(|column| !is_whole[*column]).collect();
    for columns in [&texts, &all] {
        while excess(widths) > 0 {
            match columns.iter().copied().max_by_key(|column| widths[*column]) {
                Some(widest) if widths[widest] > CELL_WIDTH_MIN => widths[widest] -= 1,
                _ => break,
            }
        }
    }
}

/// The text, cut with `…` where it takes more than `width` columns of a terminal.
pub(in crate::client) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_string();
    }
    let mut used = 1; // the ellipsis
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    text.chars().take_while(fits).chain(['…']).collect()
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::client::cli::OutputFormat;
    use crate::types::{Schema, TimeZone};

    #[test]
    fn text_is_cut_by_the_columns_that_it_takes() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 6), "日本語");
    }

    #[test]
    fn the_widest_texts_are_narrowed_first_and_numbers_last() {
        let mut widths = [40, 32, 19];
        shrink(&mut widths, &[false, false, true], &[false; 3], 90);
        assert_eq!(widths, [29, 32, 19]);
        shrink(&mut widths, &[false, false, true], &[false; 3], 60);
        assert_eq!(widths, [15, 16, 19]);
        shrink(&mut widths, &[false, false, true], &[false; 3], 10);
        assert_eq!(widths, [8, 8, 8]);
    }

    #[test]
    fn nothing_is_cut_while_the_table_fits() {
        let options = |width| PrintOptions { format: OutputFormat::Table, time_zone: TimeZone::UTC, width, column_width: 40 };
        let printer = |width| TablePrinter {
            text: RowText::new(&Arc::new(Schema { fields: Vec::new() }), TextStyle::Display, &options(width)),
            names: vec!["key".to_string()],
            right: vec![false],
            whole: vec![false],
            rows: vec![vec!["x".repeat(60)]],
            width,
            column_width: 40,
        };
        assert_eq!(printer(Some(80)).widths(), [60]);
        assert_eq!(printer(Some(50)).widths(), [40]);
        assert_eq!(printer(None).widths(), [40]);
    }

    #[test]
    fn what_is_copied_into_the_next_statement_stays_whole() {
        let mut widths = [32, 32, 19];
        shrink(&mut widths, &[false; 3], &[true, false, false], 60);
        assert_eq!(widths[0], 32);
        assert!(widths[1] < 32 && widths[2] < 19);
    }
}
