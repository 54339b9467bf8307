//! The keys of an object, and which of its values are wanted.
//!
//! The keys of an object mostly come in the order of the object before: so the bytes from the end of one value to the start of the
//! next (`,"price": `) are remembered and compared as a whole, and only where they differ is a key parsed and looked up.

use std::collections::HashMap;

use super::Malformed;
use super::cursor::Cursor;

type Parsed<T> = std::result::Result<T, Malformed>;

/// The keys whose values are wanted, each with its slot, and in which order the keys came last.
#[derive(Debug, Default)]
pub struct Keys {
    slots: HashMap<Vec<u8>, usize>,
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

impl Keys {
    /// These keys, their slots in this order.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let slots = names.into_iter().enumerate().map(|(slot, name)| (name.as_bytes().to_vec(), slot)).collect();
        Keys { slots, guesses: Vec::new() }
    }

    /// Passes the `index`-th key of an object and tells the slot of its value, if it is wanted; none at the end of the object.
    #[inline(always)]
    pub fn next(&mut self, cursor: &mut Cursor<'_>, index: usize) -> Parsed<Option<Option<usize>>> {
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
        self.parse(cursor, index)
    }

    #[cold]
    fn parse(&mut self, cursor: &mut Cursor<'_>, index: usize) -> Parsed<Option<Option<usize>>> {
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
