//! Objects and the values in them.
//!
//! The keys of an object mostly come in the order of the object before: so the bytes from the end of one value to the start of the
//! next (`,"price": `) are remembered and compared as a whole, and only where they differ is a key parsed and looked up.

use std::collections::HashMap;

use super::cursor::{Cursor, RawString};
use super::scalar;
use super::{FieldProblem, Malformed, TimestampFormat};
use crate::connectors::formats::{Column, TimestampParser, Values, does_not_fit};
use crate::types::{DataType, TypeKind};

type Parsed<T> = std::result::Result<T, Malformed>;

/// What holds for all values of a decoder.
pub struct Rules {
    /// A value that does not fit becomes NULL.
    pub ignore_errors: bool,
    /// A missing field is an error.
    pub fail_on_missing: bool,
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
            separator: if iso { b'T' } else { b' ' },
            short_times: iso,
            timestamps: TimestampParser::default(),
            scratch: Vec::new(),
        }
    }
}

/// How values of a type are built up.
#[derive(Debug)]
enum Shape {
    Scalar,
    Row(ObjectShape),
    Array(Box<Shape>),
    Map(Box<Shape>),
}

impl Shape {
    fn of(data_type: &DataType) -> Self {
        match &data_type.kind {
            TypeKind::Row(fields) => {
                Shape::Row(ObjectShape::new(fields.iter().map(|field| (field.name.as_str(), &field.data_type))))
            }
            TypeKind::Array(element) => Shape::Array(Box::new(Shape::of(element))),
            TypeKind::Map(_, value) => Shape::Map(Box::new(Shape::of(value))),
            TypeKind::Multiset(_) => Shape::Map(Box::new(Shape::Scalar)),
            _ => Shape::Scalar,
        }
    }
}

/// The fields of an object that become columns, and in which order its keys came last.
#[derive(Debug)]
pub struct ObjectShape {
    slots: HashMap<Vec<u8>, usize>,
    names: Vec<String>,
    shapes: Vec<Shape>,
    guesses: Vec<Guess>,
}

/// What stood before a value last time, and where the value went.
#[derive(Debug)]
struct Guess {
    /// From the end of the value before to the start of this one.
    bytes: Box<[u8]>,
    /// The first 16 of the bytes as one number, and which bits of it they are: mostly they are all.
    word: u128,
    mask: u128,
    slot: Option<usize>,
}

impl Guess {
    fn new(bytes: &[u8], slot: Option<usize>) -> Self {
        let mut word = [0; 16];
        let length = bytes.len().min(16);
        word[..length].copy_from_slice(&bytes[..length]);
        let mask = u128::MAX >> (128 - 8 * length.max(1));
        Guess { bytes: bytes.into(), word: u128::from_le_bytes(word), mask, slot }
    }

    /// Whether the text begins with it.
    #[inline(always)]
    fn begins(&self, text: &[u8]) -> bool {
        match text.first_chunk() {
            Some(chunk) if self.bytes.len() <= 16 => u128::from_le_bytes(*chunk) & self.mask == self.word,
            _ => text.starts_with(&self.bytes),
        }
    }
}

/// More keys than this are not remembered: such objects are maps rather than rows, with other keys each time.
const GUESSES_MAX: usize = 256;

impl ObjectShape {
    /// Of these fields.
    pub fn new<'a>(fields: impl Iterator<Item = (&'a str, &'a DataType)>) -> Self {
        let mut shape = ObjectShape { slots: HashMap::new(), names: Vec::new(), shapes: Vec::new(), guesses: Vec::new() };
        for (name, data_type) in fields {
            shape.slots.insert(name.as_bytes().to_vec(), shape.names.len());
            shape.names.push(name.to_string());
            shape.shapes.push(Shape::of(data_type));
        }
        shape
    }

    /// Appends the object at the cursor as row `row` of the columns. As in Flink, as many values are taken as there are fields: a
    /// repeated key takes the place of the value before, and of one that comes later.
    #[inline]
    pub fn decode(&mut self, columns: &mut [Column], cursor: &mut Cursor<'_>, row: usize, rules: &mut Rules) -> Parsed<()> {
        let mut wanted = columns.len();
        let mut index = 0;
        while let Some(slot) = self.next_key(cursor, index)? {
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

    /// Passes the next key and tells the column of its value; none at the end of the object.
    #[inline(always)]
    fn next_key(&mut self, cursor: &mut Cursor<'_>, index: usize) -> Parsed<Option<Option<usize>>> {
        if let Some(guess) = self.guesses.get(index)
            && guess.begins(&cursor.line[cursor.at..])
        {
            cursor.at += guess.bytes.len();
            return Ok(Some(guess.slot));
        }
        if index > 0 && cursor.peek() == b'}' {
            cursor.at += 1;
            return Ok(None);
        }
        self.parse_key(cursor, index)
    }

    #[cold]
    fn parse_key(&mut self, cursor: &mut Cursor<'_>, index: usize) -> Parsed<Option<Option<usize>>> {
        let separator = cursor.peek_token();
        let start = cursor.at;
        if index == 0 {
            cursor.expect(b'{')?;
            if cursor.accept(b'}') {
                return Ok(None);
            }
        } else if separator == b'}' {
            cursor.at += 1;
            return Ok(None);
        } else {
            cursor.expect(b',')?;
        }
        if cursor.peek_token() != b'"' {
            return Err(cursor.unexpected());
        }
        let key = cursor.string()?;
        cursor.expect(b':')?;
        cursor.peek_token();
        let slot = if key.escaped {
            let mut name = Vec::new();
            key.unescape(&mut name);
            self.slots.get(&name).copied()
        } else {
            self.slots.get(key.bytes).copied()
        };
        if index < GUESSES_MAX {
            let guess = Guess::new(&cursor.line[start..cursor.at], slot);
            self.guesses.truncate(index);
            self.guesses.push(guess);
        }
        Ok(Some(slot))
    }
}

#[cold]
fn missing(name: &str) -> Malformed {
    Malformed::Field(Box::new(FieldProblem { path: name.to_string(), reason: "is missing".to_string() }))
}

/// Adds the name of the row's field around the place of an error.
#[cold]
fn named(error: Malformed, name: &str) -> Malformed {
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
fn decode_value(shape: &mut Shape, column: &mut Column, cursor: &mut Cursor<'_>, rules: &mut Rules) -> Parsed<()> {
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
    Err(field_does_not_fit(&cursor.line[start..cursor.at]))
}

#[cold]
fn field_does_not_fit(value: &[u8]) -> Malformed {
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
