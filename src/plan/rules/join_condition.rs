//! The condition of a join taken apart: which columns of both sides are equal, and what else must be true.

use std::sync::Arc;

use super::expressions::{conjunction, is_deterministic, shifted};
use crate::expr::{Expr, FunctionRegistry};
use crate::plan::LogicalPlan;
use crate::stream_graph::{JoinKey, JoinType};
use crate::types::{Field, Schema};

/// A join with its equalities as columns.
pub(super) struct EquiJoin {
    /// The left input, behind its columns those that are computed for a key.
    pub left: LogicalPlan,
    /// The right input, likewise.
    pub right: LogicalPlan,
    /// What is equal in rows that join.
    pub keys: Vec<JoinKey>,
    /// What else must be true; over left, then right columns.
    pub residual: Option<Expr>,
    /// The output columns of the join, of left, then right ones.
    pub output: Vec<usize>,
}

/// Takes the terms of a condition over `left`, then `right` columns apart.
pub(super) fn equi_join(
    left: LogicalPlan,
    right: LogicalPlan,
    join_type: JoinType,
    terms: Vec<Expr>,
    functions: &FunctionRegistry,
) -> EquiJoin {
    let (left_width, right_width) = (left.schema().len(), right.schema().len());
    let (mut left, mut right) = (Side::new(left), Side::new(right));
    let (mut keys, mut residual) = (Vec::new(), Vec::new());
    for term in terms {
        match equality(&term, left_width, functions) {
            Some((of_left, of_right, null_safe)) => {
                let of_right = shifted(of_right, &|column| column - left_width);
                keys.push(JoinKey { left: left.column(of_left), right: right.column(of_right), null_safe });
            }
            None => residual.push(term),
        }
    }
    let (left, right) = (left.into_plan(), right.into_plan());
    let added = left.schema().len() - left_width;
    let moved = |column: usize| if column < left_width { column } else { column + added };
    let residual = conjunction(residual).map(|residual| shifted(residual, &moved));
    let width = if join_type.is_left_only() { left_width } else { left_width + right_width };
    EquiJoin { left, right, keys, residual, output: (0..width).map(moved).collect() }
}

/// The sides of an equality between something of the left and something of the right, and whether NULL equals NULL.
fn equality(term: &Expr, left_width: usize, functions: &FunctionRegistry) -> Option<(Expr, Expr, bool)> {
    let Expr::Call { function, args, .. } = term else { return None };
    let null_safe = match function.as_str() {
        "=" => false,
        "IS NOT DISTINCT FROM" => true,
        _ => return None,
    };
    let [a, b] = args.as_slice() else { return None };
    if a.data_type().to_arrow() != b.data_type().to_arrow() || !is_deterministic(term, functions) {
        return None;
    }
    match (side_of(a, left_width)?, side_of(b, left_width)?) {
        (true, false) => Some((a.clone(), b.clone(), null_safe)),
        (false, true) => Some((b.clone(), a.clone(), null_safe)),
        _ => None,
    }
}

/// Whether an expression reads columns of the left side alone (true) or of the right side alone (false).
fn side_of(expr: &Expr, left_width: usize) -> Option<bool> {
    let columns = expr.columns();
    let (first, last) = (*columns.first()?, *columns.last()?);
    if last < left_width {
        return Some(true);
    }
    (first >= left_width).then_some(false)
}

/// An input, with expressions to be computed behind its columns.
struct Side {
    plan: LogicalPlan,
    computed: Vec<Expr>,
}

impl Side {
    fn new(plan: LogicalPlan) -> Self {
        Side { plan, computed: Vec::new() }
    }

    /// The column that holds an expression.
    fn column(&mut self, expr: Expr) -> usize {
        if let Expr::Column { index, .. } = expr {
            return index;
        }
        let known = self.computed.iter().position(|known| *known == expr);
        self.plan.schema().len()
            + known.unwrap_or_else(|| {
                self.computed.push(expr);
                self.computed.len() - 1
            })
    }

    fn into_plan(self) -> LogicalPlan {
        if self.computed.is_empty() {
            return self.plan;
        }
        let mut fields = self.plan.schema().fields.clone();
        let mut exprs: Vec<Expr> =
            fields.iter().enumerate().map(|(at, field)| Expr::column(at, field.data_type.clone())).collect();
        for expr in self.computed {
            fields.push(Field::new(format!("$f{}", fields.len()), expr.data_type()));
            exprs.push(expr);
        }
        LogicalPlan::Project { input: Box::new(self.plan), exprs, schema: Arc::new(Schema::new(fields)) }
    }
}
