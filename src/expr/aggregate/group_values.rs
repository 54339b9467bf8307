//! One value of any type for each group, or none: held as the bytes of [`RowCodec`], with its bytes counted.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use arrow::row::Rows;

use super::row_codec::RowCodec;
use crate::error::Result;

/// One value or none for each group.
#[derive(Debug)]
pub(super) struct GroupValues {
    data_type: DataType,
    codec: RowCodec,
    values: Vec<Option<Box<[u8]>>>,
    value_bytes: usize,
}

impl GroupValues {
    /// Of this Arrow type.
    pub(super) fn new(data_type: DataType) -> Result<Self> {
        let codec = RowCodec::new(&data_type)?;
        Ok(GroupValues { data_type, codec, values: Vec::new(), value_bytes: 0 })
    }

    /// The type of the values.
    pub(super) fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Makes room for groups; new ones have no value.
    pub(super) fn resize(&mut self, num_groups: usize) {
        self.values.resize(num_groups, None);
    }

    /// The rows of an array, as [`GroupValues::set`] takes them.
    pub(super) fn encode(&self, array: &ArrayRef) -> Result<Rows> {
        self.codec.encode(array)
    }

    /// The value of a group.
    pub(super) fn get(&self, group: usize) -> Option<&[u8]> {
        self.values[group].as_deref()
    }

    /// Gives a group another value.
    pub(super) fn set(&mut self, group: usize, value: &[u8]) {
        let former = self.values[group].replace(value.into());
        self.value_bytes = self.value_bytes + value.len() - former.map_or(0, |former| former.len());
    }

    /// The values of these groups; none = NULL.
    pub(super) fn decode(&self, groups: &[u32]) -> Result<ArrayRef> {
        self.codec.decode(groups.iter().map(|group| self.get(*group as usize)))
    }

    /// Takes the values of these groups away.
    pub(super) fn clear(&mut self, groups: &[u32]) {
        for group in groups {
            self.value_bytes -= self.values[*group as usize].take().map_or(0, |value| value.len());
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<Option<Box<[u8]>>>() + self.value_bytes
    }
}
