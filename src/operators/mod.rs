//! What runs inside a task: one operator per file, built from its spec by the factory.

pub mod collect;
pub mod sink;
