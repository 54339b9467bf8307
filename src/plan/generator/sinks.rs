//! Where rows leave a job: sinks of INSERT and the collected result of SELECT.

use super::builder::{Distribution, Generator, NewNode, Stream};
use crate::config::KEYED_SHUFFLE;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::changelog::{Changelog, Changes, Updates};
use crate::plan::{LogicalPlan, ScanTable, describe, sink_keys};
use crate::sql::OnConflict;
use crate::stream_graph::{OperatorSpec, SinkMaterializerSpec, SinkSpec};
use crate::types::{ResultId, SchemaRef};

impl<'a> Generator<'a> {
    /// The sink of an INSERT.
    pub(super) fn sink(
        &mut self,
        input: &'a LogicalPlan,
        table: &ScanTable,
        schema: &SchemaRef,
        on_conflict: Option<OnConflict>,
        changelog: &'a Changelog,
    ) -> Result<()> {
        let mut stream = self.stream(input, changelog)?;
        let abilities = table.sink_abilities(self.cx)?;
        let parallelism = abilities.parallelism.unwrap_or(stream.parallelism);
        let keys = sink_keys::choose(input, changelog, table, schema, on_conflict, &abilities, self.cx)?;
        if let Some(materializer) = keys.materializer {
            stream = self.materialize(&stream, materializer, parallelism)?;
            self.describe_materializer(&stream, input, changelog);
        }
        let primary_key = table.primary_key_in(schema).unwrap_or_default();
        let node = NewNode {
            name: format!("Sink: {}", table.path.name),
            description: describe::sink(table, schema, on_conflict),
            spec: self.sink_spec(table, schema, stream.changes)?,
            schema: schema.clone(),
            changes: stream.changes,
        };
        // Rows of a key must come to one subtask, so that they stay in order.
        let rekeyed = match self.cx.configuration.text(&KEYED_SHUFFLE).trim().to_ascii_uppercase().as_str() {
            "NONE" => false,
            "FORCE" => parallelism > 1,
            _ => parallelism != stream.parallelism,
        };
        let rekeyed = rekeyed && !primary_key.is_empty();
        let distribution = if rekeyed { Distribution::Keyed(primary_key) } else { Distribution::Any };
        self.add_operator_with(node, &[(&stream, distribution)], parallelism)?;
        Ok(())
    }

    /// The writer of a table, which gets these columns and changes.
    pub(super) fn sink_spec(&self, table: &ScanTable, schema: &SchemaRef, changes: Changes) -> Result<OperatorSpec> {
        let partition_keys = table.table.partition_keys.iter().map(|name| sink_column(table, schema, name));
        Ok(OperatorSpec::Sink(Box::new(SinkSpec {
            table: table.path.stored(table.table.temporary),
            connector: table.connector()?.to_string(),
            options: table.options.clone(),
            base_dir: table.base_dir(self.cx).to_path_buf(),
            schema: schema.clone(),
            partition_keys: partition_keys.collect::<Result<_>>()?,
            primary_key: table.primary_key_in(schema).unwrap_or_default(),
            changelog: changes.mode(),
        })))
    }

    /// Of rows with one primary key the last one, in as many subtasks as the sink has.
    fn materialize(&mut self, stream: &Stream, spec: SinkMaterializerSpec, parallelism: u32) -> Result<Stream> {
        let distribution = Distribution::Keyed(spec.primary_key.clone());
        let node = NewNode {
            name: "SinkMaterializer".to_string(),
            description: describe::sink_materializer(&spec),
            schema: spec.schema.clone(),
            spec: OperatorSpec::SinkMaterializer(spec),
            changes: Changes { updates: Updates::After, ..stream.changes },
        };
        self.add_operator_with(node, &[(stream, distribution)], parallelism)
    }

    /// The end of a SELECT.
    pub(super) fn collect(&mut self, plan: &'a LogicalPlan, changelog: &'a Changelog, result: ResultId) -> Result<()> {
        let stream = self.stream(plan, changelog)?;
        let schema = plan.schema().clone();
        let node = NewNode {
            name: "Sink: Collect".to_string(),
            description: format!("Collect(fields=[{}])", describe::names(&schema)),
            spec: OperatorSpec::Collect { result, schema: schema.clone() },
            schema,
            changes: stream.changes,
        };
        self.add_operator_with(node, &[(&stream, Distribution::Any)], 1)?;
        Ok(())
    }
}

fn sink_column(table: &ScanTable, schema: &SchemaRef, name: &str) -> Result<usize> {
    schema.index_of(name).ok_or_else(|| {
        Error::new(ErrorKind::UndefinedColumn, format!("partition column \"{name}\" of table {} is not written", table.path))
            .with_hint("partition by a physical column")
    })
}
