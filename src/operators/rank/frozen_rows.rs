//! Rows of a ranking as they were when a snapshot was taken.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, UInt16Array};

use crate::error::Result;
use crate::operators::keyed_state::state_rows;
use crate::runtime::state::{RowId, RowStore};
use crate::runtime::{FrozenState, TakeBatch};

/// Rows of a batch of a snapshot.
const SNAPSHOT_ROWS: usize = 8_192;

/// Rows of a store in an order, with what belongs to each.
pub(super) struct FrozenRows {
    pub(super) store: RowStore,
    pub(super) ids: Vec<RowId>,
    pub(super) key_groups: UInt16Array,
    pub(super) ends: Option<Int64Array>,
}

impl FrozenState for FrozenRows {
    fn for_each_batch(&self, take: &mut TakeBatch<'_>) -> Result<()> {
        for from in (0..self.ids.len()).step_by(SNAPSHOT_ROWS) {
            let count = SNAPSHOT_ROWS.min(self.ids.len() - from);
            let mut columns = self.store.take(&self.ids[from..from + count])?;
            columns.extend(self.ends.as_ref().map(|ends| Arc::new(ends.slice(from, count)) as ArrayRef));
            take(state_rows(self.key_groups.slice(from, count), columns)?)?;
        }
        Ok(())
    }
}
