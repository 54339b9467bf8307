//! Arrays, maps and rows: constructors, access to their parts, sizes; and TYPEOF.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, ListArray, StructArray, UInt32Array, make_comparator};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{interleave, take};
use arrow::datatypes::{DataType as ArrowType, Fields, Int32Type};

use super::args::{Numbers, Rows};
use super::builtin::{Builtin, any_nullable, by_args, coerce};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::compile::map_array;
use crate::expr::values::field_of;
use crate::expr::{Datum, EvalContext, Expr, common_type};
use crate::types::{DataType, Maps, RowField, TypeKind, Value, build_maps, is_map};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("ARRAY", "ARRAY[<ANY> [, <ANY>]*]", bind_array, array),
    Builtin::new("MAP", "MAP[<ANY>, <ANY> [, <ANY>, <ANY>]*]", bind_map, map).failing(),
    Builtin::new("ROW", "ROW(<ANY> [, <ANY>]*)", bind_row, row),
    Builtin::new("FIELD", "<ROW>.<NAME>", bind_field, field),
    Builtin::new("ITEM", "<ARRAY>[<INT>]\n<MAP>[<ANY>]\n<VARIANT>[<INT>]\n<VARIANT>[<STRING>]", bind_item, item).failing(),
    Builtin::new("CARDINALITY", "CARDINALITY(<ARRAY>)\nCARDINALITY(<MAP>)", bind_cardinality, cardinality),
    Builtin::new("ELEMENT", "ELEMENT(<ARRAY>)", bind_element, element).failing(),
    Builtin::new("TYPEOF", "TYPEOF(<ANY> [, <BOOLEAN>])", bind_type_of, |_, _, _| {
        Err(Error::internal("a call that is rewritten to a literal was evaluated"))
    }),
];

/// The common type of some arguments, as the type of a part.
fn part_type(function: &Builtin, parts: &[&Expr]) -> Result<DataType> {
    let types: Vec<DataType> = parts.iter().map(|part| part.data_type().regular()).collect();
    common_type(&types).ok_or_else(|| function.no_common_type(&parts.iter().copied().cloned().collect::<Vec<_>>()))
}

fn bind_array(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    if args.is_empty() {
        return Err(Error::unsupported("an ARRAY without elements").with_hint("CAST(NULL AS ARRAY<INT>) gives a type"));
    }
    let element = part_type(function, &args.iter().collect::<Vec<_>>())?;
    let args = args.into_iter().map(|arg| coerce(arg, &element.kind)).collect();
    Ok(function.call(args, DataType::not_null(TypeKind::Array(Box::new(element)))))
}

/// The values of all arguments, row after row.
fn row_major(args: &[Datum], rows: usize) -> Result<ArrayRef> {
    let arrays: Vec<&dyn Array> = args.iter().map(|arg| arg.array().as_ref()).collect();
    let at = |arg: &Datum, row: usize| if arg.is_scalar() { 0 } else { row };
    let places: Vec<(usize, usize)> =
        (0..rows).flat_map(|row| args.iter().enumerate().map(move |(index, arg)| (index, at(arg, row)))).collect();
    Ok(interleave(&arrays, &places)?)
}

fn array(args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let ArrowType::List(field) = data_type.to_arrow() else { return Err(Error::internal("an ARRAY is a list")) };
    let offsets = OffsetBuffer::from_repeated_length(args.len(), rows.count);
    Ok(rows.finish(Arc::new(ListArray::new(field, offsets, row_major(args, rows.count)?, None))))
}

fn bind_map(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    if args.is_empty() || args.len() % 2 == 1 {
        return Err(function.mismatch(&args));
    }
    let of_parity = |parity: usize| args.iter().skip(parity).step_by(2).collect::<Vec<_>>();
    let key = part_type(function, &of_parity(0))?;
    let value = part_type(function, &of_parity(1))?;
    // NULLs take the type of the first argument that has one, as in Flink.
    let value = if value.kind == TypeKind::Null { key.clone().with_nullable(true) } else { value };
    let kinds = [&key.kind, &value.kind];
    let cast = args.iter().enumerate().map(|(index, arg)| coerce(arg.clone(), kinds[index % 2])).collect();
    Ok(function.call(cast, DataType::not_null(TypeKind::Map(Box::new(key), Box::new(value)))))
}

/// Entries row by row; of equal keys the last counts.
fn map(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let of_parity = |parity: usize| args.iter().skip(parity).step_by(2).cloned().collect::<Vec<Datum>>();
    let keys = row_major(&of_parity(0), rows.count)?;
    let values = row_major(&of_parity(1), rows.count)?;
    let width = args.len() / 2;
    let order = make_comparator(keys.as_ref(), keys.as_ref(), Default::default())?;
    let mut kept = Vec::with_capacity(keys.len());
    let mut lengths = Vec::with_capacity(rows.count);
    for row in 0..rows.count {
        let before = kept.len();
        let entries = row * width..(row + 1) * width;
        kept.extend(
            entries.clone().filter(|at| (at + 1..entries.end).all(|later| order(*at, later).is_ne())).map(|at| at as u32),
        );
        lengths.push(kept.len() - before);
    }
    let kept = UInt32Array::from(kept);
    let (keys, values) = (take(&keys, &kept, None)?, take(&values, &kept, None)?);
    Ok(rows.finish(build_maps(OffsetBuffer::from_lengths(lengths), keys, values, None)?))
}

/// A ROW names its fields as Flink does: EXPR$0, EXPR$1 …
fn bind_row(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let named = |(index, arg): (usize, &Expr)| RowField { name: format!("EXPR${index}"), data_type: arg.data_type().regular() };
    let fields = args.iter().enumerate().map(named).collect();
    Ok(function.call(args, DataType::not_null(TypeKind::Row(fields))))
}

fn row(args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let ArrowType::Struct(fields) = data_type.to_arrow() else { return Err(Error::internal("a ROW is a struct")) };
    let columns = args.iter().map(|arg| arg.clone().into_array(rows.count)).collect::<Result<Vec<_>>>()?;
    let array = match columns.is_empty() {
        true => StructArray::new_empty_fields(rows.count, None),
        false => StructArray::new(fields as Fields, columns, None),
    };
    Ok(rows.finish(Arc::new(array)))
}

/// The field at a position, which is a literal.
fn bind_field(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [row, position]: [Expr; 2] = args.try_into().map_err(|args: Vec<Expr>| function.mismatch(&args))?;
    let given = row.data_type();
    let field = match (&given.kind, &position) {
        (TypeKind::Row(fields) | TypeKind::Structured(_, fields), Expr::Literal { value: Value::Int(at), .. }) => {
            usize::try_from(*at).ok().and_then(|at| fields.get(at))
        }
        _ => None,
    };
    let Some(field) = field else { return Err(function.mismatch(&[row, position])) };
    let data_type = field.data_type.clone();
    let nullable = data_type.nullable || given.nullable;
    Ok(function.call(vec![row, position], data_type.with_nullable(nullable)))
}

fn field(args: &[Datum], _: &DataType, _: &EvalContext) -> Result<Datum> {
    let at = Numbers::<Int32Type>::of(&args[1]).get(0).and_then(|at| usize::try_from(at).ok());
    let at = at.ok_or_else(|| Error::internal("a field without position"))?;
    map_array(args[0].clone(), |array| field_of(array.as_struct(), at))
}

fn bind_item(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [collection, key]: [Expr; 2] = args.try_into().map_err(|args: Vec<Expr>| function.mismatch(&args))?;
    let given = collection.data_type();
    match &given.kind {
        TypeKind::Array(element) if key.data_type().is_integer() || key.data_type().kind == TypeKind::Null => {
            if let Expr::Literal { value: Value::Int(index), .. } = &key
                && *index < 1
            {
                let message = format!("the elements of an array are counted from 1, not {index}");
                return Err(Error::new(ErrorKind::InvalidArgument, message));
            }
            let data_type = element.as_ref().clone().with_nullable(true);
            Ok(function.call(vec![collection, coerce(key, &TypeKind::Int)], data_type))
        }
        TypeKind::Variant => {
            let key = match key.data_type() {
                index if index.is_integer() && index.kind != TypeKind::BigInt => coerce(key, &TypeKind::Int),
                text if text.is_character() => key,
                _ => return Err(function.mismatch(&[collection, key])),
            };
            Ok(function.call(vec![collection, key], DataType::nullable(TypeKind::Variant)))
        }
        TypeKind::Map(key_type, value) => {
            let common = common_type(&[key_type.as_ref().clone(), key.data_type().regular()]);
            let text = key_type.is_character() && key.data_type().is_character();
            let key = match common {
                Some(common) if common.kind == key_type.kind || !text => coerce(key, &key_type.kind),
                Some(_) => key,
                None => return Err(function.mismatch(&[collection, key])),
            };
            let data_type = value.as_ref().clone().with_nullable(true);
            Ok(function.call(vec![collection, key], data_type))
        }
        _ => Err(function.mismatch(&[collection, key])),
    }
}

/// The element at an index (from 1) or of a key; NULL if there is none.
fn item(args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    if data_type.kind == TypeKind::Variant && args[0].array().data_type() == &ArrowType::Utf8View {
        return super::variant::item(args, context);
    }
    let rows = Rows::of(args, context);
    let at = |datum: &Datum, row: usize| if datum.is_scalar() { 0 } else { row };
    let collection = args[0].array();
    let is_null = |row: usize| collection.is_null(at(&args[0], row)) || args[1].array().is_null(at(&args[1], row));
    let (offsets, values) = parts(collection)?;
    let entries = |row: usize| offsets[at(&args[0], row)] as usize..offsets[at(&args[0], row) + 1] as usize;
    let places: UInt32Array = match collection.data_type() {
        lists if !is_map(lists) => {
            let index = Numbers::<Int32Type>::of(&args[1]);
            let place = |row: usize| {
                let index = usize::try_from(index.get(row)?.checked_sub(1)?).ok()?;
                let entries = entries(row);
                (!is_null(row) && index < entries.len()).then_some((entries.start + index) as u32)
            };
            (0..rows.count).map(place).collect()
        }
        _ => {
            let keys = Maps::of(collection).keys();
            let equals = make_comparator(keys.as_ref(), args[1].array().as_ref(), Default::default())?;
            let place = |row: usize| {
                let hit = |entry: &usize| equals(*entry, at(&args[1], row)).is_eq();
                if is_null(row) { None } else { entries(row).find(hit).map(|entry| entry as u32) }
            };
            (0..rows.count).map(place).collect()
        }
    };
    Ok(rows.finish(take(values, &places, None)?))
}

/// Where the parts of each list or map lie, and the elements or values.
fn parts(collection: &ArrayRef) -> Result<(&[i32], &ArrayRef)> {
    match collection.data_type() {
        maps if is_map(maps) => {
            let maps = Maps::of(collection);
            Ok((maps.offsets(), maps.values()))
        }
        ArrowType::List(_) => {
            let list = collection.as_list::<i32>();
            Ok((list.value_offsets(), list.values()))
        }
        other => Err(Error::internal(format!("{other} has no parts"))),
    }
}

fn bind_cardinality(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    match args.as_slice() {
        [arg] if matches!(arg.data_type().kind, TypeKind::Array(_) | TypeKind::Map(..) | TypeKind::Multiset(_)) => {
            let data_type = by_args(TypeKind::Int, &args);
            Ok(function.call(args, data_type))
        }
        _ => Err(function.mismatch(&args)),
    }
}

fn cardinality(args: &[Datum], _: &DataType, _: &EvalContext) -> Result<Datum> {
    map_array(args[0].clone(), |array| {
        let (offsets, _) = parts(array)?;
        let lengths: Vec<i32> = offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
        Ok(Arc::new(Int32Array::new(lengths.into(), array.nulls().cloned())))
    })
}

fn bind_element(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let element = match args.as_slice() {
        [arg] => match arg.data_type().kind {
            TypeKind::Array(element) => Some(*element),
            _ => None,
        },
        _ => None,
    };
    let Some(element) = element else { return Err(function.mismatch(&args)) };
    let nullable = element.nullable || any_nullable(&args);
    Ok(function.call(args, element.with_nullable(nullable)))
}

/// The only element; NULL of an empty array.
fn element(args: &[Datum], _: &DataType, _: &EvalContext) -> Result<Datum> {
    map_array(args[0].clone(), |array| {
        let (offsets, values) = parts(array)?;
        let mut places = Vec::with_capacity(array.len());
        for row in 0..array.len() {
            let (start, end) = (offsets[row], offsets[row + 1]);
            places.push(match end - start {
                _ if array.is_null(row) => None,
                0 => None,
                1 => Some(start as u32),
                count => {
                    let message = format!("ELEMENT takes an array of one element, not of {count}");
                    return Err(Error::new(ErrorKind::InvalidArgument, message));
                }
            });
        }
        Ok(take(values, &UInt32Array::from(places), None)?)
    })
}

/// The type of the argument, known while planning.
fn bind_type_of(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let serializable = match args.as_slice() {
        [_] => false,
        [_, Expr::Literal { value: Value::Boolean(serializable), .. }] => *serializable,
        _ => return Err(function.mismatch(&args)),
    };
    let data_type = args[0].data_type().regular();
    let value = match (serializable, &data_type.kind) {
        (false, _) => Value::String(data_type.to_string()),
        // There is no such type but of an empty literal.
        (true, TypeKind::Char(0) | TypeKind::Binary(0)) => Value::Null,
        (true, _) => Value::String(data_type.written_out()),
    };
    Ok(Expr::literal(value, DataType::string()))
}
