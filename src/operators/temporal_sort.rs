//! ORDER BY rowtime: rows wait until the watermark passes them, then come in order.
//!
//! As in Flink, a row is late when it is not after the last row that came out: it is dropped and counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::compute;
use arrow::datatypes::{DataType as ArrowType, Int64Type};

use super::keyed_state::{rows_in_range, unkeyed_snapshot};
use super::late_rows::LateRows;
use super::row_buffer::RowBuffer;
use super::sorting::{emit_rows, sort_indices};
use super::window::null_rowtime;
use crate::config::BATCH_ROWS;
use crate::error::Result;
use crate::expr::SortKey;
use crate::runtime::{Operator, OperatorContext, Output, StateTable, StateTableSnapshot};
use crate::types::{Batch, InputNumber, KeyGroupRange, Watermark};

/// ORDER BY rowtime.
pub struct TemporalSort {
    keys: Vec<SortKey>,
    waiting: RowBuffer,
    last: LastTime,
    /// Times of the rows that wait, to see which of them a watermark lets out.
    times: BinaryHeap<Reverse<i64>>,
    batch_rows: usize,
    late: LateRows,
}

/// The time of the last row that came out, in the units of the rowtime.
#[derive(Debug)]
struct LastTime(i64);

impl TemporalSort {
    /// By these keys, the first of which is the rowtime.
    pub fn new(keys: Vec<SortKey>, context: &OperatorContext) -> Self {
        TemporalSort {
            keys,
            waiting: RowBuffer::default(),
            last: LastTime(i64::MIN),
            times: BinaryHeap::new(),
            batch_rows: context.configuration.integer(&BATCH_ROWS).max(1) as usize,
            late: LateRows::new(context),
        }
    }

    /// The times of rows, in the units of the rowtime.
    fn times(&self, columns: &[ArrayRef]) -> Result<Int64Array> {
        let column = &columns[self.keys[0].column];
        if column.null_count() > 0 {
            return Err(null_rowtime());
        }
        Ok(compute::cast(column, &ArrowType::Int64)?.as_primitive::<Int64Type>().clone())
    }

    /// Units of the rowtime in a millisecond.
    fn units(column: &ArrayRef) -> i64 {
        use arrow::datatypes::TimeUnit;
        match column.data_type() {
            ArrowType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
            ArrowType::Timestamp(TimeUnit::Nanosecond, _) => 1_000_000,
            _ => 1,
        }
    }

    /// A watermark in the units of the rowtime.
    fn limit(watermark: Watermark, column: &ArrayRef) -> i64 {
        let units = Self::units(column);
        // A watermark covers its whole millisecond.
        watermark.0.saturating_mul(units).saturating_add(units - 1)
    }

    /// The times that a watermark lets out count as come out.
    fn let_out(&mut self, limit: i64) {
        while self.times.peek().is_some_and(|Reverse(time)| *time <= limit) {
            self.last.0 = self.times.pop().expect("peeked").0;
        }
    }

    /// Emits the rows that were let out. One that came behind the watermark since then waits for the next one.
    fn emit(&mut self, output: &mut dyn Output) -> Result<()> {
        let limit = self.last.0;
        let Some(batch) = self.waiting.take()? else { return Ok(()) };
        let times = self.times(batch.columns())?;
        let due = BooleanArray::from_unary(&times, |time| time <= limit);
        let out = batch.filter(&due)?;
        if out.num_rows() < batch.num_rows() {
            self.waiting.push(batch.filter(&compute::not(&due)?)?);
        }
        let indices = sort_indices(out.columns(), out.num_rows(), &self.keys)?;
        emit_rows(out.columns(), &indices, self.batch_rows, output)
    }

    /// The heap of times after a restore.
    fn refill(&mut self) -> Result<()> {
        if self.times.is_empty()
            && let Some(batch) = self.waiting.all()?
        {
            let columns = batch.columns().to_vec();
            self.times = self.times(&columns)?.values().iter().copied().map(Reverse).collect();
        }
        Ok(())
    }
}

impl Operator for TemporalSort {
    fn process_batch(&mut self, input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        self.refill()?;
        let steps = batch.take_steps();
        let times = self.times(batch.columns())?;
        let rowtime = Arc::clone(batch.column(self.keys[0].column));
        let mut steps_left = steps.as_slice().iter().peekable();
        let mut kept = Vec::with_capacity(batch.num_rows());
        for (row, time) in times.values().iter().enumerate() {
            while let Some(step) = steps_left.next_if(|step| step.rows_before as usize <= row) {
                self.let_out(Self::limit(step.watermark, &rowtime));
            }
            let in_time = *time > self.last.0;
            if in_time {
                self.times.push(Reverse(*time));
            } else {
                let units = Self::units(&rowtime);
                self.late.add(row, self.last.0.div_euclid(units), time.div_euclid(units));
            }
            kept.push(in_time);
        }
        steps_left.for_each(|step| self.let_out(Self::limit(step.watermark, &rowtime)));
        if kept.contains(&false) {
            self.late.give_out(input, &batch, output)?;
            batch = batch.filter(&BooleanArray::from(kept))?;
        }
        self.waiting.push(batch);
        let Some(watermark) = steps.last() else { return Ok(()) };
        self.emit(output)?;
        output.watermark(watermark)
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        self.refill()?;
        let rowtime = self.waiting.all()?.map(|batch| Arc::clone(batch.column(self.keys[0].column)));
        if let Some(rowtime) = rowtime {
            self.let_out(Self::limit(watermark, &rowtime));
            self.emit(output)?;
        }
        output.watermark(watermark)
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("rows", &mut self.waiting), ("last", &mut self.last)]
    }
}

impl StateTable for LastTime {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        unkeyed_snapshot(Some(&Batch::new(vec![Arc::new(Int64Array::from(vec![self.0]))], 1)))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            let rows = rows_in_range(rows, range)?;
            self.0 = rows.column(0).as_primitive::<Int64Type>().values().first().map_or(self.0, |last| *last);
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        size_of::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::operators::testing::*;

    fn sort() -> (TemporalSort, OperatorContext) {
        let ascending = |column| SortKey { column, descending: false, nulls_first: true };
        let context = context();
        (TemporalSort::new(vec![ascending(2), ascending(1)], &context), context)
    }

    #[test]
    fn rows_come_in_order_as_the_watermark_passes_them() {
        let (mut sort, context) = sort();
        let mut output = Lines::default();
        push(&mut sort, batch(&["+I a 2 5", "+I b 1 5", "+I c 9 3", "+I d 1 9", "~5", "+I e 1 5", "+I f 1 6"]), &mut output);
        assert_eq!(output.take(), ["+I c 9 3", "+I b 1 5", "+I a 2 5", "~5"]);
        assert_eq!(context.metrics.late_rows.load(Ordering::Relaxed), 1);
        sort.process_watermark(Watermark::MAX, &mut output).unwrap();
        assert_eq!(output.take(), ["+I f 1 6", "+I d 1 9", "~max"]);
    }

    #[test]
    fn a_row_behind_the_watermark_but_after_the_last_one_still_comes() {
        let (mut sort, context) = sort();
        let mut output = Lines::default();
        push(&mut sort, batch(&["+I a 2 5", "~8", "+I b 1 6"]), &mut output);
        let (mut restored, _) = self::sort();
        restore(&mut restored, &context, &snapshot(&mut sort));
        push(&mut restored, batch(&["+I c 1 5"]), &mut output);
        restored.process_watermark(Watermark(9), &mut output).unwrap();
        assert_eq!(output.take(), ["+I a 2 5", "~8", "+I b 1 6", "~9"]);
    }
}
