//! A number, or another small value, for each row of a store.

use std::sync::Arc;

use super::{CHUNK_ROWS, RowId};

/// A value for each row, the default until another one is set. Kept in the chunks of the store, and frozen like them by a clone.
#[derive(Debug, Clone)]
pub struct RowAttribute<T> {
    chunks: Vec<Option<Arc<[T; CHUNK_ROWS]>>>,
    default: T,
}

impl<T: Copy> RowAttribute<T> {
    /// Where nothing is set: `default`.
    pub fn new(default: T) -> Self {
        RowAttribute { chunks: Vec::new(), default }
    }

    /// The value of a row.
    #[inline]
    pub fn get(&self, id: RowId) -> T {
        match self.chunks.get(id.chunk()) {
            Some(Some(chunk)) => chunk[id.slot()],
            _ => self.default,
        }
    }

    /// Sets the value of a row.
    #[inline]
    pub fn set(&mut self, id: RowId, value: T) {
        let number = id.chunk();
        if number >= self.chunks.len() {
            self.chunks.resize(number + 1, None);
        }
        let chunk = self.chunks[number].get_or_insert_with(|| Arc::new([self.default; CHUNK_ROWS]));
        Arc::make_mut(chunk)[id.slot()] = value;
    }

    /// Forgets the values of chunks: those that [`super::RowStore::delete`] says have no row any more.
    pub fn release(&mut self, chunks: &[usize]) {
        for chunk in chunks {
            if let Some(values) = self.chunks.get_mut(*chunk) {
                *values = None;
            }
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().flatten().count() * size_of::<[T; CHUNK_ROWS]>()
    }
}
