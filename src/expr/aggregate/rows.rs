//! Which rows of an update count, and in which direction: filter, NULLs and row kinds brought together once for all accumulators; and constant arguments.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute;
use arrow::datatypes::{DataType as ArrowType, Int64Type};

use crate::error::Result;
use crate::expr::Expr;
use crate::types::{RowKinds, Value};

/// The rows of an update, each with its group.
pub(crate) struct Rows<'a> {
    groups: &'a [u32],
    mask: Option<BooleanBuffer>,
    kinds: Option<&'a [u8]>,
}

impl<'a> Rows<'a> {
    /// The rows where `filter` is true and no value of `args` is NULL.
    pub(crate) fn new(groups: &'a [u32], args: &[ArrayRef], filter: Option<&BooleanArray>, kinds: Option<&'a RowKinds>) -> Self {
        let mut mask = filter.map(true_values);
        for nulls in args.iter().filter_map(|arg| arg.logical_nulls()).filter(|nulls| nulls.null_count() > 0) {
            mask = Some(match mask {
                Some(mask) => &mask & nulls.inner(),
                None => nulls.inner().clone(),
            });
        }
        Rows { groups, mask, kinds: kinds.map(|kinds| kinds.array().values().as_ref()) }
    }

    /// Calls `f` with row, group and whether the row is taken back, in order.
    #[inline]
    pub(crate) fn for_each(&self, mut f: impl FnMut(usize, usize, bool)) {
        match (&self.mask, self.kinds) {
            (None, None) => self.groups.iter().enumerate().for_each(|(row, group)| f(row, *group as usize, false)),
            (Some(mask), None) => mask.set_indices().for_each(|row| f(row, self.groups[row] as usize, false)),
            (None, Some(kinds)) => {
                self.groups.iter().enumerate().for_each(|(row, group)| f(row, *group as usize, is_retraction(kinds[row])));
            }
            (Some(mask), Some(kinds)) => {
                mask.set_indices().for_each(|row| f(row, self.groups[row] as usize, is_retraction(kinds[row])));
            }
        }
    }
}

/// The second argument, a number that is a constant of the query; none = there is none, or there are no rows to see it in.
pub(super) fn constant_number(args: &[ArrayRef]) -> Result<Option<i64>> {
    let Some(numbers) = args.get(1).filter(|numbers| !numbers.is_empty()) else { return Ok(None) };
    Ok(Some(compute::cast(numbers, &ArrowType::Int64)?.as_primitive::<Int64Type>().value(0)))
}

/// The number that an INT or BIGINT literal is.
pub(super) fn literal_number(arg: &Expr) -> Option<i64> {
    match arg {
        Expr::Literal { value: Value::Int(number), .. } => Some((*number).into()),
        Expr::Literal { value: Value::BigInt(number), .. } => Some(*number),
        _ => None,
    }
}

/// Where a boolean is true, NULL being false.
pub(super) fn true_values(filter: &BooleanArray) -> BooleanBuffer {
    match filter.nulls() {
        Some(nulls) => filter.values() & nulls.inner(),
        None => filter.values().clone(),
    }
}

/// -U is 1 and -D is 3 in [`crate::types::RowKind`]: the odd ones take rows back.
#[inline]
pub(super) fn is_retraction(kind: u8) -> bool {
    kind & 1 == 1
}

/// A vector of group values at these groups.
pub(super) fn at<T: Copy>(values: &[T], groups: &[u32]) -> impl ExactSizeIterator<Item = T> {
    groups.iter().map(|group| values[*group as usize])
}

/// The same as an array, of which only those groups have a value for which that is said. What stands behind a NULL is any value.
pub(super) fn array_at<T: ArrowPrimitiveType>(values: &[T::Native], present: &[bool], groups: &[u32]) -> PrimitiveArray<T> {
    let values: Vec<T::Native> = at(values, groups).collect();
    let valid = NullBuffer::new(BooleanBuffer::collect_bool(groups.len(), |row| present[groups[row] as usize]));
    PrimitiveArray::new(values.into(), Some(valid).filter(|valid| valid.null_count() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::RowKind;

    #[test]
    fn the_odd_kinds_take_rows_back() {
        for kind in [RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter, RowKind::Delete] {
            assert_eq!(is_retraction(kind as u8), kind.is_retraction());
        }
    }
}
