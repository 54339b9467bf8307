//! An operator that gets its rows in smaller batches, cut where event time advances or behind each row.
//!
//! Operators that update rows emit one change a row and batch. Who sorts changes into windows of event time must see those apart that
//! come at different watermarks: the former content counts in a window that ends in between. A session reaches as far as any row that was
//! ever there: it must see all.

use std::task::{Context, Poll};

use crate::error::Result;
use crate::runtime::{Committable, Operator, OperatorContext, Output, StateTable};
use crate::stream_graph::ChangeCut;
use crate::types::{Batch, CheckpointId, InputNumber, Watermark};

/// An operator whose batches are cut.
pub(super) struct CutBatches(Box<dyn Operator>, ChangeCut);

impl CutBatches {
    /// The operator, its batches cut where `cut` says so.
    pub(super) fn around(operator: impl Operator + 'static, cut: Option<ChangeCut>) -> Box<dyn Operator> {
        Self::around_boxed(Box::new(operator), cut)
    }

    /// The same for one of several operators.
    pub(super) fn around_boxed(operator: Box<dyn Operator>, cut: Option<ChangeCut>) -> Box<dyn Operator> {
        match cut {
            Some(cut) => Box::new(CutBatches(operator, cut)),
            None => operator,
        }
    }

    /// Passes rows that came at one event time.
    fn pass(&mut self, input: InputNumber, rows: Batch, output: &mut dyn Output) -> Result<()> {
        match self.1 {
            ChangeCut::AtWatermarks => self.0.process_batch(input, rows, output),
            ChangeCut::AtRows => (0..rows.num_rows()).try_for_each(|row| self.0.process_batch(input, rows.slice(row, 1), output)),
        }
    }
}

impl Operator for CutBatches {
    fn process_batch(&mut self, input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        let steps = batch.take_steps();
        let mut from = 0;
        for step in steps.as_slice() {
            let to = step.rows_before as usize;
            if to > from {
                self.pass(input, batch.slice(from, to - from), output)?;
                from = to;
            }
            self.0.process_watermark(step.watermark, output)?;
        }
        match batch.num_rows() - from {
            0 => Ok(()),
            rest => self.pass(input, batch.slice(from, rest), output),
        }
    }

    fn open(&mut self, context: &OperatorContext) -> Result<()> {
        self.0.open(context)
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.0.poll_ready(context)
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        self.0.process_watermark(watermark, output)
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.0.next_processing_timer()
    }

    fn process_time(&mut self, now_ms: i64, output: &mut dyn Output) -> Result<()> {
        self.0.process_time(now_ms, output)
    }

    fn end_input(&mut self, input: InputNumber, output: &mut dyn Output) -> Result<()> {
        self.0.end_input(input, output)
    }

    fn finish(&mut self, output: &mut dyn Output) -> Result<()> {
        self.0.finish(output)
    }

    fn flush(&mut self, output: &mut dyn Output) -> Result<()> {
        self.0.flush(output)
    }

    fn prepare_commit(&mut self, checkpoint: Option<CheckpointId>) -> Result<Vec<Committable>> {
        self.0.prepare_commit(checkpoint)
    }

    fn checkpoint_completed(&mut self, checkpoint: CheckpointId) -> Result<()> {
        self.0.checkpoint_completed(checkpoint)
    }

    fn is_satisfied(&self) -> bool {
        self.0.is_satisfied()
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        self.0.state()
    }
}
