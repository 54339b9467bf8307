//! Joins small slices for one subpartition to batches worth sending: full ones, unless a control element, the end or the timeout
//! comes first.

use crate::error::Result;
use crate::types::{Batch, Watermark};

/// Bytes of a batch after which it is sent though it has room for rows: wide rows must not make giants.
pub const BATCH_BYTES_MAX: usize = 4 << 20;

/// The rows that wait for company on the way to one consumer.
#[derive(Debug)]
pub struct BatchBuilder {
    rows_max: usize,
    pieces: Vec<Batch>,
    rows: usize,
    bytes: usize,
}

impl BatchBuilder {
    /// A builder of batches of at most `rows_max` rows.
    pub fn new(rows_max: usize) -> Self {
        assert!(rows_max > 0);
        BatchBuilder { rows_max, pieces: Vec::new(), rows: 0, bytes: 0 }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Adds rows; `full` gets every batch that became full. The batch has rows.
    pub fn push(&mut self, mut batch: Batch, full: &mut Vec<Batch>) -> Result<()> {
        while self.rows + batch.num_rows() > self.rows_max {
            let room = self.rows_max - self.rows;
            let rest = batch.slice(room, batch.num_rows() - room);
            self.add(batch.slice(0, room));
            full.extend(self.flush()?);
            batch = rest;
        }
        self.add(batch);
        if self.rows == self.rows_max || self.bytes >= BATCH_BYTES_MAX {
            full.extend(self.flush()?);
        }
        Ok(())
    }

    /// Adds a watermark after the waiting rows. There are some.
    pub fn push_watermark(&mut self, watermark: Watermark) {
        let last = self.pieces.pop().expect("a watermark joins waiting rows");
        let mut last = last;
        let mut steps = last.take_steps();
        steps.push(last.num_rows() as u32, watermark);
        self.pieces.push(last.with_steps(steps));
    }

    /// All that waits, as one batch.
    pub fn flush(&mut self) -> Result<Option<Batch>> {
        if self.pieces.is_empty() {
            return Ok(None);
        }
        let joined = match self.pieces.len() {
            1 => self.pieces.pop().expect("there is one"),
            _ => Batch::concat(&self.pieces)?,
        };
        self.pieces.clear();
        (self.rows, self.bytes) = (0, 0);
        Ok(Some(joined))
    }

    fn add(&mut self, piece: Batch) {
        if piece.num_rows() == 0 {
            return;
        }
        self.rows += piece.num_rows();
        // A slice holds on to the whole of its arrays: its share of them is what it will weigh.
        self.bytes += piece.bytes();
        self.pieces.push(piece);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int32Array};
    use arrow::datatypes::Int32Type;

    use super::*;
    use crate::types::WatermarkSteps;

    fn batch(values: std::ops::Range<i32>) -> Batch {
        let mut steps = WatermarkSteps::none();
        steps.push(values.len() as u32, Watermark(i64::from(values.end)));
        let rows = values.len();
        Batch::new(vec![Arc::new(Int32Array::from_iter_values(values))], rows).with_steps(steps)
    }

    fn values(batch: &Batch) -> Vec<i32> {
        batch.column(0).as_primitive::<Int32Type>().values().to_vec()
    }

    #[test]
    fn slices_join_to_full_batches_and_keep_their_steps() {
        let mut builder = BatchBuilder::new(4);
        let mut full = Vec::new();
        builder.push(batch(0..3), &mut full).unwrap();
        assert!(full.is_empty());
        builder.push(batch(3..13), &mut full).unwrap();
        assert_eq!(full.iter().map(values).collect::<Vec<_>>(), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9, 10, 11]]);
        assert_eq!(full[0].steps().as_slice()[0].rows_before, 3);
        builder.push_watermark(Watermark(20));
        let rest = builder.flush().unwrap().unwrap();
        assert_eq!((values(&rest), rest.steps().last()), (vec![12], Some(Watermark(20))));
        assert!(builder.is_empty() && builder.flush().unwrap().is_none());
    }

    #[test]
    fn batches_of_one_row_are_cut_exactly() {
        let mut builder = BatchBuilder::new(1);
        let mut full = Vec::new();
        builder.push(batch(0..3), &mut full).unwrap();
        assert_eq!(full.len(), 3);
        assert_eq!(full[2].steps().last(), Some(Watermark(3)));
        assert!(builder.is_empty());
    }
}
