//! Rows that were shown of sessions which have changed since: a firing takes them back.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::compute;
use arrow::datatypes::Int64Type;

use crate::error::Result;
use crate::operators::keyed_state::{key_groups_of, restored_rows, rows_in_range, state_rows};
use crate::runtime::{StateTable, StateTableSnapshot};
use crate::types::{Batch, KeyGroupRange, hash_columns};

/// Rows noted together.
struct Noted {
    /// As they came out: keys first.
    rows: Batch,
    starts: Vec<i64>,
    /// Which of them are owed still.
    owed: Vec<bool>,
}

/// Rows that were shown of sessions which have changed since, by number.
pub(super) struct ShownRows {
    noted: Vec<Noted>,
    /// Where the rows are: of which notes, and which of them.
    places: Vec<(usize, usize)>,
    owed: usize,
    restored: Vec<Batch>,
    num_keys: usize,
    max_parallelism: u32,
}

impl ShownRows {
    /// None.
    pub(super) fn new(num_keys: usize, max_parallelism: u32) -> Self {
        ShownRows { noted: Vec::new(), places: Vec::new(), owed: 0, restored: Vec::new(), num_keys, max_parallelism }
    }

    /// Notes rows of sessions that started at these times: the number of the first; the others follow.
    pub(super) fn note(&mut self, rows: Batch, starts: Vec<i64>) -> u32 {
        let first = self.places.len() as u32;
        let count = rows.num_rows();
        self.places.extend((0..count).map(|row| (self.noted.len(), row)));
        self.noted.push(Noted { rows, starts, owed: vec![true; count] });
        self.owed += count;
        first
    }

    /// Rows, one for each number.
    pub(super) fn rows(&self, numbers: &[u32]) -> Result<Vec<ArrayRef>> {
        let Some(first) = self.noted.first() else { return Ok(Vec::new()) };
        let places: Vec<(usize, usize)> = numbers.iter().map(|number| self.places[*number as usize]).collect();
        let column = |at: usize| -> Result<ArrayRef> {
            let parts: Vec<_> = self.noted.iter().map(|noted| noted.rows.column(at).as_ref()).collect();
            Ok(compute::interleave(&parts, &places)?)
        };
        (0..first.rows.columns().len()).map(column).collect()
    }

    /// These rows were taken back.
    pub(super) fn settle(&mut self, numbers: &[u32]) {
        for number in numbers {
            let (noted, row) = self.places[*number as usize];
            self.noted[noted].owed[row] = false;
        }
        self.owed -= numbers.len();
        if self.owed == 0 {
            self.noted.clear();
            self.places.clear();
        }
    }

    /// After a restart: the rows that came back, each with the time at which its session started.
    pub(super) fn take_restored(&mut self) -> Vec<(Batch, Vec<i64>)> {
        let restored = std::mem::take(&mut self.restored).into_iter();
        let parts = restored.map(|rows| {
            let starts = rows.column(0).as_primitive::<Int64Type>().values().to_vec();
            (Batch::new(rows.columns()[1..].to_vec(), rows.num_rows()), starts)
        });
        parts.collect()
    }
}

impl StateTable for ShownRows {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let (mut all, mut hashes) = (restored_rows(&self.restored, 1..1 + self.num_keys, self.max_parallelism)?, Vec::new());
        for noted in &self.noted {
            let rows = noted.rows.filter(&noted.owed.iter().map(|owed| Some(*owed)).collect())?;
            if rows.num_rows() == 0 {
                continue;
            }
            hash_columns(&rows.columns()[..self.num_keys], rows.num_rows(), &mut hashes);
            let starts = noted.starts.iter().zip(&noted.owed).filter(|(_, owed)| **owed).map(|(start, _)| *start);
            let starts: ArrayRef = Arc::new(Int64Array::from_iter_values(starts));
            let columns = std::iter::once(starts).chain(rows.columns().iter().cloned()).collect();
            all.push(state_rows(key_groups_of(hashes.iter().copied(), self.max_parallelism), columns)?);
        }
        Ok(StateTableSnapshot::new(all))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            let rows = rows_in_range(rows, range)?;
            self.restored.extend((!rows.is_empty()).then_some(rows));
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        let bytes = |noted: &Noted| noted.rows.columns().iter().map(|column| column.get_array_memory_size()).sum::<usize>();
        self.noted.iter().map(bytes).sum()
    }
}
