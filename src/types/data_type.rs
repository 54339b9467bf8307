//! A logical type of Flink SQL: kind, nullability and time attribute, with its one Arrow form.
//!
//! The text form is Flink's summary form (`BIGINT NOT NULL`, `TIMESTAMP(3) *ROWTIME*`). The time attribute is part of the
//! type, so it is kept where a column is passed on and lost wherever a function makes a new value.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field as ArrowField, Fields, IntervalUnit, TimeUnit};
use serde::{Deserialize, Serialize};

use super::map_form::map_type;

/// The length of STRING and BYTES: VARCHAR and VARBINARY without a bound.
pub const VARCHAR_MAX: u32 = i32::MAX as u32;

/// Digits of the seconds of a TIME, at most.
pub const TIME_PRECISION_MAX: u8 = 3;

/// What marks a column as time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TimeAttribute {
    /// Event time: a watermark follows it.
    Rowtime,
    /// Processing time: the clock when the row is processed.
    Proctime,
}

/// A field of a ROW type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RowField {
    /// Name.
    pub name: String,
    /// Type.
    pub data_type: DataType,
}

/// The kind of a type, without nullability.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TypeKind {
    /// The type of a bare NULL.
    Null,
    /// CHAR(n).
    Char(u32),
    /// VARCHAR(n); STRING is VARCHAR([`VARCHAR_MAX`]).
    Varchar(u32),
    /// BINARY(n).
    Binary(u32),
    /// VARBINARY(n); BYTES is VARBINARY([`VARCHAR_MAX`]).
    Varbinary(u32),
    /// BOOLEAN.
    Boolean,
    /// TINYINT, 8 bits.
    TinyInt,
    /// SMALLINT, 16 bits.
    SmallInt,
    /// INT, 32 bits.
    Int,
    /// BIGINT, 64 bits.
    BigInt,
    /// FLOAT, 32 bits.
    Float,
    /// DOUBLE, 64 bits.
    Double,
    /// DECIMAL(precision, scale), precision at most 38.
    Decimal(u8, u8),
    /// DATE, in days since the epoch.
    Date,
    /// TIME(p), held in milliseconds of the day as in Flink.
    Time(u8),
    /// TIMESTAMP(p) without zone: milliseconds for p ≤ 3, microseconds for p ≤ 6, else nanoseconds.
    Timestamp(u8),
    /// TIMESTAMP_LTZ(p), an instant: units as for TIMESTAMP.
    TimestampLtz(u8),
    /// INTERVAL of years and months, in months.
    IntervalYearMonth,
    /// INTERVAL of days to seconds, in milliseconds.
    IntervalDayTime,
    /// ARRAY of an element type.
    Array(Box<DataType>),
    /// MAP of key and value type.
    Map(Box<DataType>, Box<DataType>),
    /// MULTISET of an element type.
    Multiset(Box<DataType>),
    /// ROW of named fields.
    Row(Vec<RowField>),
    /// STRUCTURED<'class', …>: named fields of a class, known by its name alone. Only values of one class go together.
    Structured(String, Vec<RowField>),
    /// BITMAP, a set of 32-bit integers, as bytes of a Roaring bitmap.
    Bitmap,
    /// VARIANT, a JSON value, as its text in one form.
    Variant,
}

impl TypeKind {
    /// The fields of a ROW or of a structured type.
    pub fn fields(&self) -> Option<&[RowField]> {
        match self {
            TypeKind::Row(fields) | TypeKind::Structured(_, fields) => Some(fields),
            _ => None,
        }
    }
}

/// A logical type: kind, nullability and time attribute.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DataType {
    /// The kind.
    pub kind: TypeKind,
    /// Whether NULL is a value of it.
    pub nullable: bool,
    /// Whether the column is event or processing time.
    pub time: Option<TimeAttribute>,
}

impl DataType {
    /// A nullable type of this kind.
    pub const fn nullable(kind: TypeKind) -> Self {
        DataType { kind, nullable: true, time: None }
    }

    /// A NOT NULL type of this kind.
    pub const fn not_null(kind: TypeKind) -> Self {
        DataType { kind, nullable: false, time: None }
    }

    /// A type of this kind.
    pub const fn new(kind: TypeKind, nullable: bool) -> Self {
        DataType { kind, nullable, time: None }
    }

    /// STRING, nullable.
    pub const fn string() -> Self {
        DataType::nullable(TypeKind::Varchar(VARCHAR_MAX))
    }

    /// The same type with this nullability.
    pub fn with_nullable(mut self, nullable: bool) -> Self {
        self.nullable = nullable;
        self
    }

    /// The same type with this time attribute.
    pub fn with_time(mut self, time: Option<TimeAttribute>) -> Self {
        self.time = time;
        self
    }

    /// The same type as a plain value: without time attribute.
    pub fn regular(mut self) -> Self {
        self.time = None;
        self
    }

    /// Whether it is event time.
    pub fn is_rowtime(&self) -> bool {
        self.time == Some(TimeAttribute::Rowtime)
    }

    /// Whether it is processing time.
    pub fn is_proctime(&self) -> bool {
        self.time == Some(TimeAttribute::Proctime)
    }

    /// Whether its values hold others: arrays, maps, multisets, rows and structured types.
    pub fn is_nested(&self) -> bool {
        matches!(
            self.kind,
            TypeKind::Array(_) | TypeKind::Map(..) | TypeKind::Multiset(_) | TypeKind::Row(_) | TypeKind::Structured(..)
        )
    }

    /// CHAR or VARCHAR.
    pub fn is_character(&self) -> bool {
        matches!(self.kind, TypeKind::Char(_) | TypeKind::Varchar(_))
    }

    /// BINARY or VARBINARY.
    pub fn is_binary(&self) -> bool {
        matches!(self.kind, TypeKind::Binary(_) | TypeKind::Varbinary(_))
    }

    /// TINYINT, SMALLINT, INT or BIGINT.
    pub fn is_integer(&self) -> bool {
        matches!(self.kind, TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::Int | TypeKind::BigInt)
    }

    /// FLOAT or DOUBLE.
    pub fn is_approximate(&self) -> bool {
        matches!(self.kind, TypeKind::Float | TypeKind::Double)
    }

    /// Any number.
    pub fn is_numeric(&self) -> bool {
        self.is_integer() || self.is_approximate() || matches!(self.kind, TypeKind::Decimal(..))
    }

    /// Whether its values have an order.
    pub fn is_sortable(&self) -> bool {
        use TypeKind::*;
        !matches!(self.kind, Array(_) | Map(..) | Multiset(_) | Row(_) | Structured(..) | Bitmap | Variant | Null)
    }

    /// TIMESTAMP or TIMESTAMP_LTZ.
    pub fn is_timestamp(&self) -> bool {
        matches!(self.kind, TypeKind::Timestamp(_) | TypeKind::TimestampLtz(_))
    }

    /// DATE, TIME, TIMESTAMP or TIMESTAMP_LTZ.
    pub fn is_datetime(&self) -> bool {
        self.is_timestamp() || matches!(self.kind, TypeKind::Date | TypeKind::Time(_))
    }

    /// Either interval.
    pub fn is_interval(&self) -> bool {
        matches!(self.kind, TypeKind::IntervalYearMonth | TypeKind::IntervalDayTime)
    }

    /// The unit in which a timestamp of `precision` digits is held.
    pub fn time_unit(precision: u8) -> TimeUnit {
        match precision {
            0..=3 => TimeUnit::Millisecond,
            4..=6 => TimeUnit::Microsecond,
            _ => TimeUnit::Nanosecond,
        }
    }

    /// How many units of a timestamp of `precision` digits make a millisecond: 1, 1 000 or 1 000 000.
    pub fn units_per_ms(precision: u8) -> i64 {
        match precision {
            0..=3 => 1,
            4..=6 => 1_000,
            _ => 1_000_000,
        }
    }

    /// The Arrow form. Strings and bytes are views, TIMESTAMP_LTZ carries the zone `UTC`, a MAP is a list of entries (see
    /// [`super::is_map`]), a MULTISET is a map to its counts.
    pub fn to_arrow(&self) -> ArrowType {
        match &self.kind {
            TypeKind::Null => ArrowType::Null,
            TypeKind::Char(_) | TypeKind::Varchar(_) | TypeKind::Variant => ArrowType::Utf8View,
            TypeKind::Binary(_) | TypeKind::Varbinary(_) | TypeKind::Bitmap => ArrowType::BinaryView,
            TypeKind::Boolean => ArrowType::Boolean,
            TypeKind::TinyInt => ArrowType::Int8,
            TypeKind::SmallInt => ArrowType::Int16,
            TypeKind::Int => ArrowType::Int32,
            TypeKind::BigInt => ArrowType::Int64,
            TypeKind::Float => ArrowType::Float32,
            TypeKind::Double => ArrowType::Float64,
            TypeKind::Decimal(precision, scale) => ArrowType::Decimal128(*precision, *scale as i8),
            TypeKind::Date => ArrowType::Date32,
            TypeKind::Time(_) => ArrowType::Time32(TimeUnit::Millisecond),
            TypeKind::Timestamp(precision) => ArrowType::Timestamp(Self::time_unit(*precision), None),
            TypeKind::TimestampLtz(precision) => ArrowType::Timestamp(Self::time_unit(*precision), Some("UTC".into())),
            TypeKind::IntervalYearMonth => ArrowType::Interval(IntervalUnit::YearMonth),
            TypeKind::IntervalDayTime => ArrowType::Duration(TimeUnit::Millisecond),
            TypeKind::Array(element) => ArrowType::List(Arc::new(element.to_arrow_field("item"))),
            TypeKind::Map(key, value) => map_type(key.to_arrow(), value.to_arrow()),
            TypeKind::Multiset(element) => map_type(element.to_arrow(), ArrowType::Int32),
            TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
                ArrowType::Struct(fields.iter().map(|f| Arc::new(f.data_type.to_arrow_field(&f.name))).collect::<Fields>())
            }
        }
    }

    /// The Arrow field of this type under `name`. Nested fields are always nullable in Arrow: kernels then agree on them.
    pub fn to_arrow_field(&self, name: &str) -> ArrowField {
        ArrowField::new(name, self.to_arrow(), true)
    }

    /// The kind as SQL text, without nullability.
    pub fn kind_text(&self) -> String {
        match &self.kind {
            TypeKind::Null => "NULL".to_string(),
            TypeKind::Char(n) => format!("CHAR({n})"),
            TypeKind::Varchar(VARCHAR_MAX) => "STRING".to_string(),
            TypeKind::Varchar(n) => format!("VARCHAR({n})"),
            TypeKind::Binary(n) => format!("BINARY({n})"),
            TypeKind::Varbinary(VARCHAR_MAX) => "BYTES".to_string(),
            TypeKind::Varbinary(n) => format!("VARBINARY({n})"),
            TypeKind::Boolean => "BOOLEAN".to_string(),
            TypeKind::TinyInt => "TINYINT".to_string(),
            TypeKind::SmallInt => "SMALLINT".to_string(),
            TypeKind::Int => "INT".to_string(),
            TypeKind::BigInt => "BIGINT".to_string(),
            TypeKind::Float => "FLOAT".to_string(),
            TypeKind::Double => "DOUBLE".to_string(),
            TypeKind::Decimal(p, s) => format!("DECIMAL({p}, {s})"),
            TypeKind::Date => "DATE".to_string(),
            TypeKind::Time(p) => format!("TIME({p})"),
            TypeKind::Timestamp(p) => format!("TIMESTAMP({p})"),
            TypeKind::TimestampLtz(p) => format!("TIMESTAMP_LTZ({p})"),
            TypeKind::IntervalYearMonth => "INTERVAL MONTH".to_string(),
            TypeKind::IntervalDayTime => "INTERVAL SECOND(3)".to_string(),
            TypeKind::Array(element) => format!("ARRAY<{element}>"),
            TypeKind::Map(key, value) => format!("MAP<{key}, {value}>"),
            TypeKind::Multiset(element) => format!("MULTISET<{element}>"),
            TypeKind::Row(fields) => format!("ROW<{}>", fields_text(fields)),
            TypeKind::Structured(class, fields) => format!("STRUCTURED<'{class}', {}>", fields_text(fields)),
            TypeKind::Bitmap => "BITMAP".to_string(),
            TypeKind::Variant => "VARIANT".to_string(),
        }
    }
}

/// Whether a text can name the class of a structured type: identifiers of Java with dots between.
pub fn is_class_name(text: &str) -> bool {
    let may_start = |c: char| c.is_alphabetic() || c == '_' || c == '$';
    text.split('.').all(|part| part.starts_with(may_start) && part.chars().all(|c| may_start(c) || c.is_numeric()))
}

fn fields_text(fields: &[RowField]) -> String {
    let fields: Vec<String> = fields.iter().map(|f| format!("`{}` {}", f.name.replace('`', "``"), f.data_type)).collect();
    fields.join(", ")
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind_text())?;
        if !self.nullable {
            f.write_str(" NOT NULL")?;
        }
        match self.time {
            Some(TimeAttribute::Rowtime) => f.write_str(" *ROWTIME*"),
            Some(TimeAttribute::Proctime) => f.write_str(" *PROCTIME*"),
            None => Ok(()),
        }
    }
}
