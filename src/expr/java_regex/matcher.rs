//! Runs a program over a text, trying one way after another as Java does, for a bounded number of steps.

use super::classes::contains;
use super::parse::Place;
use super::program::{Op, Program};

/// Steps that one search may take. Java has no bound: such a pattern keeps a task busy for ever.
const STEPS_MAX: u64 = 20_000_000;

/// A search that took too many steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exhausted;

/// A way that was not taken yet, or what it has to find as it was.
enum Undo {
    Way { op: usize, at: usize },
    Slot { slot: usize, was: Option<usize> },
}

/// One search.
pub(super) struct Matcher<'a> {
    program: &'a Program,
    text: &'a str,
    /// Where the search began.
    from: usize,
    pub(super) slots: Vec<Option<usize>>,
    steps: u64,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(program: &'a Program, text: &'a str) -> Self {
        Matcher { program, text, from: 0, slots: vec![None; program.slots], steps: 0 }
    }

    /// The first match that begins at `from` or later: its places are in the first two slots.
    pub(super) fn find(&mut self, from: usize) -> Result<bool, Exhausted> {
        self.from = from;
        let mut start = from;
        loop {
            self.slots.fill(None);
            if let Some(end) = self.run(0, start, None)? {
                (self.slots[0], self.slots[1]) = (Some(start), Some(end));
                return Ok(true);
            }
            match self.text[start..].chars().next() {
                Some(c) => start += c.len_utf8(),
                None => return Ok(false),
            }
        }
    }

    /// Where the part of the program from `op` on ends, when it begins at `start`; with `until`, only an end there counts.
    fn run(&mut self, op: usize, start: usize, until: Option<usize>) -> Result<Option<usize>, Exhausted> {
        let (mut op, mut at) = (op, start);
        let mut undo: Vec<Undo> = Vec::new();
        loop {
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return Err(Exhausted);
            }
            let next = match &self.program.ops[op] {
                Op::Done if until.is_none_or(|until| until == at) => return Ok(Some(at)),
                Op::Done => None,
                Op::Class(class) => match self.text[at..].chars().next() {
                    Some(c) if contains(class, c) => Some((op + 1, at + c.len_utf8())),
                    _ => None,
                },
                Op::Split(first, second) => {
                    undo.push(Undo::Way { op: *second, at });
                    Some((*first, at))
                }
                Op::Jump(target) => Some((*target, at)),
                Op::Save(slot) => {
                    undo.push(Undo::Slot { slot: *slot, was: self.slots[*slot] });
                    self.slots[*slot] = Some(at);
                    Some((op + 1, at))
                }
                Op::Progress(slot) => (self.slots[*slot] != Some(at)).then_some((op + 1, at)).or(Some((op + 2, at))),
                Op::Place(place) => self.is_at(*place, at).then_some((op + 1, at)),
                Op::Back { group, any_case } => self.back(*group, *any_case, at).map(|at| (op + 1, at)),
                Op::Atomic(end) => {
                    let (end, before) = (*end, self.slots.clone());
                    match self.run(op + 1, at, None)? {
                        Some(after) => {
                            note_changes(&before, &self.slots, &mut undo);
                            Some((end, after))
                        }
                        None => None,
                    }
                }
                Op::Look { end, behind, negative } => {
                    let (end, negative, before) = (*end, *negative, self.slots.clone());
                    let found = if *behind { self.ends_here(op + 1, at)? } else { self.run(op + 1, at, None)?.is_some() };
                    if negative {
                        self.slots = before;
                    } else {
                        note_changes(&before, &self.slots, &mut undo);
                    }
                    (found != negative).then_some((end, at))
                }
            };
            match next {
                Some(next) => (op, at) = next,
                None => loop {
                    match undo.pop() {
                        None => return Ok(None),
                        Some(Undo::Slot { slot, was }) => self.slots[slot] = was,
                        Some(Undo::Way { op: other, at: place }) => {
                            (op, at) = (other, place);
                            break;
                        }
                    }
                },
            }
        }
    }

    /// Whether a part matches what ends at a place.
    fn ends_here(&mut self, op: usize, at: usize) -> Result<bool, Exhausted> {
        let starts = (0..=at).rev().filter(|start| self.text.is_char_boundary(*start));
        for start in starts {
            if self.run(op, start, Some(at))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Where the text that a group has matched ends when it stands here again. A group that has matched nothing is nowhere.
    fn back(&self, group: usize, any_case: bool, at: usize) -> Option<usize> {
        let (start, end) = (self.slots.get(2 * group).copied()??, self.slots.get(2 * group + 1).copied()??);
        let known = &self.text[start..end];
        let here = self.text.get(at..at + known.len())?;
        (here == known || any_case && here.eq_ignore_ascii_case(known)).then_some(at + known.len())
    }

    fn is_at(&self, place: Place, at: usize) -> bool {
        let (before, behind) = (&self.text[..at], &self.text[at..]);
        match place {
            Place::Start => at == 0,
            Place::End => behind.is_empty(),
            Place::LastEnd => at == self.from,
            Place::EndOfText => is_final_line_end(before, behind),
            Place::EndOfLine => behind.is_empty() || starts_line_end(before, behind),
            // Not behind the line end that ends the text.
            Place::StartOfLine => {
                at == 0 || (!behind.is_empty() && ends_line(before) && !(before.ends_with('\r') && behind.starts_with('\n')))
            }
            Place::WordBorder => self.is_border(at),
            Place::NoWordBorder => !self.is_border(at),
        }
    }

    fn is_border(&self, at: usize) -> bool {
        let is_word = |c: Option<char>| c.is_some_and(|c| c == '_' || c.is_alphanumeric());
        is_word(self.text[..at].chars().next_back()) != is_word(self.text[at..].chars().next())
    }
}

/// Notes what has to be as it was when a part is taken back.
fn note_changes(before: &[Option<usize>], after: &[Option<usize>], undo: &mut Vec<Undo>) {
    let changed = before.iter().zip(after).enumerate().filter(|(_, (before, after))| before != after);
    undo.extend(changed.map(|(slot, (was, _))| Undo::Slot { slot, was: *was }));
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn ends_line(before: &str) -> bool {
    before.chars().next_back().is_some_and(is_line_end)
}

fn starts_line_end(before: &str, behind: &str) -> bool {
    behind.chars().next().is_some_and(is_line_end) && !(before.ends_with('\r') && behind.starts_with('\n'))
}

/// Whether nothing but one line end is left.
fn is_final_line_end(before: &str, behind: &str) -> bool {
    let mut left = behind.chars();
    match (left.next(), left.next(), left.next()) {
        (None, ..) => true,
        (Some('\r'), Some('\n'), None) => true,
        (Some(c), None, _) => is_line_end(c) && !(c == '\n' && before.ends_with('\r')),
        _ => false,
    }
}

/// Whether a text ends with a line end.
pub(super) fn ends_with_line_end(text: &str) -> bool {
    ends_line(text)
}
