//! The keys of both sides, numbered; and which rows of a batch have a key that can join at all.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;

use crate::error::Result;
use crate::expr::GroupKeys;
use crate::types::hash_columns;

/// The keys of both sides.
#[derive(Debug)]
pub(super) struct JoinKeys {
    keys: GroupKeys,
    null_safe: Vec<bool>,
    hashes: Vec<u64>,
}

impl JoinKeys {
    /// For key columns of these types; where `null_safe`, NULL joins NULL.
    pub(super) fn new(types: &[DataType], null_safe: Vec<bool>) -> Result<Self> {
        Ok(JoinKeys { keys: GroupKeys::new(types)?, null_safe, hashes: Vec::new() })
    }

    /// Which rows can join: those without a NULL in a key column that must be equal. None = all.
    pub(super) fn joinable(&self, columns: &[ArrayRef]) -> Option<BooleanArray> {
        let strict = columns.iter().zip(&self.null_safe).filter(|(_, null_safe)| !**null_safe);
        let valid = strict.fold(None, |all: Option<NullBuffer>, (column, _)| {
            NullBuffer::union(all.as_ref(), column.logical_nulls().as_ref())
        })?;
        (valid.null_count() > 0).then(|| BooleanArray::new(valid.into_inner(), None))
    }

    /// The number of the key of each row, in place of what `numbers` held.
    pub(super) fn assign(&mut self, columns: &[ArrayRef], num_rows: usize, numbers: &mut Vec<u32>) -> Result<()> {
        hash_columns(columns, num_rows, &mut self.hashes);
        self.keys.assign(columns, &self.hashes, numbers)
    }

    /// One more than the greatest number given so far.
    pub(super) fn num_keys(&self) -> usize {
        self.keys.num_groups()
    }

    /// Forgets keys, each named once.
    pub(super) fn remove(&mut self, keys: &[u32]) {
        self.keys.remove(keys);
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.keys.bytes()
    }
}

/// The columns at these positions.
pub(super) fn columns_at(columns: &[ArrayRef], positions: &[usize]) -> Vec<ArrayRef> {
    positions.iter().map(|position| Arc::clone(&columns[*position])).collect()
}
