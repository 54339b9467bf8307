//! Whether values are among constants: a hash set by the value's bits, so that long lists cost no more than short ones.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, DurationMillisecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalYearMonthType, Time32MillisecondType,
};
use hashbrown::HashSet;

use super::values::{array_to_value, timestamp_units};
use crate::error::{Error, Result};
use crate::types::{DataType, TypeKind, Value};

/// The constants of an IN.
#[derive(Debug)]
pub(super) struct InSet {
    data_type: DataType,
    members: Members,
    has_null: bool,
}

#[derive(Debug)]
enum Members {
    /// Numbers, dates, times: widened to 128 bits; floats by their bits, with one zero and one NaN.
    Numbers(HashSet<i128, foldhash::fast::RandomState>),
    /// Strings and bytes.
    Bytes(HashSet<Vec<u8>, foldhash::fast::RandomState>),
    Booleans {
        yes: bool,
        no: bool,
    },
    /// Nested values: compared one by one.
    Nested(Vec<Value>),
}

impl InSet {
    pub(super) fn new(list: &[Value], data_type: &DataType) -> Result<Self> {
        let present = || list.iter().filter(|value| !value.is_null());
        let members = match &data_type.kind {
            TypeKind::Boolean => {
                Members::Booleans { yes: list.contains(&Value::Boolean(true)), no: list.contains(&Value::Boolean(false)) }
            }
            _ if data_type.is_nested() => Members::Nested(present().cloned().collect()),
            _ if data_type.is_character() || data_type.is_binary() => {
                Members::Bytes(present().map(bytes_of).collect::<Option<_>>().ok_or_else(|| mismatch(data_type))?)
            }
            _ => Members::Numbers(present().map(bits_of).collect::<Option<_>>().ok_or_else(|| mismatch(data_type))?),
        };
        Ok(InSet { data_type: data_type.clone(), members, has_null: list.iter().any(Value::is_null) })
    }

    /// `value IN (…)` (or NOT IN) of every row.
    pub(super) fn contains(&self, array: &ArrayRef, negated: bool) -> Result<ArrayRef> {
        let found = match &self.members {
            Members::Booleans { yes, no } => {
                let array = array.as_boolean();
                BooleanBuffer::collect_bool(array.len(), |row| if array.value(row) { *yes } else { *no })
            }
            Members::Bytes(set) if self.data_type.is_character() => {
                let array = array.as_string_view();
                BooleanBuffer::collect_bool(array.len(), |row| set.contains(array.value(row).as_bytes()))
            }
            Members::Bytes(set) => {
                let array = array.as_binary_view();
                BooleanBuffer::collect_bool(array.len(), |row| set.contains(array.value(row)))
            }
            Members::Numbers(set) => self.find_numbers(set, array),
            Members::Nested(list) => {
                BooleanBuffer::collect_bool(array.len(), |row| list.contains(&array_to_value(array, row, &self.data_type)))
            }
        };
        // A miss is unknown when the list has a NULL; a NULL needle always is.
        let known = self.has_null.then(|| NullBuffer::new(found.clone()));
        let nulls = NullBuffer::union(array.logical_nulls().as_ref(), known.as_ref());
        let values = if negated { !&found } else { found };
        Ok(Arc::new(BooleanArray::new(values, nulls)))
    }

    fn find_numbers(&self, set: &HashSet<i128, foldhash::fast::RandomState>, array: &ArrayRef) -> BooleanBuffer {
        fn find<T: ArrowPrimitiveType>(array: &ArrayRef, found: impl Fn(T::Native) -> bool) -> BooleanBuffer {
            let values = array.as_primitive::<T>().values();
            BooleanBuffer::collect_bool(values.len(), |row| found(values[row]))
        }
        match &self.data_type.kind {
            TypeKind::TinyInt => find::<Int8Type>(array, |n| set.contains(&i128::from(n))),
            TypeKind::SmallInt => find::<Int16Type>(array, |n| set.contains(&i128::from(n))),
            TypeKind::Int => find::<Int32Type>(array, |n| set.contains(&i128::from(n))),
            TypeKind::BigInt => find::<Int64Type>(array, |n| set.contains(&i128::from(n))),
            TypeKind::Float => find::<Float32Type>(array, |n| set.contains(&double_bits(n.into()))),
            TypeKind::Double => find::<Float64Type>(array, |n| set.contains(&double_bits(n))),
            TypeKind::Decimal(..) => find::<Decimal128Type>(array, |n| set.contains(&n)),
            TypeKind::Date => find::<Date32Type>(array, |n| set.contains(&i128::from(n))),
            TypeKind::Time(_) => find::<Time32MillisecondType>(array, |n| set.contains(&i128::from(n))),
            TypeKind::IntervalYearMonth => find::<IntervalYearMonthType>(array, |n| set.contains(&i128::from(n))),
            TypeKind::IntervalDayTime => find::<DurationMillisecondType>(array, |n| set.contains(&i128::from(n))),
            TypeKind::Timestamp(_) | TypeKind::TimestampLtz(_) => {
                let units = timestamp_units(array);
                BooleanBuffer::collect_bool(units.len(), |row| set.contains(&i128::from(units.value(row))))
            }
            _ => BooleanBuffer::new_unset(array.len()), // the bare NULL is in no list
        }
    }
}

fn mismatch(data_type: &DataType) -> Error {
    Error::internal(format!("a constant of an IN list is no value of {data_type}"))
}

fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Bytes(bytes) => Some(bytes.clone()),
        _ => None,
    }
}

fn bits_of(value: &Value) -> Option<i128> {
    Some(match value {
        Value::TinyInt(n) => (*n).into(),
        Value::SmallInt(n) => (*n).into(),
        Value::Int(n) | Value::Date(n) | Value::Time(n) | Value::IntervalYearMonth(n) => (*n).into(),
        Value::BigInt(n) | Value::Timestamp(n) | Value::IntervalDayTime(n) => (*n).into(),
        Value::Decimal(n) => *n,
        Value::Float(n) => double_bits((*n).into()),
        Value::Double(n) => double_bits(*n),
        _ => return None,
    })
}

/// The bits of a double; both zeros are one.
fn double_bits(n: f64) -> i128 {
    (if n == 0.0 { 0.0 } else { n }).to_bits().into()
}

#[cfg(test)]
mod tests {
    use arrow::array::Int32Array;

    use super::*;

    #[test]
    fn a_null_in_the_list_makes_a_miss_unknown() {
        let set = InSet::new(&[Value::Int(1), Value::Null], &DataType::nullable(TypeKind::Int)).unwrap();
        let array: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), None]));
        let found = set.contains(&array, false).unwrap();
        assert_eq!(found.as_boolean(), &BooleanArray::from(vec![Some(true), None, None]));
        let missing = set.contains(&array, true).unwrap();
        assert_eq!(missing.as_boolean(), &BooleanArray::from(vec![Some(false), None, None]));
    }
}
