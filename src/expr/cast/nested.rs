//! Arrays, maps and rows: their parts are cast, their shape stays.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray};
use arrow::datatypes::DataType as ArrowType;

use super::kernel::Cast;
use crate::error::{Error, Result};
use crate::expr::CastMode;
use crate::types::{DataType, TimeZone, TypeKind};

/// Casts nested values part by part.
pub(super) fn cast(array: &ArrayRef, from: &DataType, to: &DataType, zone: TimeZone) -> Result<ArrayRef> {
    let part = |array: &ArrayRef, from: &DataType, to: &DataType| Cast::new(from, to, CastMode::Strict)?.cast(array, zone);
    match (&from.kind, &to.kind, to.to_arrow()) {
        (TypeKind::Array(from), TypeKind::Array(to), ArrowType::List(field)) => {
            let list = array.as_list::<i32>();
            let values = part(list.values(), from, to)?;
            Ok(Arc::new(ListArray::new(field, list.offsets().clone(), values, list.nulls().cloned())))
        }
        (TypeKind::Map(from_key, from_value), TypeKind::Map(to_key, to_value), ArrowType::Map(field, _)) => {
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
            let columns = row.columns().iter().zip(from.iter().zip(to));
            let columns = columns.map(|(column, (from, to))| part(column, &from.data_type, &to.data_type));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            if columns.is_empty() {
                return Ok(Arc::clone(array));
            }
            Ok(Arc::new(StructArray::new(fields, columns, row.nulls().cloned())))
        }
        _ => Err(Error::internal(format!("no cast from {from} to {to}"))),
    }
}
