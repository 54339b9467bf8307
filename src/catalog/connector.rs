//! What the planner knows of a connector: its options and abilities. The connector itself is known to the runtime only.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::CatalogTable;
use crate::config::SettingType;
use crate::error::Result;
use crate::types::{ChangelogMode, DataType};

/// An option of a connector or format.
#[derive(Debug, Clone, Copy)]
pub struct OptionDescriptor {
    /// Key. One `#` stands for any column name: `fields.#.kind`.
    pub key: &'static str,
    /// What its text must be.
    pub option_type: SettingType,
    /// Default; none = it has none.
    pub default: Option<&'static str>,
    /// Whether it must be given.
    pub required: bool,
    /// What it does, in a sentence. Starts with "Accepted, no effect:" where a Flink key has no meaning here.
    pub doc: &'static str,
}

/// What a source can do.
#[derive(Debug, Clone)]
pub struct SourceAbilities {
    /// Whether it ends by itself.
    pub bounded: bool,
    /// Which changes its rows carry.
    pub changelog: ChangelogMode,
    /// Its metadata columns: key and type.
    pub metadata: Vec<(&'static str, DataType)>,
    /// Subtasks that the options ask for (`scan.parallelism`).
    pub parallelism: Option<u32>,
    /// Whether it has watermarks of its own, as SOURCE_WATERMARK() asks for.
    pub watermarks: bool,
}

/// What a sink can do.
#[derive(Debug, Clone)]
pub struct SinkAbilities {
    /// The richest changelog that it takes: insert-only sinks take only that; upsert sinks need the table's PRIMARY KEY.
    pub accepts: ChangelogMode,
    /// Whether rows overwrite one another by the table's PRIMARY KEY, if it has one.
    pub by_key: bool,
    /// Its writable metadata columns: key and type.
    pub metadata: Vec<(&'static str, DataType)>,
    /// Subtasks that the options ask for (`sink.parallelism`).
    pub parallelism: Option<u32>,
}

/// A connector as the planner sees it.
pub trait ConnectorDescriptor: Send + Sync + fmt::Debug {
    /// Name, as in `'connector' = '…'`.
    fn name(&self) -> &'static str;

    /// All its options for this table (those of the table's format included). `connector` itself is not listed.
    fn options(&self, table: &CatalogTable) -> Result<Vec<OptionDescriptor>>;

    /// Checks what goes beyond single options: combinations, columns. Called at CREATE TABLE, after the options were checked.
    fn validate(&self, table: &CatalogTable) -> Result<()>;

    /// What it can do as a source; an error if it is none (or not with these options).
    fn source(&self, table: &CatalogTable) -> Result<SourceAbilities>;

    /// What it can do as a sink; an error if it is none.
    fn sink(&self, table: &CatalogTable) -> Result<SinkAbilities>;
}

/// The connectors that the planner knows, by name.
#[derive(Debug, Clone, Default)]
pub struct ConnectorRegistry(pub BTreeMap<&'static str, Arc<dyn ConnectorDescriptor>>);
