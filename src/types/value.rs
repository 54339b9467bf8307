//! One value, outside of any array: literals, options, tests. Its type stands beside it.

use serde::{Deserialize, Serialize};

/// One value. What a number means (unit, scale) follows from the [`DataType`](super::DataType) beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// NULL of any type.
    Null,
    /// BOOLEAN.
    Boolean(bool),
    /// TINYINT.
    TinyInt(i8),
    /// SMALLINT.
    SmallInt(i16),
    /// INT.
    Int(i32),
    /// BIGINT.
    BigInt(i64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL, unscaled: the scale is in the type.
    Decimal(i128),
    /// CHAR or VARCHAR.
    String(String),
    /// BINARY or VARBINARY.
    Bytes(Vec<u8>),
    /// DATE, days since the epoch.
    Date(i32),
    /// TIME, milliseconds of the day.
    Time(i32),
    /// TIMESTAMP or TIMESTAMP_LTZ, in the unit of its precision (`DataType::time_unit`) since the epoch.
    Timestamp(i64),
    /// INTERVAL of years and months, in months.
    IntervalYearMonth(i32),
    /// INTERVAL of days to seconds, in milliseconds.
    IntervalDayTime(i64),
    /// ARRAY.
    Array(Vec<Value>),
    /// MAP; MULTISET with INT counts.
    Map(Vec<(Value, Value)>),
    /// ROW.
    Row(Vec<Value>),
}

impl Value {
    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}
