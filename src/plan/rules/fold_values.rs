//! Constant rows stay constant: a projection of Values to columns and literals is Values, and a scalar subquery of one constant
//! row is a projection.

use super::expressions::is_trivial;
use super::rule::bottom_up;
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{LogicalPlan, PlannerContext};
use crate::types::Value;

pub(super) fn apply(plan: LogicalPlan, _cx: &PlannerContext) -> Result<LogicalPlan> {
    bottom_up(plan, &mut |plan| Ok(folded(plan)))
}

fn folded(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Project { input, exprs, schema } => match *input {
            LogicalPlan::Values { rows, .. } if exprs.iter().all(is_trivial) => {
                let rows = rows.into_iter().map(|row| exprs.iter().map(|expr| value_of(expr, &row)).collect()).collect();
                LogicalPlan::Values { rows, schema }
            }
            other => LogicalPlan::Project { input: Box::new(other), exprs, schema },
        },
        LogicalPlan::ScalarJoin { left, right, schema } => match *right {
            LogicalPlan::Values { rows, .. } if rows.len() == 1 => {
                let width = left.schema().len();
                let passed = (0..width).map(|at| Expr::column(at, schema.field(at).data_type.clone()));
                let constants = rows.into_iter().flatten().zip(&schema.fields[width..]);
                let constants = constants.map(|(value, field)| Expr::literal(value, field.data_type.clone()));
                let exprs = passed.chain(constants).collect();
                LogicalPlan::Project { input: left, exprs, schema }
            }
            other => LogicalPlan::ScalarJoin { left, right: Box::new(other), schema },
        },
        other => other,
    }
}

fn value_of(expr: &Expr, row: &[Value]) -> Value {
    match expr {
        Expr::Literal { value, .. } => value.clone(),
        Expr::Column { index, .. } => row[*index].clone(),
        _ => unreachable!("only trivial expressions are folded"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use expect_test::expect;

    use super::*;
    use crate::plan::testing::*;
    use crate::types::Schema;

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
