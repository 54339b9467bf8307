//! Writes values of a column as text: the type is resolved once, then rows are appended without allocating.

use arrow::array::{Array, AsArray, ListArray};
use arrow::datatypes::{
    Date32Type, Decimal128Type, DurationMillisecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalYearMonthType, Time32MillisecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};

use super::{number, time};
use crate::expr::{bitmap, zone};
use crate::types::{DataType, Maps, TimeZone, TypeKind};

/// For whom the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStyle {
    /// The conformance suite: fields of a line, quoted where needed, instants in UTC.
    Conformance,
    /// CAST AS STRING. A NULL at the top writes `NULL`, as inside of nested values.
    Cast,
    /// The print connector: Java's own forms.
    Print,
    /// Tables of a terminal: as CAST, NULL as `<NULL>`.
    Display,
}

/// Writes values of one type in one style.
#[derive(Debug, Clone)]
pub struct ValueWriter {
    form: Form,
    style: TextStyle,
    zone: TimeZone,
}

#[derive(Debug, Clone)]
enum Form {
    Null,
    Text,
    Bytes,
    Boolean,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Float,
    Double,
    Decimal(u8),
    Date,
    Time(u8),
    Timestamp(u8),
    TimestampLtz(u8),
    YearMonth,
    DayTime,
    Array(Box<ValueWriter>),
    Map(Box<ValueWriter>, Box<ValueWriter>),
    Row(Vec<ValueWriter>),
    /// Fields with their names.
    Structured(Vec<(String, ValueWriter)>),
    Bitmap,
}

/// Writes the value at a row. For more than a few values of a column make one [`ValueWriter`].
pub fn write_value(out: &mut String, array: &dyn Array, row: usize, data_type: &DataType, style: TextStyle, zone: TimeZone) {
    ValueWriter::new(data_type, style, zone).write(out, array, row);
}

impl ValueWriter {
    /// For values of this type. `zone` is the session's, for instants.
    pub fn new(data_type: &DataType, style: TextStyle, zone: TimeZone) -> Self {
        let part = |data_type: &DataType| Box::new(ValueWriter::new(data_type, style.inside(), zone));
        let form = match &data_type.kind {
            TypeKind::Null => Form::Null,
            TypeKind::Char(_) | TypeKind::Varchar(_) | TypeKind::Variant => Form::Text,
            TypeKind::Bitmap => Form::Bitmap,
            TypeKind::Binary(_) | TypeKind::Varbinary(_) => Form::Bytes,
            TypeKind::Boolean => Form::Boolean,
            TypeKind::TinyInt => Form::TinyInt,
            TypeKind::SmallInt => Form::SmallInt,
            TypeKind::Int => Form::Int,
            TypeKind::BigInt => Form::BigInt,
            TypeKind::Float => Form::Float,
            TypeKind::Double => Form::Double,
            TypeKind::Decimal(_, scale) => Form::Decimal(*scale),
            TypeKind::Date => Form::Date,
            TypeKind::Time(precision) => Form::Time(*precision),
            TypeKind::Timestamp(precision) => Form::Timestamp(*precision),
            TypeKind::TimestampLtz(precision) => Form::TimestampLtz(*precision),
            TypeKind::IntervalYearMonth => Form::YearMonth,
            TypeKind::IntervalDayTime => Form::DayTime,
            TypeKind::Array(element) => Form::Array(part(element)),
            TypeKind::Map(key, value) => Form::Map(part(key), part(value)),
            TypeKind::Multiset(element) => Form::Map(part(element), part(&DataType::not_null(TypeKind::Int))),
            TypeKind::Structured(_, fields) if matches!(style, TextStyle::Cast | TextStyle::Display) => {
                Form::Structured(fields.iter().map(|field| (field.name.clone(), *part(&field.data_type))).collect())
            }
            TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
                Form::Row(fields.iter().map(|field| *part(&field.data_type)).collect())
            }
        };
        ValueWriter { form, style, zone }
    }

    /// Appends the value at a row.
    pub fn write(&self, out: &mut String, array: &dyn Array, row: usize) {
        if array.is_null(row) || matches!(self.form, Form::Null) {
            out.push_str(match self.style {
                TextStyle::Print => "null",
                TextStyle::Display => "<NULL>",
                TextStyle::Conformance | TextStyle::Cast => "NULL",
            });
            return;
        }
        let start = out.len();
        match &self.form {
            Form::Null => {}
            Form::Text => out.push_str(array.as_string_view().value(row)),
            Form::Bytes => self.write_bytes(out, array.as_binary_view().value(row)),
            Form::Boolean => out.push_str(self.boolean(array.as_boolean().value(row))),
            Form::TinyInt => number::write_integer(out, array.as_primitive::<Int8Type>().value(row).into()),
            Form::SmallInt => number::write_integer(out, array.as_primitive::<Int16Type>().value(row).into()),
            Form::Int => number::write_integer(out, array.as_primitive::<Int32Type>().value(row).into()),
            Form::BigInt => number::write_integer(out, array.as_primitive::<Int64Type>().value(row)),
            Form::Float => number::write_float(out, array.as_primitive::<Float32Type>().value(row)),
            Form::Double => number::write_double(out, array.as_primitive::<Float64Type>().value(row)),
            Form::Decimal(scale) => number::write_decimal(out, array.as_primitive::<Decimal128Type>().value(row), *scale),
            Form::Date => time::write_date(out, array.as_primitive::<Date32Type>().value(row).into()),
            Form::Time(precision) => {
                self.write_time(out, array.as_primitive::<Time32MillisecondType>().value(row).into(), *precision);
            }
            Form::Timestamp(precision) => self.write_timestamp(out, units_at(array, row, *precision), *precision),
            Form::TimestampLtz(precision) => self.write_instant(out, units_at(array, row, *precision), *precision),
            Form::YearMonth => self.write_year_month(out, array.as_primitive::<IntervalYearMonthType>().value(row)),
            Form::DayTime => self.write_day_time(out, array.as_primitive::<DurationMillisecondType>().value(row)),
            Form::Array(element) => write_list(out, array.as_list(), row, element),
            Form::Map(key, value) => self.write_map(out, array, row, key, value),
            Form::Row(fields) => self.write_row(out, array, row, fields),
            Form::Structured(fields) => write_structured(out, array, row, fields),
            Form::Bitmap => bitmap::write(out, array.as_binary_view().value(row)),
        }
        if self.style == TextStyle::Conformance && self.may_need_quotes() {
            quote(out, start);
        }
    }

    fn boolean(&self, value: bool) -> &'static str {
        match (self.style, value) {
            (TextStyle::Cast | TextStyle::Display, true) => "TRUE",
            (TextStyle::Cast | TextStyle::Display, false) => "FALSE",
            (_, true) => "true",
            (_, false) => "false",
        }
    }

    fn write_bytes(&self, out: &mut String, bytes: &[u8]) {
        match self.style {
            TextStyle::Conformance | TextStyle::Display => {
                out.push_str("x'");
                bytes.iter().for_each(|byte| push_hex(out, *byte));
                out.push('\'');
            }
            TextStyle::Cast => out.push_str(&String::from_utf8_lossy(bytes)),
            TextStyle::Print => {
                out.push('[');
                for (index, byte) in bytes.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    number::write_integer(out, (*byte as i8).into());
                }
                out.push(']');
            }
        }
    }

    fn write_time(&self, out: &mut String, ms_of_day: i64, precision: u8) {
        match self.style {
            TextStyle::Conformance | TextStyle::Print => time::write_local_time(out, ms_of_day, 0),
            TextStyle::Cast | TextStyle::Display => time::write_time(out, ms_of_day, precision),
        }
    }

    fn write_timestamp(&self, out: &mut String, units: i64, precision: u8) {
        let units_per_ms = DataType::units_per_ms(precision);
        match self.style {
            TextStyle::Print => time::write_local_date_time(out, units, units_per_ms),
            _ => time::write_timestamp(out, units, units_per_ms, precision),
        }
    }

    fn write_instant(&self, out: &mut String, units: i64, precision: u8) {
        let units_per_ms = DataType::units_per_ms(precision);
        match self.style {
            TextStyle::Print => time::write_instant(out, units, units_per_ms),
            TextStyle::Conformance => {
                time::write_timestamp(out, units, units_per_ms, precision);
                out.push('Z');
            }
            TextStyle::Cast | TextStyle::Display => {
                time::write_timestamp(out, zone::to_local_units(units, units_per_ms, self.zone), units_per_ms, precision);
            }
        }
    }

    fn write_year_month(&self, out: &mut String, months: i32) {
        match self.style {
            TextStyle::Conformance | TextStyle::Print => time::write_period(out, months),
            TextStyle::Cast | TextStyle::Display => time::write_year_month(out, months),
        }
    }

    fn write_day_time(&self, out: &mut String, ms: i64) {
        match self.style {
            TextStyle::Conformance | TextStyle::Print => time::write_duration(out, ms),
            TextStyle::Cast | TextStyle::Display => time::write_day_time(out, ms),
        }
    }

    fn write_map(&self, out: &mut String, array: &dyn Array, row: usize, key: &ValueWriter, value: &ValueWriter) {
        let maps = Maps::of(array);
        let entries = maps.range(row);
        let (keys, values) = (maps.keys().as_ref(), maps.values().as_ref());
        let write_entry = |out: &mut String, entry: usize| {
            key.write(out, keys, entry);
            out.push('=');
            value.write(out, values, entry);
        };
        out.push('{');
        if self.style == TextStyle::Conformance {
            let mut texts: Vec<(String, usize)> = entries
                .map(|entry| {
                    let mut text = String::new();
                    key.write(&mut text, keys, entry);
                    (text, entry)
                })
                .collect();
            texts.sort();
            for (index, (_, entry)) in texts.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_entry(out, *entry);
            }
        } else {
            let first = entries.start;
            for entry in entries {
                out.push_str(if entry > first { ", " } else { "" });
                write_entry(out, entry);
            }
        }
        out.push('}');
    }

    fn write_row(&self, out: &mut String, array: &dyn Array, row: usize, fields: &[ValueWriter]) {
        let print = self.style == TextStyle::Print;
        out.push_str(if print { "+I[" } else { "(" });
        for (index, (field, column)) in fields.iter().zip(array.as_struct().columns()).enumerate() {
            out.push_str(if index > 0 { ", " } else { "" });
            field.write(out, column.as_ref(), row);
        }
        out.push(if print { ']' } else { ')' });
    }

    fn may_need_quotes(&self) -> bool {
        matches!(self.form, Form::Text | Form::Array(_) | Form::Map(..) | Form::Row(_) | Form::Bitmap)
    }
}

impl TextStyle {
    /// The style of the parts of a nested value.
    fn inside(self) -> Self {
        if self == TextStyle::Display { TextStyle::Cast } else { self }
    }
}

fn write_list(out: &mut String, list: &ListArray, row: usize, element: &ValueWriter) {
    let offsets = list.value_offsets();
    let values = list.values().as_ref();
    out.push('[');
    for at in offsets[row] as usize..offsets[row + 1] as usize {
        out.push_str(if at > offsets[row] as usize { ", " } else { "" });
        element.write(out, values, at);
    }
    out.push(']');
}

fn write_structured(out: &mut String, array: &dyn Array, row: usize, fields: &[(String, ValueWriter)]) {
    out.push('(');
    for (index, ((name, field), column)) in fields.iter().zip(array.as_struct().columns()).enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        out.push_str(name);
        out.push('=');
        field.write(out, column.as_ref(), row);
    }
    out.push(')');
}

fn units_at(array: &dyn Array, row: usize, precision: u8) -> i64 {
    match precision {
        0..=3 => array.as_primitive::<TimestampMillisecondType>().value(row),
        4..=6 => array.as_primitive::<TimestampMicrosecondType>().value(row),
        _ => array.as_primitive::<TimestampNanosecondType>().value(row),
    }
}

/// Puts what was written from `start` on in quotes where the conformance suite wants it.
fn quote(out: &mut String, start: usize) {
    let text = &out[start..];
    if !text.is_empty() && text != "NULL" && !text.contains([',', '"', '\n']) {
        return;
    }
    let quoted = text.replace('"', "\"\"");
    out.truncate(start);
    out.push('"');
    out.push_str(&quoted);
    out.push('"');
}

fn push_hex(out: &mut String, byte: u8) {
    for digit in [byte >> 4, byte & 15] {
        out.push(char::from_digit(digit.into(), 16).expect("four bits are a digit"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::values_to_array;
    use crate::types::{RowField, Value};

    fn text(value: Value, data_type: &DataType, style: TextStyle) -> String {
        let array = values_to_array(&[value], data_type);
        let mut out = String::new();
        write_value(&mut out, &array, 0, data_type, style, TimeZone::parse("Asia/Shanghai").unwrap());
        out
    }

    #[test]
    fn nested_values_are_quoted_inside_out() {
        let list = DataType::nullable(TypeKind::Array(Box::new(DataType::string())));
        let value = Value::Array(vec![Value::String("a".into()), Value::String("b,c".into()), Value::Null]);
        assert_eq!(text(value.clone(), &list, TextStyle::Conformance), r#""[a, ""b,c"", NULL]""#);
        assert_eq!(text(value, &list, TextStyle::Cast), "[a, b,c, NULL]");
        assert_eq!(text(Value::String(String::new()), &DataType::string(), TextStyle::Conformance), "\"\"");
        assert_eq!(text(Value::Null, &DataType::string(), TextStyle::Conformance), "NULL");
    }

    #[test]
    fn instants_are_shown_in_the_zone_that_the_style_wants() {
        let instant = DataType::nullable(TypeKind::TimestampLtz(3));
        assert_eq!(text(Value::Timestamp(0), &instant, TextStyle::Conformance), "1970-01-01 00:00:00.000Z");
        assert_eq!(text(Value::Timestamp(0), &instant, TextStyle::Cast), "1970-01-01 08:00:00.000");
        assert_eq!(text(Value::Timestamp(0), &instant, TextStyle::Print), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn rows_and_booleans_print_by_style() {
        let field = RowField { name: "a".into(), data_type: DataType::nullable(TypeKind::Boolean) };
        let row = DataType::nullable(TypeKind::Row(vec![field]));
        let value = Value::Row(vec![Value::Boolean(true)]);
        assert_eq!(text(value.clone(), &row, TextStyle::Cast), "(TRUE)");
        assert_eq!(text(value.clone(), &row, TextStyle::Print), "+I[true]");
        assert_eq!(text(value, &row, TextStyle::Conformance), "(true)");
    }
}
