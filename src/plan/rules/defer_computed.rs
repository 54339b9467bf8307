//! Computed columns that the watermark does not need are computed above it: so filters can come before them, and what is never
//! read is never computed.

use std::sync::Arc;

use super::expressions::{is_deterministic, is_trivial, shifted};
use super::rule::bottom_up;
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{LogicalPlan, PlannerContext};
use crate::stream_graph::WatermarkSpec;
use crate::types::{Field, Schema};

pub(super) fn apply(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    bottom_up(plan, &mut |plan| Ok(deferred(plan, cx)))
}

/// WatermarkAssigner over a Project over a Scan → Project over WatermarkAssigner, over a Project only where it is still needed.
fn deferred(plan: LogicalPlan, cx: &PlannerContext) -> LogicalPlan {
    let LogicalPlan::WatermarkAssigner { input, watermark, schema } = plan else {
        return plan;
    };
    match *input {
        LogicalPlan::Project { input: scan, exprs, .. }
            if matches!(*scan, LogicalPlan::Scan { .. }) && can_defer(&exprs, &watermark, cx) =>
        {
            defer(*scan, exprs, watermark, &schema)
        }
        other => LogicalPlan::WatermarkAssigner { input: Box::new(other), watermark, schema },
    }
}

/// Whether some column is worth it, and none would be computed twice with another outcome.
fn can_defer(exprs: &[Expr], watermark: &WatermarkSpec, cx: &PlannerContext) -> bool {
    let needed = needed(watermark);
    let is_worth = |(at, expr): (usize, &Expr)| !needed.contains(&at) && !is_trivial(expr);
    exprs.iter().enumerate().any(is_worth) && needed.iter().all(|at| is_deterministic(&exprs[*at], cx.functions))
}

/// The columns that the watermark reads, the rowtime included.
fn needed(watermark: &WatermarkSpec) -> Vec<usize> {
    let mut columns = watermark.expr.columns();
    if !columns.contains(&watermark.rowtime) {
        columns.push(watermark.rowtime);
    }
    columns
}

fn defer(scan: LogicalPlan, exprs: Vec<Expr>, watermark: WatermarkSpec, schema: &Arc<Schema>) -> LogicalPlan {
    // Below: what is read from the table, then what the watermark needs beyond it.
    let mut fields: Vec<Field> = scan.schema().fields.clone();
    let mut below: Vec<Expr> = fields.iter().enumerate().map(|(at, field)| Expr::column(at, field.data_type.clone())).collect();
    let mut places: Vec<Option<usize>> = vec![None; exprs.len()];
    for at in needed(&watermark) {
        places[at] = Some(match &exprs[at] {
            Expr::Column { index, .. } => *index,
            expr => {
                below.push(expr.clone());
                fields.push(schema.field(at).clone());
                below.len() - 1
            }
        });
    }
    let place = |at: usize| places[at].expect("the watermark reads only what it needs");
    let rowtime = place(watermark.rowtime);
    let rowtime_type = schema.field(watermark.rowtime).data_type.clone();
    let watermark = WatermarkSpec { rowtime, expr: shifted(watermark.expr, &place), timing: watermark.timing.clone() };
    let is_plain = below.len() == scan.schema().len();
    let computed = Arc::new(Schema::new(fields.clone()));
    let input = if is_plain { scan } else { LogicalPlan::Project { input: Box::new(scan), exprs: below, schema: computed } };
    fields[rowtime].data_type = rowtime_type.clone();
    let assigned = LogicalPlan::WatermarkAssigner { input: Box::new(input), watermark, schema: Arc::new(Schema::new(fields)) };
    // Above: every column of before; those that were computed below are read from there.
    let above = exprs.into_iter().enumerate().map(|(at, expr)| match places[at] {
        Some(place) if place == rowtime => Expr::column(place, rowtime_type.clone()),
        Some(place) => Expr::column(place, expr.data_type()),
        None => expr,
    });
    LogicalPlan::Project { input: Box::new(assigned), exprs: above.collect(), schema: schema.clone() }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::plan::testing::*;
    use crate::types::{DataType, TypeKind, Value};

    fn assigned(exprs: Vec<Expr>, names: &[&str], rowtime_column: usize) -> LogicalPlan {
        let input = project(scan(), exprs, names);
        let mut schema = (**input.schema()).clone();
        schema.fields[rowtime_column].data_type = rowtime();
        let expr = Expr::column(rowtime_column, timestamp());
        let watermark = WatermarkSpec { rowtime: rowtime_column, expr, timing: Default::default() };
        LogicalPlan::WatermarkAssigner { input: Box::new(input), watermark, schema: Arc::new(schema) }
    }

    fn check(plan: LogicalPlan, expected: Expect) {
        let schema = plan.schema().clone();
        let plan = apply(plan, &Session::new().cx()).unwrap();
        assert_eq!(*plan.schema(), schema);
        expected.assert_eq(&plan.to_string());
    }

    #[test]
    fn a_column_that_the_watermark_does_not_read_moves_above_it() {
        let doubled = call("*", vec![bigint(1), int_literal(2)], bigint_type());
        check(
            assigned(vec![bigint(1), Expr::column(2, timestamp()), doubled], &["price", "ts", "d"], 1),
            expect![[r#"
            Project(select=[price, ts, (price * 2) AS d])
            +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
               +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]],
        );
    }

    #[test]
    fn a_computed_rowtime_stays_below() {
        let hour = Expr::literal(Value::IntervalDayTime(3_600_000), DataType::not_null(TypeKind::IntervalDayTime));
        let shifted = call("+", vec![Expr::column(2, timestamp()), hour], timestamp());
        let doubled = call("*", vec![bigint(1), int_literal(2)], bigint_type());
        check(
            assigned(vec![doubled, shifted], &["d", "rt"], 1),
            expect![[r#"
            Project(select=[(price * 2) AS d, rt])
            +- WatermarkAssigner(rowtime=[rt], watermark=[rt])
               +- Project(select=[item, price, ts, (ts + 3600000:INTERVAL SECOND) AS rt])
                  +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]],
        );
    }
}
