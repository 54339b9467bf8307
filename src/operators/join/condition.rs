//! What a join asks beyond equal keys, evaluated over many pairs of rows at once.

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::compute;

use super::side::{JoinSide, take_rows};
use crate::error::Result;
use crate::expr::{CompiledExpr, Expr, FunctionRegistry, compile};
use crate::operators::evaluation::Surroundings;
use crate::runtime::state::RowId;
use crate::types::Watermark;

/// A residual condition over the columns that it reads.
#[derive(Debug)]
pub(super) struct Condition {
    expr: CompiledExpr,
    /// The columns read, of left, then right ones.
    columns: Vec<usize>,
    left_width: usize,
}

impl Condition {
    pub(super) fn new(expr: &Expr, left_width: usize, functions: &FunctionRegistry) -> Result<Self> {
        let columns = expr.columns();
        let place = |column| columns.iter().position(|read| *read == column).expect("the columns of an expression are read");
        let moved = expr.clone().map_columns(&mut |column, data_type| Expr::column(place(column), data_type));
        Ok(Condition { expr: compile(&moved, functions)?, columns, left_width })
    }

    /// Which pairs fulfil it: rows `own` of a batch that came from the left (or not) with rows `others` of the other side.
    pub(super) fn evaluate(
        &self,
        batch: &[ArrayRef],
        from_left: bool,
        own: &[u32],
        other: &JoinSide,
        others: &[RowId],
        surroundings: (&Surroundings, Watermark),
    ) -> Result<BooleanArray> {
        let is_own = |column: usize| (column < self.left_width) == from_left;
        let place = |column: usize| if column < self.left_width { column } else { column - self.left_width };
        let mut read = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let at = place(*column);
            read.push(if is_own(*column) {
                take_rows(&batch[at..=at], own)?.remove(0)
            } else {
                other.rows.take_columns(others, &[at])?.remove(0)
            });
        }
        let (surroundings, watermark) = surroundings;
        let mask = self.expr.evaluate_predicate(&read, &surroundings.at(own.len(), watermark))?;
        Ok(if mask.null_count() > 0 { compute::prep_null_mask_filter(&mask) } else { mask })
    }
}
