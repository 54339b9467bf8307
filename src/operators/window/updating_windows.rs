//! Windows whose results are updated: the groups of each, and what is owed since they were shown.
//!
//! Only groups that rows came for since the last firing are looked at, and only those that changed come out.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

use super::firing::{self, Firing};
use super::owed_groups::{Former, Owed, OwedGroups};
use super::slices::SliceKey;
use crate::error::Result;
use crate::expr::{AggregateCall, FunctionRegistry};
use crate::operators::change_rows::{ChangeRows, Differ};
use crate::operators::group_blocks::{ContentNumbers, FrozenGroups};
use crate::operators::group_table::GroupTable;
use crate::operators::keyed_state::{RowsBefore, rows_in_range};
use crate::runtime::{OperatorContext, StateTable, StateTableSnapshot};
use crate::stream_graph::WindowAggregateSpec;
use crate::types::{Batch, KeyGroup, KeyGroupRange, RowKind};

/// Columns of state before the keys: end and start.
const STATE_COLUMNS: usize = 2;

/// An open window.
pub(super) struct UpdatingWindow {
    /// Its groups. One whose rows were all taken back is not shown, but kept.
    pub(super) table: GroupTable,
    /// Whether it has fired. Before it has, all its groups are new.
    shown: bool,
    /// When what is owed comes at the latest, by the clock, if that was set.
    fire_at: Option<i64>,
}

/// The open windows, the first to end first.
pub(super) struct UpdatingWindows {
    tables: WindowTables,
    owed: Owed,
    emit_update_before: bool,
}

/// The groups of all windows, as state.
struct WindowTables {
    open: BTreeMap<SliceKey, UpdatingWindow>,
    num_keys: usize,
    aggregates: Vec<AggregateCall>,
    input_retracts: bool,
    functions: Arc<FunctionRegistry>,
    max_parallelism: u32,
    key_groups: KeyGroupRange,
    contents: ContentNumbers,
    /// After a restart, what had become of windows in the subtasks before, until what follows from that was found out.
    restored: Vec<Firing>,
}

impl WindowTables {
    fn new_table(&self, keys: &[ArrayRef]) -> Result<GroupTable> {
        let types: Vec<DataType> = keys.iter().map(|column| column.data_type().clone()).collect();
        GroupTable::new(&types, &self.aggregates, &self.functions, self.input_retracts)
    }

    /// What has become of the open windows in this subtask.
    fn firings(&self) -> impl Iterator<Item = Firing> + '_ {
        let groups = self.key_groups;
        let firing = move |(window, open): (&SliceKey, &UpdatingWindow)| Firing {
            window: *window,
            shown: open.shown,
            fire_at: open.fire_at,
            groups,
        };
        self.open.iter().map(firing)
    }

    /// A window, opened when it is not.
    fn window(&mut self, key: SliceKey, keys: &[ArrayRef]) -> Result<&mut UpdatingWindow> {
        if !self.open.contains_key(&key) {
            let table = self.new_table(keys)?;
            self.open.insert(key, UpdatingWindow { table, shown: false, fire_at: None });
        }
        Ok(self.open.get_mut(&key).expect("inserted above"))
    }
}

impl UpdatingWindows {
    /// None are open.
    pub(super) fn new(spec: &WindowAggregateSpec, context: &OperatorContext) -> Self {
        let (max_parallelism, key_groups) = (context.max_parallelism, context.key_groups);
        let tables = WindowTables {
            open: BTreeMap::new(),
            num_keys: spec.keys.len(),
            aggregates: spec.aggregates.clone(),
            input_retracts: spec.input_retracts,
            functions: Arc::clone(&context.environment.functions),
            max_parallelism,
            key_groups,
            contents: ContentNumbers::default(),
            restored: Vec::new(),
        };
        UpdatingWindows { tables, owed: Owed::new(spec.keys.len(), max_parallelism), emit_update_before: spec.emit_update_before }
    }

    /// The input columns that the aggregates read.
    pub(super) fn read_columns(&self) -> Result<Vec<usize>> {
        Ok(self.tables.new_table(&[])?.aggregates.input_columns())
    }

    /// The open windows, the first to end first.
    pub(super) fn keys(&self) -> impl Iterator<Item = SliceKey> + '_ {
        self.tables.open.keys().copied()
    }

    /// Adds rows to a window.
    pub(super) fn add(&mut self, key: SliceKey, keys: &[ArrayRef], batch: &Batch) -> Result<()> {
        let window = self.tables.window(key, keys)?;
        window.table.assign(keys, batch.num_rows())?;
        if window.shown {
            note(self.owed.of(key), &window.table)?;
        }
        window.table.update(batch.columns(), batch.kinds())
    }

    /// Has an open window fire at this time of the clock, unless it does so before: when it does.
    pub(super) fn fire_at(&mut self, window: SliceKey, time: i64) -> i64 {
        self.tables.open.get_mut(&window).map_or(time, |window| *window.fire_at.get_or_insert(time))
    }

    /// Whether windows came back that nobody has asked for yet.
    pub(super) fn is_restored(&self) -> bool {
        !self.tables.restored.is_empty()
    }

    /// Finds out what restored windows owe; whether there were any.
    pub(super) fn settle_restored(&mut self) -> Result<bool> {
        let firings = std::mem::take(&mut self.tables.restored);
        if firings.is_empty() {
            return Ok(false);
        }
        self.owed.find_groups(&mut self.tables.open)?;
        for unshown in firings.iter().filter(|firing| !firing.shown) {
            // It has fired in some subtasks before a restart, but not in that of these groups: they owe all.
            let Some(window) = self.tables.open.get_mut(&unshown.window).filter(|window| window.shown) else { continue };
            let key_group = |group: &u32| KeyGroup::of_hash(window.table.keys.hash(*group), self.tables.max_parallelism);
            let mut groups = window.table.keys.groups();
            groups.retain(|group| unshown.groups.contains(key_group(group)));
            if !groups.is_empty() {
                let keys = window.table.keys.keys(&groups)?;
                window.table.assign(&keys, groups.len())?;
                self.owed.of(unshown.window).note(&window.table, &|_| false)?;
            }
        }
        Ok(true)
    }

    /// The first time of the clock at which a window fires.
    pub(super) fn first_timer(&self) -> Option<i64> {
        self.tables.open.values().filter_map(|window| window.fire_at).min()
    }

    /// The windows that fire by this time of the clock.
    pub(super) fn due(&self, now_ms: i64) -> Vec<SliceKey> {
        let due = |(key, window): (&SliceKey, &UpdatingWindow)| window.fire_at.filter(|time| *time <= now_ms).map(|_| *key);
        self.tables.open.iter().filter_map(due).collect()
    }

    /// Shows what has come for a window: its changes, keys and results, at most `batch_rows` of them a batch.
    pub(super) fn fire(&mut self, key: SliceKey, batch_rows: usize, emit: &mut dyn FnMut(Batch) -> Result<()>) -> Result<()> {
        let Some(window) = self.tables.open.get_mut(&key) else { return Ok(()) };
        window.fire_at = None;
        if !std::mem::replace(&mut window.shown, true) {
            let table = &window.table;
            let mut groups = table.keys.groups();
            groups.retain(|group| !table.is_settled(*group));
            for chunk in groups.chunks(batch_rows) {
                let mut columns = table.keys.keys(chunk)?;
                columns.extend(table.aggregates.evaluate(chunk)?);
                emit(Batch::new(columns, chunk.len()))?;
            }
            return Ok(());
        }
        let owed = self.owed.remove(key).map(|mut owed| owed.take()).transpose()?.flatten();
        let Some(owed) = owed else { return Ok(()) };
        let changes = changes(&window.table, &owed, self.emit_update_before)?;
        for offset in (0..changes.num_rows()).step_by(batch_rows) {
            emit(changes.slice(offset, batch_rows.min(changes.num_rows() - offset)))?;
        }
        Ok(())
    }

    /// Closes a window.
    pub(super) fn close(&mut self, window: SliceKey) {
        self.tables.open.remove(&window);
        self.owed.remove(window);
    }

    /// All its state.
    pub(super) fn state(&mut self) -> [(&'static str, &mut dyn StateTable); 2] {
        [("windows", &mut self.tables), ("owed", &mut self.owed)]
    }
}

/// Notes the groups of the last `assign`, before rows are added to them.
fn note(owed: &mut OwedGroups, table: &GroupTable) -> Result<()> {
    let mut fresh = table.keys.fresh().to_vec();
    fresh.sort_unstable();
    owed.note(table, &|group| fresh.binary_search(&group).is_err() && !table.is_settled(group))
}

/// How groups differ from what was shown of them.
fn changes(table: &GroupTable, former: &Former, emit_update_before: bool) -> Result<Batch> {
    let new = table.aggregates.evaluate(&former.groups)?;
    let differ = Differ::new(&former.results, &new)?;
    let mut changes = ChangeRows::default();
    for (index, (was, group)) in former.was.iter().zip(&former.groups).enumerate() {
        match (was, !table.is_settled(*group)) {
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
    changes.into_batch(&former.keys, &former.results, &new)
}

/// What has become of windows, then their groups, of which those that did not change are where an earlier checkpoint has them.
impl StateTable for WindowTables {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let firings: Vec<Firing> = if self.restored.is_empty() { self.firings().collect() } else { self.restored.clone() };
        let firings = firing::to_rows(&firings)?;
        let mut frozen = FrozenGroups::default();
        for (key, window) in &mut self.open {
            let bounds = |count: usize| -> Vec<ArrayRef> {
                [key.end, key.start].map(|time| Arc::new(Int64Array::from_value(time, count)) as ArrayRef).to_vec()
            };
            window.table.freeze(self.max_parallelism, &mut self.contents, &mut frozen, bounds, |_| Vec::new(), |_| None)?;
        }
        Ok(StateTableSnapshot::frozen(RowsBefore(firings.into_iter().collect(), frozen)))
    }

    fn snapshot_completed(&mut self) {
        self.open.values_mut().for_each(|window| window.table.snapshot_completed());
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            if let Some(firings) = firing::from_rows(rows) {
                self.restored.extend(firings.filter(|firing| firing.groups.overlaps(range)));
                continue;
            }
            let rows = rows_in_range(rows, range)?;
            if rows.is_empty() {
                continue;
            }
            let bound = |index: usize| rows.column(index).as_primitive::<Int64Type>().value(0);
            let key = SliceKey { end: bound(0), start: bound(1) };
            let state = &rows.columns()[STATE_COLUMNS..];
            let num_keys = self.num_keys;
            self.window(key, &state[..num_keys])?.table.merge(state, rows.num_rows())?;
        }
        for firing in &self.restored {
            if let Some(window) = self.open.get_mut(&firing.window) {
                window.shown |= firing.shown;
                window.fire_at = [window.fire_at, firing.fire_at].into_iter().flatten().min();
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.open.values().map(|window| window.table.bytes()).sum()
    }
}
