//! WatermarkAssigner over a scan → the scan, with the computed columns between the two.
//!
//! Mandatory, because it is more than speed: in the source a watermark is taken per split, so that reading several files at once
//! makes no row late. Where the watermark cannot go into the scan it stays an operator of its own.

use super::rule::bottom_up;
use crate::error::Result;
use crate::plan::{LogicalPlan, PlannerContext};

pub(super) fn apply(plan: LogicalPlan, _cx: &PlannerContext) -> Result<LogicalPlan> {
    bottom_up(plan, &mut |plan| Ok(pushed(plan)))
}

fn pushed(plan: LogicalPlan) -> LogicalPlan {
    let LogicalPlan::WatermarkAssigner { input, watermark: pushed, schema: output } = plan else {
        return plan;
    };
    let (computed_above, below) = match *input {
        LogicalPlan::Project { input, exprs, schema } if is_bare_scan(&input) => (Some((exprs, schema)), *input),
        other => (None, other),
    };
    match below {
        LogicalPlan::Scan {
            table,
            projection,
            metadata,
            computed: None,
            watermark: None,
            predicate: None,
            limit: None,
            schema: _,
        } => LogicalPlan::Scan {
            table,
            projection,
            metadata,
            computed: computed_above.map(|(exprs, _)| exprs),
            watermark: Some(pushed),
            predicate: None,
            limit: None,
            schema: output,
        },
        other => {
            let input = match computed_above {
                Some((exprs, schema)) => LogicalPlan::Project { input: Box::new(other), exprs, schema },
                None => other,
            };
            LogicalPlan::WatermarkAssigner { input: Box::new(input), watermark: pushed, schema: output }
        }
    }
}

/// Whether nothing was pushed into a scan yet.
pub(super) fn is_bare_scan(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Scan { computed: None, watermark: None, predicate: None, limit: None, .. })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::plan::testing::*;

    #[test]
    fn the_scan_takes_the_watermark() {
        let plan = apply(scan_with_watermark(), &Session::new().cx()).unwrap();
        assert_eq!(plan.schema(), scan_with_watermark().schema());
        expect![[r#"
            TableSourceScan(table=[[c, d, bids, watermark=[(ts - 2000:INTERVAL SECOND)]]], fields=[item, price, ts])
        "#]]
        .assert_eq(&plan.to_string());
    }

    #[test]
    fn over_a_filter_it_stays() {
        let LogicalPlan::WatermarkAssigner { input, watermark, schema } = scan_with_watermark() else { unreachable!() };
        let input = Box::new(filter(*input, compare(bigint(1), ">", int_literal(3))));
        let plan = LogicalPlan::WatermarkAssigner { input, watermark, schema };
        assert_eq!(apply(plan.clone(), &Session::new().cx()).unwrap(), plan);
    }
}
