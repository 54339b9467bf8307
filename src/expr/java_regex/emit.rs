//! [`Node`] → the syntax of the `regex` crate, for what an automaton can match.

use std::fmt::Write;

use super::classes::Set;
use super::parse::{Greed, Node, Place};

/// A pattern of the `regex` crate.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) pattern: String,
    /// Whether it has a `$`, which here is the very end of the text.
    pub(super) ends_text: bool,
}

/// The pattern; none = no automaton can match it.
pub(super) fn to_regex(node: &Node) -> Option<Written> {
    let mut written = Written::default();
    written.write(node)?;
    Some(written)
}

impl Written {
    fn write(&mut self, node: &Node) -> Option<()> {
        match node {
            Node::Empty => self.pattern.push_str("(?:)"),
            Node::Class(class) => self.class(class),
            Node::Sequence(nodes) => nodes.iter().try_for_each(|node| self.write(node))?,
            Node::Choice(nodes) => {
                self.pattern.push_str("(?:");
                for (index, node) in nodes.iter().enumerate() {
                    self.pattern.push_str(if index > 0 { "|" } else { "" });
                    self.write(node)?;
                }
                self.pattern.push(')');
            }
            Node::Repeat { kind: Greed::Possessive, .. } => return None,
            Node::Repeat { node, least, most, kind } => {
                self.pattern.push_str("(?:");
                self.write(node)?;
                self.pattern.push(')');
                match (least, most) {
                    (0, None) => self.pattern.push('*'),
                    (1, None) => self.pattern.push('+'),
                    (0, Some(1)) => self.pattern.push('?'),
                    (least, None) => write!(self.pattern, "{{{least},}}").ok()?,
                    (least, Some(most)) => write!(self.pattern, "{{{least},{most}}}").ok()?,
                }
                self.pattern.push_str(if *kind == Greed::Lazy { "?" } else { "" });
            }
            Node::Group(node, _) => {
                self.pattern.push('(');
                self.write(node)?;
                self.pattern.push(')');
            }
            Node::Place(place) => self.place(*place)?,
            Node::Atomic(_) | Node::Look { .. } | Node::Back { .. } => return None,
        }
        Some(())
    }

    fn class(&mut self, class: &Set) {
        match class.ranges() {
            [only] if only.start() == only.end() => {
                self.pattern.push_str(&regex::escape(only.start().encode_utf8(&mut [0; 4])));
            }
            [] => self.pattern.push_str(r"[^\x{0}-\x{10FFFF}]"),
            ranges => {
                self.pattern.push('[');
                for range in ranges {
                    let _ = write!(self.pattern, r"\x{{{:X}}}-\x{{{:X}}}", range.start() as u32, range.end() as u32);
                }
                self.pattern.push(']');
            }
        }
    }

    fn place(&mut self, place: Place) -> Option<()> {
        self.pattern.push_str(match place {
            Place::Start => r"\A",
            Place::End => r"\z",
            Place::EndOfText => {
                self.ends_text = true;
                r"\z"
            }
            Place::WordBorder => r"\b",
            Place::NoWordBorder => r"\B",
            Place::StartOfLine | Place::EndOfLine | Place::LastEnd => return None,
        });
        Some(())
    }
}
