//! Changes into columns.
//!
//! The rows before and after are decoded where they are found, right into the columns, in the hope that they come in this order and
//! that both are wanted: the operation stands behind them. Where that was wrong the rows are taken back and decoded again.

use super::DebeziumFormat;
use super::metadata::{Metadata, Places};
use crate::connectors::formats::json::Malformed;
use crate::connectors::formats::json::cursor::Cursor;
use crate::connectors::formats::json::decoder::records_of_array;
use crate::connectors::formats::json::keys::Keys;
use crate::connectors::formats::json::lines::{Lines, Records, decode_lines};
use crate::connectors::formats::json::object::{ObjectShape, Rules, does_not_fit_field, named};
use crate::connectors::formats::{BadRecord, Block, Column, Decoded, RecordDecoder};
use crate::error::Result;
use crate::types::{RowKind, RowKinds, Schema};

type Parsed<T> = std::result::Result<T, Malformed>;

/// The fields of a change, by slot.
const FIELDS: [&str; 6] = ["before", "after", "op", "source", "ts_ms", "schema"];
const BEFORE: usize = 0;
const AFTER: usize = 1;
const OP: usize = 2;
const SOURCE: usize = 3;
const TS_MS: usize = 4;
const SCHEMA: usize = 5;
/// The fields around a change that comes with its schema.
const PAYLOAD_FIELDS: [&str; 2] = ["payload", "schema"];

/// Turns changes into columns and row kinds.
pub struct DebeziumDecoder {
    changes: Changes,
    ignore_errors: bool,
}

impl DebeziumDecoder {
    /// A decoder of these columns and of the metadata with these keys.
    pub fn new(format: &DebeziumFormat, schema: &Schema, metadata: &[String]) -> Result<Self> {
        let json = &format.json;
        let mut rules = Rules::new(json.ignore_parse_errors, false, json.timestamp_format);
        rules.all_keys = true;
        let changes = Changes {
            payload: format.schema_include.then(|| Keys::new(PAYLOAD_FIELDS)),
            fields: Keys::new(FIELDS),
            row: ObjectShape::of(schema),
            columns: schema.fields.iter().map(|field| Column::new(&field.data_type)).collect::<Result<_>>()?,
            metadata: Metadata::new(metadata)?,
            kinds: Vec::new(),
            rules,
        };
        Ok(DebeziumDecoder { changes, ignore_errors: json.ignore_parse_errors })
    }
}

impl RecordDecoder for DebeziumDecoder {
    fn decode(&mut self, block: &Block, from: usize, max_rows: usize) -> std::result::Result<Decoded, BadRecord> {
        let changes = &mut self.changes;
        let Lines { rows, next, skipped } = decode_lines(changes, block, from, max_rows, self.ignore_errors)?;
        let kinds = std::mem::take(&mut changes.kinds);
        let inserts_only = kinds.iter().all(|kind| *kind == RowKind::Insert);
        Ok(Decoded {
            columns: changes.columns.iter_mut().map(|column| column.finish(&block.bytes)).collect(),
            metadata: changes.metadata.finish(&block.bytes),
            kinds: (!inserts_only).then(|| RowKinds::new(kinds)),
            num_rows: rows,
            next,
            skipped,
        })
    }
}

/// What is known of a change when its end is reached.
#[derive(Default)]
struct Change {
    /// Where the row before stands, if it is not null.
    before: Option<usize>,
    /// Where the row after stands.
    after: Option<usize>,
    /// Rows that were decoded, in order; none = they have to be decoded again.
    decoded: Option<usize>,
    op: Option<Op>,
}

/// What was done to a row.
#[derive(Clone, Copy)]
enum Op {
    /// `c`, `r`: it is new.
    Create,
    /// `u`.
    Update,
    /// `d`.
    Delete,
}

struct Changes {
    payload: Option<Keys>,
    fields: Keys,
    row: ObjectShape,
    columns: Vec<Column>,
    metadata: Metadata,
    kinds: Vec<RowKind>,
    rules: Rules,
}

impl Records for Changes {
    fn record(&mut self, cursor: &mut Cursor<'_>, row: usize) -> Parsed<usize> {
        match cursor.peek_token() {
            b'{' => self.one(cursor, row),
            b'[' => match records_of_array(cursor, row, |cursor, row| self.one(cursor, row))? {
                0 => Err(Malformed::Change("the array holds no change".to_string())),
                rows => Ok(rows),
            },
            _ => Err(Malformed::NotAnObject),
        }
    }

    fn truncate(&mut self, rows: usize) {
        self.columns.iter_mut().for_each(|column| column.truncate(rows));
        self.kinds.truncate(rows);
        self.metadata.truncate(rows);
    }
}

impl Changes {
    /// The rows of one change, with or without its schema.
    fn one(&mut self, cursor: &mut Cursor<'_>, row: usize) -> Parsed<usize> {
        let mut places = Places::default();
        let rows =
            if self.payload.is_some() { self.payload(cursor, row, &mut places)? } else { self.change(cursor, row, &mut places)? };
        self.metadata.append(&places, rows, row, cursor, &mut self.rules)?;
        Ok(rows)
    }

    fn payload(&mut self, cursor: &mut Cursor<'_>, row: usize, places: &mut Places) -> Parsed<usize> {
        let (mut rows, mut index, mut schema) = (None, 0, None);
        while let Some(slot) = self.payload.as_mut().and_then(|keys| keys.next(cursor, index).transpose()).transpose()? {
            index += 1;
            match slot {
                Some(0) if cursor.peek_token() == b'{' => {
                    self.truncate(row);
                    rows = Some(self.change(cursor, row, places).map_err(|error| named(error, "payload"))?);
                }
                Some(1) => {
                    schema = Some(cursor.at);
                    cursor.pass_value()?;
                }
                _ => cursor.pass_value()?,
            }
        }
        places.schema = schema;
        rows.ok_or_else(|| {
            Malformed::Change(
                "field \"payload\" holds no change, which option 'debezium-json.schema-include' asks for".to_string(),
            )
        })
    }

    /// The rows of the object at the cursor.
    fn change(&mut self, cursor: &mut Cursor<'_>, row: usize, places: &mut Places) -> Parsed<usize> {
        let mut change = Change { decoded: Some(0), ..Change::default() };
        let mut index = 0;
        while let Some(slot) = self.fields.next(cursor, index)? {
            index += 1;
            match slot {
                Some(slot @ (BEFORE | AFTER)) => self.image(slot, cursor, row, &mut change)?,
                Some(OP) => change.op = op(cursor)?,
                Some(slot @ (SOURCE | TS_MS | SCHEMA)) => {
                    let place = match slot {
                        SOURCE => &mut places.source,
                        TS_MS => &mut places.ts_ms,
                        _ => &mut places.schema,
                    };
                    *place = Some(cursor.at);
                    cursor.pass_value()?;
                }
                _ => cursor.pass_value()?,
            }
        }
        self.finish(change, cursor, row)
    }

    /// The row before or after: decoded if it is the next one of the change.
    fn image(&mut self, slot: usize, cursor: &mut Cursor<'_>, row: usize, change: &mut Change) -> Parsed<()> {
        let start = cursor.at;
        let there = match cursor.peek_token() {
            b'{' => true,
            b'n' => {
                cursor.word()?;
                false
            }
            _ => {
                let value = cursor.skip_value()?;
                if !self.rules.ignore_errors {
                    return Err(named(does_not_fit_field(value), FIELDS[slot]));
                }
                false
            }
        };
        let comes_next = change.after.is_none() && (slot == AFTER || change.before.is_none());
        let place = if slot == BEFORE { &mut change.before } else { &mut change.after };
        let former = std::mem::replace(place, there.then_some(start));
        match change.decoded.filter(|_| comes_next) {
            _ if !there => {
                change.decoded = change.decoded.filter(|_| former.is_none());
                Ok(())
            }
            Some(decoded) => {
                change.decoded = Some(decoded + 1);
                self.decode(slot, cursor, row + decoded)
            }
            None => {
                // Out of order, or a second one, of which the last one counts: all is decoded again when that is known.
                change.decoded = None;
                cursor.pass_value()
            }
        }
    }

    fn decode(&mut self, slot: usize, cursor: &mut Cursor<'_>, row: usize) -> Parsed<()> {
        self.row.decode(&mut self.columns, cursor, row, &mut self.rules).map_err(|error| named(error, FIELDS[slot]))
    }

    /// Keeps the rows that the operation asks for, in order.
    fn finish(&mut self, change: Change, cursor: &Cursor<'_>, row: usize) -> Parsed<usize> {
        let Some(op) = change.op else {
            return Err(Malformed::Change("the change has no operation \"op\"".to_string()));
        };
        let wanted: &[(usize, RowKind)] = match op {
            Op::Create => &[(AFTER, RowKind::Insert)],
            Op::Update => &[(BEFORE, RowKind::UpdateBefore), (AFTER, RowKind::UpdateAfter)],
            Op::Delete => &[(BEFORE, RowKind::Delete)],
        };
        let is_missing = |slot: usize| if slot == BEFORE { change.before.is_none() } else { change.after.is_none() };
        if let Some((slot, kind)) = wanted.iter().find(|(slot, _)| is_missing(*slot)) {
            return Err(missing_image(*slot, *kind));
        }
        let given = usize::from(change.before.is_some()) + usize::from(change.after.is_some());
        if change.decoded != Some(given) || (given > wanted.len() && wanted[0].0 == AFTER) {
            self.columns.iter_mut().for_each(|column| column.truncate(row));
            for (at, (slot, _)) in wanted.iter().enumerate() {
                let place = if *slot == BEFORE { change.before } else { change.after };
                let mut again = Cursor { line: cursor.line, at: place.expect("it is not missing"), base: cursor.base };
                self.decode(*slot, &mut again, row + at)?;
            }
        } else if given > wanted.len() {
            self.columns.iter_mut().for_each(|column| column.truncate(row + wanted.len()));
        }
        self.kinds.extend(wanted.iter().map(|(_, kind)| *kind));
        Ok(wanted.len())
    }
}

fn op(cursor: &mut Cursor<'_>) -> Parsed<Option<Op>> {
    match cursor.peek_token() {
        b'"' => {
            let text = cursor.string()?;
            match text.bytes {
                b"c" | b"r" => Ok(Some(Op::Create)),
                b"u" => Ok(Some(Op::Update)),
                b"d" => Ok(Some(Op::Delete)),
                other => Err(unknown_op(other)),
            }
        }
        b'n' => cursor.word().map(|_| None),
        _ => cursor.skip_value().and_then(|value| Err(unknown_op(value))),
    }
}

#[cold]
fn unknown_op(op: &[u8]) -> Malformed {
    let op: String = String::from_utf8_lossy(op).chars().take(20).collect();
    Malformed::Change(format!("operation \"{op}\" is not known: \"op\" is one of c, r, u, d"))
}

#[cold]
fn missing_image(slot: usize, kind: RowKind) -> Malformed {
    let what = if kind == RowKind::Delete { "deletion" } else { "update" };
    Malformed::Change(match (slot, kind) {
        (AFTER, RowKind::Insert) => "the new row has no content: \"after\" is null".to_string(),
        (AFTER, _) => "the update has no new content: \"after\" is null".to_string(),
        _ => format!(
            "the {what} has no former content: \"before\" is null; with PostgreSQL, set REPLICA IDENTITY of the table to FULL"
        ),
    })
}
