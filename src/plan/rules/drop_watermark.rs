//! A watermark that nothing looks at is not made, and its column is not read for it alone.
//!
//! Event time matters to windows, to sorts by rowtime, to CURRENT_WATERMARK and to partitioned sinks, which commit by it. A query
//! with none of these keeps its columns and their types, and loses the WatermarkAssigners. Asked again when it is clear which joins look at it.

use super::rule::bottom_up;
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{LogicalPlan, PlannerContext, rank};

pub(super) fn apply(plan: LogicalPlan, _cx: &PlannerContext) -> Result<LogicalPlan> {
    if looks_at_event_time(&plan) {
        return Ok(plan);
    }
    bottom_up(plan, &mut |plan| Ok(dropped(plan)))
}

/// The columns of a WatermarkAssigner without its watermark: the rowtime is still of its type.
fn dropped(plan: LogicalPlan) -> LogicalPlan {
    let LogicalPlan::WatermarkAssigner { input, schema, .. } = plan else {
        return plan;
    };
    let exprs = schema.fields.iter().enumerate().map(|(at, field)| Expr::column(at, field.data_type.clone())).collect();
    LogicalPlan::Project { input, exprs, schema }
}

fn looks_at_event_time(plan: &LogicalPlan) -> bool {
    let by_itself = match plan {
        LogicalPlan::WindowTableFunction { .. }
        | LogicalPlan::WindowAggregate { .. }
        | LogicalPlan::WindowJoin { .. }
        | LogicalPlan::IntervalJoin { .. } => true,
        // It may become one of those.
        LogicalPlan::Join { .. } => true,
        LogicalPlan::Sort { input, keys, .. } => keys.iter().any(|key| input.schema().field(key.column).data_type.is_rowtime()),
        LogicalPlan::Over { .. } | LogicalPlan::Rank { .. } => rank::looks_at_event_time(plan),
        LogicalPlan::Sink { table, .. } => !table.table.partition_keys.is_empty(),
        LogicalPlan::Project { exprs, .. } => exprs.iter().any(asks_for_watermark),
        LogicalPlan::Unnest { spec, .. } => spec.condition.iter().chain([&spec.collection]).any(asks_for_watermark),
        LogicalPlan::Filter { predicate, .. } => asks_for_watermark(predicate),
        _ => false,
    };
    by_itself || plan.inputs().into_iter().any(looks_at_event_time)
}

fn asks_for_watermark(expr: &Expr) -> bool {
    matches!(expr, Expr::Call { function, .. } if function == "CURRENT_WATERMARK")
        || expr.children().into_iter().any(asks_for_watermark)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::plan::optimize;
    use crate::plan::testing::*;

    #[test]
    fn a_query_without_event_time_makes_no_watermark() {
        let session = Session::new();
        let plan = optimize(columns(scan_with_watermark(), &[2, 0]), &session.cx()).unwrap();
        expect![[r#"
            Project(select=[ts, item])
            +- TableSourceScan(table=[[c, d, bids, project=[item, ts]]], fields=[item, ts])
        "#]]
        .assert_eq(&plan.to_string());
        assert!(plan.schema().field(0).data_type.is_rowtime());
        let all = optimize(scan_with_watermark(), &session.cx()).unwrap();
        expect![[r#"
            TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]]
        .assert_eq(&all.to_string());
    }

    #[test]
    fn a_sort_by_rowtime_needs_it() {
        let plan = sort(scan_with_watermark(), &[2], 0, None);
        assert_eq!(apply(plan.clone(), &Session::new().cx()).unwrap(), plan);
    }
}
