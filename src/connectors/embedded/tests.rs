//! Arrow arrays of programs in the engine's form.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, Int32Array, Int32Builder, LargeListBuilder, MapBuilder, RecordBatch,
    StringArray, StringBuilder, StructArray, TimestampSecondArray,
};
use arrow::datatypes::{DataType as ArrowType, Field, Schema};

use super::*;
use crate::types::DataType;

fn imported(array: ArrayRef) -> Result<(DataType, ArrayRef)> {
    let schema = Arc::new(Schema::new(vec![Field::new("c", array.data_type().clone(), true)]));
    let import = Import::new(&schema)?;
    let batch = import.batch(&RecordBatch::try_new(schema, vec![array]).unwrap())?;
    Ok((import.schema().field(0).data_type.clone(), batch.column(0).clone()))
}

fn check(array: ArrayRef, sql: &str) -> ArrayRef {
    let rows = array.len();
    let (data_type, array) = imported(array).unwrap();
    assert_eq!(data_type.to_string(), sql);
    assert_eq!((array.data_type(), array.len()), (&data_type.to_arrow(), rows));
    array
}

#[test]
fn nested_types_are_brought_to_the_engines_form() {
    let mut lists = LargeListBuilder::new(StringBuilder::new());
    lists.append_value([Some("a"), None]);
    lists.append_null();
    let array = check(Arc::new(lists.finish()), "ARRAY<STRING>");
    assert!(array.is_null(1));
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    maps.keys().append_value("k");
    maps.values().append_value(1);
    maps.append(true).unwrap();
    check(Arc::new(maps.finish()), "MAP<STRING NOT NULL, INT>");
    let fields = vec![
        (Arc::new(Field::new("a", ArrowType::Int32, false)), Arc::new(Int32Array::from(vec![1])) as ArrayRef),
        (Arc::new(Field::new("b c", ArrowType::Utf8, true)), Arc::new(StringArray::from(vec!["x"])) as ArrayRef),
    ];
    check(Arc::new(StructArray::from(fields)), "ROW<`a` INT NOT NULL, `b c` STRING>");
}

#[test]
fn seconds_become_milliseconds_or_an_error() {
    let array = check(Arc::new(TimestampSecondArray::from(vec![7])), "TIMESTAMP(0)");
    assert_eq!(array.as_primitive::<arrow::datatypes::TimestampMillisecondType>().value(0), 7_000);
    assert!(imported(Arc::new(TimestampSecondArray::from(vec![i64::MAX]))).is_err());
}

#[test]
fn bytes_of_fixed_size_keep_their_size() {
    check(Arc::new(FixedSizeBinaryArray::try_from_iter([[1, 2], [3, 4]].into_iter()).unwrap()), "BINARY(2)");
}
