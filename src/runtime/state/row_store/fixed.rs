//! Values of a fixed width, as their bits.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, BooleanArray, make_array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, ToByteSlice};

use super::column::{ColumnStore, Place, shared_bytes};
use super::nulls::{Nulls, take_nulls};
use crate::error::Result;

/// A column of values with the bits of a `T`.
#[derive(Debug, Clone)]
pub(super) struct FixedColumn<T> {
    data_type: DataType,
    chunks: Vec<Arc<Chunk<T>>>,
    any_nulls: bool,
    bytes: usize,
}

#[derive(Debug, Clone, Default)]
struct Chunk<T> {
    values: Vec<T>,
    nulls: Nulls,
}

/// The values of a chunk as bytes.
struct Values<T>(Arc<Chunk<T>>);

impl<T: ArrowNativeType> AsRef<[u8]> for Values<T> {
    fn as_ref(&self) -> &[u8] {
        self.0.values.to_byte_slice()
    }
}

impl<T> Chunk<T> {
    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>() + self.nulls.bytes()
    }
}

impl<T: ArrowNativeType + Default> FixedColumn<T> {
    pub(super) fn new(data_type: DataType) -> Self {
        FixedColumn { data_type, chunks: Vec::new(), any_nulls: false, bytes: 0 }
    }

    /// Changes a chunk, and keeps count of its bytes.
    fn change(&mut self, chunk: usize, change: impl FnOnce(&mut Chunk<T>)) {
        let chunk = Arc::make_mut(&mut self.chunks[chunk]);
        self.bytes -= chunk.bytes();
        change(chunk);
        self.bytes += chunk.bytes();
        self.any_nulls |= chunk.nulls.any();
    }

    fn array(&self, values: Vec<T>, nulls: Option<NullBuffer>) -> ArrayRef {
        if self.data_type == DataType::Boolean {
            let values = values.iter().map(|value| value.as_usize() != 0).collect();
            return Arc::new(BooleanArray::new(values, nulls));
        }
        self.array_over(values.len(), Buffer::from_vec(values), nulls)
    }

    fn array_over(&self, len: usize, values: Buffer, nulls: Option<NullBuffer>) -> ArrayRef {
        let data = ArrayData::builder(self.data_type.clone()).len(len).add_buffer(values);
        make_array(data.nulls(nulls).build().expect("one buffer of the type's width"))
    }
}

impl<T: ArrowNativeType + Default + Debug> ColumnStore for FixedColumn<T> {
    fn open(&mut self, chunk: usize) {
        if chunk == self.chunks.len() {
            self.chunks.push(Arc::default());
        }
    }

    fn append(&mut self, chunk: usize, array: &ArrayRef) -> Result<()> {
        self.change(chunk, |chunk| {
            chunk.nulls.append(chunk.values.len(), array.nulls());
            if let Some(bits) = array.as_boolean_opt() {
                let one = |bit: bool| T::usize_as(usize::from(bit));
                chunk.values.extend(bits.values().iter().map(one));
            } else {
                let data = array.to_data();
                chunk.values.extend_from_slice(&data.buffers()[0].typed_data::<T>()[data.offset()..data.offset() + data.len()]);
            }
        });
        Ok(())
    }

    fn seal(&mut self, chunk: usize) {
        self.change(chunk, |chunk| chunk.values.shrink_to_fit());
    }

    fn keep(&mut self, chunk: usize, rows: &[u32]) {
        self.change(chunk, |chunk| {
            *chunk =
                Chunk { values: rows.iter().map(|row| chunk.values[*row as usize]).collect(), nulls: chunk.nulls.kept(rows) };
        });
    }

    fn release(&mut self, chunk: usize) {
        self.bytes -= self.chunks[chunk].bytes();
        self.chunks[chunk] = Arc::default();
    }

    fn clear(&mut self) {
        self.chunks.clear();
        self.bytes = 0;
    }

    fn take(&self, places: &[Place]) -> Result<ArrayRef> {
        let nulls = take_nulls(places, self.any_nulls, |chunk| &self.chunks[chunk].nulls);
        let chunks: Vec<&[T]> = self.chunks.iter().map(|chunk| chunk.values.as_slice()).collect();
        let value = |place: &Place| match chunks.get(place.chunk as usize) {
            Some(values) => values[place.row as usize],
            None => T::default(),
        };
        Ok(self.array(places.iter().map(value).collect(), nulls))
    }

    fn chunk(&self, chunk: usize) -> Result<ArrayRef> {
        let chunk = &self.chunks[chunk];
        let (len, nulls) = (chunk.values.len(), chunk.nulls.buffer(chunk.values.len()));
        if self.data_type == DataType::Boolean {
            return Ok(self.array(chunk.values.clone(), nulls));
        }
        Ok(self.array_over(len, shared_bytes(Values(Arc::clone(chunk))), nulls))
    }

    fn chunk_bytes(&self, chunk: usize) -> usize {
        self.chunks[chunk].bytes()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn boxed_clone(&self) -> Box<dyn ColumnStore> {
        Box::new(self.clone())
    }
}
