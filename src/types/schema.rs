//! The columns of a relation: names and types, addressed by position.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{Schema as ArrowSchema, SchemaRef as ArrowSchemaRef};
use serde::{Deserialize, Serialize};

use super::DataType;

/// A column: name and type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Field {
    /// Name, case-sensitive. Names need not be unique within a query.
    pub name: String,
    /// Type.
    pub data_type: DataType,
}

impl Field {
    /// A column.
    pub fn new(name: impl Into<String>, data_type: DataType) -> Self {
        Field { name: name.into(), data_type }
    }
}

/// A shared schema.
pub type SchemaRef = Arc<Schema>;

/// The columns of a relation, addressed by position.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Schema {
    /// The columns.
    pub fields: Vec<Field>,
}

impl Schema {
    /// Of these columns.
    pub fn new(fields: Vec<Field>) -> Self {
        Schema { fields }
    }

    /// How many columns.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no column.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The column at a position.
    pub fn field(&self, index: usize) -> &Field {
        &self.fields[index]
    }

    /// The position of the first column of this name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// The columns at these positions.
    pub fn project(&self, indices: &[usize]) -> Schema {
        Schema::new(indices.iter().map(|i| self.fields[*i].clone()).collect())
    }

    /// The Arrow schema, as seen by programs that embed the engine.
    pub fn to_arrow(&self) -> ArrowSchemaRef {
        let fields: Vec<_> = self
            .fields
            .iter()
            .map(|field| field.data_type.to_arrow_field(&field.name).with_nullable(field.data_type.nullable))
            .collect();
        Arc::new(ArrowSchema::new(fields))
    }
}

impl fmt::Display for Schema {
    /// `name TYPE, name TYPE`: the form of `# schema:` lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, field) in self.fields.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{} {}", field.name, field.data_type)?;
        }
        Ok(())
    }
}
