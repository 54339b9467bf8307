//! [`Node`] → instructions of the backtracking matcher.

use super::classes::Set;
use super::parse::{Greed, Node, Parsed, Place};

/// An instruction. Targets are places in the program.
#[derive(Debug, Clone)]
pub(super) enum Op {
    /// A character of a set, and on.
    Class(Set),
    /// On here, and if that leads nowhere, there.
    Split(usize, usize),
    Jump(usize),
    /// Notes the place in a slot.
    Save(usize),
    Place(Place),
    Back {
        group: usize,
        any_case: bool,
    },
    /// Fails if nothing was matched since the place in a slot: a loop over nothing ends.
    Progress(usize),
    /// Runs the part up to the target, which ends with [`Op::Done`], for what it matches first.
    Atomic(usize),
    /// Runs the part up to the target for whether it matches.
    Look {
        end: usize,
        behind: bool,
        negative: bool,
    },
    /// The end of the program or of a part of it.
    Done,
}

/// A program and how many slots it has: two a group, those of the whole match first, then those of loops.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) ops: Vec<Op>,
    pub(super) slots: usize,
}

/// Programs are not longer: repetitions are written out.
const OPS_MAX: usize = 100_000;

impl Program {
    /// Of a pattern; none = it would be too long.
    pub(super) fn new(parsed: &Parsed) -> Option<Self> {
        let mut program = Program { ops: Vec::new(), slots: 2 * (parsed.groups + 1) };
        program.write(&parsed.node)?;
        program.ops.push(Op::Done);
        Some(program)
    }

    fn push(&mut self, op: Op) -> Option<usize> {
        self.ops.push(op);
        (self.ops.len() <= OPS_MAX).then_some(self.ops.len() - 1)
    }

    fn write(&mut self, node: &Node) -> Option<()> {
        match node {
            Node::Empty => {}
            Node::Class(class) => {
                self.push(Op::Class(class.clone()))?;
            }
            Node::Sequence(nodes) => nodes.iter().try_for_each(|node| self.write(node))?,
            Node::Choice(nodes) => {
                let mut jumps = Vec::new();
                for (index, node) in nodes.iter().enumerate() {
                    if index + 1 == nodes.len() {
                        self.write(node)?;
                        break;
                    }
                    let split = self.push(Op::Done)?;
                    self.write(node)?;
                    jumps.push(self.push(Op::Done)?);
                    self.ops[split] = Op::Split(split + 1, self.ops.len());
                }
                let end = self.ops.len();
                jumps.into_iter().for_each(|jump| self.ops[jump] = Op::Jump(end));
            }
            Node::Group(node, group) => {
                self.push(Op::Save(2 * group))?;
                self.write(node)?;
                self.push(Op::Save(2 * group + 1))?;
            }
            Node::Atomic(node) => self.part(Op::Atomic, |program| program.write(node))?,
            Node::Look { node, behind, negative } => {
                self.part(|end| Op::Look { end, behind: *behind, negative: *negative }, |program| program.write(node))?;
            }
            Node::Repeat { node, least, most, kind: Greed::Possessive } => {
                self.part(Op::Atomic, |program| program.repeat(node, *least, *most, false))?;
            }
            Node::Repeat { node, least, most, kind } => self.repeat(node, *least, *most, *kind == Greed::Lazy)?,
            Node::Back { group, any_case } => {
                self.push(Op::Back { group: *group, any_case: *any_case })?;
            }
            Node::Place(place) => {
                self.push(Op::Place(*place))?;
            }
        }
        Some(())
    }

    /// A part that is run by itself.
    fn part(&mut self, op: impl FnOnce(usize) -> Op, write: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        let start = self.push(Op::Done)?;
        write(self)?;
        self.push(Op::Done)?;
        self.ops[start] = op(self.ops.len());
        Some(())
    }

    fn repeat(&mut self, node: &Node, least: u32, most: Option<u32>, is_lazy: bool) -> Option<()> {
        for _ in 0..least {
            self.write(node)?;
        }
        let choose =
            |inside: usize, outside: usize| if is_lazy { Op::Split(outside, inside) } else { Op::Split(inside, outside) };
        let Some(most) = most else {
            let slot = self.slots;
            self.slots += 1;
            let split = self.push(Op::Done)?;
            self.push(Op::Save(slot))?;
            self.write(node)?;
            self.push(Op::Progress(slot))?;
            self.push(Op::Jump(split))?;
            self.ops[split] = choose(split + 1, self.ops.len());
            return Some(());
        };
        let mut splits = Vec::new();
        for _ in least..most {
            splits.push(self.push(Op::Done)?);
            self.write(node)?;
        }
        let end = self.ops.len();
        splits.into_iter().for_each(|split| self.ops[split] = choose(split + 1, end));
        Some(())
    }
}
