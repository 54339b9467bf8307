//! Functions over maps: MAP_KEYS, MAP_VALUES, MAP_ENTRIES, MAP_FROM_ARRAYS, MAP_UNION.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, StructArray, UInt32Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{concat, take};
use arrow::datatypes::DataType as ArrowType;
use hashbrown::HashTable;

use super::args::Rows;
use super::builtin::{Builtin, any_nullable, coerce};
use super::lists::{Pool, element_type};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::compile::map_array;
use crate::expr::merged_type::merged_type;
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, Maps, RowField, TypeKind, build_maps, hash_columns};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "MAP_KEYS",
        "MAP_KEYS(<MAP>)",
        |f, args| bind_part(f, args, |key, _| key.clone()),
        |args, data_type, _| as_list(args, data_type, |map| Ok(Arc::clone(map.keys()))),
    ),
    Builtin::new(
        "MAP_VALUES",
        "MAP_VALUES(<MAP>)",
        |f, args| bind_part(f, args, |_, value| value.clone()),
        |args, data_type, _| as_list(args, data_type, |map| Ok(Arc::clone(map.values()))),
    ),
    Builtin::new(
        "MAP_ENTRIES",
        "MAP_ENTRIES(<MAP>)",
        |f, args| bind_part(f, args, entry_type),
        |args, data_type, _| {
            as_list(args, data_type, |map| {
                let ArrowType::List(field) = data_type.to_arrow() else { return Err(Error::internal("an ARRAY is a list")) };
                let ArrowType::Struct(fields) = field.data_type().clone() else {
                    return Err(Error::internal("a ROW is a struct"));
                };
                Ok(Arc::new(StructArray::new(fields, vec![Arc::clone(map.keys()), Arc::clone(map.values())], None)))
            })
        },
    ),
    Builtin::new("MAP_FROM_ARRAYS", "MAP_FROM_ARRAYS(<ARRAY>, <ARRAY>)", bind_from_arrays, from_arrays).failing(),
    Builtin::new("MAP_UNION", "MAP_UNION(<MAP> [, <MAP>]*)", bind_union, union),
];

fn entry_type(key: &DataType, value: &DataType) -> DataType {
    let field = |name: &str, data_type: &DataType| RowField { name: name.to_string(), data_type: data_type.clone() };
    DataType::nullable(TypeKind::Row(vec![field("key", key), field("value", value)]))
}

/// One map; the result is an ARRAY of what `part` makes of its key and value type.
fn bind_part(function: &Builtin, args: Vec<Expr>, part: impl Fn(&DataType, &DataType) -> DataType) -> Result<Expr> {
    let [arg] = args.as_slice() else { return Err(function.mismatch(&args)) };
    let given = arg.data_type();
    let TypeKind::Map(key, value) = &given.kind else { return Err(function.mismatch(&args)) };
    let data_type = DataType::new(TypeKind::Array(Box::new(part(key, value))), given.nullable);
    Ok(function.call(args, data_type))
}

/// The maps as lists of the same lengths: their buffers are shared.
fn as_list(args: &[Datum], data_type: &DataType, part: impl FnOnce(&Maps) -> Result<ArrayRef>) -> Result<Datum> {
    let ArrowType::List(field) = data_type.to_arrow() else { return Err(Error::internal("an ARRAY is a list")) };
    map_array(args[0].clone(), |array| {
        let maps = Maps::of(array);
        Ok(Arc::new(ListArray::new(field, maps.offsets().clone(), part(&maps)?, maps.nulls().cloned())))
    })
}

fn bind_from_arrays(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let parts: Option<Vec<DataType>> = args.iter().map(element_type).collect();
    let Some([key, value]) = parts.as_deref() else { return Err(function.mismatch(&args)) };
    let kind = TypeKind::Map(Box::new(key.clone()), Box::new(value.clone()));
    let nullable = any_nullable(&args);
    Ok(function.call(args, DataType::new(kind, nullable)))
}

fn from_arrays(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let keys = Pool::of(&[&args[0]], &[true])?;
    let values = Pool::of(&[&args[1]], &[true])?;
    let (key_lists, value_lists) = (keys.lists(0, &args[0]), values.lists(0, &args[1]));
    let mut writer = MapWriter::new(keys.values(), rows.count)?;
    for row in 0..rows.count {
        let (Some(keys), Some(values)) = (key_lists.get(row), value_lists.get(row)) else {
            writer.push_null();
            continue;
        };
        if keys.len() != values.len() {
            let message = format!("MAP_FROM_ARRAYS got {} keys and {} values", keys.len(), values.len());
            return Err(Error::new(ErrorKind::InvalidArgument, message).with_hint("both arrays must have the same length"));
        }
        keys.zip(values).for_each(|(key, value)| writer.put(key, value));
        writer.end_row();
    }
    Ok(rows.finish(writer.finish(keys.values(), values.values())?))
}

fn bind_union(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let types: Vec<DataType> = args.iter().map(|arg| arg.data_type().regular()).collect();
    let all_maps = types.iter().all(|data_type| matches!(data_type.kind, TypeKind::Map(..)));
    let Some(common) = merged_type(&types).filter(|_| all_maps) else { return Err(function.mismatch(&args)) };
    let args = args.into_iter().map(|arg| coerce(arg, &common.kind)).collect();
    Ok(function.call(args, common))
}

/// The entries of all maps; of equal keys the last counts.
fn union(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let maps: Vec<Maps> = args.iter().map(|arg| Maps::of(arg.array())).collect();
    let all = |part: usize| concat(&maps.iter().map(|map| map.columns()[part].as_ref()).collect::<Vec<_>>());
    let (keys, values) = (all(0)?, all(1)?);
    let mut writer = MapWriter::new(&keys, rows.count)?;
    for row in 0..rows.count {
        let at = |arg: &Datum| if arg.is_scalar() { 0 } else { row };
        if args.iter().any(|arg| arg.array().is_null(at(arg))) {
            writer.push_null();
            continue;
        }
        let mut base = 0;
        for (map, arg) in maps.iter().zip(args) {
            map.range(at(arg)).for_each(|entry| writer.put(base + entry, base + entry));
            base += map.keys().len();
        }
        writer.end_row();
    }
    Ok(rows.finish(writer.finish(&keys, &values)?))
}

/// Maps written row by row as places of keys and values; of equal keys in a row the first keeps its place, the last its value.
struct MapWriter {
    hashes: Vec<u64>,
    equal: Box<dyn Fn(usize, usize) -> bool>,
    row: HashTable<(usize, usize)>,
    keys: Vec<u32>,
    values: Vec<u32>,
    lengths: Vec<usize>,
    valid: Vec<bool>,
}

impl MapWriter {
    fn new(keys: &ArrayRef, rows: usize) -> Result<Self> {
        let mut hashes = Vec::new();
        hash_columns(std::slice::from_ref(keys), keys.len(), &mut hashes);
        Ok(MapWriter {
            hashes,
            equal: Box::new(super::lists::equality_with_nulls(keys)?),
            row: HashTable::new(),
            keys: Vec::new(),
            values: Vec::new(),
            lengths: Vec::with_capacity(rows),
            valid: Vec::with_capacity(rows),
        })
    }

    fn put(&mut self, key: usize, value: usize) {
        let (hashes, equal) = (&self.hashes, &self.equal);
        match self.row.find(hashes[key], |(known, _)| equal(*known, key)) {
            Some((_, at)) => self.values[*at] = value as u32,
            None => {
                self.row.insert_unique(hashes[key], (key, self.keys.len()), |(known, _)| hashes[*known]);
                self.keys.push(key as u32);
                self.values.push(value as u32);
            }
        }
    }

    fn end_row(&mut self) {
        self.lengths.push(self.row.len());
        self.valid.push(true);
        self.row.clear();
    }

    fn push_null(&mut self) {
        self.lengths.push(0);
        self.valid.push(false);
    }

    fn finish(self, keys: &ArrayRef, values: &ArrayRef) -> Result<ArrayRef> {
        let keys = take(keys, &UInt32Array::from(self.keys), None)?;
        let values = take(values, &UInt32Array::from(self.values), None)?;
        let nulls = self.valid.contains(&false).then(|| NullBuffer::from(self.valid));
        Ok(build_maps(OffsetBuffer::from_lengths(self.lengths), keys, values, nulls)?)
    }
}
