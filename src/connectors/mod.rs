//! Sources and sinks: one folder or file per connector, their formats, and their descriptors for the catalog.
//!
//! The planner sees only [`descriptors`]; the runtime makes sources and sinks through [`BuiltinConnectors`].

mod blackhole;
mod descriptor;
mod factory;
mod filesystem;
pub mod formats;
mod options;
mod print;

pub use factory::{BuiltinConnectors, ConnectorServices, descriptors};
pub use print::SharedWriter;
