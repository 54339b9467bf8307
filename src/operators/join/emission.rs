//! What a join emits: rows put together from rows of a batch and rows of the other side, either of which may be missing.

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute;

use super::side::JoinSide;
use crate::error::Result;
use crate::runtime::state::RowId;
use crate::types::{Batch, RowKind, RowKinds};

/// No row of the batch.
const NO_ROW: u32 = u32::MAX;

/// Output rows in the making.
#[derive(Debug, Default)]
pub(super) struct Emission {
    kinds: Vec<RowKind>,
    own: Vec<u32>,
    others: Vec<RowId>,
    padded: bool,
}

/// Where an output column comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputColumn {
    pub(super) left: bool,
    pub(super) column: usize,
}

impl Emission {
    pub(super) fn with_capacity(rows: usize) -> Self {
        let (kinds, own) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        Emission { kinds, own, others: Vec::with_capacity(rows), padded: false }
    }

    /// A row of the batch with one of the other side.
    #[inline]
    pub(super) fn pair(&mut self, kind: RowKind, own: u32, other: RowId) {
        self.kinds.push(kind);
        self.own.push(own);
        self.others.push(other);
    }

    /// A row of the batch alone.
    pub(super) fn own(&mut self, kind: RowKind, own: u32) {
        self.pair(kind, own, RowId::NONE);
    }

    /// A row of the other side alone.
    pub(super) fn other(&mut self, kind: RowKind, other: RowId) {
        self.padded = true;
        self.pair(kind, NO_ROW, other);
    }

    pub(super) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Rows `from .. from + count` as a batch.
    pub(super) fn batch(
        &self,
        from: usize,
        count: usize,
        (batch, from_left): (&[ArrayRef], bool),
        other: &JoinSide,
        output: &[OutputColumn],
    ) -> Result<Batch> {
        let (kinds, own) = (&self.kinds[from..from + count], &self.own[from..from + count]);
        let own = if self.padded {
            UInt32Array::from_iter(own.iter().map(|row| (*row != NO_ROW).then_some(*row)))
        } else {
            UInt32Array::from(own.to_vec())
        };
        let is_own = |column: &OutputColumn| column.left == from_left;
        let of_other: Vec<usize> = output.iter().filter(|column| !is_own(column)).map(|column| column.column).collect();
        let mut taken = other.rows.take_columns(&self.others[from..from + count], &of_other)?.into_iter();
        let mut columns = Vec::with_capacity(output.len());
        for column in output {
            columns.push(if is_own(column) {
                compute::take(&batch[column.column], &own, None)?
            } else {
                taken.next().expect("each column of the other side was taken")
            });
        }
        let insert_only = kinds.iter().all(|kind| *kind == RowKind::Insert);
        Ok(Batch::new(columns, count).with_kinds((!insert_only).then(|| RowKinds::new(kinds.iter().copied()))))
    }
}
