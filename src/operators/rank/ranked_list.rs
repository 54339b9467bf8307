//! The rows of a partition in their order, as ids beside their keys.
//!
//! A partition mostly has few rows: one stretch of memory. A long one is a [`LongList`].

use crate::runtime::state::RowId;

use super::keys::RankKey;
use super::long_list::{BLOCK_MAX, LongList};

/// A row with its key.
#[derive(Debug, Clone)]
pub(super) struct Entry<K> {
    pub(super) key: K,
    pub(super) id: RowId,
    /// Rises with every row of the table: of rows with one key the earlier one has the lesser.
    pub(super) arrival: u32,
}

/// A row that is looked for, by what is known of it.
pub(super) struct Wanted<'a, K> {
    pub(super) key: &'a K,
    /// The hash of its content.
    pub(super) hash: u64,
    /// The hashes of all rows.
    pub(super) hash_of: &'a dyn Fn(RowId) -> u64,
    /// The row itself, where it is known; else any with the key and the hash.
    pub(super) id: Option<RowId>,
}

impl<K: RankKey> Wanted<'_, K> {
    pub(super) fn is(&self, entry: &Entry<K>) -> bool {
        match self.id {
            Some(id) => entry.id == id,
            None => (self.hash_of)(entry.id) == self.hash,
        }
    }
}

/// Rows in their order.
#[derive(Debug, Clone)]
pub(super) enum RankedList<K> {
    Short(Vec<Entry<K>>),
    Long(Box<LongList<K>>),
}

impl<K> Default for RankedList<K> {
    fn default() -> Self {
        RankedList::Short(Vec::new())
    }
}

impl<K: RankKey> RankedList<K> {
    /// How many rows.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            RankedList::Short(entries) => entries.len(),
            RankedList::Long(list) => list.len(),
        }
    }

    /// The last row.
    #[inline]
    pub(super) fn last(&self) -> Option<&Entry<K>> {
        match self {
            RankedList::Short(entries) => entries.last(),
            RankedList::Long(list) => list.last(),
        }
    }

    /// Puts a row in: after those with its key, or before them. `hash_of`: the hashes of rows that can be taken back.
    pub(super) fn insert(&mut self, entry: Entry<K>, before_equals: bool, hash_of: &dyn Fn(RowId) -> u64) {
        match self {
            RankedList::Short(entries) => {
                let goes_before = |other: &Entry<K>| if before_equals { other.key < entry.key } else { other.key <= entry.key };
                let at = entries.partition_point(goes_before);
                entries.insert(at, entry);
                if entries.len() > 2 * BLOCK_MAX {
                    *self = RankedList::Long(Box::new(LongList::new(entries)));
                }
            }
            RankedList::Long(list) => list.insert(entry, before_equals, hash_of),
        }
    }

    /// Takes the last row out.
    pub(super) fn pop_last(&mut self) -> Option<Entry<K>> {
        match self {
            RankedList::Short(entries) => entries.pop(),
            RankedList::Long(list) => {
                let last = list.pop_last();
                self.join_if_short();
                last
            }
        }
    }

    /// Takes the first rows out.
    pub(super) fn remove_first(&mut self, count: usize) -> Vec<Entry<K>> {
        match self {
            RankedList::Short(entries) => entries.drain(..count.min(entries.len())).collect(),
            RankedList::Long(list) => {
                let removed = list.remove_first(count);
                self.join_if_short();
                removed
            }
        }
    }

    /// A list that has become short is one stretch again.
    fn join_if_short(&mut self) {
        if let RankedList::Long(list) = self
            && list.len() <= BLOCK_MAX / 2
        {
            *self = RankedList::Short(list.take_all());
        }
    }

    /// Takes out the first row that is the wanted one.
    pub(super) fn remove(&mut self, wanted: &Wanted<'_, K>) -> Option<Entry<K>> {
        match self {
            RankedList::Short(entries) => {
                let from = entries.partition_point(|other| other.key < *wanted.key);
                let ties = entries[from..].iter().take_while(|entry| entry.key == *wanted.key);
                let at = from + ties.into_iter().position(|entry| wanted.is(entry))?;
                Some(entries.remove(at))
            }
            RankedList::Long(list) => {
                let removed = list.remove(wanted);
                self.join_if_short();
                removed
            }
        }
    }

    /// Gives the rows the least numbers of arrival that keep their order.
    pub(super) fn renumber(&mut self) {
        let number = |(at, entry): (usize, &mut Entry<K>)| entry.arrival = at as u32;
        match self {
            RankedList::Short(entries) => entries.iter_mut().enumerate().for_each(number),
            RankedList::Long(list) => list.entries_mut().enumerate().for_each(number),
        }
    }

    /// Adds the ids of `take` rows after the first `skip` ones to `ids`.
    pub(super) fn ids(&self, skip: usize, take: usize, ids: &mut Vec<RowId>) {
        match self {
            RankedList::Short(entries) => ids.extend(entries.iter().skip(skip).take(take).map(|entry| entry.id)),
            RankedList::Long(list) => ids.extend(list.entries(skip).take(take).map(|entry| entry.id)),
        }
    }

    /// How many rows come before those with a key, or where `after_equals` before the first one behind them.
    pub(super) fn position(&self, key: &K, after_equals: bool) -> usize {
        let goes_before = |other: &Entry<K>| if after_equals { other.key <= *key } else { other.key < *key };
        match self {
            RankedList::Short(entries) => entries.partition_point(goes_before),
            RankedList::Long(list) => list.position(goes_before),
        }
    }

    /// The rows from a position on.
    pub(super) fn entries(&self, from: usize) -> Box<dyn Iterator<Item = &Entry<K>> + '_> {
        match self {
            RankedList::Short(entries) => Box::new(entries[from.min(entries.len())..].iter()),
            RankedList::Long(list) => Box::new(list.entries(from)),
        }
    }

    /// Bytes of long keys.
    pub(super) fn key_bytes(&self) -> usize {
        self.entries(0).map(|entry| entry.key.heap_bytes()).sum()
    }

    /// Bytes beside its own, those of long keys apart.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            RankedList::Short(entries) => entries.capacity() * size_of::<Entry<K>>(),
            RankedList::Long(list) => list.heap_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

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
        let order: HashMap<RowId, usize> = ids.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let hash_of = |id: RowId| order[&id] as u64 % 500;
        let mut random = fastrand::Rng::with_seed(7);
        let mut list: RankedList<[u64; 2]> = RankedList::default();
        let mut model: Vec<([u64; 2], RowId)> = Vec::new();
        for (step, id) in ids.iter().enumerate() {
            // Growing to thousands, shrinking to nothing, growing again.
            let grows = step % 3_000 < 2_000;
            if grows || model.is_empty() {
                // Few keys: long runs of rows that are equal in order.
                let key = [random.u64(0..40).saturating_sub(30), 0];
                let at = model.partition_point(|(other, _)| *other <= key);
                model.insert(at, (key, *id));
                list.insert(Entry { key, id: *id, arrival: step as u32 }, false, &hash_of);
            } else {
                for _ in 0..2 {
                    let Some((key, victim)) = (!model.is_empty()).then(|| model.remove(random.usize(0..model.len()))) else {
                        break;
                    };
                    // Every third row is taken for another of the same content.
                    let id = (step % 3 > 0).then_some(victim);
                    let wanted = Wanted { key: &key, hash: hash_of(victim), hash_of: &hash_of, id };
                    let removed = list.remove(&wanted).unwrap().id;
                    assert!(removed == victim || id.is_none() && hash_of(removed) == hash_of(victim));
                    if removed != victim {
                        // The first of them goes: the model keeps the other one.
                        let first = model.iter().position(|(other, id)| *other == key && *id == removed).unwrap();
                        let earlier = model[..first].iter().any(|(other, id)| *other == key && hash_of(*id) == hash_of(removed));
                        assert!(!earlier);
                        model.remove(first);
                        let at = model.partition_point(|(other, id)| *other < key || *other == key && order[id] < order[&victim]);
                        model.insert(at, (key, victim));
                    }
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
