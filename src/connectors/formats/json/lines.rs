//! A block as lines of one record each.
//!
//! A record that is broken leaves no trace: its rows are taken back. Blank lines are no records. Text after a record is not passed
//! over in silence as in Flink, since a second record may be lost in it: it is an error, or counted as skipped.

use super::Malformed;
use super::cursor::Cursor;
use crate::connectors::formats::{BadRecord, Block};

/// What makes rows of the records of a block.
pub trait Records {
    /// Appends the rows of the record at the cursor, the first of them as row `row`; says how many they are. When it fails, rows
    /// from `row` on may be left in part.
    fn record(&mut self, cursor: &mut Cursor<'_>, row: usize) -> std::result::Result<usize, Malformed>;

    /// Takes back all rows but the first `rows`.
    fn truncate(&mut self, rows: usize);
}

/// What came of the lines of a block.
pub struct Lines {
    /// Rows that were appended.
    pub rows: usize,
    /// Where in the block the next unread record begins.
    pub next: usize,
    /// Records that were skipped.
    pub skipped: u64,
}

/// Decodes lines of `block` from `from` on, until there are `max_rows` rows.
pub fn decode_lines(
    records: &mut impl Records,
    block: &Block,
    from: usize,
    max_rows: usize,
    ignore_errors: bool,
) -> std::result::Result<Lines, BadRecord> {
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
            records.record(&mut cursor, rows)
        } else {
            Err(Malformed::NotUtf8)
        };
        let problem = match outcome {
            Ok(added) => {
                rows += added;
                cursor.end().err()
            }
            Err(malformed) => {
                records.truncate(rows);
                Some(malformed)
            }
        };
        if let Some(malformed) = problem {
            if !ignore_errors {
                records.truncate(0);
                return Err(BadRecord { at: start, reason: malformed.to_string() });
            }
            skipped += 1;
        }
    }
    Ok(Lines { rows, next: at.min(bytes.len()), skipped })
}
