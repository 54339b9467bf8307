//! The values of partition columns as they are read: from the folders `k=v` above a file, for all of its rows at once.
//!
//! Values are read as CAST reads them, and also as [`PartitionColumns`](super::partition::PartitionColumns) writes them: dates and
//! times as numbers, timestamps with a `T`.

use std::borrow::Cow;
use std::path::Path;

use arrow::array::{Array, ArrayRef, UInt32Array, new_null_array};
use arrow::compute::take;

use super::partition::{default_name, unescape};
use crate::connectors::options::OptionReader;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{CastMode, Datum, EvalContext, Expr, FunctionRegistry, compile};
use crate::stream_graph::SourceSpec;
use crate::types::{DataType, Field, TimeZone, TypeKind, Value, Watermark};

/// How the produced columns of a partitioned table come together.
#[derive(Debug, Clone)]
pub struct PartitionValues {
    /// PARTITIONED BY.
    keys: Vec<String>,
    default_name: String,
    /// The produced columns that are partition columns, by their place among the produced ones, rising.
    produced: Vec<(usize, Field)>,
}

impl PartitionValues {
    /// Of a table; without PARTITIONED BY there is nothing to add.
    pub fn new(spec: &SourceSpec) -> Self {
        let key = |index: &usize| spec.partition_keys.contains(index);
        let produced = spec.projection.iter().enumerate().filter(|(_, index)| key(index));
        PartitionValues {
            keys: spec.partition_keys.iter().map(|index| spec.physical.field(*index).name.clone()).collect(),
            default_name: default_name(&OptionReader::new(&spec.options)),
            produced: produced.map(|(at, index)| (at, spec.physical.field(*index).clone())).collect(),
        }
    }

    /// Whether the file belongs to the table: it lies in a partition, or the table has none.
    pub fn holds(&self, path: &Path) -> bool {
        self.keys.iter().all(|key| folder_value(path, key).is_some())
    }

    /// PARTITIONED BY.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The values of a file, an array of one row for each produced partition column.
    pub fn of_file(&self, path: &Path) -> Result<Vec<ArrayRef>> {
        self.produced.iter().map(|(_, field)| self.value(path, field)).collect()
    }

    /// Puts the values of a file between the columns that were decoded.
    pub fn insert(&self, values: &[ArrayRef], rows: usize, columns: &mut Vec<ArrayRef>) {
        for ((at, _), value) in self.produced.iter().zip(values) {
            let repeated = take(value, &UInt32Array::from_value(0, rows), None).expect("row 0 of one is there");
            columns.insert(*at, repeated);
        }
    }

    fn value(&self, path: &Path, field: &Field) -> Result<ArrayRef> {
        let bad = |reason: String| {
            Error::new(ErrorKind::DataFormat, format!("cannot read partition column \"{}\"", field.name))
                .with_detail(format!("{}: {reason}", path.display()))
                .with_hint("correct the name of the folder, or the type of the column")
        };
        let text = folder_value(path, &field.name).ok_or_else(|| bad("it lies in no folder of that column".to_string()))?;
        if text == self.default_name {
            return match field.data_type.nullable {
                true => Ok(new_null_array(&field.data_type.to_arrow(), 1)),
                false => Err(bad(format!("'{text}' stands for NULL, and the column is NOT NULL"))),
            };
        }
        parse(&text, &field.data_type).map_err(|error| bad(error.message().to_string()))
    }
}

/// Whether the names of folders can be read as this type.
pub fn is_readable(data_type: &DataType) -> bool {
    !matches!(
        data_type.kind,
        TypeKind::Binary(_)
            | TypeKind::Varbinary(_)
            | TypeKind::Array(_)
            | TypeKind::Map(..)
            | TypeKind::Multiset(_)
            | TypeKind::Row(_)
            | TypeKind::Structured(..)
            | TypeKind::Bitmap
            | TypeKind::Variant
    )
}

/// The value of the deepest folder `key=value` above a file.
fn folder_value(path: &Path, key: &str) -> Option<String> {
    path.ancestors().skip(1).find_map(|folder| {
        let name = folder.file_name()?.to_string_lossy().into_owned();
        let (found, value) = name.split_once('=')?;
        (unescape(found) == key).then(|| unescape(value))
    })
}

/// A value as an array of one row.
fn parse(text: &str, data_type: &DataType) -> Result<ArrayRef> {
    let target = data_type.clone().with_nullable(false);
    let number: Option<i32> = text.parse().ok();
    let literal = match (&data_type.kind, number) {
        (TypeKind::Date, Some(days)) => Expr::literal(Value::Date(days), target.clone()),
        (TypeKind::Time(_), Some(ms)) => Expr::literal(Value::Time(ms), target.clone()),
        // A folder is named by the whole text, whatever length the column has.
        (TypeKind::Char(_) | TypeKind::Varchar(_), _) => Expr::literal(Value::String(text.to_string()), target.clone()),
        (TypeKind::Timestamp(_) | TypeKind::TimestampLtz(_), _) => {
            Expr::literal(Value::String(timestamp_text(text).into_owned()), DataType::string().with_nullable(false))
        }
        _ => Expr::literal(Value::String(text.to_string()), DataType::string().with_nullable(false)),
    };
    let expr = match literal.data_type() == target {
        true => literal,
        false => Expr::Cast { input: Box::new(literal), data_type: target, mode: CastMode::Strict },
    };
    let context = EvalContext {
        num_rows: 1,
        time_zone: TimeZone::UTC,
        processing_time_ms: 0,
        query_start_ms: 0,
        watermark: Watermark::MIN,
    };
    let (Datum::Scalar(array) | Datum::Array(array)) = compile(&expr, &FunctionRegistry::default())?.evaluate(&[], &context)?;
    debug_assert_eq!(array.len(), 1);
    Ok(array)
}

/// `2024-01-15T12:00Z` as CAST takes it.
fn timestamp_text(text: &str) -> Cow<'_, str> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let Some((date, time)) = text.split_once('T') else { return Cow::Borrowed(text) };
    // Java leaves out seconds that are 0.
    let seconds = if time.len() == "12:00".len() { ":00" } else { "" };
    Cow::Owned(format!("{date} {time}{seconds}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::array_to_value;

    #[test]
    fn values_come_from_the_deepest_folder_of_that_name() {
        let path = Path::new("/a/k=0/k=x%2Fy%3D/l=2/f.json");
        assert_eq!(folder_value(path, "k").as_deref(), Some("x/y="));
        assert_eq!(folder_value(path, "l").as_deref(), Some("2"));
        assert_eq!(folder_value(path, "m"), None);
        assert_eq!(folder_value(Path::new("/a/k=0"), "k"), None, "a file is no folder");
    }

    #[test]
    fn texts_are_read_as_written_by_people_and_by_the_sink() {
        let read = |text: &str, kind: TypeKind| {
            let data_type = DataType::nullable(kind);
            parse(text, &data_type).map(|array| array_to_value(&array, 0, &data_type))
        };
        assert_eq!(read("19724", TypeKind::Date).unwrap(), Value::Date(19_724));
        assert_eq!(read("2024-01-02", TypeKind::Date).unwrap(), Value::Date(19_724));
        assert_eq!(read("1000", TypeKind::Time(3)).unwrap(), Value::Time(1000));
        assert_eq!(read("7", TypeKind::Int).unwrap(), Value::Int(7));
        assert_eq!(read("abc", TypeKind::Varchar(2)).unwrap(), Value::String("abc".into()));
        let at = Value::Timestamp(1_705_320_000_000);
        assert_eq!(read("2024-01-15T12:00", TypeKind::Timestamp(3)).unwrap(), at);
        assert_eq!(read("2024-01-15 12:00:00", TypeKind::Timestamp(3)).unwrap(), at);
        assert!(read("x", TypeKind::Int).is_err());
    }
}
