//! What the names of a session stand for: tables and views, in memory, by catalog and database; and the options of tables.

mod connector;
mod listing;
mod manager;
mod objects;
mod options;
mod show;
mod table;
#[cfg(test)]
mod tests;

pub use connector::{ConnectorDescriptor, ConnectorRegistry, OptionDescriptor, SinkAbilities, SourceAbilities};
pub use listing::LikeFilter;
pub use manager::{CatalogEntry, CatalogManager, DEFAULT_CATALOG, DEFAULT_DATABASE};
pub use options::{WATERMARK_OPTIONS, check_keys, check_options};
pub use show::ColumnDescription;
pub use table::{CatalogTable, CatalogView, Column, ColumnKind, ObjectPath, Options, WatermarkDefinition};
