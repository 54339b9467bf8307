//! `embedded`: tables whose rows a program gives to its session: Arrow record batches and async streams of them.
//!
//! Graphs name such a table; the rows are in [`EmbeddedTables`], which the session shares with its cluster. Streams are polled by the
//! task that reads them: one that is held back holds the stream back, and one that is cancelled drops it.

mod import;
mod reader;
mod store;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use import::{Import, convert, sql_type};
pub use store::{EmbeddedRows, EmbeddedTables, RowsStream};

use self::reader::EmbeddedReader;
use super::descriptor::no_sink;
use super::known_splits::KnownSplits;
use super::options::{OptionReader, optional};
use crate::catalog::{CatalogTable, ConnectorDescriptor, ObjectPath, OptionDescriptor, SinkAbilities, SourceAbilities};
use crate::config::SettingType;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::{ReaderContext, Source, SourceReader, Split, SplitEnumerator};
use crate::stream_graph::SourceSpec;
use crate::types::{ChangelogMode, SplitId};

/// The connector's name.
pub const NAME: &str = "embedded";
/// The option that says whether the rows end by themselves.
pub const BOUNDED: &str = "embedded.bounded";

const OPTIONS: &[OptionDescriptor] =
    &[optional(BOUNDED, SettingType::Boolean, "true", "Whether the rows of the program come to an end.")];

/// The descriptor.
#[derive(Debug)]
pub struct EmbeddedDescriptor;

impl ConnectorDescriptor for EmbeddedDescriptor {
    fn name(&self) -> &'static str {
        NAME
    }

    fn options(&self, _table: &CatalogTable) -> Result<Vec<OptionDescriptor>> {
        Ok(OPTIONS.to_vec())
    }

    /// Called for CREATE TABLE and ALTER TABLE, and not where a program registers a table.
    fn validate(&self, _table: &CatalogTable) -> Result<()> {
        Err(Error::new(ErrorKind::InvalidOption, "tables of connector 'embedded' are registered by programs, not by SQL")
            .with_hint("call Session::register_batches or Session::register_stream"))
    }

    fn source(&self, table: &CatalogTable) -> Result<SourceAbilities> {
        let bounded = OptionReader::new(&table.options).boolean(BOUNDED, true)?;
        Ok(SourceAbilities {
            bounded,
            changelog: ChangelogMode::InsertOnly,
            metadata: Vec::new(),
            parallelism: Some(1),
            watermarks: false,
        })
    }

    fn sink(&self, _table: &CatalogTable) -> Result<SinkAbilities> {
        Err(no_sink(NAME))
    }
}

/// A table of the program to read.
#[derive(Debug)]
pub struct EmbeddedSource {
    tables: Arc<EmbeddedTables>,
    table: ObjectPath,
    projection: Vec<usize>,
}

impl EmbeddedSource {
    /// The source of a spec.
    pub fn new(spec: &SourceSpec, tables: &Arc<EmbeddedTables>) -> Self {
        EmbeddedSource { tables: Arc::clone(tables), table: spec.table.clone(), projection: spec.projection.clone() }
    }
}

impl Source for EmbeddedSource {
    fn enumerator(&self, _parallelism: u32) -> Result<Box<dyn SplitEnumerator>> {
        Ok(Box::new(KnownSplits::one(Split { id: SplitId(0), state: "0".to_string() })))
    }

    fn reader(&self, context: ReaderContext) -> Result<Box<dyn SourceReader>> {
        let tables = Arc::clone(&self.tables);
        Ok(Box::new(EmbeddedReader::new(tables, self.table.clone(), self.projection.clone(), context.batch_rows.max(1))))
    }
}
