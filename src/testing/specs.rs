//! Specs with everything but the essential filled in.

use std::sync::Arc;

use crate::catalog::{ObjectPath, Options};
use crate::stream_graph::{OperatorSpec, SinkSpec, SourceSpec};
use crate::types::{ChangelogMode, DataType, Field, Schema, SchemaRef, TypeKind};

/// One BIGINT column, `n`.
pub fn bigint_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::nullable(TypeKind::BigInt))]))
}

fn path(name: &str) -> ObjectPath {
    ObjectPath { catalog: "c".into(), database: "d".into(), name: name.into() }
}

/// A table to read.
pub fn source_spec(table: &str, schema: SchemaRef) -> SourceSpec {
    SourceSpec {
        table: path(table),
        connector: "test".into(),
        options: Options::default(),
        base_dir: ".".into(),
        projection: (0..schema.len()).collect(),
        physical: Arc::clone(&schema),
        metadata: Vec::new(),
        partition_keys: Vec::new(),
        computed: None,
        watermark: None,
        predicate: None,
        limit: None,
        changelog: ChangelogMode::InsertOnly,
        primary_key: Vec::new(),
        schema,
    }
}

/// A table to write.
pub fn sink_spec(table: &str, schema: SchemaRef) -> SinkSpec {
    SinkSpec {
        table: path(table),
        connector: "test".into(),
        options: Options::default(),
        base_dir: ".".into(),
        schema,
        partition_keys: Vec::new(),
        primary_key: Vec::new(),
        changelog: ChangelogMode::InsertOnly,
    }
}

/// An operator that reads a table of one BIGINT column.
pub fn source(table: &str) -> OperatorSpec {
    OperatorSpec::Source(Box::new(source_spec(table, bigint_schema())))
}

/// An operator that writes a table of one BIGINT column.
pub fn sink(table: &str) -> OperatorSpec {
    OperatorSpec::Sink(Box::new(sink_spec(table, bigint_schema())))
}

/// An operator that passes all on.
pub fn pass() -> OperatorSpec {
    OperatorSpec::Calc { predicate: None, projection: None }
}
