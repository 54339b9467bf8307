//! Between single values and Arrow arrays: literals into arrays, and what an array holds at a row back out.
//!
//! A [`Value`] that is not of the given type is a broken invariant of the planner, and panics.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, DurationMillisecondArray,
    Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, IntervalYearMonthArray, ListArray,
    StringViewArray, StructArray, Time32MillisecondArray, UInt32Array, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{cast, take};
use arrow::datatypes::{self as arrow_types, DataType as ArrowType};

use crate::error::Result;
use crate::types::{DataType, Maps, TypeKind, Value, build_maps};

/// `len` times the same value.
pub fn value_to_array(value: &Value, data_type: &DataType, len: usize) -> ArrayRef {
    if value.is_null() {
        return new_null_array(&data_type.to_arrow(), len);
    }
    let single = values_to_array(std::slice::from_ref(value), data_type);
    if len == 1 {
        return single;
    }
    take(&single, &UInt32Array::from(vec![0; len]), None).expect("row 0 of one is there")
}

/// The values as an array of the Arrow form of `data_type`.
pub fn values_to_array(values: &[Value], data_type: &DataType) -> ArrayRef {
    macro_rules! primitive {
        ($array:ty, $($pattern:pat => $value:expr),+) => {
            Arc::new(values.iter().map(|value| match value {
                Value::Null => None,
                $($pattern => Some($value),)+
                other => panic!("{other:?} is no value of {data_type}"),
            }).collect::<$array>()) as ArrayRef
        };
    }
    match &data_type.kind {
        TypeKind::Null => new_null_array(&ArrowType::Null, values.len()),
        TypeKind::Char(_) | TypeKind::Varchar(_) | TypeKind::Variant => {
            primitive!(StringViewArray, Value::String(text) => text.as_str())
        }
        TypeKind::Binary(_) | TypeKind::Varbinary(_) | TypeKind::Bitmap => {
            primitive!(BinaryViewArray, Value::Bytes(bytes) => bytes.as_slice())
        }
        TypeKind::Boolean => primitive!(BooleanArray, Value::Boolean(truth) => *truth),
        TypeKind::TinyInt => primitive!(Int8Array, Value::TinyInt(n) => *n),
        TypeKind::SmallInt => primitive!(Int16Array, Value::SmallInt(n) => *n, Value::TinyInt(n) => (*n).into()),
        TypeKind::Int => {
            primitive!(Int32Array, Value::Int(n) => *n, Value::SmallInt(n) => (*n).into(), Value::TinyInt(n) => (*n).into())
        }
        TypeKind::BigInt => primitive!(Int64Array, Value::BigInt(n) => *n, Value::Int(n) => (*n).into(),
            Value::SmallInt(n) => (*n).into(), Value::TinyInt(n) => (*n).into()),
        TypeKind::Float => primitive!(Float32Array, Value::Float(n) => *n),
        TypeKind::Double => primitive!(Float64Array, Value::Double(n) => *n, Value::Float(n) => (*n).into()),
        TypeKind::Decimal(..) => {
            let array = values.iter().map(|value| match value {
                Value::Null => None,
                Value::Decimal(n) => Some(*n),
                other => panic!("{other:?} is no value of {data_type}"),
            });
            Arc::new(array.collect::<Decimal128Array>().with_data_type(data_type.to_arrow()))
        }
        TypeKind::Date => primitive!(Date32Array, Value::Date(days) => *days),
        TypeKind::Time(_) => primitive!(Time32MillisecondArray, Value::Time(ms) => *ms),
        TypeKind::Timestamp(_) | TypeKind::TimestampLtz(_) => {
            let numbers = primitive!(Int64Array, Value::Timestamp(n) => *n);
            cast(&numbers, &data_type.to_arrow()).expect("a number can be a timestamp")
        }
        TypeKind::IntervalYearMonth => primitive!(IntervalYearMonthArray, Value::IntervalYearMonth(months) => *months),
        TypeKind::IntervalDayTime => primitive!(DurationMillisecondArray, Value::IntervalDayTime(ms) => *ms),
        TypeKind::Array(element) => lists(values, data_type, element),
        TypeKind::Map(key, value) => maps(values, data_type, key, value),
        TypeKind::Multiset(element) => maps(values, data_type, element, &DataType::not_null(TypeKind::Int)),
        TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
            let types: Vec<&DataType> = fields.iter().map(|field| &field.data_type).collect();
            structs(values, data_type, &types)
        }
    }
}

fn validity(values: &[Value]) -> Option<NullBuffer> {
    values.iter().any(Value::is_null).then(|| values.iter().map(|value| !value.is_null()).collect())
}

fn lists(values: &[Value], data_type: &DataType, element: &DataType) -> ArrayRef {
    let ArrowType::List(field) = data_type.to_arrow() else { unreachable!("an ARRAY is a list") };
    let parts = || {
        values.iter().map(|value| match value {
            Value::Null => &[][..],
            Value::Array(elements) => elements,
            other => panic!("{other:?} is no value of {data_type}"),
        })
    };
    let offsets = OffsetBuffer::from_lengths(parts().map(<[Value]>::len));
    let elements: Vec<Value> = parts().flatten().cloned().collect();
    Arc::new(ListArray::new(field, offsets, values_to_array(&elements, element), validity(values)))
}

fn maps(values: &[Value], data_type: &DataType, key: &DataType, value: &DataType) -> ArrayRef {
    let parts = || {
        values.iter().map(|value| match value {
            Value::Null => &[][..],
            Value::Map(entries) => entries,
            other => panic!("{other:?} is no value of {data_type}"),
        })
    };
    let offsets = OffsetBuffer::from_lengths(parts().map(<[(Value, Value)]>::len));
    let (keys, items): (Vec<Value>, Vec<Value>) = parts().flatten().cloned().unzip();
    let (keys, items) = (values_to_array(&keys, key), values_to_array(&items, value));
    build_maps(offsets, keys, items, validity(values)).expect("there are as many keys as values")
}

fn structs(values: &[Value], data_type: &DataType, types: &[&DataType]) -> ArrayRef {
    let ArrowType::Struct(fields) = data_type.to_arrow() else { unreachable!("a ROW is a struct") };
    if types.is_empty() {
        return Arc::new(StructArray::new_empty_fields(values.len(), validity(values)));
    }
    let columns = types.iter().enumerate().map(|(index, field)| {
        let column: Vec<Value> = values
            .iter()
            .map(|value| match value {
                Value::Null => Value::Null,
                Value::Row(fields) => fields[index].clone(),
                other => panic!("{other:?} is no value of {data_type}"),
            })
            .collect();
        values_to_array(&column, field)
    });
    Arc::new(StructArray::new(fields, columns.collect(), validity(values)))
}

/// What the array holds at a row.
pub fn array_to_value(array: &ArrayRef, row: usize, data_type: &DataType) -> Value {
    if array.is_null(row) || data_type.kind == TypeKind::Null {
        return Value::Null;
    }
    macro_rules! primitive {
        ($arrow:ident) => {
            array.as_primitive::<arrow_types::$arrow>().value(row)
        };
    }
    match &data_type.kind {
        TypeKind::Null => Value::Null,
        TypeKind::Char(_) | TypeKind::Varchar(_) | TypeKind::Variant => {
            Value::String(array.as_string_view().value(row).to_string())
        }
        TypeKind::Binary(_) | TypeKind::Varbinary(_) | TypeKind::Bitmap => {
            Value::Bytes(array.as_binary_view().value(row).to_vec())
        }
        TypeKind::Boolean => Value::Boolean(array.as_boolean().value(row)),
        TypeKind::TinyInt => Value::TinyInt(primitive!(Int8Type)),
        TypeKind::SmallInt => Value::SmallInt(primitive!(Int16Type)),
        TypeKind::Int => Value::Int(primitive!(Int32Type)),
        TypeKind::BigInt => Value::BigInt(primitive!(Int64Type)),
        TypeKind::Float => Value::Float(primitive!(Float32Type)),
        TypeKind::Double => Value::Double(primitive!(Float64Type)),
        TypeKind::Decimal(..) => Value::Decimal(primitive!(Decimal128Type)),
        TypeKind::Date => Value::Date(primitive!(Date32Type)),
        TypeKind::Time(_) => Value::Time(primitive!(Time32MillisecondType)),
        TypeKind::Timestamp(_) | TypeKind::TimestampLtz(_) => Value::Timestamp(timestamp_units(array).value(row)),
        TypeKind::IntervalYearMonth => Value::IntervalYearMonth(primitive!(IntervalYearMonthType)),
        TypeKind::IntervalDayTime => Value::IntervalDayTime(primitive!(DurationMillisecondType)),
        TypeKind::Array(element) => Value::Array(all_values(&array.as_list::<i32>().value(row), element)),
        TypeKind::Map(key, value) => Value::Map(entries(array, row, key, value)),
        TypeKind::Multiset(element) => Value::Map(entries(array, row, element, &DataType::not_null(TypeKind::Int))),
        TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
            let columns = array.as_struct().columns();
            Value::Row(fields.iter().zip(columns).map(|(field, column)| array_to_value(column, row, &field.data_type)).collect())
        }
    }
}

fn all_values(array: &ArrayRef, data_type: &DataType) -> Vec<Value> {
    (0..array.len()).map(|row| array_to_value(array, row, data_type)).collect()
}

fn entries(array: &ArrayRef, row: usize, key: &DataType, value: &DataType) -> Vec<(Value, Value)> {
    let maps = Maps::of(array);
    maps.range(row).map(|at| (array_to_value(maps.keys(), at, key), array_to_value(maps.values(), at, value))).collect()
}

/// A field of each row; NULL where the row is.
pub(super) fn field_of(rows: &StructArray, index: usize) -> Result<ArrayRef> {
    let column = rows.column(index);
    if rows.null_count() == 0 {
        return Ok(Arc::clone(column));
    }
    let nulls = NullBuffer::union(column.logical_nulls().as_ref(), rows.nulls());
    let data = column.to_data().into_builder().nulls(nulls).build()?;
    Ok(arrow::array::make_array(data))
}

/// The plain numbers of a timestamp array of any unit: shares its buffers.
pub(super) fn timestamp_units(array: &ArrayRef) -> Int64Array {
    let data = array.to_data();
    let data = data.into_builder().data_type(ArrowType::Int64).build().expect("a timestamp is a number of 64 bits");
    Int64Array::from(data)
}

/// The timestamp array of this Arrow type over plain numbers: shares their buffers.
pub(super) fn timestamps_of_units(units: &Int64Array, data_type: &ArrowType) -> ArrayRef {
    let data = units.to_data().into_builder().data_type(data_type.clone()).build();
    arrow::array::make_array(data.expect("a timestamp is a number of 64 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::RowField;

    #[test]
    fn nested_values_survive_the_way_into_an_array_and_back() {
        let field = |name: &str, data_type| RowField { name: name.to_string(), data_type };
        let row = DataType::nullable(TypeKind::Row(vec![
            field("a", DataType::nullable(TypeKind::Array(Box::new(DataType::string())))),
            field(
                "m",
                DataType::nullable(TypeKind::Map(Box::new(DataType::string()), Box::new(DataType::nullable(TypeKind::Int)))),
            ),
            field("t", DataType::nullable(TypeKind::TimestampLtz(3))),
        ]));
        let text = |text: &str| Value::String(text.to_string());
        let values = [
            Value::Row(vec![
                Value::Array(vec![text("x"), Value::Null]),
                Value::Map(vec![(text("k"), Value::Int(1)), (text("l"), Value::Null)]),
                Value::Timestamp(5),
            ]),
            Value::Null,
            Value::Row(vec![Value::Null, Value::Map(Vec::new()), Value::Null]),
        ];
        let array = values_to_array(&values, &row);
        assert_eq!(array.data_type(), &row.to_arrow());
        for (index, value) in values.iter().enumerate() {
            assert_eq!(&array_to_value(&array, index, &row), value);
        }
    }
}
