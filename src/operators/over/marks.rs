//! Marks in partitions: the accumulators over the first so many rows, so that a fold over frames without a start need not begin with the
//! first row. They follow from the rows and are no state of their own.

use crate::error::Result;
use crate::expr::AggregateSet;

/// Rows between two marks.
pub(super) const STEP: usize = 64;

/// Rows of a partition from which on there is a mark behind the last one.
const END_MARK_FROM: usize = 16;

/// Marks of all partitions.
pub(super) struct Marks {
    pub(super) accumulators: AggregateSet,
    /// For each partition the positions of its marks, rising, with the group of their accumulators.
    partitions: Vec<Vec<(u32, u32)>>,
    /// Groups that are free.
    free: Vec<u32>,
    num_groups: u32,
}

impl Marks {
    /// None yet; `accumulators` has no group.
    pub(super) fn new(accumulators: AggregateSet) -> Self {
        Marks { accumulators, partitions: Vec::new(), free: Vec::new(), num_groups: 0 }
    }

    /// The last mark of a partition that is not behind a position: where it is, and its group.
    pub(super) fn before(&self, partition: u32, position: usize) -> Option<(usize, u32)> {
        let marks = self.partitions.get(partition as usize)?;
        let at = marks.partition_point(|(mark, _)| *mark as usize <= position);
        marks[..at].last().map(|(mark, group)| (*mark as usize, *group))
    }

    /// Whether a partition of so many rows gets a mark behind the last one.
    pub(super) fn wants_end(len: usize) -> bool {
        len >= END_MARK_FROM
    }

    /// Makes a mark behind all others of its partition; its group is empty.
    pub(super) fn add(&mut self, partition: u32, position: usize) -> u32 {
        if self.partitions.len() <= partition as usize {
            self.partitions.resize_with(partition as usize + 1, Vec::new);
        }
        let group = self.free.pop().unwrap_or_else(|| {
            self.num_groups += 1;
            self.accumulators.resize(self.num_groups as usize);
            self.num_groups - 1
        });
        self.partitions[partition as usize].push((position as u32, group));
        group
    }

    /// Whether there is a mark at a position.
    pub(super) fn is_at(&self, partition: u32, position: usize) -> bool {
        self.before(partition, position).is_some_and(|(mark, _)| mark == position)
    }

    /// The first rows of a partition are as they were, those from a position on are not.
    pub(super) fn cut(&mut self, partition: u32, position: usize) -> Result<()> {
        self.keep(partition, |mark| mark <= position)
    }

    /// Takes away the mark that stood behind the last row.
    pub(super) fn drop_end(&mut self, partition: u32) -> Result<()> {
        self.keep(partition, |mark| mark.is_multiple_of(STEP))
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let marks = self.num_groups as usize * size_of::<(u32, u32)>();
        self.accumulators.bytes() + marks + self.partitions.capacity() * size_of::<Vec<(u32, u32)>>()
    }

    fn keep(&mut self, partition: u32, is_kept: impl Fn(usize) -> bool) -> Result<()> {
        let Some(marks) = self.partitions.get_mut(partition as usize) else { return Ok(()) };
        let mut gone = Vec::new();
        marks.retain(|(mark, group)| {
            let kept = is_kept(*mark as usize);
            if !kept {
                gone.push(*group);
            }
            kept
        });
        self.accumulators.clear(&gone)?;
        self.free.extend(gone);
        Ok(())
    }
}
