//! Where late rows are written to a table, a window aggregate gets the whole rows below it, not only the columns that it reads: the rows of the
//! table, join or window that feeds it, behind what it reads of them.
//!
//! Other operators that drop late rows take whole rows anyway.

use std::sync::Arc;

use super::rule::bottom_up;
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{LogicalPlan, PlannerContext};
use crate::types::Schema;

pub(super) fn apply(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    if cx.late_rows.is_none() {
        return Ok(plan);
    }
    bottom_up(plan, &mut |plan| {
        Ok(match plan {
            LogicalPlan::WindowAggregate { input, spec, schema } => {
                LogicalPlan::WindowAggregate { input: Box::new(widened(*input)), spec, schema }
            }
            other => other,
        })
    })
}

/// The same columns, then those of the rows below that are not among them as they are.
fn widened(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Filter { input, predicate } => LogicalPlan::Filter { input: Box::new(widened(*input)), predicate },
        LogicalPlan::Project { input, mut exprs, schema } => {
            let input = widened(*input);
            let mut fields = schema.fields.clone();
            for (at, field) in input.schema().fields.iter().enumerate() {
                let passed = exprs
                    .iter()
                    .zip(&fields)
                    .any(|(expr, own)| matches!(expr, Expr::Column { index, .. } if *index == at) && own.name == field.name);
                if !passed {
                    exprs.push(Expr::column(at, field.data_type.clone()));
                    fields.push(field.clone());
                }
            }
            LogicalPlan::Project { input: Box::new(input), exprs, schema: Arc::new(Schema::new(fields)) }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::plan::testing::*;
    use crate::plan::{LateRowsTable, optimize};

    #[test]
    fn a_window_aggregate_gets_whole_rows_where_late_ones_are_wanted() {
        let session = Session::new();
        let LogicalPlan::Scan { table, .. } = scan() else { unreachable!() };
        let late = LateRowsTable { table, hint: None };
        let cx = PlannerContext { late_rows: Some(&late), ..session.cx() };
        let plan = aggregate(windowed(scan_with_watermark(), TUMBLE_10S), &[3, 4], vec![sum(1, "total")]);
        expect![[r#"
            Project(select=[window_start, window_end, total])
            +- WindowAggregate(window=[TUMBLE(time_col=[ts], size=[10 s])], select=[SUM(price) AS total, start('w$) AS window_start, end('w$) AS window_end])
               +- TableSourceScan(table=[[c, d, bids, watermark=[(ts - 2000:INTERVAL SECOND)]]], fields=[item, price, ts])
        "#]].assert_eq(&optimize(plan, &cx).unwrap().to_string());
    }
}
