//! Rows that wait, as they came: what an operator keeps of an input that only adds rows.

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
        unkeyed_snapshot(self.all()?)
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            self.push(rows_in_range(rows, range)?);
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_columns_survive_a_restart() {
        let (mut buffer, mut restored) = (RowBuffer::default(), RowBuffer::default());
        buffer.push(Batch::new(Vec::new(), 2));
        buffer.push(Batch::new(Vec::new(), 3));
        restored.restore(&buffer.snapshot().unwrap(), KeyGroupRange { start: 0, end: 127 }).unwrap();
        assert_eq!(restored.take().unwrap().unwrap().num_rows(), 5);
    }
}
