//! ORDER BY of a bounded input: keeps all rows and emits them in order when the input has ended, before the maximal watermark.
//!
//! Earlier watermarks are held back, since all rows come after them.

use super::row_bag::RowBag;
use super::row_buffer::RowBuffer;
use super::sorting::{emit_rows, sort_indices};
use crate::config::BATCH_ROWS;
use crate::error::Result;
use crate::expr::SortKey;
use crate::runtime::{Operator, OperatorContext, Output, StateTable};
use crate::types::{Batch, InputNumber, Watermark};

/// ORDER BY of a bounded input.
#[derive(Debug)]
pub struct BoundedSort {
    keys: Vec<SortKey>,
    rows: Kept,
    batch_rows: usize,
}

/// Rows of an input that only adds, or of one that takes back too.
#[derive(Debug)]
enum Kept {
    Buffer(RowBuffer),
    Bag(RowBag),
}

impl BoundedSort {
    /// From the parts of its spec.
    pub fn new(keys: Vec<SortKey>, input_retracts: bool, context: &OperatorContext) -> Self {
        let rows = if input_retracts { Kept::Bag(RowBag::default()) } else { Kept::Buffer(RowBuffer::default()) };
        BoundedSort { keys, rows, batch_rows: context.configuration.integer(&BATCH_ROWS).max(1) as usize }
    }

    fn emit(&mut self, output: &mut dyn Output) -> Result<()> {
        let rows = match &mut self.rows {
            Kept::Buffer(buffer) => buffer.take()?,
            Kept::Bag(bag) => {
                let rows = bag.rows()?;
                bag.clear();
                rows
            }
        };
        let Some(rows) = rows else { return Ok(()) };
        let indices = sort_indices(rows.columns(), rows.num_rows(), &self.keys)?;
        emit_rows(rows.columns(), &indices, self.batch_rows, output)
    }
}

impl Operator for BoundedSort {
    fn process_batch(&mut self, _input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        let steps = batch.take_steps();
        if batch.num_rows() > 0 {
            match &mut self.rows {
                Kept::Buffer(buffer) => buffer.push(batch),
                Kept::Bag(bag) => bag.update(&batch)?,
            }
        }
        steps.last().map_or(Ok(()), |watermark| self.process_watermark(watermark, output))
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        if watermark != Watermark::MAX {
            return Ok(());
        }
        self.emit(output)?;
        output.watermark(watermark)
    }

    fn finish(&mut self, output: &mut dyn Output) -> Result<()> {
        self.emit(output)
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        match &mut self.rows {
            Kept::Buffer(buffer) => vec![("rows", buffer)],
            Kept::Bag(bag) => vec![("rows", bag)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::*;

    fn keys() -> Vec<SortKey> {
        vec![SortKey { column: 1, descending: true, nulls_first: false }]
    }

    #[test]
    fn all_rows_come_in_order_at_the_end() {
        let mut sort = BoundedSort::new(keys(), false, &context());
        let mut output = Lines::default();
        push(&mut sort, batch(&["+I a 1", "+I b NULL", "~5", "+I c 3"]), &mut output);
        push(&mut sort, batch(&["+I d 1", "+I e 2"]), &mut output);
        assert_eq!(output.take(), [""; 0]);
        sort.process_watermark(Watermark::MAX, &mut output).unwrap();
        sort.finish(&mut output).unwrap();
        assert_eq!(output.take(), ["+I c 3 0", "+I e 2 0", "+I a 1 0", "+I d 1 0", "+I b NULL 0", "~max"]);
    }

    #[test]
    fn rows_taken_back_do_not_come_even_after_a_restart() {
        let mut sort = BoundedSort::new(keys(), true, &context());
        let mut output = Lines::default();
        push(&mut sort, batch(&["+I a 1", "+I a 1", "+I b 2", "-U b 2"]), &mut output);
        let mut restored = BoundedSort::new(keys(), true, &context());
        restore(&mut restored, &context(), &snapshot(&mut sort));
        push(&mut restored, batch(&["+U b 3", "-D a 1"]), &mut output);
        restored.finish(&mut output).unwrap();
        assert_eq!(output.take(), ["+I b 3 0", "+I a 1 0"]);
    }
}
