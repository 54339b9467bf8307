//! A table and a view as the catalog keeps them: SQL text for what must be bound, types for the rest.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::sql::quoted;
use crate::types::{DataType, SchemaRef};

/// The full name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectPath {
    /// Catalog.
    pub catalog: String,
    /// Database.
    pub database: String,
    /// Table, view or function.
    pub name: String,
}

impl ObjectPath {
    /// The name under which a process keeps what belongs to a table: a temporary table is not the one that it shadows.
    pub fn stored(&self, temporary: bool) -> ObjectPath {
        if !temporary {
            return self.clone();
        }
        // No catalog has an empty name.
        let database = format!("{}.{}", quoted(&self.catalog), quoted(&self.database));
        ObjectPath { catalog: String::new(), database, name: self.name.clone() }
    }
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.catalog.is_empty() {
            return write!(f, "{}.{}", self.database, quoted(&self.name));
        }
        write!(f, "{}.{}.{}", quoted(&self.catalog), quoted(&self.database), quoted(&self.name))
    }
}

/// The options of WITH, sorted by key.
pub type Options = BTreeMap<String, String>;

/// Where the values of a column come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ColumnKind {
    /// From the records themselves.
    Physical,
    /// From an expression over the other columns, kept as SQL text.
    Computed {
        /// The expression.
        sql: String,
    },
    /// From the connector, beside the record.
    Metadata {
        /// The connector's key; none = the column's name.
        key: Option<String>,
        /// VIRTUAL: read only, no part of the sink's schema.
        is_virtual: bool,
    },
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Type, with its time attribute once the table is validated.
    pub data_type: DataType,
    /// Where its values come from.
    pub kind: ColumnKind,
    /// COMMENT.
    pub comment: Option<String>,
}

/// WATERMARK FOR column AS expression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatermarkDefinition {
    /// The rowtime column.
    pub column: String,
    /// The expression, as SQL text.
    pub sql: String,
}

/// A table as CREATE TABLE defined it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogTable {
    /// Columns in order.
    pub columns: Vec<Column>,
    /// WATERMARK FOR.
    pub watermark: Option<WatermarkDefinition>,
    /// PRIMARY KEY … NOT ENFORCED: column names.
    pub primary_key: Vec<String>,
    /// The name of the key's constraint.
    pub primary_key_name: Option<String>,
    /// PARTITIONED BY: column names.
    pub partition_keys: Vec<String>,
    /// WITH.
    pub options: Options,
    /// COMMENT.
    pub comment: Option<String>,
    /// TEMPORARY.
    pub temporary: bool,
    /// What a relative path in the options starts from: the folder of the script that created it.
    pub base_dir: PathBuf,
}

/// A view: a query kept as SQL text, with its columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogView {
    /// The query as written.
    pub sql: String,
    /// Output columns.
    pub schema: SchemaRef,
    /// COMMENT.
    pub comment: Option<String>,
    /// TEMPORARY.
    pub temporary: bool,
}
