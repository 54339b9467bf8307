//! A parser of JSON that writes a flat list of nodes over the text: nothing is copied, and the list is used again for the next text.
//!
//! As Jackson does, it reads the first value and takes no offence at what comes behind it.

use std::borrow::Cow;

/// The number of a node in its document.
pub(in crate::expr) type NodeId = usize;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::expr) enum Kind {
    /// `null`.
    Null,
    /// `true`.
    True,
    /// `false`.
    False,
    /// A number without fraction and exponent.
    Integer,
    /// Any other number.
    Decimal,
    /// A string without escapes.
    Plain,
    /// A string with escapes.
    Escaped,
    /// An array: its elements follow.
    Array,
    /// An object: keys and values follow in turn.
    Object,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    kind: Kind,
    /// Where the text of the value begins (of a string: behind the quote) and ends.
    start: u32,
    end: u32,
    /// The node behind this one and all that is in it.
    next: u32,
}

/// How deep arrays and objects may be nested, as in Jackson.
const DEPTH_MAX: usize = 1_000;

/// Parses texts, one after another, into the same memory.
#[derive(Debug, Default)]
pub(in crate::expr) struct Parser {
    nodes: Vec<Node>,
}

/// A parsed text.
#[derive(Debug, Clone, Copy)]
pub(in crate::expr) struct Document<'d> {
    text: &'d str,
    nodes: &'d [Node],
}

impl Parser {
    /// The document of a text; none = it is no JSON.
    pub(in crate::expr) fn parse<'d>(&'d mut self, text: &'d str) -> Option<Document<'d>> {
        self.nodes.clear();
        u32::try_from(text.len()).ok()?;
        let mut reader = Reader { bytes: text.as_bytes(), at: 0, nodes: &mut self.nodes };
        reader.value(0)?;
        // A number or a word at the top ends where a blank does.
        let scalar = !matches!(reader.nodes[0].kind, Kind::Array | Kind::Object | Kind::Plain | Kind::Escaped);
        if scalar && reader.bytes.get(reader.at).is_some_and(|byte| !byte.is_ascii_whitespace()) {
            return None;
        }
        Some(Document { text, nodes: &self.nodes })
    }
}

struct Reader<'r> {
    bytes: &'r [u8],
    at: usize,
    nodes: &'r mut Vec<Node>,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<u8> {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) -> usize {
        let next = self.nodes.len() as u32 + 1;
        self.nodes.push(Node { kind, start: start as u32, end: end as u32, next });
        self.nodes.len() - 1
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'{' => self.nested(Kind::Object, b'}', depth),
            b'[' => self.nested(Kind::Array, b']', depth),
            b'"' => self.string(),
            b't' => self.word("true", Kind::True),
            b'f' => self.word("false", Kind::False),
            b'n' => self.word("null", Kind::Null),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str, kind: Kind) -> Option<()> {
        let end = self.at + word.len();
        let whole = self.bytes.get(self.at..end)? == word.as_bytes()
            && !self.bytes.get(end).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80);
        if !whole {
            return None;
        }
        self.push(kind, self.at, end);
        self.at = end;
        Some(())
    }

    fn nested(&mut self, kind: Kind, close: u8, depth: usize) -> Option<()> {
        if depth >= DEPTH_MAX {
            return None;
        }
        let node = self.push(kind, self.at, self.at);
        self.at += 1;
        if self.peek()? != close {
            loop {
                if kind == Kind::Object {
                    self.peek().filter(|byte| *byte == b'"')?;
                    self.string()?;
                    self.eat(b':')?;
                }
                self.value(depth + 1)?;
                match self.peek()? {
                    b',' => self.at += 1,
                    byte if byte == close => break,
                    _ => return None,
                }
            }
        }
        self.at += 1;
        self.nodes[node].end = self.at as u32;
        self.nodes[node].next = self.nodes.len() as u32;
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let start = self.at + 1;
        let mut escaped = false;
        self.at = start;
        loop {
            match *self.bytes.get(self.at)? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    match self.bytes.get(self.at + 1)? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
                        b'u' if self.bytes.get(self.at + 2..self.at + 6)?.iter().all(u8::is_ascii_hexdigit) => self.at += 6,
                        _ => return None,
                    }
                }
                0..=0x1f => return None,
                _ => self.at += 1,
            }
        }
        self.push(if escaped { Kind::Escaped } else { Kind::Plain }, start, self.at);
        self.at += 1;
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        let first = self.at;
        self.digits()?;
        if self.bytes[first] == b'0' && self.at > first + 1 {
            return None;
        }
        let mut kind = Kind::Integer;
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
            kind = Kind::Decimal;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
            kind = Kind::Decimal;
        }
        self.push(kind, start, self.at);
        Some(())
    }
}

impl<'d> Document<'d> {
    /// The value that the text is.
    pub(in crate::expr) const ROOT: NodeId = 0;

    /// What a node is.
    pub(in crate::expr) fn kind(&self, node: NodeId) -> Kind {
        self.nodes[node].kind
    }

    /// Its text as written; of a string, what stands between the quotes.
    pub(in crate::expr) fn raw(&self, node: NodeId) -> &'d str {
        &self.text[self.nodes[node].start as usize..self.nodes[node].end as usize]
    }

    /// Whether it is neither array nor object.
    pub(in crate::expr) fn is_scalar(&self, node: NodeId) -> bool {
        !matches!(self.kind(node), Kind::Array | Kind::Object)
    }

    /// The characters of a string; of any other value its text.
    pub(in crate::expr) fn characters(&self, node: NodeId) -> Cow<'d, str> {
        match self.kind(node) {
            Kind::Escaped => Cow::Owned(unescape(self.raw(node))),
            _ => Cow::Borrowed(self.raw(node)),
        }
    }

    /// The elements of an array; nothing of anything else.
    pub(in crate::expr) fn elements(&self, node: NodeId) -> Children<'d> {
        self.children(node, Kind::Array)
    }

    /// Keys and values of an object in turn; nothing of anything else.
    fn parts(&self, node: NodeId) -> Children<'d> {
        self.children(node, Kind::Object)
    }

    fn children(&self, node: NodeId, kind: Kind) -> Children<'d> {
        let end = if self.kind(node) == kind { self.nodes[node].next as usize } else { node + 1 };
        Children { nodes: self.nodes, at: node + 1, end }
    }

    /// Keys and values of an object: of equal keys the first place and the last value.
    pub(in crate::expr) fn entries(&self, node: NodeId) -> Vec<(Cow<'d, str>, NodeId)> {
        let mut entries: Vec<(Cow<'d, str>, NodeId)> = Vec::new();
        let mut parts = self.parts(node);
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            entries.push((self.characters(key), value));
        }
        let has_twice = |entries: &[(Cow<'d, str>, NodeId)]| {
            let mut keys: Vec<&str> = entries.iter().map(|(key, _)| key.as_ref()).collect();
            keys.sort_unstable();
            keys.windows(2).any(|pair| pair[0] == pair[1])
        };
        if entries.len() < 2 || !has_twice(&entries) {
            return entries;
        }
        let mut single: Vec<(Cow<'d, str>, NodeId)> = Vec::new();
        for (key, value) in entries {
            match single.iter_mut().find(|(known, _)| *known == key) {
                Some(known) => known.1 = value,
                None => single.push((key, value)),
            }
        }
        single
    }

    /// The value of a key of an object, the last one of equal keys.
    pub(in crate::expr) fn property(&self, node: NodeId, name: &str) -> Option<NodeId> {
        let mut found = None;
        let mut parts = self.parts(node);
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            let same = match self.kind(key) {
                Kind::Plain => self.raw(key) == name,
                _ => self.characters(key) == name,
            };
            if same {
                found = Some(value);
            }
        }
        found
    }
}

/// Whether an object anywhere in the document has a key twice.
pub(in crate::expr) fn has_duplicate_key(document: &Document<'_>) -> bool {
    let objects = (0..document.nodes.len()).filter(|node| document.kind(*node) == Kind::Object);
    objects.into_iter().any(|node| {
        let mut keys: Vec<Cow<'_, str>> = document.parts(node).step_by(2).map(|key| document.characters(key)).collect();
        keys.sort_unstable();
        keys.windows(2).any(|pair| pair[0] == pair[1])
    })
}

/// The direct parts of a node.
#[derive(Debug, Clone)]
pub(in crate::expr) struct Children<'d> {
    nodes: &'d [Node],
    at: usize,
    end: usize,
}

impl Iterator for Children<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        let node = self.at;
        (node < self.end).then(|| {
            self.at = self.nodes[node].next as usize;
            node
        })
    }
}

/// The characters that escapes stand for. A half of a surrogate pair becomes `?`, as Java writes it.
pub(in crate::expr) fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let letter = escape.as_bytes().first().copied().unwrap_or(b'\\');
        let mut length = 1;
        match letter {
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'n' => out.push('\n'),
            b'r' => out.push('\r'),
            b't' => out.push('\t'),
            b'u' => {
                let unit = |text: &str| text.get(1..5).and_then(|digits| u16::from_str_radix(digits, 16).ok());
                let first = unit(escape).unwrap_or(0xfffd);
                length = 5;
                let second = escape.get(5..).and_then(|rest| rest.strip_prefix('\\')).filter(|rest| rest.starts_with('u'));
                match (char::decode_utf16([first]).next(), second.and_then(unit)) {
                    (Some(Ok(c)), _) => out.push(c),
                    (_, Some(second)) => match char::decode_utf16([first, second]).next() {
                        Some(Ok(c)) => {
                            out.push(c);
                            length = 11;
                        }
                        _ => out.push('?'),
                    },
                    _ => out.push('?'),
                }
            }
            other => out.push(char::from(other)),
        }
        rest = escape.get(length..).unwrap_or("");
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_json(text: &str) -> bool {
        Parser::default().parse(text).is_some()
    }

    #[test]
    fn what_is_json_is_what_jackson_takes() {
        for text in ["{}", " [1, 2.5e-3] x", "1 2", "null", r#""\u00e9\/""#, r#"{"a":{"b":[null,true]}}{"#, "-0", "1e5"] {
            assert!(is_json(text), "{text}");
        }
        for text in
            ["", " ", "{a:1}", "[1,]", "[1,,2]", "01", ".5", "1.", "-", "+1", "tru", "truex", "1x", "'a'", "{\"a\"}", "[1", "\"a"]
        {
            assert!(!is_json(text), "{text}");
        }
        assert!(!is_json("\"a\nb\"") && !is_json(r#""\q""#) && !is_json(&"[".repeat(5_000)));
    }

    #[test]
    fn properties_are_found_and_the_last_of_equal_keys_counts() {
        let mut parser = Parser::default();
        let document = parser.parse(r#"{"a":[1,{"x":2}],"\u0062":3,"a":4}"#).unwrap();
        let value = |name| document.property(Document::ROOT, name).map(|node| document.raw(node));
        assert_eq!([value("a"), value("b"), value("c")], [Some("4"), Some("3"), None]);
        let keys: Vec<String> = document.entries(Document::ROOT).into_iter().map(|(key, _)| key.into_owned()).collect();
        assert_eq!(keys, ["a", "b"]);
    }

    #[test]
    fn escapes_stand_for_characters() {
        assert_eq!(unescape(r#"a\n\"\\\/\u00e9\ud83d\ude00"#), "a\n\"\\/é😀");
        assert_eq!(unescape(r"\ud83d!"), "?!");
    }
}
