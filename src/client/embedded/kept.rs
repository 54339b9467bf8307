//! The Rust types that the state of an accumulator is made of, and their columns in a snapshot.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryViewArray, BinaryViewBuilder, BooleanArray, BooleanBuilder, ListArray, PrimitiveArray,
    PrimitiveBuilder, StringViewArray, StringViewBuilder,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType as ArrowType, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};

use crate::error::{Error, Result};

/// A type that state can be made of: `bool`, `i8` to `i64`, `f32`, `f64`, `String`, `Vec<u8>`, and an `Option` or a `Vec` of one.
pub trait Kept: Sized {
    /// What collects the values of groups.
    type Builder: Default;
    /// The array that holds them.
    type Array: Array + 'static;

    /// The Arrow type.
    fn data_type() -> ArrowType;

    /// Appends the value of a group.
    fn append(self, builder: &mut Self::Builder);

    /// Appends that there is none.
    fn append_null(builder: &mut Self::Builder);

    /// All values.
    fn finish(builder: Self::Builder) -> ArrayRef;

    /// The value of a row.
    fn read(array: &Self::Array, row: usize) -> Self;
}

macro_rules! kept {
    ($($rust:ty: $array:ty, $builder:ty = $data_type:expr, $from:ident),+ $(,)?) => {$(
        impl Kept for $rust {
            type Builder = $builder;
            type Array = $array;

            fn data_type() -> ArrowType {
                $data_type
            }

            fn append(self, builder: &mut Self::Builder) {
                builder.append_value(self);
            }

            fn append_null(builder: &mut Self::Builder) {
                builder.append_null();
            }

            fn finish(mut builder: Self::Builder) -> ArrayRef {
                Arc::new(builder.finish())
            }

            fn read(array: &Self::Array, row: usize) -> Self {
                array.value(row).$from()
            }
        }
    )+};
}

kept!(
    bool: BooleanArray, BooleanBuilder = ArrowType::Boolean, into,
    i8: PrimitiveArray<Int8Type>, PrimitiveBuilder<Int8Type> = ArrowType::Int8, into,
    i16: PrimitiveArray<Int16Type>, PrimitiveBuilder<Int16Type> = ArrowType::Int16, into,
    i32: PrimitiveArray<Int32Type>, PrimitiveBuilder<Int32Type> = ArrowType::Int32, into,
    i64: PrimitiveArray<Int64Type>, PrimitiveBuilder<Int64Type> = ArrowType::Int64, into,
    f32: PrimitiveArray<Float32Type>, PrimitiveBuilder<Float32Type> = ArrowType::Float32, into,
    f64: PrimitiveArray<Float64Type>, PrimitiveBuilder<Float64Type> = ArrowType::Float64, into,
    String: StringViewArray, StringViewBuilder = ArrowType::Utf8View, to_string,
    Vec<u8>: BinaryViewArray, BinaryViewBuilder = ArrowType::BinaryView, to_vec,
);

impl<K: Kept> Kept for Option<K> {
    type Builder = K::Builder;
    type Array = K::Array;

    fn data_type() -> ArrowType {
        K::data_type()
    }

    fn append(self, builder: &mut Self::Builder) {
        match self {
            Some(value) => value.append(builder),
            None => K::append_null(builder),
        }
    }

    fn append_null(builder: &mut Self::Builder) {
        K::append_null(builder);
    }

    fn finish(builder: Self::Builder) -> ArrayRef {
        K::finish(builder)
    }

    fn read(array: &Self::Array, row: usize) -> Self {
        (!array.is_null(row)).then(|| K::read(array, row))
    }
}

/// Lists of values, one behind the other.
#[derive(Default)]
pub struct Lists<B> {
    values: B,
    lengths: Vec<usize>,
    valid: Vec<bool>,
}

impl<K: Kept> Kept for Vec<K> {
    type Builder = Lists<K::Builder>;
    type Array = ListArray;

    fn data_type() -> ArrowType {
        ArrowType::List(item::<K>())
    }

    fn append(self, builder: &mut Self::Builder) {
        builder.lengths.push(self.len());
        builder.valid.push(true);
        self.into_iter().for_each(|value| value.append(&mut builder.values));
    }

    fn append_null(builder: &mut Self::Builder) {
        builder.lengths.push(0);
        builder.valid.push(false);
    }

    fn finish(builder: Self::Builder) -> ArrayRef {
        let offsets = OffsetBuffer::from_lengths(builder.lengths);
        Arc::new(ListArray::new(item::<K>(), offsets, K::finish(builder.values), Some(NullBuffer::from(builder.valid))))
    }

    fn read(array: &Self::Array, row: usize) -> Self {
        let values = array.value(row);
        let values =
            values.as_any().downcast_ref::<K::Array>().expect("the column of a list has the type that it was checked to have");
        (0..values.len()).map(|at| K::read(values, at)).collect()
    }
}

fn item<K: Kept>() -> Arc<Field> {
    Arc::new(Field::new("item", K::data_type(), true))
}

/// All of the state of a group: a tuple of up to six [`Kept`] values.
pub trait KeptRow: Sized {
    /// What collects the columns.
    type Builders: Default;
    /// The columns.
    type Arrays<'a>;

    /// The Arrow types of the columns.
    fn data_types() -> Vec<ArrowType>;

    /// Appends the state of a group.
    fn append(self, builders: &mut Self::Builders);

    /// All columns.
    fn finish(builders: Self::Builders) -> Vec<ArrayRef>;

    /// The columns of these types.
    fn arrays(columns: &[ArrayRef]) -> Result<Self::Arrays<'_>>;

    /// The state in a row.
    fn read(arrays: &Self::Arrays<'_>, row: usize) -> Self;
}

fn column<K: Kept>(columns: &[ArrayRef], index: usize) -> Result<&K::Array> {
    let column = columns.get(index).filter(|column| *column.data_type() == K::data_type());
    let array = column.and_then(|column| column.as_any().downcast_ref::<K::Array>());
    array.ok_or_else(|| {
        let found = columns.get(index).map_or("nothing".to_string(), |column| column.data_type().to_string());
        Error::new(
            crate::error::ErrorKind::NotRestorable,
            "the state of an aggregate function is of another type than the function's",
        )
        .with_detail(format!("column {index} is {found}, and was to be {}", K::data_type()))
    })
}

macro_rules! kept_row {
    ($($name:ident = $index:tt),+) => {
        impl<$($name: Kept),+> KeptRow for ($($name,)+) {
            type Builders = ($($name::Builder,)+);
            type Arrays<'a> = ($(&'a $name::Array,)+);

            fn data_types() -> Vec<ArrowType> {
                vec![$($name::data_type()),+]
            }

            fn append(self, builders: &mut Self::Builders) {
                $(self.$index.append(&mut builders.$index);)+
            }

            fn finish(builders: Self::Builders) -> Vec<ArrayRef> {
                vec![$($name::finish(builders.$index)),+]
            }

            fn arrays(columns: &[ArrayRef]) -> Result<Self::Arrays<'_>> {
                Ok(($(column::<$name>(columns, $index)?,)+))
            }

            fn read(arrays: &Self::Arrays<'_>, row: usize) -> Self {
                ($($name::read(arrays.$index, row),)+)
            }
        }
    };
}

kept_row!(A = 0);
kept_row!(A = 0, B = 1);
kept_row!(A = 0, B = 1, C = 2);
kept_row!(A = 0, B = 1, C = 2, D = 3);
kept_row!(A = 0, B = 1, C = 2, D = 3, E = 4);
kept_row!(A = 0, B = 1, C = 2, D = 3, E = 4, F = 5);

#[cfg(test)]
mod tests {
    use super::*;

    type State = (i64, Option<String>, Vec<f64>, Option<Vec<u8>>, Vec<Vec<bool>>, Vec<Option<i32>>);

    #[test]
    fn states_come_back_as_they_were() {
        let states: Vec<State> = vec![
            (1, None, vec![], None, vec![], vec![None]),
            (
                -2,
                Some("a longer text than fits".into()),
                vec![1.5, f64::INFINITY],
                Some(vec![0, 255]),
                vec![vec![true], vec![]],
                vec![],
            ),
        ];
        let mut builders = <State as KeptRow>::Builders::default();
        states.iter().cloned().for_each(|state| state.append(&mut builders));
        let columns = State::finish(builders);
        let types: Vec<ArrowType> = columns.iter().map(|column| column.data_type().clone()).collect();
        assert_eq!(types, State::data_types());
        let arrays = State::arrays(&columns).unwrap();
        assert_eq!((0..2).map(|row| State::read(&arrays, row)).collect::<Vec<_>>(), states);
    }

    #[test]
    fn state_of_another_function_is_told() {
        let column: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
        let error = <(Vec<i64>,)>::arrays(&[column]).map(|_| ()).unwrap_err();
        assert_eq!(error.detail(), Some("column 0 is Boolean, and was to be List(Int64)"));
    }
}
