//! Join of rows that carry the same window, by equality of both its bounds → WindowJoin.
//!
//! Both sides must carry windows of the same function over time attributes of one type. With one bound alone, or with windows of
//! different kinds, the join stays a regular one, as in Flink.

use super::expressions::conjuncts;
use super::join_condition::equi_join;
use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::plan::window_trace::{WindowTrace, trace_complete};
use crate::plan::{LogicalPlan, PlannerContext};
use crate::stream_graph::{WindowColumns, WindowJoinSpec, WindowProperty};

pub(super) fn lower(plan: LogicalPlan, cx: &PlannerContext) -> Result<LogicalPlan> {
    let LogicalPlan::Join { left, right, join_type, condition, schema, ttl } = plan else {
        return Ok(plan);
    };
    let Some(windows) = Windows::of(&left, &right) else {
        return Ok(LogicalPlan::Join { left, right, join_type, condition, schema, ttl });
    };
    let (bounds, terms): (Vec<Expr>, Vec<Expr>) =
        conjuncts(condition.clone()).into_iter().partition(|term| windows.equated(term).is_some());
    let bound = |wanted: WindowProperty| {
        bounds.iter().filter_map(|term| windows.equated(term)).find(|(property, ..)| *property == wanted)
    };
    let (Some((_, left_start, right_start)), Some((_, left_end, right_end))) =
        (bound(WindowProperty::Start), bound(WindowProperty::End))
    else {
        return Ok(LogicalPlan::Join { left, right, join_type, condition, schema, ttl });
    };
    let time_type = windows.left.time_type.clone();
    if time_type.is_proctime() {
        return Err(Error::unsupported("window join over processing time").with_hint("make the windows from a rowtime attribute"));
    }
    let join = equi_join(*left, *right, join_type, terms, cx.functions);
    let spec = WindowJoinSpec {
        join_type,
        left_window: WindowColumns { start: left_start, end: left_end },
        right_window: WindowColumns { start: right_start, end: right_end },
        time_type,
        keys: join.keys,
        residual: join.residual,
        left_schema: join.left.schema().clone(),
        right_schema: join.right.schema().clone(),
        output: join.output,
    };
    Ok(LogicalPlan::WindowJoin { left: Box::new(join.left), right: Box::new(join.right), spec, schema })
}

/// The like windows of both sides.
struct Windows {
    left: WindowTrace,
    right: WindowTrace,
}

impl Windows {
    fn of(left: &LogicalPlan, right: &LogicalPlan) -> Option<Windows> {
        let (left, right) = (trace_complete(left)?, trace_complete(right)?);
        let alike = left.kind == right.kind
            && left.time_type.kind == right.time_type.kind
            && left.time_type.is_rowtime() == right.time_type.is_rowtime();
        alike.then_some(Windows { left, right })
    }

    /// The bound whose equality on both sides a term asks for, with its columns left and right.
    fn equated(&self, term: &Expr) -> Option<(WindowProperty, usize, usize)> {
        let width = self.left.columns.len();
        let Expr::Call { function, args, .. } = term else { return None };
        let ("=", [Expr::Column { index: a, .. }, Expr::Column { index: b, .. }]) = (function.as_str(), args.as_slice()) else {
            return None;
        };
        let (left, right) = (*a.min(b), a.max(b).checked_sub(width)?);
        let property = (*self.left.columns.get(left)?)?;
        (property != WindowProperty::Time && self.right.columns[right] == Some(property)).then_some((property, left, right))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::plan::optimize;
    use crate::plan::testing::*;
    use crate::stream_graph::{JoinType, WindowKind};
    use crate::types::{DataType, Schema};

    const HOP: WindowKind = WindowKind::Hop { slide_ms: 5_000, size_ms: 10_000, offset_ms: 0 };

    /// Windows of `bids` joined with one another: left columns 0 to 5, right ones 6 to 11, the bounds 3, 4 and 9, 10.
    fn joined(join_type: JoinType, right: WindowKind, equal: &[(usize, usize)]) -> LogicalPlan {
        let [left, right] = [TUMBLE_10S, right].map(|kind| Box::new(windowed(scan_with_watermark(), kind)));
        let fields = left.schema().fields.iter().chain(&right.schema().fields).cloned();
        let schema = Schema::new(fields.take(if join_type.is_left_only() { 6 } else { 12 }).collect()).into();
        let both: Vec<DataType> =
            left.schema().fields.iter().chain(&right.schema().fields).map(|field| field.data_type.clone()).collect();
        let column = |at: usize| Expr::column(at, both[at].clone());
        let condition = Expr::And(equal.iter().map(|(a, b)| compare(column(*a), "=", column(*b))).collect());
        LogicalPlan::Join { left, right, join_type, condition, schema, ttl: [None; 2] }
    }

    fn is_window_join(plan: LogicalPlan) -> bool {
        matches!(lower(plan, &Session::new().cx()).unwrap(), LogicalPlan::WindowJoin { .. })
    }

    #[test]
    fn both_bounds_of_windows_of_one_kind_make_a_window_join() {
        assert!(is_window_join(joined(JoinType::Full, TUMBLE_10S, &[(3, 9), (4, 10), (0, 6)])));
        assert!(is_window_join(joined(JoinType::Inner, TUMBLE_10S, &[(10, 4), (9, 3)])));
        assert!(!is_window_join(joined(JoinType::Inner, TUMBLE_10S, &[(3, 9), (0, 6)])));
        assert!(!is_window_join(joined(JoinType::Inner, TUMBLE_10S, &[(3, 10), (4, 9)])));
        assert!(!is_window_join(joined(JoinType::Inner, HOP, &[(3, 9), (4, 10)])));
    }

    fn check(plan: LogicalPlan, expected: Expect) {
        expected.assert_eq(&optimize(plan, &Session::new().cx()).unwrap().to_string());
    }

    #[test]
    fn a_window_aggregate_stands_on_the_window_of_a_side_that_is_never_null() {
        let join = |join_type| joined(join_type, TUMBLE_10S, &[(3, 9), (4, 10), (0, 6)]);
        check(
            aggregate(join(JoinType::Left), &[3, 4], vec![count("n")]),
            expect![[r#"
            Project(select=[window_start, window_end, n])
            +- WindowAggregate(window=[ATTACHED(win_start=[window_start], win_end=[window_end])], select=[COUNT(*) AS n, start('w$) AS window_start, end('w$) AS window_end])
               +- WindowJoin(leftWindow=[win_start=[window_start], win_end=[window_end]], rightWindow=[win_start=[window_start], win_end=[window_end]], joinType=[LeftOuterJoin], where=[(item = item)], select=[window_start, window_end])
                  :- Project(select=[item, window_start, window_end])
                  :  +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[10 s])])
                  :     +- TableSourceScan(table=[[c, d, bids, project=[item, ts], watermark=[(ts - 2000:INTERVAL SECOND)]]], fields=[item, ts])
                  +- Project(select=[item, window_start, window_end])
                     +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[10 s])])
                        +- TableSourceScan(table=[[c, d, bids, project=[item, ts], watermark=[(ts - 2000:INTERVAL SECOND)]]], fields=[item, ts])
        "#]],
        );
        check(
            aggregate(join(JoinType::Left), &[9, 10], vec![count("n")]),
            expect![[r#"
            GroupAggregate(groupBy=[window_start, window_end], select=[window_start, window_end, COUNT(*) AS n])
            +- WindowJoin(leftWindow=[win_start=[window_start], win_end=[window_end]], rightWindow=[win_start=[window_start], win_end=[window_end]], joinType=[LeftOuterJoin], where=[(item = item)], select=[window_start, window_end])
               :- Project(select=[item, window_start, window_end])
               :  +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[10 s])])
               :     +- TableSourceScan(table=[[c, d, bids, project=[item, ts], watermark=[(ts - 2000:INTERVAL SECOND)]]], fields=[item, ts])
               +- Project(select=[item, window_start, window_end])
                  +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[10 s])])
                     +- TableSourceScan(table=[[c, d, bids, project=[item, ts], watermark=[(ts - 2000:INTERVAL SECOND)]]], fields=[item, ts])
        "#]],
        );
    }
}
