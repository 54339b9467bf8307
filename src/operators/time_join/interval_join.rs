//! Join of rows whose times lie within an interval: each row meets the kept rows of the other side, and is kept while partners can come.
//!
//! With event time at `w` no row at or before `w` is expected. A left row at `t` can meet right rows up to `t − lower`, so its time is over
//! once `w` ≥ `t − lower`; a right row's once `w` ≥ `t + upper`. Then it is forgotten and, in an outer join, comes out with NULLs if
//! it never had a partner. A row that comes late still meets what is kept. Output rows can be as old as what is kept: so the
//! watermark is held back by the greater of both reaches. With processing time the clock takes the place of both.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};

use super::pairs::{Pairing, Rows};
use super::timed_rows::{NewRows, RowPlace, Slices, TimedRows};
use crate::error::Result;
use crate::operators::late_rows::LateRows;
use crate::operators::progress::Progress;
use crate::operators::window::{milliseconds, null_rowtime};
use crate::runtime::{Operator, OperatorContext, Output, StateTable};
use crate::stream_graph::IntervalJoinSpec;
use crate::types::{Batch, InputNumber, TypeKind, Watermark, WatermarkSteps, hash_columns};

/// Pairs that are checked at once.
const PAIRS_MAX: usize = 1 << 14;
/// Slices of kept rows are no shorter.
const SLICE_MS_MIN: i64 = 100;

/// Join of rows whose times lie within an interval.
pub struct IntervalJoin {
    spec: IntervalJoinSpec,
    pairing: Pairing,
    /// For how long after its own time the rows of a side can meet others.
    reach: [i64; 2],
    /// Whether the rows of a side come out without a partner.
    padded: [bool; 2],
    /// Of each side, what is kept.
    sides: [TimedRows; 2],
    progress: Progress,
    late: LateRows,
    context: OperatorContext,
}

/// The rows of one batch on their way through.
struct Incoming {
    side: usize,
    columns: Vec<ArrayRef>,
    times: Vec<i64>,
    hashes: Vec<u64>,
    joined: Vec<bool>,
    steps: WatermarkSteps,
}

impl IntervalJoin {
    /// From its spec.
    pub fn new(spec: IntervalJoinSpec, context: &OperatorContext) -> Result<Self> {
        let schemas = [spec.left_schema.clone(), spec.right_schema.clone()];
        let pairing = Pairing::new(&spec.keys, spec.residual.as_ref(), &spec.output, schemas, context)?;
        let padded = [spec.join_type.pads_right(), spec.join_type.pads_left()];
        let reach = [-spec.lower_ms, spec.upper_ms];
        // An interval spans three slices at most; what is dead is kept for half an interval at most.
        let slice_ms = (reach[0].saturating_add(reach[1]) / 2).max(SLICE_MS_MIN);
        let keys = [spec.keys.iter().map(|key| key.left).collect(), spec.keys.iter().map(|key| key.right).collect()];
        let [left_keys, right_keys] = keys;
        let side = |schema, keys, padded| TimedRows::new(slice_ms, schema, keys, padded, context.max_parallelism);
        Ok(IntervalJoin {
            pairing,
            reach,
            padded,
            sides: [side(&spec.left_schema, left_keys, padded[0])?, side(&spec.right_schema, right_keys, padded[1])?],
            progress: Progress::new(i64::MIN, context.key_groups),
            late: LateRows::new(context),
            context: context.clone(),
            spec,
        })
    }

    /// Event time downstream when it is `time` here.
    fn held_back(&self, time: i64) -> Watermark {
        let hold = self.reach[0].max(self.reach[1]).max(0);
        if self.spec.is_proctime || time == i64::MAX { Watermark(time) } else { Watermark(time.saturating_sub(hold)) }
    }

    fn incoming(&self, side: usize, mut batch: Batch) -> Result<Incoming> {
        let steps = batch.take_steps();
        let times = if self.spec.is_proctime {
            vec![self.context.environment.clock.now_ms(); batch.num_rows()]
        } else {
            let (column, schema) =
                [(self.spec.left_time, &self.spec.left_schema), (self.spec.right_time, &self.spec.right_schema)][side];
            let precision = match schema.field(column).data_type.kind {
                TypeKind::Timestamp(precision) | TypeKind::TimestampLtz(precision) => precision,
                _ => 3,
            };
            if batch.column(column).null_count() > 0 {
                return Err(null_rowtime());
            }
            milliseconds(batch.column(column), precision)?
        };
        let key_of = |key: &crate::stream_graph::JoinKey| [key.left, key.right][side];
        let keys: Vec<ArrayRef> = self.spec.keys.iter().map(|key| Arc::clone(batch.column(key_of(key)))).collect();
        let mut hashes = Vec::new();
        hash_columns(&keys, batch.num_rows(), &mut hashes);
        let joined = vec![false; batch.num_rows()];
        Ok(Incoming { side, columns: batch.columns().to_vec(), times, hashes, joined, steps })
    }

    /// Joins the rows of a batch with what is kept of the other side, and keeps them.
    fn add(&mut self, side: usize, batch: Batch, output: &mut dyn Output) -> Result<()> {
        let mut rows = self.incoming(side, batch)?;
        let matchable = self.pairing.matchable(side, &rows.columns);
        let (reach, other_reach) = (self.reach[side], self.reach[1 - side]);
        let nothing_meets = self.spec.lower_ms > self.spec.upper_ms;
        let earliest = rows.times.iter().copied().min().unwrap_or(0);
        let latest = rows.times.iter().copied().max().unwrap_or(0);
        let slices = self.sides[1 - side].slices(earliest.saturating_sub(other_reach), latest.saturating_add(reach));
        let (mut kept, mut over) = (Vec::new(), Vec::new());
        let (mut search, mut partners) = (Search::default(), Vec::new());
        let (mut time, mut next_step) = (self.progress.time, 0);
        for row in 0..rows.times.len() {
            while let Some(step) = rows.steps.as_slice().get(next_step).filter(|step| step.rows_before as usize <= row) {
                time = self.later(time, step.watermark);
                next_step += 1;
            }
            let at = rows.times[row];
            if nothing_meets || matchable.as_ref().is_some_and(|matchable| matchable.is_null(row)) {
                over.push((row as u32, time));
                continue;
            }
            let low = at.max(time.saturating_add(1)).saturating_sub(other_reach);
            slices.find(rows.hashes[row], low, at.saturating_add(reach), |slice, partner| {
                search.rows.push(row as u32);
                search.found.push((slice, partner));
            });
            if at.saturating_add(reach) > time {
                kept.push(row as u32)
            } else {
                over.push((row as u32, time))
            }
            if search.rows.len() >= PAIRS_MAX {
                self.emit_pairs(&mut rows, &slices, &mut search, row + 1, &mut partners, output)?;
            }
        }
        let num_rows = rows.times.len();
        self.emit_pairs(&mut rows, &slices, &mut search, num_rows, &mut partners, output)?;
        partners.into_iter().for_each(|place| self.sides[1 - side].mark_joined(place));
        self.keep(&rows, &kept, &over, output)?;
        match rows.steps.last() {
            Some(watermark) => self.advance(watermark, output),
            None => Ok(()),
        }
    }

    /// The time of the join after a watermark.
    fn later(&self, time: i64, watermark: Watermark) -> i64 {
        if self.spec.is_proctime { time } else { time.max(watermark.0) }
    }

    /// Checks the pairs that were found for the rows before `up_to`, and emits those that join.
    fn emit_pairs(
        &self,
        rows: &mut Incoming,
        slices: &Slices<'_>,
        search: &mut Search,
        up_to: usize,
        partners: &mut Vec<RowPlace>,
        output: &mut dyn Output,
    ) -> Result<()> {
        let Search { rows: own, found, steps_done } = search;
        let (mut batch, mut emitted) = (Batch::new(Vec::new(), 0), Vec::new());
        if !own.is_empty() {
            let ids = found.iter().map(|(slice, row)| slices.id(*slice, *row)).collect();
            let own_rows = Rows::Of(&rows.columns, UInt32Array::from(own.clone()));
            let (left, right) = in_order(rows.side, own_rows, Rows::Kept(slices.store, ids));
            let joined = self.pairing.join(left, right, Watermark(self.progress.time))?;
            for pair in joined.pairs(own.len()) {
                rows.joined[own[pair] as usize] = true;
                emitted.push(own[pair]);
                if self.padded[1 - rows.side] {
                    let (slice, row) = found[pair];
                    partners.push(slices.row_place(slice, row));
                }
            }
            batch = joined.batch;
        }
        // Rows of an outer join that come out with NULLs at the end of the batch must come before the watermark.
        let mut steps = WatermarkSteps::none();
        while let Some(step) = rows.steps.as_slice().get(*steps_done).filter(|step| step.rows_before as usize <= up_to) {
            *steps_done += 1;
            if self.padded == [false; 2] {
                let before = emitted.partition_point(|row| *row < step.rows_before);
                steps.push(before as u32, self.held_back(step.watermark.0));
            }
        }
        own.clear();
        found.clear();
        output.batch(batch.with_steps(steps))
    }

    /// Keeps the rows that partners can still come for; of the others (with the event time that they met) those without a partner come out with NULLs, or are dropped.
    fn keep(&mut self, rows: &Incoming, kept: &[u32], over: &[(u32, i64)], output: &mut dyn Output) -> Result<()> {
        let Incoming { side, columns, times, hashes, joined, .. } = rows;
        self.sides[*side].push(&NewRows { columns, times, hashes, joined }, kept)?;
        let alone: Vec<(u32, i64)> = over.iter().copied().filter(|(row, _)| !joined[*row as usize]).collect();
        if self.padded[*side] {
            let (count, rows) = (alone.len(), alone.into_iter().map(|(row, _)| row).collect());
            return self.emit_padded(*side, Rows::Of(columns, rows), count, output);
        }
        for (row, watermark) in alone.into_iter().filter(|(row, watermark)| times[*row as usize] <= *watermark) {
            self.late.add(row as usize, watermark, times[row as usize]);
        }
        let batch = Batch::new(columns.clone(), times.len());
        self.late.give_out(InputNumber(*side as u8), &batch, output)
    }

    fn emit_padded(&self, side: usize, rows: Rows<'_>, count: usize, output: &mut dyn Output) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let (left, right) = in_order(side, rows, Rows::Nulls(count));
        output.batch(self.pairing.put_together(&left, &right)?)
    }

    /// Lets go of the rows whose time is over.
    fn expire(&mut self, time: i64, output: &mut dyn Output) -> Result<()> {
        self.progress.time = self.progress.time.max(time);
        for side in 0..2 {
            let over = if time == i64::MAX { time } else { time.saturating_sub(self.reach[side]) };
            let alone = self.sides[side].take_unjoined(over);
            for chunk in alone.chunks(PAIRS_MAX) {
                self.emit_padded(side, Rows::Kept(self.sides[side].store(), chunk.to_vec()), chunk.len(), output)?;
            }
            self.sides[side].drop_until(over);
        }
        Ok(())
    }

    fn advance(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        if !self.spec.is_proctime {
            self.expire(watermark.0, output)?;
        }
        output.watermark(self.held_back(watermark.0))
    }
}

/// Rows of a side and those of the other one, the left ones first.
fn in_order<'a>(side: usize, own: Rows<'a>, other: Rows<'a>) -> (Rows<'a>, Rows<'a>) {
    if side == 0 { (own, other) } else { (other, own) }
}

/// Pairs that may join: rows of the batch with kept rows.
#[derive(Default)]
struct Search {
    rows: Vec<u32>,
    found: Vec<(u32, u32)>,
    /// Watermark steps of the batch that were passed on.
    steps_done: usize,
}

impl Operator for IntervalJoin {
    fn process_batch(&mut self, input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        if self.spec.is_proctime {
            self.process_time(self.context.environment.clock.now_ms(), output)?;
        }
        self.add(usize::from(input.0), batch, output)
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        self.advance(watermark, output)
    }

    fn next_processing_timer(&self) -> Option<i64> {
        if !self.spec.is_proctime {
            return None;
        }
        let of_side = |side: usize| Some(self.sides[side].next_time()?.saturating_add(self.reach[side]).saturating_add(1));
        (0..2).filter_map(of_side).min()
    }

    /// What comes within this millisecond can still meet.
    fn process_time(&mut self, now_ms: i64, output: &mut dyn Output) -> Result<()> {
        if self.spec.is_proctime { self.expire(now_ms - 1, output) } else { Ok(()) }
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        let [left, right] = &mut self.sides;
        vec![("left", left), ("right", right), ("progress", &mut self.progress)]
    }
}
