//! What connector tests need: contexts on a virtual clock, specs, and readers driven to their end.

use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::catalog::{ObjectPath, Options};
use crate::clock::VirtualClock;
use crate::config::Configuration;
use crate::connectors::BuiltinConnectors;
use crate::connectors::formats::text::write_java;
use crate::error::{Error, Result};
use crate::expr::FunctionRegistry;
use crate::runtime::{
    Environment, Operator, OperatorContext, OperatorFactory, OperatorMetrics, ReaderContext, ResultHub, SinkContext, SourceEvent,
    SourceOperator, SourceReader,
};
use crate::stream_graph::{OperatorSpec, SinkSpec, SourceSpec};
use crate::types::{Batch, ChangelogMode, DataType, Field, JobId, KeyGroupRange, OperatorId, Schema, SchemaRef, SubtaskIndex};

struct NoOperators;

impl OperatorFactory for NoOperators {
    fn build(&self, _spec: &OperatorSpec, _context: &OperatorContext) -> Result<Box<dyn Operator>> {
        Err(Error::unsupported("an operator in a connector test"))
    }

    fn build_source(&self, _spec: &OperatorSpec, _context: &OperatorContext) -> Result<Option<Box<dyn SourceOperator>>> {
        Ok(None)
    }
}

/// The context of subtask `index` of `parallelism`.
pub fn operator_context(clock: Arc<VirtualClock>, index: u32, parallelism: u32) -> OperatorContext {
    OperatorContext {
        job: JobId(1),
        operator: OperatorId(1),
        name: "test".to_string(),
        subtask: SubtaskIndex(index),
        parallelism,
        max_parallelism: 128,
        key_groups: KeyGroupRange::of_subtask(SubtaskIndex(index), parallelism, 128),
        state_ttl_ms: Vec::new(),
        configuration: Arc::new(Configuration::default()),
        job_start_ms: 0,
        restored: None,
        environment: Arc::new(Environment {
            stores: Arc::new(crate::runtime::checkpoint::LocalStores::default()),
            clock,
            functions: Arc::new(FunctionRegistry::default()),
            connectors: Arc::new(BuiltinConnectors::default()),
            operators: Arc::new(NoOperators),
            results: Arc::new(ResultHub::default()),
        }),
        metrics: Arc::new(OperatorMetrics::default()),
    }
}

/// The context of a reader with batches of `batch_rows`.
pub fn reader_context(clock: Arc<VirtualClock>, index: u32, parallelism: u32, batch_rows: usize) -> ReaderContext {
    let operator = operator_context(Arc::clone(&clock), index, parallelism);
    ReaderContext { subtask: SubtaskIndex(index), parallelism, clock, batch_rows, operator }
}

/// The context of a writer.
pub fn sink_context(clock: Arc<VirtualClock>, index: u32, parallelism: u32) -> SinkContext {
    let operator = operator_context(clock, index, parallelism);
    SinkContext { subtask: SubtaskIndex(index), parallelism, checkpointing: false, operator }
}

/// A schema.
pub fn schema(fields: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(fields.iter().map(|(name, data_type)| Field::new(*name, data_type.clone())).collect()))
}

/// Options of WITH, the connector first.
pub fn options(connector: &str, options: &[(&str, &str)]) -> Options {
    let connector = [("connector", connector)];
    connector.iter().chain(options).map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn path() -> ObjectPath {
    ObjectPath { catalog: "c".into(), database: "d".into(), name: "t".into() }
}

/// A table to read.
pub fn source_spec(connector: &str, with: &[(&str, &str)], base: &Path, schema: &SchemaRef) -> SourceSpec {
    SourceSpec {
        table: path(),
        connector: connector.to_string(),
        options: options(connector, with),
        base_dir: base.to_path_buf(),
        physical: Arc::clone(schema),
        projection: (0..schema.len()).collect(),
        metadata: Vec::new(),
        partition_keys: Vec::new(),
        computed: None,
        watermark: None,
        predicate: None,
        limit: None,
        changelog: ChangelogMode::InsertOnly,
        primary_key: Vec::new(),
        schema: Arc::clone(schema),
    }
}

/// A table to write.
pub fn sink_spec(connector: &str, with: &[(&str, &str)], base: &Path, schema: &SchemaRef) -> SinkSpec {
    SinkSpec {
        table: path(),
        connector: connector.to_string(),
        options: options(connector, with),
        base_dir: base.to_path_buf(),
        schema: Arc::clone(schema),
        partition_keys: Vec::new(),
        primary_key: Vec::new(),
        changelog: ChangelogMode::InsertOnly,
    }
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The next event of a reader; the thread waits for it.
pub fn next_event(reader: &mut dyn SourceReader) -> Result<SourceEvent> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match reader.poll_next(&mut Context::from_waker(&waker)) {
            Poll::Ready(event) => return event,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// The next event if there is one.
pub fn poll_event(reader: &mut dyn SourceReader) -> Option<SourceEvent> {
    match reader.poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(event) => Some(event.unwrap()),
        Poll::Pending => None,
    }
}

/// All batches up to the end.
pub fn read_batches(reader: &mut dyn SourceReader) -> Result<Vec<Batch>> {
    let mut batches = Vec::new();
    loop {
        match next_event(reader)? {
            SourceEvent::Batch(_, batch) => batches.push(batch),
            SourceEvent::NeedSplit => reader.no_more_splits(),
            SourceEvent::End => return Ok(batches),
            _ => {}
        }
    }
}

/// The rows of batches, a line each: `+I 1|a`.
pub fn lines(batches: &[Batch], schema: &Schema) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let mut text = batch.kind(row).symbol().as_bytes().to_vec();
            for (at, column) in batch.columns().iter().enumerate() {
                text.push(if at == 0 { b' ' } else { b'|' });
                write_java(column, row, &schema.field(at).data_type, &mut text);
            }
            lines.push(String::from_utf8(text).unwrap());
        }
    }
    lines
}

/// All rows of a source, by one reader that is given all splits.
pub fn read_lines(spec: &SourceSpec, factory: &BuiltinConnectors, batch_rows: usize) -> Result<Vec<String>> {
    use crate::runtime::ConnectorFactory;
    let source = factory.source(spec)?;
    let mut reader = source.reader(reader_context(VirtualClock::new(0), 0, 1, batch_rows))?;
    let splits = source.enumerator(1)?.discover()?;
    if !splits.is_empty() {
        reader.add_splits(splits)?;
    }
    reader.no_more_splits();
    Ok(lines(&read_batches(&mut *reader)?, &spec.schema))
}
