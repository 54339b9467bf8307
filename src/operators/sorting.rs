//! Sorting of batches by the keys of an ORDER BY; rows with equal keys keep their order.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::{self, SortColumn, SortOptions};
use arrow::row::{RowConverter, SortField};

use crate::error::Result;
use crate::expr::SortKey;
use crate::runtime::Output;
use crate::types::Batch;

fn options(key: &SortKey) -> SortOptions {
    SortOptions { descending: key.descending, nulls_first: key.nulls_first }
}

/// The order of rows.
pub(super) fn sort_indices(columns: &[ArrayRef], num_rows: usize, keys: &[SortKey]) -> Result<UInt32Array> {
    if keys.iter().any(|key| columns[key.column].data_type().is_nested()) {
        let converter = sort_converter(columns, keys)?;
        let rows = converter.convert_columns(&key_columns(columns, keys))?;
        let mut indices: Vec<u32> = (0..num_rows as u32).collect();
        indices.sort_by(|a, b| rows.row(*a as usize).cmp(&rows.row(*b as usize)));
        return Ok(UInt32Array::from(indices));
    }
    let mut sort_columns: Vec<SortColumn> =
        keys.iter().map(|key| SortColumn { values: Arc::clone(&columns[key.column]), options: Some(options(key)) }).collect();
    // The row's number as the last key: Arrow's sort is not stable.
    sort_columns.push(SortColumn { values: Arc::new(UInt32Array::from_iter_values(0..num_rows as u32)), options: None });
    Ok(compute::lexsort_to_indices(&sort_columns, None)?)
}

/// Makes rows whose bytes compare in the order of the keys.
pub(super) fn sort_converter(columns: &[ArrayRef], keys: &[SortKey]) -> Result<RowConverter> {
    let field = |key: &SortKey| SortField::new_with_options(columns[key.column].data_type().clone(), options(key));
    Ok(RowConverter::new(keys.iter().map(field).collect())?)
}

/// The columns of the keys.
pub(super) fn key_columns(columns: &[ArrayRef], keys: &[SortKey]) -> Vec<ArrayRef> {
    keys.iter().map(|key| Arc::clone(&columns[key.column])).collect()
}

/// Emits the rows at `indices` as inserted rows, in batches of `batch_rows`.
pub(super) fn emit_rows(columns: &[ArrayRef], indices: &UInt32Array, batch_rows: usize, output: &mut dyn Output) -> Result<()> {
    for offset in (0..indices.len()).step_by(batch_rows) {
        let chunk = indices.slice(offset, batch_rows.min(indices.len() - offset));
        let columns = columns.iter().map(|column| compute::take(column, &chunk, None)).collect::<std::result::Result<_, _>>()?;
        output.batch(Batch::new(columns, chunk.len()))?;
    }
    Ok(())
}
