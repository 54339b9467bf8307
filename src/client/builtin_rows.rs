//! Rows that the session makes itself: SHOW, DESCRIBE, job lists. All columns are strings or booleans.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, StringViewArray};

use super::result::RowStream;
use crate::types::{Batch, DataType, Field, Schema, TypeKind};

/// A cell.
#[derive(Debug, Clone)]
pub(super) enum Cell {
    Text(Option<String>),
    Flag(bool),
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(Some(text))
    }
}

impl From<Option<String>> for Cell {
    fn from(text: Option<String>) -> Self {
        Cell::Text(text)
    }
}

impl From<bool> for Cell {
    fn from(flag: bool) -> Self {
        Cell::Flag(flag)
    }
}

/// Rows with these columns: name and whether it is a flag (BOOLEAN) rather than text.
pub(super) fn rows(columns: &[(&str, bool)], rows: Vec<Vec<Cell>>) -> RowStream {
    let fields = columns
        .iter()
        .map(|(name, flag)| Field::new(*name, if *flag { DataType::nullable(TypeKind::Boolean) } else { DataType::string() }));
    let schema = Arc::new(Schema::new(fields.collect()));
    let arrays = columns.iter().enumerate().map(|(column, (_, flag))| column_array(&rows, column, *flag)).collect();
    RowStream::ready(schema, Batch::new(arrays, rows.len()))
}

/// One text column.
pub(super) fn names(column: &str, values: impl IntoIterator<Item = String>) -> RowStream {
    rows(&[(column, false)], values.into_iter().map(|value| vec![value.into()]).collect())
}

fn column_array(rows: &[Vec<Cell>], column: usize, flag: bool) -> ArrayRef {
    if flag {
        let flags = rows.iter().map(|row| match &row[column] {
            Cell::Flag(flag) => Some(*flag),
            Cell::Text(_) => None,
        });
        return Arc::new(flags.collect::<BooleanArray>());
    }
    let texts = rows.iter().map(|row| match &row[column] {
        Cell::Text(text) => text.as_deref(),
        Cell::Flag(_) => None,
    });
    Arc::new(texts.collect::<StringViewArray>())
}
