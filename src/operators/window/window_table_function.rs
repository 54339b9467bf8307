//! A window table function without aggregation: each row once for each of its windows, with window_start, window_end and window_time.
//!
//! Late rows are no concern here. The latest window of a row comes first, as in Flink.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, TimestampMillisecondArray, UInt32Array};
use arrow::compute;

use super::assigner::WindowAssigner;
use super::time::WindowTime;
use crate::config::BATCH_ROWS;
use crate::error::Result;
use crate::runtime::{Operator, OperatorContext, Output};
use crate::stream_graph::WindowSpec;
use crate::types::{Batch, InputNumber, WatermarkSteps};

/// A window table function without aggregation.
pub struct WindowTableFunction {
    spec: WindowSpec,
    time: WindowTime,
    assigner: WindowAssigner,
    batch_rows: usize,
    context: OperatorContext,
}

/// What comes out next: rows of a batch with their windows, and the watermarks between them.
#[derive(Default)]
struct Windowed {
    rows: Vec<u32>,
    starts: Vec<i64>,
    ends: Vec<i64>,
    steps: WatermarkSteps,
}

impl WindowTableFunction {
    /// From its spec.
    pub fn new(spec: WindowSpec, context: &OperatorContext) -> Result<Self> {
        let time = WindowTime::new(&spec.time_type, context.configuration.time_zone());
        let batch_rows = context.configuration.integer(&BATCH_ROWS).max(1) as usize;
        Ok(WindowTableFunction { time, assigner: WindowAssigner::new(spec.kind)?, batch_rows, context: context.clone(), spec })
    }

    fn local_times(&self, batch: &Batch) -> Result<Vec<i64>> {
        if self.spec.time_type.is_proctime() {
            return Ok(vec![self.time.to_local(self.context.environment.clock.now_ms()); batch.num_rows()]);
        }
        self.time.local_times(batch.column(self.spec.time_column))
    }

    /// Emits each row once for each of its windows, at most `batch_rows` of them a batch: there can be very many.
    fn expand(&self, batch: &Batch, output: &mut dyn Output) -> Result<()> {
        let mut steps = batch.steps().as_slice().iter().peekable();
        let mut next = Windowed::default();
        for (row, time) in self.local_times(batch)?.into_iter().enumerate() {
            while let Some(step) = steps.next_if(|step| step.rows_before as usize <= row) {
                next.steps.push(next.rows.len() as u32, step.watermark);
            }
            for (start, end) in self.assigner.windows(time) {
                if next.rows.len() >= self.batch_rows {
                    self.emit(batch, std::mem::take(&mut next), output)?;
                }
                next.rows.push(row as u32);
                next.starts.push(start);
                next.ends.push(end);
            }
        }
        steps.for_each(|step| next.steps.push(next.rows.len() as u32, step.watermark));
        self.emit(batch, next, output)
    }

    fn emit(&self, batch: &Batch, windowed: Windowed, output: &mut dyn Output) -> Result<()> {
        let Windowed { rows, starts, ends, steps } = windowed;
        let num_rows = rows.len();
        let unchanged = self.assigner.is_tumbling() && num_rows == batch.num_rows();
        let rows = UInt32Array::from(rows);
        let mut columns: Vec<ArrayRef> = if unchanged {
            batch.columns().to_vec()
        } else {
            batch.columns().iter().map(|column| compute::take(column, &rows, None)).collect::<std::result::Result<_, _>>()?
        };
        let window_time = self.time.window_times(ends.iter().copied());
        columns.push(Arc::new(TimestampMillisecondArray::from(starts)));
        columns.push(Arc::new(TimestampMillisecondArray::from(ends)));
        columns.push(window_time);
        let kinds = batch.kinds().map(|kinds| if unchanged { kinds.clone() } else { kinds.take(&rows) });
        output.batch(Batch::new(columns, num_rows).with_kinds(kinds).with_steps(steps))
    }
}

impl Operator for WindowTableFunction {
    fn process_batch(&mut self, _input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        if !self.spec.time_type.is_proctime() && batch.column(self.spec.time_column).null_count() > 0 {
            // Flink drops rows without a time here.
            batch = batch.filter(&compute::is_not_null(batch.column(self.spec.time_column))?)?;
        }
        self.expand(&batch, output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::*;
    use crate::stream_graph::WindowKind;

    #[test]
    fn a_row_comes_once_for_each_window_the_latest_first() {
        let kind = WindowKind::Hop { slide_ms: 5_000, size_ms: 10_000, offset_ms: 0 };
        let spec = WindowSpec::new(kind, 2, rowtime());
        let mut operator = WindowTableFunction::new(spec, &context()).unwrap();
        let mut output = Lines::default();
        push(&mut operator, batch(&["+I a 1 1000", "~500", "+I b 2 NULL", "+U c 3 12000", "~700"]), &mut output);
        assert_eq!(
            output.take(),
            [
                "+I a 1 1000 0 10000 9999",
                "+I a 1 1000 -5000 5000 4999",
                "~500",
                "+U c 3 12000 10000 20000 19999",
                "+U c 3 12000 5000 15000 14999",
                "~700",
            ]
        );
    }

    #[test]
    fn many_windows_of_a_batch_come_in_several() {
        let kind = WindowKind::Hop { slide_ms: 1, size_ms: 10_000, offset_ms: 0 };
        let mut operator = WindowTableFunction::new(WindowSpec::new(kind, 2, rowtime()), &context()).unwrap();
        let mut output = Lines::default();
        push(&mut operator, batch(&["~400", "+I a 1 1000", "~500", "+I b 2 2000", "~600"]), &mut output);
        let lines = output.take();
        let place = |wanted: &str| lines.iter().position(|line| line == wanted);
        assert_eq!(lines.len(), 20_003);
        assert_eq!((place("~400"), place("~500"), place("~600")), (Some(0), Some(10_001), Some(20_002)));
        assert!(operator.batch_rows < 10_000);
    }
}
