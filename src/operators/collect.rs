//! The operator that hands the rows of a SELECT to the session that asked.
//!
//! A session that reads slowly holds the query back ([`Operator::poll_ready`]); one that has lost interest ends it.

use std::task::{Context, Poll};

use crate::error::Result;
use crate::runtime::{Committable, Operator, OperatorContext, Output, ResultSender};
use crate::types::{Batch, CheckpointId, InputNumber, ResultId, Watermark};

/// Hands rows to a session.
#[derive(Debug)]
pub struct CollectOperator {
    result: ResultId,
    sender: Option<ResultSender>,
}

impl CollectOperator {
    /// For this result.
    pub fn new(result: ResultId) -> Self {
        CollectOperator { result, sender: None }
    }

    fn sender(&self) -> &ResultSender {
        self.sender.as_ref().expect("opened before anything else")
    }
}

impl Operator for CollectOperator {
    fn open(&mut self, context: &OperatorContext) -> Result<()> {
        let holds = context.configuration.may_restart() && context.configuration.checkpoint_interval_ms().is_some();
        self.sender = Some(context.environment.results.take(self.result, context.restored, holds)?);
        Ok(())
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.sender().poll_ready(context).map(Ok)
    }

    fn process_batch(&mut self, _input: InputNumber, mut batch: Batch, _output: &mut dyn Output) -> Result<()> {
        batch.take_steps();
        if batch.num_rows() > 0 {
            self.sender().send(batch);
        }
        Ok(())
    }

    fn process_watermark(&mut self, _watermark: Watermark, _output: &mut dyn Output) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self, _output: &mut dyn Output) -> Result<()> {
        self.sender().finish();
        Ok(())
    }

    fn prepare_commit(&mut self, checkpoint: Option<CheckpointId>) -> Result<Vec<Committable>> {
        checkpoint.into_iter().for_each(|checkpoint| self.sender().barrier(checkpoint));
        Ok(Vec::new())
    }

    fn checkpoint_completed(&mut self, checkpoint: CheckpointId) -> Result<()> {
        self.sender().checkpoint_completed(checkpoint);
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.sender.as_ref().is_some_and(ResultSender::is_abandoned)
    }
}
