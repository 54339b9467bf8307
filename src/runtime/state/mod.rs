//! Keyed state: how keys are hashed into key groups.

pub use crate::types::hash_columns;
