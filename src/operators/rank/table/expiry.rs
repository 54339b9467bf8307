//! What a rank forgets in time: a partition that no row came to for so long as a whole; of an input that takes rows back also rows that
//! are not visible, so long after they came. What is shown stays true. A row that is over is not shown, to the millisecond, though it is
//! swept an eighth of the time later at most.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::ArrayRef;

use super::super::keys::RankKey;
use super::super::ranked_list::Wanted;
use super::{RankTable, hash_of};
use crate::error::Result;
use crate::operators::state_ttl::{KeyTtl, RowTtl};
use crate::runtime::OperatorContext;
use crate::runtime::state::RowId;
use crate::stream_graph::RankEnd;
use crate::types::{Batch, hash_columns};

impl<K: RankKey> RankTable<K> {
    /// The same with the time to live of the operator.
    pub(in crate::operators) fn with_ttl(self, context: &OperatorContext) -> Self {
        RankTable { ttl: KeyTtl::new(context, 0), ..self.with_ttl_of_hidden_rows(context) }
    }

    /// The same, but what is visible stays however long no row comes.
    pub(in crate::operators) fn with_ttl_of_hidden_rows(self, context: &OperatorContext) -> Self {
        let some_are_hidden = self.row_hashes.is_some() && self.end != RankEnd::Constant(u64::MAX);
        let row_ttl = if some_are_hidden { RowTtl::new(context, 0) } else { None };
        RankTable { row_ttl, ..self }
    }

    /// When [`Self::expire`] has something to forget.
    pub(in crate::operators) fn next_timer(&self) -> Option<i64> {
        let of_rows = self.row_ttl.as_ref().and_then(RowTtl::next_timer);
        let of_partitions = self.ttl.as_ref().and_then(KeyTtl::next_timer);
        of_partitions.into_iter().chain(of_rows).min()
    }

    /// Forgets the partitions whose time is over, and rows that are not visible.
    pub(in crate::operators) fn expire(&mut self) -> Result<()> {
        let over = self.ttl.as_mut().map(KeyTtl::tick).unwrap_or_default();
        self.forget(&over);
        let over = self.row_ttl.as_mut().map(RowTtl::tick).unwrap_or_default();
        if over.is_empty() {
            return Ok(());
        }
        let mut shown: HashMap<u32, HashSet<RowId>> = HashMap::new();
        let stay = self.take_out(&over, |table, group, id| {
            let first = || table.lists[group as usize].entries(0).take(table.end_of(group)).map(|entry| entry.id).collect();
            shown.entry(group).or_insert_with(first).contains(&id)
        })?;
        if let Some(ttl) = &mut self.row_ttl {
            ttl.spare(&stay);
        }
        self.release(&[]);
        Ok(())
    }

    /// Forgets the rows that are over among those that would become visible; whether there were some. They can be read until
    /// [`Self::release`].
    pub(in crate::operators) fn forget_over(&mut self, before: &[RowId], after: &[RowId]) -> Result<bool> {
        let Some(ttl) = &mut self.row_ttl else { return Ok(false) };
        let mut over: Vec<RowId> = after.iter().copied().filter(|id| id.is_some() && ttl.is_over(*id)).collect();
        if !over.is_empty() {
            let before: HashSet<&RowId> = before.iter().collect();
            over.retain(|id| !before.contains(id));
        }
        if over.is_empty() {
            return Ok(false);
        }
        ttl.count_expired(over.len());
        self.take_out(&over, |_, _, _| false)?;
        Ok(true)
    }

    /// Takes rows out of their lists but those that stay, which it gives.
    fn take_out(&mut self, ids: &[RowId], mut stays: impl FnMut(&Self, u32, RowId) -> bool) -> Result<Vec<RowId>> {
        let rows = Batch::new(self.store.take(ids)?, ids.len());
        let partitions: Vec<ArrayRef> = self.partition_keys.iter().map(|key| Arc::clone(rows.column(*key))).collect();
        hash_columns(&partitions, rows.num_rows(), &mut self.hashes);
        let mut groups = Vec::new();
        self.groups.assign(&partitions, &self.hashes, &mut groups)?;
        let keys = self.encoder.encode(rows.columns())?;
        let mut hashes = Vec::new();
        hash_columns(rows.columns(), rows.num_rows(), &mut hashes);
        let mut stay = Vec::new();
        for (row, (id, group)) in ids.iter().zip(&groups).enumerate() {
            if stays(self, *group, *id) {
                stay.push(*id);
                continue;
            }
            let list = &mut self.lists[*group as usize];
            self.list_bytes -= list.heap_bytes();
            let key = K::of(keys.bytes(row));
            let wanted = Wanted { key: &key, hash: hashes[row], hash_of: &hash_of(&self.row_hashes), id: Some(*id) };
            if let Some(entry) = list.remove(&wanted) {
                self.key_bytes -= entry.key.heap_bytes();
                if let Some(ends) = &mut self.own_ends {
                    ends.remove(*group, entry.id);
                }
                self.dropped.push(entry.id);
            }
            self.list_bytes += list.heap_bytes();
        }
        Ok(stay)
    }

    /// Forgets whole partitions.
    pub(super) fn forget(&mut self, groups: &[u32]) {
        let mut gone = Vec::new();
        for group in groups {
            let list = std::mem::take(&mut self.lists[*group as usize]);
            self.list_bytes -= list.heap_bytes();
            self.key_bytes -= list.key_bytes();
            let from = gone.len();
            list.ids(0, usize::MAX, &mut gone);
            if let Some(ends) = &mut self.own_ends {
                gone[from..].iter().for_each(|id| ends.remove(*group, *id));
            }
        }
        self.dropped.extend(gone);
        self.release(&[]);
        self.groups.remove(groups);
    }
}
