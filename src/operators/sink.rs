//! The operator that writes a table: enforces NOT NULL, then hands rows to the connector's writer.

use std::sync::atomic::Ordering::Relaxed;

use arrow::array::{Array, BooleanArray};
use arrow::buffer::NullBuffer;

use crate::config::{self, Configuration};
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::{Committable, Operator, OperatorContext, Output, SinkContext, SinkWriter};
use crate::stream_graph::SinkSpec;
use crate::types::{Batch, CheckpointId, InputNumber, Watermark};

/// The setting that has checkpoints taken.
const CHECKPOINTING_INTERVAL: &str = "execution.checkpointing.interval";

/// Writes a table.
pub struct SinkOperator {
    not_null: NotNull,
    writer: Option<Box<dyn SinkWriter>>,
    spec: SinkSpec,
    context: Option<OperatorContext>,
}

impl SinkOperator {
    /// Of a spec; the writer is made when the operator is opened.
    pub fn new(spec: &SinkSpec, configuration: &Configuration) -> Self {
        SinkOperator { not_null: NotNull::new(spec, configuration), writer: None, spec: spec.clone(), context: None }
    }

    fn writer(&mut self) -> &mut dyn SinkWriter {
        &mut **self.writer.as_mut().expect("opened before anything else")
    }
}

impl Operator for SinkOperator {
    fn open(&mut self, context: &OperatorContext) -> Result<()> {
        let sink_context = SinkContext {
            subtask: context.subtask,
            parallelism: context.parallelism,
            checkpointing: context.configuration.0.contains_key(CHECKPOINTING_INTERVAL),
            operator: context.clone(),
        };
        self.writer = Some(context.environment.connectors.sink(&self.spec, sink_context)?);
        self.context = Some(context.clone());
        Ok(())
    }

    fn process_batch(&mut self, _input: InputNumber, mut batch: Batch, _output: &mut dyn Output) -> Result<()> {
        let last = batch.take_steps().last();
        let rows = batch.num_rows();
        let batch = self.not_null.enforce(batch)?;
        let dropped = (rows - batch.num_rows()) as u64;
        let context = self.context.as_ref().expect("opened before anything else");
        context.metrics.dropped_rows.fetch_add(dropped, Relaxed);
        if batch.num_rows() > 0 {
            self.writer().write(batch)?;
        }
        last.map_or(Ok(()), |watermark| self.writer().watermark(watermark))
    }

    fn process_watermark(&mut self, watermark: Watermark, _output: &mut dyn Output) -> Result<()> {
        self.writer().watermark(watermark)
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.writer.as_ref().and_then(|writer| writer.next_timer())
    }

    fn process_time(&mut self, now_ms: i64, _output: &mut dyn Output) -> Result<()> {
        self.writer().on_time(now_ms)
    }

    fn flush(&mut self, _output: &mut dyn Output) -> Result<()> {
        self.writer().flush()
    }

    fn finish(&mut self, _output: &mut dyn Output) -> Result<()> {
        self.writer().finish()
    }

    fn prepare_commit(&mut self, checkpoint: Option<CheckpointId>) -> Result<Vec<Committable>> {
        self.writer().prepare_commit(checkpoint)
    }
}

/// What a NULL in a NOT NULL column does: it fails the job, or its row is dropped.
#[derive(Debug)]
struct NotNull {
    columns: Vec<(usize, String)>,
    drop_rows: bool,
}

impl NotNull {
    fn new(spec: &SinkSpec, configuration: &Configuration) -> Self {
        let fields = spec.schema.fields.iter().enumerate();
        let columns = fields.filter(|(_, field)| !field.data_type.nullable).map(|(i, field)| (i, field.name.clone()));
        let drop_rows = configuration.text(&config::NOT_NULL_ENFORCER).trim().eq_ignore_ascii_case("DROP");
        NotNull { columns: columns.collect(), drop_rows }
    }

    fn enforce(&self, batch: Batch) -> Result<Batch> {
        let mut valid: Option<NullBuffer> = None;
        for (index, name) in &self.columns {
            let nulls = batch.column(*index).logical_nulls().filter(|nulls| nulls.null_count() > 0);
            match nulls {
                Some(_) if !self.drop_rows => return Err(null_written(name)),
                Some(nulls) => valid = NullBuffer::union(valid.as_ref(), Some(&nulls)),
                None => {}
            }
        }
        match valid {
            Some(valid) => batch.filter(&BooleanArray::new(valid.into_inner(), None)),
            None => Ok(batch),
        }
    }
}

fn null_written(column: &str) -> Error {
    let message = format!("Column '{column}' is NOT NULL, however, a null value is being written into it");
    Error::new(ErrorKind::DataFormat, message)
        .with_hint("set 'table.exec.sink.not-null-enforcer' = 'DROP' to leave such rows out")
}
