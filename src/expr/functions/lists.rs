//! What functions over arrays share: the elements of all arguments in one pool, and results written as places in it.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array, make_comparator};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType as ArrowType, Float32Type, Float64Type};

use super::builtin::{Builtin, coerce};
use super::comparison::{has_map, values_equal};
use crate::error::{Error, Result};
use crate::expr::merged_type::merged_type;
use crate::expr::{Datum, Expr, can_cast_implicitly};
use crate::types::{DataType, TypeKind, hash_columns};

/// The element type of an argument that is an ARRAY.
pub(super) fn element_type(arg: &Expr) -> Option<DataType> {
    match arg.data_type().kind {
        TypeKind::Array(element) => Some(*element),
        _ => None,
    }
}

/// An argument as an element of an array: cast if that happens without asking, and never to less nullability inside.
pub(super) fn as_element(arg: Expr, element: &DataType) -> Option<Expr> {
    let given = arg.data_type().regular();
    let fits =
        given.kind == TypeKind::Null || (can_cast_implicitly(&given, element) && nullability_fits(&given.kind, &element.kind));
    fits.then(|| coerce(arg, &element.kind))
}

/// Whether no part that can be NULL would be put where none may be.
fn nullability_fits(from: &TypeKind, to: &TypeKind) -> bool {
    let part = |from: &DataType, to: &DataType| (!from.nullable || to.nullable) && nullability_fits(&from.kind, &to.kind);
    match (from, to) {
        (TypeKind::Array(from), TypeKind::Array(to)) | (TypeKind::Multiset(from), TypeKind::Multiset(to)) => part(from, to),
        (TypeKind::Map(from_key, from_value), TypeKind::Map(to_key, to_value)) => {
            part(from_key, to_key) && part(from_value, to_value)
        }
        (TypeKind::Row(from) | TypeKind::Structured(_, from), TypeKind::Row(to) | TypeKind::Structured(_, to)) => {
            from.iter().zip(to).all(|(from, to)| part(&from.data_type, &to.data_type))
        }
        _ => true,
    }
}

/// All arguments as arrays of their common type.
pub(super) fn bind_common(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let types: Vec<DataType> = args.iter().map(|arg| arg.data_type().regular()).collect();
    let all_arrays = types.iter().all(|data_type| matches!(data_type.kind, TypeKind::Array(_)));
    let common = merged_type(&types).filter(|_| all_arrays).ok_or_else(|| function.mismatch(&args))?;
    let args = args.into_iter().map(|arg| coerce(arg, &common.kind)).collect();
    Ok(function.call(args, common))
}

/// The elements of several arguments, one after another.
pub(super) struct Pool {
    values: ArrayRef,
    bases: Vec<usize>,
}

impl Pool {
    /// Of lists, which give their elements, and of single elements.
    pub(super) fn of(args: &[&Datum], are_lists: &[bool]) -> Result<Self> {
        let parts: Vec<&ArrayRef> = args
            .iter()
            .zip(are_lists)
            .map(|(arg, is_list)| if *is_list { arg.array().as_list::<i32>().values() } else { arg.array() })
            .collect();
        let bases = parts.iter().scan(0, |next, part| {
            let base = *next;
            *next += part.len();
            Some(base)
        });
        let bases = bases.collect();
        let values = match parts.as_slice() {
            [only] => Arc::clone(only),
            _ => concat(&parts.iter().map(|part| part.as_ref()).collect::<Vec<_>>())?,
        };
        if u32::try_from(values.len()).is_err() {
            return Err(Error::internal("more elements in a batch than 32 bits count"));
        }
        Ok(Pool { values, bases })
    }

    /// Of lists only.
    pub(super) fn of_lists(args: &[Datum]) -> Result<Self> {
        Self::of(&args.iter().collect::<Vec<_>>(), &vec![true; args.len()])
    }

    /// The elements.
    pub(super) fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// The lists of an argument.
    pub(super) fn lists<'a>(&self, index: usize, datum: &'a Datum) -> Lists<'a> {
        Lists { list: datum.array().as_list(), scalar: datum.is_scalar(), base: self.bases[index] }
    }

    /// The place of the element that an argument is at a row.
    pub(super) fn element(&self, index: usize, datum: &Datum, row: usize) -> usize {
        self.bases[index] + if datum.is_scalar() { 0 } else { row }
    }

    /// Whether two elements are equal, NULL being equal to NULL.
    pub(super) fn equality(&self) -> Result<impl Fn(usize, usize) -> bool + use<>> {
        equality_with_nulls(&self.values)
    }

    /// The hashes of the elements. Equal elements have equal ones, save 0.0 and -0.0 when zeros have a sign.
    pub(super) fn hashes(&self, signed_zeros: bool) -> Vec<u64> {
        let mut hashes = Vec::new();
        let values = match self.values.data_type() {
            _ if signed_zeros => Arc::clone(&self.values),
            ArrowType::Float32 => Arc::new(self.values.as_primitive::<Float32Type>().unary::<_, Float32Type>(|n| n + 0.0)) as _,
            ArrowType::Float64 => Arc::new(self.values.as_primitive::<Float64Type>().unary::<_, Float64Type>(|n| n + 0.0)) as _,
            _ => Arc::clone(&self.values),
        };
        hash_columns(&[values], self.values.len(), &mut hashes);
        hashes
    }
}

/// Whether two values of an array are equal, NULL being equal to NULL.
pub(super) fn equality_with_nulls(values: &ArrayRef) -> Result<impl Fn(usize, usize) -> bool + use<>> {
    let equal = equality(values)?;
    let nulls = values.logical_nulls();
    let is_null = move |at: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(at));
    Ok(move |a: usize, b: usize| match (is_null(a), is_null(b)) {
        (false, false) => equal(a, b),
        (a, b) => a && b,
    })
}

/// Whether two values of an array are equal, neither being NULL. Floats compare as in Java's `==`.
pub(super) fn equality(values: &ArrayRef) -> Result<Box<dyn Fn(usize, usize) -> bool>> {
    let array = Arc::clone(values);
    Ok(match values.data_type() {
        ArrowType::Float32 => {
            let numbers = array.as_primitive::<Float32Type>().clone();
            Box::new(move |a, b| numbers.value(a) == numbers.value(b))
        }
        ArrowType::Float64 => {
            let numbers = array.as_primitive::<Float64Type>().clone();
            Box::new(move |a, b| numbers.value(a) == numbers.value(b))
        }
        nested if has_map(nested) => Box::new(move |a, b| values_equal(&array, a, &array, b)),
        _ => {
            let order = make_comparator(&array, &array, Default::default())?;
            Box::new(move |a, b| order(a, b).is_eq())
        }
    })
}

/// How values of an array compare, by place.
pub(super) type PartialOrder = Box<dyn Fn(usize, usize) -> Option<Ordering>>;

/// How two values of an array compare, neither being NULL; none = not at all, as NaN with anything.
pub(super) fn partial_order(values: &ArrayRef) -> Result<PartialOrder> {
    let array = Arc::clone(values);
    Ok(match values.data_type() {
        ArrowType::Float32 => {
            let numbers = array.as_primitive::<Float32Type>().clone();
            Box::new(move |a, b| numbers.value(a).partial_cmp(&numbers.value(b)))
        }
        ArrowType::Float64 => {
            let numbers = array.as_primitive::<Float64Type>().clone();
            Box::new(move |a, b| numbers.value(a).partial_cmp(&numbers.value(b)))
        }
        _ => {
            let order = make_comparator(&array, &array, Default::default())?;
            Box::new(move |a, b| Some(order(a, b)))
        }
    })
}

/// The lists of an argument, as ranges of places in the pool.
pub(super) struct Lists<'a> {
    list: &'a ListArray,
    scalar: bool,
    base: usize,
}

impl Lists<'_> {
    /// The places of the elements at a row; none = NULL.
    pub(super) fn get(&self, row: usize) -> Option<Range<usize>> {
        let row = if self.scalar { 0 } else { row };
        let offsets = self.list.value_offsets();
        (!self.list.is_null(row)).then(|| self.base + offsets[row] as usize..self.base + offsets[row + 1] as usize)
    }
}

/// Lists of places in a pool, written row by row.
pub(super) struct ListWriter {
    places: Vec<u32>,
    lengths: Vec<usize>,
    valid: Vec<bool>,
}

impl ListWriter {
    pub(super) fn with_capacity(rows: usize) -> Self {
        ListWriter { places: Vec::new(), lengths: Vec::with_capacity(rows), valid: Vec::with_capacity(rows) }
    }

    /// A row; none = NULL.
    pub(super) fn push(&mut self, row: Option<impl IntoIterator<Item = usize>>) {
        let before = self.places.len();
        self.valid.push(row.is_some());
        self.places.extend(row.into_iter().flatten().map(|place| place as u32));
        self.lengths.push(self.places.len() - before);
    }

    /// The lists over the values of the pool.
    pub(super) fn finish(self, values: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
        let ArrowType::List(field) = data_type.to_arrow() else { return Err(Error::internal("an ARRAY is a list")) };
        let nulls = self.valid.contains(&false).then(|| NullBuffer::from(self.valid));
        let values = take(values, &UInt32Array::from(self.places), None)?;
        Ok(Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(self.lengths), values, nulls)))
    }
}
