//! Values of nested types (and NULLs of no type), each as the bytes of Arrow's row format.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewBuilder, new_null_array};
use arrow::datatypes::{BinaryViewType, DataType};
use arrow::row::{RowConverter, SortField};

use super::column::{ColumnStore, Place};
use super::text::TextColumn;
use crate::error::Result;

/// A column of nested values.
#[derive(Debug, Clone)]
pub(super) struct NestedColumn {
    converter: Arc<RowConverter>,
    null: Arc<[u8]>,
    rows: TextColumn<BinaryViewType>,
}

impl NestedColumn {
    pub(super) fn new(data_type: DataType) -> Result<Self> {
        let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
        let null = converter.convert_columns(&[new_null_array(&data_type, 1)])?.row(0).data().into();
        Ok(NestedColumn { converter: Arc::new(converter), null, rows: TextColumn::default() })
    }
}

impl ColumnStore for NestedColumn {
    fn open(&mut self, chunk: usize) {
        self.rows.open(chunk);
    }

    fn append(&mut self, chunk: usize, array: &ArrayRef) -> Result<()> {
        let rows = self.converter.convert_columns(std::slice::from_ref(array))?;
        let mut bytes = BinaryViewBuilder::with_capacity(rows.num_rows());
        rows.iter().for_each(|row| bytes.append_value(row.data()));
        self.rows.append(chunk, &(Arc::new(bytes.finish()) as ArrayRef))
    }

    fn seal(&mut self, chunk: usize) {
        self.rows.seal(chunk);
    }

    fn keep(&mut self, chunk: usize, rows: &[u32]) {
        self.rows.keep(chunk, rows);
    }

    fn release(&mut self, chunk: usize) {
        self.rows.release(chunk);
    }

    fn clear(&mut self) {
        self.rows.clear();
    }

    fn take(&self, places: &[Place]) -> Result<ArrayRef> {
        let parser = self.converter.parser();
        let row = |place: &Place| parser.parse(self.rows.text(place).unwrap_or(&self.null));
        Ok(self.converter.convert_rows(places.iter().map(row))?.remove(0))
    }

    fn chunk(&self, chunk: usize) -> Result<ArrayRef> {
        let place = |row: usize| Place { chunk: chunk as u32, row: row as u32 };
        self.take(&(0..self.rows.chunk_len(chunk)).map(place).collect::<Vec<_>>())
    }

    fn chunk_bytes(&self, chunk: usize) -> usize {
        self.rows.chunk_bytes(chunk)
    }

    fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    fn boxed_clone(&self) -> Box<dyn ColumnStore> {
        Box::new(self.clone())
    }
}
