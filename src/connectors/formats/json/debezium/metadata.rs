//! What a change says about itself beside its rows: when and where it was made.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::buffer::Buffer;
use arrow::datatypes::{Int64Type, TimestampMillisecondType};

use super::metadata_columns;
use crate::connectors::formats::Column;
use crate::connectors::formats::json::Malformed;
use crate::connectors::formats::json::cursor::Cursor;
use crate::connectors::formats::json::object::{ObjectShape, Rules, Shape, decode_value, named};
use crate::error::{Error, ErrorKind, Result};
use crate::types::{DataType, Field, Schema, TypeKind};

/// Where in the line the metadata stands.
#[derive(Debug, Default)]
pub struct Places {
    /// The schema of the change.
    pub schema: Option<usize>,
    /// When Debezium handled the change.
    pub ts_ms: Option<usize>,
    /// Where the change comes from.
    pub source: Option<usize>,
}

/// Which part of a change a metadata column is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Schema,
    TsMs,
    Properties,
    /// A field of `source`, by its place among those that are wanted.
    Source(usize),
}

/// The metadata columns under construction.
#[derive(Debug)]
pub struct Metadata {
    columns: Vec<(Origin, Shape, Column)>,
    source: ObjectShape,
    source_columns: Vec<Column>,
    /// What the source decodes to: for each key its origin, and whether it is a time.
    keys: Vec<(Origin, bool)>,
}

impl Metadata {
    /// Of these keys.
    pub fn new(wanted: &[String]) -> Result<Self> {
        let known = metadata_columns();
        let (mut keys, mut columns, mut source) = (Vec::new(), Vec::new(), Vec::new());
        for key in wanted {
            let Some((_, data_type)) = known.iter().find(|(name, _)| name == key) else {
                return Err(Error::new(ErrorKind::UndefinedColumn, format!("metadata key '{key}' not found")));
            };
            let is_time = matches!(data_type.kind, TypeKind::TimestampLtz(_));
            // Times are numbers of milliseconds.
            let data_type = if is_time { DataType::nullable(TypeKind::BigInt) } else { data_type.clone() };
            let origin = match key.as_str() {
                "schema" => Origin::Schema,
                "ingestion-timestamp" => Origin::TsMs,
                "source.properties" => Origin::Properties,
                field => {
                    let name = match field {
                        "source.timestamp" => "ts_ms",
                        "source.database" => "db",
                        "source.schema" => "schema",
                        _ => "table",
                    };
                    source.push(Field::new(name, data_type.clone()));
                    Origin::Source(source.len() - 1)
                }
            };
            if !matches!(origin, Origin::Source(_)) {
                columns.push((origin, Shape::of(&data_type), Column::new(&data_type)?));
            }
            keys.push((origin, is_time));
        }
        let source = Schema::new(source);
        let source_columns = source.fields.iter().map(|field| Column::new(&field.data_type)).collect::<Result<_>>()?;
        Ok(Metadata { columns, source: ObjectShape::of(&source), source_columns, keys })
    }

    /// Appends the metadata of a change to each of its rows, the first of which is row `row`.
    pub fn append(
        &mut self,
        places: &Places,
        rows: usize,
        row: usize,
        cursor: &Cursor<'_>,
        rules: &mut Rules,
    ) -> std::result::Result<(), Malformed> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let at = |place: usize| Cursor { line: cursor.line, at: place, base: cursor.base };
        for row in row..row + rows {
            for (origin, shape, column) in &mut self.columns {
                let (place, name) = match origin {
                    Origin::Schema => (places.schema, "schema"),
                    Origin::TsMs => (places.ts_ms, "ts_ms"),
                    _ => (places.source, "source"),
                };
                match place {
                    Some(place) => decode_value(shape, column, &mut at(place), rules).map_err(|error| named(error, name))?,
                    None => column.push_null(),
                }
            }
            let source = places.source.map(at).filter(|cursor| cursor.peek() == b'{');
            match source {
                Some(mut source) => self
                    .source
                    .decode(&mut self.source_columns, &mut source, row, rules)
                    .map_err(|error| named(error, "source"))?,
                None => self.source_columns.iter_mut().for_each(Column::push_null),
            }
        }
        Ok(())
    }

    /// Takes back all rows but the first `rows`.
    pub fn truncate(&mut self, rows: usize) {
        let columns = self.columns.iter_mut().map(|(_, _, column)| column);
        columns.chain(&mut self.source_columns).filter(|column| column.len() > rows).for_each(|column| column.truncate(rows));
    }

    /// The columns in the order of their keys.
    pub fn finish(&mut self, block: &Buffer) -> Vec<ArrayRef> {
        let Metadata { columns, source_columns, keys, .. } = self;
        let mut array = |origin: Origin| match origin {
            Origin::Source(index) => source_columns[index].finish(block),
            origin => {
                let found = columns.iter_mut().find(|(candidate, _, _)| *candidate == origin);
                found.expect("each key has its column").2.finish(block)
            }
        };
        let array = |(origin, is_time): &(Origin, bool)| -> ArrayRef {
            let array = array(*origin);
            if !is_time {
                return array;
            }
            let times = array.as_primitive::<Int64Type>().reinterpret_cast::<TimestampMillisecondType>();
            Arc::new(times.with_timezone("UTC"))
        };
        keys.iter().map(array).collect()
    }
}
