//! Objects and the values in them.

use std::collections::HashMap;

use super::cursor::{Cursor, RawString};
use super::keys::Keys;
use super::scalar;
use super::{FieldProblem, Malformed, TimestampFormat};
use crate::connectors::formats::{Column, TimestampParser, Values, does_not_fit};
use crate::types::{DataType, Schema, TypeKind};

type Parsed<T> = std::result::Result<T, Malformed>;

/// What holds for all values of a decoder.
pub struct Rules {
    /// A value that does not fit becomes NULL.
    pub ignore_errors: bool,
    /// A missing field is an error.
    pub fail_on_missing: bool,
    /// Every key counts, however many there are.
    pub all_keys: bool,
    /// Between date and time.
    pub separator: u8,
    /// Whether seconds may be missing.
    pub short_times: bool,
    /// Parses timestamps.
    pub timestamps: TimestampParser,
    /// For strings with escapes.
    pub scratch: Vec<u8>,
}

impl Rules {
    /// By the options of the format.
    pub fn new(ignore_errors: bool, fail_on_missing: bool, format: TimestampFormat) -> Self {
        let iso = format == TimestampFormat::Iso8601;
        Rules {
            ignore_errors,
            fail_on_missing,
            all_keys: false,
            separator: if iso { b'T' } else { b' ' },
            short_times: iso,
            timestamps: TimestampParser::default(),
            scratch: Vec::new(),
        }
    }
}

/// How values of a type are built up.
#[derive(Debug)]
pub enum Shape {
    Scalar,
    Row(ObjectShape),
    Array(Box<Shape>),
    Map(Box<Shape>),
}

impl Shape {
    /// Of a type.
    pub fn of(data_type: &DataType) -> Self {
        match &data_type.kind {
            TypeKind::Row(fields) | TypeKind::Structured(_, fields) => {
                Shape::Row(ObjectShape::new(fields.iter().map(|field| (field.name.as_str(), &field.data_type))))
            }
            TypeKind::Array(element) => Shape::Array(Box::new(Shape::of(element))),
            TypeKind::Map(_, value) => Shape::Map(Box::new(Shape::of(value))),
            TypeKind::Multiset(_) => Shape::Map(Box::new(Shape::Scalar)),
            _ => Shape::Scalar,
        }
    }
}

/// The fields of an object that become columns.
#[derive(Debug)]
pub struct ObjectShape {
    keys: Keys,
    names: Vec<String>,
    shapes: Vec<Shape>,
}

impl ObjectShape {
    /// Of these columns.
    pub fn of(schema: &Schema) -> Self {
        ObjectShape::new(schema.fields.iter().map(|field| (field.name.as_str(), &field.data_type)))
    }

    /// Of these fields.
    fn new<'a>(fields: impl Iterator<Item = (&'a str, &'a DataType)>) -> Self {
        let (names, shapes): (Vec<String>, Vec<Shape>) =
            fields.map(|(name, data_type)| (name.to_string(), Shape::of(data_type))).unzip();
        ObjectShape { keys: Keys::new(names.iter().map(String::as_str)), names, shapes }
    }

    /// Appends the object at the cursor as row `row` of the columns. A repeated key takes the place of the value before and, unless
    /// [`Rules::all_keys`] is set, of one that comes later: as in Flink, only as many values are taken as there are fields.
    #[inline]
    pub fn decode(&mut self, columns: &mut [Column], cursor: &mut Cursor<'_>, row: usize, rules: &mut Rules) -> Parsed<()> {
        let mut wanted = if rules.all_keys { usize::MAX } else { columns.len() };
        let mut index = 0;
        while let Some(slot) = self.keys.next(cursor, index)? {
            index += 1;
            match slot {
                Some(slot) if wanted > 0 => {
                    wanted -= 1;
                    let column = &mut columns[slot];
                    if column.len() > row {
                        column.truncate(row);
                    }
                    decode_value(&mut self.shapes[slot], column, cursor, rules)
                        .map_err(|error| named(error, &self.names[slot]))?;
                }
                _ => cursor.pass_value()?,
            }
        }
        for (slot, column) in columns.iter_mut().enumerate() {
            if column.len() == row {
                if rules.fail_on_missing {
                    return Err(missing(&self.names[slot]));
                }
                column.push_null();
            }
        }
        Ok(())
    }
}

#[cold]
fn missing(name: &str) -> Malformed {
    Malformed::Field(Box::new(FieldProblem { path: name.to_string(), reason: "is missing".to_string() }))
}

/// Adds the name of the row's field around the place of an error.
#[cold]
pub fn named(error: Malformed, name: &str) -> Malformed {
    match error {
        Malformed::Field(mut problem) => {
            problem.path = if problem.path.is_empty() { name.to_string() } else { format!("{name}.{}", problem.path) };
            Malformed::Field(problem)
        }
        other => other,
    }
}

/// Appends the value at the cursor to a column.
#[inline]
pub fn decode_value(shape: &mut Shape, column: &mut Column, cursor: &mut Cursor<'_>, rules: &mut Rules) -> Parsed<()> {
    let start = cursor.at;
    let fits = match shape {
        Shape::Scalar => scalar::decode(column, cursor, rules)?,
        _ if cursor.peek_token() == b'n' => {
            cursor.word()?;
            column.push_null();
            return Ok(());
        }
        Shape::Row(shape) => decode_row(shape, column, cursor, rules)?,
        Shape::Array(element) => decode_array(element, column, cursor, rules)?,
        Shape::Map(value) => decode_map(value, column, cursor, rules)?,
    };
    if fits {
        return Ok(());
    }
    if rules.ignore_errors {
        column.push_null();
        return Ok(());
    }
    Err(does_not_fit_field(&cursor.line[start..cursor.at]))
}

/// The value of a field does not fit its type.
#[cold]
pub fn does_not_fit_field(value: &[u8]) -> Malformed {
    Malformed::Field(Box::new(FieldProblem { path: String::new(), reason: does_not_fit(value, "") }))
}

fn decode_row(shape: &mut ObjectShape, column: &mut Column, cursor: &mut Cursor<'_>, rules: &mut Rules) -> Parsed<bool> {
    if cursor.peek_token() != b'{' {
        cursor.skip_value()?;
        return Ok(false);
    }
    let row = column.len();
    let Values::Row(fields) = &mut column.values else { unreachable!("a row shape has a row column") };
    shape.decode(fields, cursor, row, rules)?;
    column.push_valid();
    Ok(true)
}

fn decode_array(shape: &mut Shape, column: &mut Column, cursor: &mut Cursor<'_>, rules: &mut Rules) -> Parsed<bool> {
    if cursor.peek_token() != b'[' {
        cursor.skip_value()?;
        return Ok(false);
    }
    cursor.at += 1;
    let Values::Array { offsets, element } = &mut column.values else { unreachable!("an array shape has an array column") };
    if !cursor.accept(b']') {
        loop {
            cursor.peek_token();
            decode_value(shape, element, cursor, rules)?;
            if !cursor.accept(b',') {
                cursor.expect(b']')?;
                break;
            }
        }
    }
    offsets.push(element.len() as i32);
    column.push_valid();
    Ok(true)
}

fn decode_map(shape: &mut Shape, column: &mut Column, cursor: &mut Cursor<'_>, rules: &mut Rules) -> Parsed<bool> {
    if cursor.peek_token() != b'{' {
        cursor.skip_value()?;
        return Ok(false);
    }
    let entries = map_entries(cursor)?;
    let end = cursor.at;
    let Values::Map { offsets, key, value } = &mut column.values else { unreachable!("a map shape has a map column") };
    for (name, at) in entries {
        cursor.at = at;
        scalar::push_string(key, &name, rules);
        decode_value(shape, value, cursor, rules)?;
    }
    cursor.at = end;
    offsets.push(key.len() as i32);
    column.push_valid();
    Ok(true)
}

/// The keys of a map with the places of their values; of equal keys the last one only.
fn map_entries<'a>(cursor: &mut Cursor<'a>) -> Parsed<Vec<(RawString<'a>, usize)>> {
    let mut entries: Vec<(RawString<'a>, usize)> = Vec::new();
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    cursor.expect(b'{')?;
    if cursor.accept(b'}') {
        return Ok(entries);
    }
    loop {
        if cursor.peek_token() != b'"' {
            return Err(cursor.unexpected());
        }
        let key = cursor.string()?;
        cursor.expect(b':')?;
        cursor.peek_token();
        let mut name = Vec::new();
        key.unescape(&mut name);
        let place = *places.entry(name).or_insert(entries.len());
        match entries.get_mut(place) {
            Some(entry) => *entry = (key, cursor.at),
            None => entries.push((key, cursor.at)),
        }
        cursor.skip_value()?;
        if !cursor.accept(b',') {
            cursor.expect(b'}')?;
            return Ok(entries);
        }
    }
}
