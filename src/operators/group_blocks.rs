//! Groups as they are frozen: in blocks of neighbouring numbers, most of which need not be given anew.
//!
//! ```text
//!   keys that changed since the last snapshot ─▶ rows, which the checkpoint has for itself
//!   else                                      ─▶ a piece of keys, and beside it their values:
//!        values that changed since then              rows, which the checkpoint has for itself
//!        else                                        a piece too
//! ```
//!
//! A piece is given with its rows until a checkpoint that has it is complete, and as its number after that. So keys are written once or twice
//! in all, and values as often as they change, however many checkpoints there are.

use std::ops::Range;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::Schema;

use crate::error::{Error, Result};
use crate::expr::GroupKeys;
use crate::runtime::{Beside, FrozenState, StatePiece, StateSink, TakeBatch};

/// Groups of a block: so many that those of a large table are few, so few that those that rest are found.
const BLOCK_GROUPS: usize = 1 << BLOCK_BITS;
/// Unit tests have small blocks, so that a few groups fill several.
const BLOCK_BITS: u32 = if cfg!(test) { 3 } else { 14 };
/// Blocks whose rows are given as one batch at most.
const BATCH_BLOCKS: usize = 4;

/// Gives the contents of a table of state their numbers, each once.
#[derive(Debug, Default)]
pub(super) struct ContentNumbers(u64);

impl ContentNumbers {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// What is known of the blocks of a table of groups.
#[derive(Debug, Default)]
pub(super) struct GroupBlocks {
    keys: Vec<Content>,
    values: Vec<Content>,
    keys_changed: Vec<bool>,
    values_changed: Vec<bool>,
}

/// The keys of a block, or its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// They change: no piece.
    Changing,
    /// A piece that no checkpoint is known to have.
    Piece(u64),
    /// A piece that the last complete checkpoint has.
    Kept(u64),
}

impl Content {
    /// What a snapshot says of it that is taken now.
    fn freeze(&mut self, has_changed: &mut bool, numbers: &mut ContentNumbers) -> Content {
        if std::mem::take(has_changed) {
            *self = Content::Changing;
        } else if *self == Content::Changing {
            *self = Content::Piece(numbers.next());
        }
        *self
    }
}

/// What a snapshot says of a stretch of groups.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    groups: Range<u32>,
    keys: Content,
    values: Content,
}

impl GroupBlocks {
    /// These groups get keys, or lose them.
    pub(super) fn note_keys(&mut self, groups: &[u32], num_groups: usize) {
        self.resize(num_groups);
        groups.iter().for_each(|group| self.keys_changed[(*group >> BLOCK_BITS) as usize] = true);
    }

    /// The values of these groups change.
    pub(super) fn note_values(&mut self, groups: &[u32], num_groups: usize) {
        self.resize(num_groups);
        groups.iter().for_each(|group| self.values_changed[(*group >> BLOCK_BITS) as usize] = true);
    }

    fn resize(&mut self, num_groups: usize) {
        let blocks = num_groups.div_ceil(BLOCK_GROUPS);
        if self.keys.len() < blocks {
            self.keys.resize(blocks, Content::Changing);
            self.values.resize(blocks, Content::Changing);
            self.keys_changed.resize(blocks, false);
            self.values_changed.resize(blocks, false);
        }
    }

    /// What a snapshot says that is taken now, in the order of the groups.
    pub(super) fn freeze(&mut self, numbers: &mut ContentNumbers) -> Vec<Stretch> {
        let mut stretches: Vec<Stretch> = Vec::new();
        for block in 0..self.keys.len() {
            let groups = (block << BLOCK_BITS) as u32..((block + 1) << BLOCK_BITS) as u32;
            let keys = self.keys[block].freeze(&mut self.keys_changed[block], numbers);
            // Where keys change, so do values.
            self.values_changed[block] |= keys == Content::Changing;
            let values = self.values[block].freeze(&mut self.values_changed[block], numbers);
            let joins = |last: &&mut Stretch| last.keys == Content::Changing && last.groups.len() < BATCH_BLOCKS * BLOCK_GROUPS;
            match stretches.last_mut().filter(joins) {
                Some(last) if keys == Content::Changing => last.groups.end = groups.end,
                _ => stretches.push(Stretch { groups, keys, values }),
            }
        }
        stretches
    }

    /// The last snapshot is part of a complete checkpoint.
    pub(super) fn snapshot_completed(&mut self) {
        for content in self.keys.iter_mut().chain(&mut self.values) {
            if let Content::Piece(number) = *content {
                *content = Content::Kept(number);
            }
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.keys.capacity() * 2 * (size_of::<Content>() + size_of::<bool>())
    }
}

/// Gives the rows of some groups.
type RowsOf<'a> = &'a dyn Fn(&[u32]) -> Result<RecordBatch>;

/// How the rows of some groups are made.
pub(super) struct GroupRows<'a> {
    /// Key groups, and the columns that change with the keys only.
    pub(super) keys: RowsOf<'a>,
    /// A Boolean column that is true, and those that come after the others; none = there are no such columns.
    pub(super) values: Option<RowsOf<'a>>,
}

/// Groups, frozen.
#[derive(Debug, Default)]
pub(super) struct FrozenGroups(Vec<FrozenStretch>);

#[derive(Debug)]
enum FrozenStretch {
    Rows(RecordBatch),
    Piece { content: u64, keys: Option<RecordBatch>, beside: Option<Beside> },
}

impl FrozenGroups {
    /// Adds stretches of the groups of `keys`.
    pub(super) fn add(&mut self, stretches: &[Stretch], keys: &GroupKeys, rows: &GroupRows<'_>) -> Result<()> {
        // Where groups were removed, not all numbers have one.
        let all = if keys.len() < keys.num_groups() { Some(keys.groups()) } else { None };
        for stretch in stretches {
            let Range { start, end } = stretch.groups;
            let groups: &dyn Fn() -> Vec<u32> = match &all {
                Some(all) => {
                    let place = |group: u32| all.partition_point(|other| *other < group);
                    let there = &all[place(start)..place(end)];
                    if there.is_empty() {
                        continue;
                    }
                    &|| there.to_vec()
                }
                None => &|| (start..end.min(keys.num_groups() as u32)).collect(),
            };
            self.0.push(freeze(stretch, groups, rows)?);
        }
        Ok(())
    }
}

fn freeze(stretch: &Stretch, groups: &dyn Fn() -> Vec<u32>, rows: &GroupRows<'_>) -> Result<FrozenStretch> {
    let keys = || (rows.keys)(&groups());
    let content = match stretch.keys {
        Content::Changing => {
            let groups = groups();
            let values = rows.values.map(|values| values(&groups)).transpose()?;
            return Ok(FrozenStretch::Rows(side_by_side((rows.keys)(&groups)?, values.as_ref())?));
        }
        Content::Piece(content) | Content::Kept(content) => content,
    };
    let keys = if stretch.keys == Content::Kept(content) { None } else { Some(keys()?) };
    let Some(values) = rows.values else { return Ok(FrozenStretch::Piece { content, keys, beside: None }) };
    let beside = match stretch.values {
        Content::Changing => Beside::Rows(values(&groups())?),
        Content::Piece(content) => Beside::Piece { content, rows: Some(values(&groups())?) },
        Content::Kept(content) => Beside::Piece { content, rows: None },
    };
    Ok(FrozenStretch::Piece { content, keys, beside: Some(beside) })
}

/// Keys and, behind them, values without their first column.
fn side_by_side(keys: RecordBatch, values: Option<&RecordBatch>) -> Result<RecordBatch> {
    let Some(values) = values else { return Ok(keys) };
    let fields = keys.schema_ref().fields().iter().chain(values.schema_ref().fields().iter().skip(1)).cloned();
    let columns: Vec<ArrayRef> = keys.columns().iter().chain(&values.columns()[1..]).cloned().collect();
    Ok(RecordBatch::try_new(std::sync::Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns)?)
}

impl FrozenState for FrozenGroups {
    fn for_each_batch(&self, take: &mut TakeBatch<'_>) -> Result<()> {
        let known_elsewhere = || Error::internal("only a complete checkpoint has these groups");
        for stretch in &self.0 {
            match stretch {
                FrozenStretch::Rows(rows) => take(rows.clone())?,
                FrozenStretch::Piece { keys, beside, .. } => {
                    let values = match beside {
                        None => None,
                        Some(Beside::Rows(rows) | Beside::Piece { rows: Some(rows), .. }) => Some(rows),
                        Some(Beside::Piece { rows: None, .. }) => return Err(known_elsewhere()),
                    };
                    take(side_by_side(keys.clone().ok_or_else(known_elsewhere)?, values)?)?;
                }
            }
        }
        Ok(())
    }

    fn write(&self, sink: &mut dyn StateSink) -> Result<()> {
        for stretch in &self.0 {
            match stretch {
                FrozenStretch::Rows(rows) => sink.rows(rows.clone())?,
                FrozenStretch::Piece { content, keys, beside } => {
                    let rows = keys.as_ref().map(|keys| || Ok(keys.clone()));
                    let rows = rows.as_ref().map(|rows| rows as &dyn Fn() -> Result<RecordBatch>);
                    sink.piece(StatePiece { content: *content, beside: beside.clone(), rows })?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Content::{Changing, Kept, Piece};
    use super::*;

    const BLOCK: u32 = BLOCK_GROUPS as u32;

    fn stretch(blocks: Range<u32>, keys: Content, values: Content) -> Stretch {
        Stretch { groups: blocks.start * BLOCK..blocks.end * BLOCK, keys, values }
    }

    #[test]
    fn what_rests_becomes_a_piece_and_is_given_until_a_checkpoint_has_it() {
        let (mut blocks, mut numbers) = (GroupBlocks::default(), ContentNumbers::default());
        let groups: Vec<u32> = (0..2 * BLOCK).collect();
        blocks.note_keys(&groups, groups.len());
        blocks.note_values(&groups, groups.len());
        assert_eq!(blocks.freeze(&mut numbers), [stretch(0..2, Changing, Changing)]);
        blocks.note_values(&[BLOCK + 1], groups.len());
        let second = blocks.freeze(&mut numbers);
        assert_eq!(second, [stretch(0..1, Piece(1), Piece(2)), stretch(1..2, Piece(3), Changing)]);
        // That checkpoint failed.
        blocks.note_values(&[0], groups.len());
        let third = blocks.freeze(&mut numbers);
        assert_eq!(third, [stretch(0..1, Piece(1), Changing), stretch(1..2, Piece(3), Piece(4))]);
        blocks.snapshot_completed();
        blocks.note_keys(&[0], groups.len());
        let fourth = blocks.freeze(&mut numbers);
        assert_eq!(fourth, [stretch(0..1, Changing, Changing), stretch(1..2, Kept(3), Kept(4))]);
    }

    #[test]
    fn new_groups_make_new_blocks() {
        let (mut blocks, mut numbers) = (GroupBlocks::default(), ContentNumbers::default());
        blocks.note_keys(&[0], 1);
        assert_eq!(blocks.freeze(&mut numbers), [stretch(0..1, Changing, Changing)]);
        blocks.note_keys(&[BLOCK], BLOCK as usize + 1);
        assert_eq!(blocks.freeze(&mut numbers), [stretch(0..1, Piece(1), Piece(2)), stretch(1..2, Changing, Changing)]);
    }
}
