//! Values of one field: how they are drawn, by type and options.

use fastrand::Rng;

use crate::connectors::formats::{Column, MS_PER_DAY, Values};
use crate::connectors::options::{OptionReader, does_not_fit};
use crate::error::{Error, ErrorKind, Result};
use crate::types::{DataType, TypeKind};

/// Length of random strings and bytes, unless their type has one.
const TEXT_LENGTH: u64 = 100;
/// Length of random collections.
const COLLECTION_LENGTH: u64 = 3;

/// Bytes of a value, at most: as many as a source of files takes in a record.
const VALUE_BYTES_MAX: u64 = 256 << 20;

/// Draws the values of one field.
#[derive(Debug)]
pub struct FieldGenerator {
    kind: Kind,
    /// The share of NULLs.
    null_rate: f32,
}

#[derive(Debug)]
enum Kind {
    Sequence {
        start: i64,
        end: i64,
    },
    Boolean,
    Integer {
        min: i64,
        max: i64,
    },
    Float {
        min: f64,
        max: f64,
    },
    Decimal {
        min: i128,
        max: i128,
    },
    Text {
        length: u64,
        any_length: bool,
    },
    /// Milliseconds before now, at most.
    Time {
        max_past_ms: u64,
    },
    Row(Vec<FieldGenerator>),
    Array {
        length: u64,
        element: Box<FieldGenerator>,
    },
    Map {
        length: u64,
        key: Box<FieldGenerator>,
        value: Box<FieldGenerator>,
    },
}

impl FieldGenerator {
    /// For a type, with the options below `prefix` (`fields.<name>`).
    pub fn new(data_type: &DataType, prefix: &str, options: &OptionReader<'_>) -> Result<Self> {
        let is_sequence = options.word(&format!("{prefix}.kind"), &["random", "sequence"], "random")? == "sequence";
        let kind = match is_sequence {
            true => sequence(data_type, prefix, options)?,
            false => random(data_type, prefix, options)?,
        };
        refuse_what_has_no_effect(data_type, is_sequence, prefix, options)?;
        let key = format!("{prefix}.null-rate");
        let null_rate = options.number::<f32>(&key)?.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&null_rate) {
            return Err(does_not_fit(&key, &null_rate.to_string(), "a number from 0 to 1"));
        }
        if null_rate > 0.0 && !data_type.nullable {
            return Err(Error::new(ErrorKind::InvalidOption, format!("option '{key}' makes NULLs of a type that is NOT NULL"))
                .with_hint(format!("leave NOT NULL out, or '{key}'")));
        }
        let generator = FieldGenerator { kind, null_rate };
        let bytes = generator.value_bytes();
        if bytes > VALUE_BYTES_MAX {
            let key = format!("{prefix}.length");
            let given = options.text(&key).map_or_else(|| data_type.kind_text().to_string(), str::to_string);
            return Err(does_not_fit(&key, &given, &format!("a length that makes values of at most {VALUE_BYTES_MAX} bytes")));
        }
        Ok(generator)
    }

    /// Bytes of a value, about.
    pub fn value_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Text { length, .. } => *length,
            Kind::Array { length, element } => length.saturating_mul(element.value_bytes()),
            Kind::Map { length, key, value } => length.saturating_mul(key.value_bytes().saturating_add(value.value_bytes())),
            Kind::Row(fields) => fields.iter().fold(0, |sum, field| sum.saturating_add(field.value_bytes())),
            _ => 8,
        }
    }

    /// How many values a sequence has, or the shortest one in a row.
    pub fn sequence_length(&self) -> Option<u64> {
        match &self.kind {
            Kind::Sequence { start, end } => Some((i128::from(*end) - i128::from(*start) + 1).max(0) as u64),
            Kind::Row(fields) => fields.iter().filter_map(FieldGenerator::sequence_length).min(),
            _ => None,
        }
    }

    /// Appends the value of row `number`.
    pub fn push(&self, column: &mut Column, number: u64, rng: &mut Rng, now_ms: i64) {
        if self.null_rate > 0.0 && rng.f32() < self.null_rate {
            return column.push_null();
        }
        match (&self.kind, &mut column.values) {
            (Kind::Sequence { start, .. }, values) => push_number(values, start.wrapping_add(number as i64)),
            (Kind::Boolean, Values::Boolean(values)) => values.push(rng.bool()),
            (Kind::Integer { min, max }, values) => push_number(values, rng.i64(*min..=*max)),
            (Kind::Float { min, max }, Values::Float32(values)) => values.push((min + rng.f64() * (max - min)) as f32),
            (Kind::Float { min, max }, Values::Float64(values)) => values.push(min + rng.f64() * (max - min)),
            (Kind::Decimal { min, max }, Values::Decimal { values, .. }) => values.push(rng.i128(*min..=*max)),
            (Kind::Text { length, any_length }, Values::String(views)) => {
                let length = if *any_length { rng.u64(1..=(*length).max(1)) } else { *length };
                let text: Vec<u8> = (0..length).map(|_| b"0123456789abcdef"[rng.usize(..16)]).collect();
                views.push_copy(&text);
            }
            (Kind::Text { length, any_length }, Values::Binary(views)) => {
                let length = if *any_length { rng.u64(1..=(*length).max(1)) } else { *length };
                let bytes: Vec<u8> = (0..length).map(|_| rng.u8(..)).collect();
                views.push_copy(&bytes);
            }
            (Kind::Time { max_past_ms }, values) => push_time(values, now_ms - rng.u64(0..=*max_past_ms) as i64),
            (Kind::Row(fields), Values::Row(columns)) => {
                fields.iter().zip(columns).for_each(|(field, column)| field.push(column, number, rng, now_ms));
            }
            (Kind::Array { length, element }, Values::Array { offsets, element: column }) => {
                (0..*length).for_each(|_| element.push(column, number, rng, now_ms));
                offsets.push(column.len() as i32);
            }
            (Kind::Map { length, key, value }, Values::Map { offsets, key: keys, value: values }) => {
                for _ in 0..*length {
                    key.push(keys, number, rng, now_ms);
                    value.push(values, number, rng, now_ms);
                }
                offsets.push(keys.len() as i32);
            }
            (kind, _) => unreachable!("a generator of {kind:?} was made for this column"),
        }
        column.push_valid();
    }
}

fn push_number(values: &mut Values, number: i64) {
    match values {
        Values::Int8(values) => values.push(number as i8),
        Values::Int16(values) => values.push(number as i16),
        Values::Int32(values) => values.push(number as i32),
        Values::Int64(values) => values.push(number),
        Values::Float32(values) => values.push(number as f32),
        Values::Float64(values) => values.push(number as f64),
        Values::Decimal { values, scale, .. } => values.push(i128::from(number) * 10i128.pow(u32::from(*scale))),
        Values::String(views) => views.push_copy(itoa::Buffer::new().format(number).as_bytes()),
        other => unreachable!("numbers are not made for {other:?}"),
    }
}

fn push_time(values: &mut Values, ms: i64) {
    match values {
        Values::Date(values) => values.push(ms.div_euclid(MS_PER_DAY) as i32),
        Values::Time(values) => values.push(ms.rem_euclid(MS_PER_DAY) as i32),
        Values::Timestamp { values, precision, .. } => values.push(ms * DataType::units_per_ms(*precision)),
        other => unreachable!("times are not made for {other:?}"),
    }
}

fn unsupported(data_type: &DataType, prefix: &str, kind: &str) -> Error {
    Error::unsupported(format!("type {} with '{prefix}.kind' = '{kind}'", data_type.kind_text()))
}

fn sequence(data_type: &DataType, prefix: &str, options: &OptionReader<'_>) -> Result<Kind> {
    let bound = |name: &str| {
        let key = format!("{prefix}.{name}");
        options.required(&key)?;
        Ok::<i64, Error>(options.number(&key)?.expect("it is there"))
    };
    if !(data_type.is_numeric() || data_type.is_character()) {
        return Err(unsupported(data_type, prefix, "sequence"));
    }
    let (start, end) = (bound("start")?, bound("end")?);
    let (min, max) = integer_range(data_type);
    if start > end || start < min || end > max {
        return Err(does_not_fit(
            &format!("{prefix}.end"),
            &end.to_string(),
            &format!("numbers from {min} to {max}, not before 'start'"),
        ));
    }
    Ok(Kind::Sequence { start, end })
}

/// Options of a field that its values do not ask for.
fn refuse_what_has_no_effect(data_type: &DataType, is_sequence: bool, prefix: &str, options: &OptionReader<'_>) -> Result<()> {
    let used: &[&str] = match &data_type.kind {
        _ if is_sequence => &["start", "end"],
        TypeKind::Varchar(_) | TypeKind::Varbinary(_) => &["length", "var-len"],
        TypeKind::Array(_) | TypeKind::Map(..) | TypeKind::Multiset(_) => &["length"],
        TypeKind::Timestamp(_) | TypeKind::TimestampLtz(_) => &["max-past"],
        _ if data_type.is_numeric() => &["min", "max"],
        _ => &[],
    };
    for name in ["start", "end", "min", "max", "max-past", "length", "var-len"] {
        let key = format!("{prefix}.{name}");
        if !used.contains(&name) && options.text(&key).is_some() {
            let of = if is_sequence { "a sequence".to_string() } else { format!("random values of {}", data_type.kind_text()) };
            let error = Error::new(ErrorKind::InvalidOption, format!("option '{key}' has no effect on {of}"));
            return Err(match used {
                [] => error.with_hint("leave it out"),
                used => error.with_hint(format!("there are {}", used.join(", "))),
            });
        }
    }
    match data_type.kind {
        TypeKind::Varchar(most) | TypeKind::Varbinary(most) if !is_sequence => {
            let key = format!("{prefix}.length");
            match options.number::<u64>(&key)?.filter(|length| *length > u64::from(most)) {
                Some(length) => Err(does_not_fit(&key, &length.to_string(), &format!("at most the {most} of the type"))),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn integer_range(data_type: &DataType) -> (i64, i64) {
    match &data_type.kind {
        TypeKind::TinyInt => (i8::MIN.into(), i8::MAX.into()),
        TypeKind::SmallInt => (i16::MIN.into(), i16::MAX.into()),
        TypeKind::Int => (i32::MIN.into(), i32::MAX.into()),
        TypeKind::Decimal(precision, scale) => {
            let most = 10i128.pow(u32::from(precision - scale)) - 1;
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            (-most, most)
        }
        _ => (i64::MIN, i64::MAX),
    }
}

/// `min` and `max` of the options, within the range of the type.
fn range<T: std::str::FromStr + PartialOrd + Copy + std::fmt::Display>(
    prefix: &str,
    options: &OptionReader<'_>,
    (least, most): (T, T),
) -> Result<(T, T)> {
    let min = options.number(&format!("{prefix}.min"))?.unwrap_or(least);
    let max = options.number(&format!("{prefix}.max"))?.unwrap_or(most);
    if min < least || max > most || min > max {
        return Err(Error::new(
            ErrorKind::InvalidOption,
            format!("options '{prefix}.min' and '{prefix}.max' are no range of its type"),
        )
        .with_hint(format!("give numbers from {least} to {most}, 'min' not greater than 'max'")));
    }
    Ok((min, max))
}

fn random(data_type: &DataType, prefix: &str, options: &OptionReader<'_>) -> Result<Kind> {
    let length = |default: u64| Ok::<u64, Error>(options.number(&format!("{prefix}.length"))?.unwrap_or(default));
    let any_length = options.boolean(&format!("{prefix}.var-len"), false)?;
    let part =
        |data_type: &DataType, name: &str| FieldGenerator::new(data_type, &format!("{prefix}.{name}"), options).map(Box::new);
    Ok(match &data_type.kind {
        TypeKind::Boolean => Kind::Boolean,
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::Int | TypeKind::BigInt => {
            let (min, max) = range(prefix, options, integer_range(data_type))?;
            Kind::Integer { min, max }
        }
        TypeKind::Float => {
            // Half of the range, or else its length would not be a number.
            let (min, max) = range(prefix, options, (f64::from(f32::MIN), f64::from(f32::MAX)))?;
            Kind::Float { min, max }
        }
        TypeKind::Double => {
            let (min, max) = range(prefix, options, (f64::MIN / 2.0, f64::MAX / 2.0))?;
            Kind::Float { min, max }
        }
        TypeKind::Decimal(precision, scale) => {
            let unit = 10f64.powi(i32::from(*scale));
            let most = 10i128.pow(u32::from(*precision)) - 1;
            let (min, max) = range(prefix, options, (-(most as f64) / unit, most as f64 / unit))?;
            let unscaled = |number: f64| ((number * unit).round() as i128).clamp(-most, most);
            Kind::Decimal { min: unscaled(min), max: unscaled(max) }
        }
        TypeKind::Char(n) | TypeKind::Binary(n) => Kind::Text { length: u64::from(*n), any_length: false },
        TypeKind::Varchar(n) | TypeKind::Varbinary(n) => {
            let default = if *n == crate::types::VARCHAR_MAX { TEXT_LENGTH } else { u64::from(*n) };
            Kind::Text { length: length(default)?, any_length }
        }
        TypeKind::Date | TypeKind::Time(_) => Kind::Time { max_past_ms: 0 },
        TypeKind::Timestamp(_) | TypeKind::TimestampLtz(_) => {
            Kind::Time { max_past_ms: options.duration_ms(&format!("{prefix}.max-past"))?.unwrap_or(0) }
        }
        TypeKind::Row(fields) | TypeKind::Structured(_, fields) => Kind::Row(
            fields
                .iter()
                .map(|field| FieldGenerator::new(&field.data_type, &format!("{prefix}.{}", field.name), options))
                .collect::<Result<_>>()?,
        ),
        TypeKind::Array(element) => Kind::Array { length: length(COLLECTION_LENGTH)?, element: part(element, "element")? },
        TypeKind::Map(key, value) => {
            Kind::Map { length: length(COLLECTION_LENGTH)?, key: part(key, "key")?, value: part(value, "value")? }
        }
        TypeKind::Multiset(element) => {
            let count = FieldGenerator { kind: Kind::Integer { min: 1, max: 10 }, null_rate: 0.0 };
            Kind::Map { length: length(COLLECTION_LENGTH)?, key: part(element, "element")?, value: Box::new(count) }
        }
        TypeKind::Null | TypeKind::IntervalYearMonth | TypeKind::IntervalDayTime | TypeKind::Bitmap | TypeKind::Variant => {
            return Err(unsupported(data_type, prefix, "random"));
        }
    })
}
