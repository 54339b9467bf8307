//! Row access to the arguments of a kernel that works value by value: one view over arrays and scalars alike.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryViewArray, BooleanArray, PrimitiveArray, StringViewArray,
    StringViewBuilder,
};
use arrow::buffer::NullBuffer;

use crate::error::Result;
use crate::expr::{Datum, EvalContext};

/// How many rows a kernel has to compute: one when all arguments are scalars.
pub(super) struct Rows {
    /// Rows to compute.
    pub(super) count: usize,
    scalar: bool,
}

impl Rows {
    /// For these arguments. Without arguments there is one row for all.
    pub(super) fn of(args: &[Datum], context: &EvalContext) -> Self {
        let scalar = args.iter().all(Datum::is_scalar);
        Rows { count: if scalar { 1 } else { context.num_rows }, scalar }
    }

    /// The result of the kernel.
    pub(super) fn finish(&self, array: ArrayRef) -> Datum {
        debug_assert_eq!(array.len(), self.count);
        if self.scalar { Datum::Scalar(array) } else { Datum::Array(array) }
    }
}

/// An argument of strings.
pub(super) struct Text<'a> {
    array: &'a StringViewArray,
    scalar: bool,
}

impl<'a> Text<'a> {
    pub(super) fn of(datum: &'a Datum) -> Self {
        Text { array: datum.array().as_string_view(), scalar: datum.is_scalar() }
    }

    /// The value of a row; none = NULL.
    pub(super) fn get(&self, row: usize) -> Option<&'a str> {
        let at = if self.scalar { 0 } else { row };
        (!self.array.is_null(at)).then(|| self.array.value(at))
    }
}

/// An argument of bytes.
pub(super) struct Bytes<'a> {
    array: &'a BinaryViewArray,
    scalar: bool,
}

impl<'a> Bytes<'a> {
    pub(super) fn of(datum: &'a Datum) -> Self {
        Bytes { array: datum.array().as_binary_view(), scalar: datum.is_scalar() }
    }

    /// The value of a row; none = NULL.
    pub(super) fn get(&self, row: usize) -> Option<&'a [u8]> {
        let at = if self.scalar { 0 } else { row };
        (!self.array.is_null(at)).then(|| self.array.value(at))
    }
}

/// An argument of numbers, dates or times.
pub(super) struct Numbers<'a, T: ArrowPrimitiveType> {
    array: &'a PrimitiveArray<T>,
    scalar: bool,
}

impl<'a, T: ArrowPrimitiveType> Numbers<'a, T> {
    pub(super) fn of(datum: &'a Datum) -> Self {
        Numbers { array: datum.array().as_primitive(), scalar: datum.is_scalar() }
    }

    /// The value of a row; none = NULL.
    pub(super) fn get(&self, row: usize) -> Option<T::Native> {
        let at = if self.scalar { 0 } else { row };
        (!self.array.is_null(at)).then(|| self.array.value(at))
    }
}

/// Strings computed row by row: `write` appends the value of a row to the buffer and says whether it is not NULL.
pub(super) fn build_text(
    args: &[Datum],
    context: &EvalContext,
    mut write: impl FnMut(usize, &mut String) -> Option<()>,
) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let mut builder = StringViewBuilder::with_capacity(rows.count);
    let mut buffer = String::new();
    for row in 0..rows.count {
        buffer.clear();
        match write(row, &mut buffer) {
            Some(()) => builder.append_value(&buffer),
            None => builder.append_null(),
        }
    }
    Ok(rows.finish(Arc::new(builder.finish())))
}

/// Strings that are parts of their arguments, row by row.
pub(super) fn build_slices<'a>(
    args: &'a [Datum],
    context: &EvalContext,
    mut slice: impl FnMut(usize) -> Option<&'a str>,
) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let mut builder = StringViewBuilder::with_capacity(rows.count);
    for row in 0..rows.count {
        builder.append_option(slice(row));
    }
    Ok(rows.finish(Arc::new(builder.finish())))
}

/// Numbers computed row by row; none = NULL.
pub(super) fn build_numbers<T: ArrowPrimitiveType>(
    args: &[Datum],
    context: &EvalContext,
    mut value: impl FnMut(usize) -> Option<T::Native>,
) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let array: PrimitiveArray<T> = (0..rows.count).map(&mut value).collect();
    Ok(rows.finish(Arc::new(array)))
}

/// Booleans computed row by row; none = NULL.
pub(super) fn build_booleans(
    args: &[Datum],
    context: &EvalContext,
    mut value: impl FnMut(usize) -> Option<bool>,
) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let array: BooleanArray = (0..rows.count).map(&mut value).collect();
    Ok(rows.finish(Arc::new(array)))
}

/// The rows of two arguments of which neither is NULL, where at most one is a scalar (a NULL scalar was handled before).
pub(super) fn union_nulls(left: &Datum, right: &Datum) -> Option<NullBuffer> {
    match (left.is_scalar(), right.is_scalar()) {
        (true, false) => right.array().logical_nulls(),
        (false, true) => left.array().logical_nulls(),
        _ => NullBuffer::union(left.array().logical_nulls().as_ref(), right.array().logical_nulls().as_ref()),
    }
}
