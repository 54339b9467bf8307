//! The rows of a batch that came too late for an operator: counted, with how late the latest was, and handed on where someone wants them.
//!
//! An operator notes them while it goes through a batch and gives them out at its end, so nothing of this is state.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{Int64Array, UInt32Array};

use crate::error::Result;
use crate::runtime::{OperatorContext, OperatorMetrics, Output};
use crate::types::{Batch, InputNumber};

/// The rows of a batch that came too late.
#[derive(Debug)]
pub(crate) struct LateRows {
    rows: Vec<u32>,
    watermarks: Vec<i64>,
    latest_ms: u64,
    metrics: Arc<OperatorMetrics>,
}

impl LateRows {
    /// Of an operator, none yet.
    pub(crate) fn new(context: &OperatorContext) -> Self {
        LateRows { rows: Vec::new(), watermarks: Vec::new(), latest_ms: 0, metrics: Arc::clone(&context.metrics) }
    }

    /// A row of the batch, behind those noted before, which would have been in time up to `in_time_until_ms`, came when event time was `watermark_ms` already.
    pub(crate) fn add(&mut self, row: usize, watermark_ms: i64, in_time_until_ms: i64) {
        self.rows.push(row as u32);
        self.watermarks.push(watermark_ms);
        self.latest_ms = self.latest_ms.max(u64::try_from(watermark_ms.saturating_sub(in_time_until_ms)).unwrap_or(0));
    }

    /// Counts the rows and hands them on. `batch` is the one that they were noted of.
    pub(crate) fn give_out(&mut self, input: InputNumber, batch: &Batch, output: &mut dyn Output) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.metrics.late_rows.fetch_add(self.rows.len() as u64, Ordering::Relaxed);
        self.metrics.lateness_ms_max.fetch_max(std::mem::take(&mut self.latest_ms), Ordering::Relaxed);
        let (rows, watermarks) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.watermarks));
        if !output.takes_late_rows(input) {
            return Ok(());
        }
        let late = batch.take_rising(&UInt32Array::from(rows))?;
        output.late_rows(input, late, Arc::new(Int64Array::from(watermarks)))
    }
}
