//! A batch: the rows that travel between operators as one.
//!
//! Columns in Arrow form by position (names live in the plan, not in the data), optionally a row kind for each row (none =
//! all `+I`), and the watermark steps that lie between its rows. All arrays have `num_rows` rows; steps lie within them.

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt8Array, UInt32Array};
use arrow::compute;

use super::{RowKind, RowKinds, SchemaRef, WatermarkSteps};
use crate::error::Result;

/// The rows that travel between operators as one.
#[derive(Debug, Clone)]
pub struct Batch {
    columns: Vec<ArrayRef>,
    num_rows: usize,
    kinds: Option<RowKinds>,
    steps: WatermarkSteps,
}

impl Batch {
    /// Insert-only rows. A batch without columns still has rows.
    pub fn new(columns: Vec<ArrayRef>, num_rows: usize) -> Self {
        assert!(columns.iter().all(|column| column.len() == num_rows), "all columns have {num_rows} rows");
        Batch { columns, num_rows, kinds: None, steps: WatermarkSteps::none() }
    }

    /// The same rows with these kinds.
    pub fn with_kinds(mut self, kinds: Option<RowKinds>) -> Self {
        assert!(kinds.as_ref().is_none_or(|kinds| kinds.len() == self.num_rows), "one kind a row");
        self.kinds = kinds;
        self
    }

    /// The same rows with these watermark steps.
    pub fn with_steps(mut self, steps: WatermarkSteps) -> Self {
        assert!(steps.as_slice().last().is_none_or(|step| step.rows_before as usize <= self.num_rows), "steps lie in the batch");
        self.steps = steps;
        self
    }

    /// The same rows, kinds and steps with other columns: what a projection makes.
    pub fn with_columns(&self, columns: Vec<ArrayRef>) -> Self {
        Batch::new(columns, self.num_rows).with_kinds(self.kinds.clone()).with_steps(self.steps.clone())
    }

    /// The columns.
    pub fn columns(&self) -> &[ArrayRef] {
        &self.columns
    }

    /// A column.
    pub fn column(&self, index: usize) -> &ArrayRef {
        &self.columns[index]
    }

    /// How many rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Whether there is neither a row nor a watermark.
    pub fn is_empty(&self) -> bool {
        self.num_rows == 0 && self.steps.is_empty()
    }

    /// The row kinds; none = all `+I`.
    pub fn kinds(&self) -> Option<&RowKinds> {
        self.kinds.as_ref()
    }

    /// The kind of a row.
    pub fn kind(&self, row: usize) -> RowKind {
        self.kinds.as_ref().map_or(RowKind::Insert, |kinds| kinds.get(row))
    }

    /// The watermark steps.
    pub fn steps(&self) -> &WatermarkSteps {
        &self.steps
    }

    /// Takes the steps out, so that the rows can be handled alone.
    pub fn take_steps(&mut self) -> WatermarkSteps {
        std::mem::take(&mut self.steps)
    }

    /// Rows `offset .. offset + length`, not copied. A step right at `offset` belongs to the former slice, unless `offset` is 0.
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        let mut steps = WatermarkSteps::none();
        for step in self.steps.as_slice() {
            let at = step.rows_before as usize;
            if (at > offset || offset == 0) && at <= offset + length {
                steps.push((at - offset) as u32, step.watermark);
            }
        }
        Batch {
            columns: self.columns.iter().map(|column| column.slice(offset, length)).collect(),
            num_rows: length,
            kinds: self.kinds.as_ref().map(|kinds| kinds.slice(offset, length)),
            steps,
        }
    }

    /// The rows where `mask` is true (not null); steps move along.
    pub fn filter(&self, mask: &BooleanArray) -> Result<Self> {
        assert_eq!(mask.len(), self.num_rows);
        let kept = mask.true_count();
        if kept == self.num_rows {
            return Ok(self.clone());
        }
        let mut before = PrefixCount::new(mask);
        let steps = self.steps.remap(|rows| before.up_to(rows));
        let predicate = compute::FilterBuilder::new(mask).optimize().build();
        let columns = self.columns.iter().map(|column| predicate.filter(column)).collect::<std::result::Result<_, _>>()?;
        let kinds = self.kinds.as_ref().map(|kinds| kinds.filter(mask));
        Ok(Batch { columns, num_rows: kept, kinds, steps })
    }

    /// The rows at `indices`, which must rise; steps move along.
    pub fn take_rising(&self, indices: &UInt32Array) -> Result<Self> {
        // Both rise: one pass over them, however many steps there are.
        let (mut taken, indices_before) = (0, indices.values());
        let steps = self.steps.remap(|rows| {
            while indices_before.get(taken).is_some_and(|index| *index < rows) {
                taken += 1;
            }
            taken as u32
        });
        let columns =
            self.columns.iter().map(|column| compute::take(column, indices, None)).collect::<std::result::Result<_, _>>()?;
        Ok(Batch { columns, num_rows: indices.len(), kinds: self.kinds.as_ref().map(|kinds| kinds.take(indices)), steps })
    }

    /// The columns at these positions.
    pub fn project(&self, indices: &[usize]) -> Self {
        self.with_columns(indices.iter().map(|i| self.columns[*i].clone()).collect())
    }

    /// All rows of `batches` in order, with kinds and steps. `batches` is not empty.
    pub fn concat(batches: &[Batch]) -> Result<Self> {
        if let [single] = batches {
            return Ok(single.clone());
        }
        let num_rows = batches.iter().map(|batch| batch.num_rows).sum();
        let columns = (0..batches[0].columns.len())
            .map(|i| compute::concat(&batches.iter().map(|batch| batch.columns[i].as_ref()).collect::<Vec<_>>()))
            .collect::<std::result::Result<_, _>>()?;
        let mut steps = WatermarkSteps::none();
        let mut offset = 0;
        for batch in batches {
            for step in batch.steps.as_slice() {
                steps.push(offset + step.rows_before, step.watermark);
            }
            offset += batch.num_rows as u32;
        }
        Ok(Batch { columns, num_rows, kinds: concat_kinds(batches), steps })
    }

    /// The bytes that the columns hold on to.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(|column| column.get_array_memory_size()).sum::<usize>() + self.num_rows
    }

    /// As an Arrow record batch, without kinds and steps.
    pub fn to_record_batch(&self, schema: &SchemaRef) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(self.num_rows));
        Ok(RecordBatch::try_new_with_options(schema.to_arrow(), self.columns.clone(), &options)?)
    }
}

fn concat_kinds(batches: &[Batch]) -> Option<RowKinds> {
    if batches.iter().all(|batch| batch.kinds.is_none()) {
        return None;
    }
    let all: Vec<RowKinds> = batches
        .iter()
        .map(|batch| batch.kinds.clone().unwrap_or_else(|| RowKinds::repeat(RowKind::Insert, batch.num_rows)))
        .collect();
    let numbers = all.iter().flat_map(|kinds| kinds.array().values().iter().copied());
    Some(RowKinds::from_array(UInt8Array::from_iter_values(numbers)))
}

/// Counts the true values of a mask before rising positions, each in time linear in the distance.
struct PrefixCount<'a> {
    mask: &'a BooleanArray,
    at: usize,
    count: u32,
}

impl<'a> PrefixCount<'a> {
    fn new(mask: &'a BooleanArray) -> Self {
        PrefixCount { mask, at: 0, count: 0 }
    }

    fn up_to(&mut self, rows: u32) -> u32 {
        let distance = rows as usize - self.at;
        self.count += self.mask.slice(self.at, distance).true_count() as u32;
        self.at = rows as usize;
        self.count
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int32Array;

    use super::*;
    use crate::types::Watermark;

    fn batch() -> Batch {
        let mut steps = WatermarkSteps::none();
        steps.push(0, Watermark(1));
        steps.push(2, Watermark(2));
        steps.push(4, Watermark(3));
        Batch::new(vec![Arc::new(Int32Array::from(vec![10, 20, 30, 40]))], 4).with_steps(steps)
    }

    fn rows_before(batch: &Batch) -> Vec<(u32, i64)> {
        batch.steps().as_slice().iter().map(|step| (step.rows_before, step.watermark.0)).collect()
    }

    #[test]
    fn filter_moves_steps_along() {
        let filtered = batch().filter(&BooleanArray::from(vec![false, true, false, true])).unwrap();
        assert_eq!(rows_before(&filtered), [(0, 1), (1, 2), (2, 3)]);
        let none = batch().filter(&BooleanArray::from(vec![false; 4])).unwrap();
        assert_eq!(rows_before(&none), [(0, 3)]);
    }

    #[test]
    fn slices_share_no_step_and_lose_none() {
        let (left, right) = (batch().slice(0, 2), batch().slice(2, 2));
        assert_eq!(rows_before(&left), [(0, 1), (2, 2)]);
        assert_eq!(rows_before(&right), [(2, 3)]);
        assert_eq!(rows_before(&Batch::concat(&[left, right]).unwrap()), rows_before(&batch()));
    }
}
