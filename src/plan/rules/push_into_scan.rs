//! Filters and limits right above a scan go into it: the source evaluates them after the watermark, and reads no further than needed.

use super::expressions::{conjunction, conjuncts, filtered, is_deterministic};
use super::rule::bottom_up;
use crate::error::Result;
use crate::plan::{LogicalPlan, PlannerContext};
use crate::types::ChangelogMode;

pub(super) fn apply(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    bottom_up(plan, &mut |plan| match plan {
        LogicalPlan::Filter { input, predicate } => Ok(push_filter(*input, predicate, cx)),
        LogicalPlan::Sort { input, keys, offset, fetch, ttl } => {
            let input = match fetch.and_then(|fetch| fetch.checked_add(offset)) {
                Some(needed) if keys.is_empty() => Box::new(push_limit(*input, needed, cx)?),
                _ => input,
            };
            Ok(LogicalPlan::Sort { input, keys, offset, fetch, ttl })
        }
        other => Ok(other),
    })
}

fn push_filter(input: LogicalPlan, filter: crate::expr::Expr, cx: &PlannerContext) -> LogicalPlan {
    match input {
        LogicalPlan::Scan { table, projection, metadata, computed, watermark, predicate, limit: None, schema } => {
            let (down, stay) = conjuncts(filter).into_iter().partition(|term| is_deterministic(term, cx.functions));
            let mut all: Vec<_> = predicate.into_iter().flat_map(conjuncts).collect();
            all.extend::<Vec<_>>(down);
            let predicate = conjunction(all);
            filtered(LogicalPlan::Scan { table, projection, metadata, computed, watermark, predicate, limit: None, schema }, stay)
        }
        other => LogicalPlan::Filter { input: Box::new(other), predicate: filter },
    }
}

/// Below projections; a filter in between may need any number of rows.
fn push_limit(plan: LogicalPlan, needed: u64, cx: &PlannerContext) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Project { input, exprs, schema } => {
            LogicalPlan::Project { input: Box::new(push_limit(*input, needed, cx)?), exprs, schema }
        }
        LogicalPlan::Scan { table, projection, metadata, computed, watermark, predicate, limit, schema }
            if table.source_abilities(cx)?.changelog == ChangelogMode::InsertOnly =>
        {
            let limit = Some(limit.map_or(needed, |limit| limit.min(needed)));
            LogicalPlan::Scan { table, projection, metadata, computed, watermark, predicate, limit, schema }
        }
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::plan::testing::*;

    fn check(plan: LogicalPlan, expected: Expect) {
        expected.assert_eq(&apply(plan, &Session::new().cx()).unwrap().to_string());
    }

    #[test]
    fn a_filter_and_the_limit_above_it_go_into_the_scan() {
        let plan = columns(filter(scan(), compare(bigint(1), ">", int_literal(3))), &[0]);
        check(
            sort(plan, &[], 2, Some(5)),
            expect![[r#"
            Sort(offset=[2], fetch=[5])
            +- Project(select=[item])
               +- TableSourceScan(table=[[c, d, bids, filter=[(price > 3)], limit=[7]]], fields=[item, price, ts])
        "#]],
        );
    }

    #[test]
    fn a_limit_stays_above_a_sort_and_above_changes() {
        check(
            sort(scan(), &[1], 0, Some(5)),
            expect![[r#"
            Sort(orderBy=[price ASC], offset=[0], fetch=[5])
            +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
        "#]],
        );
        check(
            sort(scan_of(table("cdc", "retract", &[], &[])), &[], 0, Some(5)),
            expect![[r#"
            Sort(offset=[0], fetch=[5])
            +- TableSourceScan(table=[[c, d, cdc]], fields=[item, price, ts])
        "#]],
        );
    }

    #[test]
    fn a_filter_above_a_limit_does_not_come_before_it() {
        let limited = sort(scan(), &[], 0, Some(5));
        check(
            filter(limited, compare(bigint(1), ">", int_literal(3))),
            expect![[r#"
            Filter(where=[(price > 3)])
            +- Sort(offset=[0], fetch=[5])
               +- TableSourceScan(table=[[c, d, bids, limit=[5]]], fields=[item, price, ts])
        "#]],
        );
    }
}
