//! Windows whose results are updated: of each what was shown, and what has come since.
//!
//! Rows are gathered apart from what was shown, so that a firing knows both the former result and the new one, however long it was
//! delayed; then the two are merged. Only groups that rows came for since are looked at, and only those that changed come out.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

use super::slices::SliceKey;
use crate::error::Result;
use crate::expr::{AggregateCall, FunctionRegistry};
use crate::operators::change_rows::{ChangeRows, Differ};
use crate::operators::group_table::GroupTable;
use crate::operators::keyed_state::rows_in_range;
use crate::runtime::{StateTable, StateTableSnapshot};
use crate::types::{Batch, KeyGroupRange, RowKind};

/// Columns of state before the keys: end, start, whether it was shown, when it fires.
const STATE_COLUMNS: usize = 4;

/// A window: at least one of the tables is there.
#[derive(Default)]
struct UpdatingWindow {
    /// The groups as they were shown; one whose rows were all taken back was not, but may be kept.
    shown: Option<GroupTable>,
    /// What has come since.
    pending: Option<GroupTable>,
    /// When what has come is shown at the latest, by the clock, if that was set.
    fire_at: Option<i64>,
}

/// The open windows, the first to end first.
pub(super) struct UpdatingWindows {
    open: BTreeMap<SliceKey, UpdatingWindow>,
    num_keys: usize,
    aggregates: Vec<AggregateCall>,
    input_retracts: bool,
    emit_update_before: bool,
    functions: Arc<FunctionRegistry>,
    max_parallelism: u32,
    restored: bool,
}

impl UpdatingWindows {
    /// None are open.
    pub(super) fn new(
        spec: &crate::stream_graph::WindowAggregateSpec,
        functions: &Arc<FunctionRegistry>,
        max_parallelism: u32,
    ) -> Self {
        UpdatingWindows {
            open: BTreeMap::new(),
            num_keys: spec.keys.len(),
            aggregates: spec.aggregates.clone(),
            input_retracts: spec.input_retracts,
            emit_update_before: spec.emit_update_before,
            functions: Arc::clone(functions),
            max_parallelism,
            restored: false,
        }
    }

    fn new_table(&self, keys: &[ArrayRef]) -> Result<GroupTable> {
        let types: Vec<DataType> = keys.iter().map(|column| column.data_type().clone()).collect();
        GroupTable::new(&types, &self.aggregates, &self.functions, self.input_retracts)
    }

    /// The input columns that the aggregates read.
    pub(super) fn read_columns(&self) -> Result<Vec<usize>> {
        Ok(self.new_table(&[])?.aggregates.input_columns())
    }

    /// The open windows, the first to end first.
    pub(super) fn keys(&self) -> impl Iterator<Item = SliceKey> + '_ {
        self.open.keys().copied()
    }

    /// Adds rows to a window.
    pub(super) fn add(&mut self, window: SliceKey, keys: &[ArrayRef], batch: &Batch) -> Result<()> {
        if self.open.get(&window).is_none_or(|open| open.pending.is_none()) {
            let table = self.new_table(keys)?;
            self.open.entry(window).or_default().pending = Some(table);
        }
        let table = self.open.get_mut(&window).and_then(|open| open.pending.as_mut()).expect("made above");
        table.assign(keys, batch.num_rows())?;
        table.update(batch.columns(), batch.kinds())
    }

    /// Has a window fire at this time of the clock, unless it does so before.
    pub(super) fn fire_at(&mut self, window: SliceKey, time: i64) -> i64 {
        let fire_at = &mut self.open.entry(window).or_default().fire_at;
        *fire_at.get_or_insert(time)
    }

    /// Whether windows came back that nobody has asked for yet.
    pub(super) fn is_restored(&self) -> bool {
        self.restored
    }

    /// The same, once.
    pub(super) fn take_restored(&mut self) -> bool {
        std::mem::take(&mut self.restored)
    }

    /// The first time of the clock at which a window fires.
    pub(super) fn first_timer(&self) -> Option<i64> {
        self.open.values().filter_map(|window| window.fire_at).min()
    }

    /// The windows that fire by this time of the clock.
    pub(super) fn due(&self, now_ms: i64) -> Vec<SliceKey> {
        let due = |(key, window): (&SliceKey, &UpdatingWindow)| window.fire_at.filter(|time| *time <= now_ms).map(|_| *key);
        self.open.iter().filter_map(due).collect()
    }

    /// Shows what has come for a window: its changes, keys and results, at most `batch_rows` of them a batch.
    pub(super) fn fire(&mut self, key: SliceKey, batch_rows: usize, emit: &mut dyn FnMut(Batch) -> Result<()>) -> Result<()> {
        let emit_update_before = self.emit_update_before;
        let Some(window) = self.open.get_mut(&key) else { return Ok(()) };
        window.fire_at = None;
        let Some(pending) = window.pending.take() else { return Ok(()) };
        let Some(shown) = &mut window.shown else {
            let mut groups = pending.keys.groups();
            groups.retain(|group| !pending.is_settled(*group));
            for chunk in groups.chunks(batch_rows) {
                let mut columns = pending.keys.keys(chunk)?;
                columns.extend(pending.aggregates.evaluate(chunk)?);
                emit(Batch::new(columns, chunk.len()))?;
            }
            window.shown = Some(pending);
            return Ok(());
        };
        let changes = merged(shown, &pending, emit_update_before)?;
        for offset in (0..changes.num_rows()).step_by(batch_rows) {
            emit(changes.slice(offset, batch_rows.min(changes.num_rows() - offset)))?;
        }
        Ok(())
    }

    /// Closes a window.
    pub(super) fn close(&mut self, window: SliceKey) {
        self.open.remove(&window);
    }
}

/// Merges what has come into what was shown; the changes.
fn merged(shown: &mut GroupTable, pending: &GroupTable, emit_update_before: bool) -> Result<Batch> {
    let keys = pending.keys.keys(&pending.keys.groups())?;
    let count = pending.keys.groups().len();
    shown.assign(&keys, count)?;
    let groups = shown.groups().to_vec();
    // Fresh groups are numbered in the order of their rows.
    let mut fresh = shown.keys.fresh().to_vec().into_iter().peekable();
    let was: Vec<bool> = groups.iter().map(|group| fresh.next_if_eq(group).is_none() && !shown.is_settled(*group)).collect();
    let old = shown.aggregates.evaluate(&groups)?;
    shown.merge_table(pending)?;
    let new = shown.aggregates.evaluate(&groups)?;
    let differ = Differ::new(&old, &new)?;
    let mut changes = ChangeRows::default();
    for (index, (was, group)) in was.into_iter().zip(&groups).enumerate() {
        match (was, !shown.is_settled(*group)) {
            (false, true) => changes.new_row(RowKind::Insert, index),
            (true, true) if differ.differs(index) => {
                if emit_update_before {
                    changes.old_row(RowKind::UpdateBefore, index);
                }
                changes.new_row(RowKind::UpdateAfter, index);
            }
            (true, false) => changes.old_row(RowKind::Delete, index),
            (true, true) | (false, false) => {}
        }
    }
    changes.into_batch(&keys, &old, &new)
}

impl StateTable for UpdatingWindows {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let mut rows = Vec::new();
        for (key, window) in &self.open {
            for (table, shown) in [(&window.shown, true), (&window.pending, false)] {
                let Some(table) = table else { continue };
                let columns = |count: usize| -> Vec<ArrayRef> {
                    vec![
                        Arc::new(Int64Array::from_value(key.end, count)),
                        Arc::new(Int64Array::from_value(key.start, count)),
                        Arc::new(BooleanArray::from(vec![shown; count])),
                        Arc::new(Int64Array::from(vec![window.fire_at; count])),
                    ]
                };
                rows.extend(table.snapshot(self.max_parallelism, columns)?);
            }
        }
        Ok(StateTableSnapshot::new(rows))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            let rows = rows_in_range(rows, range)?;
            if rows.is_empty() {
                continue;
            }
            let number = |index: usize| rows.column(index).as_primitive::<Int64Type>();
            let key = SliceKey { end: number(0).value(0), start: number(1).value(0) };
            let shown = rows.column(2).as_boolean().value(0);
            let fire_at = Some(number(3)).filter(|times| times.is_valid(0)).map(|times| times.value(0));
            let state = &rows.columns()[STATE_COLUMNS..];
            self.restored = true;
            let fresh = self.new_table(&state[..self.num_keys])?;
            let window = self.open.entry(key).or_default();
            window.fire_at = [window.fire_at, fire_at].into_iter().flatten().min();
            let table = if shown { &mut window.shown } else { &mut window.pending };
            table.get_or_insert(fresh).merge(state, rows.num_rows())?;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        let tables =
            |window: &UpdatingWindow| [&window.shown, &window.pending].map(|table| table.as_ref().map_or(0, GroupTable::bytes));
        self.open.values().flat_map(tables).sum()
    }
}
