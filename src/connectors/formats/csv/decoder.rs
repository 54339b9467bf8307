//! Records of separated values into columns.
//!
//! Without `csv.ignore-parse-errors` a record must have as many fields as the table has columns. With it, missing fields are NULL
//! and records with too many are skipped. A blank line is a record with one empty field, but where
//! comments are allowed: there it is none.

use super::CsvFormat;
use super::value::{Text, ValueReader};
use crate::connectors::formats::{BadRecord, Block, Column, Decoded, RecordDecoder, does_not_fit};
use crate::error::Result;
use crate::types::Schema;

/// Turns records of separated values into columns.
pub struct CsvDecoder {
    format: CsvFormat,
    /// For each field of a record its column, if it is wanted.
    slots: Vec<Option<usize>>,
    names: Vec<String>,
    columns: Vec<Column>,
    values: ValueReader,
    scratch: Vec<u8>,
}

impl CsvDecoder {
    /// A decoder of the projected columns.
    pub fn new(format: &CsvFormat, physical: &Schema, projection: &[usize]) -> Result<Self> {
        let mut slots = vec![None; physical.len()];
        for (slot, field) in projection.iter().enumerate() {
            slots[*field] = Some(slot);
        }
        let columns = projection.iter().map(|field| Column::new(&physical.field(*field).data_type)).collect::<Result<_>>()?;
        Ok(CsvDecoder {
            format: format.clone(),
            slots,
            names: physical.fields.iter().map(|field| field.name.clone()).collect(),
            columns,
            values: ValueReader::new(format),
            scratch: Vec::new(),
        })
    }

    /// Appends the record at `at` as row `row`; gives where the next one begins.
    fn record(&mut self, block: &Block, at: usize, row: usize) -> std::result::Result<usize, String> {
        let bytes = block.bytes.as_slice();
        let (mut at, mut index) = (at, 0);
        loop {
            let field = self.format.field(bytes, at, &mut self.scratch).map_err(String::from)?;
            let Some(slot) = self.slots.get(index) else {
                return Err(format!("the record has more fields than the {} of the table", self.slots.len()));
            };
            if let Some(slot) = slot {
                let text = if field.rewritten {
                    Text { bytes: &self.scratch, offset: None }
                } else {
                    Text { bytes: &bytes[field.start..field.end], offset: Some(field.start) }
                };
                let column = &mut self.columns[*slot];
                if !self.values.read(column, text) {
                    if !self.format.ignore_parse_errors {
                        return Err(format!("field \"{}\" {}", self.names[index], does_not_fit(text.bytes, "\"")));
                    }
                    column.truncate(row);
                    column.push_null();
                }
            }
            index += 1;
            at = field.next;
            if field.last {
                break;
            }
        }
        if index < self.slots.len() {
            if !self.format.ignore_parse_errors {
                return Err(format!("the record has {index} of {} fields", self.slots.len()));
            }
            for column in self.columns.iter_mut().filter(|column| column.len() == row) {
                column.push_null();
            }
        }
        Ok(at)
    }

    /// Whether the line at `at` is UTF-8: asked only if the block is not.
    fn is_utf8(bytes: &[u8], at: usize) -> bool {
        simdutf8::basic::from_utf8(&bytes[at..Self::after_broken(bytes, at)]).is_ok()
    }

    /// Whether the first line is a comment or blank; only where comments are allowed.
    fn is_comment(&self, lines: &[u8]) -> bool {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r') && *byte != self.format.delimiter;
        matches!(lines.iter().find(|byte| !is_blank(byte)), None | Some(b'#' | b'\n'))
    }

    /// Where the record after a broken one begins: after its line.
    fn after_broken(bytes: &[u8], at: usize) -> usize {
        memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length + 1)
    }
}

impl RecordDecoder for CsvDecoder {
    fn decode(&mut self, block: &Block, from: usize, max_rows: usize) -> std::result::Result<Decoded, BadRecord> {
        let bytes = block.bytes.as_slice();
        let (mut at, mut rows, mut skipped) = (from, 0, 0);
        while rows < max_rows && at < bytes.len() {
            if self.format.comments && self.is_comment(&bytes[at..]) {
                at = Self::after_broken(bytes, at);
                continue;
            }
            let outcome = if block.is_utf8 || Self::is_utf8(bytes, at) {
                self.record(block, at, rows)
            } else {
                Err("the record is not valid UTF-8".to_string())
            };
            match outcome {
                Ok(next) => {
                    at = next;
                    rows += 1;
                }
                Err(reason) => {
                    let kept = if self.format.ignore_parse_errors { rows } else { 0 };
                    self.columns.iter_mut().for_each(|column| column.truncate(kept));
                    if !self.format.ignore_parse_errors {
                        return Err(BadRecord { at, reason });
                    }
                    skipped += 1;
                    at = Self::after_broken(bytes, at);
                }
            }
        }
        let columns = self.columns.iter_mut().map(|column| column.finish(&block.bytes)).collect();
        Ok(Decoded { columns, metadata: Vec::new(), kinds: None, num_rows: rows, next: at.min(bytes.len()), skipped })
    }

    fn whole_records(&self, bytes: &[u8]) -> Option<usize> {
        self.format.whole_records(bytes)
    }
}
