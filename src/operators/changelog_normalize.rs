//! ChangelogNormalize: changes that come without the former content of rows, or more than once, as a full changelog.
//!
//! It keeps the last row of each primary key. A row whose key is there becomes an update, unless it changes nothing; a deletion
//! takes away the row that is kept, whatever it says beside the key, and nothing when there is none. Of several changes of a key
//! within a batch the last one counts.
//!
//! With a time to live a key without changes for so long is forgotten: its next row is a new one, its deletion is passed over. A row that
//! changes nothing is emitted then, so that those who keep it know that it lives. All as in Flink.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute;

use super::change_rows::{ChangeRows, Differ, rows_then_watermark};
use super::frozen_store::FrozenStore;
use super::keyed_state::rows_in_range;
use super::state_ttl::{KeyTtl, has_times, split_times};
use super::touched::Touched;
use crate::error::Result;
use crate::expr::GroupKeys;
use crate::runtime::state::{RowId, RowStore};
use crate::runtime::{Operator, OperatorContext, Output, StateTable, StateTableSnapshot};
use crate::types::{Batch, InputNumber, KeyGroupRange, RowKind, SchemaRef, hash_columns};

/// Makes a full changelog of changes by key.
pub struct ChangelogNormalize {
    emit_update_before: bool,
    state: LastRows,
    touched: Touched,
}

/// The last row of each key.
struct LastRows {
    /// Key columns.
    key_columns: Vec<usize>,
    keys: GroupKeys,
    /// The row of each key, by the key's number.
    last: Vec<RowId>,
    rows: RowStore,
    max_parallelism: u32,
    hashes: Vec<u64>,
    groups: Vec<u32>,
    ttl: Option<KeyTtl>,
}

impl ChangelogNormalize {
    /// For rows with these columns, by these key columns.
    pub fn new(keys: &[usize], schema: &SchemaRef, emit_update_before: bool, context: &OperatorContext) -> Result<Self> {
        let types: Vec<_> = schema.fields.iter().map(|field| field.data_type.to_arrow()).collect();
        let key_types: Vec<_> = keys.iter().map(|key| types[*key].clone()).collect();
        let state = LastRows {
            key_columns: keys.to_vec(),
            keys: GroupKeys::new(&key_types)?,
            last: Vec::new(),
            rows: RowStore::new(&types)?,
            max_parallelism: context.max_parallelism,
            hashes: Vec::new(),
            groups: Vec::new(),
            ttl: KeyTtl::new(context, 0),
        };
        Ok(ChangelogNormalize { emit_update_before, state, touched: Touched::default() })
    }

    fn apply(&mut self, batch: &Batch) -> Result<Batch> {
        let state = &mut self.state;
        state.expire();
        state.assign(batch.columns(), batch.num_rows())?;
        if let Some(ttl) = &mut state.ttl {
            ttl.write(&state.groups);
        }
        self.touched.find(&state.groups, state.keys.num_groups());
        let Touched { groups: touched, last_rows, .. } = &self.touched;
        let kept: Vec<RowId> = touched.iter().map(|group| state.last[*group as usize]).collect();
        let new = take_all(batch.columns(), &UInt32Array::from(last_rows.clone()))?;
        let any_kept = kept.iter().any(|id| id.is_some());
        let old = if any_kept { state.rows.take(&kept)? } else { new.clone() };
        let differ = if any_kept { Some(Differ::new(&old, &new)?) } else { None };

        let mut changes = ChangeRows::default();
        let (mut gone, mut replaced, mut stored, mut groups) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (index, (group, row)) in touched.iter().zip(last_rows).enumerate() {
            let (was, is) = (kept[index].is_some(), !batch.kind(*row as usize).is_retraction());
            let changed = state.ttl.is_some() || differ.as_ref().is_none_or(|differ| differ.differs(index));
            match (was, is) {
                (false, true) => changes.new_row(RowKind::Insert, index),
                (true, true) if changed => {
                    if self.emit_update_before {
                        changes.old_row(RowKind::UpdateBefore, index);
                    }
                    changes.new_row(RowKind::UpdateAfter, index);
                }
                (true, true) => continue,
                (true, false) => changes.old_row(RowKind::Delete, index),
                (false, false) => {}
            }
            if was {
                replaced.push(kept[index]);
            }
            if is {
                stored.push(index as u32);
                groups.push(*group);
            } else {
                gone.push(*group);
            }
        }
        state.rows.delete(&replaced);
        state.store(&take_all(&new, &UInt32Array::from(stored))?, &groups)?;
        state.forget(&gone);
        changes.into_batch(&[], &old, &new)
    }
}

fn take_all(columns: &[ArrayRef], rows: &UInt32Array) -> Result<Vec<ArrayRef>> {
    Ok(columns.iter().map(|column| compute::take(column, rows, None)).collect::<std::result::Result<_, _>>()?)
}

impl LastRows {
    /// Finds or makes the group of each row.
    fn assign(&mut self, columns: &[ArrayRef], num_rows: usize) -> Result<()> {
        let keys: Vec<ArrayRef> = self.key_columns.iter().map(|key| Arc::clone(&columns[*key])).collect();
        hash_columns(&keys, num_rows, &mut self.hashes);
        self.keys.assign(&keys, &self.hashes, &mut self.groups)?;
        let over = self.ttl.as_mut().map(|ttl| ttl.take_over(&self.groups)).unwrap_or_default();
        if !over.is_empty() {
            let fresh = self.keys.fresh().to_vec();
            self.drop_rows(&over);
            self.keys.remove(&fresh);
            self.keys.assign(&keys, &self.hashes, &mut self.groups)?;
        }
        self.last.resize(self.keys.num_groups(), RowId::NONE);
        Ok(())
    }

    /// Keeps rows, one for each of these groups.
    fn store(&mut self, columns: &[ArrayRef], groups: &[u32]) -> Result<()> {
        let mut ids = Vec::new();
        self.rows.append(columns, groups.len(), &mut ids)?;
        groups.iter().zip(ids).for_each(|(group, id)| self.last[*group as usize] = id);
        Ok(())
    }

    fn forget(&mut self, groups: &[u32]) {
        groups.iter().for_each(|group| self.last[*group as usize] = RowId::NONE);
        self.keys.remove(groups);
        if let Some(ttl) = &mut self.ttl {
            ttl.remove(groups);
        }
    }

    /// Forgets the keys whose time is over.
    fn expire(&mut self) {
        let over = self.ttl.as_mut().map(KeyTtl::tick).unwrap_or_default();
        self.drop_rows(&over);
    }

    fn drop_rows(&mut self, groups: &[u32]) {
        let ids: Vec<RowId> = groups.iter().map(|group| self.last[*group as usize]).collect();
        self.rows.delete(&ids);
        self.forget(groups);
    }
}

/// The rows themselves: their keys are among them.
impl StateTable for LastRows {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let keys_of_rows = || self.keys.groups().into_iter().map(|group| (self.last[group as usize], group));
        let times = self.ttl.as_ref().map(|ttl| ttl.times_of_rows(keys_of_rows()));
        let rows = FrozenStore::new(&self.rows, &self.key_columns, self.max_parallelism);
        Ok(StateTableSnapshot::frozen(FrozenStore { times, ..rows }))
    }

    fn outlives_input(&self) -> bool {
        false
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        snapshot.for_each_batch(|rows| {
            let timed = has_times(&rows);
            let rows = rows_in_range(&rows, range)?;
            let (columns, times) = split_times(rows.columns(), timed);
            self.assign(columns, rows.num_rows())?;
            let groups = std::mem::take(&mut self.groups);
            if let Some(ttl) = &mut self.ttl {
                ttl.restore(&groups, times);
            }
            self.store(columns, &groups)
        })
    }

    fn bytes(&self) -> usize {
        let ttl = self.ttl.as_ref().map_or(0, KeyTtl::bytes);
        ttl + self.keys.bytes() + self.rows.bytes() + self.last.capacity() * size_of::<RowId>()
    }
}

impl Operator for ChangelogNormalize {
    fn process_batch(&mut self, _input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        rows_then_watermark(batch, output, |batch| self.apply(&batch))
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.state.ttl.as_ref()?.next_timer()
    }

    fn process_time(&mut self, _now_ms: i64, _output: &mut dyn Output) -> Result<()> {
        self.state.expire();
        Ok(())
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("rows", &mut self.state)]
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Configuration;
    use crate::stream_graph::OperatorSpec;
    use crate::testing::operator_harness::OperatorHarness;
    use crate::types::{DataType, Field, Schema, TypeKind};

    fn schema() -> Schema {
        let int = || DataType::nullable(TypeKind::BigInt);
        Schema::new(vec![Field::new("k", int()), Field::new("v", DataType::string())])
    }

    fn spec(emit_update_before: bool) -> OperatorSpec {
        OperatorSpec::ChangelogNormalize { keys: vec![0], schema: schema().into(), emit_update_before, changes: None }
    }

    fn harness(emit_update_before: bool) -> OperatorHarness {
        OperatorHarness::new(&spec(emit_update_before), vec![schema()]).unwrap()
    }

    #[test]
    fn former_content_is_filled_in_and_what_changes_nothing_is_left_out() {
        let mut normalize = harness(true);
        let out = normalize.push("+I | 1 | a\n+U | 2 | b\nWATERMARK 5\n+I | NULL | n\n-D | 9 | x").unwrap();
        assert_eq!(out, "1 | a\n2 | b\nNULL | n\nWATERMARK 5\n");
        let out = normalize.push("+I | 2 | b\n+U | 1 | aa\n-D | NULL | NULL").unwrap();
        assert_eq!(out, "-U | 1 | a\n+U | 1 | aa\n-D | NULL | n\n");
        assert_eq!(normalize.push("-D | 1 | NULL\n-D | 1 | NULL").unwrap(), "-D | 1 | aa\n");
        assert_eq!(normalize.push("-D | 1 | aa\n+U | 1 | new").unwrap(), "1 | new\n");
    }

    #[test]
    fn of_several_changes_in_a_batch_the_last_one_counts() {
        let mut normalize = harness(false);
        assert_eq!(normalize.push("+I | 1 | a\n+I | 2 | b\n+U | 1 | c\n-D | 2 | b").unwrap(), "1 | c\n");
        assert_eq!(normalize.push("-D | 1 | c\n+I | 1 | d\n+I | 3 | e").unwrap(), "+U | 1 | d\n+I | 3 | e\n");
    }

    #[test]
    fn state_goes_on_with_another_parallelism() {
        let mut old = [harness(true)];
        let rows = |value: &str| (0..100).map(|key| format!("+I | {key} | {value}{key}")).collect::<Vec<_>>().join("\n");
        old[0].push(&rows("a")).unwrap();
        old[0].push("-D | 7 | a7\n+U | 8 | a text that is longer than a view").unwrap();
        let mut three = OperatorHarness::rescale(&mut old, &spec(true), 3, &Configuration::default()).unwrap();
        let mut two = OperatorHarness::rescale(&mut three, &spec(true), 2, &Configuration::default()).unwrap();
        let mut updates: Vec<String> = Vec::new();
        for subtask in &mut two {
            updates.extend(subtask.push(&rows("b")).unwrap().lines().filter(|line| line.starts_with("-U")).map(str::to_string));
        }
        assert_eq!(updates.len(), 99, "each key but the deleted one is known to one subtask");
        assert!(updates.contains(&"-U | 8 | a text that is longer than a view".to_string()));
    }
}
