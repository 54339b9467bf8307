//! From the Arrow data of a program to the engine's: which SQL type an Arrow type is, and its arrays in the form of that type.
//!
//! Widens where Flink has no such type (unsigned integers), unpacks encodings (dictionaries, runs), and refuses by name what has no type
//! without loss: unions, half-known intervals, times finer than a millisecond.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, RecordBatch, StructArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, IntervalUnit, SchemaRef as ArrowSchemaRef, TimeUnit};

use crate::error::{Error, ErrorKind, Result};
use crate::types::{Batch, DataType, Field, RowField, Schema, SchemaRef, TypeKind, VARCHAR_MAX, build_maps};

/// The most digits of a DECIMAL.
const DECIMAL_DIGITS_MAX: u8 = 38;

/// Brings record batches of one Arrow schema into the engine.
#[derive(Debug, Clone)]
pub struct Import {
    arrow: ArrowSchemaRef,
    schema: SchemaRef,
}

impl Import {
    /// For this schema; an error names the column whose type has no counterpart.
    pub fn new(arrow: &ArrowSchemaRef) -> Result<Self> {
        let field = |field: &Arc<ArrowField>| {
            let data_type = sql_type(field).map_err(|error| error.with_detail(format!("column \"{}\"", field.name())))?;
            Ok(Field::new(field.name(), data_type))
        };
        let fields = arrow.fields().iter().map(field).collect::<Result<Vec<_>>>()?;
        if fields.is_empty() {
            return Err(Error::new(ErrorKind::InvalidArgument, "the schema has no columns"));
        }
        Ok(Import { arrow: Arc::clone(arrow), schema: Arc::new(Schema::new(fields)) })
    }

    /// The columns as SQL sees them.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows of a record batch, which must have the columns of the schema.
    pub fn batch(&self, rows: &RecordBatch) -> Result<Batch> {
        self.check(rows)?;
        let columns = rows.columns().iter().zip(&self.schema.fields).map(|(array, field)| convert(array, &field.data_type));
        Ok(Batch::new(columns.collect::<Result<Vec<_>>>()?, rows.num_rows()))
    }

    fn check(&self, rows: &RecordBatch) -> Result<()> {
        let misfit = |detail: String| {
            Err(Error::new(ErrorKind::DataFormat, "a record batch does not fit the schema of its table").with_detail(detail))
        };
        let (given, expected) = (rows.num_columns(), self.arrow.fields().len());
        if given != expected {
            return misfit(format!("it has {given} columns, the table has {expected}"));
        }
        for (array, field) in rows.columns().iter().zip(self.arrow.fields()) {
            if array.data_type() != field.data_type() {
                return misfit(format!(
                    "column \"{}\" is {}, the table has {}",
                    field.name(),
                    array.data_type(),
                    field.data_type()
                ));
            }
            if !field.is_nullable() && array.logical_null_count() > 0 {
                return misfit(format!("column \"{}\" is NOT NULL and has NULLs", field.name()));
            }
        }
        Ok(())
    }
}

/// The SQL type of an Arrow field.
pub fn sql_type(field: &ArrowField) -> Result<DataType> {
    let arrow = field.data_type();
    Ok(DataType::new(kind_of(arrow)?, field.is_nullable()))
}

fn kind_of(arrow: &ArrowType) -> Result<TypeKind> {
    let boxed = |field: &ArrowField| sql_type(field).map(Box::new);
    Ok(match arrow {
        ArrowType::Boolean => TypeKind::Boolean,
        ArrowType::Int8 => TypeKind::TinyInt,
        ArrowType::Int16 | ArrowType::UInt8 => TypeKind::SmallInt,
        ArrowType::Int32 | ArrowType::UInt16 => TypeKind::Int,
        ArrowType::Int64 | ArrowType::UInt32 => TypeKind::BigInt,
        ArrowType::UInt64 => TypeKind::Decimal(20, 0),
        ArrowType::Float16 | ArrowType::Float32 => TypeKind::Float,
        ArrowType::Float64 => TypeKind::Double,
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => TypeKind::Varchar(VARCHAR_MAX),
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView => TypeKind::Varbinary(VARCHAR_MAX),
        ArrowType::FixedSizeBinary(bytes) if *bytes > 0 => TypeKind::Binary(*bytes as u32),
        ArrowType::Decimal32(precision, scale)
        | ArrowType::Decimal64(precision, scale)
        | ArrowType::Decimal128(precision, scale)
        | ArrowType::Decimal256(precision, scale)
            if *precision <= DECIMAL_DIGITS_MAX && (0..=*precision as i8).contains(scale) =>
        {
            TypeKind::Decimal(*precision, *scale as u8)
        }
        ArrowType::Date32 | ArrowType::Date64 => TypeKind::Date,
        ArrowType::Time32(TimeUnit::Second) => TypeKind::Time(0),
        ArrowType::Time32(TimeUnit::Millisecond) => TypeKind::Time(3),
        ArrowType::Timestamp(unit, None) => TypeKind::Timestamp(digits(*unit)),
        ArrowType::Timestamp(unit, Some(_)) => TypeKind::TimestampLtz(digits(*unit)),
        ArrowType::Interval(IntervalUnit::YearMonth) => TypeKind::IntervalYearMonth,
        ArrowType::Duration(TimeUnit::Second | TimeUnit::Millisecond) => TypeKind::IntervalDayTime,
        ArrowType::List(element) | ArrowType::LargeList(element) | ArrowType::FixedSizeList(element, _) => {
            TypeKind::Array(boxed(element)?)
        }
        ArrowType::Map(entries, _) => match entries.data_type() {
            ArrowType::Struct(fields) if fields.len() == 2 => TypeKind::Map(boxed(&fields[0])?, boxed(&fields[1])?),
            _ => return Err(unsupported(arrow)),
        },
        ArrowType::Struct(fields) if !fields.is_empty() => {
            let field = |field: &Arc<ArrowField>| Ok(RowField { name: field.name().clone(), data_type: sql_type(field)? });
            TypeKind::Row(fields.iter().map(field).collect::<Result<_>>()?)
        }
        ArrowType::Dictionary(_, values) => kind_of(values)?,
        ArrowType::RunEndEncoded(_, values) => kind_of(values.data_type())?,
        other => return Err(unsupported(other)),
    })
}

fn digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

fn unsupported(arrow: &ArrowType) -> Error {
    let hint = match arrow {
        ArrowType::Time64(_) => "cast it to Time32(Millisecond): TIME has milliseconds, as in Flink",
        ArrowType::Duration(_) => "cast it to Duration(Millisecond): INTERVAL has milliseconds, as in Flink",
        ArrowType::Interval(_) => "use Interval(YearMonth) or Duration(Millisecond)",
        ArrowType::Null => "give the column a type; all its values can be NULL",
        ArrowType::Decimal32(..) | ArrowType::Decimal64(..) | ArrowType::Decimal128(..) | ArrowType::Decimal256(..) => {
            "DECIMAL has 38 digits at most, and a scale from 0 to its precision"
        }
        _ => "cast the column before it is registered, or leave it out",
    };
    Error::unsupported(format!("Arrow type {arrow}")).with_hint(hint)
}

/// An array of the Arrow form of `to`, out of an array whose type [`sql_type`] gave `to`.
pub fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let target = to.to_arrow();
    if *array.data_type() == target {
        return Ok(Arc::clone(array));
    }
    match (array.data_type(), &to.kind) {
        (ArrowType::Dictionary(_, values), _) => convert(&cast(array, values)?, to),
        (ArrowType::RunEndEncoded(_, values), _) => convert(&cast(array, values.data_type())?, to),
        (ArrowType::LargeList(element) | ArrowType::FixedSizeList(element, _), _) => {
            convert(&cast(array, &ArrowType::List(Arc::clone(element)))?, to)
        }
        (ArrowType::List(_), TypeKind::Array(element)) => convert_list(array.as_list(), element),
        (ArrowType::Map(..), TypeKind::Map(key, value)) => convert_map(array.as_map(), key, value),
        (ArrowType::Struct(_), TypeKind::Row(fields) | TypeKind::Structured(_, fields)) => {
            convert_struct(array.as_struct(), fields, &target)
        }
        _ => cast(array, &target),
    }
}

/// A cast that fails on values that do not fit, where Arrow's default gives NULL.
fn cast(array: &ArrayRef, to: &ArrowType) -> Result<ArrayRef> {
    Ok(cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() })?)
}

fn convert_list(list: &ListArray, element: &DataType) -> Result<ArrayRef> {
    let values = convert(list.values(), element)?;
    let field = Arc::new(element.to_arrow_field("item"));
    Ok(Arc::new(ListArray::try_new(field, list.offsets().clone(), values, list.nulls().cloned())?))
}

fn convert_map(map: &MapArray, key: &DataType, value: &DataType) -> Result<ArrayRef> {
    let (keys, values) = (convert(map.keys(), key)?, convert(map.values(), value)?);
    Ok(build_maps(map.offsets().clone(), keys, values, map.nulls().cloned())?)
}

fn convert_struct(row: &StructArray, fields: &[RowField], target: &ArrowType) -> Result<ArrayRef> {
    let ArrowType::Struct(arrow) = target else { return Err(Error::internal("a ROW is a struct in Arrow")) };
    let columns = row.columns().iter().zip(fields).map(|(column, field)| convert(column, &field.data_type));
    let nulls = row.nulls().cloned();
    Ok(Arc::new(StructArray::try_new(arrow.clone(), columns.collect::<Result<Vec<_>>>()?, nulls)?))
}
