//! Batches as text and back: one row a line, columns parted by `|`, the row kind first if it is given.
//!
//! ```text
//! +I | 1 | apple
//! -D | 2 | NULL
//! WATERMARK 5
//! ```
//!
//! Values are read by the columns' types: numbers, TRUE and FALSE, texts as they stand (`''` is the empty one), dates and timestamps in
//! SQL form or, for timestamps, as a number in their unit. A line `WATERMARK t` is a step between the rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType as ArrowType;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::types::{Batch, RowKind, RowKinds, Schema, Watermark, WatermarkSteps};

/// The batch that a text describes.
pub fn parse_batch(schema: &Schema, text: &str) -> Batch {
    let mut rows: Vec<Vec<&str>> = Vec::new();
    let mut kinds = Vec::new();
    let mut steps = WatermarkSteps::none();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(watermark) = line.strip_prefix("WATERMARK ") {
            steps.push(rows.len() as u32, Watermark(watermark.trim().parse().expect("milliseconds")));
            continue;
        }
        let mut cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let kind = kind_of(cells[0]);
        if kind.is_some() {
            cells.remove(0);
        }
        assert_eq!(cells.len(), schema.len(), "columns of {line}");
        kinds.push(kind.unwrap_or(RowKind::Insert));
        rows.push(cells);
    }
    let column = |index: usize| {
        let cells = rows.iter().map(|row| match row[index] {
            "NULL" => None,
            "''" => Some(""),
            cell => Some(cell),
        });
        parse_column(&cells.collect::<StringArray>(), &schema.field(index).data_type.to_arrow())
    };
    let columns = (0..schema.len()).map(column).collect();
    let kinds = kinds.iter().any(|kind| *kind != RowKind::Insert).then(|| RowKinds::new(kinds));
    Batch::new(columns, rows.len()).with_kinds(kinds).with_steps(steps)
}

fn kind_of(cell: &str) -> Option<RowKind> {
    [RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter, RowKind::Delete].into_iter().find(|kind| kind.symbol() == cell)
}

fn parse_column(cells: &StringArray, to: &ArrowType) -> ArrayRef {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let cells: ArrayRef = Arc::new(cells.clone());
    if matches!(to, ArrowType::Timestamp(..))
        && let Ok(numbers) = cast_with_options(&cells, &ArrowType::Int64, &strict)
    {
        return cast_with_options(&numbers, to, &strict).expect("a number is a time");
    }
    cast_with_options(&cells, to, &strict).expect("cells fit their column's type")
}

/// A batch as text, with row kinds when it has any.
pub fn format_batch(batch: &Batch) -> String {
    let options = FormatOptions::new().with_null("NULL");
    let formatters: Vec<ArrayFormatter<'_>> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).expect("all types are printable"))
        .collect();
    let mut text = String::new();
    let mut steps = batch.steps().as_slice().iter().peekable();
    for row in 0..=batch.num_rows() {
        while let Some(step) = steps.next_if(|step| step.rows_before as usize == row) {
            text.push_str(&format!("WATERMARK {}\n", step.watermark));
        }
        if row < batch.num_rows() {
            let cells = formatters.iter().map(|formatter| formatter.value(row).to_string());
            let kind = batch.kinds().map(|_| batch.kind(row).symbol().to_string());
            text.push_str(&kind.into_iter().chain(cells).collect::<Vec<_>>().join(" | "));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{DataType, Field, TypeKind};

    #[test]
    fn a_text_is_read_and_printed_the_same() {
        let field = |name: &str, kind| Field::new(name, DataType::nullable(kind));
        let schema =
            Schema::new(vec![field("a", TypeKind::Int), field("s", TypeKind::Varchar(9)), field("t", TypeKind::Timestamp(3))]);
        let text = "+I | 1 | x | 2020-01-01T00:00:00.001\nWATERMARK 5\n-D | NULL | NULL | NULL\n";
        assert_eq!(format_batch(&parse_batch(&schema, text)), text);
        assert_eq!(format_batch(&parse_batch(&schema, "7 | y | 1000")), "7 | y | 1970-01-01T00:00:01\n");
    }
}
