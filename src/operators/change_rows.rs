//! The changes of a batch, put together from results before and after it.

use arrow::array::{ArrayRef, BooleanArray, UInt32Array};
use arrow::compute::{self, kernels::cmp};
use arrow::row::{RowConverter, Rows, SortField};

use crate::error::Result;
use crate::runtime::Output;
use crate::types::{Batch, RowKind, RowKinds};

/// Handles the rows of a batch at once, and passes its last watermark on behind what they change: nothing here hangs on event time.
pub(super) fn rows_then_watermark(
    mut batch: Batch,
    output: &mut dyn Output,
    apply: impl FnOnce(Batch) -> Result<Batch>,
) -> Result<()> {
    let steps = batch.take_steps();
    if batch.num_rows() > 0 {
        output.batch(apply(batch)?)?;
    }
    steps.last().map_or(Ok(()), |watermark| output.watermark(watermark))
}

/// Which rows of old and new results come out, in order.
#[derive(Default)]
pub(super) struct ChangeRows {
    kinds: Vec<RowKind>,
    /// Which result: 0 = old, 1 = new.
    sources: Vec<(usize, usize)>,
}

impl ChangeRows {
    /// An old result comes out.
    pub(super) fn old_row(&mut self, kind: RowKind, index: usize) {
        self.kinds.push(kind);
        self.sources.push((0, index));
    }

    /// A new result comes out.
    pub(super) fn new_row(&mut self, kind: RowKind, index: usize) {
        self.kinds.push(kind);
        self.sources.push((1, index));
    }

    /// The rows: columns that old and new share, then the results.
    pub(super) fn into_batch(self, shared: &[ArrayRef], old: &[ArrayRef], new: &[ArrayRef]) -> Result<Batch> {
        let num_rows = self.kinds.len();
        let insert_only = self.kinds.iter().all(|kind| *kind == RowKind::Insert);
        let mut columns = Vec::with_capacity(shared.len() + new.len());
        let rows = UInt32Array::from_iter_values(self.sources.iter().map(|(_, index)| *index as u32));
        for column in shared {
            columns.push(compute::take(column, &rows, None)?);
        }
        for (old, new) in old.iter().zip(new) {
            columns.push(if insert_only {
                compute::take(new, &rows, None)?
            } else {
                compute::interleave(&[old.as_ref(), new.as_ref()], &self.sources)?
            });
        }
        Ok(Batch::new(columns, num_rows).with_kinds((!insert_only).then(|| RowKinds::new(self.kinds))))
    }
}

/// Whether the rows at the same position of two results differ, NULL being equal to NULL.
pub(super) struct Differ {
    flat: Option<BooleanArray>,
    nested: Vec<(Rows, Rows)>,
}

impl Differ {
    /// Compares column by column.
    pub(super) fn new(old: &[ArrayRef], new: &[ArrayRef]) -> Result<Self> {
        let mut differ = Differ { flat: None, nested: Vec::new() };
        for (old, new) in old.iter().zip(new) {
            if old.data_type().is_nested() {
                let converter = RowConverter::new(vec![SortField::new(old.data_type().clone())])?;
                let rows = |column: &ArrayRef| converter.convert_columns(std::slice::from_ref(column));
                differ.nested.push((rows(old)?, rows(new)?));
                continue;
            }
            let distinct = cmp::distinct(old, new)?;
            differ.flat = Some(match differ.flat {
                Some(flat) => compute::or(&flat, &distinct)?,
                None => distinct,
            });
        }
        Ok(differ)
    }

    /// Whether the rows differ.
    pub(super) fn differs(&self, row: usize) -> bool {
        self.flat.as_ref().is_some_and(|flat| flat.value(row))
            || self.nested.iter().any(|(old, new)| old.row(row) != new.row(row))
    }
}
