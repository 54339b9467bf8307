//! Finds a kept row by its content: how a row that is taken back is known again.

use arrow::array::ArrayRef;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::side::take_rows;
use crate::error::Result;
use crate::operators::change_rows::Differ;
use crate::runtime::state::{RowAttribute, RowId, RowStore};
use crate::types::hash_columns;

/// Rows by the hash of all their columns. Rows of one hash, nearly always equal ones, make a list.
#[derive(Debug)]
pub(super) struct RowLookup {
    table: HashTable<RowId>,
    hashes: RowAttribute<u64>,
    /// The next row of the same hash.
    twins: RowAttribute<RowId>,
    /// The row before in the list of the key.
    before: RowAttribute<RowId>,
}

impl Default for RowLookup {
    fn default() -> Self {
        RowLookup {
            table: HashTable::new(),
            hashes: RowAttribute::new(0),
            twins: RowAttribute::new(RowId::NONE),
            before: RowAttribute::new(RowId::NONE),
        }
    }
}

impl RowLookup {
    pub(super) fn before(&self, id: RowId) -> RowId {
        self.before.get(id)
    }

    pub(super) fn set_before(&mut self, id: RowId, before: RowId) {
        self.before.set(id, before);
    }

    /// Rows that are kept from now on.
    pub(super) fn add(&mut self, ids: &[RowId], columns: &[ArrayRef]) {
        let mut hashes = Vec::new();
        hash_columns(columns, ids.len(), &mut hashes);
        ids.iter().zip(hashes).for_each(|(id, hash)| self.add_row(*id, hash));
    }

    fn add_row(&mut self, id: RowId, hash: u64) {
        let RowLookup { table, hashes, twins, .. } = self;
        hashes.set(id, hash);
        match table.entry(hash, |other| hashes.get(*other) == hash, |other| hashes.get(*other)) {
            Entry::Occupied(mut entry) => {
                twins.set(id, *entry.get());
                *entry.get_mut() = id;
            }
            Entry::Vacant(entry) => {
                twins.set(id, RowId::NONE);
                entry.insert(id);
            }
        }
    }

    /// For each of these rows one that is kept and equal, with the number of the row; they are no longer found from now on.
    pub(super) fn remove(&mut self, rows: &RowStore, columns: &[ArrayRef], num_rows: usize) -> Result<Vec<(usize, RowId)>> {
        let mut hashes = Vec::new();
        hash_columns(columns, num_rows, &mut hashes);
        let mut found = Vec::with_capacity(num_rows);
        for (row, hash) in hashes.iter().enumerate() {
            if let Some(id) = self.first(*hash) {
                self.unlink(*hash, RowId::NONE, id);
                found.push((row, id));
            }
        }
        let numbers: Vec<u32> = found.iter().map(|(row, _)| *row as u32).collect();
        let ids: Vec<RowId> = found.iter().map(|(_, id)| *id).collect();
        let differ = Differ::new(&rows.take(&ids)?, &take_rows(columns, &numbers)?)?;
        let wrong: Vec<(usize, RowId)> =
            found.iter().enumerate().filter(|(at, _)| differ.differs(*at)).map(|(_, found)| *found).collect();
        if !wrong.is_empty() {
            found.retain(|pair| !wrong.contains(pair));
            wrong.iter().for_each(|(row, id)| self.add_row(*id, hashes[*row]));
            for (row, _) in wrong {
                found.extend(self.remove_among_twins(rows, columns, row, hashes[row])?.map(|id| (row, id)));
            }
        }
        Ok(found)
    }

    /// The same for one row, where different rows have one hash.
    fn remove_among_twins(&mut self, rows: &RowStore, columns: &[ArrayRef], row: usize, hash: u64) -> Result<Option<RowId>> {
        let wanted = take_rows(columns, &[row as u32])?;
        let (mut former, mut next) = (RowId::NONE, self.first(hash));
        while let Some(id) = next {
            if !Differ::new(&rows.take(&[id])?, &wanted)?.differs(0) {
                self.unlink(hash, former, id);
                return Ok(Some(id));
            }
            (former, next) = (id, Some(self.twins.get(id)).filter(|id| id.is_some()));
        }
        Ok(None)
    }

    fn first(&self, hash: u64) -> Option<RowId> {
        self.table.find(hash, |id| self.hashes.get(*id) == hash).copied()
    }

    /// Takes a row out of the list of its hash; `former` is the one before it.
    fn unlink(&mut self, hash: u64, former: RowId, id: RowId) {
        let RowLookup { table, hashes, twins, .. } = self;
        let next = twins.get(id);
        if former.is_some() {
            return twins.set(former, next);
        }
        let Ok(mut entry) = table.find_entry(hash, |other| hashes.get(*other) == hash) else { return };
        if next.is_some() {
            *entry.get_mut() = next;
        } else {
            entry.remove();
        }
    }

    /// These rows are no longer found.
    pub(super) fn forget(&mut self, ids: &[RowId]) {
        for id in ids {
            let hash = self.hashes.get(*id);
            let (mut former, mut next) = (RowId::NONE, self.first(hash));
            while let Some(other) = next.filter(|other| other.is_some()) {
                if other == *id {
                    self.unlink(hash, former, other);
                    break;
                }
                (former, next) = (other, Some(self.twins.get(other)));
            }
        }
    }

    /// Forgets chunks without rows.
    pub(super) fn release(&mut self, chunks: &[usize]) {
        self.hashes.release(chunks);
        self.twins.release(chunks);
        self.before.release(chunks);
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.table.allocation_size() + self.hashes.bytes() + self.twins.bytes() + self.before.bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Array;
    use arrow::datatypes::DataType;

    use super::*;

    fn numbers(numbers: &[i64]) -> Vec<ArrayRef> {
        vec![Arc::new(Int64Array::from(numbers.to_vec()))]
    }

    fn lookup_of(values: &[i64]) -> (RowStore, RowLookup, Vec<RowId>) {
        let (mut rows, mut ids) = (RowStore::new(&[DataType::Int64]).unwrap(), Vec::new());
        rows.append(&numbers(values), values.len(), &mut ids).unwrap();
        (rows, RowLookup::default(), ids)
    }

    #[test]
    fn equal_rows_are_found_as_often_as_they_are_there() {
        let (rows, mut lookup, ids) = lookup_of(&[1, 2, 1]);
        lookup.add(&ids, &numbers(&[1, 2, 1]));
        let found = lookup.remove(&rows, &numbers(&[1, 3, 1, 1, 2]), 5).unwrap();
        let rows_found: Vec<usize> = found.iter().map(|(row, _)| *row).collect();
        assert_eq!(rows_found, [0, 2, 4]);
        assert_eq!(lookup.remove(&rows, &numbers(&[2]), 1).unwrap(), []);
    }

    #[test]
    fn different_rows_of_one_hash_are_told_apart() {
        let (rows, mut lookup, ids) = lookup_of(&[1, 2, 3]);
        let mut hashes = Vec::new();
        hash_columns(&numbers(&[2]), 1, &mut hashes);
        ids.iter().for_each(|id| lookup.add_row(*id, hashes[0]));
        assert_eq!(lookup.remove(&rows, &numbers(&[2]), 1).unwrap(), [(0, ids[1])]);
        assert_eq!(lookup.remove(&rows, &numbers(&[2]), 1).unwrap(), []);
    }
}
