//! The rows of a partition in their order, as ids beside their keys.
//!
//! A partition mostly has few rows: one stretch of memory. A long list is kept in blocks, so that a row that comes in moves a block's
//! worth of others at most.

use crate::runtime::state::RowId;

use super::keys::RankKey;

/// Entries of a block at most; a list of up to two blocks is one stretch.
const BLOCK_MAX: usize = 512;

/// A row with its key.
#[derive(Debug, Clone)]
pub(super) struct Entry<K> {
    pub(super) key: K,
    pub(super) id: RowId,
}

/// Rows in their order.
#[derive(Debug, Clone)]
pub(super) struct RankedList<K> {
    /// No block is empty; there may be none.
    blocks: Blocks<K>,
}

#[derive(Debug, Clone)]
enum Blocks<K> {
    One(Vec<Entry<K>>),
    Many { blocks: Vec<Vec<Entry<K>>>, len: usize },
}

impl<K> Default for RankedList<K> {
    fn default() -> Self {
        RankedList { blocks: Blocks::One(Vec::new()) }
    }
}

impl<K: RankKey> RankedList<K> {
    /// How many rows.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match &self.blocks {
            Blocks::One(entries) => entries.len(),
            Blocks::Many { len, .. } => *len,
        }
    }

    /// The last row.
    #[inline]
    pub(super) fn last(&self) -> Option<&Entry<K>> {
        match &self.blocks {
            Blocks::One(entries) => entries.last(),
            Blocks::Many { blocks, .. } => blocks.last()?.last(),
        }
    }

    /// Puts a row in: after those with its key, or before them.
    pub(super) fn insert(&mut self, entry: Entry<K>, before_equals: bool) {
        let goes_before = |other: &Entry<K>| if before_equals { other.key < entry.key } else { other.key <= entry.key };
        match &mut self.blocks {
            Blocks::One(entries) => {
                let at = entries.partition_point(goes_before);
                entries.insert(at, entry);
                if entries.len() > 2 * BLOCK_MAX {
                    self.break_up();
                }
            }
            Blocks::Many { blocks, len } => {
                let all_before = |block: &Vec<Entry<K>>| block.last().is_some_and(goes_before);
                let at = blocks.partition_point(all_before).min(blocks.len() - 1);
                let block = &mut blocks[at];
                let place = block.partition_point(goes_before);
                block.insert(place, entry);
                *len += 1;
                if block.len() > BLOCK_MAX {
                    let upper = block.split_off(BLOCK_MAX / 2);
                    blocks.insert(at + 1, upper);
                }
            }
        }
    }

    fn break_up(&mut self) {
        if let Blocks::One(entries) = &mut self.blocks {
            let len = entries.len();
            let blocks = entries.chunks(BLOCK_MAX / 2).map(<[_]>::to_vec).collect();
            self.blocks = Blocks::Many { blocks, len };
        }
    }

    /// Takes the last row out.
    pub(super) fn pop_last(&mut self) -> Option<Entry<K>> {
        match &mut self.blocks {
            Blocks::One(entries) => entries.pop(),
            Blocks::Many { blocks, .. } => {
                let at = blocks.len().checked_sub(1)?;
                let place = blocks[at].len() - 1;
                Some(self.remove_at(at, place))
            }
        }
    }

    /// Takes the first rows out.
    pub(super) fn remove_first(&mut self, count: usize) -> Vec<Entry<K>> {
        match &mut self.blocks {
            Blocks::One(entries) => entries.drain(..count.min(entries.len())).collect(),
            Blocks::Many { blocks, len } => {
                let mut removed = Vec::with_capacity(count);
                while let Some(first) = blocks.first_mut().filter(|_| removed.len() < count) {
                    let from_first = (count - removed.len()).min(first.len());
                    removed.extend(first.drain(..from_first));
                    if first.is_empty() {
                        blocks.remove(0);
                    }
                }
                *len -= removed.len();
                self.join_if_short();
                removed
            }
        }
    }

    /// A list that has become short is one stretch again.
    fn join_if_short(&mut self) {
        if let Blocks::Many { blocks, len } = &mut self.blocks
            && *len <= BLOCK_MAX / 2
        {
            self.blocks = Blocks::One(blocks.drain(..).flatten().collect());
        }
    }

    /// Takes out the first row with this key that `is_it`.
    pub(super) fn remove(&mut self, key: &K, is_it: impl Fn(RowId) -> bool) -> Option<Entry<K>> {
        let is_less = |other: &Entry<K>| other.key < *key;
        let found = match &self.blocks {
            Blocks::One(entries) => {
                let from = entries.partition_point(is_less);
                find(&entries[from..], key, &is_it).map(|at| (0, from + at))
            }
            Blocks::Many { blocks, .. } => {
                let first = blocks.partition_point(|block| block.last().is_some_and(is_less));
                let candidates = blocks.iter().enumerate().skip(first).take_while(|(_, block)| block[0].key <= *key);
                let mut found = candidates.filter_map(|(number, block)| {
                    let from = block.partition_point(is_less);
                    find(&block[from..], key, &is_it).map(|at| (number, from + at))
                });
                found.next()
            }
        };
        let (block, place) = found?;
        Some(self.remove_at(block, place))
    }

    fn remove_at(&mut self, block: usize, place: usize) -> Entry<K> {
        match &mut self.blocks {
            Blocks::One(entries) => entries.remove(place),
            Blocks::Many { blocks, len } => {
                let removed = blocks[block].remove(place);
                *len -= 1;
                if blocks[block].is_empty() {
                    blocks.remove(block);
                }
                self.join_if_short();
                removed
            }
        }
    }

    /// Adds the ids of `take` rows after the first `skip` ones to `ids`.
    pub(super) fn ids(&self, skip: usize, take: usize, ids: &mut Vec<RowId>) {
        match &self.blocks {
            Blocks::One(entries) => ids.extend(entries.iter().skip(skip).take(take).map(|entry| entry.id)),
            Blocks::Many { blocks, .. } => ids.extend(blocks.iter().flatten().skip(skip).take(take).map(|entry| entry.id)),
        }
    }

    /// How many rows come before those with a key, or where `after_equals` before the first one behind them.
    pub(super) fn position(&self, key: &K, after_equals: bool) -> usize {
        let goes_before = |other: &Entry<K>| if after_equals { other.key <= *key } else { other.key < *key };
        match &self.blocks {
            Blocks::One(entries) => entries.partition_point(goes_before),
            Blocks::Many { blocks, .. } => {
                let at = blocks.partition_point(|block| block.last().is_some_and(goes_before));
                let before: usize = blocks[..at].iter().map(Vec::len).sum();
                before + blocks.get(at).map_or(0, |block| block.partition_point(goes_before))
            }
        }
    }

    /// The rows from a position on.
    pub(super) fn entries(&self, from: usize) -> Box<dyn Iterator<Item = &Entry<K>> + '_> {
        match &self.blocks {
            Blocks::One(entries) => Box::new(entries[from.min(entries.len())..].iter()),
            Blocks::Many { blocks, .. } => {
                let (mut at, mut rest) = (0, from);
                while at < blocks.len() && rest >= blocks[at].len() {
                    rest -= blocks[at].len();
                    at += 1;
                }
                let first = blocks.get(at).map_or(&[][..], |block| &block[rest..]);
                Box::new(first.iter().chain(blocks.iter().skip(at + 1).flatten()))
            }
        }
    }

    /// Bytes of long keys.
    pub(super) fn key_bytes(&self) -> usize {
        let of = |entries: &[Entry<K>]| entries.iter().map(|entry| entry.key.heap_bytes()).sum::<usize>();
        match &self.blocks {
            Blocks::One(entries) => of(entries),
            Blocks::Many { blocks, .. } => blocks.iter().map(|block| of(block)).sum(),
        }
    }

    /// Bytes beside its own, those of long keys apart.
    pub(super) fn heap_bytes(&self) -> usize {
        let entries = match &self.blocks {
            Blocks::One(entries) => entries.capacity(),
            // Blocks are three quarters full on average.
            Blocks::Many { len, .. } => len + len / 3,
        };
        entries * size_of::<Entry<K>>()
    }
}

fn find<K: RankKey>(entries: &[Entry<K>], key: &K, is_it: &impl Fn(RowId) -> bool) -> Option<usize> {
    entries.iter().take_while(|entry| entry.key == *key).position(|entry| is_it(entry.id))
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};
    use arrow::datatypes::DataType;

    use super::*;
    use crate::runtime::state::RowStore;

    fn ids(count: usize) -> Vec<RowId> {
        let mut store = RowStore::new(&[DataType::Int64]).unwrap();
        let column: ArrayRef = std::sync::Arc::new(Int64Array::from_value(0, count));
        let mut ids = Vec::new();
        store.append(&[column], count, &mut ids).unwrap();
        ids
    }

    fn assert_positions(list: &RankedList<[u64; 2]>, model: &[([u64; 2], RowId)]) {
        for at in [0, 1, 700, model.len()] {
            let rest: Vec<RowId> = list.entries(at).map(|entry| entry.id).collect();
            assert_eq!(rest, model.iter().skip(at).map(|(_, id)| *id).collect::<Vec<_>>());
        }
        for key in 0..41 {
            assert_eq!(list.position(&[key, 0], false), model.partition_point(|(other, _)| *other < [key, 0]));
            assert_eq!(list.position(&[key, 0], true), model.partition_point(|(other, _)| *other <= [key, 0]));
        }
        for count in [0, 1, 300, 700, 1_900] {
            let mut shorter = list.clone();
            let removed: Vec<RowId> = shorter.remove_first(count).into_iter().map(|entry| entry.id).collect();
            assert_eq!(removed, model.iter().take(count).map(|(_, id)| *id).collect::<Vec<_>>());
            let rest: Vec<RowId> = shorter.entries(0).map(|entry| entry.id).collect();
            assert_eq!(
                (shorter.len(), rest),
                (model.len().saturating_sub(count), model.iter().skip(count).map(|(_, id)| *id).collect())
            );
        }
    }

    #[test]
    fn long_and_short_lists_keep_the_order_of_a_stable_sort() {
        let ids = ids(6_000);
        let mut random = fastrand::Rng::with_seed(7);
        let mut list: RankedList<[u64; 2]> = RankedList::default();
        let mut model: Vec<([u64; 2], RowId)> = Vec::new();
        for (step, id) in ids.iter().enumerate() {
            // Growing to thousands, shrinking to nothing, growing again.
            let grows = step % 3_000 < 2_000;
            if grows || model.is_empty() {
                let key = [random.u64(0..40), 0];
                let at = model.partition_point(|(other, _)| *other <= key);
                model.insert(at, (key, *id));
                list.insert(Entry { key, id: *id }, false);
            } else {
                for _ in 0..2 {
                    let Some((key, victim)) = (!model.is_empty()).then(|| model.remove(random.usize(0..model.len()))) else {
                        break;
                    };
                    assert_eq!(list.remove(&key, |id| id == victim).unwrap().id, victim);
                }
            }
            assert_eq!(list.len(), model.len());
            assert_eq!(list.last().map(|entry| entry.id), model.last().map(|(_, id)| *id));
            if step % 500 == 0 {
                assert_positions(&list, &model);
            }
        }
        let (mut found, expected): (Vec<RowId>, Vec<RowId>) = (Vec::new(), model.iter().map(|(_, id)| *id).collect());
        list.ids(0, usize::MAX, &mut found);
        assert_eq!(found, expected);
        found.clear();
        list.ids(3, 5, &mut found);
        assert_eq!(found, expected.iter().skip(3).take(5).copied().collect::<Vec<_>>());
        while let Some(entry) = list.pop_last() {
            assert_eq!(entry.id, model.pop().unwrap().1);
        }
        assert!(model.is_empty());
    }
}
