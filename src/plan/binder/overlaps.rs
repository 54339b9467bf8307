//! `(start, end) OVERLAPS (start, end)`: periods of time, their ends included. An interval as the second item is added to the start.

use sqlparser::ast::Expr as SqlExpr;

use super::expression::ExprBinder;
use super::operator::row_items;
use super::span::Located;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::Expr;

impl ExprBinder<'_, '_> {
    /// `left OVERLAPS right`: each begins before the other ends.
    pub(super) fn overlaps(&mut self, left: &SqlExpr, right: &SqlExpr) -> Result<Expr> {
        let (left_start, left_end) = self.period(left)?;
        let (right_start, right_end) = self.period(right)?;
        let first = self.binder.call(">=", vec![left_end, right_start]).at_node(right)?;
        let second = self.binder.call(">=", vec![right_end, left_start]).at_node(right)?;
        Ok(Expr::And(vec![first, second]))
    }

    /// The earlier and the later end of a period.
    fn period(&mut self, period: &SqlExpr) -> Result<(Expr, Expr)> {
        let items = row_items(period).filter(|items| items.len() == 2);
        let Some(items) = items else {
            let error = Error::new(ErrorKind::TypeMismatch, "OVERLAPS needs a period on each side");
            return Err(error.with_hint("write (start, end) or (start, INTERVAL '1' DAY)").at_node(period));
        };
        let (start, mut end) = (self.bind(items[0])?, self.bind(items[1])?);
        if end.data_type().is_interval() {
            end = self.binder.call("+", vec![start.clone(), end]).at_node(items[1])?;
        }
        let earlier = self.binder.call("LEAST", vec![start.clone(), end.clone()]).at_node(period)?;
        let later = self.binder.call("GREATEST", vec![start, end]).at_node(period)?;
        Ok((earlier, later))
    }
}
