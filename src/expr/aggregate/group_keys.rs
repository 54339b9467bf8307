//! Keys → dense group numbers: one hash a row comes in, one number a row goes out, and the keys can be read back as columns.
//!
//! Keys of up to 16 bytes of fixed-width columns are packed into a number and compared at once; texts, and more columns, are compared
//! column by column; nested values by Arrow's row format. Numbers of removed groups are used again. NULL is a key like any other.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::key_columns::KeyColumns;
use super::packed_keys::PackedLayout;
use crate::error::Result;

/// Keys with their dense group numbers.
#[derive(Debug)]
pub struct GroupKeys {
    store: Store,
    table: HashTable<u32>,
    /// The hash of each group's key.
    hashes: Vec<u64>,
    /// Numbers of removed groups.
    free: Vec<u32>,
    /// Groups that the last [`GroupKeys::assign`] made.
    fresh: Vec<u32>,
}

#[derive(Debug)]
enum Store {
    /// No key column: there is one key.
    Single,
    /// Fixed-width columns packed into 8 bytes.
    Packed64(PackedLayout, Vec<u64>),
    /// Fixed-width columns packed into 16 bytes.
    Packed128(PackedLayout, Vec<u128>),
    /// Texts and fixed-width columns, side by side.
    Columns(KeyColumns),
    /// Any columns, as rows.
    Rows { converter: Box<RowConverter>, keys: Vec<Box<[u8]>>, bytes: usize },
}

impl GroupKeys {
    /// For key columns of these Arrow types.
    pub fn new(types: &[DataType]) -> Result<Self> {
        let store = match PackedLayout::of(types) {
            _ if types.is_empty() => Store::Single,
            Some(layout) if layout.bits() <= 64 => Store::Packed64(layout, Vec::new()),
            Some(layout) => Store::Packed128(layout, Vec::new()),
            None => match KeyColumns::new(types) {
                Some(columns) => Store::Columns(columns),
                None => {
                    let fields = types.iter().map(|data_type| SortField::new(data_type.clone())).collect();
                    Store::Rows { converter: Box::new(RowConverter::new(fields)?), keys: Vec::new(), bytes: 0 }
                }
            },
        };
        Ok(GroupKeys { store, table: HashTable::new(), hashes: Vec::new(), free: Vec::new(), fresh: Vec::new() })
    }

    /// The group of each row, in place of what `groups` held; keys that are new get a group. `hashes` are those of
    /// [`crate::types::hash_columns`] over `columns`.
    pub fn assign(&mut self, columns: &[ArrayRef], hashes: &[u64], groups: &mut Vec<u32>) -> Result<()> {
        groups.clear();
        self.fresh.clear();
        let GroupKeys { store, table, hashes: group_hashes, free, fresh } = self;
        let mut slots = Slots { table, group_hashes, free, fresh };
        match store {
            Store::Single => slots.assign(hashes, groups, &mut (), |(), _, _| true, |(), _, _| ()),
            Store::Packed64(layout, keys) => {
                let rows = layout.pack64(columns, hashes.len());
                slots.assign(
                    hashes,
                    groups,
                    keys,
                    |keys, group, row| keys[group] == rows[row],
                    |keys, group, row| {
                        put(keys, group, rows[row]);
                    },
                );
            }
            Store::Packed128(layout, keys) => {
                let rows = layout.pack128(columns, hashes.len());
                slots.assign(
                    hashes,
                    groups,
                    keys,
                    |keys, group, row| keys[group] == rows[row],
                    |keys, group, row| {
                        put(keys, group, rows[row]);
                    },
                );
            }
            Store::Columns(keys) => {
                let rows = KeyColumns::rows(columns);
                slots.assign(
                    hashes,
                    groups,
                    keys,
                    |keys, group, row| keys.equal(group, &rows, row),
                    |keys, group, row| keys.put(group, &rows, row),
                );
            }
            Store::Rows { converter, keys, bytes } => {
                let rows = converter.convert_columns(columns)?;
                let value = |row: usize| rows.row(row).data();
                slots.assign(
                    hashes,
                    groups,
                    keys,
                    |keys, group, row| *keys[group] == *value(row),
                    |keys, group, row| {
                        *bytes += value(row).len();
                        put(keys, group, Box::from(value(row)));
                    },
                );
            }
        }
        Ok(())
    }

    /// The groups that the last [`GroupKeys::assign`] made.
    pub fn fresh(&self) -> &[u32] {
        &self.fresh
    }

    /// One more than the greatest group number ever given: what accumulators are resized to.
    pub fn num_groups(&self) -> usize {
        self.hashes.len()
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The groups of all keys, rising.
    pub fn groups(&self) -> Vec<u32> {
        if self.table.len() == self.hashes.len() {
            return (0..self.hashes.len() as u32).collect();
        }
        let mut has_key = vec![true; self.hashes.len()];
        self.free.iter().for_each(|group| has_key[*group as usize] = false);
        (0..).zip(has_key).filter(|(_, has_key)| *has_key).map(|(group, _)| group).collect()
    }

    /// The hash of a group's key.
    pub fn hash(&self, group: u32) -> u64 {
        self.hashes[group as usize]
    }

    /// The keys of these groups as columns.
    pub fn keys(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(match &self.store {
            Store::Single => Vec::new(),
            Store::Packed64(layout, keys) => layout.unpack(groups.iter().map(|group| u128::from(keys[*group as usize]))),
            Store::Packed128(layout, keys) => layout.unpack(groups.iter().map(|group| keys[*group as usize])),
            Store::Columns(keys) => keys.columns(groups),
            Store::Rows { converter, keys, .. } => {
                let parser = converter.parser();
                converter.convert_rows(groups.iter().map(|group| parser.parse(&keys[*group as usize])))?
            }
        })
    }

    /// Removes these groups; their numbers will be used again.
    pub fn remove(&mut self, groups: &[u32]) {
        for group in groups {
            let found = self.table.find_entry(self.hashes[*group as usize], |other| other == group);
            found.expect("only groups that exist are removed").remove();
            match &mut self.store {
                Store::Columns(keys) => keys.remove(*group as usize),
                Store::Rows { keys, bytes, .. } => *bytes -= std::mem::take(&mut keys[*group as usize]).len(),
                Store::Single | Store::Packed64(..) | Store::Packed128(..) => {}
            }
        }
        self.free.extend_from_slice(groups);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let keys = match &self.store {
            Store::Single => 0,
            Store::Packed64(_, keys) => keys.capacity() * size_of::<u64>(),
            Store::Packed128(_, keys) => keys.capacity() * size_of::<u128>(),
            Store::Columns(keys) => keys.bytes(),
            Store::Rows { keys, bytes, .. } => keys.capacity() * size_of::<Box<[u8]>>() + bytes,
        };
        keys + self.table.allocation_size() + self.hashes.capacity() * size_of::<u64>()
    }
}

/// The parts of a [`GroupKeys`] that hold no keys.
struct Slots<'a> {
    table: &'a mut HashTable<u32>,
    group_hashes: &'a mut Vec<u64>,
    free: &'a mut Vec<u32>,
    fresh: &'a mut Vec<u32>,
}

impl Slots<'_> {
    fn assign<K>(
        &mut self,
        hashes: &[u64],
        groups: &mut Vec<u32>,
        keys: &mut K,
        equal: impl Fn(&K, usize, usize) -> bool,
        mut store: impl FnMut(&mut K, usize, usize),
    ) {
        groups.reserve(hashes.len());
        for (row, hash) in hashes.iter().enumerate() {
            let group_hashes = &*self.group_hashes;
            let same = |group: &u32| group_hashes[*group as usize] == *hash && equal(keys, *group as usize, row);
            let group = match self.table.entry(*hash, same, |group| group_hashes[*group as usize]) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    let group = self.free.pop().unwrap_or(self.group_hashes.len() as u32);
                    entry.insert(group);
                    put(self.group_hashes, group as usize, *hash);
                    store(keys, group as usize, row);
                    self.fresh.push(group);
                    group
                }
            };
            groups.push(group);
        }
    }
}

/// Sets the value of a group that exists or is the next one.
pub(super) fn put<T>(values: &mut Vec<T>, group: usize, value: T) {
    if group == values.len() {
        values.push(value);
    } else {
        values[group] = value;
    }
}
