//! The operator that produces constant rows, in subtask 0. Its state: how many of them it has produced.

use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::{AsArray, Int64Array};
use arrow::datatypes::Int64Type;

use super::keyed_state::{rows_in_range, unkeyed_snapshot};
use crate::config;
use crate::error::Result;
use crate::expr::values_to_array;
use crate::runtime::{OperatorContext, Output, SourceOperator, SourceStatus, Split, StateTable, StateTableSnapshot};
use crate::types::{Batch, KeyGroupRange, SchemaRef, Value};

/// Produces constant rows.
#[derive(Debug)]
pub struct ValuesSource {
    rows: Rows,
    batch_rows: usize,
}

/// The rows, and how many were produced.
#[derive(Debug)]
struct Rows {
    /// None in subtasks that produce nothing.
    all: Option<Batch>,
    produced: usize,
}

impl ValuesSource {
    /// These rows, in subtask 0; none in the others.
    pub fn new(rows: &[Vec<Value>], schema: &SchemaRef, context: &OperatorContext) -> Self {
        let columns = schema.fields.iter().enumerate().map(|(index, field)| {
            let values: Vec<Value> = rows.iter().map(|row| row[index].clone()).collect();
            values_to_array(&values, &field.data_type)
        });
        let all = (context.subtask.0 == 0).then(|| Batch::new(columns.collect(), rows.len()));
        let rows = Rows { all, produced: 0 };
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
        let Rows { all, produced } = &mut self.rows;
        let Some(rows) = all.as_ref().filter(|rows| rows.num_rows() > *produced) else {
            return Poll::Ready(Ok(SourceStatus::End));
        };
        let now = (rows.num_rows() - *produced).min(self.batch_rows);
        let batch = rows.slice(*produced, now);
        *produced += now;
        output.batch(batch)?;
        Poll::Ready(Ok(SourceStatus::More))
    }

    fn needs_splits(&self) -> bool {
        false
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("produced", &mut self.rows)]
    }
}

impl StateTable for Rows {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let produced = Batch::new(vec![Arc::new(Int64Array::from(vec![self.produced as i64]))], 1);
        unkeyed_snapshot(self.all.as_ref().map(|_| &produced))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            if let Some(produced) = rows_in_range(rows, range)?.column(0).as_primitive::<Int64Type>().values().first() {
                self.produced = *produced as usize;
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::*;
    use crate::types::{DataType, Field, Schema, TypeKind};

    #[test]
    fn restored_rows_go_on_where_they_were() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::nullable(TypeKind::BigInt))]));
        let rows: Vec<Vec<Value>> = (0..5).map(|n| vec![Value::BigInt(n)]).collect();
        let settings = [("execution.batch-rows", "2")];
        let source = |index, parallelism| {
            ValuesSource::new(&rows, &schema, &context_of(index, parallelism, crate::clock::VirtualClock::new(0), &settings))
        };
        let mut output = Lines::default();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut first = source(0, 2);
        assert!(first.poll(&mut cx, &mut output).is_ready());
        let snapshot = first.rows.snapshot().unwrap();
        for index in 0..3 {
            let mut restored = source(index, 3);
            let range = KeyGroupRange::of_subtask(crate::types::SubtaskIndex(index), 3, 128);
            restored.rows.restore(&snapshot, range).unwrap();
            while !matches!(restored.poll(&mut cx, &mut output), Poll::Ready(Ok(SourceStatus::End))) {}
        }
        assert_eq!(output.take(), ["+I 0", "+I 1", "+I 2", "+I 3", "+I 4"]);
    }
}
