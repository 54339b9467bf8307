//! How results are printed: one printer per format, each fed with a schema, then batches, then the end.
//!
//! Printers of final rows fold the changelog first; the changelog printer prints every change as it comes. An insert-only result is
//! printed as it comes in every format but the table, whose column widths need all rows.

mod changelog;
mod csv;
mod json;
mod row_text;
mod table;

pub(super) use table::cut;

use std::io::Write;

use super::ChangelogFold;
use super::cli::OutputFormat;
use crate::config::{COLUMN_WIDTH, Configuration};
use crate::error::Result;
use crate::types::{Batch, ChangelogMode, SchemaRef};

/// Prints one result.
pub trait ResultPrinter {
    /// Rows or changes.
    fn batch(&mut self, batch: &Batch, out: &mut dyn Write) -> Result<()>;

    /// The result is complete. Gives the number of rows (of changes, in the changelog format) that were printed.
    fn finish(self: Box<Self>, out: &mut dyn Write) -> Result<u64>;
}

/// Where and how rows become text.
#[derive(Debug, Clone)]
pub struct PrintOptions {
    /// Format.
    pub format: OutputFormat,
    /// The session's zone, for TIMESTAMP_LTZ.
    pub time_zone: crate::types::TimeZone,
    /// Columns of the terminal; longer tables are cut.
    pub width: Option<usize>,
    /// Characters of a value in a table that does not fit, at most.
    pub column_width: usize,
}

impl PrintOptions {
    /// As the session's settings have it, for a terminal of `width` columns.
    pub fn of(format: OutputFormat, configuration: &Configuration, width: Option<usize>) -> Self {
        let column_width = usize::try_from(configuration.integer(&COLUMN_WIDTH)).unwrap_or(usize::MAX);
        PrintOptions { format, time_zone: configuration.time_zone(), width, column_width }
    }
}

/// The printer of a format, for a result with these columns and changes. What comes before the first row is printed at once.
pub fn printer(
    options: &PrintOptions,
    schema: &SchemaRef,
    changelog: ChangelogMode,
    out: &mut dyn Write,
) -> Result<Box<dyn ResultPrinter>> {
    let rows: Box<dyn ResultPrinter> = match options.format {
        OutputFormat::Changelog => return Ok(Box::new(changelog::ChangelogPrinter::new(options, schema, out)?)),
        OutputFormat::Table => return Ok(Box::new(Folding::new(schema, table::TablePrinter::boxed(options, schema)?)?)),
        OutputFormat::Csv => csv::CsvPrinter::boxed(options, schema, out)?,
        OutputFormat::Conformance => csv::CsvPrinter::boxed_conformance(options, schema, out)?,
        OutputFormat::Json => json::JsonPrinter::boxed(options, schema)?,
    };
    if changelog == ChangelogMode::InsertOnly { Ok(rows) } else { Ok(Box::new(Folding::new(schema, rows)?)) }
}

/// Whether rows of a result with these changes are printed only once it has ended.
pub fn folds(format: OutputFormat, changelog: ChangelogMode) -> bool {
    match format {
        OutputFormat::Changelog => false,
        OutputFormat::Table => true,
        OutputFormat::Csv | OutputFormat::Json | OutputFormat::Conformance => changelog != ChangelogMode::InsertOnly,
    }
}

/// Folds the changelog and hands the final rows to another printer.
struct Folding {
    fold: ChangelogFold,
    rows: Box<dyn ResultPrinter>,
}

impl Folding {
    fn new(schema: &SchemaRef, rows: Box<dyn ResultPrinter>) -> Result<Self> {
        Ok(Folding { fold: ChangelogFold::new(schema)?, rows })
    }
}

impl ResultPrinter for Folding {
    fn batch(&mut self, batch: &Batch, _: &mut dyn Write) -> Result<()> {
        self.fold.apply(batch)
    }

    fn finish(mut self: Box<Self>, out: &mut dyn Write) -> Result<u64> {
        self.rows.batch(&self.fold.to_batch()?, out)?;
        self.rows.finish(out)
    }
}
