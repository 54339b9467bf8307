//! A regular join: two changing tables, both kept, joined as they change.
//!
//! Rows of a batch are joined with all rows that the other side has, then kept themselves. The keys of a batch are hashed and looked
//! up once, its pairs are found by numbers alone, the residual condition is evaluated and the output columns are gathered over
//! thousands of pairs at a time.
//!
//! Like Flink's StreamingJoinOperator: of an outer side each row counts its partners; with its first one the row padded with NULLs
//! is taken back, with the last one gone it comes again. A batch does so once a row, for what is true after it. Rows whose key
//! is NULL join nothing: they pass by (padded) or go, and are not kept.
//!
//! Each side can have a time to live: a row is forgotten so long after it came or its number of partners changed.

use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use arrow::compute;

use super::condition::Condition;
use super::emission::{Emission, OutputColumn};
use super::key_groups::{JoinKeys, columns_at};
use super::side::{JoinSide, take_rows};
use crate::config::BATCH_ROWS;
use crate::error::{Error, Result};
use crate::operators::evaluation::Surroundings;
use crate::operators::state_ttl::RowTtl;
use crate::runtime::state::RowId;
use crate::runtime::{Operator, OperatorContext, Output, StateTable};
use crate::stream_graph::{JoinType, RegularJoinSpec};
use crate::types::{Batch, InputNumber, RowKind, Watermark};

/// Pairs that are looked at together, unless one row alone has more.
const PAIRS_MAX: usize = 1 << 16;

/// A regular join.
#[derive(Debug)]
pub struct RegularJoin {
    join_type: JoinType,
    condition: Option<Condition>,
    output: Vec<OutputColumn>,
    keys: JoinKeys,
    left: JoinSide,
    right: JoinSide,
    surroundings: Surroundings,
    watermark: Watermark,
    batch_rows: usize,
}

/// Pairs of rows of a batch and rows of the other side.
#[derive(Default)]
struct Pairs {
    own: Vec<u32>,
    others: Vec<RowId>,
}

impl RegularJoin {
    /// From its spec.
    pub fn new(spec: RegularJoinSpec, context: &OperatorContext) -> Result<Self> {
        let RegularJoinSpec {
            join_type,
            keys,
            residual,
            left_retracts,
            right_retracts,
            left_schema,
            right_schema,
            output,
            ttl: _,
        } = spec;
        let left_width = left_schema.len();
        let types: Vec<_> = keys.iter().map(|key| left_schema.field(key.left).data_type.to_arrow()).collect();
        let right_types: Vec<_> = keys.iter().map(|key| right_schema.field(key.right).data_type.to_arrow()).collect();
        if types != right_types {
            return Err(Error::internal(format!("join keys of different types: {types:?} and {right_types:?}")));
        }
        let functions = &context.environment.functions;
        let condition = residual.map(|expr| Condition::new(&expr, left_width, functions)).transpose()?;
        let left_keys = keys.iter().map(|key| key.left).collect();
        let right_keys = keys.iter().map(|key| key.right).collect();
        let left_counts = join_type.pads_right() || join_type.is_left_only();
        let column = |at: usize| match at.checked_sub(left_width) {
            None => OutputColumn { left: true, column: at },
            Some(column) => OutputColumn { left: false, column },
        };
        Ok(RegularJoin {
            join_type,
            condition,
            output: output.into_iter().map(column).collect(),
            keys: JoinKeys::new(&types, keys.iter().map(|key| key.null_safe).collect())?,
            left: JoinSide::new(&left_schema, left_keys, left_retracts, left_counts, context.max_parallelism)?
                .with_ttl(RowTtl::new(context, 0)),
            right: JoinSide::new(&right_schema, right_keys, right_retracts, join_type.pads_left(), context.max_parallelism)?
                .with_ttl(RowTtl::new(context, 1)),
            surroundings: Surroundings::new(context),
            watermark: Watermark::MIN,
            batch_rows: context.configuration.integer(&BATCH_ROWS).max(1) as usize,
        })
    }

    /// Joins the rows of a batch that came from the left (or right), and keeps them.
    fn join(&mut self, batch: Batch, from_left: bool, output: &mut dyn Output) -> Result<()> {
        self.expire()?;
        let own = if from_left { &self.left } else { &self.right };
        let key_columns = columns_at(batch.columns(), &own.keys);
        let batch = match self.keys.joinable(&key_columns) {
            None => batch,
            Some(joinable) => {
                self.pass_alone(&batch.filter(&compute::not(&joinable)?)?, from_left, output)?;
                batch.filter(&joinable)?
            }
        };
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let own = if from_left { &self.left } else { &self.right };
        let key_columns = columns_at(batch.columns(), &own.keys);
        let mut keys = Vec::new();
        self.keys.assign(&key_columns, batch.num_rows(), &mut keys)?;
        self.left.resize(self.keys.num_keys());
        self.right.resize(self.keys.num_keys());
        let kinds = self.output_kinds(&batch, &keys);
        let mut from = 0;
        while from < batch.num_rows() {
            let (rows, pairs) = self.pairs(&batch, &keys, from, from_left)?;
            from = rows.end;
            self.join_rows(&batch, rows, &keys, &kinds, pairs, from_left, output)?;
        }
        if batch.kinds().is_some() {
            let gone = keys.into_iter().enumerate().filter(|(row, _)| batch.kind(*row).is_retraction());
            self.forget_free_keys(gone.map(|(_, key)| key).collect());
        }
        self.left.key_bytes = self.keys.bytes();
        Ok(())
    }

    /// Forgets the rows whose time is over, and keys that have no row for it.
    fn expire(&mut self) -> Result<()> {
        self.link_restored()?;
        let mut keys = self.left.expire(&mut self.keys)?;
        keys.extend(self.right.expire(&mut self.keys)?);
        self.forget_free_keys(keys);
        Ok(())
    }

    fn link_restored(&mut self) -> Result<()> {
        self.left.link_restored(&mut self.keys)?;
        self.right.link_restored(&mut self.keys)?;
        self.left.resize(self.keys.num_keys());
        self.right.resize(self.keys.num_keys());
        Ok(())
    }

    /// Whether a row without a partner comes out, of the side that a batch came from.
    fn emits_alone(&self, from_left: bool) -> bool {
        match self.join_type {
            JoinType::Inner | JoinType::Semi => false,
            JoinType::Left | JoinType::Anti => from_left,
            JoinType::Right => !from_left,
            JoinType::Full => true,
        }
    }

    /// Rows that join nothing whatever the other side has.
    fn pass_alone(&self, batch: &Batch, from_left: bool, output: &mut dyn Output) -> Result<()> {
        if !self.emits_alone(from_left) {
            return Ok(());
        }
        let mut emission = Emission::with_capacity(batch.num_rows());
        (0..batch.num_rows()).for_each(|row| emission.own(plain(batch.kind(row)), row as u32));
        self.emit(&emission, batch, from_left, output)
    }

    /// The kinds of the rows that each row of the batch makes. An update stays one where old and new content surely have the
    /// same partners; otherwise a row goes and another one comes.
    fn output_kinds(&self, batch: &Batch, keys: &[u32]) -> Vec<RowKind> {
        let mut kinds: Vec<RowKind> = (0..batch.num_rows()).map(|row| plain(batch.kind(row))).collect();
        if self.condition.is_none() && batch.kinds().is_some() {
            for row in 1..batch.num_rows() {
                let is_update = batch.kind(row - 1) == RowKind::UpdateBefore && batch.kind(row) == RowKind::UpdateAfter;
                if is_update && keys[row - 1] == keys[row] {
                    kinds[row - 1] = RowKind::UpdateBefore;
                    kinds[row] = RowKind::UpdateAfter;
                }
            }
        }
        kinds
    }

    /// The pairs of the next rows of a batch that fulfil the condition, in the order of these rows; and which rows these are.
    fn pairs(&self, batch: &Batch, keys: &[u32], from: usize, from_left: bool) -> Result<(Range<usize>, Pairs)> {
        let other = if from_left { &self.right } else { &self.left };
        let mut pairs = Pairs::default();
        let mut row = from;
        while row < keys.len() && pairs.own.len() < PAIRS_MAX {
            pairs.others.extend(other.rows_of(keys[row]));
            pairs.own.resize(pairs.others.len(), row as u32);
            row += 1;
        }
        if let (Some(condition), false) = (&self.condition, pairs.own.is_empty()) {
            let mut kept = Pairs::default();
            for (own, others) in pairs.own.chunks(self.batch_rows).zip(pairs.others.chunks(self.batch_rows)) {
                let surroundings = (&self.surroundings, self.watermark);
                let mask = condition.evaluate(batch.columns(), from_left, own, other, others, surroundings)?;
                for at in mask.values().set_indices() {
                    kept.own.push(own[at]);
                    kept.others.push(others[at]);
                }
            }
            pairs = kept;
        }
        Ok((from..row, pairs))
    }

    /// Emits what becomes of some rows of a batch, and keeps them.
    #[allow(clippy::too_many_arguments)] // one step of `join`
    fn join_rows(
        &mut self,
        batch: &Batch,
        rows: Range<usize>,
        keys: &[u32],
        kinds: &[RowKind],
        pairs: Pairs,
        from_left: bool,
        output: &mut dyn Output,
    ) -> Result<()> {
        let turns = self.count_partners(batch, &pairs, from_left);
        let mut emission = Emission::with_capacity(pairs.own.len() + 2 * turns.len());
        let leaves_alone = |has_partner: bool| if self.join_type == JoinType::Semi { !has_partner } else { has_partner };
        for (id, has_partner) in turns.iter().filter(|(_, has_partner)| leaves_alone(*has_partner)) {
            debug_assert!(*has_partner || self.join_type == JoinType::Semi);
            emission.other(RowKind::Delete, *id);
        }
        let counts = self.emit_rows(&rows, kinds, &pairs, from_left, &mut emission);
        for (id, _) in turns.iter().filter(|(_, has_partner)| !leaves_alone(*has_partner)) {
            emission.other(RowKind::Insert, *id);
        }
        self.emit(&emission, batch, from_left, output)?;
        self.keep(batch, rows, keys, &counts, from_left)
    }

    /// Counts the partners of the rows on the other side; the rows that have partners now and had none, or the other way round.
    fn count_partners(&mut self, batch: &Batch, pairs: &Pairs, from_left: bool) -> Vec<(RowId, bool)> {
        let other = if from_left { &mut self.right } else { &mut self.left };
        if !other.counts_partners() {
            return Vec::new();
        }
        let mut turns = Vec::new();
        for (own, id) in pairs.own.iter().zip(&pairs.others) {
            let gone = batch.kind(*own as usize).is_retraction();
            turns.extend(other.count_partner(*id, gone).map(|has_partner| (*id, has_partner)));
        }
        if batch.kinds().is_none() {
            return turns;
        }
        // A row that turned twice is where it was; of an odd number of turns the last one counts.
        turns.sort_by_key(|(id, _)| *id);
        let same_row = turns.chunk_by(|one, other| one.0 == other.0);
        same_row.filter(|turns| turns.len() % 2 == 1).map(|turns| turns[0]).collect()
    }

    /// What the rows of the batch make; how many partners each has.
    fn emit_rows(
        &self,
        rows: &Range<usize>,
        kinds: &[RowKind],
        pairs: &Pairs,
        from_left: bool,
        emission: &mut Emission,
    ) -> Vec<u32> {
        let emits_pairs = !self.join_type.is_left_only();
        let emits_alone = self.emits_alone(from_left);
        let emits_joined = self.join_type == JoinType::Semi && from_left;
        let own = if from_left { &self.left } else { &self.right };
        if emits_pairs && !emits_alone && !own.counts_partners() {
            let pairs = pairs.own.iter().zip(&pairs.others);
            pairs.for_each(|(row, other)| emission.pair(kinds[*row as usize], *row, *other));
            return Vec::new();
        }
        let mut counts = Vec::with_capacity(rows.len());
        let mut at = 0;
        for row in rows.clone() {
            let first = at;
            while pairs.own.get(at) == Some(&(row as u32)) {
                if emits_pairs {
                    emission.pair(kinds[row], row as u32, pairs.others[at]);
                }
                at += 1;
            }
            let count = at - first;
            if (count == 0 && emits_alone) || (count > 0 && emits_joined) {
                emission.own(kinds[row], row as u32);
            }
            counts.push(count as u32);
        }
        counts
    }

    fn emit(&self, emission: &Emission, batch: &Batch, from_left: bool, output: &mut dyn Output) -> Result<()> {
        let other = if from_left { &self.right } else { &self.left };
        for from in (0..emission.len()).step_by(self.batch_rows) {
            let count = self.batch_rows.min(emission.len() - from);
            output.batch(emission.batch(from, count, (batch.columns(), from_left), other, &self.output)?)?;
        }
        Ok(())
    }

    /// Adds rows of a batch to their side, or by kind takes them back.
    fn keep(&mut self, batch: &Batch, rows: Range<usize>, keys: &[u32], counts: &[u32], from_left: bool) -> Result<()> {
        let own = if from_left { &mut self.left } else { &mut self.right };
        let counts = own.counts_partners().then_some(counts);
        if batch.kinds().is_none() {
            let columns: Vec<ArrayRef> = batch.columns().iter().map(|column| column.slice(rows.start, rows.len())).collect();
            return own.add(&columns, &keys[rows], counts);
        }
        let start = rows.start;
        let (gone, added): (Vec<u32>, Vec<u32>) =
            rows.map(|row| row as u32).partition(|row| batch.kind(*row as usize).is_retraction());
        let keys_of = |rows: &[u32]| rows.iter().map(|row| keys[*row as usize]).collect::<Vec<_>>();
        let counts: Option<Vec<u32>> = counts.map(|counts| added.iter().map(|row| counts[*row as usize - start]).collect());
        // What comes is added first: it may be taken back within the same batch.
        own.add(&take_rows(batch.columns(), &added)?, &keys_of(&added), counts.as_deref())?;
        own.remove(&take_rows(batch.columns(), &gone)?, &keys_of(&gone))
    }

    /// Forgets those of some keys that no row has any more.
    fn forget_free_keys(&mut self, mut keys: Vec<u32>) {
        keys.retain(|key| self.left.is_key_free(*key) && self.right.is_key_free(*key));
        keys.sort_unstable();
        keys.dedup();
        self.keys.remove(&keys);
    }
}

/// The kind of a row that comes or goes by itself.
fn plain(kind: RowKind) -> RowKind {
    if kind.is_retraction() { RowKind::Delete } else { RowKind::Insert }
}

impl Operator for RegularJoin {
    fn process_batch(&mut self, input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        let steps = batch.take_steps();
        if batch.num_rows() > 0 {
            self.join(batch, input == InputNumber(0), output)?;
        }
        steps.last().map_or(Ok(()), |watermark| self.process_watermark(watermark, output))
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        self.watermark = self.watermark.max(watermark);
        output.watermark(watermark)
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.left.next_timer().into_iter().chain(self.right.next_timer()).min()
    }

    fn process_time(&mut self, _now_ms: i64, _output: &mut dyn Output) -> Result<()> {
        self.expire()
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("left", &mut self.left), ("right", &mut self.right)]
    }
}
