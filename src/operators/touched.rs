//! The groups that a batch touches, each once.

/// The groups that a batch touches, each once, in the order of their first rows.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// The groups.
    pub(super) groups: Vec<u32>,
    /// The first row of each.
    pub(super) first_rows: Vec<u32>,
    /// The last row of each.
    pub(super) last_rows: Vec<u32>,
    /// For each group number the batch that touched it last, and its position in `groups`.
    stamps: Vec<(u32, u32)>,
    stamp: u32,
}

impl Touched {
    /// Those of a batch: the group of each of its rows, all below `num_groups`.
    pub(super) fn find(&mut self, groups: &[u32], num_groups: usize) {
        self.groups.clear();
        self.first_rows.clear();
        self.last_rows.clear();
        self.stamps.resize(num_groups, (0, 0));
        if self.stamp == u32::MAX {
            self.stamps.fill((0, 0));
            self.stamp = 0;
        }
        self.stamp += 1;
        for (row, group) in groups.iter().enumerate() {
            let (stamp, position) = &mut self.stamps[*group as usize];
            if *stamp != self.stamp {
                *stamp = self.stamp;
                *position = self.groups.len() as u32;
                self.groups.push(*group);
                self.first_rows.push(row as u32);
                self.last_rows.push(row as u32);
            } else {
                self.last_rows[*position as usize] = row as u32;
            }
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.stamps.capacity() * size_of::<(u32, u32)>()
    }

    /// The position in [`Self::groups`] of a group that is among them.
    pub(super) fn position(&self, group: u32) -> usize {
        self.stamps[group as usize].1 as usize
    }
}
