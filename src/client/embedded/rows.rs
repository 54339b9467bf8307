//! The Rust types that a function over the values of a row can take and give.

use std::convert::identity;
use std::fmt;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryViewArray, BinaryViewBuilder, BooleanArray, BooleanBuilder, PrimitiveArray, PrimitiveBuilder,
    StringViewArray, StringViewBuilder,
};
use arrow::datatypes::{Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};

use crate::error::{Error, ErrorKind, Result};
use crate::types::{DataType, TypeKind, VARCHAR_MAX};

/// A row of results: a tuple of up to six.
pub trait ReturnedRow {
    /// What collects the columns.
    type Builders: Default;

    /// The types of the columns.
    fn types() -> Vec<DataType>;

    /// Appends a row.
    fn append(self, builders: &mut Self::Builders) -> Result<()>;

    /// All rows.
    fn finish(builders: Self::Builders) -> Vec<ArrayRef>;
}

/// A type that an argument can have.
pub trait Argument {
    /// The array that holds its values.
    type Array: Array + 'static;
    /// A value, as the closure gets it.
    type Value<'a>;
    /// Whether NULL is a value of it.
    const TAKES_NULL: bool;

    /// The SQL type.
    fn kind() -> TypeKind;

    /// The value of a row.
    fn value(array: &Self::Array, row: usize) -> Self::Value<'_>;
}

/// A type that a result can have.
pub trait Returned {
    /// What collects the results.
    type Builder: Default;
    /// Whether NULL is a value of it.
    const NULLABLE: bool;

    /// The SQL type.
    fn kind() -> TypeKind;

    /// Appends a result.
    fn append(self, builder: &mut Self::Builder) -> Result<()>;

    /// Appends NULL: an argument was.
    fn append_null(builder: &mut Self::Builder);

    /// All results.
    fn finish(builder: Self::Builder) -> ArrayRef;
}

/// The types of all arguments: a tuple of up to six, or none.
pub trait Arguments {
    /// The arrays that hold their values.
    type Columns<'a>;
    /// The values of a row, as the closure gets them.
    type Values<'a>;

    /// The SQL types, and whether a NULL makes the result NULL.
    fn params() -> Vec<(TypeKind, bool)>;

    /// The arrays.
    fn columns(arrays: &[ArrayRef]) -> Result<Self::Columns<'_>>;

    /// The values of a row.
    fn row<'a>(columns: &Self::Columns<'a>, row: usize) -> Self::Values<'a>;
}

/// Types of arguments: the array that holds them, what the closure gets, the SQL type, and how a value is made of the array's.
macro_rules! argument {
    ($($rust:ty: $array:ty, $value:ty = $kind:expr, $from:expr);+ $(;)?) => {$(
        impl Argument for $rust {
            type Array = $array;
            type Value<'a> = $value;
            const TAKES_NULL: bool = false;

            fn kind() -> TypeKind {
                $kind
            }

            fn value(array: &Self::Array, row: usize) -> Self::Value<'_> {
                $from(array.value(row))
            }
        }
    )+};
}

/// Types of results: what collects them, the SQL type, what the builder takes of a value, and what becomes of the array.
macro_rules! returned {
    ($($rust:ty: $builder:ty = $kind:expr, $value:expr, $array:expr);+ $(;)?) => {$(
        impl Returned for $rust {
            type Builder = $builder;
            const NULLABLE: bool = false;

            fn kind() -> TypeKind {
                $kind
            }

            fn append(self, builder: &mut Self::Builder) -> Result<()> {
                builder.append_value($value(self));
                Ok(())
            }

            fn append_null(builder: &mut Self::Builder) {
                builder.append_null();
            }

            fn finish(mut builder: Self::Builder) -> ArrayRef {
                Arc::new($array(builder.finish()))
            }
        }
    )+};
}

pub(super) use {argument, returned};

macro_rules! primitive {
    ($($rust:ty: $arrow:ty = $kind:ident),+ $(,)?) => {
        argument!($($rust: PrimitiveArray<$arrow>, $rust = TypeKind::$kind, identity);+);
        returned!($($rust: PrimitiveBuilder<$arrow> = TypeKind::$kind, identity, identity);+);
    };
}

primitive!(
    i8: Int8Type = TinyInt,
    i16: Int16Type = SmallInt,
    i32: Int32Type = Int,
    i64: Int64Type = BigInt,
    f32: Float32Type = Float,
    f64: Float64Type = Double,
);

argument!(
    bool: BooleanArray, bool = TypeKind::Boolean, identity;
    &'static str: StringViewArray, &'a str = TypeKind::Varchar(VARCHAR_MAX), identity;
    &'static [u8]: BinaryViewArray, &'a [u8] = TypeKind::Varbinary(VARCHAR_MAX), identity;
);

returned!(
    bool: BooleanBuilder = TypeKind::Boolean, identity, identity;
    String: StringViewBuilder = TypeKind::Varchar(VARCHAR_MAX), identity, identity;
    &str: StringViewBuilder = TypeKind::Varchar(VARCHAR_MAX), identity, identity;
    Vec<u8>: BinaryViewBuilder = TypeKind::Varbinary(VARCHAR_MAX), identity, identity;
    &[u8]: BinaryViewBuilder = TypeKind::Varbinary(VARCHAR_MAX), identity, identity;
);

impl<A: Argument> Argument for Option<A> {
    type Array = A::Array;
    type Value<'a> = Option<A::Value<'a>>;
    const TAKES_NULL: bool = true;

    fn kind() -> TypeKind {
        A::kind()
    }

    fn value(array: &Self::Array, row: usize) -> Self::Value<'_> {
        (!array.is_null(row)).then(|| A::value(array, row))
    }
}

impl<R: Returned> Returned for Option<R> {
    type Builder = R::Builder;
    const NULLABLE: bool = true;

    fn kind() -> TypeKind {
        R::kind()
    }

    fn append(self, builder: &mut Self::Builder) -> Result<()> {
        match self {
            Some(value) => value.append(builder),
            None => {
                R::append_null(builder);
                Ok(())
            }
        }
    }

    fn append_null(builder: &mut Self::Builder) {
        R::append_null(builder);
    }

    fn finish(builder: Self::Builder) -> ArrayRef {
        R::finish(builder)
    }
}

/// An error fails the query.
impl<R: Returned, E: fmt::Display> Returned for Result<R, E> {
    type Builder = R::Builder;
    const NULLABLE: bool = R::NULLABLE;

    fn kind() -> TypeKind {
        R::kind()
    }

    fn append(self, builder: &mut Self::Builder) -> Result<()> {
        let value = self.map_err(|error| Error::new(ErrorKind::InvalidArgument, error.to_string()))?;
        value.append(builder)
    }

    fn append_null(builder: &mut Self::Builder) {
        R::append_null(builder);
    }

    fn finish(builder: Self::Builder) -> ArrayRef {
        R::finish(builder)
    }
}

fn column<A: Argument>(arrays: &[ArrayRef], index: usize) -> Result<&A::Array> {
    let found = arrays.get(index).and_then(|array| array.as_any().downcast_ref::<A::Array>());
    found.ok_or_else(|| Error::internal(format!("argument {index} of a function has not the type that it was bound to")))
}

macro_rules! arguments {
    ($($name:ident = $index:tt),+) => {
        impl<$($name: Argument),+> Arguments for ($($name,)+) {
            type Columns<'a> = ($(&'a $name::Array,)+);
            type Values<'a> = ($($name::Value<'a>,)+);

            fn params() -> Vec<(TypeKind, bool)> {
                vec![$(($name::kind(), !$name::TAKES_NULL)),+]
            }

            fn columns(arrays: &[ArrayRef]) -> Result<Self::Columns<'_>> {
                Ok(($(column::<$name>(arrays, $index)?,)+))
            }

            fn row<'a>(columns: &Self::Columns<'a>, row: usize) -> Self::Values<'a> {
                ($($name::value(columns.$index, row),)+)
            }
        }

        impl<$($name: Returned),+> ReturnedRow for ($($name,)+) {
            type Builders = ($($name::Builder,)+);

            fn types() -> Vec<DataType> {
                vec![$(DataType::new($name::kind(), $name::NULLABLE)),+]
            }

            fn append(self, builders: &mut Self::Builders) -> Result<()> {
                $(self.$index.append(&mut builders.$index)?;)+
                Ok(())
            }

            fn finish(builders: Self::Builders) -> Vec<ArrayRef> {
                vec![$($name::finish(builders.$index)),+]
            }
        }
    };
}

impl Arguments for () {
    type Columns<'a> = ();
    type Values<'a> = ();

    fn params() -> Vec<(TypeKind, bool)> {
        Vec::new()
    }

    fn columns(_arrays: &[ArrayRef]) -> Result<Self::Columns<'_>> {
        Ok(())
    }

    fn row<'a>(_columns: &Self::Columns<'a>, _row: usize) -> Self::Values<'a> {}
}

arguments!(A = 0);
arguments!(A = 0, B = 1);
arguments!(A = 0, B = 1, C = 2);
arguments!(A = 0, B = 1, C = 2, D = 3);
arguments!(A = 0, B = 1, C = 2, D = 3, E = 4);
arguments!(A = 0, B = 1, C = 2, D = 3, E = 4, F = 5);
