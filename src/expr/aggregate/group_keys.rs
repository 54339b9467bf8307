//! Keys → dense group numbers: one hash a row comes in, one number a row goes out, and the keys can be read back as columns.
//!
//! Keys of up to 16 bytes of fixed-width columns are packed into a number and compared at once; a single text or byte column is
//! compared by its bytes; everything else by Arrow's row format. Numbers of removed groups are used again. NULL is a key like any other.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

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
    /// One text column (or bytes).
    Text { data_type: DataType, keys: Vec<Option<Box<[u8]>>>, bytes: usize },
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
            None => match types {
                [data_type @ (DataType::Utf8View | DataType::BinaryView)] => {
                    Store::Text { data_type: data_type.clone(), keys: Vec::new(), bytes: 0 }
                }
                _ => {
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
            Store::Text { data_type, keys, bytes } => {
                let values = match data_type {
                    DataType::Utf8View => columns[0].as_string_view().clone().to_binary_view(),
                    _ => columns[0].as_binary_view().clone(),
                };
                let value = |row: usize| values.is_valid(row).then(|| values.value(row));
                slots.assign(
                    hashes,
                    groups,
                    keys,
                    |keys, group, row| keys[group].as_deref() == value(row),
                    |keys, group, row| {
                        *bytes += value(row).map_or(0, <[u8]>::len);
                        put(keys, group, value(row).map(Box::from));
                    },
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
        let mut groups: Vec<u32> = self.table.iter().copied().collect();
        groups.sort_unstable();
        groups
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
            Store::Text { data_type, keys, .. } => {
                let values = groups.iter().map(|group| keys[*group as usize].as_deref());
                vec![text_array(data_type, values)]
            }
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
                Store::Text { keys, bytes, .. } => *bytes -= keys[*group as usize].take().map_or(0, |key| key.len()),
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
            Store::Text { keys, bytes, .. } => keys.capacity() * size_of::<Option<Box<[u8]>>>() + bytes,
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
fn put<T>(values: &mut Vec<T>, group: usize, value: T) {
    if group == values.len() {
        values.push(value);
    } else {
        values[group] = value;
    }
}

fn text_array<'a>(data_type: &DataType, values: impl Iterator<Item = Option<&'a [u8]>>) -> ArrayRef {
    use arrow::array::{BinaryViewArray, StringViewArray};
    if *data_type == DataType::Utf8View {
        let texts = values.map(|value| value.map(|value| std::str::from_utf8(value).expect("it was text when it came")));
        return std::sync::Arc::new(texts.collect::<StringViewArray>());
    }
    std::sync::Arc::new(values.collect::<BinaryViewArray>())
}
