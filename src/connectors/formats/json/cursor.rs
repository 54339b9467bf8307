//! A cursor over one line of JSON: it finds the ends of values, and knows nothing of columns.

use super::Malformed;

/// How deep values may be nested.
const DEPTH_MAX: usize = 1000;

/// A position in a line.
#[derive(Debug)]
pub struct Cursor<'a> {
    /// The line, without its end.
    pub line: &'a [u8],
    /// The next unread byte.
    pub at: usize,
    /// Where in the block the line begins.
    pub base: usize,
}

/// A string between its quotes.
#[derive(Debug, Clone, Copy)]
pub struct RawString<'a> {
    /// The bytes as written.
    pub bytes: &'a [u8],
    /// Where in the block they begin.
    pub offset: usize,
    /// Whether a backslash is among them.
    pub escaped: bool,
}

type Parsed<T> = std::result::Result<T, Malformed>;

impl<'a> Cursor<'a> {
    /// The next byte; 0 at the end (a 0 in the text is not allowed anywhere outside of strings either).
    #[inline(always)]
    pub fn peek(&self) -> u8 {
        self.line.get(self.at).copied().unwrap_or(0)
    }

    /// Passes blanks and gives the next byte.
    #[inline(always)]
    pub fn peek_token(&mut self) -> u8 {
        let byte = self.peek();
        if byte > b' ' {
            return byte;
        }
        self.skip_blanks();
        self.peek()
    }

    #[cold]
    fn skip_blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
    }

    /// Passes this byte, after blanks.
    #[inline(always)]
    pub fn expect(&mut self, byte: u8) -> Parsed<()> {
        if self.peek_token() != byte {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    /// Passes this byte if it comes next, after blanks.
    #[inline(always)]
    pub fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek_token() == byte;
        self.at += usize::from(found);
        found
    }

    /// Passes blanks to the end of the line; anything else there is an error.
    #[inline(always)]
    pub fn end(&mut self) -> Parsed<()> {
        if self.at < self.line.len() {
            self.skip_blanks();
        }
        if self.at < self.line.len() { Err(Malformed::Trailing(self.at)) } else { Ok(()) }
    }

    /// What stands here does not belong here.
    #[cold]
    pub fn unexpected(&self) -> Malformed {
        if self.at >= self.line.len() { Malformed::EndOfInput } else { self.unexpected_at(self.at) }
    }

    #[cold]
    fn unexpected_at(&self, at: usize) -> Malformed {
        let rest = String::from_utf8_lossy(&self.line[at..self.line.len().min(at + 4)]);
        Malformed::Unexpected(at, rest.chars().next().unwrap_or('\u{fffd}'))
    }

    /// A string; the cursor stands on its opening quote.
    #[inline]
    pub fn string(&mut self) -> Parsed<RawString<'a>> {
        let start = self.at + 1;
        let rest = self.line.get(start..).unwrap_or(&[]);
        let offset = self.base + start;
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(end) if rest[end] == b'"' => {
                self.at = start + end + 1;
                Ok(RawString { bytes: &rest[..end], offset, escaped: false })
            }
            Some(escape) => {
                let end = self.end_of_escaped(start + escape)?;
                self.at = end + 1;
                Ok(RawString { bytes: &self.line[start..end], offset, escaped: true })
            }
            None => Err(Malformed::EndOfInput),
        }
    }

    /// Where the string ends whose first backslash is at `at`.
    fn end_of_escaped(&self, mut at: usize) -> Parsed<usize> {
        loop {
            let step = match self.line.get(at) {
                None => return Err(Malformed::EndOfInput),
                Some(b'"') => return Ok(at),
                Some(b'\\') => match self.line.get(at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                    Some(b'u') if self.line.get(at + 2..at + 6).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) => 6,
                    _ => return Err(self.unexpected_at(at)),
                },
                Some(_) => memchr::memchr2(b'"', b'\\', &self.line[at..]).ok_or(Malformed::EndOfInput)?,
            };
            at += step;
        }
    }

    /// A number; the cursor stands on its first byte. Says whether it is a whole number.
    #[inline]
    pub fn number(&mut self) -> Parsed<(&'a [u8], bool)> {
        let start = self.at;
        if self.peek() == b'-' {
            self.at += 1;
        }
        match self.peek() {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            _ => return Err(self.unexpected()),
        }
        let mut whole = true;
        if self.peek() == b'.' {
            whole = false;
            self.at += 1;
            self.some_digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            whole = false;
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            self.some_digits()?;
        }
        self.end_of_word()?;
        Ok((&self.line[start..self.at], whole))
    }

    #[inline(always)]
    fn digits(&mut self) {
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Parsed<()> {
        if !self.peek().is_ascii_digit() {
            return Err(self.unexpected());
        }
        self.digits();
        Ok(())
    }

    /// What follows a number or a word must separate it from the next token.
    #[inline(always)]
    pub fn end_of_word(&self) -> Parsed<()> {
        match self.peek() {
            b',' | b'}' | b']' | b' ' | b'\t' | b'\r' => Ok(()),
            _ if self.at == self.line.len() => Ok(()),
            _ => Err(self.unexpected()),
        }
    }

    /// `true`, `false` or `null`; the cursor stands on its first byte.
    pub fn word(&mut self) -> Parsed<&'static [u8]> {
        for word in [&b"null"[..], b"true", b"false"] {
            if self.line[self.at..].starts_with(word) {
                self.at += word.len();
                self.end_of_word()?;
                return Ok(word);
            }
        }
        Err(self.unexpected())
    }

    /// Passes a value that nobody wants.
    #[inline(always)]
    pub fn pass_value(&mut self) -> Parsed<()> {
        match self.peek() {
            b'"' => self.string().map(drop),
            b'1'..=b'9' => {
                let start = self.at;
                self.digits();
                if matches!(self.peek(), b',' | b'}') {
                    return Ok(());
                }
                self.at = start;
                self.number().map(drop)
            }
            _ => self.skip_value().map(drop),
        }
    }

    /// Passes a value of any kind, and gives its bytes.
    pub fn skip_value(&mut self) -> Parsed<&'a [u8]> {
        self.peek_token();
        let start = self.at;
        self.skip_nested(0)?;
        Ok(&self.line[start..self.at])
    }

    fn skip_nested(&mut self, depth: usize) -> Parsed<()> {
        if depth > DEPTH_MAX {
            return Err(Malformed::TooDeep);
        }
        match self.peek_token() {
            b'"' => self.string().map(drop),
            b'{' => {
                self.at += 1;
                if self.accept(b'}') {
                    return Ok(());
                }
                loop {
                    if self.peek_token() != b'"' {
                        return Err(self.unexpected());
                    }
                    self.string()?;
                    self.expect(b':')?;
                    self.skip_nested(depth + 1)?;
                    if !self.accept(b',') {
                        return self.expect(b'}');
                    }
                }
            }
            b'[' => {
                self.at += 1;
                if self.accept(b']') {
                    return Ok(());
                }
                loop {
                    self.skip_nested(depth + 1)?;
                    if !self.accept(b',') {
                        return self.expect(b']');
                    }
                }
            }
            b'-' | b'0'..=b'9' => self.number().map(drop),
            _ => self.word().map(drop),
        }
    }
}

impl RawString<'_> {
    /// The text with its escapes resolved. The escapes are known to be well-formed.
    pub fn unescape(&self, out: &mut Vec<u8>) {
        let mut rest = self.bytes;
        while let Some(at) = memchr::memchr(b'\\', rest) {
            out.extend_from_slice(&rest[..at]);
            let escape = rest[at + 1];
            rest = &rest[at + 2..];
            match escape {
                b'b' => out.push(8),
                b'f' => out.push(12),
                b'n' => out.push(b'\n'),
                b'r' => out.push(b'\r'),
                b't' => out.push(b'\t'),
                b'u' => rest = unescape_unicode(rest, out),
                other => out.push(other),
            }
        }
        out.extend_from_slice(rest);
    }
}

/// Resolves `XXXX` of a `\uXXXX`, with the low surrogate that follows a high one. A lone surrogate is no character: `?`, as in Java.
fn unescape_unicode<'a>(rest: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let hex = |bytes: &[u8]| bytes.iter().fold(0u32, |sum, byte| sum * 16 + (*byte as char).to_digit(16).unwrap_or(0));
    let unit = hex(&rest[..4]);
    let rest = &rest[4..];
    if (0xD800..0xDC00).contains(&unit) && rest.len() >= 6 && rest.starts_with(b"\\u") {
        let low = hex(&rest[2..6]);
        if (0xDC00..0xE000).contains(&low) {
            push_char(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00), out);
            return &rest[6..];
        }
    }
    push_char(unit, out);
    rest
}

fn push_char(code: u32, out: &mut Vec<u8>) {
    let mut utf8 = [0; 4];
    out.extend_from_slice(char::from_u32(code).unwrap_or('?').encode_utf8(&mut utf8).as_bytes());
}
