//! Whole rows with how often each is there: what an operator keeps of an input that takes rows back.

use arrow::array::{ArrayRef, Int64Array};
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
    /// None: no row has come yet, or rows have no columns.
    converter: Option<RowConverter>,
    counts: HashMap<Box<[u8]>, Counted>,
    arrivals: u64,
    row_bytes: usize,
    /// Whether rows are forgotten, so that one that is taken back may not be there: then it is passed over.
    forgets: bool,
}

#[derive(Debug, Clone, Copy)]
struct Counted {
    arrival: u64,
    count: i64,
    /// When it came or went last, where somebody wants to know.
    written: i64,
}

/// A converter of rows with columns of these types.
pub(super) fn row_converter(columns: &[ArrayRef]) -> Result<RowConverter> {
    let types = columns.iter().map(|column| column.data_type().clone());
    Ok(RowConverter::new(types.map(|data_type: DataType| SortField::new(data_type)).collect())?)
}

impl RowBag {
    /// Adds rows, or by kind takes them back. A row taken back before it came is owed.
    pub(super) fn update(&mut self, batch: &Batch) -> Result<()> {
        self.update_at(batch, |_| 0)
    }

    /// One whose rows are forgotten in time.
    pub(super) fn that_forgets() -> Self {
        RowBag { forgets: true, ..RowBag::default() }
    }

    /// The same as [`Self::update`], each row at a time.
    pub(super) fn update_at(&mut self, batch: &Batch, time: impl Fn(usize) -> i64) -> Result<()> {
        if self.converter.is_none() && !batch.columns().is_empty() {
            self.converter = Some(row_converter(batch.columns())?);
        }
        let rows = self.converter.as_ref().map(|converter| converter.convert_columns(batch.columns())).transpose()?;
        for row in 0..batch.num_rows() {
            let bytes = rows.as_ref().map_or(&[][..], |rows| rows.row(row).data());
            let change = if batch.kind(row).is_retraction() { -1 } else { 1 };
            match self.counts.get_mut(bytes) {
                Some(counted) if counted.count + change == 0 => {
                    self.counts.remove(bytes);
                    self.row_bytes -= bytes.len();
                }
                Some(counted) => {
                    counted.count += change;
                    counted.written = time(row);
                }
                None if change < 0 && self.forgets => {}
                None => {
                    self.counts.insert(bytes.into(), Counted { arrival: self.arrivals, count: change, written: time(row) });
                    self.arrivals += 1;
                    self.row_bytes += bytes.len();
                }
            }
        }
        Ok(())
    }

    /// All rows, each as often as it is there; none = there is no row.
    pub(super) fn rows(&self) -> Result<Option<Batch>> {
        let present = self.present();
        if present.is_empty() {
            return Ok(None);
        }
        let num_rows = present.iter().map(|(_, counted)| counted.count as usize).sum();
        let Some(converter) = &self.converter else { return Ok(Some(Batch::new(Vec::new(), num_rows))) };
        let parser = converter.parser();
        let rows = present.iter().flat_map(|(row, counted)| std::iter::repeat_n(parser.parse(row), counted.count as usize));
        Ok(Some(Batch::new(converter.convert_rows(rows)?, num_rows)))
    }

    /// The rows that are there, by arrival.
    fn present(&self) -> Vec<(&[u8], &Counted)> {
        let there = self.counts.iter().filter(|(_, counted)| counted.count > 0);
        let mut present: Vec<(&[u8], &Counted)> = there.map(|(row, counted)| (&**row, counted)).collect();
        present.sort_unstable_by_key(|(_, counted)| counted.arrival);
        present
    }

    /// The times of all rows, in the order of [`Self::rows`].
    pub(super) fn times(&self) -> Int64Array {
        let times = self.present().into_iter().flat_map(|(_, row)| std::iter::repeat_n(row.written, row.count as usize));
        times.map(Some).collect()
    }

    /// Forgets the rows that came or went last at this time or before; how many.
    pub(super) fn expire(&mut self, limit: i64) -> usize {
        let (before, row_bytes) = (self.counts.len(), &mut self.row_bytes);
        self.counts.retain(|row, counted| {
            let stays = counted.written > limit;
            *row_bytes -= if stays { 0 } else { row.len() };
            stays
        });
        let expired = before - self.counts.len();
        if expired > self.counts.len() {
            self.counts.shrink_to_fit();
        }
        expired
    }

    /// Whether nothing is known of any row.
    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.counts.clear();
        self.row_bytes = 0;
    }
}

impl StateTable for RowBag {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        unkeyed_snapshot(self.rows()?.as_ref())
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            self.update(&rows_in_range(rows, range)?)?;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<(Box<[u8]>, Counted)>() + self.row_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_columns_survive_a_restart() {
        let (mut bag, mut restored) = (RowBag::default(), RowBag::default());
        bag.update(&Batch::new(Vec::new(), 4)).unwrap();
        restored.restore(&bag.snapshot().unwrap(), KeyGroupRange { start: 0, end: 127 }).unwrap();
        restored.update(&Batch::new(Vec::new(), 1)).unwrap();
        assert_eq!(restored.rows().unwrap().unwrap().num_rows(), 5);
    }
}
