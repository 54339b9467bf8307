//! The operator that writes a table: enforces the constraints of its columns, then hands rows to the connector's writer.

use std::sync::atomic::Ordering::Relaxed;

use super::sink_constraints::Constraints;
use crate::error::Result;
use crate::runtime::{Committable, Operator, OperatorContext, Output, SinkContext, SinkWriter};
use crate::stream_graph::SinkSpec;
use crate::types::{Batch, CheckpointId, InputNumber, Watermark};

/// Writes a table.
pub struct SinkOperator {
    constraints: Option<Constraints>,
    writer: Option<Box<dyn SinkWriter>>,
    spec: SinkSpec,
    context: Option<OperatorContext>,
}

impl SinkOperator {
    /// Of a spec; the writer is made when the operator is opened.
    pub fn new(spec: &SinkSpec) -> Self {
        SinkOperator { constraints: None, writer: None, spec: spec.clone(), context: None }
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
            checkpointing: context.configuration.checkpoint_interval_ms().is_some(),
            operator: context.clone(),
        };
        self.writer = Some(context.environment.connectors.sink(&self.spec, sink_context)?);
        self.constraints = Some(Constraints::new(&self.spec, &context.configuration, &context.environment.functions)?);
        self.context = Some(context.clone());
        Ok(())
    }

    fn process_batch(&mut self, _input: InputNumber, mut batch: Batch, _output: &mut dyn Output) -> Result<()> {
        let last = batch.take_steps().last();
        let rows = batch.num_rows();
        let batch = self.constraints.as_ref().expect("opened before anything else").enforce(batch)?;
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
