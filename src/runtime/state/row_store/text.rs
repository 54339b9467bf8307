//! Texts and bytes: where all values begin and end, and their bytes one after another. A full chunk in which few texts repeat keeps each once.

use std::fmt::{self, Debug};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, DictionaryArray, GenericByteViewBuilder, UInt16Array};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{BinaryViewType, ByteViewType, StringViewType, ToByteSlice, UInt16Type};
use hashbrown::HashMap;

use super::CHUNK_ROWS;
use super::column::{ColumnStore, Place, shared_bytes};
use super::nulls::{Nulls, take_nulls};
use crate::error::{Error, Result};

/// Texts up to this length stand in Arrow's view itself.
const INLINE_BYTES: usize = 12;
/// Rows that tell whether texts repeat: more than half of them are different ones, or all are looked at.
const SAMPLE_ROWS: usize = if CHUNK_ROWS < 256 { CHUNK_ROWS } else { 256 };

/// A type of text, and how many texts are kept as one.
pub(super) trait TextType: ByteViewType {
    /// All texts of a chunk, one after another.
    type Joined: Debug + Clone + Default + Send + Sync;

    fn push(joined: &mut Self::Joined, text: &Self::Native);
    fn get(joined: &Self::Joined, range: Range<usize>) -> &Self::Native;
    fn length(joined: &Self::Joined) -> usize;
    fn capacity(joined: &Self::Joined) -> usize;
    fn reserve(joined: &mut Self::Joined, bytes: usize);
    fn shrink(joined: &mut Self::Joined);

    /// Whether it is text, not any bytes.
    const IS_TEXT: bool;
    fn as_bytes(joined: &Self::Joined) -> &[u8];
}

impl TextType for StringViewType {
    type Joined = String;

    fn push(joined: &mut String, text: &str) {
        joined.push_str(text);
    }
    #[inline]
    fn get(joined: &String, range: Range<usize>) -> &str {
        &joined[range]
    }
    fn length(joined: &String) -> usize {
        joined.len()
    }
    fn capacity(joined: &String) -> usize {
        joined.capacity()
    }
    fn reserve(joined: &mut String, bytes: usize) {
        joined.reserve(bytes);
    }
    fn shrink(joined: &mut String) {
        joined.shrink_to_fit();
    }

    const IS_TEXT: bool = true;
    fn as_bytes(joined: &String) -> &[u8] {
        joined.as_bytes()
    }
}

impl TextType for BinaryViewType {
    type Joined = Vec<u8>;

    fn push(joined: &mut Vec<u8>, text: &[u8]) {
        joined.extend_from_slice(text);
    }
    #[inline]
    fn get(joined: &Vec<u8>, range: Range<usize>) -> &[u8] {
        &joined[range]
    }
    fn length(joined: &Vec<u8>) -> usize {
        joined.len()
    }
    fn capacity(joined: &Vec<u8>) -> usize {
        joined.capacity()
    }
    fn reserve(joined: &mut Vec<u8>, bytes: usize) {
        joined.reserve(bytes);
    }
    fn shrink(joined: &mut Vec<u8>) {
        joined.shrink_to_fit();
    }

    const IS_TEXT: bool = false;
    fn as_bytes(joined: &Vec<u8>) -> &[u8] {
        joined
    }
}

/// The texts of a chunk as bytes.
struct Joined<T: TextType>(Arc<Chunk<T>>);

impl<T: TextType> AsRef<[u8]> for Joined<T> {
    fn as_ref(&self) -> &[u8] {
        T::as_bytes(&self.0.joined)
    }
}

/// Where the texts of a chunk begin and end, as bytes.
struct Offsets<T: TextType>(Arc<Chunk<T>>);

impl<T: TextType> AsRef<[u8]> for Offsets<T> {
    fn as_ref(&self) -> &[u8] {
        self.0.offsets.to_byte_slice()
    }
}

/// The numbers of the texts of a chunk, as bytes.
struct Codes<T: TextType>(Arc<Chunk<T>>);

impl<T: TextType> AsRef<[u8]> for Codes<T> {
    fn as_ref(&self) -> &[u8] {
        self.0.codes.as_deref().unwrap_or_default().to_byte_slice()
    }
}

/// A column of texts.
pub(super) struct TextColumn<T: TextType> {
    chunks: Vec<Arc<Chunk<T>>>,
    any_nulls: bool,
    bytes: usize,
}

struct Chunk<T: TextType> {
    /// Where each text stands more than once: its number among the different ones.
    codes: Option<Vec<u16>>,
    /// Where each text begins, and where the last one ends.
    offsets: Vec<u32>,
    joined: T::Joined,
    nulls: Nulls,
}

impl<T: TextType> Default for Chunk<T> {
    fn default() -> Self {
        Chunk { codes: None, offsets: vec![0], joined: T::Joined::default(), nulls: Nulls::default() }
    }
}

impl<T: TextType> Clone for Chunk<T> {
    fn clone(&self) -> Self {
        Chunk { codes: self.codes.clone(), offsets: self.offsets.clone(), joined: self.joined.clone(), nulls: self.nulls.clone() }
    }
}

impl<T: TextType> Default for TextColumn<T> {
    fn default() -> Self {
        TextColumn { chunks: Vec::new(), any_nulls: false, bytes: 0 }
    }
}

impl<T: TextType> Clone for TextColumn<T> {
    fn clone(&self) -> Self {
        TextColumn { chunks: self.chunks.clone(), any_nulls: self.any_nulls, bytes: self.bytes }
    }
}

impl<T: TextType> Debug for TextColumn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TextColumn({} chunks, {} bytes)", self.chunks.len(), self.bytes)
    }
}

impl<T: TextType> Chunk<T> {
    fn bytes(&self) -> usize {
        let codes = self.codes.as_ref().map_or(0, |codes| codes.capacity() * size_of::<u16>());
        // The first offset is there in any case, also of a chunk that was never opened.
        codes + (self.offsets.capacity() - 1) * size_of::<u32>() + T::capacity(&self.joined) + self.nulls.bytes()
    }

    fn num_rows(&self) -> usize {
        self.codes.as_ref().map_or(self.offsets.len() - 1, Vec::len)
    }

    #[inline]
    fn range(&self, row: usize) -> Range<usize> {
        let row = self.codes.as_ref().map_or(row, |codes| codes[row] as usize);
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    /// Keeps each text once, if that takes less than half.
    fn share_texts(&mut self) {
        let num_rows = self.offsets.len() - 1;
        if self.codes.is_some() || num_rows < SAMPLE_ROWS {
            return;
        }
        let mut known: HashMap<&[u8], u16> = HashMap::new();
        let mut codes = Vec::with_capacity(num_rows);
        for row in 0..num_rows {
            let next = known.len() as u16;
            codes.push(*known.entry(T::get(&self.joined, self.range(row)).as_ref()).or_insert(next));
            if row + 1 == SAMPLE_ROWS && known.len() * 2 > SAMPLE_ROWS {
                return;
            }
        }
        let text_bytes: usize = known.keys().map(|text| text.len()).sum();
        if text_bytes + known.len() * size_of::<u32>() + num_rows * size_of::<u16>() > self.bytes() / 2 {
            return;
        }
        let mut first_rows = vec![0; known.len()];
        drop(known);
        codes.iter().enumerate().rev().for_each(|(row, code)| first_rows[*code as usize] = row);
        let mut shared = Chunk::<T> { nulls: self.nulls.clone(), ..Chunk::default() };
        T::reserve(&mut shared.joined, text_bytes);
        shared.offsets.reserve_exact(first_rows.len());
        first_rows.into_iter().for_each(|row| shared.push(T::get(&self.joined, self.range(row))));
        shared.codes = Some(codes);
        *self = shared;
    }

    fn push(&mut self, text: &T::Native) {
        T::push(&mut self.joined, text);
        self.offsets.push(T::length(&self.joined) as u32);
    }
}

impl<T: TextType> TextColumn<T> {
    fn change(&mut self, chunk: usize, change: impl FnOnce(&mut Chunk<T>)) {
        let chunk = Arc::make_mut(&mut self.chunks[chunk]);
        self.bytes -= chunk.bytes();
        change(chunk);
        self.bytes += chunk.bytes();
        self.any_nulls |= chunk.nulls.any();
    }

    /// Values of a chunk.
    pub(super) fn chunk_len(&self, chunk: usize) -> usize {
        self.chunks[chunk].num_rows()
    }

    /// The text of a place; none where there is no row. A NULL is an empty text here.
    #[inline]
    pub(super) fn text(&self, place: &Place) -> Option<&T::Native> {
        let chunk = self.chunks.get(place.chunk as usize)?;
        Some(T::get(&chunk.joined, chunk.range(place.row as usize)))
    }
}

impl<T: TextType> ColumnStore for TextColumn<T> {
    fn open(&mut self, chunk: usize) {
        if chunk == self.chunks.len() {
            self.chunks.push(Arc::default());
        }
    }

    fn append(&mut self, chunk: usize, array: &ArrayRef) -> Result<()> {
        let texts = array.as_byte_view::<T>();
        let added: usize = texts.lengths().map(|length| length as usize).sum();
        if T::length(&self.chunks[chunk].joined) + added > u32::MAX as usize {
            return Err(Error::internal("more than 4 GB of text in a chunk of rows"));
        }
        self.change(chunk, |chunk| {
            chunk.nulls.append(chunk.offsets.len() - 1, texts.nulls());
            T::reserve(&mut chunk.joined, added);
            chunk.offsets.reserve(texts.len());
            for row in 0..texts.len() {
                if texts.is_valid(row) {
                    chunk.push(texts.value(row));
                } else {
                    chunk.offsets.push(T::length(&chunk.joined) as u32);
                }
            }
        });
        Ok(())
    }

    fn seal(&mut self, chunk: usize) {
        self.change(chunk, |chunk| {
            chunk.share_texts();
            chunk.offsets.shrink_to_fit();
            T::shrink(&mut chunk.joined);
        });
    }

    fn keep(&mut self, chunk: usize, rows: &[u32]) {
        self.change(chunk, |chunk| {
            let mut kept = Chunk::<T> { nulls: chunk.nulls.kept(rows), ..Chunk::default() };
            T::reserve(&mut kept.joined, rows.iter().map(|row| chunk.range(*row as usize).len()).sum());
            kept.offsets.reserve_exact(rows.len());
            rows.iter().for_each(|row| kept.push(T::get(&chunk.joined, chunk.range(*row as usize))));
            kept.share_texts();
            *chunk = kept;
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
        let long = |place: &Place| {
            let chunk = self.chunks.get(place.chunk as usize)?;
            Some(chunk.range(place.row as usize).len()).filter(|length| *length > INLINE_BYTES)
        };
        // One block for all of them, if it is not too long for one.
        let bytes: usize = places.iter().filter_map(long).sum();
        let block = bytes.clamp(1, i32::MAX as usize) as u32;
        let mut texts = GenericByteViewBuilder::<T>::with_capacity(places.len()).with_fixed_block_size(block);
        for (row, place) in places.iter().enumerate() {
            match self.text(place) {
                Some(text) if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) => texts.append_value(text),
                _ => texts.append_null(),
            }
        }
        Ok(Arc::new(texts.finish()))
    }

    fn chunk(&self, chunk: usize) -> Result<ArrayRef> {
        let number = chunk as u32;
        let chunk = &self.chunks[chunk];
        if T::length(&chunk.joined) > i32::MAX as usize {
            return self.take(&(0..chunk.num_rows() as u32).map(|row| Place { chunk: number, row }).collect::<Vec<_>>());
        }
        let nulls = chunk.nulls.buffer(chunk.num_rows());
        let offsets = ScalarBuffer::<i32>::from(shared_bytes(Offsets(Arc::clone(chunk))));
        let joined = shared_bytes(Joined(Arc::clone(chunk)));
        let texts = |nulls| BinaryArray::try_new(OffsetBuffer::new(offsets), joined, nulls);
        Ok(match &chunk.codes {
            None => Arc::new(texts(nulls)?),
            Some(_) => {
                let codes = UInt16Array::new(shared_bytes(Codes(Arc::clone(chunk))).into(), nulls);
                Arc::new(DictionaryArray::<UInt16Type>::try_new(codes, Arc::new(texts(None)?))?)
            }
        })
    }

    fn is_text(&self) -> bool {
        T::IS_TEXT
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
