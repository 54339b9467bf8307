//! The names that a session knows, for who completes what is being typed.

use super::session::Session;
use crate::catalog::LikeFilter;
use crate::config::SETTINGS;
use crate::error::Span;
use crate::sql::Name;

/// Names that can be completed; the session renews them after each statement.
#[derive(Debug, Clone, Default)]
pub struct KnownNames {
    /// Tables and views.
    pub tables: Vec<String>,
    /// Columns, each with its table.
    pub columns: Vec<(String, String)>,
    /// Functions.
    pub functions: Vec<String>,
    /// Keys of SET.
    pub settings: Vec<String>,
    /// Connectors.
    pub connectors: Vec<String>,
    /// Jobs that run.
    pub jobs: Vec<String>,
}

impl Session {
    /// Names that the prompt completes.
    pub(super) fn known_names(&self) -> KnownNames {
        let state = self.locked();
        let mut names = KnownNames {
            functions: self.engine.functions.names(),
            settings: SETTINGS.iter().map(|setting| setting.key.to_string()).collect(),
            connectors: self.engine.descriptors.0.keys().map(ToString::to_string).collect(),
            ..KnownNames::default()
        };
        for table in state.catalog.list_tables(None, &LikeFilter::new(None)).unwrap_or_default() {
            let name = Name { parts: vec![table.clone()], span: Span::default() };
            let columns = state.catalog.describe(&name).unwrap_or_default();
            names.columns.extend(columns.into_iter().map(|column| (table.clone(), column.name)));
            names.tables.push(table);
        }
        names
    }
}
