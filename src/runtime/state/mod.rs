//! Keyed state: how keys are hashed into key groups, how rows are kept, and how many bytes state may take.

mod memory;
mod row_store;

pub use crate::types::hash_columns;
pub use memory::{MemoryManager, MemoryShare};
pub use row_store::{CHUNK_ROWS, RowAttribute, RowId, RowStore, StoredChunk};
