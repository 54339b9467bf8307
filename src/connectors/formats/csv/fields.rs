//! Where a field ends: delimiters, quotes, escapes, line ends.

use super::CsvFormat;

/// A field as it stands in the block, or rewritten where it held quotes or escapes.
#[derive(Debug, Clone, Copy)]
pub struct RawField {
    /// First byte in the block.
    pub start: usize,
    /// After the last byte.
    pub end: usize,
    /// Whether the text is in the scratch buffer instead.
    pub rewritten: bool,
    /// Whether the record ends with it.
    pub last: bool,
    /// Where the next field or record begins.
    pub next: usize,
}

/// What is wrong with a record.
pub type Broken = &'static str;

impl CsvFormat {
    /// The field at `at`, which is at or before the end of the block.
    #[inline]
    pub fn field(&self, bytes: &[u8], at: usize, scratch: &mut Vec<u8>) -> Result<RawField, Broken> {
        if self.quote.is_some() && bytes.get(at).copied() == self.quote {
            return self.quoted(bytes, at, scratch);
        }
        let rest = &bytes[at..];
        let found = match self.escape {
            None => memchr::memchr2(self.delimiter, b'\n', rest),
            Some(escape) => memchr::memchr3(self.delimiter, b'\n', escape, rest),
        };
        match found {
            Some(length) if Some(rest[length]) == self.escape && self.escape != Some(self.delimiter) => {
                self.escaped(bytes, at, scratch)
            }
            found => Ok(field_until(bytes, at, found.map_or(bytes.len(), |length| at + length), false)),
        }
    }

    /// A field without quotes that holds an escape.
    fn escaped(&self, bytes: &[u8], start: usize, scratch: &mut Vec<u8>) -> Result<RawField, Broken> {
        scratch.clear();
        let mut at = start;
        loop {
            match bytes.get(at) {
                None => break,
                Some(byte) if Some(*byte) == self.escape => {
                    scratch.push(unescape(*bytes.get(at + 1).ok_or("the record ends with an escape character")?));
                    at += 2;
                }
                Some(byte) if *byte == self.delimiter || *byte == b'\n' => break,
                Some(byte) => {
                    scratch.push(*byte);
                    at += 1;
                }
            }
        }
        let mut field = field_until(bytes, start, at, true);
        field.rewritten = true;
        if field.last && scratch.last() == Some(&b'\r') {
            scratch.pop();
        }
        Ok(field)
    }

    fn quoted(&self, bytes: &[u8], start: usize, scratch: &mut Vec<u8>) -> Result<RawField, Broken> {
        let quote = self.quote.expect("the caller saw a quote");
        let escape = self.escape.unwrap_or(quote);
        let mut rewritten = false;
        let mut from = start + 1;
        let mut at = from;
        let close = loop {
            let length = memchr::memchr2(quote, escape, bytes.get(at..).unwrap_or(&[])).ok_or("a quoted field does not end")?;
            let found = at + length;
            let next = bytes.get(found + 1).copied();
            let is_escape = bytes[found] == escape && escape != quote;
            if !is_escape && next != Some(quote) {
                break found;
            }
            if !std::mem::replace(&mut rewritten, true) {
                scratch.clear();
            }
            scratch.extend_from_slice(&bytes[from..found]);
            let next = next.ok_or("the record ends with an escape character")?;
            scratch.push(if is_escape { unescape(next) } else { next });
            at = found + 2;
            from = at;
        };
        if rewritten {
            scratch.extend_from_slice(&bytes[from..close]);
        }
        let mut after = close + 1;
        while matches!(bytes.get(after), Some(b' ' | b'\t' | b'\r')) && bytes[after] != self.delimiter {
            after += 1;
        }
        let last = match bytes.get(after) {
            None | Some(b'\n') => true,
            Some(byte) if *byte == self.delimiter => false,
            Some(_) => return Err("text follows the closing quote of a field"),
        };
        Ok(RawField { start: start + 1, end: close, rewritten, last, next: after + 1 })
    }

    /// How many of these bytes are whole records; none = no record ends in them.
    pub fn whole_records(&self, bytes: &[u8]) -> Option<usize> {
        if self.has_one_record_a_line() || self.quote.is_none_or(|quote| memchr::memchr(quote, bytes).is_none()) {
            return memchr::memrchr(b'\n', bytes).map(|at| at + 1);
        }
        let (mut at, mut whole) = (0, None);
        let mut scratch = Vec::new();
        while at < bytes.len() {
            match self.field(bytes, at, &mut scratch) {
                Ok(field) => {
                    at = field.next;
                    if field.last && field.next <= bytes.len() {
                        whole = Some(field.next);
                    }
                }
                // A broken record ends with its line, unless its quote may still be closed.
                Err(_) => match memchr::memchr(b'\n', &bytes[at..]) {
                    Some(length) if !self.quote_is_open(bytes, at) => {
                        at += length + 1;
                        whole = Some(at);
                    }
                    _ => return whole,
                },
            }
        }
        whole
    }

    fn quote_is_open(&self, bytes: &[u8], at: usize) -> bool {
        matches!(self.field(bytes, at, &mut Vec::new()), Err("a quoted field does not end"))
    }
}

#[inline(always)]
fn field_until(bytes: &[u8], start: usize, end: usize, rewritten: bool) -> RawField {
    let last = end >= bytes.len() || bytes[end] == b'\n';
    let return_before = last && end > start && bytes[end - 1] == b'\r';
    RawField { start, end: end - usize::from(return_before), rewritten, last, next: end + 1 }
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'0' => 0,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        other => other,
    }
}
