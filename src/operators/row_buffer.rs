//! Rows that wait, as they came: what an operator keeps of an input that only adds rows.

use arrow::array::{Array, ArrayRef};

use super::keyed_state::{rows_in_range, unkeyed_snapshot};
use crate::error::Result;
use crate::runtime::{StateTable, StateTableSnapshot};
use crate::types::{Batch, KeyGroupRange};

/// Rows that wait, as they came.
#[derive(Debug, Default)]
pub(super) struct RowBuffer {
    batches: Vec<Batch>,
    bytes: usize,
}

impl RowBuffer {
    /// Appends rows.
    pub(super) fn push(&mut self, batch: Batch) {
        if batch.num_rows() > 0 {
            self.bytes += batch.bytes();
            self.batches.push(batch);
        }
    }

    /// All rows as one batch, which stays.
    pub(super) fn all(&mut self) -> Result<Option<&Batch>> {
        if self.batches.len() > 1 {
            self.batches = vec![Batch::concat(&self.batches)?];
        }
        Ok(self.batches.first())
    }

    /// All rows as one batch, taken out.
    pub(super) fn take(&mut self) -> Result<Option<Batch>> {
        self.all()?;
        self.bytes = 0;
        Ok(self.batches.pop())
    }
}

impl StateTable for RowBuffer {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        unkeyed_snapshot(self.all()?.map(|batch| batch.columns().to_vec()))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows {
            let columns: Vec<ArrayRef> = rows_in_range(rows, range)?;
            if let Some(num_rows) = columns.first().map(|column| column.len()) {
                self.push(Batch::new(columns, num_rows));
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
