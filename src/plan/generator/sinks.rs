//! Where rows leave a job: sinks of INSERT and the collected result of SELECT.

use super::builder::{Distribution, Generator, NewNode};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::changelog::Changelog;
use crate::plan::{LogicalPlan, ScanTable, describe};
use crate::stream_graph::{OperatorSpec, SinkSpec};
use crate::types::{ResultId, SchemaRef};

impl<'a> Generator<'a> {
    /// The sink of an INSERT.
    pub(super) fn sink(
        &mut self,
        input: &'a LogicalPlan,
        table: &ScanTable,
        schema: &SchemaRef,
        changelog: &'a Changelog,
    ) -> Result<()> {
        let stream = self.stream(input, changelog)?;
        let abilities = table.sink_abilities(self.cx)?;
        let partition_keys = table.table.partition_keys.iter().map(|name| sink_column(table, schema, name));
        let primary_key = table.primary_key_in(schema).unwrap_or_default();
        let spec = SinkSpec {
            table: table.path.clone(),
            connector: table.connector()?.to_string(),
            options: table.options.clone(),
            base_dir: table.base_dir(self.cx).to_path_buf(),
            schema: schema.clone(),
            partition_keys: partition_keys.collect::<Result<_>>()?,
            primary_key: primary_key.clone(),
            changelog: stream.changes.mode(),
        };
        let node = NewNode {
            name: format!("Sink: {}", table.path.name),
            description: describe::sink(table, schema),
            spec: OperatorSpec::Sink(Box::new(spec)),
            schema: schema.clone(),
            changes: stream.changes,
        };
        let parallelism = abilities.parallelism.unwrap_or(stream.parallelism);
        // A sink that overwrites by its key must see all changes of a key in one subtask.
        let rekeyed = parallelism != stream.parallelism && !stream.changes.is_insert_only() && !primary_key.is_empty();
        let distribution = if rekeyed { Distribution::Keyed(primary_key) } else { Distribution::Any };
        self.add_operator_with(node, &[(&stream, distribution)], parallelism)?;
        Ok(())
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
