//! Arrays as sets: ARRAY_DISTINCT, ARRAY_UNION, ARRAY_EXCEPT, ARRAY_INTERSECT. Each element is hashed once for a batch.

use hashbrown::HashTable;

use super::args::Rows;
use super::array_parts::bind_array;
use super::builtin::Builtin;
use super::lists::{ListWriter, Pool, bind_common};
use crate::error::Result;
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::DataType;

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("ARRAY_DISTINCT", "ARRAY_DISTINCT(<ARRAY>)", bind_array, |args, data_type, context| {
        combine(args, data_type, context, SetOperation::Union)
    }),
    Builtin::new("ARRAY_UNION", "ARRAY_UNION(<ARRAY>, <ARRAY>)", bind_two, |args, data_type, context| {
        combine(args, data_type, context, SetOperation::Union)
    }),
    Builtin::new("ARRAY_EXCEPT", "ARRAY_EXCEPT(<ARRAY>, <ARRAY>)", bind_two, |args, data_type, context| {
        combine(args, data_type, context, SetOperation::Except)
    }),
    Builtin::new("ARRAY_INTERSECT", "ARRAY_INTERSECT(<ARRAY>, <ARRAY>)", bind_two, |args, data_type, context| {
        combine(args, data_type, context, SetOperation::Intersect)
    }),
];

fn bind_two(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    if args.len() == 2 { bind_common(function, args) } else { Err(function.mismatch(&args)) }
}

/// What is made of the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SetOperation {
    /// What any has.
    Union,
    /// What the first has and the second has not.
    Except,
    /// What both have.
    Intersect,
}

/// The elements of a set, by place.
struct Elements<'a, E> {
    table: HashTable<usize>,
    hashes: &'a [u64],
    equal: &'a E,
}

impl<E: Fn(usize, usize) -> bool> Elements<'_, E> {
    fn contains(&self, place: usize) -> bool {
        self.table.find(self.hashes[place], |known| (self.equal)(*known, place)).is_some()
    }

    /// Puts an element in; whether it was not there.
    fn insert(&mut self, place: usize) -> bool {
        let is_new = !self.contains(place);
        if is_new {
            self.table.insert_unique(self.hashes[place], place, |known| self.hashes[*known]);
        }
        is_new
    }
}

/// Each element of the result once, in the order of the arguments.
fn combine(args: &[Datum], data_type: &DataType, context: &EvalContext, operation: SetOperation) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let pool = Pool::of_lists(args)?;
    // As in Flink, which looks elements up in lists here and in hash tables there.
    let hashes = pool.hashes(operation != SetOperation::Union);
    let equal = pool.equality()?;
    let new_set = || Elements { table: HashTable::new(), hashes: &hashes, equal: &equal };
    let (mut seen, mut other) = (new_set(), new_set());
    let mut writer = ListWriter::with_capacity(rows.count);
    for row in 0..rows.count {
        let lists: Option<Vec<_>> = args.iter().enumerate().map(|(index, arg)| pool.lists(index, arg).get(row)).collect();
        let Some(lists) = lists else {
            writer.push(None::<std::ops::Range<usize>>);
            continue;
        };
        seen.table.clear();
        other.table.clear();
        let from = match operation {
            SetOperation::Union => &lists[..],
            SetOperation::Except | SetOperation::Intersect => {
                lists[1].clone().for_each(|place| {
                    other.insert(place);
                });
                &lists[..1]
            }
        };
        let wanted = |place: &usize| match operation {
            SetOperation::Union => true,
            SetOperation::Except => !other.contains(*place),
            SetOperation::Intersect => other.contains(*place),
        };
        writer.push(Some(from.iter().cloned().flatten().filter(wanted).filter(|place| seen.insert(*place))));
    }
    Ok(rows.finish(writer.finish(pool.values(), data_type)?))
}
