//! Rows that an operator keeps, column by column, in chunks: compact, cheap to freeze, and released when deleted.
//!
//! A row gets a [`RowId`] when it is appended and keeps it for life; the id of a deleted row may be given again. Texts are copied
//! into the chunk, so nothing holds on to the blocks that they came in. A chunk of which less than half is alive is written anew
//! without its dead rows, one without rows is dropped. Chunks are shared when a store is cloned: a clone is a frozen view that
//! costs a pointer for each chunk, and only what changes afterwards is copied.
//!
//! What an operator must find again (by key, by order) it keeps beside the store as ids; what it counts for each row, in a
//! [`RowAttribute`].
//!
//! ```text
//! let mut ids = Vec::new();
//! store.append(batch.columns(), batch.num_rows(), &mut ids)?;     // an id for each row, in order
//! let columns = store.take(&[ids[3], ids[0], RowId::NONE])?;     // those rows, the last one of NULLs
//! store.delete(&ids[..2]);
//! let frozen = store.clone();                                     // beside the task: frozen.chunks(), frozen.take(…)
//! ```

mod attribute;
mod chunk;
mod column;
mod fixed;
mod nested;
mod nulls;
mod slots;
#[cfg(test)]
mod tests;
mod text;

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

pub use attribute::RowAttribute;
use chunk::Content;
pub use chunk::StoredChunk;
use column::{ColumnStore, Place, column_store};
use slots::Slots;

use crate::error::{Error, ErrorKind, Result};

/// Rows of a chunk.
pub const CHUNK_ROWS: usize = 1 << CHUNK_BITS;
/// Unit tests have small chunks, so that a few rows fill several.
const CHUNK_BITS: u32 = if cfg!(test) { 6 } else { 12 };
/// Bytes of a chunk's column after which no more rows are added to it.
const CHUNK_BYTES_MAX: usize = 1 << 28;

/// A row of a store, for as long as it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(u32);

impl RowId {
    /// No row: taken as NULLs.
    pub const NONE: RowId = RowId(u32::MAX);

    fn new(chunk: usize, slot: usize) -> Self {
        RowId((chunk as u32) << CHUNK_BITS | slot as u32)
    }

    /// The chunk of the row: rows of one chunk lie side by side.
    pub fn chunk(self) -> usize {
        (self.0 >> CHUNK_BITS) as usize
    }

    fn slot(self) -> usize {
        self.0 as usize & (CHUNK_ROWS - 1)
    }

    /// Whether it is a row.
    pub fn is_some(self) -> bool {
        self != RowId::NONE
    }
}

/// Rows in columnar chunks. See the module.
#[derive(Debug, Clone)]
pub struct RowStore {
    columns: Vec<Box<dyn ColumnStore>>,
    chunks: Vec<Arc<Slots>>,
    /// What each chunk holds.
    contents: Vec<Content>,
    /// The last number given to a content.
    last_content: u64,
    /// The chunk that rows are added to.
    open: Option<usize>,
    /// Numbers of chunks without rows.
    free: Vec<usize>,
    num_rows: usize,
}

impl RowStore {
    /// For rows with columns of these types; there may be none.
    pub fn new(types: &[DataType]) -> Result<Self> {
        let columns = types.iter().map(column_store).collect::<Result<_>>()?;
        let (chunks, contents, free) = (Vec::new(), Vec::new(), Vec::new());
        Ok(RowStore { columns, chunks, contents, last_content: 0, open: None, free, num_rows: 0 })
    }

    /// How many columns they have.
    pub fn num_columns(&self) -> usize {
        self.columns.len()
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.num_rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.num_rows == 0
    }

    /// Adds `num_rows` rows; the id of each, in order, in place of what `ids` held.
    pub fn append(&mut self, columns: &[ArrayRef], num_rows: usize, ids: &mut Vec<RowId>) -> Result<()> {
        assert_eq!(columns.len(), self.columns.len(), "rows have the columns of the store");
        ids.clear();
        ids.reserve(num_rows);
        let mut from = 0;
        while from < num_rows {
            let chunk = self.open_chunk()?;
            let first = self.chunks[chunk].filled();
            let count = (num_rows - from).min(CHUNK_ROWS - first);
            for (store, column) in self.columns.iter_mut().zip(columns) {
                store.append(chunk, &column.slice(from, count))?;
            }
            Arc::make_mut(&mut self.chunks[chunk]).fill(count);
            ids.extend((first..first + count).map(|slot| RowId::new(chunk, slot)));
            self.num_rows += count;
            from += count;
            let full = self.chunks[chunk].filled() == CHUNK_ROWS;
            if full || self.columns.iter().any(|column| column.chunk_bytes(chunk) > CHUNK_BYTES_MAX) {
                self.seal(chunk);
            }
        }
        Ok(())
    }

    fn open_chunk(&mut self) -> Result<usize> {
        if let Some(chunk) = self.open {
            return Ok(chunk);
        }
        let chunk = self.free.pop().unwrap_or(self.chunks.len());
        // The last number is left out: its last row would be `RowId::NONE`.
        if chunk as u32 >= u32::MAX >> CHUNK_BITS {
            return Err(Error::new(ErrorKind::OutOfMemory, "an operator keeps more than four billion rows in one subtask")
                .with_hint("raise 'parallelism.default', or keep less: filter earlier"));
        }
        if chunk == self.chunks.len() {
            self.chunks.push(Arc::default());
            self.contents.push(Content::default());
        }
        self.contents[chunk] = Content { begun: self.new_content(), sealed: None };
        self.columns.iter_mut().for_each(|column| column.open(chunk));
        self.open = Some(chunk);
        Ok(chunk)
    }

    fn new_content(&mut self) -> u64 {
        self.last_content += 1;
        self.last_content
    }

    /// No more rows are added to a chunk.
    fn seal(&mut self, chunk: usize) {
        self.open = None;
        self.columns.iter_mut().for_each(|column| column.seal(chunk));
        self.contents[chunk].sealed = Some(self.new_content());
        if self.chunks[chunk].is_sparse() {
            self.rewrite(chunk);
        }
    }

    /// Whether a row is there.
    pub fn contains(&self, id: RowId) -> bool {
        self.chunks.get(id.chunk()).is_some_and(|chunk| chunk.is_live(id.slot()))
    }

    /// All columns of these rows, in this order; [`RowId::NONE`] gives NULLs.
    pub fn take(&self, ids: &[RowId]) -> Result<Vec<ArrayRef>> {
        let places = self.places(ids);
        self.columns.iter().map(|column| column.take(&places)).collect()
    }

    /// Some columns of these rows.
    pub fn take_columns(&self, ids: &[RowId], columns: &[usize]) -> Result<Vec<ArrayRef>> {
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let places = self.places(ids);
        columns.iter().map(|column| self.columns[*column].take(&places)).collect()
    }

    fn places(&self, ids: &[RowId]) -> Vec<Place> {
        let place = |id: &RowId| match *id {
            RowId::NONE => Place::NONE,
            id => Place { chunk: id.chunk() as u32, row: self.chunks[id.chunk()].place(id.slot()) },
        };
        ids.iter().map(place).collect()
    }

    /// Removes rows, each of which is there. Gives the numbers of the chunks that have no row now: what is kept by id for them
    /// can be forgotten.
    pub fn delete(&mut self, ids: &[RowId]) -> Vec<usize> {
        let mut released = Vec::new();
        for id in ids {
            let chunk = id.chunk();
            let slots = Arc::make_mut(&mut self.chunks[chunk]);
            slots.kill(id.slot());
            self.num_rows -= 1;
            let is_open = self.open == Some(chunk);
            if slots.num_live() == 0 {
                self.open = self.open.filter(|_| !is_open);
                self.release(chunk);
                released.push(chunk);
            } else if slots.is_sparse() && !is_open {
                self.rewrite(chunk);
            }
        }
        released
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(|column| column.clear());
        self.chunks.clear();
        self.contents.clear();
        self.free.clear();
        (self.open, self.num_rows) = (None, 0);
    }

    fn release(&mut self, chunk: usize) {
        self.chunks[chunk] = Arc::default();
        self.columns.iter_mut().for_each(|column| column.release(chunk));
        self.free.push(chunk);
    }

    /// Writes a chunk anew without its dead rows. Ids stay as they are.
    fn rewrite(&mut self, chunk: usize) {
        let slots = Arc::make_mut(&mut self.chunks[chunk]);
        let kept: Vec<u32> = slots.live().map(|slot| slots.place(slot)).collect();
        slots.keep_live();
        self.columns.iter_mut().for_each(|column| column.keep(chunk, &kept));
        self.contents[chunk].sealed = Some(self.new_content());
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(|column| column.bytes()).sum();
        columns + self.chunks.len() * (size_of::<Slots>() + Slots::HEAP_BYTES + size_of::<Content>())
    }
}
