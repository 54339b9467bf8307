//! The slices of a window aggregation, for each a table of its groups: its state, beside how far windows have fired.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

use super::merged_slices::MergedSlices;
use crate::error::Result;
use crate::expr::{AggregateCall, FunctionRegistry};
use crate::operators::group_blocks::{ContentNumbers, FrozenGroups};
use crate::operators::group_table::GroupTable;
use crate::operators::keyed_state::rows_in_range;
use crate::runtime::{StateTable, StateTableSnapshot};
use crate::types::KeyGroupRange;

/// A slice, or a window that came with the rows: local milliseconds, ordered by end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::operators) struct SliceKey {
    pub(in crate::operators) end: i64,
    pub(in crate::operators) start: i64,
}

/// The open slices, the earliest first.
pub(super) struct Slices {
    pub(super) open: BTreeMap<SliceKey, GroupTable>,
    pub(super) num_keys: usize,
    pub(super) aggregates: Vec<AggregateCall>,
    pub(super) input_retracts: bool,
    pub(super) functions: Arc<FunctionRegistry>,
    pub(super) max_parallelism: u32,
    pub(super) contents: ContentNumbers,
    pub(super) merged: MergedSlices,
}

impl Slices {
    /// The table of a slice, made when there is none.
    pub(super) fn table(&mut self, slice: SliceKey, keys: &[ArrayRef]) -> Result<&mut GroupTable> {
        if !self.open.contains_key(&slice) {
            let types: Vec<DataType> = keys.iter().map(|column| column.data_type().clone()).collect();
            let table = self.new_table(&types)?;
            self.open.insert(slice, table);
        }
        Ok(self.open.get_mut(&slice).expect("inserted above"))
    }

    /// Gives `emit` the groups of a window, from slices that are merged beforehand.
    pub(super) fn window(&mut self, bounds: (i64, i64), emit: impl FnOnce(&GroupTable) -> Result<()>) -> Result<()> {
        let Slices { open, merged, aggregates, functions, input_retracts, .. } = self;
        merged.window(open, bounds, &|types| GroupTable::new(types, aggregates, functions, *input_retracts), emit)
    }

    /// An empty table.
    pub(super) fn new_table(&self, key_types: &[DataType]) -> Result<GroupTable> {
        GroupTable::new(key_types, &self.aggregates, &self.functions, self.input_retracts)
    }
}

impl StateTable for Slices {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let mut frozen = FrozenGroups::default();
        for (slice, table) in &mut self.open {
            let bounds = |count| -> Vec<ArrayRef> {
                [slice.end, slice.start].map(|time| Arc::new(Int64Array::from_value(time, count)) as ArrayRef).to_vec()
            };
            table.freeze(self.max_parallelism, &mut self.contents, &mut frozen, bounds, |_| Vec::new(), |_| None)?;
        }
        Ok(StateTableSnapshot::frozen(frozen))
    }

    fn snapshot_completed(&mut self) {
        self.open.values_mut().for_each(GroupTable::snapshot_completed);
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            let rows = rows_in_range(rows, range)?;
            if rows.is_empty() {
                continue;
            }
            let bound = |index: usize| rows.column(index).as_primitive::<Int64Type>().value(0);
            let slice = SliceKey { end: bound(0), start: bound(1) };
            let state = &rows.columns()[2..];
            self.table(slice, &state[..self.num_keys])?.merge(state, rows.num_rows())?;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.open.values().map(GroupTable::bytes).sum::<usize>() + self.merged.bytes()
    }
}
