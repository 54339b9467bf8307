//! The operator that produces constant rows, in subtask 0.

use std::task::{Context, Poll};

use crate::config;
use crate::error::Result;
use crate::expr::values_to_array;
use crate::runtime::{OperatorContext, Output, SourceOperator, SourceStatus, Split};
use crate::types::{Batch, SchemaRef, Value};

/// Produces constant rows.
#[derive(Debug)]
pub struct ValuesSource {
    /// What is still to be emitted.
    rows: Option<Batch>,
    batch_rows: usize,
}

impl ValuesSource {
    /// These rows, in subtask 0; none in the others.
    pub fn new(rows: &[Vec<Value>], schema: &SchemaRef, context: &OperatorContext) -> Self {
        let columns = schema.fields.iter().enumerate().map(|(index, field)| {
            let values: Vec<Value> = rows.iter().map(|row| row[index].clone()).collect();
            values_to_array(&values, &field.data_type)
        });
        let rows = (context.subtask.0 == 0).then(|| Batch::new(columns.collect(), rows.len()));
        let batch_rows = context.configuration.integer(&config::BATCH_ROWS).max(1) as usize;
        ValuesSource { rows, batch_rows }
    }
}

impl SourceOperator for ValuesSource {
    fn add_splits(&mut self, _splits: Vec<Split>) -> Result<()> {
        Ok(())
    }

    fn no_more_splits(&mut self) {}

    fn poll(&mut self, _context: &mut Context<'_>, output: &mut dyn Output) -> Poll<Result<SourceStatus>> {
        let Some(rows) = self.rows.take().filter(|rows| rows.num_rows() > 0) else {
            return Poll::Ready(Ok(SourceStatus::End));
        };
        let now = rows.num_rows().min(self.batch_rows);
        output.batch(rows.slice(0, now))?;
        self.rows = Some(rows.slice(now, rows.num_rows() - now));
        Poll::Ready(Ok(SourceStatus::More))
    }

    fn needs_splits(&self) -> bool {
        false
    }
}
