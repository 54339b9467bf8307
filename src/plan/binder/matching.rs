//! ILIKE, which Flink does not have.

use sqlparser::ast::Expr as SqlExpr;

use super::expression::{ExprBinder, negate};
use crate::error::Result;
use crate::expr::Expr;

impl ExprBinder<'_, '_> {
    /// `x ILIKE pattern [ESCAPE e]`: LIKE of small letters.
    pub(super) fn like_in_any_case(&mut self, operands: &[&SqlExpr], negated: bool) -> Result<Expr> {
        let small = operands.iter().map(|operand| {
            let bound = self.bind(operand)?;
            self.binder.call("LOWER", vec![bound])
        });
        let small = small.collect::<Result<Vec<_>>>()?;
        Ok(negate(self.binder.call("LIKE", small)?, negated))
    }
}
