//! The text of a pattern → [`Node`], by the syntax of `java.util.regex`.

use std::iter::Peekable;
use std::str::Chars;

use super::classes::{self, Set};

/// A part of a pattern.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// Nothing.
    Empty,
    /// A character of a set.
    Class(Set),
    /// One after another.
    Sequence(Vec<Node>),
    /// The first that leads to a match.
    Choice(Vec<Node>),
    /// From `least` to `most` times.
    Repeat { node: Box<Node>, least: u32, most: Option<u32>, kind: Greed },
    /// A group that keeps its place.
    Group(Box<Node>, usize),
    /// A group that is not entered again once it has matched.
    Atomic(Box<Node>),
    /// What stands before or behind the place.
    Look { node: Box<Node>, behind: bool, negative: bool },
    /// What a group has matched.
    Back { group: usize, any_case: bool },
    /// A place.
    Place(Place),
}

/// How a repetition goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greed {
    Greedy,
    Lazy,
    Possessive,
}

/// A place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// `\A`, `^`.
    Start,
    /// `\z`.
    End,
    /// `\Z`, `$`: the end, or before the line end that ends the text.
    EndOfText,
    /// `^` of every line.
    StartOfLine,
    /// `$` of every line.
    EndOfLine,
    /// `\b`.
    WordBorder,
    /// `\B`.
    NoWordBorder,
    /// `\G`.
    LastEnd,
}

/// What a pattern is.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) node: Node,
    /// Groups that keep their place.
    pub(super) groups: usize,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::expr) enum Problem {
    /// Java refuses it.
    Invalid(String),
    /// Java takes it.
    Unsupported(String),
}

type Result<T> = std::result::Result<T, Problem>;

/// Flags that hold from a place on.
#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    any_case: bool,
    unicode_case: bool,
    dot_all: bool,
    multi_line: bool,
    comments: bool,
    unix_lines: bool,
}

/// How deep groups may nest.
const DEPTH_MAX: usize = 200;

/// Parses a pattern.
pub(super) fn parse(pattern: &str) -> Result<Parsed> {
    let mut parser =
        Parser { chars: pattern.chars().peekable(), flags: Flags::default(), names: Vec::new(), groups: 0, depth: 0 };
    let node = parser.choice()?;
    match parser.chars.next() {
        None => Ok(Parsed { node, groups: parser.groups }),
        Some(_) => Err(invalid("a ) without (")),
    }
}

fn invalid(what: impl Into<String>) -> Problem {
    Problem::Invalid(what.into())
}

struct Parser<'p> {
    chars: Peekable<Chars<'p>>,
    flags: Flags,
    names: Vec<(String, usize)>,
    groups: usize,
    depth: usize,
}

impl Parser<'_> {
    fn eat(&mut self, text: &str) -> bool {
        let mut ahead = self.chars.clone();
        let eaten = text.chars().all(|c| ahead.next() == Some(c));
        if eaten {
            self.chars = ahead;
        }
        eaten
    }

    /// Up to the end or a `)`. Flags that are set within hold to there.
    fn choice(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Problem::Unsupported(format!("groups nested deeper than {DEPTH_MAX}")));
        }
        let mut choices = vec![self.sequence()?];
        while self.eat("|") {
            choices.push(self.sequence()?);
        }
        self.depth -= 1;
        Ok(if choices.len() == 1 { choices.remove(0) } else { Node::Choice(choices) })
    }

    fn sequence(&mut self) -> Result<Node> {
        let mut nodes = Vec::new();
        loop {
            self.skip_comments();
            match self.chars.peek() {
                None | Some('|' | ')') => break,
                Some(_) => {}
            }
            let atom = self.atom()?;
            let atom = self.repeated(atom)?;
            nodes.push(atom);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Sequence(nodes) })
    }

    fn skip_comments(&mut self) {
        while self.flags.comments {
            match self.chars.peek() {
                Some(c) if c.is_ascii_whitespace() || *c == '\x0b' => {
                    self.chars.next();
                }
                Some('#') => while self.chars.next_if(|c| *c != '\n').is_some() {},
                _ => return,
            }
        }
    }

    fn repeated(&mut self, atom: Node) -> Result<Node> {
        self.skip_comments();
        let (least, most) = match self.chars.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                self.chars.next();
                let counts = self.counts()?;
                return self.repeat(atom, counts);
            }
            _ => return Ok(atom),
        };
        self.chars.next();
        self.repeat(atom, (least, most))
    }

    /// What stands between `{` and `}`.
    fn counts(&mut self) -> Result<(u32, Option<u32>)> {
        let least = self.number().ok_or_else(|| invalid("a { without a number"))?;
        let most = match self.eat(",") {
            false => Some(least),
            true => self.number(),
        };
        if !self.eat("}") {
            return Err(invalid("a { that is not closed"));
        }
        if most.is_some_and(|most| most < least) {
            return Err(invalid("a range of repetitions that goes down"));
        }
        Ok((least, most))
    }

    fn number(&mut self) -> Option<u32> {
        let mut number = None;
        while let Some(digit) = self.chars.peek().and_then(|c| c.to_digit(10)) {
            self.chars.next();
            number = Some(number.unwrap_or(0_u32).saturating_mul(10).saturating_add(digit));
        }
        number
    }

    fn repeat(&mut self, atom: Node, (least, most): (u32, Option<u32>)) -> Result<Node> {
        let kind = match self.chars.peek() {
            Some('?') => Greed::Lazy,
            Some('+') => Greed::Possessive,
            _ => Greed::Greedy,
        };
        if kind != Greed::Greedy {
            self.chars.next();
        }
        if matches!(self.chars.peek(), Some('*' | '+' | '?')) {
            return Err(invalid("a repetition of a repetition"));
        }
        Ok(Node::Repeat { node: Box::new(atom), least, most, kind })
    }

    fn atom(&mut self) -> Result<Node> {
        let Some(c) = self.chars.next() else { return Ok(Node::Empty) };
        Ok(match c {
            '(' => self.group()?,
            '[' => Node::Class(self.class()?),
            '.' if self.flags.dot_all => Node::Class(classes::set(&[('\0', char::MAX)])),
            '.' if self.flags.unix_lines => Node::Class(classes::negated(classes::single('\n'))),
            '.' => Node::Class(classes::negated(classes::line_ends())),
            '^' if self.flags.multi_line => Node::Place(Place::StartOfLine),
            '^' => Node::Place(Place::Start),
            '$' if self.flags.multi_line => Node::Place(Place::EndOfLine),
            '$' => Node::Place(Place::EndOfText),
            '*' | '+' | '?' => return Err(invalid(format!("a {c} with nothing before it"))),
            '{' => return Err(invalid("a { with nothing before it")),
            '\\' => self.escape()?,
            c => self.literal(c),
        })
    }

    fn literal(&self, c: char) -> Node {
        Node::Class(self.folded(classes::single(c)))
    }

    fn folded(&self, class: Set) -> Set {
        if self.flags.any_case { classes::in_any_case(class, self.flags.unicode_case) } else { class }
    }

    fn group(&mut self) -> Result<Node> {
        let flags = self.flags;
        if !self.eat("?") {
            self.groups += 1;
            let group = self.groups;
            return self.closed(flags, |node| Node::Group(Box::new(node), group));
        }
        let look = |behind, negative| move |node| Node::Look { node: Box::new(node), behind, negative };
        for (start, behind, negative) in [("=", false, false), ("!", false, true), ("<=", true, false), ("<!", true, true)] {
            if self.eat(start) {
                return self.closed(flags, look(behind, negative));
            }
        }
        if self.eat(">") {
            return self.closed(flags, |node| Node::Atomic(Box::new(node)));
        }
        if self.eat("<") {
            let name: String = std::iter::from_fn(|| self.chars.next_if(char::is_ascii_alphanumeric)).collect();
            if !self.eat(">")
                || !name.starts_with(|c: char| c.is_ascii_alphabetic())
                || self.names.iter().any(|(n, _)| *n == name)
            {
                return Err(invalid("a group that is not named well"));
            }
            self.groups += 1;
            let group = self.groups;
            self.names.push((name, group));
            return self.closed(flags, |node| Node::Group(Box::new(node), group));
        }
        self.set_flags()?;
        if self.eat(")") {
            return Ok(Node::Empty);
        }
        if !self.eat(":") {
            return Err(invalid("a (? that is not known"));
        }
        self.closed(flags, |node| node)
    }

    /// The rest of a group; then the flags are those before it.
    fn closed(&mut self, flags: Flags, make: impl FnOnce(Node) -> Node) -> Result<Node> {
        let node = self.choice()?;
        if !self.eat(")") {
            return Err(invalid("a ( that is not closed"));
        }
        self.flags = flags;
        Ok(make(node))
    }

    /// `ims-x`.
    fn set_flags(&mut self) -> Result<()> {
        let mut on = true;
        while let Some(c) = self.chars.next_if(|c| c.is_ascii_alphabetic() || *c == '-') {
            match c {
                '-' => on = false,
                'i' => self.flags.any_case = on,
                'u' => self.flags.unicode_case = on,
                's' => self.flags.dot_all = on,
                'm' => self.flags.multi_line = on,
                'x' => self.flags.comments = on,
                'd' => self.flags.unix_lines = on,
                'U' => return Err(Problem::Unsupported("the flag U".to_string())),
                _ => return Err(invalid(format!("the flag {c}"))),
            }
        }
        Ok(())
    }

    /// What follows a `\` outside of a class.
    fn escape(&mut self) -> Result<Node> {
        let Some(c) = self.chars.next() else { return Err(invalid("a \\ at the end")) };
        Ok(match c {
            'A' => Node::Place(Place::Start),
            'z' => Node::Place(Place::End),
            'Z' => Node::Place(Place::EndOfText),
            'G' => Node::Place(Place::LastEnd),
            'b' => Node::Place(Place::WordBorder),
            'B' => Node::Place(Place::NoWordBorder),
            'Q' => {
                let quoted = self.quoted();
                let mut nodes: Vec<Node> = quoted.chars().map(|c| self.literal(c)).collect();
                // What is repeated is the last character.
                match nodes.pop() {
                    None => Node::Empty,
                    Some(last) => {
                        let last = self.repeated(last)?;
                        nodes.push(last);
                        Node::Sequence(nodes)
                    }
                }
            }
            'R' => line_break(),
            'X' => return Err(Problem::Unsupported("\\X".to_string())),
            'k' => {
                let name: Option<String> =
                    self.eat("<").then(|| std::iter::from_fn(|| self.chars.next_if(|c| *c != '>')).collect());
                let group = name.and_then(|name| self.names.iter().find(|(known, _)| *known == name).map(|(_, group)| *group));
                match (group, self.eat(">")) {
                    (Some(group), true) => Node::Back { group, any_case: self.flags.any_case },
                    _ => return Err(invalid("a \\k of a group that is not there")),
                }
            }
            '1'..='9' => {
                let mut group = c as usize - '0' as usize;
                // More digits belong to it as long as there are so many groups.
                while let Some(digit) = self.chars.peek().and_then(|c| c.to_digit(10)) {
                    let longer = group * 10 + digit as usize;
                    if longer > self.groups {
                        break;
                    }
                    self.chars.next();
                    group = longer;
                }
                Node::Back { group, any_case: self.flags.any_case }
            }
            _ => Node::Class(self.escaped(c)?),
        })
    }

    fn quoted(&mut self) -> String {
        let mut text = String::new();
        while self.chars.peek().is_some() && !self.eat("\\E") {
            text.extend(self.chars.next());
        }
        text
    }

    /// The characters that an escape stands for, in a class or outside.
    fn escaped(&mut self, c: char) -> Result<Set> {
        if let Some(class) = classes::of_letter(c) {
            return Ok(class);
        }
        let c = match c {
            'p' | 'P' => {
                let name: String = match self.eat("{") {
                    true => std::iter::from_fn(|| self.chars.next_if(|c| *c != '}')).collect(),
                    false => self.chars.next().into_iter().collect(),
                };
                if name.len() > 1 && !self.eat("}") {
                    return Err(invalid("a property that is not closed"));
                }
                if name.len() == 1 {
                    self.eat("}");
                }
                let class = classes::of_property(&name).ok_or_else(|| match name.starts_with("In") {
                    true => Problem::Unsupported(format!("the block {name}")),
                    false => invalid(format!("the property {name}")),
                })?;
                return Ok(if c == 'P' { classes::negated(class) } else { class });
            }
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            'f' => '\x0c',
            'a' => '\x07',
            'e' => '\x1b',
            'c' => match self.chars.next() {
                Some(c) if c.is_ascii() => char::from(c as u8 ^ 64),
                _ => return Err(invalid("a \\c without a letter")),
            },
            '0' => self.octal()?,
            'x' if self.eat("{") => {
                let digits: String = std::iter::from_fn(|| self.chars.next_if(char::is_ascii_hexdigit)).collect();
                let c = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                c.filter(|_| self.eat("}")).ok_or_else(|| invalid("a \\x that is no character"))?
            }
            'x' => self.hex(2)?,
            'u' => self.hex(4)?,
            'N' => return Err(Problem::Unsupported("names of characters".to_string())),
            c if c.is_ascii_alphabetic() => return Err(invalid(format!("\\{c}"))),
            c => c,
        };
        Ok(self.folded(classes::single(c)))
    }

    fn octal(&mut self) -> Result<char> {
        let mut number = None;
        for _ in 0..3 {
            let Some(digit) = self.chars.peek().and_then(|c| c.to_digit(8)) else { break };
            let longer = number.unwrap_or(0) * 8 + digit;
            if longer > 0o377 {
                break;
            }
            self.chars.next();
            number = Some(longer);
        }
        number.and_then(char::from_u32).ok_or_else(|| invalid("a \\0 without digits"))
    }

    fn hex(&mut self, digits: usize) -> Result<char> {
        let text: String = (0..digits).filter_map(|_| self.chars.next_if(char::is_ascii_hexdigit)).collect();
        let number = u32::from_str_radix(&text, 16).ok().filter(|_| text.len() == digits);
        let number = number.ok_or_else(|| invalid("a character that is not written well"))?;
        // Two halves make a character beyond the first 65 536.
        if (0xd800..0xdc00).contains(&number) && self.eat("\\u") {
            let text: String = (0..4).filter_map(|_| self.chars.next_if(char::is_ascii_hexdigit)).collect();
            let low = u32::from_str_radix(&text, 16).unwrap_or(0).wrapping_sub(0xdc00);
            return char::from_u32(0x10000 + ((number - 0xd800) << 10) + low).ok_or_else(|| invalid("half a character"));
        }
        char::from_u32(number).ok_or_else(|| Problem::Unsupported("half a character".to_string()))
    }

    /// What follows a `[`.
    fn class(&mut self) -> Result<Set> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Problem::Unsupported(format!("classes nested deeper than {DEPTH_MAX}")));
        }
        let is_negated = self.eat("^");
        let mut whole: Option<Set> = None;
        let mut part = classes::set(&[]);
        let mut is_first = true;
        loop {
            if self.eat("&&") {
                whole = Some(intersection(whole, std::mem::replace(&mut part, classes::set(&[]))));
                is_first = false;
                continue;
            }
            let Some(c) = self.chars.next() else { return Err(invalid("a [ that is not closed")) };
            match c {
                ']' if !is_first => break,
                '[' => part.union(&self.class()?),
                '\\' if self.eat("Q") => {
                    for c in self.quoted().chars() {
                        part.union(&self.folded(classes::single(c)));
                    }
                }
                c => part.union(&self.range(c)?),
            }
            is_first = false;
        }
        self.depth -= 1;
        let class = match whole {
            None => part,
            // Nothing behind the last && leaves what stands before it.
            Some(whole) if part.ranges().is_empty() => whole,
            Some(whole) => intersection(Some(whole), part),
        };
        Ok(if is_negated { classes::negated(class) } else { class })
    }

    /// `a`, `a-z` or an escape in a class.
    fn range(&mut self, c: char) -> Result<Set> {
        let low = match c {
            '\\' => {
                let Some(c) = self.chars.next() else { return Err(invalid("a \\ at the end")) };
                self.escaped(c)?
            }
            c => self.folded(classes::single(c)),
        };
        let mut ahead = self.chars.clone();
        let goes_on = ahead.next() == Some('-') && !matches!(ahead.peek(), None | Some('[' | ']'));
        let (true, Some(start)) = (goes_on, only(&low, c)) else { return Ok(low) };
        self.chars.next();
        let end = match self.chars.next() {
            Some('\\') => {
                let Some(c) = self.chars.next() else { return Err(invalid("a \\ at the end")) };
                let class = self.escaped(c)?;
                only(&class, c).ok_or_else(|| invalid("a range that ends with a class"))?
            }
            Some(c) => c,
            None => return Err(invalid("a [ that is not closed")),
        };
        if end < start {
            return Err(invalid("a range that goes down"));
        }
        Ok(self.folded(classes::set(&[(start, end)])))
    }
}

/// The only character of a set; or the one that was written, when it has another case.
fn only(class: &Set, written: char) -> Option<char> {
    let mut chars = class.ranges().iter().flat_map(|range| range.start()..=range.end());
    match (chars.next(), chars.next(), chars.next()) {
        (Some(c), None, _) => Some(c),
        (Some(a), Some(b), None) if a.eq_ignore_ascii_case(&b) && [a, b].contains(&written) => Some(written),
        _ => None,
    }
}

fn intersection(whole: Option<Set>, part: Set) -> Set {
    match whole {
        None => part,
        Some(mut whole) => {
            whole.intersect(&part);
            whole
        }
    }
}

/// `\R`.
fn line_break() -> Node {
    let character = |c| Node::Class(classes::single(c));
    let any = classes::set(&[('\n', '\r'), ('\u{85}', '\u{85}'), ('\u{2028}', '\u{2029}')]);
    Node::Choice(vec![Node::Sequence(vec![character('\r'), character('\n')]), Node::Class(any)])
}
