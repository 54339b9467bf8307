//! What the planner asks of the table of a scan or a sink: its columns by position, its connector with what that can do.

use std::path::Path;

use super::{PlannerContext, ScanTable};
use crate::catalog::{CatalogTable, ColumnKind, SinkAbilities, SourceAbilities};
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::types::{Field, Schema};

impl ScanTable {
    /// The physical columns, in the order of the definition.
    pub fn physical(&self) -> Schema {
        let physical = self.table.columns.iter().filter(|column| column.kind == ColumnKind::Physical);
        Schema::new(physical.map(|column| Field::new(&column.name, column.data_type.clone().regular())).collect())
    }

    /// The columns that the connector produces for a scan: the projected physical ones, then the metadata.
    pub fn produced(&self, projection: &[usize], metadata: &[Field]) -> Schema {
        let mut schema = self.physical().project(projection);
        schema.fields.extend(metadata.iter().cloned());
        schema
    }

    /// The name of its connector.
    pub fn connector(&self) -> Result<&str> {
        self.options.get("connector").map(String::as_str).ok_or_else(|| {
            Error::new(ErrorKind::InvalidOption, format!("table {} has no option 'connector'", self.path))
                .with_hint("say where its rows are: WITH ('connector' = '…')")
        })
    }

    /// What a relative path in its options starts from: where the path was given, in CREATE TABLE or in a hint of this query.
    pub fn base_dir<'a>(&'a self, cx: &PlannerContext<'a>) -> &'a Path {
        let is_hinted = self.options.get("path") != self.table.options.get("path");
        if is_hinted { cx.base_dir } else { &self.table.base_dir }
    }

    /// What its connector can do as a source.
    pub fn source_abilities(&self, cx: &PlannerContext) -> Result<SourceAbilities> {
        self.descriptor(cx)?.source(&self.with_hinted_options())
    }

    /// What its connector can do as a sink.
    pub fn sink_abilities(&self, cx: &PlannerContext) -> Result<SinkAbilities> {
        self.descriptor(cx)?.sink(&self.with_hinted_options())
    }

    /// The PRIMARY KEY as positions in `schema`; none when it has no key or `schema` lacks one of its columns.
    pub fn primary_key_in(&self, schema: &Schema) -> Option<Vec<usize>> {
        let key = &self.table.primary_key;
        let positions: Option<Vec<usize>> = key.iter().map(|name| schema.index_of(name)).collect();
        positions.filter(|positions| !positions.is_empty())
    }

    /// The PARTITIONED BY columns as positions in `schema`.
    pub fn partition_keys_in(&self, schema: &Schema) -> Vec<usize> {
        self.table.partition_keys.iter().filter_map(|name| schema.index_of(name)).collect()
    }

    fn descriptor<'a>(&self, cx: &PlannerContext<'a>) -> Result<&'a dyn crate::catalog::ConnectorDescriptor> {
        let name = self.connector()?;
        let found = cx.connectors.0.get(name).map(|descriptor| &**descriptor);
        found.ok_or_else(|| {
            let error = Error::new(ErrorKind::InvalidOption, format!("connector '{name}' of table {} does not exist", self.path));
            match nearest(name, cx.connectors.0.keys().copied()) {
                Some(near) => error.with_hint(format!("did you mean '{near}'?")),
                None => error,
            }
        })
    }

    fn with_hinted_options(&self) -> CatalogTable {
        CatalogTable { options: self.options.clone(), ..(*self.table).clone() }
    }
}
