//! Expressions as text, with the column names of the schema that they read: the form of Flink's execution plans, `(price > 2)`.
//!
//! For people and for golden tests only: nothing parses it.

use chrono::{DateTime, NaiveDate, TimeDelta};

use crate::expr::{CastMode, Expr, SortKey};
pub use crate::stream_graph::duration_text;
use crate::types::{DataType, Schema, TypeKind, Value};

/// Functions that stand between their two arguments.
const INFIX: &[&str] = &[
    "+",
    "-",
    "*",
    "/",
    "%",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "||",
    "LIKE",
    "NOT LIKE",
    "IS DISTINCT FROM",
    "IS NOT DISTINCT FROM",
];

/// An expression over the columns of `schema`.
pub fn expr_text(expr: &Expr, schema: &Schema) -> String {
    match expr {
        Expr::Column { index, .. } => column_name(*index, schema),
        Expr::Literal { value, data_type } => value_text(value, data_type),
        Expr::Call { function, args, .. } => call_text(function, args, schema),
        Expr::Cast { input, mode: CastMode::Try, data_type } => format!("TRY_CAST({} AS {data_type})", expr_text(input, schema)),
        Expr::Cast { input, data_type, .. } => format!("CAST({} AS {data_type})", expr_text(input, schema)),
        Expr::And(terms) => format!("({})", joined(terms, " AND ", schema)),
        Expr::Or(terms) => format!("({})", joined(terms, " OR ", schema)),
        Expr::Not(inner) => format!("NOT {}", expr_text(inner, schema)),
        Expr::Case { branches, otherwise, .. } => {
            let mut parts: Vec<String> =
                branches.iter().flat_map(|(when, then)| [expr_text(when, schema), expr_text(then, schema)]).collect();
            parts.push(expr_text(otherwise, schema));
            format!("CASE({})", parts.join(", "))
        }
        Expr::InList { needle, list, negated } => {
            let data_type = needle.data_type();
            let values: Vec<String> = list.iter().map(|value| value_text(value, &data_type)).collect();
            let word = if *negated { "NOT IN" } else { "IN" };
            format!("({} {word} ({}))", expr_text(needle, schema), values.join(", "))
        }
    }
}

/// `expr AS name`, or the bare expression where the name says nothing new.
pub fn select_item(expr: &Expr, name: &str, schema: &Schema) -> String {
    let text = expr_text(expr, schema);
    if text == name { text } else { format!("{text} AS {name}") }
}

/// `price ASC, ts DESC`; NULLS is shown only where it is not Flink's default.
pub fn order_text(keys: &[SortKey], schema: &Schema) -> String {
    let key_text = |key: &SortKey| {
        let direction = if key.descending { "DESC" } else { "ASC" };
        let nulls = match (key.descending, key.nulls_first) {
            (false, false) => " NULLS LAST",
            (true, true) => " NULLS FIRST",
            _ => "",
        };
        format!("{} {direction}{nulls}", column_name(key.column, schema))
    };
    keys.iter().map(key_text).collect::<Vec<_>>().join(", ")
}

/// `a, b`: the names of columns.
pub fn column_list(columns: &[usize], schema: &Schema) -> String {
    columns.iter().map(|column| column_name(*column, schema)).collect::<Vec<_>>().join(", ")
}

/// The name of a column, or its position where a plan is broken: printing never fails.
pub fn column_name(index: usize, schema: &Schema) -> String {
    schema.fields.get(index).map_or_else(|| format!("${index}"), |field| field.name.clone())
}

fn call_text(function: &str, args: &[Expr], schema: &Schema) -> String {
    match args {
        [left, right] if INFIX.contains(&function) => {
            format!("({} {function} {})", expr_text(left, schema), expr_text(right, schema))
        }
        [operand] if function.starts_with("IS ") => format!("{} {function}", expr_text(operand, schema)),
        _ => format!("{function}({})", joined(args, ", ", schema)),
    }
}

fn joined(exprs: &[Expr], separator: &str, schema: &Schema) -> String {
    exprs.iter().map(|expr| expr_text(expr, schema)).collect::<Vec<_>>().join(separator)
}

/// A constant of a type.
pub fn value_text(value: &Value, data_type: &DataType) -> String {
    match value {
        Value::Null => "NULL".to_string(),
        Value::Boolean(b) => b.to_string(),
        Value::TinyInt(n) => n.to_string(),
        Value::SmallInt(n) => n.to_string(),
        Value::Int(n) => n.to_string(),
        Value::BigInt(n) => n.to_string(),
        Value::Float(n) => n.to_string(),
        Value::Double(n) => n.to_string(),
        Value::Decimal(unscaled) => decimal_text(*unscaled, data_type),
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Bytes(bytes) => format!("X'{}'", bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>()),
        Value::Date(days) => date_text(*days),
        Value::Time(ms) => time_text(*ms),
        Value::Timestamp(units) => timestamp_text(*units, data_type),
        Value::IntervalYearMonth(months) => format!("{months}:INTERVAL MONTH"),
        Value::IntervalDayTime(ms) => format!("{ms}:INTERVAL SECOND"),
        Value::Array(_) | Value::Map(_) | Value::Row(_) => nested_text(value, data_type),
    }
}

fn nested_text(value: &Value, data_type: &DataType) -> String {
    let texts: Vec<String> = match (value, &data_type.kind) {
        (Value::Array(items), TypeKind::Array(element)) => items.iter().map(|item| value_text(item, element)).collect(),
        (Value::Row(items), TypeKind::Row(fields) | TypeKind::Structured(_, fields)) => {
            items.iter().zip(fields).map(|(item, field)| value_text(item, &field.data_type)).collect()
        }
        (Value::Map(entries), TypeKind::Map(key, item)) => {
            entries.iter().map(|(k, v)| format!("{} -> {}", value_text(k, key), value_text(v, item))).collect()
        }
        _ => return format!("{value:?}"),
    };
    let (word, open, close) = match value {
        Value::Array(_) => ("ARRAY", '[', ']'),
        Value::Map(_) => ("MAP", '[', ']'),
        _ => ("ROW", '(', ')'),
    };
    format!("{word}{open}{}{close}", texts.join(", "))
}

fn decimal_text(unscaled: i128, data_type: &DataType) -> String {
    let scale = match data_type.kind {
        TypeKind::Decimal(_, scale) => usize::from(scale),
        _ => 0,
    };
    if scale == 0 {
        return unscaled.to_string();
    }
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{}{whole}.{fraction}", if unscaled < 0 { "-" } else { "" })
}

fn date_text(days: i32) -> String {
    let date = NaiveDate::default().checked_add_signed(TimeDelta::days(i64::from(days)));
    date.map_or_else(|| format!("{days}:DATE"), |date| date.format("%Y-%m-%d").to_string())
}

fn time_text(ms: i32) -> String {
    let seconds = ms / 1000;
    format!("{:02}:{:02}:{:02}.{:03}", seconds / 3600, seconds / 60 % 60, seconds % 60, ms % 1000)
}

fn timestamp_text(units: i64, data_type: &DataType) -> String {
    let precision = match data_type.kind {
        TypeKind::Timestamp(precision) | TypeKind::TimestampLtz(precision) => precision,
        _ => 3,
    };
    let per_second = DataType::units_per_ms(precision) * 1000;
    let nanos = units.rem_euclid(per_second) * (1_000_000_000 / per_second);
    match DateTime::from_timestamp(units.div_euclid(per_second), nanos as u32) {
        Some(time) => time.format("%Y-%m-%d %H:%M:%S%.f").to_string(),
        None => format!("{units}:{data_type}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_show_their_highest_whole_unit() {
        let shown: Vec<String> = [0, 1, 10_000, 90_000, 900_000, 7_200_000, 172_800_000].map(duration_text).into();
        assert_eq!(shown, ["0 ms", "1 ms", "10 s", "90 s", "15 min", "2 h", "2 d"]);
    }

    #[test]
    fn constants_show_by_their_type() {
        let decimal = DataType::not_null(TypeKind::Decimal(5, 2));
        assert_eq!(value_text(&Value::Decimal(-5), &decimal), "-0.05");
        let micros = DataType::not_null(TypeKind::Timestamp(6));
        assert_eq!(value_text(&Value::Timestamp(-1), &micros), "1969-12-31 23:59:59.999999");
        assert_eq!(value_text(&Value::String("it's".into()), &DataType::string()), "'it''s'");
        assert_eq!(value_text(&Value::Date(19_723), &DataType::not_null(TypeKind::Date)), "2024-01-01");
    }
}
