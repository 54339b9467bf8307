//! What the planner knows of the connectors that are sinks or sources only; the rest have descriptors of their own.

use std::fmt;

use super::options::OptionReader;
use crate::catalog::{CatalogTable, ConnectorDescriptor, OptionDescriptor, SinkAbilities, SourceAbilities};
use crate::error::{Error, ErrorKind, Result};
use crate::types::ChangelogMode;

/// A connector that only writes.
pub struct SimpleSink {
    /// Its name.
    pub name: &'static str,
    /// Its options.
    pub options: &'static [OptionDescriptor],
    /// The richest changelog that it takes; never only new rows: those with one PRIMARY KEY overwrite one another.
    pub accepts: ChangelogMode,
    /// Checks what goes beyond single options.
    pub validate: fn(&CatalogTable) -> Result<()>,
    /// Subtasks that the options ask for.
    pub parallelism: fn(&CatalogTable) -> Result<Option<u32>>,
}

/// The subtasks of `sink.parallelism`.
pub fn sink_parallelism(table: &CatalogTable) -> Result<Option<u32>> {
    OptionReader::new(&table.options).parallelism("sink.parallelism")
}

/// The connector cannot be read.
pub fn no_source(name: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("connector '{name}' can only be used as a sink"))
        .with_hint("read from another table, or write this one with INSERT INTO")
}

/// The connector cannot be written.
pub fn no_sink(name: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("connector '{name}' can only be used as a source"))
        .with_hint("write to another table: 'print', 'blackhole' and 'filesystem' can be written")
}

impl fmt::Debug for SimpleSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimpleSink({})", self.name)
    }
}

impl ConnectorDescriptor for SimpleSink {
    fn name(&self) -> &'static str {
        self.name
    }

    fn options(&self, _table: &CatalogTable) -> Result<Vec<OptionDescriptor>> {
        Ok(self.options.to_vec())
    }

    fn validate(&self, table: &CatalogTable) -> Result<()> {
        (self.parallelism)(table)?;
        (self.validate)(table)
    }

    fn source(&self, _table: &CatalogTable) -> Result<SourceAbilities> {
        Err(no_source(self.name))
    }

    fn sink(&self, table: &CatalogTable) -> Result<SinkAbilities> {
        Ok(SinkAbilities { accepts: self.accepts, by_key: true, metadata: Vec::new(), parallelism: (self.parallelism)(table)? })
    }
}

/// The physical columns of a table, as the formats see them.
pub fn physical_schema(table: &CatalogTable) -> crate::types::Schema {
    let physical = table.columns.iter().filter(|column| column.kind == crate::catalog::ColumnKind::Physical);
    crate::types::Schema::new(physical.map(|column| crate::types::Field::new(&column.name, column.data_type.clone())).collect())
}
