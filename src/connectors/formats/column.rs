//! Columns under construction: what a decoder appends values to, a row at a time, and takes back when a record turns out to be bad.
//!
//! Own builders rather than Arrow's because a row can be truncated away again, and because a string can point into the block that
//! was read instead of being copied.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BinaryViewArray, BooleanArray, ListArray, NullArray, PrimitiveArray, StructArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};

use super::views::{StringViews, string_view_array};
use crate::error::{Error, Result};
use crate::types::{DataType, TypeKind, build_maps};

/// A column under construction.
#[derive(Debug)]
pub struct Column {
    arrow_type: ArrowType,
    nulls: Nulls,
    /// The values, of the kind that the type asks for.
    pub values: Values,
}

/// Which rows are NULL: counts as long as there is none, and keeps bits from the first one on.
#[derive(Debug, Default)]
pub struct Nulls {
    len: usize,
    valid: Option<Vec<bool>>,
}

impl Nulls {
    /// A row that is not NULL.
    #[inline(always)]
    pub fn push_valid(&mut self) {
        if let Some(valid) = &mut self.valid {
            valid.push(true);
        }
        self.len += 1;
    }

    /// A row that is NULL.
    pub fn push_null(&mut self) {
        let len = self.len;
        self.valid.get_or_insert_with(|| vec![true; len]).push(false);
        self.len += 1;
    }

    /// Rows so far.
    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    fn truncate(&mut self, len: usize) {
        if let Some(valid) = &mut self.valid {
            valid.truncate(len);
        }
        self.len = len;
    }

    fn has_null(&self) -> bool {
        self.valid.as_ref().is_some_and(|valid| valid.contains(&false))
    }

    fn finish(&mut self) -> Option<NullBuffer> {
        self.len = 0;
        let valid = self.valid.take()?;
        Some(NullBuffer::new(BooleanBuffer::from(valid))).filter(|nulls| nulls.null_count() > 0)
    }
}

/// The values of a column under construction, NULLs as some default value.
#[derive(Debug)]
pub enum Values {
    /// The type of NULL.
    Null,
    /// BOOLEAN.
    Boolean(Vec<bool>),
    /// TINYINT.
    Int8(Vec<i8>),
    /// SMALLINT.
    Int16(Vec<i16>),
    /// INT.
    Int32(Vec<i32>),
    /// BIGINT.
    Int64(Vec<i64>),
    /// FLOAT.
    Float32(Vec<f32>),
    /// DOUBLE.
    Float64(Vec<f64>),
    /// DECIMAL, unscaled.
    Decimal {
        /// Values.
        values: Vec<i128>,
        /// Precision.
        precision: u8,
        /// Scale.
        scale: u8,
    },
    /// DATE, days since the epoch.
    Date(Vec<i32>),
    /// TIME, milliseconds of the day.
    Time(Vec<i32>),
    /// TIMESTAMP, TIMESTAMP_LTZ: in the unit of the precision.
    Timestamp {
        /// Values.
        values: Vec<i64>,
        /// Precision.
        precision: u8,
        /// TIMESTAMP_LTZ.
        zoned: bool,
    },
    /// CHAR, VARCHAR.
    String(StringViews),
    /// BINARY, VARBINARY.
    Binary(StringViews),
    /// ROW.
    Row(Vec<Column>),
    /// ARRAY.
    Array {
        /// Where each row ends; the first is 0.
        offsets: Vec<i32>,
        /// Elements of all rows.
        element: Box<Column>,
    },
    /// MAP, MULTISET.
    Map {
        /// Where each row ends; the first is 0.
        offsets: Vec<i32>,
        /// Keys of all rows.
        key: Box<Column>,
        /// Values of all rows.
        value: Box<Column>,
    },
}

impl Column {
    /// An empty column of this type. Types that no connector can carry are refused.
    pub fn new(data_type: &DataType) -> Result<Self> {
        let boxed = |data_type: &DataType| Ok::<_, Error>(Box::new(Column::new(data_type)?));
        let values = match &data_type.kind {
            TypeKind::Null => Values::Null,
            TypeKind::Char(_) | TypeKind::Varchar(_) => Values::String(StringViews::default()),
            TypeKind::Binary(_) | TypeKind::Varbinary(_) => Values::Binary(StringViews::default()),
            TypeKind::Boolean => Values::Boolean(Vec::new()),
            TypeKind::TinyInt => Values::Int8(Vec::new()),
            TypeKind::SmallInt => Values::Int16(Vec::new()),
            TypeKind::Int => Values::Int32(Vec::new()),
            TypeKind::BigInt => Values::Int64(Vec::new()),
            TypeKind::Float => Values::Float32(Vec::new()),
            TypeKind::Double => Values::Float64(Vec::new()),
            TypeKind::Decimal(precision, scale) => Values::Decimal { values: Vec::new(), precision: *precision, scale: *scale },
            TypeKind::Date => Values::Date(Vec::new()),
            TypeKind::Time(_) => Values::Time(Vec::new()),
            TypeKind::Timestamp(precision) => Values::Timestamp { values: Vec::new(), precision: *precision, zoned: false },
            TypeKind::TimestampLtz(precision) => Values::Timestamp { values: Vec::new(), precision: *precision, zoned: true },
            TypeKind::IntervalYearMonth | TypeKind::IntervalDayTime | TypeKind::Bitmap | TypeKind::Variant => {
                return Err(Error::unsupported(format!("a column of type {}", data_type.kind_text())));
            }
            TypeKind::Array(element) => Values::Array { offsets: vec![0], element: boxed(element)? },
            TypeKind::Map(key, value) => Values::Map { offsets: vec![0], key: boxed(key)?, value: boxed(value)? },
            TypeKind::Multiset(element) => {
                let count = DataType::not_null(TypeKind::Int);
                Values::Map { offsets: vec![0], key: boxed(element)?, value: boxed(&count)? }
            }
            TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
                Values::Row(fields.iter().map(|field| Column::new(&field.data_type)).collect::<Result<_>>()?)
            }
        };
        Ok(Column { arrow_type: data_type.to_arrow(), nulls: Nulls::default(), values })
    }

    /// Rows so far.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.nulls.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a row is NULL.
    pub fn has_null(&self) -> bool {
        self.nulls.has_null()
    }

    /// Marks that a value was pushed to [`Column::values`].
    #[inline(always)]
    pub fn push_valid(&mut self) {
        self.nulls.push_valid();
    }

    /// Appends NULL.
    pub fn push_null(&mut self) {
        self.nulls.push_null();
        match &mut self.values {
            Values::Null => {}
            Values::Boolean(values) => values.push(false),
            Values::Int8(values) => values.push(0),
            Values::Int16(values) => values.push(0),
            Values::Int32(values) | Values::Date(values) | Values::Time(values) => values.push(0),
            Values::Int64(values) | Values::Timestamp { values, .. } => values.push(0),
            Values::Float32(values) => values.push(0.0),
            Values::Float64(values) => values.push(0.0),
            Values::Decimal { values, .. } => values.push(0),
            Values::String(views) | Values::Binary(views) => views.push_empty(),
            Values::Row(columns) => columns.iter_mut().for_each(Column::push_null),
            Values::Array { offsets, element } => offsets.push(element.len() as i32),
            Values::Map { offsets, key, .. } => offsets.push(key.len() as i32),
        }
    }

    /// Takes back all rows but the first `len`. Values pushed without [`Column::push_valid`] go as well.
    pub fn truncate(&mut self, len: usize) {
        self.nulls.truncate(len);
        match &mut self.values {
            Values::Null => {}
            Values::Boolean(values) => values.truncate(len),
            Values::Int8(values) => values.truncate(len),
            Values::Int16(values) => values.truncate(len),
            Values::Int32(values) | Values::Date(values) | Values::Time(values) => values.truncate(len),
            Values::Int64(values) | Values::Timestamp { values, .. } => values.truncate(len),
            Values::Float32(values) => values.truncate(len),
            Values::Float64(values) => values.truncate(len),
            Values::Decimal { values, .. } => values.truncate(len),
            Values::String(views) | Values::Binary(views) => views.truncate(len),
            Values::Row(columns) => columns.iter_mut().for_each(|column| column.truncate(len)),
            Values::Array { offsets, element } => {
                offsets.truncate(len + 1);
                element.truncate(offsets[len] as usize);
            }
            Values::Map { offsets, key, value } => {
                offsets.truncate(len + 1);
                key.truncate(offsets[len] as usize);
                value.truncate(offsets[len] as usize);
            }
        }
    }

    /// The array of all rows; the column is empty afterwards. `block` is what the strings point into.
    pub fn finish(&mut self, block: &Buffer) -> ArrayRef {
        let len = self.len();
        let nulls = self.nulls.finish();
        match &mut self.values {
            Values::Null => Arc::new(NullArray::new(len)),
            Values::Boolean(values) => Arc::new(BooleanArray::new(BooleanBuffer::from(std::mem::take(values)), nulls)),
            Values::Int8(values) => primitive::<Int8Type>(values, nulls, &self.arrow_type),
            Values::Int16(values) => primitive::<Int16Type>(values, nulls, &self.arrow_type),
            Values::Int32(values) => primitive::<Int32Type>(values, nulls, &self.arrow_type),
            Values::Int64(values) => primitive::<Int64Type>(values, nulls, &self.arrow_type),
            Values::Float32(values) => primitive::<Float32Type>(values, nulls, &self.arrow_type),
            Values::Float64(values) => primitive::<Float64Type>(values, nulls, &self.arrow_type),
            Values::Decimal { values, .. } => primitive::<Decimal128Type>(values, nulls, &self.arrow_type),
            Values::Date(values) => primitive::<Date32Type>(values, nulls, &self.arrow_type),
            Values::Time(values) => primitive::<Time32MillisecondType>(values, nulls, &self.arrow_type),
            Values::Timestamp { values, precision, .. } => match precision {
                0..=3 => primitive::<TimestampMillisecondType>(values, nulls, &self.arrow_type),
                4..=6 => primitive::<TimestampMicrosecondType>(values, nulls, &self.arrow_type),
                _ => primitive::<TimestampNanosecondType>(values, nulls, &self.arrow_type),
            },
            Values::String(views) => Arc::new(string_view_array(views, block, nulls)),
            Values::Binary(views) => {
                let (views, buffers) = views.finish(block);
                Arc::new(BinaryViewArray::new(views.into(), buffers, nulls))
            }
            Values::Row(columns) => {
                let ArrowType::Struct(fields) = &self.arrow_type else { unreachable!("ROW is a struct") };
                let arrays = columns.iter_mut().map(|column| column.finish(block)).collect::<Vec<_>>();
                if arrays.is_empty() {
                    return Arc::new(StructArray::new_empty_fields(len, nulls));
                }
                Arc::new(StructArray::new(fields.clone(), arrays, nulls))
            }
            Values::Array { offsets, element } => {
                let ArrowType::List(field) = &self.arrow_type else { unreachable!("ARRAY is a list") };
                let elements = element.finish(block);
                Arc::new(ListArray::new(field.clone(), take_offsets(offsets), elements, nulls))
            }
            Values::Map { offsets, key, value } => {
                let maps = build_maps(take_offsets(offsets), key.finish(block), value.finish(block), nulls);
                maps.expect("there are as many keys as values")
            }
        }
    }
}

fn primitive<T: ArrowPrimitiveType>(values: &mut Vec<T::Native>, nulls: Option<NullBuffer>, arrow_type: &ArrowType) -> ArrayRef {
    // The next batch is most likely as long as this one.
    let next = Vec::with_capacity(values.len());
    let values = ScalarBuffer::from(std::mem::replace(values, next));
    Arc::new(PrimitiveArray::<T>::new(values, nulls).with_data_type(arrow_type.clone()))
}

fn take_offsets(offsets: &mut Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(offsets, vec![0])))
}

/// Appends a value, if there is one; says whether there was.
#[inline(always)]
pub(super) fn push<T>(values: &mut Vec<T>, value: Option<T>) -> bool {
    match value {
        Some(value) => {
            values.push(value);
            true
        }
        None => false,
    }
}
