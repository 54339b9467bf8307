//! Keyed state: how keys are hashed into key groups.

mod row_hash;

pub use row_hash::hash_columns;
