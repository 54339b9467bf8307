//! Values of any type as bytes that compare like the values (Arrow's row format), and back: for state that must hold single values.

use arrow::array::{Array, ArrayRef, new_null_array};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows, SortField};

use crate::error::Result;

/// Encodes and decodes values of one type.
#[derive(Debug)]
pub(super) struct RowCodec {
    converter: RowConverter,
    null: Box<[u8]>,
}

impl RowCodec {
    /// For values of this Arrow type.
    pub(super) fn new(data_type: &DataType) -> Result<Self> {
        let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
        let null = converter.convert_columns(&[new_null_array(data_type, 1)])?.row(0).data().into();
        Ok(RowCodec { converter, null })
    }

    /// The rows of an array.
    pub(super) fn encode(&self, array: &ArrayRef) -> Result<Rows> {
        Ok(self.converter.convert_columns(std::slice::from_ref(array))?)
    }

    /// The array of these values; none = NULL.
    pub(super) fn decode<'a>(&'a self, values: impl Iterator<Item = Option<&'a [u8]>>) -> Result<ArrayRef> {
        let parser = self.converter.parser();
        let mut columns = self.converter.convert_rows(values.map(|value| parser.parse(value.unwrap_or(&self.null))))?;
        Ok(columns.remove(0))
    }
}

/// The byte strings of rows that are not NULL in `array`, by row.
pub(super) fn valid_row<'a>(rows: &'a Rows, array: &ArrayRef, row: usize) -> Option<&'a [u8]> {
    array.is_valid(row).then(|| rows.row(row).data())
}
