//! Arrays, maps and rows: their parts are cast, their shape stays.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::DataType as ArrowType;

use super::kernel::Cast;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::CastMode;
use crate::expr::values::field_of;
use crate::types::{DataType, Maps, RowField, TimeZone, TypeKind, build_maps};

/// Casts nested values part by part.
pub(super) fn cast(array: &ArrayRef, from: &DataType, to: &DataType, zone: TimeZone) -> Result<ArrayRef> {
    let part = |array: &ArrayRef, from: &DataType, to: &DataType| Cast::new(from, to, CastMode::Strict)?.cast(array, zone);
    // As in Flink fields of a ROW are not looked at.
    let element = |array: &ArrayRef, from: &DataType, to: &DataType| {
        let cast = part(array, from, to)?;
        if !to.nullable && from.nullable && cast.logical_null_count() > 0 {
            let message = format!("cannot cast NULL to {to}");
            return Err(Error::new(ErrorKind::InvalidCast, message).with_hint("TRY_CAST gives NULL instead of an error"));
        }
        Ok(cast)
    };
    match (&from.kind, &to.kind, to.to_arrow()) {
        (TypeKind::Array(from), TypeKind::Array(to), ArrowType::List(field)) => {
            let array = only_shown(array)?;
            let list = array.as_list::<i32>();
            let values = element(list.values(), from, to)?;
            Ok(Arc::new(ListArray::new(field, list.offsets().clone(), values, list.nulls().cloned())))
        }
        (TypeKind::Map(from_key, from_value), TypeKind::Map(to_key, to_value), _) => {
            let array = only_shown(array)?;
            let maps = Maps::of(&array);
            let (keys, values) = (element(maps.keys(), from_key, to_key)?, element(maps.values(), from_value, to_value)?);
            Ok(build_maps(maps.offsets().clone(), keys, values, maps.nulls().cloned())?)
        }
        (
            TypeKind::Row(from) | TypeKind::Structured(_, from),
            TypeKind::Row(to) | TypeKind::Structured(_, to),
            ArrowType::Struct(fields),
        ) => {
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
    let list = array.as_list::<i32>();
    let (offsets, num_values) = (list.offsets(), list.values().len());
    let hidden_by_null = |row: usize| array.is_null(row) && offsets[row] < offsets[row + 1];
    let shown = offsets[array.len()] - offsets[0];
    if shown as usize == num_values && (array.null_count() == 0 || !(0..array.len()).any(hidden_by_null)) {
        return Ok(Arc::clone(array));
    }
    let rows = UInt32Array::from_iter_values(0..array.len() as u32);
    Ok(take(array, &rows, None)?)
}
