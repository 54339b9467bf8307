//! The operator that hands the rows of a SELECT to the session that asked.
//!
//! A session that reads slowly holds the query back ([`Operator::poll_ready`]); one that has lost interest ends it.

use std::task::{Context, Poll};

use crate::error::Result;
use crate::runtime::{Operator, OperatorContext, Output, ResultSender};
use crate::types::{Batch, InputNumber, ResultId, Watermark};

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
        self.sender = Some(context.environment.results.take(self.result)?);
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

    fn is_satisfied(&self) -> bool {
        self.sender.as_ref().is_some_and(ResultSender::is_abandoned)
    }
}
