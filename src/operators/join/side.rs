//! One side of a join: its rows, those of each key linked with one another.

use arrow::array::{ArrayRef, AsArray, UInt32Array};
use arrow::compute;
use arrow::datatypes::{DataType, UInt32Type};

use super::key_groups::{JoinKeys, columns_at};
use super::row_lookup::RowLookup;
use crate::error::Result;
use crate::operators::frozen_store::FrozenStore;
use crate::operators::keyed_state::rows_in_range;
use crate::operators::state_ttl::{RowTtl, has_times, split_times};
use crate::runtime::state::{RowAttribute, RowId, RowStore, StoredChunk};
use crate::runtime::{StateTable, StateTableSnapshot};
use crate::types::{KeyGroupRange, Schema};

/// One side of a join. Keys are known by group numbers that both sides share; rows of one key make a list.
#[derive(Debug)]
pub(super) struct JoinSide {
    pub(super) keys: Vec<usize>,
    pub(super) rows: RowStore,
    /// The first row of each key.
    heads: Vec<RowId>,
    next: RowAttribute<RowId>,
    /// How to find a row that is taken back; none = rows are never taken back.
    lookup: Option<RowLookup>,
    /// With how many rows of the other side each row is joined now, where someone has to know.
    partners: Option<RowAttribute<u32>>,
    /// Whether rows were restored that no list has yet.
    unlinked: bool,
    max_parallelism: u32,
    /// Bytes that the keys of both sides take, if this side accounts for them.
    pub(super) key_bytes: usize,
    ttl: Option<RowTtl>,
}

impl JoinSide {
    /// For rows with the columns of `schema`.
    pub(super) fn new(
        schema: &Schema,
        keys: Vec<usize>,
        retracts: bool,
        counts_partners: bool,
        max_parallelism: u32,
    ) -> Result<Self> {
        let types: Vec<DataType> = schema.fields.iter().map(|field| field.data_type.to_arrow()).collect();
        Ok(JoinSide {
            keys,
            rows: RowStore::new(&types)?,
            heads: Vec::new(),
            next: RowAttribute::new(RowId::NONE),
            lookup: retracts.then(RowLookup::default),
            partners: counts_partners.then(|| RowAttribute::new(0)),
            unlinked: false,
            max_parallelism,
            key_bytes: 0,
            ttl: None,
        })
    }

    /// The same with a time to live of its rows.
    pub(super) fn with_ttl(self, ttl: Option<RowTtl>) -> Self {
        JoinSide { ttl, ..self }
    }

    /// When [`Self::expire`] has something to forget.
    pub(super) fn next_timer(&self) -> Option<i64> {
        self.ttl.as_ref()?.next_timer()
    }

    /// Forgets the rows whose time is over; gives their keys, each once. A partner that they had on the other side is not told, as in
    /// Flink: what was joined stays joined.
    pub(super) fn expire(&mut self, join_keys: &mut JoinKeys) -> Result<Vec<u32>> {
        let over = self.ttl.as_mut().map(RowTtl::tick).unwrap_or_default();
        if over.is_empty() {
            return Ok(Vec::new());
        }
        let mut keys = Vec::new();
        join_keys.assign(&self.rows.take_columns(&over, &self.keys)?, over.len(), &mut keys)?;
        keys.sort_unstable();
        keys.dedup();
        keys.iter().for_each(|key| self.unlink_gone(*key));
        if let Some(lookup) = &mut self.lookup {
            lookup.forget(&over);
        }
        self.delete(&over);
        Ok(keys)
    }

    /// Takes the rows that are gone out of the list of a key.
    fn unlink_gone(&mut self, key: u32) {
        let Some(ttl) = &self.ttl else { return };
        let (mut former, mut id) = (RowId::NONE, self.heads[key as usize]);
        self.heads[key as usize] = RowId::NONE;
        while id.is_some() {
            let next = self.next.get(id);
            if !ttl.is_gone(id) {
                match former.is_some() {
                    true => self.next.set(former, id),
                    false => self.heads[key as usize] = id,
                }
                if let Some(lookup) = &mut self.lookup {
                    lookup.set_before(id, former);
                }
                former = id;
            }
            id = next;
        }
        if former.is_some() {
            self.next.set(former, RowId::NONE);
        }
    }

    /// Lets go of rows that no list has any more.
    fn delete(&mut self, ids: &[RowId]) {
        for id in ids {
            if let Some(partners) = &mut self.partners {
                partners.set(*id, 0);
            }
            if let Some(lookup) = &mut self.lookup {
                lookup.set_before(*id, RowId::NONE);
            }
        }
        let released = self.rows.delete(ids);
        if !released.is_empty() {
            self.next.release(&released);
            if let Some(lookup) = &mut self.lookup {
                lookup.release(&released);
            }
            if let Some(partners) = &mut self.partners {
                partners.release(&released);
            }
        }
        if let Some(ttl) = &mut self.ttl {
            ttl.remove(ids, &released);
        }
    }

    /// Makes room for this many keys.
    pub(super) fn resize(&mut self, num_keys: usize) {
        if self.heads.len() < num_keys {
            self.heads.resize(num_keys, RowId::NONE);
        }
    }

    /// The rows of a key.
    #[inline]
    pub(super) fn rows_of(&self, key: u32) -> impl Iterator<Item = RowId> + '_ {
        let mut id = self.heads[key as usize];
        let rows = std::iter::from_fn(move || {
            let found = id.is_some().then_some(id)?;
            id = self.next.get(found);
            Some(found)
        });
        rows.filter(|id| self.ttl.as_ref().is_none_or(|ttl| !ttl.is_over(*id)))
    }

    /// Whether a key has no row.
    pub(super) fn is_key_free(&self, key: u32) -> bool {
        !self.heads[key as usize].is_some()
    }

    /// Whether partners are counted.
    pub(super) fn counts_partners(&self) -> bool {
        self.partners.is_some()
    }

    /// A row has one partner more or less; whether it has its first one now, or none any more.
    #[inline]
    pub(super) fn count_partner(&mut self, id: RowId, gone: bool) -> Option<bool> {
        let partners = self.partners.as_mut()?;
        let before = partners.get(id);
        let after = if gone { before.saturating_sub(1) } else { before + 1 };
        partners.set(id, after);
        if let Some(ttl) = &mut self.ttl {
            ttl.write(&[id]);
        }
        ((before == 0) != (after == 0)).then_some(after > 0)
    }

    /// Adds rows with their keys and, where they are counted, partners.
    pub(super) fn add(&mut self, columns: &[ArrayRef], keys: &[u32], partners: Option<&[u32]>) -> Result<()> {
        let mut ids = Vec::new();
        self.rows.append(columns, keys.len(), &mut ids)?;
        self.link(&ids, keys);
        if let Some(ttl) = &mut self.ttl {
            ttl.write(&ids);
        }
        if let (Some(counts), Some(partners)) = (&mut self.partners, partners) {
            let counted = ids.iter().zip(partners).filter(|(_, partners)| **partners > 0);
            counted.for_each(|(id, partners)| counts.set(*id, *partners));
        }
        if let Some(lookup) = &mut self.lookup {
            lookup.add(&ids, columns);
        }
        Ok(())
    }

    fn link(&mut self, ids: &[RowId], keys: &[u32]) {
        for (id, key) in ids.iter().zip(keys) {
            let former = std::mem::replace(&mut self.heads[*key as usize], *id);
            self.next.set(*id, former);
            if let (Some(lookup), true) = (&mut self.lookup, former.is_some()) {
                lookup.set_before(former, *id);
            }
        }
    }

    /// Removes a row for each of these, equal in all columns. One that is not there is left out.
    pub(super) fn remove(&mut self, columns: &[ArrayRef], keys: &[u32]) -> Result<()> {
        let Some(lookup) = &mut self.lookup else { return Ok(()) };
        let found = lookup.remove(&self.rows, columns, keys.len())?;
        let mut ids = Vec::with_capacity(found.len());
        for (row, id) in found {
            let (before, after) = (lookup.before(id), self.next.get(id));
            if before.is_some() {
                self.next.set(before, after);
            } else {
                self.heads[keys[row] as usize] = after;
            }
            if after.is_some() {
                lookup.set_before(after, before);
            }
            ids.push(id);
        }
        self.delete(&ids);
        Ok(())
    }

    /// Puts restored rows into lists.
    pub(super) fn link_restored(&mut self, join_keys: &mut JoinKeys) -> Result<()> {
        if !std::mem::take(&mut self.unlinked) {
            return Ok(());
        }
        let chunks: Vec<Vec<RowId>> = self.rows.chunks().iter().map(StoredChunk::live).collect();
        for ids in chunks {
            let columns = self.rows.take(&ids)?;
            let mut keys = Vec::new();
            join_keys.assign(&columns_at(&columns, &self.keys), ids.len(), &mut keys)?;
            self.resize(keys.iter().max().map_or(0, |max| *max as usize + 1));
            self.link(&ids, &keys);
            if let Some(lookup) = &mut self.lookup {
                lookup.add(&ids, &columns);
            }
        }
        Ok(())
    }
}

/// The columns of a batch at these rows.
pub(super) fn take_rows(columns: &[ArrayRef], rows: &[u32]) -> Result<Vec<ArrayRef>> {
    let rows = UInt32Array::from(rows.to_vec());
    Ok(columns.iter().map(|column| compute::take(column, &rows, None)).collect::<std::result::Result<_, _>>()?)
}

impl StateTable for JoinSide {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        Ok(StateTableSnapshot::frozen(FrozenStore {
            changing: self.partners.clone(),
            times: self.ttl.as_ref().map(|ttl| ttl.frozen(false)),
            ..FrozenStore::new(&self.rows, &self.keys, self.max_parallelism)
        }))
    }

    fn outlives_input(&self) -> bool {
        false
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        snapshot.for_each_batch(|rows| {
            let timed = has_times(&rows);
            let rows = rows_in_range(&rows, range)?;
            let (columns, times) = split_times(rows.columns(), timed);
            let mut columns = columns.to_vec();
            let counts = if self.partners.is_some() { columns.pop() } else { None };
            let mut ids = Vec::new();
            self.rows.append(&columns, rows.num_rows(), &mut ids)?;
            if let (Some(partners), Some(counts)) = (&mut self.partners, counts) {
                let counts = counts.as_primitive::<UInt32Type>();
                ids.iter().zip(counts.values()).for_each(|(id, count)| partners.set(*id, *count));
            }
            if let Some(ttl) = &mut self.ttl {
                ttl.restore(&ids, times);
            }
            self.unlinked |= rows.num_rows() > 0;
            Ok(())
        })
    }

    fn bytes(&self) -> usize {
        self.rows.bytes()
            + self.heads.capacity() * size_of::<RowId>()
            + self.next.bytes()
            + self.lookup.as_ref().map_or(0, RowLookup::bytes)
            + self.partners.as_ref().map_or(0, RowAttribute::bytes)
            + self.ttl.as_ref().map_or(0, RowTtl::bytes)
            + self.key_bytes
    }
}
