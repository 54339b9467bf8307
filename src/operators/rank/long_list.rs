//! Many rows of a partition in their order, in blocks, so that a row that comes in moves a block's worth of others at most.
//!
//! A row that is taken back is looked for among those with its key. Where these are many they are also found by the hash of
//! their content: an index is made of a run of them when a row was not among the first, and kept as long as the run is there.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::runtime::state::RowId;

use super::keys::RankKey;
use super::ranked_list::{Entry, Wanted};

/// Entries of a block at most; a list of up to two blocks is one stretch.
pub(super) const BLOCK_MAX: usize = 512;

/// Rows with one key that are looked through before an index of them is made.
const TIES_MAX: usize = 256;

/// About so many bytes an index takes for a row.
const INDEXED_ROW_BYTES: usize = 64;

/// Many rows in their order.
#[derive(Debug, Clone)]
pub(super) struct LongList<K> {
    /// None is empty; there may be none.
    blocks: Vec<Vec<Entry<K>>>,
    len: usize,
    /// Of long runs of rows with one key, by hash: their arrivals, rising.
    ties: BTreeMap<K, HashMap<u64, VecDeque<u32>>>,
    /// Rows in `ties`.
    indexed: usize,
}

impl<K: RankKey> LongList<K> {
    pub(super) fn new(entries: &[Entry<K>]) -> Self {
        let blocks = entries.chunks(BLOCK_MAX / 2).map(<[_]>::to_vec).collect();
        LongList { blocks, len: entries.len(), ties: BTreeMap::new(), indexed: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn last(&self) -> Option<&Entry<K>> {
        self.blocks.last()?.last()
    }

    pub(super) fn insert(&mut self, entry: Entry<K>, before_equals: bool, hash_of: &dyn Fn(RowId) -> u64) {
        if let Some(run) = self.ties.get_mut(&entry.key) {
            run.entry(hash_of(entry.id)).or_default().push_back(entry.arrival);
            self.indexed += 1;
        }
        let goes_before = |other: &Entry<K>| if before_equals { other.key < entry.key } else { other.key <= entry.key };
        let all_before = |block: &Vec<Entry<K>>| block.last().is_some_and(goes_before);
        let Some(last) = self.blocks.len().checked_sub(1) else {
            self.blocks.push(vec![entry]);
            self.len += 1;
            return;
        };
        let at = self.blocks.partition_point(all_before).min(last);
        let block = &mut self.blocks[at];
        let place = block.partition_point(goes_before);
        block.insert(place, entry);
        self.len += 1;
        if block.len() > BLOCK_MAX {
            let upper = block.split_off(BLOCK_MAX / 2);
            self.blocks.insert(at + 1, upper);
        }
    }

    pub(super) fn pop_last(&mut self) -> Option<Entry<K>> {
        self.drop_index();
        let at = self.blocks.len().checked_sub(1)?;
        let place = self.blocks[at].len() - 1;
        Some(self.remove_at((at, place)))
    }

    pub(super) fn remove_first(&mut self, count: usize) -> Vec<Entry<K>> {
        self.drop_index();
        let mut removed = Vec::with_capacity(count.min(self.len));
        let mut emptied = 0;
        for block in &mut self.blocks {
            let from_block = (count - removed.len()).min(block.len());
            removed.extend(block.drain(..from_block));
            if !block.is_empty() {
                break;
            }
            emptied += 1;
        }
        self.blocks.drain(..emptied);
        self.len -= removed.len();
        removed
    }

    /// All entries; the list is empty afterwards.
    pub(super) fn take_all(&mut self) -> Vec<Entry<K>> {
        self.drop_index();
        self.len = 0;
        self.blocks.drain(..).flatten().collect()
    }

    pub(super) fn remove(&mut self, wanted: &Wanted<'_, K>) -> Option<Entry<K>> {
        if !self.ties.contains_key(wanted.key) {
            let first = self.place_of(|other| other.key < *wanted.key);
            let mut ties = self.places_from(first).take_while(|place| self.at(*place).key == *wanted.key);
            if let Some(place) = ties.by_ref().take(TIES_MAX).find(|place| wanted.is(self.at(*place))) {
                drop(ties);
                return Some(self.remove_at(place));
            }
            // Looked through all of them, or too many.
            ties.next()?;
            drop(ties);
            self.index(wanted, first);
        }
        let place = self.find_in_index(wanted)?;
        Some(self.remove_at(place))
    }

    /// Makes the index of the rows with a key.
    fn index(&mut self, wanted: &Wanted<'_, K>, first: (usize, usize)) {
        let mut run: HashMap<u64, VecDeque<u32>> = HashMap::new();
        for place in self.places_from(first).take_while(|place| self.at(*place).key == *wanted.key) {
            let entry = self.at(place);
            run.entry((wanted.hash_of)(entry.id)).or_default().push_back(entry.arrival);
        }
        self.indexed += run.values().map(VecDeque::len).sum::<usize>();
        self.ties.insert(wanted.key.clone(), run);
    }

    /// Where a row is whose key is indexed; it is no longer in the index.
    fn find_in_index(&mut self, wanted: &Wanted<'_, K>) -> Option<(usize, usize)> {
        let mut run = self.ties.remove(wanted.key)?;
        let mut found = None;
        if let Some(arrivals) = run.get_mut(&wanted.hash) {
            let is_it = |arrival: &u32| {
                let place = self.place_of(|other| (&other.key, other.arrival) < (wanted.key, *arrival));
                let entry = self.blocks.get(place.0).and_then(|block| block.get(place.1))?;
                let is_there = entry.key == *wanted.key && entry.arrival == *arrival && wanted.is(entry);
                is_there.then_some(place)
            };
            let at = arrivals.iter().enumerate().find_map(|(at, arrival)| Some((at, is_it(arrival)?)));
            if let Some((at, place)) = at {
                arrivals.remove(at);
                self.indexed -= 1;
                found = Some(place);
            }
            if arrivals.is_empty() {
                run.remove(&wanted.hash);
            }
        }
        if !run.is_empty() {
            self.ties.insert(wanted.key.clone(), run);
        }
        found
    }

    fn drop_index(&mut self) {
        self.ties.clear();
        self.indexed = 0;
    }

    /// The place of the first row that does not go before.
    fn place_of(&self, goes_before: impl Fn(&Entry<K>) -> bool) -> (usize, usize) {
        let at = self.blocks.partition_point(|block| block.last().is_some_and(&goes_before));
        (at, self.blocks.get(at).map_or(0, |block| block.partition_point(goes_before)))
    }

    fn at(&self, (block, place): (usize, usize)) -> &Entry<K> {
        &self.blocks[block][place]
    }

    fn places_from(&self, (first, place): (usize, usize)) -> impl Iterator<Item = (usize, usize)> + '_ {
        let of_block = move |(at, block): (usize, &Vec<Entry<K>>)| {
            let from = if at == first { place } else { 0 };
            (from..block.len()).map(move |place| (at, place))
        };
        self.blocks.iter().enumerate().skip(first).flat_map(of_block)
    }

    fn remove_at(&mut self, (block, place): (usize, usize)) -> Entry<K> {
        let removed = self.blocks[block].remove(place);
        self.len -= 1;
        if self.blocks[block].is_empty() {
            self.blocks.remove(block);
        }
        removed
    }

    /// How many rows go before.
    pub(super) fn position(&self, goes_before: impl Fn(&Entry<K>) -> bool) -> usize {
        let (at, place) = self.place_of(goes_before);
        self.blocks[..at].iter().map(Vec::len).sum::<usize>() + place
    }

    /// The rows from a position on.
    pub(super) fn entries(&self, from: usize) -> impl Iterator<Item = &Entry<K>> {
        let (mut at, mut rest) = (0, from);
        while at < self.blocks.len() && rest >= self.blocks[at].len() {
            rest -= self.blocks[at].len();
            at += 1;
        }
        let first = self.blocks.get(at).map_or(&[][..], |block| &block[rest..]);
        first.iter().chain(self.blocks.iter().skip(at + 1).flatten())
    }

    /// All rows, to be numbered anew.
    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry<K>> {
        self.drop_index();
        self.blocks.iter_mut().flatten()
    }

    /// Bytes beside its own, those of long keys apart.
    pub(super) fn heap_bytes(&self) -> usize {
        // Blocks are three quarters full on average.
        size_of::<Self>() + (self.len + self.len / 3) * size_of::<Entry<K>>() + self.indexed * INDEXED_ROW_BYTES
    }
}
