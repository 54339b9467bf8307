//! Functions over bitmaps: BITMAP_BUILD, BITMAP_AND and their like, BITMAP_TO_STRING.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BinaryViewBuilder, Int32Builder, ListBuilder};
use arrow::datatypes::{Int32Type, Int64Type};

use super::args::{Bytes, Rows, build_numbers, build_text};
use super::builtin::{Builtin, Param, any_nullable, bind_with, by_args, coerce, string_by_args};
use super::lists::{Pool, element_type};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{Datum, EvalContext, Expr, bitmap};
use crate::types::{DataType, TypeKind, VARCHAR_MAX};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("BITMAP_BUILD", "BITMAP_BUILD(<ARRAY<INT>>)", bind_build, build),
    Builtin::new(
        "BITMAP_FROM_BYTES",
        "BITMAP_FROM_BYTES(<BYTES>)",
        |f, args| bind_with(f, args, &[Param::Bytes], 1, |args| by_args(TypeKind::Bitmap, args)),
        from_bytes,
    )
    .failing(),
    Builtin::new(
        "BITMAP_TO_BYTES",
        "BITMAP_TO_BYTES(<BITMAP>)",
        |f, args| bind_bitmaps(f, args, 1, |args| by_args(TypeKind::Varbinary(VARCHAR_MAX), args)),
        |args, _, _| Ok(args[0].clone()),
    ),
    Builtin::new(
        "BITMAP_TO_STRING",
        "BITMAP_TO_STRING(<BITMAP>)",
        |f, args| bind_bitmaps(f, args, 1, string_by_args),
        |args, _, context| {
            let bitmaps = Bytes::of(&args[0]);
            build_text(args, context, |row, out| {
                bitmap::write(out, bitmaps.get(row)?);
                Some(())
            })
        },
    ),
    Builtin::new(
        "BITMAP_TO_ARRAY",
        "BITMAP_TO_ARRAY(<BITMAP>)",
        |f, args| {
            let list = TypeKind::Array(Box::new(DataType::nullable(TypeKind::Int)));
            bind_bitmaps(f, args, 1, |args| by_args(list.clone(), args))
        },
        to_array,
    ),
    Builtin::new(
        "BITMAP_CARDINALITY",
        "BITMAP_CARDINALITY(<BITMAP>)",
        |f, args| bind_bitmaps(f, args, 1, |args| by_args(TypeKind::BigInt, args)),
        |args, _, context| {
            let bitmaps = Bytes::of(&args[0]);
            build_numbers::<Int64Type>(args, context, |row| Some(bitmap::members(bitmaps.get(row)?).len() as i64))
        },
    ),
    Builtin::new("BITMAP_AND", "BITMAP_AND(<BITMAP>, <BITMAP>)", bind_two, |args, _, context| {
        combine(args, context, |left, right| left && right)
    }),
    Builtin::new("BITMAP_OR", "BITMAP_OR(<BITMAP>, <BITMAP>)", bind_two, |args, _, context| {
        combine(args, context, |left, right| left || right)
    }),
    Builtin::new("BITMAP_XOR", "BITMAP_XOR(<BITMAP>, <BITMAP>)", bind_two, |args, _, context| {
        combine(args, context, |left, right| left != right)
    }),
    Builtin::new("BITMAP_ANDNOT", "BITMAP_ANDNOT(<BITMAP>, <BITMAP>)", bind_two, |args, _, context| {
        combine(args, context, |left, right| left && !right)
    }),
];

fn bind_bitmaps(function: &Builtin, args: Vec<Expr>, count: usize, result: impl Fn(&[Expr]) -> DataType) -> Result<Expr> {
    let fits = |arg: &Expr| matches!(arg.data_type().kind, TypeKind::Bitmap | TypeKind::Null);
    if args.len() != count || !args.iter().all(fits) {
        return Err(function.mismatch(&args));
    }
    let args: Vec<Expr> = args.into_iter().map(|arg| coerce(arg, &TypeKind::Bitmap)).collect();
    let data_type = result(&args);
    Ok(function.call(args, data_type))
}

fn bind_two(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    bind_bitmaps(function, args, 2, |args| by_args(TypeKind::Bitmap, args))
}

fn bind_build(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let element = match args.as_slice() {
        [list] if list.data_type().kind == TypeKind::Null => Some(DataType::nullable(TypeKind::Int)),
        [list] => element_type(list),
        _ => None,
    };
    let fits = element.as_ref().is_some_and(|element| element.is_integer() && element.kind != TypeKind::BigInt);
    let Some(element) = element.filter(|_| fits) else { return Err(function.mismatch(&args)) };
    let nullable = any_nullable(&args);
    let list = TypeKind::Array(Box::new(DataType::new(TypeKind::Int, element.nullable)));
    let args = args.into_iter().map(|arg| coerce(arg, &list)).collect();
    Ok(function.call(args, DataType::new(TypeKind::Bitmap, nullable)))
}

/// The numbers of an array; NULLs are left out.
fn build(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let pool = Pool::of_lists(args)?;
    let lists = pool.lists(0, &args[0]);
    let numbers = pool.values().as_primitive::<Int32Type>();
    let mut builder = BinaryViewBuilder::with_capacity(rows.count);
    for row in 0..rows.count {
        let Some(list) = lists.get(row) else {
            builder.append_null();
            continue;
        };
        let mut members: Vec<u32> = list.filter(|at| numbers.is_valid(*at)).map(|at| numbers.value(at) as u32).collect();
        members.sort_unstable();
        members.dedup();
        builder.append_value(bitmap::encode(&members));
    }
    Ok(rows.finish(Arc::new(builder.finish())))
}

fn from_bytes(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let bytes = Bytes::of(&args[0]);
    let mut builder = BinaryViewBuilder::with_capacity(rows.count);
    for row in 0..rows.count {
        match bytes.get(row) {
            None => builder.append_null(),
            Some(bytes) => match bitmap::decode(bytes) {
                Some(members) => builder.append_value(bitmap::encode(&members)),
                None => {
                    return Err(Error::new(ErrorKind::DataFormat, "BITMAP_FROM_BYTES got bytes that are no bitmap")
                        .with_hint("they must be in the portable format of Roaring bitmaps of 32 bits"));
                }
            },
        }
    }
    Ok(rows.finish(Arc::new(builder.finish())))
}

fn to_array(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let bitmaps = Bytes::of(&args[0]);
    let mut builder = ListBuilder::new(Int32Builder::new());
    for row in 0..rows.count {
        let bitmap = bitmaps.get(row);
        bitmap::members(bitmap.unwrap_or_default()).into_iter().for_each(|member| builder.values().append_value(member as i32));
        builder.append(bitmap.is_some());
    }
    Ok(rows.finish(Arc::new(builder.finish())))
}

/// The numbers that `keep` wants, given whether each side has them.
fn combine(args: &[Datum], context: &EvalContext, keep: fn(bool, bool) -> bool) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let (left, right) = (Bytes::of(&args[0]), Bytes::of(&args[1]));
    let mut builder = BinaryViewBuilder::with_capacity(rows.count);
    for row in 0..rows.count {
        let (Some(left), Some(right)) = (left.get(row), right.get(row)) else {
            builder.append_null();
            continue;
        };
        builder.append_value(bitmap::encode(&merge(&bitmap::members(left), &bitmap::members(right), keep)));
    }
    Ok(rows.finish(Arc::new(builder.finish())))
}

fn merge(left: &[u32], right: &[u32], keep: fn(bool, bool) -> bool) -> Vec<u32> {
    let (mut left, mut right) = (left.iter().copied().peekable(), right.iter().copied().peekable());
    let mut merged = Vec::new();
    loop {
        let least = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) => *a.min(b),
            (Some(only), None) | (None, Some(only)) => *only,
            (None, None) => return merged,
        };
        let in_left = left.next_if_eq(&least).is_some();
        let in_right = right.next_if_eq(&least).is_some();
        if keep(in_left, in_right) {
            merged.push(least);
        }
    }
}
