//! The chunks of a store as they are frozen: in the order in which their rows came, with a number for content that is done changing.

use arrow::array::ArrayRef;
use arrow::buffer::BooleanBuffer;

use super::{RowId, RowStore};
use crate::error::Result;

/// What a chunk holds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Content {
    /// Rises with the order in which chunks were begun.
    pub(super) begun: u64,
    /// Once no more rows are added: a number that no other content of the store has or had.
    pub(super) sealed: Option<u64>,
}

/// A chunk of a store that has rows.
#[derive(Debug)]
pub struct StoredChunk<'a> {
    store: &'a RowStore,
    chunk: usize,
}

impl RowStore {
    /// The chunks that have rows, in the order in which these came; so are the rows within each.
    pub fn chunks(&self) -> Vec<StoredChunk<'_>> {
        let with_rows = self.chunks.iter().enumerate().filter(|(_, slots)| slots.num_live() > 0);
        let mut chunks: Vec<_> = with_rows.map(|(chunk, _)| StoredChunk { store: self, chunk }).collect();
        chunks.sort_unstable_by_key(|chunk| self.contents[chunk.chunk].begun);
        chunks
    }
}

impl RowStore {
    /// Whether a column is text.
    pub fn is_text(&self, column: usize) -> bool {
        self.columns[column].is_text()
    }
}

impl StoredChunk<'_> {
    /// A number for what the chunk stores, if that does not change any more: the same number stands for the same columns. Which of
    /// its rows are alive may change.
    pub fn content(&self) -> Option<u64> {
        self.store.contents[self.chunk].sealed
    }

    /// The rows that are there.
    pub fn live(&self) -> Vec<RowId> {
        self.store.chunks[self.chunk].live().map(|slot| RowId::new(self.chunk, slot)).collect()
    }

    /// The rows that the columns hold, dead ones among them.
    pub fn stored(&self) -> Vec<RowId> {
        self.store.chunks[self.chunk].stored().map(|slot| RowId::new(self.chunk, slot)).collect()
    }

    /// Which of the stored rows are there; none = all.
    pub fn live_mask(&self) -> Option<BooleanBuffer> {
        let slots = &self.store.chunks[self.chunk];
        (!slots.is_full()).then(|| slots.stored().map(|slot| slots.is_live(slot)).collect())
    }

    /// All columns of the stored rows as they lie in memory, nothing copied where that can be. Texts are not views but come as their bytes,
    /// with their lengths or as dictionaries: [`RowStore::is_text`] tells them from other bytes.
    pub fn columns(&self) -> Result<Vec<ArrayRef>> {
        self.store.columns.iter().map(|column| column.chunk(self.chunk)).collect()
    }
}
