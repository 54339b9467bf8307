//! The partitions that a batch touches, and which of their rows were visible before.

use crate::runtime::state::RowId;

/// The partitions that a batch touches, each once, with the rows that were visible before.
#[derive(Debug, Default)]
pub(in crate::operators) struct Touched {
    groups: Vec<u32>,
    /// Where the rows of each start in `before`.
    starts: Vec<usize>,
    before: Vec<RowId>,
    /// For each partition the batch that touched it last.
    stamps: Vec<u32>,
    stamp: u32,
}

impl Touched {
    /// A new batch begins; there are so many partitions.
    pub(in crate::operators) fn begin(&mut self, num_groups: usize) {
        self.groups.clear();
        self.starts.clear();
        self.before.clear();
        self.stamps.resize(num_groups, 0);
        if self.stamp == u32::MAX {
            self.stamps.fill(0);
            self.stamp = 0;
        }
        self.stamp += 1;
    }

    /// A partition is about to change; `visible` adds the rows that are visible now.
    #[inline]
    pub(in crate::operators) fn touch(&mut self, group: u32, visible: impl FnOnce(&mut Vec<RowId>)) {
        let stamp = &mut self.stamps[group as usize];
        if *stamp != self.stamp {
            *stamp = self.stamp;
            self.groups.push(group);
            self.starts.push(self.before.len());
            visible(&mut self.before);
        }
    }

    /// The partitions in the order in which they were touched.
    pub(in crate::operators) fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// The partitions with the rows that were visible before.
    pub(in crate::operators) fn iter(&self) -> impl Iterator<Item = (u32, &[RowId])> {
        let ends = self.starts.iter().skip(1).copied().chain([self.before.len()]);
        self.groups.iter().zip(self.starts.iter().zip(ends)).map(|(group, (start, end))| (*group, &self.before[*start..end]))
    }
}
