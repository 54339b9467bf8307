//! OVER ordered by a column that is no time: a row that comes or goes changes the results of those behind it.
//!
//! Results are not kept: those of the partitions that a batch touches are worked out for the rows before it and for the rows after it,
//! and where they differ they come out, one change a row and batch.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute;

use super::kept_rows::TimedRow;
use super::partitions::as_aggregate;
use super::values::{FrameStart, evaluate};
use crate::error::Result;
use crate::expr::{AggregateCall, AggregateSet, FunctionRegistry};
use crate::operators::change_rows::{ChangeRows, Differ};
use crate::operators::rank::{RankKey, RankTable, Touched};
use crate::runtime::state::RowId;
use crate::runtime::{Operator, OperatorContext, Output, StateTable};
use crate::stream_graph::{FrameUnit, OverOperatorSpec, RankEnd, RankOperatorSpec, RankRange, RankSpec, RankStrategy};
use crate::types::{Batch, InputNumber, RowKind, hash_columns};

/// OVER ordered by a column that is no time.
pub(super) struct SortedOver<K> {
    order_keys: Vec<usize>,
    unit: FrameUnit,
    calls: Vec<AggregateCall>,
    emit_update_before: bool,
    table: RankTable<K>,
    touched: Touched,
    functions: Arc<FunctionRegistry>,
}

/// Rows of some partitions with their results.
struct Results {
    ids: Vec<RowId>,
    /// Where the rows of each partition start, and the end.
    starts: Vec<usize>,
    values: Vec<ArrayRef>,
}

impl<K: RankKey> SortedOver<K> {
    /// From its spec.
    pub(super) fn new(spec: &OverOperatorSpec, context: &OperatorContext) -> Result<Self> {
        let rank = RankSpec {
            partition_keys: spec.over.partition_keys.clone(),
            order_keys: spec.over.order_keys.clone(),
            range: RankRange { start: 1, end: RankEnd::Constant(u64::MAX) },
            output_number: false,
            window: None,
        };
        let rows = RankOperatorSpec {
            rank,
            strategy: RankStrategy::Retract,
            emit_update_before: spec.emit_update_before,
            input: Arc::clone(&spec.input),
        };
        Ok(SortedOver {
            order_keys: spec.over.order_keys.iter().map(|key| key.column).collect(),
            unit: spec.over.frame.unit,
            calls: spec.over.calls.iter().map(as_aggregate).collect(),
            emit_update_before: spec.emit_update_before,
            table: RankTable::new(&rows, context.max_parallelism)?.with_ttl(context),
            touched: Touched::default(),
            functions: Arc::clone(&context.environment.functions),
        })
    }

    /// The results for rows of partitions, each in its order.
    fn results(&self, ids: Vec<RowId>, starts: Vec<usize>) -> Result<Results> {
        let keys = self.table.store().take_columns(&ids, &self.order_keys)?;
        let mut hashes = Vec::new();
        hash_columns(&keys, ids.len(), &mut hashes);
        let (mut rows, mut place) = (Vec::with_capacity(ids.len()), 0);
        for (group, bounds) in starts.windows(2).enumerate() {
            for at in bounds[0]..bounds[1] {
                // In the order equal keys lie side by side.
                place += i64::from(at == bounds[0] || hashes[at] != hashes[at - 1]);
                rows.push(TimedRow { group: group as u32, time: place, id: ids[at] });
            }
        }
        let mut aggregates = AggregateSet::new(&self.calls, &self.functions, false)?;
        aggregates.resize(starts.len());
        let start = FrameStart { unit: self.unit, preceding: None };
        let (values, _) = evaluate(&rows, start, self.table.store(), &mut [], &mut aggregates)?;
        Ok(Results { ids, starts, values })
    }

    fn apply(&mut self, batch: &Batch) -> Result<Batch> {
        self.table.update(batch, Some(&mut self.touched))?;
        let (mut before, mut before_starts) = (Vec::new(), vec![0]);
        let (mut after, mut after_starts) = (Vec::new(), vec![0]);
        for (group, ids) in self.touched.iter() {
            before.extend_from_slice(ids);
            before_starts.push(before.len());
            self.table.visible(group, &mut after);
            after_starts.push(after.len());
        }
        let old = self.results(before, before_starts)?;
        let new = self.results(after, after_starts)?;
        let changed = self.changes(&old, &new)?;
        self.table.release(self.touched.groups());
        Ok(changed)
    }

    fn changes(&self, old: &Results, new: &Results) -> Result<Batch> {
        let places: HashMap<RowId, usize> = old.ids.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        let stayed: Vec<Option<usize>> = new.ids.iter().map(|id| places.get(id).copied()).collect();
        let differ = differ(old, new, &stayed)?;
        let mut gone = vec![true; old.ids.len()];
        stayed.iter().flatten().for_each(|place| gone[*place] = false);
        let mut changes = ChangeRows::default();
        let mut pair = 0..;
        for (old_rows, new_rows) in old.starts.windows(2).zip(new.starts.windows(2)) {
            (old_rows[0]..old_rows[1]).filter(|at| gone[*at]).for_each(|at| changes.old_row(RowKind::Delete, at));
            for (at, place) in stayed.iter().enumerate().take(new_rows[1]).skip(new_rows[0]) {
                let Some(place) = *place else {
                    changes.new_row(RowKind::Insert, at);
                    continue;
                };
                let pair = pair.next().expect("an endless range");
                if differ.as_ref().is_some_and(|differ| differ.differs(pair)) {
                    if self.emit_update_before {
                        changes.old_row(RowKind::UpdateBefore, place);
                    }
                    changes.new_row(RowKind::UpdateAfter, at);
                }
            }
        }
        let columns = |results: &Results| -> Result<Vec<ArrayRef>> {
            Ok([self.table.store().take(&results.ids)?, results.values.clone()].concat())
        };
        let (old, new) = (columns(old)?, columns(new)?);
        // Before the first row, or after the last one, one side knows no results.
        match (old.len(), new.len()) {
            (was, is) if was < is => changes.into_batch(&[], &new, &new),
            (was, is) if was > is => changes.into_batch(&[], &old, &old),
            _ => changes.into_batch(&[], &old, &new),
        }
    }
}

/// Compares the results of the rows that stayed, pair by pair; none = none stayed.
fn differ(old: &Results, new: &Results, stayed: &[Option<usize>]) -> Result<Option<Differ>> {
    let pairs = stayed.iter().enumerate().filter_map(|(at, place)| Some((place.as_ref().copied()? as u32, at as u32)));
    let (was, is): (Vec<u32>, Vec<u32>) = pairs.unzip();
    if was.is_empty() {
        return Ok(None);
    }
    let take = |values: &[ArrayRef], at: Vec<u32>| -> Result<Vec<ArrayRef>> {
        let at = UInt32Array::from(at);
        Ok(values.iter().map(|column| compute::take(column, &at, None)).collect::<std::result::Result<_, _>>()?)
    };
    Ok(Some(Differ::new(&take(&old.values, was)?, &take(&new.values, is)?)?))
}

impl<K: RankKey> Operator for SortedOver<K> {
    fn open(&mut self, _context: &OperatorContext) -> Result<()> {
        Ok(())
    }

    fn process_batch(&mut self, _input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        let steps = batch.take_steps();
        if batch.num_rows() > 0 {
            output.batch(self.apply(&batch)?)?;
        }
        steps.last().map_or(Ok(()), |watermark| output.watermark(watermark))
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.table.next_timer()
    }

    fn process_time(&mut self, _now_ms: i64, _output: &mut dyn Output) -> Result<()> {
        self.table.expire()
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("rows", &mut self.table)]
    }
}
