//! Constant rows stay constant: a projection or filter of Values is Values, and a scalar subquery of one constant
//! row is a projection.

use super::expressions::substitute;
use super::rule::bottom_up;
use crate::error::Result;
use crate::expr::{Expr, fold_row};
use crate::plan::{LogicalPlan, PlannerContext};
use crate::types::{Schema, Value};

/// Rows beyond this are evaluated as the job runs: planning stays quick.
const FOLDED_ROWS_MAX: usize = 1_000;

pub(super) fn apply(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    bottom_up(plan, &mut |plan| Ok(folded(plan, cx)))
}

fn folded(plan: LogicalPlan, cx: &PlannerContext) -> LogicalPlan {
    match plan {
        LogicalPlan::Project { input, exprs, schema } => match &*input {
            LogicalPlan::Values { rows, schema: fields } if rows.len() <= FOLDED_ROWS_MAX => {
                let each = rows.iter().map(|row| exprs.iter().map(|expr| value_of(expr, row, fields, cx)).collect());
                match each.collect::<Option<Vec<Vec<Value>>>>() {
                    Some(rows) => LogicalPlan::Values { rows, schema },
                    None => LogicalPlan::Project { input, exprs, schema },
                }
            }
            _ => LogicalPlan::Project { input, exprs, schema },
        },
        LogicalPlan::Filter { input, predicate } => match &*input {
            LogicalPlan::Values { rows, schema } if rows.len() <= FOLDED_ROWS_MAX => {
                let each = rows.iter().map(|row| value_of(&predicate, row, schema, cx));
                match each.collect::<Option<Vec<Value>>>() {
                    Some(values) => {
                        let kept = rows.iter().zip(&values).filter(|(_, value)| **value == Value::Boolean(true));
                        LogicalPlan::Values { rows: kept.map(|(row, _)| row.clone()).collect(), schema: schema.clone() }
                    }
                    None => LogicalPlan::Filter { input, predicate },
                }
            }
            _ => LogicalPlan::Filter { input, predicate },
        },
        LogicalPlan::ScalarJoin { left, right, schema, ttl } => match *right {
            LogicalPlan::Values { rows, .. } if rows.len() == 1 => {
                let width = left.schema().len();
                let passed = (0..width).map(|at| Expr::column(at, schema.field(at).data_type.clone()));
                let constants = rows.into_iter().flatten().zip(&schema.fields[width..]);
                let constants = constants.map(|(value, field)| Expr::literal(value, field.data_type.clone()));
                let exprs = passed.chain(constants).collect();
                LogicalPlan::Project { input: left, exprs, schema }
            }
            other => LogicalPlan::ScalarJoin { left, right: Box::new(other), schema, ttl },
        },
        other => other,
    }
}

/// The value of an expression over a row; none where it is not constant, or fails (then it fails when the job runs).
fn value_of(expr: &Expr, row: &[Value], fields: &Schema, cx: &PlannerContext) -> Option<Value> {
    let constants: Vec<Expr> =
        row.iter().zip(&fields.fields).map(|(value, field)| Expr::literal(value.clone(), field.data_type.clone())).collect();
    match fold_row(substitute(expr.clone(), &constants), cx.functions, cx.configuration.time_zone()).ok()? {
        Expr::Literal { value, .. } => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use expect_test::expect;

    use super::*;
    use crate::plan::testing::*;

    #[test]
    fn a_scalar_subquery_of_a_constant_is_a_literal() {
        let one = LogicalPlan::Values { rows: vec![Vec::new()], schema: Arc::new(Schema::default()) };
        let plan = scalar_join(scan(), project(one, vec![int_literal(1)], &["one"]));
        expect![[r#"
            Project(select=[item, price, ts, 1 AS one])
            +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]]
        .assert_eq(&apply(plan, &Session::new().cx()).unwrap().to_string());
    }
}
