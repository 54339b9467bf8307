//! Random rows of all types, with the values at which kernels break.

use arrow::array::ArrayRef;
use fastrand::Rng;

use crate::expr::values_to_array;
use crate::types::{DataType, RowField, TypeKind, VARCHAR_MAX, Value};

/// A row: a value for each column of [`schema`].
#[derive(Debug, Clone)]
pub(super) struct Row(pub(super) Vec<Value>);

/// The types of the columns.
pub(super) fn schema() -> Vec<DataType> {
    let int = || Box::new(DataType::nullable(TypeKind::Int));
    let text = || Box::new(DataType::nullable(TypeKind::Varchar(VARCHAR_MAX)));
    let key = || Box::new(DataType::not_null(TypeKind::Varchar(VARCHAR_MAX)));
    let field = |name: &str, data_type: &DataType| RowField { name: name.into(), data_type: data_type.clone() };
    vec![
        DataType::nullable(TypeKind::Boolean),
        DataType::nullable(TypeKind::TinyInt),
        DataType::nullable(TypeKind::SmallInt),
        DataType::nullable(TypeKind::Int),
        DataType::not_null(TypeKind::Int),
        DataType::nullable(TypeKind::BigInt),
        DataType::nullable(TypeKind::Float),
        DataType::nullable(TypeKind::Double),
        DataType::nullable(TypeKind::Decimal(10, 2)),
        DataType::nullable(TypeKind::Decimal(38, 18)),
        DataType::nullable(TypeKind::Varchar(VARCHAR_MAX)),
        DataType::not_null(TypeKind::Varchar(VARCHAR_MAX)),
        DataType::nullable(TypeKind::Char(3)),
        DataType::nullable(TypeKind::Varbinary(VARCHAR_MAX)),
        DataType::nullable(TypeKind::Date),
        DataType::nullable(TypeKind::Time(0)),
        DataType::nullable(TypeKind::Timestamp(3)),
        DataType::nullable(TypeKind::Timestamp(6)),
        DataType::nullable(TypeKind::TimestampLtz(3)),
        DataType::nullable(TypeKind::Array(int())),
        DataType::nullable(TypeKind::Array(text())),
        DataType::nullable(TypeKind::Map(key(), int())),
        DataType::nullable(TypeKind::Row(vec![field("a", &int()), field("b", &text())])),
    ]
}

/// Up to a few dozen rows.
pub(super) fn random_rows(random: &mut Rng) -> Vec<Row> {
    let schema = schema();
    let num_rows = random.usize(1..40);
    let nulls = if random.bool() { 0.0 } else { random.f64() };
    (0..num_rows)
        .map(|_| {
            Row(schema
                .iter()
                .map(
                    |data_type| {
                        if data_type.nullable && random.f64() < nulls { Value::Null } else { random_value(data_type, random) }
                    },
                )
                .collect())
        })
        .collect()
}

/// The rows as columns.
pub(super) fn columns_of(rows: &[Row]) -> Vec<ArrayRef> {
    let column = |(index, data_type): (usize, &DataType)| {
        let values: Vec<Value> = rows.iter().map(|row| row.0[index].clone()).collect();
        values_to_array(&values, data_type)
    };
    schema().iter().enumerate().map(column).collect()
}

/// One of these.
fn any<T: Clone>(choices: &[T], random: &mut Rng) -> T {
    choices[random.usize(..choices.len())].clone()
}

/// A value of the type, never NULL at the top.
pub(super) fn random_value(data_type: &DataType, random: &mut Rng) -> Value {
    let inner = |data_type: &DataType, random: &mut Rng| {
        if data_type.nullable && random.u8(..5) == 0 { Value::Null } else { random_value(data_type, random) }
    };
    match &data_type.kind {
        TypeKind::Null => Value::Null,
        TypeKind::Boolean => Value::Boolean(random.bool()),
        TypeKind::TinyInt => Value::TinyInt(whole(random) as i8),
        TypeKind::SmallInt => Value::SmallInt(whole(random) as i16),
        TypeKind::Int => Value::Int(whole(random) as i32),
        TypeKind::BigInt => Value::BigInt(whole(random)),
        TypeKind::Float => Value::Float(real(random) as f32),
        TypeKind::Double => Value::Double(real(random)),
        TypeKind::Decimal(precision, _) => {
            let limit = 10i128.pow(u32::from(*precision).min(38));
            Value::Decimal(any(&[0, 1, -1, 100, 12345, -99999, limit - 1, 1 - limit, i128::from(whole(random)) % limit], random))
        }
        TypeKind::Char(length) => {
            let text: String = any(&TEXTS, random).chars().chain(std::iter::repeat(' ')).take(*length as usize).collect();
            Value::String(text)
        }
        TypeKind::Varchar(_) | TypeKind::Variant => Value::String(any(&TEXTS, random).to_string()),
        TypeKind::Binary(_) | TypeKind::Varbinary(_) | TypeKind::Bitmap => Value::Bytes(any(&TEXTS, random).as_bytes().to_vec()),
        TypeKind::Date => Value::Date(any(&[0, 1, -1, 19_000, 11_016, -719_162, 2_932_896, random.i32(-30_000..40_000)], random)),
        TypeKind::Time(_) => Value::Time(any(&[0, 86_399_000, 43_200_000, random.i32(0..86_400) * 1000], random)),
        TypeKind::Timestamp(precision) | TypeKind::TimestampLtz(precision) => {
            let ms = any(
                &[
                    0,
                    1,
                    -1,
                    951_782_400_000,
                    1_699_164_000_000,
                    253_402_300_799_999,
                    random.i64(-3_000_000_000_000..4_000_000_000_000),
                ],
                random,
            );
            Value::Timestamp(ms * DataType::units_per_ms(*precision))
        }
        TypeKind::IntervalYearMonth => Value::IntervalYearMonth(random.i32(-30..30)),
        TypeKind::IntervalDayTime => {
            Value::IntervalDayTime(any(&[0, 1, -1, 86_400_000, random.i64(-1_000_000_000..1_000_000_000)], random))
        }
        TypeKind::Array(element) => Value::Array((0..random.usize(..4)).map(|_| inner(element, random)).collect()),
        TypeKind::Map(key, value) => {
            let mut entries: Vec<(Value, Value)> = Vec::new();
            for _ in 0..random.usize(..4) {
                let key = random_value(key, random);
                if entries.iter().all(|(other, _)| *other != key) {
                    entries.push((key, inner(value, random)));
                }
            }
            Value::Map(entries)
        }
        TypeKind::Multiset(_) => Value::Map(Vec::new()),
        TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
            Value::Row(fields.iter().map(|field| inner(&field.data_type, random)).collect())
        }
    }
}

/// Short text: digits, dates, JSON, patterns, several scripts, and nothing.
const TEXTS: [&str; 30] = [
    "",
    " ",
    "a",
    "A",
    "abc",
    "ABC",
    "  pad ",
    "0",
    "1",
    "-7",
    "12.50",
    "1e3",
    "true",
    "FALSE",
    "NaN",
    "2020-02-29",
    "1999-12-31 23:59:59.999",
    "12:34:56",
    "{\"a\":1,\"b\":[1,2,null]}",
    "[1,\"x\"]",
    "$.a",
    "a,b,,c",
    "k=v&x=1",
    "http://u:p@host:80/p/q?k=v#f",
    "ß",
    "İi",
    "日本語",
    "👩‍👩‍👧",
    "%_a\\",
    "(a|b)+",
];

fn whole(random: &mut Rng) -> i64 {
    let edges = [0, 1, 2, 3, -1, -2, 10, 100, 127, -128, 32_767, 2_147_483_647, -2_147_483_648, i64::MAX, i64::MIN];
    if random.bool() { any(&edges, random) } else { random.i64(-100..100) }
}

fn real(random: &mut Rng) -> f64 {
    let edges = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e10, 1e-10, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 123.456];
    if random.bool() { any(&edges, random) } else { (random.f64() - 0.5) * 1000.0 }
}
