//! Lines of JSON into columns.
//!
//! A record that is broken leaves no trace: its row is truncated away from all columns. Which records are errors and which are
//! skipped or NULL follows Flink: an array at the top level holds one record an element, blank lines are none. Only text after the
//! record is not passed over in silence as in Flink, since a second record may be lost in it: it is an error, or counted as skipped.

use super::cursor::Cursor;
use super::object::{ObjectShape, Rules};
use super::{JsonFormat, Malformed};
use crate::connectors::formats::{BadRecord, Block, Column, Decoded, RecordDecoder};
use crate::error::Result;
use crate::types::Schema;

/// Turns lines of JSON into columns.
pub struct JsonDecoder {
    root: ObjectShape,
    columns: Vec<Column>,
    rules: Rules,
    ignore_errors: bool,
}

impl JsonDecoder {
    /// A decoder of these columns.
    pub fn new(format: &JsonFormat, schema: &Schema) -> Result<Self> {
        let fields = schema.fields.iter().map(|field| (field.name.as_str(), &field.data_type));
        Ok(JsonDecoder {
            root: ObjectShape::new(fields),
            columns: schema.fields.iter().map(|field| Column::new(&field.data_type)).collect::<Result<_>>()?,
            rules: Rules::new(format.ignore_parse_errors, format.fail_on_missing_field, format.timestamp_format),
            ignore_errors: format.ignore_parse_errors,
        })
    }

    /// Appends the rows of a record; says how many they are.
    fn record(&mut self, cursor: &mut Cursor<'_>, row: usize) -> std::result::Result<usize, Malformed> {
        match cursor.peek_token() {
            b'{' => {
                self.root.decode(&mut self.columns, cursor, row, &mut self.rules)?;
                Ok(1)
            }
            b'[' => self.records_of_array(cursor, row),
            _ => Err(Malformed::NotAnObject),
        }
    }

    fn records_of_array(&mut self, cursor: &mut Cursor<'_>, row: usize) -> std::result::Result<usize, Malformed> {
        cursor.expect(b'[')?;
        if cursor.accept(b']') {
            return Ok(0);
        }
        let mut rows = 0;
        loop {
            if cursor.peek_token() != b'{' {
                return Err(Malformed::NotAnObject);
            }
            self.root.decode(&mut self.columns, cursor, row + rows, &mut self.rules)?;
            rows += 1;
            if !cursor.accept(b',') {
                cursor.expect(b']')?;
                return Ok(rows);
            }
        }
    }
}

impl RecordDecoder for JsonDecoder {
    fn decode(&mut self, block: &Block, from: usize, max_rows: usize) -> std::result::Result<Decoded, BadRecord> {
        let bytes = block.bytes.as_slice();
        let (mut at, mut rows, mut skipped) = (from, 0, 0);
        while rows < max_rows && at < bytes.len() {
            let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length);
            let line = bytes[at..end].strip_suffix(b"\r").unwrap_or(&bytes[at..end]);
            let start = std::mem::replace(&mut at, end + 1);
            if line.is_empty() {
                continue;
            }
            let mut cursor = Cursor { line, at: 0, base: start };
            let outcome = if block.is_utf8 || simdutf8::basic::from_utf8(line).is_ok() {
                self.record(&mut cursor, rows)
            } else {
                Err(Malformed::NotUtf8)
            };
            let problem = match outcome {
                Ok(added) => {
                    rows += added;
                    cursor.end().err()
                }
                Err(malformed) => {
                    self.columns.iter_mut().for_each(|column| column.truncate(rows));
                    Some(malformed)
                }
            };
            if let Some(malformed) = problem {
                if !self.ignore_errors {
                    self.columns.iter_mut().for_each(|column| column.truncate(0));
                    return Err(BadRecord { at: start, reason: malformed.to_string() });
                }
                skipped += 1;
            }
        }
        let columns = self.columns.iter_mut().map(|column| column.finish(&block.bytes)).collect();
        Ok(Decoded { columns, num_rows: rows, next: at.min(bytes.len()), skipped })
    }
}
