//! What the binder knows of the session: names of tables and views, functions, connectors, settings, and the hints of the
//! statement at hand.

use std::sync::Arc;

use crate::catalog::{CatalogEntry, CatalogManager, CatalogTable, CatalogView, ConnectorRegistry, ObjectPath};
use crate::config::Configuration;
use crate::error::Result;
use crate::expr::FunctionRegistry;
use crate::sql::{HintedOptions, Name};

/// What the name of a relation stands for.
#[derive(Debug, Clone)]
pub enum ResolvedRelation {
    /// A table.
    Table(ObjectPath, Arc<CatalogTable>),
    /// A view.
    View(ObjectPath, Arc<CatalogView>),
}

/// Finds tables and views by name, as seen from the session's current catalog and database.
pub trait TableResolver {
    /// What the name stands for; an error (with the name's place and near names) if nothing.
    fn resolve(&self, name: &Name) -> Result<ResolvedRelation>;

    /// The database that names without one are looked up in.
    fn current_database(&self) -> String;
}

impl TableResolver for CatalogManager {
    fn resolve(&self, name: &Name) -> Result<ResolvedRelation> {
        let (path, entry) = CatalogManager::resolve(self, name)?;
        Ok(match entry {
            CatalogEntry::Table(table) => ResolvedRelation::Table(path, table),
            CatalogEntry::View(view) => ResolvedRelation::View(path, view),
        })
    }

    fn current_database(&self) -> String {
        CatalogManager::current_database(self).to_string()
    }
}

/// What the binder knows of the session.
#[derive(Clone, Copy)]
pub struct BindContext<'a> {
    /// Tables and views.
    pub tables: &'a dyn TableResolver,
    /// Functions.
    pub functions: &'a FunctionRegistry,
    /// Connectors: metadata columns and options.
    pub connectors: &'a ConnectorRegistry,
    /// Settings.
    pub configuration: &'a Configuration,
    /// The hints of the statement.
    pub hints: &'a [HintedOptions],
}
