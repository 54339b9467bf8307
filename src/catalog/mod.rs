//! What the names of a session stand for: tables, views, functions; in memory, by catalog and database.

mod connector;
mod table;

pub use connector::{ConnectorDescriptor, ConnectorRegistry, OptionDescriptor, SinkAbilities, SourceAbilities};
pub use table::{CatalogTable, CatalogView, Column, ColumnKind, ObjectPath, Options, WatermarkDefinition};
