//! Rows found by the hash of their key: a table of hashes, and for each a chain of rows, the newest first.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// The end of a chain.
const NONE: u32 = u32::MAX;

/// Rows, numbered as they came, by the hash of their key.
#[derive(Debug, Default)]
pub(super) struct KeyIndex {
    /// Hash and newest row.
    heads: HashTable<(u64, u32)>,
    /// For each row the one before it with the same hash.
    next: Vec<u32>,
}

impl KeyIndex {
    /// Adds the next row.
    #[inline]
    pub(super) fn push(&mut self, hash: u64) {
        let row = self.next.len() as u32;
        match self.heads.entry(hash, |(known, _)| *known == hash, |(known, _)| *known) {
            Entry::Occupied(mut entry) => {
                let head = &mut entry.get_mut().1;
                self.next.push(*head);
                *head = row;
            }
            Entry::Vacant(entry) => {
                entry.insert((hash, row));
                self.next.push(NONE);
            }
        }
    }

    /// The rows with this hash, the newest first.
    #[inline]
    pub(super) fn rows(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.heads.find(hash, |(known, _)| *known == hash).map_or(NONE, |(_, row)| *row);
        std::iter::from_fn(move || {
            let row = at;
            (row != NONE).then(|| {
                at = self.next[row as usize];
                row
            })
        })
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.heads.capacity() * (size_of::<(u64, u32)>() + 1) + self.next.capacity() * size_of::<u32>()
    }
}
