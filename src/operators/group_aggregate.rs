//! GROUP BY without a window: a changing table of results, one change a group and batch.
//!
//! The first row of a group makes it appear (`+I`), others change it (`-U` `+U`), and when all its rows were taken back it goes (`-D`).
//! A result that stays the same is not emitted. Flink emits a change for each row; ours, folded, give the same table.
//!
//! With a time to live a group that gets no row for so long is forgotten, without a word: the next row makes it anew (`+I`), and what is taken
//! back of a group that is not there is passed over. Then a result is emitted though it stays the same, so that those who keep it
//! know that it lives. All this is Flink's.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute;

use super::change_rows::{ChangeRows, Differ, rows_then_watermark};
use super::group_blocks::{ContentNumbers, FrozenGroups};
use super::group_table::GroupTable;
use super::keyed_state::rows_in_range;
use super::state_ttl::{KeyTtl, has_times, split_times};
use super::touched::Touched;
use crate::error::Result;
use crate::expr::{AggregateCall, FunctionRegistry};
use crate::runtime::{Operator, OperatorContext, Output, StateTable, StateTableSnapshot};
use crate::types::{Batch, InputNumber, KeyGroupRange, RowKind};

/// GROUP BY without a window.
pub struct GroupAggregate {
    keys: Vec<usize>,
    emit_update_before: bool,
    state: GroupState,
    touched: Touched,
}

/// The groups behind the contract of state. The table is made when the types of its keys are known: with the first rows.
struct GroupState {
    num_keys: usize,
    aggregates: Vec<AggregateCall>,
    input_retracts: bool,
    functions: Arc<FunctionRegistry>,
    max_parallelism: u32,
    table: Option<GroupTable>,
    contents: ContentNumbers,
    ttl: Option<KeyTtl>,
    /// What the operator keeps beside for each group.
    touched_bytes: usize,
}

impl GroupAggregate {
    /// From the parts of its spec.
    pub fn new(
        keys: Vec<usize>,
        aggregates: Vec<AggregateCall>,
        input_retracts: bool,
        emit_update_before: bool,
        context: &OperatorContext,
    ) -> Self {
        let state = GroupState {
            num_keys: keys.len(),
            aggregates,
            input_retracts,
            functions: Arc::clone(&context.environment.functions),
            max_parallelism: context.max_parallelism,
            table: None,
            contents: ContentNumbers::default(),
            ttl: KeyTtl::new(context, 0),
            touched_bytes: 0,
        };
        GroupAggregate { keys, emit_update_before, state, touched: Touched::default() }
    }

    fn apply(&mut self, batch: Batch) -> Result<Batch> {
        let (batch, key_columns) = self.state.assign(batch, &self.keys)?;
        // Who keeps results must hear of them, also of those that stay the same; but nobody keeps a key alone by its changes.
        let tells_all = self.state.ttl.is_some() && !self.state.aggregates.is_empty();
        let table = self.state.table.as_mut().expect("made with the first rows");
        self.touched.find(table.groups(), table.keys.num_groups());
        self.state.touched_bytes = self.touched.bytes();
        let touched = &self.touched;
        let fresh = table.keys.fresh().to_vec();
        let all_fresh = fresh.len() == touched.groups.len();
        let old = if all_fresh { None } else { Some(table.aggregates.evaluate(&touched.groups)?) };
        table.update(batch.columns(), batch.kinds())?;
        let new = table.aggregates.evaluate(&touched.groups)?;
        let old = old.unwrap_or_else(|| new.clone());

        let differ = Differ::new(&old, &new)?;
        let mut changes = ChangeRows::default();
        let mut gone = Vec::new();
        // Fresh groups are numbered in the order of their first rows, which is that of the touched ones.
        let mut fresh = fresh.into_iter().peekable();
        for (index, group) in touched.groups.iter().enumerate() {
            let (was, is) = (fresh.next_if_eq(group).is_none(), table.is_alive(*group));
            match (was, is) {
                (false, true) => changes.new_row(RowKind::Insert, index),
                (true, true) if tells_all || differ.differs(index) => {
                    if self.emit_update_before {
                        changes.old_row(RowKind::UpdateBefore, index);
                    }
                    changes.new_row(RowKind::UpdateAfter, index);
                }
                (true, true) => {}
                (true, false) => changes.old_row(RowKind::Delete, index),
                (false, false) => {}
            }
            if !is {
                gone.push(*group);
            }
        }
        table.remove(&gone)?;
        if let Some(ttl) = &mut self.state.ttl {
            ttl.write(&touched.groups);
            ttl.remove(&gone);
        }
        let rows = UInt32Array::from(touched.first_rows.clone());
        let keys: Vec<ArrayRef> =
            key_columns.iter().map(|column| compute::take(column, &rows, None)).collect::<std::result::Result<_, _>>()?;
        changes.into_batch(&keys, &old, &new)
    }
}

impl Operator for GroupAggregate {
    fn process_batch(&mut self, _input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        rows_then_watermark(batch, output, |batch| self.apply(batch))
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.state.ttl.as_ref()?.next_timer()
    }

    fn process_time(&mut self, _now_ms: i64, _output: &mut dyn Output) -> Result<()> {
        self.state.expire()
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("groups", &mut self.state)]
    }
}

impl GroupState {
    fn table(&mut self, key_columns: &[ArrayRef]) -> Result<&mut GroupTable> {
        if self.table.is_none() {
            let types: Vec<_> = key_columns.iter().map(|column| column.data_type().clone()).collect();
            self.table = Some(GroupTable::new(&types, &self.aggregates, &self.functions, self.input_retracts)?);
        }
        Ok(self.table.as_mut().expect("made above"))
    }

    /// Finds or makes the group of each row; gives the rows and their keys. With a time to live, groups that are over are made anew, and
    /// rows that take back what no group has are left out.
    fn assign(&mut self, batch: Batch, keys: &[usize]) -> Result<(Batch, Vec<ArrayRef>)> {
        self.expire()?;
        let keys_of = |batch: &Batch| keys.iter().map(|key| Arc::clone(batch.column(*key))).collect::<Vec<ArrayRef>>();
        let key_columns = keys_of(&batch);
        self.table(&key_columns)?.assign(&key_columns, batch.num_rows())?;
        let (Some(ttl), Some(table)) = (&mut self.ttl, &mut self.table) else { return Ok((batch, key_columns)) };
        let over = ttl.take_over(table.groups());
        if !over.is_empty() {
            table.remove(&[over.as_slice(), table.keys.fresh()].concat())?;
            table.assign(&key_columns, batch.num_rows())?;
        }
        let Some(known) = batch.kinds().and_then(|kinds| table.known_rows(kinds)) else { return Ok((batch, key_columns)) };
        let fresh = table.keys.fresh().to_vec();
        table.remove(&fresh)?;
        let batch = batch.filter(&known)?;
        let key_columns = keys_of(&batch);
        table.assign(&key_columns, batch.num_rows())?;
        Ok((batch, key_columns))
    }

    /// Forgets the groups whose time is over.
    fn expire(&mut self) -> Result<()> {
        let over = self.ttl.as_mut().map(KeyTtl::tick).unwrap_or_default();
        self.table.as_mut().map_or(Ok(()), |table| table.remove(&over))
    }
}

impl StateTable for GroupState {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let GroupState { table, contents, ttl, max_parallelism, .. } = self;
        let mut frozen = FrozenGroups::default();
        if let Some(table) = table {
            let times = |groups: &[u32]| ttl.as_ref().map(|ttl| ttl.times(groups));
            table.freeze(*max_parallelism, contents, &mut frozen, |_| Vec::new(), |_| Vec::new(), times)?;
        }
        Ok(StateTableSnapshot::frozen(frozen))
    }

    fn snapshot_completed(&mut self) {
        self.table.iter_mut().for_each(GroupTable::snapshot_completed);
    }

    fn outlives_input(&self) -> bool {
        false
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            let timed = has_times(rows);
            let rows = rows_in_range(rows, range)?;
            let (columns, times) = split_times(rows.columns(), timed);
            let num_keys = self.num_keys;
            self.table(&columns[..num_keys])?.merge(columns, rows.num_rows())?;
            if let (Some(ttl), Some(table), true) = (&mut self.ttl, &self.table, rows.num_rows() > 0) {
                ttl.restore(table.groups(), times);
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        let table = self.table.as_ref().map_or(0, GroupTable::bytes);
        table + self.ttl.as_ref().map_or(0, KeyTtl::bytes) + self.touched_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::VirtualClock;
    use crate::operators::testing::*;

    fn operator(keys: Vec<usize>, input_retracts: bool, context: &OperatorContext) -> GroupAggregate {
        let aggregates = vec![aggregate("COUNT(*)"), aggregate("SUM"), aggregate("MAX")];
        GroupAggregate::new(keys, aggregates, input_retracts, true, context)
    }

    #[test]
    fn changes_are_compacted_per_batch_and_same_results_kept_back() {
        let mut operator = operator(vec![0], true, &context());
        let mut output = Lines::default();
        push(&mut operator, batch(&["+I a 1", "+I b 2", "~3", "+I a 3", "~4"]), &mut output);
        assert_eq!(output.take(), ["+I a 2 4 3", "+I b 1 2 2", "~4"]);
        push(&mut operator, batch(&["-U a 3", "+U a 5", "-D b 2", "+I c NULL"]), &mut output);
        assert_eq!(output.take(), ["-U a 2 4 3", "+U a 2 6 5", "-D b 1 2 2", "+I c 1 NULL NULL"]);
        push(&mut operator, batch(&["-U a 5", "+U a 5", "+I d 1", "-D d 1"]), &mut output);
        assert_eq!(output.take(), [""; 0]);
        push(&mut operator, batch(&["+I b 7", "+I NULL 1"]), &mut output);
        assert_eq!(output.take(), ["+I b 1 7 7", "+I NULL 1 1 1"]);
    }

    #[test]
    fn a_global_group_starts_with_its_first_row() {
        let mut operator = operator(vec![], true, &context());
        let mut output = Lines::default();
        push(&mut operator, batch(&["~7"]), &mut output);
        push(&mut operator, batch(&["+I a 1"]), &mut output);
        push(&mut operator, batch(&["-D a 1"]), &mut output);
        push(&mut operator, batch(&["+I a 2"]), &mut output);
        assert_eq!(output.take(), ["~7", "+I 1 1 1", "-D 1 1 1", "+I 1 2 2"]);
    }

    #[test]
    fn state_is_split_and_joined_by_key_group() {
        let lines: Vec<String> = (0..200).map(|n| format!("+I key{} {n}", n % 50)).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (first, second) = (batch(&lines[..120]), batch(&lines[120..]));
        let mut expected = Lines::default();
        let mut whole = operator(vec![0], true, &context());
        push(&mut whole, first.clone(), &mut Lines::default());
        let snapshots = snapshot(&mut whole);
        push(&mut whole, second.clone(), &mut expected);

        let mut halves = Vec::new();
        let mut output = Lines::default();
        for index in 0..2 {
            let context = context_of(index, 2, VirtualClock::new(0), &[]);
            let mut half = operator(vec![0], true, &context);
            restore(&mut half, &context, &snapshots);
            halves.push(snapshot(&mut half));
            push(&mut half, share(&second, index, 2), &mut output);
        }
        let expected = expected.take_sorted_rows();
        assert_eq!(output.take_sorted_rows(), expected);

        let mut joined = operator(vec![0], true, &context());
        halves.iter().for_each(|half| restore(&mut joined, &context(), half));
        push(&mut joined, second, &mut output);
        assert_eq!(output.take_sorted_rows(), expected);
    }

    /// The table that output lines fold to, sorted.
    fn fold(lines: &[String]) -> Vec<String> {
        let mut table: Vec<&str> = Vec::new();
        for line in lines {
            let (kind, row) = line.split_once(' ').unwrap();
            if kind.starts_with('+') {
                table.push(row);
            } else {
                let at = table.iter().position(|other| *other == row).expect("only rows that are there are taken back");
                table.swap_remove(at);
            }
        }
        table.sort_unstable();
        table.into_iter().map(str::to_string).collect()
    }

    /// A changelog of random rows that come and go again.
    fn random_changes(seed: u64) -> Vec<String> {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut present, mut lines) = (Vec::new(), Vec::new());
        for _ in 0..300 {
            if !present.is_empty() && random.f64() < 0.45 {
                let row: String = present.swap_remove(random.usize(0..present.len()));
                lines.push(format!("-D {row}"));
            } else {
                let value = if random.u8(0..5) == 0 { "NULL".to_string() } else { random.i64(0..6).to_string() };
                present.push(format!("key{} {value}", random.u8(0..8)));
                lines.push(format!("+I {}", present[present.len() - 1]));
            }
        }
        lines
    }

    #[test]
    fn random_changes_in_batches_of_any_size_give_one_table() {
        for seed in 0..20 {
            let lines = random_changes(seed);
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let mut answers = Vec::new();
            for size in [1, 7, 300] {
                let calls = ["COUNT(*)", "COUNT", "SUM", "AVG", "MIN", "MAX"].map(aggregate);
                let distinct = ["COUNT", "SUM"].map(|name| AggregateCall { distinct: true, ..aggregate(name) });
                let calls: Vec<AggregateCall> = calls.into_iter().chain(distinct).collect();
                let mut operator = GroupAggregate::new(vec![0], calls.clone(), true, true, &context());
                let mut output = Lines::default();
                for (index, chunk) in lines.chunks(size).enumerate() {
                    push(&mut operator, batch(chunk), &mut output);
                    if index == 3 {
                        let snapshots = snapshot(&mut operator);
                        operator = GroupAggregate::new(vec![0], calls.clone(), true, true, &context());
                        restore(&mut operator, &context(), &snapshots);
                    }
                }
                answers.push(fold(&output.take()));
            }
            assert!(!answers[0].is_empty());
            answers.windows(2).for_each(|pair| assert_eq!(pair[0], pair[1], "seed {seed}"));
        }
    }
}
