//! Folds a changelog into the table that it describes: what a user sees of a query whose result changes.
//!
//! The table is a bag of whole rows: `+I` and `+U` add one, `-U` and `-D` take an equal one away. Rows keep the order in which they
//! came; an updated row keeps the place of the row that it replaces. Taking away a row that is not there means that a source, or an
//! operator, broke its promise, and is reported.

use std::collections::{BTreeMap, VecDeque};

use arrow::array::ArrayRef;
use arrow::row::{RowConverter, SortField};
use hashbrown::HashMap;

use crate::error::{Error, ErrorKind, Result};
use crate::types::{Batch, RowKind, SchemaRef};

/// The table that a changelog describes, so far.
pub struct ChangelogFold {
    converter: RowConverter,
    /// The rows in order, by place.
    rows: BTreeMap<u64, Box<[u8]>>,
    /// The places of equal rows.
    places: HashMap<Box<[u8]>, Vec<u64>>,
    /// Places of rows taken away by `-U`, waiting for their `+U`.
    vacant: VecDeque<u64>,
    next_place: u64,
    /// Rows of a relation without columns.
    columns: usize,
}

impl ChangelogFold {
    /// An empty table with these columns.
    pub fn new(schema: &SchemaRef) -> Result<Self> {
        let fields = schema.fields.iter().map(|field| SortField::new(field.data_type.to_arrow())).collect();
        Ok(ChangelogFold {
            converter: RowConverter::new(fields)?,
            rows: BTreeMap::new(),
            places: HashMap::new(),
            vacant: VecDeque::new(),
            next_place: 0,
            columns: schema.len(),
        })
    }

    /// Applies the changes of a batch in order.
    pub fn apply(&mut self, batch: &Batch) -> Result<()> {
        let encoded = self.converter.convert_columns(batch.columns())?;
        for row in 0..batch.num_rows() {
            let bytes: &[u8] = if self.columns == 0 { &[] } else { encoded.row(row).data() };
            match batch.kind(row) {
                kind if kind.is_retraction() => self.take(bytes, kind)?,
                kind => self.add(bytes.into(), kind),
            }
        }
        Ok(())
    }

    fn add(&mut self, row: Box<[u8]>, kind: RowKind) {
        let reused = if kind == RowKind::UpdateAfter { self.vacant.pop_front() } else { None };
        let place = reused.unwrap_or_else(|| {
            self.next_place += 1;
            self.next_place
        });
        self.places.entry(row.clone()).or_default().push(place);
        self.rows.insert(place, row);
    }

    fn take(&mut self, row: &[u8], kind: RowKind) -> Result<()> {
        let places = self.places.get_mut(row).ok_or_else(|| not_there(kind))?;
        let place = places.pop().expect("a row without places is removed");
        if places.is_empty() {
            self.places.remove(row);
        }
        self.rows.remove(&place);
        if kind == RowKind::UpdateBefore {
            self.vacant.push_back(place);
        }
        Ok(())
    }

    /// How many rows the table has.
    pub fn num_rows(&self) -> usize {
        self.rows.len()
    }

    /// The table as one batch of columns, rows in order.
    pub fn to_batch(&self) -> Result<Batch> {
        self.batch_of(self.rows.values(), self.rows.len())
    }

    /// The last rows of the table, at most `count`; takes time only for those.
    pub fn tail(&self, count: usize) -> Result<Batch> {
        let mut last: Vec<&Box<[u8]>> = self.rows.values().rev().take(count).collect();
        last.reverse();
        let num_rows = last.len();
        self.batch_of(last.into_iter(), num_rows)
    }

    fn batch_of<'a>(&self, rows: impl Iterator<Item = &'a Box<[u8]>>, num_rows: usize) -> Result<Batch> {
        if self.columns == 0 {
            return Ok(Batch::new(Vec::new(), num_rows));
        }
        let parser = self.converter.parser();
        let columns: Vec<ArrayRef> = self.converter.convert_rows(rows.map(|row| parser.parse(row)))?;
        Ok(Batch::new(columns, num_rows))
    }
}

/// Changes as they come from a file or a program are taken at their word.
fn not_there(kind: RowKind) -> Error {
    Error::new(ErrorKind::DataFormat, format!("a {kind} row takes away a row that is not there"))
        .with_hint(
            "changes that begin in the middle of a stream do so; with a PRIMARY KEY and 'table.exec.source.cdc-events-duplicate' = 'true' \
             the last row of each key counts",
        )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, AsArray, Int32Array};
    use arrow::datatypes::Int32Type;

    use super::*;
    use crate::types::{DataType, Field, RowKinds, Schema, TypeKind};

    fn fold(changes: &[(RowKind, i32)]) -> Result<Vec<i32>> {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::nullable(TypeKind::Int))]));
        let mut fold = ChangelogFold::new(&schema)?;
        let values = Int32Array::from_iter_values(changes.iter().map(|change| change.1));
        let kinds = RowKinds::new(changes.iter().map(|change| change.0));
        fold.apply(&Batch::new(vec![Arc::new(values)], changes.len()).with_kinds(Some(kinds)))?;
        Ok(fold.to_batch()?.column(0).as_primitive::<Int32Type>().values().to_vec())
    }

    #[test]
    fn an_updated_row_keeps_its_place() {
        use RowKind::*;
        let rows = fold(&[(Insert, 1), (Insert, 2), (UpdateBefore, 1), (UpdateAfter, 7), (Insert, 2), (Delete, 2)]).unwrap();
        assert_eq!(rows, [7, 2]);
    }

    #[test]
    fn taking_away_a_row_that_is_not_there_is_an_error() {
        assert!(fold(&[(RowKind::Delete, 1)]).is_err());
    }

    #[test]
    fn an_empty_table_has_its_columns() {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::string())]));
        let batch = ChangelogFold::new(&schema).unwrap().to_batch().unwrap();
        assert_eq!((batch.num_rows(), batch.column(0).len()), (0, 0));
    }
}
