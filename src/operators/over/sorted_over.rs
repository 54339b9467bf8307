//! OVER whose results change: a row that comes or goes changes the results of those that have it in their frames.
//!
//! Results are not kept. Of the partitions that a batch touches, the stretches that its rows can [reach](Reach) are evaluated before
//! the batch and after it, and where the results differ they come out, one change a row and batch.
//!
//! Of a rank with a limit over rows that only come, those behind the limit are forgotten: other rows only push them further.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute;
use hashbrown::HashMap;

use super::evaluator::{Evaluator, Results, range_key};
use super::reach::Reach;
use super::sections::Section;
use crate::error::Result;
use crate::operators::change_rows::{ChangeRows, Differ, rows_then_watermark};
use crate::operators::rank::{EncodedKeys, RankKey, RankTable};
use crate::runtime::state::RowId;
use crate::runtime::{Operator, OperatorContext, Output, StateTable};
use crate::stream_graph::{OverOperatorSpec, RankEnd, RankOperatorSpec, RankRange, RankSpec, RankStrategy};
use crate::types::{Batch, InputNumber, RowKind};

/// OVER whose results change.
pub(super) struct SortedOver<K> {
    emit_update_before: bool,
    table: RankTable<K>,
    reach: Reach,
    evaluator: Evaluator,
    limit: Option<RankLimit>,
    /// Whether rows behind the limit can come before it again.
    input_retracts: bool,
}

/// The last rank that is wanted.
#[derive(Debug, Clone, Copy)]
enum RankLimit {
    /// Of RANK.
    Rows(usize),
    /// Of DENSE_RANK.
    Keys(usize),
}

/// Stretches of partitions that a batch reaches, none beside another.
struct Stretches {
    /// As they are before the batch.
    sections: Vec<Section>,
    /// The lowest position in each where a row comes or goes.
    first_changes: Vec<usize>,
    /// For each row of the batch its stretch.
    of_rows: Vec<usize>,
}

/// The rows of all partitions in the order of a window; `updating`: they can be taken back.
pub(super) fn ordered_rows<K: RankKey>(spec: &OverOperatorSpec, updating: bool, max_parallelism: u32) -> Result<RankTable<K>> {
    // Processing time tells no rows apart: they are in the order in which they come.
    let is_compared = |column: usize| !spec.input.field(column).data_type.is_proctime();
    let rank = RankSpec {
        partition_keys: spec.over.partition_keys.clone(),
        order_keys: spec.over.order_keys.iter().filter(|key| is_compared(key.column)).cloned().collect(),
        range: RankRange { start: 1, end: RankEnd::Constant(u64::MAX) },
        output_number: false,
        window: None,
        ttl: None,
    };
    let rows = RankOperatorSpec {
        rank,
        strategy: if updating { RankStrategy::Retract } else { RankStrategy::AppendFast },
        emit_update_before: spec.emit_update_before,
        changes: None,
        input: Arc::clone(&spec.input),
    };
    RankTable::new(&rows, max_parallelism)
}

impl<K: RankKey> SortedOver<K> {
    /// From its spec.
    pub(super) fn new(spec: &OverOperatorSpec, context: &OperatorContext) -> Result<Self> {
        Ok(SortedOver {
            emit_update_before: spec.emit_update_before,
            input_retracts: spec.input_retracts,
            table: ordered_rows(spec, spec.input_retracts, context.max_parallelism)?.with_ttl(context),
            reach: Reach::new(&spec.over, range_key(&spec.over)),
            evaluator: Evaluator::new(&spec.over, &context.environment.functions)?,
            limit: spec.over.limit.map(|limit| match spec.over.calls.first().map(|over| over.call.function.as_str()) {
                Some("DENSE_RANK") => RankLimit::Keys(limit as usize),
                _ => RankLimit::Rows(limit as usize),
            }),
        })
    }

    /// The parts of sections that are wanted.
    fn wanted(&self, sections: &[Section]) -> Vec<Section> {
        let Some(limit) = self.limit else { return sections.to_vec() };
        let within = |section: &Section| {
            let end = limit.end(&self.table, section.group);
            Section { from: section.from.min(end), to: section.to.min(end), ..*section }
        };
        sections.iter().map(within).collect()
    }

    fn apply(&mut self, batch: &Batch) -> Result<Batch> {
        let keys = self.table.place(batch, None)?;
        let stretches = self.stretches(batch, &keys)?;
        let old = self.evaluator.evaluate(&self.table, &self.wanted(&stretches.sections), false)?;
        for (section, first_change) in stretches.sections.iter().zip(&stretches.first_changes) {
            self.evaluator.cut(section.group, *first_change)?;
        }
        let rows = self.table.change(batch, &keys, |_, _| {})?;
        self.table.note_written();
        let sections = stretches.after(batch, &rows);
        let new = self.evaluator.evaluate(&self.table, &self.wanted(&sections), true)?;
        let changed = self.changes(&old, &new, &self.successors(batch, &rows))?;
        let mut groups: Vec<u32> = sections.iter().map(|section| section.group).collect();
        groups.dedup();
        if let (Some(limit), false) = (self.limit, self.input_retracts) {
            for group in &groups {
                self.table.remove_from(*group, limit.end(&self.table, *group));
            }
        }
        self.table.release(&groups);
        Ok(changed)
    }

    /// The stretches that the rows of a batch reach.
    fn stretches(&self, batch: &Batch, keys: &EncodedKeys) -> Result<Stretches> {
        let reach_keys = self.reach.keys(batch, &self.table)?;
        let groups = self.table.placed();
        let reached = |row: usize| {
            let (group, key) = (groups[row], K::of(keys.bytes(row)));
            let is_retraction = batch.kind(row).is_retraction();
            let (from, to) = self.reach.of_row(&self.table, (group, &key), &reach_keys, (row, is_retraction));
            (group, from, to, self.table.position(group, &key, !is_retraction))
        };
        let reached: Vec<(u32, usize, usize, usize)> = (0..batch.num_rows()).map(reached).collect();
        let mut order: Vec<usize> = (0..reached.len()).collect();
        order.sort_unstable_by_key(|row| reached[*row]);
        let mut stretches = Stretches { sections: Vec::new(), first_changes: Vec::new(), of_rows: vec![0; reached.len()] };
        for row in order {
            let (group, from, to, change) = reached[row];
            match (stretches.sections.last_mut(), stretches.first_changes.last_mut()) {
                (Some(last), Some(first_change)) if last.group == group && from <= last.to => {
                    last.to = last.to.max(to);
                    *first_change = change.min(*first_change);
                }
                _ => {
                    stretches.sections.push(Section { group, from, to });
                    stretches.first_changes.push(change);
                }
            }
            stretches.of_rows[row] = stretches.sections.len() - 1;
        }
        Ok(stretches)
    }

    /// For each row that takes the place of another one of its partition (`-U`, `+U`) that other one.
    fn successors(&self, batch: &Batch, rows: &[RowId]) -> HashMap<RowId, RowId> {
        let mut former = HashMap::new();
        let groups = self.table.placed();
        for (row, ids) in rows.windows(2).enumerate() {
            let is_update = batch.kind(row) == RowKind::UpdateBefore && batch.kind(row + 1) == RowKind::UpdateAfter;
            if is_update && groups[row] == groups[row + 1] && ids[0].is_some() && ids[1].is_some() {
                let first = former.get(&ids[0]).copied().unwrap_or(ids[0]);
                former.insert(ids[1], first);
            }
        }
        former
    }

    /// The changes between two results; `former`: rows that others take the place of.
    fn changes(&self, old: &Results, new: &Results, former: &HashMap<RowId, RowId>) -> Result<Batch> {
        let places: HashMap<RowId, usize> = old.ids.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        let stayed: Vec<Option<usize>> = new.ids.iter().map(|id| places.get(former.get(id).unwrap_or(id)).copied()).collect();
        let columns = |results: &Results| -> Result<Vec<ArrayRef>> {
            Ok([self.table.store().take(&results.ids)?, results.values.clone()].concat())
        };
        let (old_columns, new_columns) = (columns(old)?, columns(new)?);
        // A row that only stays is another one by its results alone.
        let differ = match former.is_empty() {
            true => differ(&old.values, &new.values, &stayed)?,
            false => differ(&old_columns, &new_columns, &stayed)?,
        };
        let mut gone = vec![true; old.ids.len()];
        stayed.iter().flatten().for_each(|place| gone[*place] = false);
        let mut changes = ChangeRows::default();
        // A row that moves in its partition goes before it comes.
        (0..old.ids.len()).filter(|at| gone[*at]).for_each(|at| changes.old_row(RowKind::Delete, at));
        let mut pair = 0..;
        for (at, place) in stayed.iter().enumerate() {
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
        let (old, new) = (old_columns, new_columns);
        // Where no row is reached before or after, that side knows no results.
        match (old.len(), new.len()) {
            (was, is) if was < is => changes.into_batch(&[], &new, &new),
            (was, is) if was > is => changes.into_batch(&[], &old, &old),
            _ => changes.into_batch(&[], &old, &new),
        }
    }
}

impl RankLimit {
    /// How many rows of a partition are wanted: of rows with one key all are or none.
    fn end<K: RankKey>(self, table: &RankTable<K>, group: u32) -> usize {
        match self {
            RankLimit::Rows(0) | RankLimit::Keys(0) => 0,
            RankLimit::Rows(rows) => match table.entries(group, rows - 1).next() {
                Some((key, _)) => table.position(group, key, true),
                None => table.len(group),
            },
            RankLimit::Keys(keys) => {
                let mut end = 0;
                for _ in 0..keys {
                    let Some((key, _)) = table.entries(group, end).next() else { break };
                    end = table.position(group, key, true);
                }
                end
            }
        }
    }
}

impl Stretches {
    /// The sections after the batch, which added or took back these rows.
    fn after(&self, batch: &Batch, rows: &[RowId]) -> Vec<Section> {
        let mut growth = vec![0i64; self.sections.len()];
        for (row, _) in rows.iter().enumerate().filter(|(_, id)| id.is_some()) {
            growth[self.of_rows[row]] += if batch.kind(row).is_retraction() { -1 } else { 1 };
        }
        let moved = |at: usize, by: i64| (at as i64 + by) as usize;
        let (mut group, mut shift) = (None, 0);
        let section = |(section, growth): (&Section, i64)| {
            if group != Some(section.group) {
                (group, shift) = (Some(section.group), 0);
            }
            let from = moved(section.from, shift);
            shift += growth;
            Section { group: section.group, from, to: moved(section.to, shift) }
        };
        self.sections.iter().zip(growth).map(section).collect()
    }
}

/// Compares columns of the rows that stayed, pair by pair; none = none stayed.
fn differ(old: &[ArrayRef], new: &[ArrayRef], stayed: &[Option<usize>]) -> Result<Option<Differ>> {
    let pairs = stayed.iter().enumerate().filter_map(|(at, place)| Some((place.as_ref().copied()? as u32, at as u32)));
    let (was, is): (Vec<u32>, Vec<u32>) = pairs.unzip();
    if was.is_empty() {
        return Ok(None);
    }
    let take = |values: &[ArrayRef], at: Vec<u32>| -> Result<Vec<ArrayRef>> {
        let at = UInt32Array::from(at);
        Ok(values.iter().map(|column| compute::take(column, &at, None)).collect::<std::result::Result<_, _>>()?)
    };
    Ok(Some(Differ::new(&take(old, was)?, &take(new, is)?)?))
}

impl<K: RankKey> Operator for SortedOver<K> {
    fn process_batch(&mut self, _input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        rows_then_watermark(batch, output, |batch| self.apply(&batch))
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.table.next_timer()
    }

    fn process_time(&mut self, _now_ms: i64, _output: &mut dyn Output) -> Result<()> {
        self.table.expire()
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("rows", &mut self.table), ("marks", &mut self.evaluator)]
    }
}
