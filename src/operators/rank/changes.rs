//! What changed between the visible rows of a partition before and after a batch. A row that goes while an equal one comes has not
//! changed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array};

use crate::error::Result;
use crate::operators::change_rows::Differ;
use crate::runtime::state::{RowId, RowStore};
use crate::types::{Batch, RowKind, RowKinds, hash_columns};

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
    pub(super) fn add_places(&mut self, before: &[RowId], after: &[RowId], first: u64) {
        for place in 0..before.len().max(after.len()) {
            let number = first + place as u64;
            let at = |rows: &[RowId]| rows.get(place).copied().filter(|id| *id != RowId::NONE);
            match (at(before), at(after)) {
                (Some(old), Some(new)) if old == new => {}
                (Some(old), Some(new)) => {
                    self.push(RowKind::UpdateBefore, old, number);
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
    pub(super) fn into_batch(self, store: &RowStore, shown: &Shown) -> Result<Option<Batch>> {
        if self.ids.is_empty() {
            return Ok(None);
        }
        let insert_only = self.kinds.iter().all(|kind| *kind == RowKind::Insert);
        let mut columns = store.take(&self.ids)?;
        let kept = match insert_only {
            true => None,
            false => self.kept(&columns, shown)?,
        };
        if shown.number {
            columns.push(Arc::new(Int64Array::from(self.numbers)));
        }
        let kinds = (!insert_only).then(|| RowKinds::new(self.kinds));
        let batch = Batch::new(columns, self.ids.len()).with_kinds(kinds);
        let batch = match kept {
            Some(kept) => batch.filter(&kept)?,
            None => batch,
        };
        Ok((batch.num_rows() > 0).then_some(batch))
    }

    /// Which changes come out; none = all.
    fn kept(&self, columns: &[ArrayRef], shown: &Shown) -> Result<Option<BooleanArray>> {
        let pairs = if shown.unchanged { Vec::new() } else { self.pairs(columns) };
        let side = |side: fn(&(usize, usize)) -> usize| -> Result<Vec<ArrayRef>> {
            let rows = arrow::array::UInt32Array::from_iter_values(pairs.iter().map(|pair| side(pair) as u32));
            Ok(columns.iter().map(|column| arrow::compute::take(column, &rows, None)).collect::<std::result::Result<_, _>>()?)
        };
        let differ = Differ::new(&side(|pair| pair.0)?, &side(|pair| pair.1)?)?;
        let mut kept: Vec<bool> = self.kinds.iter().map(|kind| shown.update_before || *kind != RowKind::UpdateBefore).collect();
        for (_, (old, new)) in pairs.iter().enumerate().filter(|(at, _)| !differ.differs(*at)) {
            (kept[*old], kept[*new]) = (false, false);
        }
        Ok(kept.contains(&false).then(|| BooleanArray::from(kept)))
    }

    /// What may be the same row before and after: the sides of an update, and rows that go and come with one hash.
    fn pairs(&self, columns: &[ArrayRef]) -> Vec<(usize, usize)> {
        let of_kind = |wanted: RowKind| {
            let all = self.kinds.iter().enumerate();
            all.filter(move |(_, kind)| **kind == wanted).map(|(at, _)| at)
        };
        let mut pairs: Vec<(usize, usize)> = of_kind(RowKind::UpdateBefore).map(|at| (at, at + 1)).collect();
        if of_kind(RowKind::Delete).next().is_none() || of_kind(RowKind::Insert).next().is_none() {
            return pairs;
        }
        let mut hashes = Vec::new();
        hash_columns(columns, self.ids.len(), &mut hashes);
        let hashed = |at: usize| (hashes[at], self.numbers[at]);
        let mut gone: HashMap<(u64, i64), Vec<usize>> = HashMap::new();
        of_kind(RowKind::Delete).for_each(|at| gone.entry(hashed(at)).or_default().push(at));
        // Of equal rows the last ones stay: those that came first are where they were.
        let mut come: Vec<usize> = of_kind(RowKind::Insert).collect();
        come.reverse();
        pairs.extend(come.into_iter().filter_map(|at| Some((gone.get_mut(&hashed(at))?.pop()?, at))));
        pairs
    }
}

/// Which changes are shown, and what of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// The number of a row.
    pub(super) number: bool,
    /// `-U`.
    pub(super) update_before: bool,
    /// Changes that change nothing: they say that a row is still there.
    pub(super) unchanged: bool,
}
