//! Functions that look for elements of arrays, put them together or in order: ARRAY_CONTAINS, ARRAY_SLICE, ARRAY_SORT and more.

use std::cmp::Ordering;

use arrow::array::{Array, AsArray, UInt32Array, make_comparator};
use arrow::compute::take;
use arrow::datatypes::Int32Type;

use super::args::{Numbers, Rows, Text, build_booleans, build_numbers, build_text};
use super::builtin::{Builtin, Param, any_nullable, by_args, string_by_args};
use super::lists::{ListWriter, Pool, as_element, bind_common, element_type, partial_order};
use crate::error::Result;
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("ARRAY_APPEND", "ARRAY_APPEND(<ARRAY>, <ANY>)", bind_added, |args, data_type, context| {
        concatenate(args, &[true, false], &[0, 1], data_type, context)
    }),
    Builtin::new("ARRAY_PREPEND", "ARRAY_PREPEND(<ARRAY>, <ANY>)", bind_added, |args, data_type, context| {
        concatenate(args, &[true, false], &[1, 0], data_type, context)
    }),
    Builtin::new("ARRAY_CONCAT", "ARRAY_CONCAT(<ARRAY> [, <ARRAY>]*)", bind_concat, |args, data_type, context| {
        let order: Vec<usize> = (0..args.len()).collect();
        concatenate(args, &vec![true; args.len()], &order, data_type, context)
    }),
    Builtin::new(
        "ARRAY_CONTAINS",
        "ARRAY_CONTAINS(<ARRAY>, <ANY>)",
        |f, args| bind_search(f, args, |args| by_args(TypeKind::Boolean, &args[..1])),
        |args, _, context| {
            let (search, rows) = (Search::new(args)?, args);
            build_booleans(rows, context, |row| Some(search.find(row)?.is_some()))
        },
    ),
    Builtin::new(
        "ARRAY_POSITION",
        "ARRAY_POSITION(<ARRAY>, <ANY>)",
        |f, args| bind_search(f, args, |args| by_args(TypeKind::Int, args)),
        |args, _, context| {
            let search = Search::new(args)?;
            build_numbers::<Int32Type>(args, context, |row| {
                let found = search.find(row)?;
                (!search.is_for_null(row)).then(|| found.map_or(0, |at| at as i32 + 1))
            })
        },
    ),
    Builtin::new(
        "ARRAY_REMOVE",
        "ARRAY_REMOVE(<ARRAY>, <ANY>)",
        |f, args| bind_search(f, args, |args| args[0].data_type().regular()),
        remove,
    ),
    Builtin::new("ARRAY_REVERSE", "ARRAY_REVERSE(<ARRAY>)", bind_array, |args, data_type, context| {
        let rows = Rows::of(args, context);
        let pool = Pool::of_lists(args)?;
        let lists = pool.lists(0, &args[0]);
        let mut writer = ListWriter::with_capacity(rows.count);
        (0..rows.count).for_each(|row| writer.push(lists.get(row).map(Iterator::rev)));
        Ok(rows.finish(writer.finish(pool.values(), data_type)?))
    }),
    Builtin::new("ARRAY_SLICE", "ARRAY_SLICE(<ARRAY>, <INT> [, <INT>])", bind_slice, slice),
    Builtin::new("ARRAY_SORT", "ARRAY_SORT(<ARRAY> [, <BOOLEAN> [, <BOOLEAN>]])", bind_sort, sort),
    Builtin::new("ARRAY_MAX", "ARRAY_MAX(<ARRAY>)", bind_extreme, |args, _, context| extreme(args, context, Ordering::Greater)),
    Builtin::new("ARRAY_MIN", "ARRAY_MIN(<ARRAY>)", bind_extreme, |args, _, context| extreme(args, context, Ordering::Less)),
    Builtin::new("ARRAY_JOIN", "ARRAY_JOIN(<ARRAY<STRING>>, <STRING> [, <STRING>])", bind_join, join),
];

/// One argument that is an ARRAY; the result is of its type.
pub(super) fn bind_array(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    match args.as_slice() {
        [arg] if element_type(arg).is_some() => {
            let data_type = arg.data_type().regular();
            Ok(function.call(args, data_type))
        }
        _ => Err(function.mismatch(&args)),
    }
}

/// An array and an element that is put to it.
fn bind_added(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let (args, element) = array_and_element(function, args)?;
    let nullable = any_nullable(&args);
    let element = DataType::new(element.kind, element.nullable || args[1].data_type().nullable);
    Ok(function.call(args, DataType::new(TypeKind::Array(Box::new(element)), nullable)))
}

/// An array and an element that is looked for.
fn bind_search(function: &Builtin, args: Vec<Expr>, result: fn(&[Expr]) -> DataType) -> Result<Expr> {
    let (args, _) = array_and_element(function, args)?;
    let data_type = result(&args);
    Ok(function.call(args, data_type))
}

fn array_and_element(function: &Builtin, args: Vec<Expr>) -> Result<(Vec<Expr>, DataType)> {
    let bound = match args.as_slice() {
        [array, given] => element_type(array).and_then(|element| Some((as_element(given.clone(), &element)?, element))),
        _ => None,
    };
    let Some((given, element)) = bound else { return Err(function.mismatch(&args)) };
    let array = args.into_iter().next().expect("two arguments were matched");
    Ok((vec![array, given], element))
}

fn bind_concat(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    if args.is_empty() { Err(function.mismatch(&args)) } else { bind_common(function, args) }
}

/// Lists and elements in an order; NULL if a list is.
fn concatenate(
    args: &[Datum],
    are_lists: &[bool],
    order: &[usize],
    data_type: &DataType,
    context: &EvalContext,
) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let pool = Pool::of(&args.iter().collect::<Vec<_>>(), are_lists)?;
    let mut writer = ListWriter::with_capacity(rows.count);
    let range = |index: usize, row: usize| match are_lists[index] {
        true => pool.lists(index, &args[index]).get(row),
        false => {
            let at = pool.element(index, &args[index], row);
            Some(at..at + 1)
        }
    };
    for row in 0..rows.count {
        let all_there = order.iter().all(|index| range(*index, row).is_some());
        writer.push(all_there.then(|| order.iter().flat_map(|index| range(*index, row).unwrap_or_default())));
    }
    Ok(rows.finish(writer.finish(pool.values(), data_type)?))
}

/// A search for the second argument in the lists of the first.
struct Search<'a> {
    args: &'a [Datum],
    pool: Pool,
    equal: Box<dyn Fn(usize, usize) -> bool>,
}

impl<'a> Search<'a> {
    fn new(args: &'a [Datum]) -> Result<Self> {
        let pool = Pool::of(&[&args[0], &args[1]], &[true, false])?;
        let equal = Box::new(pool.equality()?);
        Ok(Search { args, pool, equal })
    }

    /// The first hit, counted from 0; the outer none: the list is NULL.
    fn find(&self, row: usize) -> Option<Option<usize>> {
        let mut list = self.pool.lists(0, &self.args[0]).get(row)?;
        let needle = self.pool.element(1, &self.args[1], row);
        Some(list.position(|at| (self.equal)(at, needle)))
    }

    fn is_for_null(&self, row: usize) -> bool {
        self.args[1].array().is_null(if self.args[1].is_scalar() { 0 } else { row })
    }
}

fn remove(args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let search = Search::new(args)?;
    let lists = search.pool.lists(0, &args[0]);
    let mut writer = ListWriter::with_capacity(rows.count);
    for row in 0..rows.count {
        let needle = search.pool.element(1, &args[1], row);
        writer.push(lists.get(row).map(|list| list.filter(|at| !(search.equal)(*at, needle))));
    }
    Ok(rows.finish(writer.finish(search.pool.values(), data_type)?))
}

fn bind_slice(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let bound: Option<Vec<Expr>> = match args.as_slice() {
        [array, bounds @ ..] if (1..=2).contains(&bounds.len()) && element_type(array).is_some() => {
            let bounds = bounds.iter().map(|bound| Param::SmallerInt.accept(bound.clone()));
            std::iter::once(Some(array.clone())).chain(bounds).collect()
        }
        _ => None,
    };
    let Some(bound) = bound else { return Err(function.mismatch(&args)) };
    let data_type = DataType::new(bound[0].data_type().kind, any_nullable(&bound));
    Ok(function.call(bound, data_type))
}

/// From one position to another, both counted from 1, or from the end if negative; 0 is the first.
fn slice(args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let pool = Pool::of(&[&args[0]], &[true])?;
    let lists = pool.lists(0, &args[0]);
    let (from, to) = (Numbers::<Int32Type>::of(&args[1]), args.get(2).map(Numbers::<Int32Type>::of));
    let mut writer = ListWriter::with_capacity(rows.count);
    for row in 0..rows.count {
        let part = || {
            let list = lists.get(row)?;
            let length = list.len() as i64;
            let from = place(from.get(row)?, length);
            let to = match &to {
                Some(to) => place(to.get(row)?, length),
                None => length,
            };
            let (from, to) = (from.max(1), to.min(length));
            Some(if from > to { 0..0 } else { list.start + from as usize - 1..list.start + to as usize })
        };
        writer.push(part());
    }
    Ok(rows.finish(writer.finish(pool.values(), data_type)?))
}

/// A position as one from 1, or before it; what comes to 0 is the first.
fn place(position: i32, length: i64) -> i64 {
    match i64::from(position) + if position < 0 { length + 1 } else { 0 } {
        0 => 1,
        other => other,
    }
}

/// Whether Flink puts values of a type in order here: no truth values, no intervals, nothing nested.
fn is_ordered(data_type: &DataType) -> bool {
    data_type.is_numeric() || data_type.is_character() || data_type.is_binary() || data_type.is_datetime()
}

fn bind_sort(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let bound: Option<Vec<Expr>> = match args.as_slice() {
        [array, flags @ ..] if flags.len() <= 2 && element_type(array).is_some_and(|element| is_ordered(&element)) => {
            let flags = flags.iter().map(|flag| Param::Boolean.accept(flag.clone()));
            std::iter::once(Some(array.clone())).chain(flags).collect()
        }
        _ => None,
    };
    let Some(bound) = bound else { return Err(function.mismatch(&args)) };
    let data_type = DataType::new(bound[0].data_type().kind, any_nullable(&bound));
    Ok(function.call(bound, data_type))
}

/// In order, rising unless asked otherwise; NULLs first when rising, last when falling, unless asked otherwise.
fn sort(args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let pool = Pool::of(&[&args[0]], &[true])?;
    let lists = pool.lists(0, &args[0]);
    let values = pool.values();
    let order = make_comparator(values.as_ref(), values.as_ref(), Default::default())?;
    let flag = |index: usize, row: usize, default: bool| match args.get(index) {
        None => Some(default),
        Some(flag) => {
            let row = if flag.is_scalar() { 0 } else { row };
            let flags = flag.array().as_boolean();
            (!flags.is_null(row)).then(|| flags.value(row))
        }
    };
    let mut writer = ListWriter::with_capacity(rows.count);
    for row in 0..rows.count {
        let sorted = || {
            let list = lists.get(row)?;
            let rising = flag(1, row, true)?;
            let nulls_first = flag(2, row, rising)?;
            let (mut nulls, mut places): (Vec<usize>, Vec<usize>) = list.partition(|at| values.is_null(*at));
            places.sort_by(|a, b| if rising { order(*a, *b) } else { order(*b, *a) });
            let at = if nulls_first { 0 } else { places.len() };
            places.splice(at..at, nulls.drain(..));
            Some(places)
        };
        writer.push(sorted());
    }
    Ok(rows.finish(writer.finish(values, data_type)?))
}

fn bind_extreme(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    match args.as_slice() {
        [arg] => match element_type(arg).filter(is_ordered) {
            Some(element) => Ok(function.call(args, element.with_nullable(true))),
            None => Err(function.mismatch(&args)),
        },
        _ => Err(function.mismatch(&args)),
    }
}

/// The greatest or least element that is not NULL.
fn extreme(args: &[Datum], context: &EvalContext, better: Ordering) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let pool = Pool::of_lists(args)?;
    let values = pool.values();
    let order = partial_order(values)?;
    let lists = pool.lists(0, &args[0]);
    let best = |row: usize| {
        let there = lists.get(row)?.filter(|at| !values.is_null(*at));
        there.reduce(|best, at| if order(at, best) == Some(better) { at } else { best }).map(|at| at as u32)
    };
    let places: UInt32Array = (0..rows.count).map(best).collect();
    Ok(rows.finish(take(values, &places, None)?))
}

fn bind_join(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let bound: Option<Vec<Expr>> = match args.as_slice() {
        [array, texts @ ..]
            if (1..=2).contains(&texts.len()) && element_type(array).is_some_and(|element| element.is_character()) =>
        {
            let texts = texts.iter().map(|text| Param::Text.accept(text.clone()));
            std::iter::once(Some(array.clone())).chain(texts).collect()
        }
        _ => None,
    };
    let Some(bound) = bound else { return Err(function.mismatch(&args)) };
    let data_type = string_by_args(&bound);
    Ok(function.call(bound, data_type))
}

/// The strings with a delimiter between them; NULLs are left out, or written as the third argument says.
fn join(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let pool = Pool::of(&[&args[0]], &[true])?;
    let lists = pool.lists(0, &args[0]);
    let texts = pool.values().as_string_view();
    let (delimiter, replacement) = (Text::of(&args[1]), args.get(2).map(Text::of));
    build_text(args, context, |row, out| {
        let (list, delimiter) = (lists.get(row)?, delimiter.get(row)?);
        let for_null = match &replacement {
            Some(replacement) => Some(replacement.get(row)?),
            None => None,
        };
        let parts = list.filter_map(|at| if texts.is_null(at) { for_null } else { Some(texts.value(at)) });
        for (index, part) in parts.enumerate() {
            out.push_str(if index > 0 { delimiter } else { "" });
            out.push_str(part);
        }
        Some(())
    })
}
