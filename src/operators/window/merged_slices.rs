//! Slices that lie side by side, merged beforehand: what a window of many slices is made of.
//!
//! A window of an hour that hops by a second has 3,600 slices, and the next one shares all but one of them. So slices are merged two by
//! two, those pairs two by two again, as far as windows contain them: a window is then some twenty tables, and a slice is merged once in
//! each size. Blocks whose groups have little in common are left apart, since together they would take as much memory again.
//!
//! All of it can be made anew from the slices, so it is no state of its own. Rows that still come to a slice forget the blocks with it.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;

use super::assigner::WindowAssigner;
use super::slices::SliceKey;
use crate::error::Result;
use crate::operators::group_table::GroupTable;

/// With fewer slices a window is merged from them.
const SLICES_MIN: i64 = 8;

/// Blocks of merged slices, of windows that hop.
#[derive(Default)]
pub(super) struct MergedSlices {
    grid: Option<Grid>,
    /// By where they start, and how many doublings they are of a slice.
    blocks: BTreeMap<(i64, u32), Block>,
}

/// Where slices lie.
#[derive(Debug, Clone, Copy)]
struct Grid {
    offset: i64,
    length: i64,
}

enum Block {
    Merged(Box<GroupTable>),
    /// Merging saves too little.
    Apart,
}

/// A part of a window, to be merged with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Slice(SliceKey),
    Block(i64, u32),
}

/// What makes an empty table, for keys of these types.
pub(super) type MakeTable<'a> = &'a dyn Fn(&[DataType]) -> Result<GroupTable>;

impl MergedSlices {
    /// For these windows, if they have many slices each and it does not matter in what groups those are merged.
    pub(super) fn new(assigner: Option<WindowAssigner>, merges_exactly: bool) -> Self {
        let grid = match assigner {
            Some(WindowAssigner::Hopping { size, slice, offset, .. }) if merges_exactly && size / slice >= SLICES_MIN => {
                Some(Grid { offset, length: slice })
            }
            _ => None,
        };
        MergedSlices { grid, blocks: BTreeMap::new() }
    }

    /// Whether windows are made of blocks.
    pub(super) fn is_used(&self) -> bool {
        self.grid.is_some()
    }

    /// Rows have come to a slice: what was merged with it is not so any more.
    pub(super) fn forget(&mut self, slice: SliceKey) {
        let Some(grid) = self.grid.filter(|_| !self.blocks.is_empty()) else { return };
        let index = grid.index(slice.start);
        let levels = self.blocks.keys().map(|(_, level)| *level).max().unwrap_or(0);
        for level in 1..=levels {
            self.blocks.remove(&(grid.start(index >> level << level), level));
        }
    }

    /// No window begins before this any more.
    pub(super) fn close(&mut self, start: i64) {
        while let Some(block) = self.blocks.first_entry()
            && block.key().0 < start
        {
            block.remove();
        }
    }

    /// Gives `emit` the groups of the window that begins and ends at these times.
    pub(super) fn window(
        &mut self,
        slices: &BTreeMap<SliceKey, GroupTable>,
        (start, end): (i64, i64),
        make: MakeTable<'_>,
        emit: impl FnOnce(&GroupTable) -> Result<()>,
    ) -> Result<()> {
        let Some(grid) = self.grid else { return Ok(()) };
        let (mut at, end) = (grid.index(start), grid.index(end));
        let mut parts = Vec::new();
        while at < end {
            let level = at.trailing_zeros().min((end - at).ilog2());
            self.collect(grid, slices, (at, level), make, &mut parts)?;
            at += 1 << level;
        }
        match parts[..] {
            [] => Ok(()),
            [part] => emit(self.table(slices, part)),
            _ => emit(&self.merge(slices, &parts, make)?),
        }
    }

    /// Adds what the block of 2^level slices from the `first` one on is made of.
    fn collect(
        &mut self,
        grid: Grid,
        slices: &BTreeMap<SliceKey, GroupTable>,
        (first, level): (i64, u32),
        make: MakeTable<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<()> {
        let (start, end) = (grid.start(first), grid.start(first + (1 << level)));
        let within = SliceKey { end: start.saturating_add(1), start: i64::MIN }..=SliceKey { end, start: i64::MAX };
        let mut within = slices.range(within).map(|(slice, _)| *slice);
        let Some(slice) = within.next() else { return Ok(()) };
        if within.next().is_none() {
            parts.push(Part::Slice(slice));
            return Ok(());
        }
        let halves = [(first, level - 1), (first + (1 << (level - 1)), level - 1)];
        match self.blocks.get(&(start, level)) {
            Some(Block::Merged(_)) => parts.push(Part::Block(start, level)),
            Some(Block::Apart) => {
                halves.into_iter().try_for_each(|half| self.collect(grid, slices, half, make, parts))?;
            }
            None => {
                let from = parts.len();
                halves.into_iter().try_for_each(|half| self.collect(grid, slices, half, make, parts))?;
                let merged = self.merge(slices, &parts[from..], make)?;
                let apart: usize = parts[from..].iter().map(|part| self.table(slices, *part).bytes()).sum();
                // So all sizes together take twice what the slices take, at most.
                let pays = merged.bytes() / 2 <= apart / 3;
                if pays {
                    parts.truncate(from);
                    parts.push(Part::Block(start, level));
                }
                self.blocks.insert((start, level), if pays { Block::Merged(Box::new(merged)) } else { Block::Apart });
            }
        }
        Ok(())
    }

    fn merge(&self, slices: &BTreeMap<SliceKey, GroupTable>, parts: &[Part], make: MakeTable<'_>) -> Result<GroupTable> {
        let mut merged = make(&self.table(slices, parts[0]).key_types()?)?;
        parts.iter().try_for_each(|part| merged.merge_table(self.table(slices, *part)))?;
        Ok(merged)
    }

    fn table<'a>(&'a self, slices: &'a BTreeMap<SliceKey, GroupTable>, part: Part) -> &'a GroupTable {
        match part {
            Part::Slice(slice) => &slices[&slice],
            Part::Block(start, level) => match &self.blocks[&(start, level)] {
                Block::Merged(table) => table,
                Block::Apart => unreachable!("a block that is left apart is no part"),
            },
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let bytes = |block: &Block| match block {
            Block::Merged(table) => table.bytes(),
            Block::Apart => 0,
        };
        self.blocks.values().map(bytes).sum()
    }
}

impl Grid {
    /// The number of the slice that begins at this time.
    fn index(&self, start: i64) -> i64 {
        (start - self.offset).div_euclid(self.length)
    }

    fn start(&self, index: i64) -> i64 {
        index * self.length + self.offset
    }
}
