//! What changed between the visible rows of a partition before and after a batch.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::Int64Array;

use crate::error::Result;
use crate::runtime::state::{RowId, RowStore};
use crate::types::{Batch, RowKind, RowKinds};

/// Below this number of rows looking through all of them is quicker than hashing.
const FEW_ROWS: usize = 16;

/// Changes in the making: rows of a store with their kinds and numbers.
#[derive(Debug, Default)]
pub(super) struct Changes {
    ids: Vec<RowId>,
    kinds: Vec<RowKind>,
    numbers: Vec<i64>,
}

impl Changes {
    fn push(&mut self, kind: RowKind, id: RowId, number: u64) {
        self.ids.push(id);
        self.kinds.push(kind);
        self.numbers.push(number as i64);
    }

    /// Rows replace each other at places numbered from `first` on. At a place may be none.
    pub(super) fn add_places(&mut self, before: &[RowId], after: &[RowId], first: u64, emit_update_before: bool) {
        for place in 0..before.len().max(after.len()) {
            let number = first + place as u64;
            let at = |rows: &[RowId]| rows.get(place).copied().filter(|id| *id != RowId::NONE);
            match (at(before), at(after)) {
                (Some(old), Some(new)) if old == new => {}
                (Some(old), Some(new)) => {
                    if emit_update_before {
                        self.push(RowKind::UpdateBefore, old, number);
                    }
                    self.push(RowKind::UpdateAfter, new, number);
                }
                (Some(old), None) => self.push(RowKind::Delete, old, number),
                (None, Some(new)) => self.push(RowKind::Insert, new, number),
                (None, None) => {}
            }
        }
    }

    /// Rows come and go.
    pub(super) fn add_rows(&mut self, before: &[RowId], after: &[RowId]) {
        self.add_missing(RowKind::Delete, before, after);
        self.add_missing(RowKind::Insert, after, before);
    }

    /// The rows of `rows` that `others` lacks.
    fn add_missing(&mut self, kind: RowKind, rows: &[RowId], others: &[RowId]) {
        let rows = rows.iter().filter(|id| **id != RowId::NONE);
        if others.len() <= FEW_ROWS {
            rows.filter(|id| !others.contains(id)).for_each(|id| self.push(kind, *id, 0));
            return;
        }
        let others: HashSet<RowId> = others.iter().copied().collect();
        rows.filter(|id| !others.contains(id)).for_each(|id| self.push(kind, *id, 0));
    }

    /// As rows; none = nothing changed.
    pub(super) fn into_batch(self, store: &RowStore, output_number: bool) -> Result<Option<Batch>> {
        if self.ids.is_empty() {
            return Ok(None);
        }
        let insert_only = self.kinds.iter().all(|kind| *kind == RowKind::Insert);
        let mut columns = store.take(&self.ids)?;
        if output_number {
            columns.push(Arc::new(Int64Array::from(self.numbers)));
        }
        let kinds = (!insert_only).then(|| RowKinds::new(self.kinds));
        Ok(Some(Batch::new(columns, self.ids.len()).with_kinds(kinds)))
    }
}
