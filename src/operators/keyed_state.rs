//! Helpers of state tables: rows with their key group first, and which of them a range takes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt16Array};
use arrow::compute;
use arrow::datatypes::{Field, Schema, UInt16Type};

use crate::error::Result;
use crate::runtime::{FrozenState, StateSink, StateTableSnapshot, TakeBatch};
use crate::types::{Batch, KeyGroup, KeyGroupRange, hash_columns};

/// Rows of state under the names `key_group`, `column_1`, …
pub(super) fn state_rows(key_groups: UInt16Array, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    numbered_columns(Arc::new(key_groups), columns)
}

/// Columns after a first one that has the name `key_group`, whatever it says.
pub(super) fn numbered_columns(first: ArrayRef, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    let all: Vec<ArrayRef> = std::iter::once(first).chain(columns).collect();
    let name = |index: usize| if index == 0 { "key_group".to_string() } else { format!("column_{index}") };
    let fields = all.iter().enumerate().map(|(index, column)| Field::new(name(index), column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    Ok(RecordBatch::try_new(schema, all)?)
}

/// A snapshot of rows that are not keyed; none = no row.
pub(super) fn unkeyed_snapshot(rows: Option<&Batch>) -> Result<StateTableSnapshot> {
    let rows = rows.map(|rows| state_rows(UInt16Array::from_value(0, rows.num_rows()), rows.columns().to_vec()));
    Ok(StateTableSnapshot::new(rows.transpose()?.into_iter().collect()))
}

/// Rows that came back after a restart and have not been put in their places, as they are frozen again: with their key groups, which these columns
/// decide.
pub(super) fn restored_rows(
    restored: &[Batch],
    keys: impl Iterator<Item = usize> + Clone,
    max_parallelism: u32,
) -> Result<Vec<RecordBatch>> {
    let mut hashes = Vec::new();
    let rows = restored.iter().map(|rows| {
        let keys: Vec<ArrayRef> = keys.clone().map(|key| Arc::clone(rows.column(key))).collect();
        hash_columns(&keys, rows.num_rows(), &mut hashes);
        state_rows(key_groups_of(hashes.iter().copied(), max_parallelism), rows.columns().to_vec())
    });
    rows.collect()
}

/// Rows before another frozen state.
pub(super) struct RowsBefore<F>(pub(super) Vec<RecordBatch>, pub(super) F);

impl<F: FrozenState> FrozenState for RowsBefore<F> {
    fn for_each_batch(&self, take: &mut TakeBatch<'_>) -> Result<()> {
        self.0.iter().cloned().try_for_each(&mut *take)?;
        self.1.for_each_batch(take)
    }

    fn write(&self, sink: &mut dyn StateSink) -> Result<()> {
        self.0.iter().cloned().try_for_each(|rows| sink.rows(rows))?;
        self.1.write(sink)
    }
}

/// The key groups of hashes.
pub(super) fn key_groups_of(hashes: impl Iterator<Item = u64>, max_parallelism: u32) -> UInt16Array {
    UInt16Array::from_iter_values(hashes.map(|hash| KeyGroup::of_hash(hash, max_parallelism).0))
}

/// The rows whose key group is in `range`, without the key group. There may be rows where no column is left.
pub(super) fn rows_in_range(rows: &RecordBatch, range: KeyGroupRange) -> Result<Batch> {
    let groups = rows.column(0).as_primitive::<UInt16Type>().values();
    let mask = BooleanArray::from_iter(groups.iter().map(|group| Some(range.contains(KeyGroup(*group)))));
    let predicate = compute::FilterBuilder::new(&mask).optimize().build();
    let columns = rows.columns()[1..].iter().map(|column| predicate.filter(column)).collect::<Result<_, _>>()?;
    Ok(Batch::new(columns, mask.true_count()))
}
