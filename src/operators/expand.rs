//! Expand: each row once for each grouping set, NULL in the keys that the set leaves out, and the number of the set. Keeps nothing.
//!
//! The copies of a row lie side by side, so that rows, kinds and watermark steps keep their order: a copy is late exactly when its row
//! is. Columns with NULLs in the same copies are taken by one array of row numbers.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, UInt32Array};
use arrow::compute;

use crate::error::Result;
use crate::runtime::{Operator, Output};
use crate::stream_graph::ExpandSpec;
use crate::types::{Batch, InputNumber};

/// Rows that are emitted as one batch, unless a single row has more copies.
const ROWS_MAX: usize = 16_384;

/// Each row once for each grouping set.
pub struct Expand {
    columns: Vec<usize>,
    ids: Vec<i64>,
    /// In which copies columns are not NULL, each combination once.
    patterns: Vec<Vec<bool>>,
    /// The pattern of each column.
    pattern_of: Vec<usize>,
}

impl Expand {
    /// From its spec.
    pub fn new(spec: &ExpandSpec) -> Self {
        let mut patterns: Vec<Vec<bool>> = vec![vec![true; spec.copies.len()]];
        let mut pattern_of = Vec::with_capacity(spec.columns.len());
        for column in 0..spec.columns.len() {
            let pattern: Vec<bool> = spec.copies.iter().map(|copy| !copy.nulls.contains(&column)).collect();
            pattern_of.push(patterns.iter().position(|known| *known == pattern).unwrap_or_else(|| {
                patterns.push(pattern);
                patterns.len() - 1
            }));
        }
        Expand { columns: spec.columns.clone(), ids: spec.copies.iter().map(|copy| copy.id).collect(), patterns, pattern_of }
    }

    fn expand(&self, batch: &Batch) -> Result<Batch> {
        let (rows, copies) = (batch.num_rows(), self.ids.len());
        let numbers = |pattern: &Vec<bool>| -> UInt32Array {
            if pattern.iter().all(|kept| *kept) {
                return UInt32Array::from_iter_values((0..rows as u32).flat_map(|row| std::iter::repeat_n(row, copies)));
            }
            (0..rows as u32).flat_map(|row| pattern.iter().map(move |kept| kept.then_some(row))).collect()
        };
        let numbers: Vec<UInt32Array> = self.patterns.iter().map(numbers).collect();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.columns.len() + 1);
        for (column, pattern) in self.columns.iter().zip(&self.pattern_of) {
            columns.push(compute::take(batch.column(*column), &numbers[*pattern], None)?);
        }
        columns.push(Arc::new(Int64Array::from_iter_values((0..rows).flat_map(|_| self.ids.iter().copied()))));
        let kinds = batch.kinds().map(|kinds| kinds.take(&numbers[0]));
        let steps = batch.steps().remap(|before| before * copies as u32);
        Ok(Batch::new(columns, rows * copies).with_kinds(kinds).with_steps(steps))
    }
}

impl Operator for Expand {
    fn process_batch(&mut self, _input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        let rows_max = (ROWS_MAX / self.ids.len()).max(1);
        if batch.num_rows() <= rows_max {
            return output.batch(self.expand(&batch)?);
        }
        (0..batch.num_rows()).step_by(rows_max).try_for_each(|from| {
            let piece = batch.slice(from, rows_max.min(batch.num_rows() - from));
            output.batch(self.expand(&piece)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::*;
    use crate::stream_graph::ExpandCopy;

    /// `ROLLUP(key)` whose key is aggregated too.
    fn rollup() -> Expand {
        let copies = vec![ExpandCopy { nulls: vec![], id: 0 }, ExpandCopy { nulls: vec![0], id: 1 }];
        Expand::new(&ExpandSpec { columns: vec![0, 1, 0], copies })
    }

    #[test]
    fn each_row_comes_once_for_each_set_with_its_kind() {
        let mut output = Lines::default();
        push(&mut rollup(), batch(&["+I a 1", "-U NULL 2"]), &mut output);
        assert_eq!(output.take(), ["+I a 1 a 0", "+I NULL 1 a 1", "-U NULL 2 NULL 0", "-U NULL 2 NULL 1"]);
    }

    #[test]
    fn watermark_steps_stay_between_their_rows() {
        let mut output = Lines::default();
        push(&mut rollup(), batch(&["~1", "+I a 1", "~5", "+I b 2", "~6"]), &mut output);
        let expected = ["~1", "+I a 1 a 0", "+I NULL 1 a 1", "~5", "+I b 2 b 0", "+I NULL 2 b 1", "~6"];
        assert_eq!(output.take(), expected);
    }

    #[test]
    fn a_large_batch_comes_in_pieces() {
        let lines: Vec<String> = (0..20_000).map(|n| format!("+I k {n}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut output = Lines::default();
        push(&mut rollup(), batch(&lines), &mut output);
        let rows = output.take();
        assert_eq!(rows.len(), 40_000);
        assert_eq!(rows[39_999], "+I NULL 19999 k 1");
    }
}
