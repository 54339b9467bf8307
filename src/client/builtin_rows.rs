//! Rows that the session makes itself: SHOW, DESCRIBE, job lists. All columns are strings, booleans or whole numbers.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, StringViewArray};

use super::result::RowStream;
use crate::types::{Batch, DataType, Field, Schema, TypeKind};

/// A cell.
#[derive(Debug, Clone)]
pub(super) enum Cell {
    Text(Option<String>),
    Flag(bool),
    Number(Option<i64>),
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellType {
    /// STRING.
    Text,
    /// BOOLEAN.
    Flag,
    /// BIGINT.
    Number,
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

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Cell::Number(Some(i64::try_from(number).unwrap_or(i64::MAX)))
    }
}

impl From<bool> for Cell {
    fn from(flag: bool) -> Self {
        Cell::Flag(flag)
    }
}

/// Rows with these columns.
pub(super) fn rows(columns: &[(&str, CellType)], rows: Vec<Vec<Cell>>) -> RowStream {
    let data_type = |cell_type: CellType| match cell_type {
        CellType::Text => DataType::string(),
        CellType::Flag => DataType::nullable(TypeKind::Boolean),
        CellType::Number => DataType::nullable(TypeKind::BigInt),
    };
    let fields = columns.iter().map(|(name, cell_type)| Field::new(*name, data_type(*cell_type)));
    let schema = Arc::new(Schema::new(fields.collect()));
    let arrays = columns.iter().enumerate().map(|(column, (_, cell_type))| column_array(&rows, column, *cell_type)).collect();
    RowStream::ready(schema, Batch::new(arrays, rows.len()))
}

/// One text column.
pub(super) fn names(column: &str, values: impl IntoIterator<Item = String>) -> RowStream {
    rows(&[(column, CellType::Text)], values.into_iter().map(|value| vec![value.into()]).collect())
}

fn column_array(rows: &[Vec<Cell>], column: usize, cell_type: CellType) -> ArrayRef {
    let cells = rows.iter().map(|row| &row[column]);
    match cell_type {
        CellType::Text => Arc::new(cells.map(Cell::text).collect::<StringViewArray>()),
        CellType::Flag => Arc::new(cells.map(Cell::flag).collect::<BooleanArray>()),
        CellType::Number => Arc::new(cells.map(Cell::number).collect::<Int64Array>()),
    }
}

impl Cell {
    fn text(&self) -> Option<&str> {
        if let Cell::Text(text) = self { text.as_deref() } else { None }
    }

    fn flag(&self) -> Option<bool> {
        if let Cell::Flag(flag) = self { Some(*flag) } else { None }
    }

    fn number(&self) -> Option<i64> {
        if let Cell::Number(number) = self { *number } else { None }
    }
}
