//! An uncorrelated scalar subquery: each left row joined with the one row of the right input.
//!
//! When the right row changes, all left rows, which are kept, are taken back and come again. Input 0 is the query, input 1 the subquery.
//!
//! With a time to live left rows are forgotten so long after they came: they stay as they came out. The one right row stays: it costs
//! nothing, and without it what comes later would be joined with nothing. (In Flink it goes too.)

mod left_rows;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array, new_null_array};
use arrow::compute;

use left_rows::LeftRows;

use super::change_rows::{ChangeRows, Differ};
use super::evaluation::Surroundings;
use super::keyed_state::{rows_in_range, unkeyed_snapshot};
use crate::config::BATCH_ROWS;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{CompiledExpr, compile};
use crate::runtime::{Operator, OperatorContext, Output, StateTable, StateTableSnapshot};
use crate::stream_graph::ScalarJoinSpec;
use crate::types::{Batch, InputNumber, KeyGroupRange, RowKind, Watermark};

/// The input of the subquery.
const RIGHT: InputNumber = InputNumber(1);

/// An uncorrelated scalar subquery.
#[derive(Debug)]
pub struct ScalarJoin {
    spec: ScalarJoinSpec,
    predicate: Option<CompiledExpr>,
    left: LeftRows,
    right: RightRow,
    surroundings: Surroundings,
    watermark: Watermark,
    batch_rows: usize,
}

/// The row of the right input, if it has one.
#[derive(Debug, Default)]
struct RightRow(Option<Batch>);

impl RightRow {
    fn update(&mut self, batch: &Batch) -> Result<()> {
        // Where the row is when the batch is through.
        let (mut count, mut at) = (i64::from(self.0.is_some()), None);
        for row in 0..batch.num_rows() {
            match batch.kind(row) {
                RowKind::Insert => {
                    count += 1;
                    at = Some(row);
                }
                RowKind::UpdateAfter => {
                    // Without its -U before it, it replaces the row.
                    count = 1;
                    at = Some(row);
                }
                RowKind::UpdateBefore | RowKind::Delete => {
                    count -= 1;
                    at = None;
                }
            }
            if count > 1 {
                return Err(Error::new(ErrorKind::InvalidArgument, "a scalar subquery gave more than one row")
                    .with_hint("aggregate it, or add LIMIT 1"));
            }
        }
        if batch.num_rows() > 0 {
            self.0 = at.map(|row| Batch::new(batch.columns().iter().map(|column| column.slice(row, 1)).collect(), 1));
        }
        Ok(())
    }
}

impl ScalarJoin {
    /// From its spec.
    pub fn new(spec: ScalarJoinSpec, context: &OperatorContext) -> Result<Self> {
        let predicate = spec.predicate.as_ref().map(|expr| compile(expr, &context.environment.functions)).transpose()?;
        Ok(ScalarJoin {
            predicate,
            left: LeftRows::new(spec.left_retracts, context),
            right: RightRow::default(),
            surroundings: Surroundings::new(context),
            watermark: Watermark::MIN,
            batch_rows: context.configuration.integer(&BATCH_ROWS).max(1) as usize,
            spec,
        })
    }

    /// The right columns for `num_rows` left rows; none = the left rows do not come without a right one.
    fn right_columns(&self, right: &RightRow, num_rows: usize) -> Result<Option<Vec<ArrayRef>>> {
        let Some(row) = &right.0 else {
            let nulls = self.spec.right_schema.fields.iter().map(|field| new_null_array(&field.data_type.to_arrow(), num_rows));
            return Ok(self.spec.outer.then(|| nulls.collect()));
        };
        let first = UInt32Array::from_value(0, num_rows);
        let columns = row.columns().iter().map(|column| compute::take(column, &first, None));
        Ok(Some(columns.collect::<std::result::Result<_, _>>()?))
    }

    /// Which of the joined rows pass.
    fn passes(&self, left: &[ArrayRef], right: Option<&[ArrayRef]>, num_rows: usize) -> Result<BooleanArray> {
        let Some(right) = right else { return Ok(BooleanArray::from(vec![false; num_rows])) };
        let Some(predicate) = &self.predicate else { return Ok(BooleanArray::from(vec![true; num_rows])) };
        let columns: Vec<ArrayRef> = left.iter().chain(right).map(Arc::clone).collect();
        let mask = predicate.evaluate_predicate(&columns, &self.surroundings.at(num_rows, self.watermark))?;
        Ok(if mask.null_count() > 0 { compute::prep_null_mask_filter(&mask) } else { mask })
    }

    fn join_left(&mut self, batch: Batch, output: &mut dyn Output) -> Result<()> {
        if let Some(right) = self.right_columns(&self.right, batch.num_rows())? {
            let mask = self.passes(batch.columns(), Some(&right), batch.num_rows())?;
            let columns = batch.columns().iter().cloned().chain(right).collect();
            output.batch(batch.with_columns(columns).filter(&mask)?)?;
        }
        self.left.add(batch)
    }

    fn update_right(&mut self, batch: &Batch, output: &mut dyn Output) -> Result<()> {
        let mut right = RightRow(self.right.0.clone());
        right.update(batch)?;
        let former = std::mem::replace(&mut self.right, right);
        if let (Some(old), Some(new)) = (&former.0, &self.right.0)
            && !Differ::new(old.columns(), new.columns())?.differs(0)
        {
            return Ok(());
        }
        let Some(left) = self.left.all()? else { return Ok(()) };
        let num_rows = left.num_rows();
        for offset in (0..num_rows).step_by(self.batch_rows) {
            let length = self.batch_rows.min(num_rows - offset);
            let left: Vec<ArrayRef> = left.columns().iter().map(|column| column.slice(offset, length)).collect();
            output.batch(self.changes(&left, &former, length)?)?;
        }
        Ok(())
    }

    /// What becomes of left rows when the right row was `former` and is now another.
    fn changes(&self, left: &[ArrayRef], former: &RightRow, num_rows: usize) -> Result<Batch> {
        let old = self.right_columns(former, num_rows)?;
        let new = self.right_columns(&self.right, num_rows)?;
        let was = self.passes(left, old.as_deref(), num_rows)?;
        let is = self.passes(left, new.as_deref(), num_rows)?;
        let mut changes = ChangeRows::default();
        for row in 0..num_rows {
            match (was.value(row), is.value(row)) {
                (true, true) => {
                    changes.old_row(RowKind::UpdateBefore, row);
                    changes.new_row(RowKind::UpdateAfter, row);
                }
                (true, false) => changes.old_row(RowKind::Delete, row),
                (false, true) => changes.new_row(RowKind::Insert, row),
                (false, false) => {}
            }
        }
        // A side that lets no row pass is never read from.
        let (old, new) = match (old, new) {
            (Some(old), Some(new)) => (old, new),
            (Some(old), None) => (old.clone(), old),
            (None, Some(new)) => (new.clone(), new),
            (None, None) => return Ok(Batch::new(Vec::new(), 0)),
        };
        changes.into_batch(left, &old, &new)
    }
}

impl Operator for ScalarJoin {
    fn process_batch(&mut self, input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        let steps = batch.take_steps();
        if input == RIGHT {
            self.update_right(&batch, output)?;
        } else if batch.num_rows() > 0 {
            self.join_left(batch, output)?;
        }
        steps.last().map_or(Ok(()), |watermark| self.process_watermark(watermark, output))
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        self.watermark = self.watermark.max(watermark);
        output.watermark(watermark)
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.left.next_timer()
    }

    fn process_time(&mut self, _now_ms: i64, _output: &mut dyn Output) -> Result<()> {
        self.left.expire()
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("left", &mut self.left), ("right", &mut self.right)]
    }
}

impl StateTable for RightRow {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        unkeyed_snapshot(self.0.as_ref())
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            let rows = rows_in_range(rows, range)?;
            if rows.num_rows() == 1 {
                self.0 = Some(rows);
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, Batch::bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Expr;
    use crate::operators::testing::*;
    use crate::types::{DataType, Field, Schema, TypeKind};

    fn join(predicate: bool, left_retracts: bool, outer: bool) -> ScalarJoin {
        let bigint = DataType::nullable(TypeKind::BigInt);
        let schema = Arc::new(Schema::new(vec![
            Field::new("k", DataType::string()),
            Field::new("v", bigint.clone()),
            Field::new("ts", DataType::nullable(TypeKind::Timestamp(3))),
        ]));
        let greater = Expr::Call {
            function: ">".to_string(),
            args: vec![Expr::column(1, bigint.clone()), Expr::column(4, bigint)],
            data_type: DataType::nullable(TypeKind::Boolean),
        };
        let spec = ScalarJoinSpec {
            predicate: predicate.then_some(greater),
            left_retracts,
            outer,
            left_schema: schema.clone(),
            right_schema: schema,
        };
        ScalarJoin::new(spec, &context()).unwrap()
    }

    fn push_right(join: &mut ScalarJoin, lines: &[&str], output: &mut Lines) {
        join.process_batch(RIGHT, batch(lines), output).unwrap();
    }

    #[test]
    fn left_rows_wait_for_the_right_one_and_change_with_it() {
        let mut join = join(true, false, false);
        let mut output = Lines::default();
        push(&mut join, batch(&["+I a 1", "+I b 2", "+I c 3"]), &mut output);
        assert_eq!(output.take(), [""; 0]);
        push_right(&mut join, &["+I r 1"], &mut output);
        assert_eq!(output.take(), ["+I b 2 0 r 1 0", "+I c 3 0 r 1 0"]);
        push_right(&mut join, &["-U r 1", "+U r 2"], &mut output);
        assert_eq!(output.take(), ["-D b 2 0 r 1 0", "-U c 3 0 r 1 0", "+U c 3 0 r 2 0"]);
        push_right(&mut join, &["-U r 2", "+U r 2"], &mut output);
        assert_eq!(output.take(), [""; 0]);
        push(&mut join, batch(&["+I d 9", "~4"]), &mut output);
        assert_eq!(output.take(), ["+I d 9 0 r 2 0", "~4"]);
    }

    #[test]
    fn without_a_right_row_values_are_null() {
        let mut join = self::join(false, true, true);
        let mut output = Lines::default();
        push(&mut join, batch(&["+I a 1", "+I b 2"]), &mut output);
        assert_eq!(output.take(), ["+I a 1 0 NULL NULL NULL", "+I b 2 0 NULL NULL NULL"]);
        push(&mut join, batch(&["-D a 1"]), &mut output);
        assert_eq!(output.take(), ["-D a 1 0 NULL NULL NULL"]);
        let mut restored = self::join(false, true, true);
        restore(&mut restored, &context(), &snapshot(&mut join));
        push_right(&mut restored, &["+I r 7"], &mut output);
        assert_eq!(output.take(), ["-U b 2 0 NULL NULL NULL", "+U b 2 0 r 7 0"]);
    }

    #[test]
    fn left_rows_without_columns_change_with_the_right_one() {
        for left_retracts in [false, true] {
            let mut join = join(false, left_retracts, false);
            let mut output = Lines::default();
            push(&mut join, Batch::new(Vec::new(), 2), &mut output);
            push_right(&mut join, &["+I r 1"], &mut output);
            assert_eq!(output.take(), ["+I r 1 0", "+I r 1 0"]);
        }
    }

    #[test]
    fn a_second_right_row_is_an_error() {
        let mut join = join(false, false, true);
        let error = join.process_batch(RIGHT, batch(&["+I r 1", "+I s 2"]), &mut Lines::default()).unwrap_err();
        assert_eq!(error.message(), "a scalar subquery gave more than one row");
    }
}
