//! Keyed state: how keys are hashed into key groups, and how many bytes state may take.

mod memory;

pub use crate::types::hash_columns;
pub use memory::{MemoryManager, MemoryShare};
