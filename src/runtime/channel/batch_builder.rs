//! Joins small slices for one subpartition to batches worth sending: full ones, unless a control element, the end or the timeout
//! comes first.

use crate::error::Result;
use crate::types::{Batch, Watermark, compact_texts};

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

    /// Adds rows that weigh `row_bytes` each; `full` gets every batch that became full. The batch has rows.
    pub fn push(&mut self, mut batch: Batch, row_bytes: usize, full: &mut Vec<Batch>) -> Result<()> {
        while self.rows + batch.num_rows() > self.rows_max {
            let room = self.rows_max - self.rows;
            let rest = batch.slice(room, batch.num_rows() - room);
            self.add(batch.slice(0, room), row_bytes);
            full.extend(self.flush()?);
            batch = rest;
        }
        self.add(batch, row_bytes);
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
            _ => compact(Batch::concat(&self.pieces)?),
        };
        self.pieces.clear();
        (self.rows, self.bytes) = (0, 0);
        Ok(Some(joined))
    }

    fn add(&mut self, piece: Batch, row_bytes: usize) {
        if piece.num_rows() == 0 {
            return;
        }
        self.rows += piece.num_rows();
        // Not `piece.bytes()`: a piece holds on to the text of all rows of the batch it was taken from, and would seem to weigh as much.
        self.bytes += piece.num_rows() * row_bytes;
        self.pieces.push(piece);
    }
}

/// Copies the texts of a joined batch together where they are few among many: each piece holds on to all text of the batch it was
/// taken from, and the next exchange would multiply that again.
fn compact(batch: Batch) -> Batch {
    let columns = batch.columns().iter().map(compact_texts).collect();
    batch.with_columns(columns)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int32Array, StringViewArray};
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
        builder.push(batch(0..3), 4, &mut full).unwrap();
        assert!(full.is_empty());
        builder.push(batch(3..13), 4, &mut full).unwrap();
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
        builder.push(batch(0..3), 4, &mut full).unwrap();
        assert_eq!(full.len(), 3);
        assert_eq!(full[2].steps().last(), Some(Watermark(3)));
        assert!(builder.is_empty());
    }

    #[test]
    fn wide_rows_are_sent_before_there_are_many() {
        let mut builder = BatchBuilder::new(100);
        let mut full = Vec::new();
        builder.push(batch(0..2), BATCH_BYTES_MAX / 3, &mut full).unwrap();
        builder.push(batch(2..3), BATCH_BYTES_MAX / 3 + 1, &mut full).unwrap();
        assert_eq!(full.len(), 1);
    }

    #[test]
    fn pieces_do_not_hold_on_to_the_text_of_rows_that_went_elsewhere() {
        let long = |row: usize| format!("a text of more than twelve bytes, number {row}");
        let all = StringViewArray::from_iter_values((0..1_000).map(long));
        let all = Batch::new(vec![Arc::new(all)], 1_000);
        let mut builder = BatchBuilder::new(2);
        let mut full = Vec::new();
        builder.push(all.slice(10, 1), 40, &mut full).unwrap();
        builder.push(all.slice(500, 1), 40, &mut full).unwrap();
        assert!(full[0].bytes() < 1_000, "{}", full[0].bytes());
        assert_eq!(full[0].column(0).as_string_view().value(1), long(500));
    }
}
