//! The operator that reads a table: drives a connector's reader and does to its rows what the table's definition says.
//!
//! In this order: computed columns, watermarks per split, filter, limit; where nobody needs the former content of updated rows, they go. The filter comes after the watermarks, so that rows that it
//! leaves out advance event time as in Flink.
//!
//! Its state: how far each split was read, the watermark of each, and the one of the source, so that late rows stay late.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::BooleanArray;
use arrow::buffer::BooleanBuffer;

use self::aligned::Aligned;
use self::reading::Reading;
use super::split_watermarks::SplitWatermarks;
use super::watermark_generator::{FIRST_WATERMARK, WatermarkGenerator};
use crate::config;
use crate::error::Result;
use crate::expr::{CompiledExprs, EvalContext};
use crate::runtime::{
    OperatorContext, Output, ReaderContext, SourceEvent, SourceOperator, SourceStatus, Split, SplitState, StateTable,
};
use crate::stream_graph::SourceSpec;
use crate::types::{Batch, ChangelogMode, RowKind, SplitId, TimeZone, Watermark};

/// Reads a table.
pub struct TableSource {
    reading: Reading,
    computed: Option<CompiledExprs>,
    generator: Option<WatermarkGenerator>,
    predicate: Option<CompiledExprs>,
    /// Whether `-U` are left out.
    drops_before: bool,
    /// Rows that are still wanted.
    remaining: Option<u64>,
    /// The split that the reader was last asked to prefer.
    preferred: Option<SplitId>,
    /// Watermarks are told this often; none = with the rows.
    emit_interval_ms: Option<u64>,
    /// When the next one is told.
    emit_at_ms: Option<i64>,
    alignment: Option<Aligned>,
    time_zone: TimeZone,
    context: OperatorContext,
}

impl TableSource {
    /// Of a spec, with a reader of its connector.
    pub fn new(spec: &SourceSpec, context: &OperatorContext) -> Result<Self> {
        let functions = &context.environment.functions;
        let reader_context = ReaderContext {
            subtask: context.subtask,
            parallelism: context.parallelism,
            clock: Arc::clone(&context.environment.clock),
            batch_rows: context.configuration.integer(&config::BATCH_ROWS).max(1) as usize,
            operator: context.clone(),
        };
        let watermark = spec.watermark.as_ref();
        let timing = watermark.map(|watermark| watermark.timing.clone()).unwrap_or_default();
        let clock = &context.environment.clock;
        Ok(TableSource {
            reading: Reading {
                reader: context.environment.connectors.source(spec)?.reader(reader_context)?,
                splits: SplitWatermarks::new(
                    timing.idle_timeout_ms,
                    timing.idle_alone || context.parallelism > 1,
                    clock.now_ms(),
                ),
                metrics: Arc::clone(&context.metrics),
                clock: Arc::clone(clock),
                key_groups: context.key_groups,
                max_parallelism: context.max_parallelism,
                restored: false,
            },
            computed: spec.computed.as_deref().map(|exprs| CompiledExprs::new(exprs, functions)).transpose()?,
            generator: watermark.map(|spec| WatermarkGenerator::new(spec, functions)).transpose()?,
            predicate: spec
                .predicate
                .as_ref()
                .map(|expr| CompiledExprs::new(std::slice::from_ref(expr), functions))
                .transpose()?,
            drops_before: spec.changelog == ChangelogMode::Upsert,
            remaining: spec.limit,
            preferred: None,
            emit_interval_ms: timing.emit_interval_ms,
            emit_at_ms: None,
            alignment: timing.alignment.map(Aligned::new),
            time_zone: context.configuration.time_zone(),
            context: context.clone(),
        })
    }

    fn now_ms(&self) -> i64 {
        self.context.environment.clock.now_ms()
    }

    fn eval_context(&self, num_rows: usize, now_ms: i64) -> EvalContext {
        EvalContext {
            num_rows,
            time_zone: self.time_zone,
            processing_time_ms: now_ms,
            query_start_ms: self.context.job_start_ms,
            watermark: Watermark::MIN,
        }
    }

    fn batch(&mut self, split: SplitId, batch: Batch, output: &mut dyn Output) -> Result<()> {
        let now_ms = self.now_ms();
        let eval = self.eval_context(batch.num_rows(), now_ms);
        if let Some(status) = self.reading.splits.active(split, now_ms) {
            output.watermark_status(status)?;
        }
        let mut batch = self.compute(batch, &eval)?;
        let rows = batch.num_rows() as u64;
        if let Some(generator) = &self.generator {
            let steps = generator.steps(&batch, self.reading.splits.highest(split, now_ms), &eval)?;
            let steps = self.reading.splits.merge(split, &steps);
            match self.emit_interval_ms {
                None => batch = batch.with_steps(steps),
                Some(interval) => drop(self.emit_at_ms.get_or_insert(now_ms.saturating_add_unsigned(interval))),
            }
            self.prefer_furthest_behind();
            self.pause_what_is_ahead();
        }
        self.reading.tell(|metrics, splits| metrics.read(split, rows, splits.highest_of(split), now_ms));
        if let Some(predicate) = &self.predicate {
            let mask = predicate.evaluate_predicate(batch.columns(), &eval)?;
            batch = batch.filter(&mask)?;
        }
        if self.drops_before {
            batch = without_updates_before(batch)?;
        }
        if let Some(remaining) = &mut self.remaining {
            let wanted = (*remaining).min(batch.num_rows() as u64);
            *remaining -= wanted;
            batch = batch.slice(0, wanted as usize);
        }
        output.batch(batch)
    }

    fn compute(&self, batch: Batch, eval: &EvalContext) -> Result<Batch> {
        let Some(computed) = &self.computed else { return Ok(batch) };
        Ok(batch.with_columns(computed.evaluate(batch.columns(), eval)?))
    }

    /// Has the reader leave alone the splits that are ahead of their alignment group.
    fn pause_what_is_ahead(&mut self) {
        let Some(alignment) = &mut self.alignment else { return };
        for (split, state) in alignment.update(&self.reading.splits) {
            self.reading.tell(|metrics, _| metrics.set_state(split, state));
        }
        self.reading.reader.pause(alignment.paused());
    }

    fn prefer_furthest_behind(&mut self) {
        let behind = self.reading.splits.furthest_behind();
        if let Some(split) = behind
            && behind != self.preferred
        {
            self.reading.reader.prefer(split);
            self.preferred = behind;
        }
    }
}

/// The rows without the former content of those that are updated.
fn without_updates_before(batch: Batch) -> Result<Batch> {
    let Some(kinds) = batch.kinds() else { return Ok(batch) };
    let kept = BooleanBuffer::collect_bool(kinds.len(), |row| kinds.get(row) != RowKind::UpdateBefore);
    batch.filter(&BooleanArray::new(kept, None))
}

impl SourceOperator for TableSource {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        let now_ms = self.now_ms();
        splits.iter().for_each(|split| self.reading.open(split, FIRST_WATERMARK, now_ms));
        self.reading.reader.add_splits(splits)
    }

    fn no_more_splits(&mut self) {
        self.reading.reader.no_more_splits();
    }

    fn poll(&mut self, context: &mut Context<'_>, output: &mut dyn Output) -> Poll<Result<SourceStatus>> {
        if self.remaining == Some(0) {
            return Poll::Ready(Ok(SourceStatus::End));
        }
        if std::mem::take(&mut self.reading.restored)
            && let Some(interval) = self.emit_interval_ms
        {
            // What had not been told yet is told now.
            self.emit_at_ms = Some(self.now_ms().saturating_add_unsigned(interval));
        }
        if self.alignment.as_ref().is_some_and(|alignment| alignment.all_wait(&self.reading.splits)) {
            return Poll::Pending; // the next limit comes as mail to the task
        }
        let polled = self.reading.reader.poll_next(context);
        if self.reading.splits.can_fall_idle() {
            let now_ms = self.now_ms();
            match &polled {
                Poll::Ready(Ok(SourceEvent::NeedSplit)) => self.reading.splits.starve(now_ms),
                Poll::Pending if !self.reading.reader.is_busy() => self.reading.splits.starve(now_ms),
                Poll::Pending | Poll::Ready(_) => self.reading.splits.feed(now_ms),
            }
        }
        match ready!(polled)? {
            SourceEvent::Batch(split, batch) => self.batch(split, batch, output)?,
            SourceEvent::Watermark(split, watermark) => {
                let now_ms = self.now_ms();
                let risen = self.reading.splits.watermark(split, watermark, now_ms);
                self.reading.tell(|metrics, splits| metrics.raise(split, splits.highest_of(split)));
                self.pause_what_is_ahead();
                if let Some(watermark) = risen {
                    output.watermark(watermark)?;
                }
            }
            SourceEvent::SplitFinished(split) => {
                let now_ms = self.now_ms();
                let risen = self.reading.splits.finish(split, now_ms);
                self.reading.tell(|metrics, _| metrics.finish(split));
                if let Some(watermark) = risen.filter(|_| self.emit_interval_ms.is_none()) {
                    output.watermark(watermark)?;
                }
                self.prefer_furthest_behind();
            }
            SourceEvent::Flush(id) => return Poll::Ready(Ok(SourceStatus::Flush(id))),
            SourceEvent::NeedSplit => return Poll::Ready(Ok(SourceStatus::NeedSplits)),
            SourceEvent::End => return Poll::Ready(Ok(SourceStatus::End)),
        }
        Poll::Ready(Ok(SourceStatus::More))
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.reading.splits.next_timer().into_iter().chain(self.emit_at_ms).min()
    }

    fn process_time(&mut self, now_ms: i64, output: &mut dyn Output) -> Result<()> {
        let change = self.reading.splits.on_time(now_ms);
        for split in &change.idle {
            self.reading.tell(|metrics, _| metrics.set_state(*split, SplitState::Idle));
        }
        if self.emit_at_ms.take_if(|at| *at <= now_ms).is_some() && self.reading.splits.emitted() > FIRST_WATERMARK {
            output.watermark(self.reading.splits.emitted())?;
        }
        if let Some(watermark) = change.watermark {
            output.watermark(watermark)?;
        }
        change.status.map_or(Ok(()), |status| output.watermark_status(status))
    }

    fn alignment_interval_ms(&self) -> Option<u64> {
        self.alignment.as_ref().map(Aligned::interval_ms)
    }

    fn waited_for(&self) -> Option<Watermark> {
        self.reading.splits.waited_for()
    }

    fn set_limit(&mut self, limit: Watermark) {
        if let Some(alignment) = &mut self.alignment {
            alignment.limit = limit;
        }
        self.pause_what_is_ahead();
    }

    fn has_splits(&self) -> bool {
        self.reading.splits.num_open() > 0
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("splits", &mut self.reading)]
    }
}

mod aligned;
mod reading;
#[cfg(test)]
mod tests;
