//! Sources and sinks: one folder or file per connector, their formats, and their descriptors for the catalog.
//!
//! The planner sees only [`descriptors`]; the runtime makes sources and sinks through [`BuiltinConnectors`].

mod blackhole;
mod datagen;
mod descriptor;
pub mod embedded;
mod factory;
mod filesystem;
pub mod formats;
mod generator;
mod known_splits;
mod memory;
mod nexmark;
mod options;
mod print;
#[cfg(test)]
mod testing;

pub use factory::{BuiltinConnectors, ConnectorServices, descriptors};
pub use memory::{MemoryTables, NAME as MEMORY};
pub use print::SharedWriter;
