//! Folds constants in all expressions; a filter that is always or never true goes away.

use super::expressions::map_expressions;
use super::rule::bottom_up;
use crate::error::Result;
use crate::expr::{Expr, fold};
use crate::plan::{LogicalPlan, PlannerContext};
use crate::types::Value;

pub(super) fn apply(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    let zone = cx.configuration.time_zone();
    bottom_up(plan, &mut |plan| {
        Ok(match map_expressions(plan, &mut |expr| fold(expr, cx.functions, zone))? {
            LogicalPlan::Filter { input, predicate } => match predicate {
                Expr::Literal { value: Value::Boolean(true), .. } => *input,
                // NULL keeps no row either.
                Expr::Literal { .. } => LogicalPlan::Values { rows: Vec::new(), schema: input.schema().clone() },
                predicate => LogicalPlan::Filter { input, predicate },
            },
            other => other,
        })
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::plan::testing::*;

    #[test]
    fn a_filter_that_is_never_true_keeps_no_row() {
        let session = Session::new();
        let never = filter(scan(), compare(bigint_literal(1), ">", bigint_literal(3)));
        expect![[r#"
            Values(tuples=[[]])
        "#]]
        .assert_eq(&apply(never, &session.cx()).unwrap().to_string());
    }

    #[test]
    fn a_filter_that_is_always_true_goes_away() {
        let always = filter(scan(), compare(bigint_literal(4), ">", bigint_literal(3)));
        assert_eq!(apply(always, &Session::new().cx()).unwrap(), scan());
    }
}
