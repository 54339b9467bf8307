//! Lines of JSON into columns. Which records are errors and which are skipped or NULL follows Flink: an array at the top level holds
//! one record an element.

use super::cursor::Cursor;
use super::lines::{Lines, Records, decode_lines};
use super::object::{ObjectShape, Rules};
use super::{JsonFormat, Malformed};
use crate::connectors::formats::{BadRecord, Block, Column, Decoded, RecordDecoder};
use crate::error::Result;
use crate::types::Schema;

/// Turns lines of JSON into columns.
pub struct JsonDecoder {
    rows: Rows,
    ignore_errors: bool,
}

struct Rows {
    root: ObjectShape,
    columns: Vec<Column>,
    rules: Rules,
}

impl JsonDecoder {
    /// A decoder of these columns.
    pub fn new(format: &JsonFormat, schema: &Schema) -> Result<Self> {
        let rows = Rows {
            root: ObjectShape::of(schema),
            columns: schema.fields.iter().map(|field| Column::new(&field.data_type)).collect::<Result<_>>()?,
            rules: Rules::new(format.ignore_parse_errors, format.fail_on_missing_field, format.timestamp_format),
        };
        Ok(JsonDecoder { rows, ignore_errors: format.ignore_parse_errors })
    }
}

impl Records for Rows {
    fn record(&mut self, cursor: &mut Cursor<'_>, row: usize) -> std::result::Result<usize, Malformed> {
        match cursor.peek_token() {
            b'{' => {
                self.root.decode(&mut self.columns, cursor, row, &mut self.rules)?;
                Ok(1)
            }
            b'[' => records_of_array(cursor, row, |cursor, row| {
                self.root.decode(&mut self.columns, cursor, row, &mut self.rules)?;
                Ok(1)
            }),
            _ => Err(Malformed::NotAnObject),
        }
    }

    fn truncate(&mut self, rows: usize) {
        self.columns.iter_mut().for_each(|column| column.truncate(rows));
    }
}

/// The records of an array, each an object that `decode` makes rows of; says how many rows they are.
pub fn records_of_array<'a>(
    cursor: &mut Cursor<'a>,
    row: usize,
    mut decode: impl FnMut(&mut Cursor<'a>, usize) -> std::result::Result<usize, Malformed>,
) -> std::result::Result<usize, Malformed> {
    cursor.expect(b'[')?;
    if cursor.accept(b']') {
        return Ok(0);
    }
    let mut rows = 0;
    loop {
        if cursor.peek_token() != b'{' {
            return Err(Malformed::NotAnObject);
        }
        rows += decode(cursor, row + rows)?;
        if !cursor.accept(b',') {
            cursor.expect(b']')?;
            return Ok(rows);
        }
    }
}

impl RecordDecoder for JsonDecoder {
    fn decode(&mut self, block: &Block, from: usize, max_rows: usize) -> std::result::Result<Decoded, BadRecord> {
        let Lines { rows, next, skipped } = decode_lines(&mut self.rows, block, from, max_rows, self.ignore_errors)?;
        let columns = self.rows.columns.iter_mut().map(|column| column.finish(&block.bytes)).collect();
        Ok(Decoded { columns, metadata: Vec::new(), kinds: None, num_rows: rows, next, skipped })
    }
}
