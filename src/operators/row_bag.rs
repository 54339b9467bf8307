//! Whole rows with how often each is there: what an operator keeps of an input that takes rows back.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use hashbrown::HashMap;

use super::keyed_state::{rows_in_range, unkeyed_snapshot};
use crate::error::Result;
use crate::runtime::{StateTable, StateTableSnapshot};
use crate::types::{Batch, KeyGroupRange};

/// Whole rows with how often each is there, in the order of their first arrival.
#[derive(Debug, Default)]
pub(super) struct RowBag {
    converter: Option<RowConverter>,
    counts: HashMap<Box<[u8]>, Counted>,
    arrivals: u64,
    row_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Counted {
    arrival: u64,
    count: i64,
}

/// A converter of rows with columns of these types.
pub(super) fn row_converter(columns: &[ArrayRef]) -> Result<RowConverter> {
    let types = columns.iter().map(|column| column.data_type().clone());
    Ok(RowConverter::new(types.map(|data_type: DataType| SortField::new(data_type)).collect())?)
}

impl RowBag {
    /// Adds rows, or by kind takes them back. A row taken back before it came is owed.
    pub(super) fn update(&mut self, batch: &Batch) -> Result<()> {
        if self.converter.is_none() {
            self.converter = Some(row_converter(batch.columns())?);
        }
        let rows = self.converter.as_ref().expect("made above").convert_columns(batch.columns())?;
        for row in 0..batch.num_rows() {
            let bytes = rows.row(row).data();
            let change = if batch.kind(row).is_retraction() { -1 } else { 1 };
            match self.counts.get_mut(bytes) {
                Some(counted) if counted.count + change == 0 => {
                    self.counts.remove(bytes);
                    self.row_bytes -= bytes.len();
                }
                Some(counted) => counted.count += change,
                None => {
                    self.counts.insert(bytes.into(), Counted { arrival: self.arrivals, count: change });
                    self.arrivals += 1;
                    self.row_bytes += bytes.len();
                }
            }
        }
        Ok(())
    }

    /// All rows as columns, each as often as it is there; none = there is no row.
    pub(super) fn rows(&self) -> Result<Option<Vec<ArrayRef>>> {
        let mut present: Vec<(&Box<[u8]>, &Counted)> = self.counts.iter().filter(|(_, counted)| counted.count > 0).collect();
        let (Some(converter), false) = (&self.converter, present.is_empty()) else { return Ok(None) };
        present.sort_unstable_by_key(|(_, counted)| counted.arrival);
        let parser = converter.parser();
        let rows = present.iter().flat_map(|(row, counted)| std::iter::repeat_n(parser.parse(row), counted.count as usize));
        Ok(Some(converter.convert_rows(rows)?))
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.counts.clear();
        self.row_bytes = 0;
    }
}

impl StateTable for RowBag {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        unkeyed_snapshot(self.rows()?)
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows {
            let columns = rows_in_range(rows, range)?;
            if let Some(num_rows) = columns.first().map(|column| column.len()).filter(|num_rows| *num_rows > 0) {
                self.update(&Batch::new(columns, num_rows))?;
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<(Box<[u8]>, Counted)>() + self.row_bytes
    }
}
