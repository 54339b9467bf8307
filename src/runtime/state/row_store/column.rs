//! One column of a store, chunk by chunk.

use std::fmt::Debug;

use arrow::array::ArrayRef;
use arrow::buffer::Buffer;
use arrow::datatypes::{BinaryViewType, DataType, StringViewType};
use bytes::Bytes;

use super::fixed::FixedColumn;
use super::nested::NestedColumn;
use super::text::TextColumn;
use crate::error::Result;

/// Where the value of a row is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) chunk: u32,
    pub(super) row: u32,
}

impl Place {
    /// Nowhere: NULL.
    pub(super) const NONE: Place = Place { chunk: u32::MAX, row: 0 };

    #[inline]
    pub(super) fn is_some(self) -> bool {
        self.chunk != u32::MAX
    }
}

/// One column of a store. Chunks are opened, filled, sealed, perhaps thinned out, and released; all share the numbers of the store.
pub(super) trait ColumnStore: Debug + Send + Sync {
    /// Starts a chunk: a new one, or one that was released.
    fn open(&mut self, chunk: usize);

    /// Adds values to an open chunk.
    fn append(&mut self, chunk: usize, values: &ArrayRef) -> Result<()>;

    /// No more values are added.
    fn seal(&mut self, chunk: usize);

    /// Only these values of a chunk stay, in this order.
    fn keep(&mut self, chunk: usize, rows: &[u32]);

    /// A chunk is empty.
    fn release(&mut self, chunk: usize);

    /// All chunks are gone.
    fn clear(&mut self);

    /// The values at these places.
    fn take(&self, places: &[Place]) -> Result<ArrayRef>;

    /// Whether it is text, of which [`Self::chunk`] gives the bytes.
    fn is_text(&self) -> bool {
        false
    }

    /// All values of a chunk in their order, as they lie in memory.
    fn chunk(&self, chunk: usize) -> Result<ArrayRef>;

    /// Bytes of a chunk.
    fn chunk_bytes(&self, chunk: usize) -> usize;

    /// Bytes of all chunks.
    fn bytes(&self) -> usize;

    /// The same chunks, shared.
    fn boxed_clone(&self) -> Box<dyn ColumnStore>;
}

impl Clone for Box<dyn ColumnStore> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}

/// Memory of a chunk that an array looks into, for as long as it is needed.
pub(super) fn shared_bytes<O>(owner: O) -> Buffer
where
    O: AsRef<[u8]> + Send + 'static,
{
    Buffer::from(Bytes::from_owner(owner))
}

/// An empty column for values of this type.
pub(super) fn column_store(data_type: &DataType) -> Result<Box<dyn ColumnStore>> {
    let data_type = data_type.clone();
    Ok(match &data_type {
        DataType::Utf8View => Box::new(TextColumn::<StringViewType>::default()),
        DataType::BinaryView => Box::new(TextColumn::<BinaryViewType>::default()),
        DataType::Boolean => Box::new(FixedColumn::<u8>::new(data_type)),
        other => match other.primitive_width() {
            Some(1) => Box::new(FixedColumn::<u8>::new(data_type)),
            Some(2) => Box::new(FixedColumn::<u16>::new(data_type)),
            Some(4) => Box::new(FixedColumn::<u32>::new(data_type)),
            Some(8) => Box::new(FixedColumn::<u64>::new(data_type)),
            Some(16) => Box::new(FixedColumn::<i128>::new(data_type)),
            _ => Box::new(NestedColumn::new(data_type)?),
        },
    })
}
