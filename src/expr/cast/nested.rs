//! Arrays, maps and rows: their parts are cast, their shape stays.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::DataType as ArrowType;

use super::kernel::Cast;
use crate::error::{Error, Result};
use crate::expr::CastMode;
use crate::expr::values::field_of;
use crate::types::{DataType, RowField, TimeZone, TypeKind};

/// Casts nested values part by part.
pub(super) fn cast(array: &ArrayRef, from: &DataType, to: &DataType, zone: TimeZone) -> Result<ArrayRef> {
    let part = |array: &ArrayRef, from: &DataType, to: &DataType| Cast::new(from, to, CastMode::Strict)?.cast(array, zone);
    match (&from.kind, &to.kind, to.to_arrow()) {
        (TypeKind::Array(from), TypeKind::Array(to), ArrowType::List(field)) => {
            let array = only_shown(array)?;
            let list = array.as_list::<i32>();
            let values = part(list.values(), from, to)?;
            Ok(Arc::new(ListArray::new(field, list.offsets().clone(), values, list.nulls().cloned())))
        }
        (TypeKind::Map(from_key, from_value), TypeKind::Map(to_key, to_value), ArrowType::Map(field, _)) => {
            let array = only_shown(array)?;
            let map = array.as_map();
            let ArrowType::Struct(fields) = field.data_type().clone() else {
                return Err(Error::internal("the entries of a map are no struct"));
            };
            let columns = vec![part(map.keys(), from_key, to_key)?, part(map.values(), from_value, to_value)?];
            let entries = StructArray::new(fields, columns, None);
            Ok(Arc::new(MapArray::new(field, map.offsets().clone(), entries, map.nulls().cloned(), false)))
        }
        (TypeKind::Row(from), TypeKind::Row(to), ArrowType::Struct(fields)) => {
            let row = array.as_struct();
            let cast_field = |(index, (from, to)): (usize, (&RowField, &RowField))| {
                part(&field_of(row, index)?, &from.data_type, &to.data_type)
            };
            let columns = from.iter().zip(to).enumerate().map(cast_field).collect::<Result<Vec<_>>>()?;
            if columns.is_empty() {
                return Ok(Arc::clone(array));
            }
            Ok(Arc::new(StructArray::new(fields, columns, row.nulls().cloned())))
        }
        _ => Err(Error::internal(format!("no cast from {from} to {to}"))),
    }
}

/// The same lists or maps, over no values but their own: what a slice or a NULL hides must not fail.
fn only_shown(array: &ArrayRef) -> Result<ArrayRef> {
    let (offsets, num_values) = match array.data_type() {
        ArrowType::Map(..) => (array.as_map().offsets(), array.as_map().entries().len()),
        _ => (array.as_list::<i32>().offsets(), array.as_list::<i32>().values().len()),
    };
    let hidden_by_null = |row: usize| array.is_null(row) && offsets[row] < offsets[row + 1];
    let shown = offsets[array.len()] - offsets[0];
    if shown as usize == num_values && (array.null_count() == 0 || !(0..array.len()).any(hidden_by_null)) {
        return Ok(Arc::clone(array));
    }
    let rows = UInt32Array::from_iter_values(0..array.len() as u32);
    Ok(take(array, &rows, None)?)
}
