//! All rules together, and the rules whose tests need more than one plan each.

use expect_test::{Expect, expect};

use super::rule::RULES;
use super::{optimize, prune_columns, push_filters, window_aggregate};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::testing::*;
use crate::plan::{LogicalPlan, PlannerContext};
use crate::stream_graph::WindowKind;

fn check(apply: fn(LogicalPlan, &PlannerContext) -> Result<LogicalPlan>, plan: LogicalPlan, expected: Expect) {
    let schema = plan.schema().clone();
    let rewritten = apply(plan, &Session::new().cx()).unwrap();
    assert_eq!(*rewritten.schema(), schema);
    expected.assert_eq(&rewritten.to_string());
}

fn above(column: usize) -> Expr {
    compare(bigint(column), ">", int_literal(3))
}

fn tumbled() -> LogicalPlan {
    windowed(scan_with_watermark(), TUMBLE_10S)
}

#[test]
fn the_watermark_and_what_is_read_go_into_the_scan() {
    let plan = columns(filter(scan_with_watermark(), above(1)), &[0]);
    check(
        optimize,
        plan,
        expect![[r#"
            Project(select=[item])
            +- TableSourceScan(table=[[c, d, bids, project=[item, price], filter=[(price > 3)]]], fields=[item, price])
        "#]],
    );
}

#[test]
fn a_window_query_as_a_whole() {
    let plan =
        aggregate(columns(filter(tumbled(), above(1)), &[0, 3, 4, 1]), &[0, 1, 2], vec![count("n"), sum(3, "s"), count("m")]);
    check(
        optimize,
        columns(plan, &[0, 3, 5]),
        expect![[r#"
        Project(select=[item, n, n AS m])
        +- WindowAggregate(groupBy=[item], window=[TUMBLE(time_col=[ts], size=[10 s])], select=[item, COUNT(*) AS n])
           +- Project(select=[item, ts])
              +- TableSourceScan(table=[[c, d, bids, watermark=[(ts - 2000:INTERVAL SECOND)], filter=[(price > 3)]]], fields=[item, price, ts])
    "#]],
    );
}

#[test]
fn without_the_optimizer_only_what_must_be_done_is_done() {
    let session = Session::new().with("sql.optimizer.enabled", "false");
    let plan = aggregate(filter(tumbled(), above(1)), &[0, 3, 4], vec![count("n")]);
    expect![[r#"
        Project(select=[item, window_start, window_end, n])
        +- WindowAggregate(groupBy=[item], window=[TUMBLE(time_col=[ts], size=[10 s])], select=[item, COUNT(*) AS n, start('w$) AS window_start, end('w$) AS window_end])
           +- Filter(where=[(price > 3)])
              +- TableSourceScan(table=[[c, d, bids, watermark=[(ts - 2000:INTERVAL SECOND)]]], fields=[item, price, ts])
    "#]].assert_eq(&optimize(plan, &session.cx()).unwrap().to_string());
}

#[test]
fn optimizing_twice_changes_nothing_more() {
    let plan = || aggregate(columns(filter(tumbled(), above(1)), &[0, 3, 4, 1]), &[0, 1, 2], vec![count("n"), sum(3, "s")]);
    let session = Session::new();
    let once = optimize(plan(), &session.cx()).unwrap();
    assert_eq!(optimize(once.clone(), &session.cx()).unwrap(), once);
    assert!(RULES.iter().all(|rule| !rule.name.is_empty()));
}

#[test]
fn a_window_keeps_its_place_among_the_columns() {
    check(
        window_aggregate::apply,
        aggregate(tumbled(), &[4, 0, 3], vec![count("n")]),
        expect![[r#"
        Project(select=[window_end, item, window_start, n])
        +- WindowAggregate(groupBy=[item], window=[TUMBLE(time_col=[ts], size=[10 s])], select=[item, COUNT(*) AS n, end('w$) AS window_end, start('w$) AS window_start])
           +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
              +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
    "#]],
    );
}

#[test]
fn a_filter_on_the_window_attaches_it() {
    let on_window = compare(Expr::column(3, timestamp()), ">", Expr::column(2, timestamp()));
    check(
        window_aggregate::apply,
        aggregate(filter(tumbled(), on_window), &[0, 3, 4], vec![count("n")]),
        expect![[r#"
        Project(select=[item, window_start, window_end, n])
        +- WindowAggregate(groupBy=[item], window=[ATTACHED(win_start=[window_start], win_end=[window_end])], select=[item, COUNT(*) AS n, start('w$) AS window_start, end('w$) AS window_end])
           +- Filter(where=[(window_start > ts)])
              +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[10 s])])
                 +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
                    +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
    "#]],
    );
}

#[test]
fn an_aggregate_of_a_window_column_attaches_it() {
    check(
        window_aggregate::apply,
        aggregate(tumbled(), &[3, 4], vec![sum(5, "s")]),
        expect![[r#"
        Project(select=[window_start, window_end, s])
        +- WindowAggregate(window=[ATTACHED(win_start=[window_start], win_end=[window_end])], select=[SUM(window_time) AS s, start('w$) AS window_start, end('w$) AS window_end])
           +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[10 s])])
              +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
                 +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
    "#]],
    );
}

#[test]
fn one_bound_alone_is_no_window_aggregate() {
    check(
        window_aggregate::apply,
        aggregate(tumbled(), &[0, 3], vec![count("n")]),
        expect![[r#"
        GroupAggregate(groupBy=[item, window_start], select=[item, window_start, COUNT(*) AS n])
        +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[10 s])])
           +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
              +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
    "#]],
    );
}

#[test]
fn a_second_aggregate_by_the_same_window_is_attached() {
    let first = aggregate(tumbled(), &[3, 4, 0], vec![count("n")]);
    check(
        window_aggregate::apply,
        aggregate(first, &[0, 1], vec![sum(3, "total")]),
        expect![[r#"
        Project(select=[window_start, window_end, total])
        +- WindowAggregate(window=[ATTACHED(win_start=[window_start], win_end=[window_end])], select=[SUM(n) AS total, start('w$) AS window_start, end('w$) AS window_end])
           +- Project(select=[window_start, window_end, item, n])
              +- WindowAggregate(groupBy=[item], window=[TUMBLE(time_col=[ts], size=[10 s])], select=[item, COUNT(*) AS n, start('w$) AS window_start, end('w$) AS window_end])
                 +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
                    +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
    "#]],
    );
}

#[test]
fn a_window_on_window_time_is_assigned_anew() {
    let inner = columns(aggregate(tumbled(), &[3, 4, 5, 0], vec![count("n")]), &[3, 4, 2]);
    let minutes = windowed(inner, WindowKind::Tumble { size_ms: 60_000, offset_ms: 0 });
    check(
        window_aggregate::apply,
        aggregate(minutes, &[3, 4], vec![sum(1, "total")]),
        expect![[r#"
        Project(select=[window_start, window_end, total])
        +- WindowAggregate(window=[TUMBLE(time_col=[window_time], size=[1 min])], select=[SUM(n) AS total, start('w$) AS window_start, end('w$) AS window_end])
           +- Project(select=[item, n, window_time])
              +- Project(select=[window_start, window_end, window_time, item, n])
                 +- WindowAggregate(groupBy=[item], window=[TUMBLE(time_col=[ts], size=[10 s])], select=[item, COUNT(*) AS n, start('w$) AS window_start, end('w$) AS window_end, rowtime('w$) AS window_time])
                    +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
                       +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
    "#]],
    );
}

#[test]
fn sessions_are_aggregated_by_their_own_keys_alone() {
    let by_item = |keys: &[usize]| {
        let mut plan = windowed(scan_with_watermark(), WindowKind::Session { gap_ms: 10_000 });
        let LogicalPlan::WindowTableFunction { window, .. } = &mut plan else { unreachable!("it is one") };
        window.partition_keys = vec![0];
        aggregate(plan, keys, vec![count("n")])
    };
    let is_window_aggregate = |keys: &[usize]| {
        let text = window_aggregate::apply(by_item(keys), &Session::new().cx()).unwrap().to_string();
        text.contains("WindowAggregate(groupBy=[item], window=[SESSION(time_col=[ts], gap=[10 s], partition keys=[item])]")
    };
    assert!(is_window_aggregate(&[0, 3, 4]));
    assert!(is_window_aggregate(&[4, 0, 3]));
    assert!(!is_window_aggregate(&[3, 4]), "rows of several keys");
    assert!(!is_window_aggregate(&[0, 1, 3, 4]), "some rows of a key");
}

#[test]
fn filters_stay_above_sessions_unless_they_take_whole_keys() {
    let mut plan = windowed(scan_with_watermark(), WindowKind::Session { gap_ms: 10_000 });
    let LogicalPlan::WindowTableFunction { window, .. } = &mut plan else { unreachable!("it is one") };
    window.partition_keys = vec![1];
    let of_a_key = compare(bigint(1), "<", int_literal(9));
    let of_a_row = compare(Expr::column(2, timestamp()), "<", Expr::column(3, timestamp()));
    check(
        push_filters::apply,
        filter(plan, Expr::And(vec![of_a_key, of_a_row])),
        expect![[r#"
        Filter(where=[(ts < window_start)])
        +- WindowTableFunction(window=[SESSION(time_col=[ts], gap=[10 s], partition keys=[price])])
           +- Filter(where=[(price < 9)])
              +- WatermarkAssigner(rowtime=[ts], watermark=[(ts - 2000:INTERVAL SECOND)])
                 +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
    "#]],
    );
}

#[test]
fn unused_columns_are_not_read() {
    check(
        prune_columns::apply,
        columns(filter(scan(), above(1)), &[0]),
        expect![[r#"
        Project(select=[item])
        +- Project(select=[item])
           +- Filter(where=[(price > 3)])
              +- TableSourceScan(table=[[c, d, bids, project=[item, price]]], fields=[item, price])
    "#]],
    );
    check(
        prune_columns::apply,
        aggregate(scan(), &[], vec![count("n")]),
        expect![[r#"
        GroupAggregate(select=[COUNT(*) AS n])
        +- TableSourceScan(table=[[c, d, bids, project=[]]], fields=[])
    "#]],
    );
    check(
        prune_columns::apply,
        columns(sort(scan(), &[1], 0, Some(3)), &[0]),
        expect![[r#"
        Project(select=[item])
        +- Sort(orderBy=[price ASC], offset=[0], fetch=[3])
           +- TableSourceScan(table=[[c, d, bids, project=[item, price]]], fields=[item, price])
    "#]],
    );
}

#[test]
fn unused_aggregates_are_not_computed() {
    let plan = aggregate(scan(), &[0], vec![count("n"), sum(1, "s")]);
    check(
        prune_columns::apply,
        columns(plan, &[1]),
        expect![[r#"
        Project(select=[n])
        +- GroupAggregate(groupBy=[item], select=[item, COUNT(*) AS n])
           +- TableSourceScan(table=[[c, d, bids, project=[item]]], fields=[item])
    "#]],
    );
    let global = aggregate(scan(), &[], vec![count("n"), sum(1, "s")]);
    check(
        prune_columns::apply,
        project(global, vec![int_literal(1)], &["one"]),
        expect![[r#"
        Project(select=[1 AS one])
        +- GroupAggregate(select=[COUNT(*) AS n])
           +- TableSourceScan(table=[[c, d, bids, project=[]]], fields=[])
    "#]],
    );
}

#[test]
fn all_inputs_of_a_union_are_pruned_alike() {
    let plan = union(vec![scan(), filter(scan(), above(1))]);
    check(
        prune_columns::apply,
        columns(plan, &[2, 0]),
        expect![[r#"
        Project(select=[ts, item])
        +- Union(all=[true], union=[item, ts])
           :- TableSourceScan(table=[[c, d, bids, project=[item, ts]]], fields=[item, ts])
           +- Project(select=[item, ts])
              +- Filter(where=[(price > 3)])
                 +- TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts])
    "#]],
    );
}

#[test]
fn the_one_row_of_a_scalar_subquery_is_still_asked_for() {
    let join = scalar_join(scan(), aggregate(scan(), &[], vec![sum(1, "total"), count("n")]));
    check(
        prune_columns::apply,
        columns(join, &[0]),
        expect![[r#"
        Project(select=[item])
        +- ScalarJoin(select=[item, total])
           :- TableSourceScan(table=[[c, d, bids, project=[item]]], fields=[item])
           +- GroupAggregate(select=[SUM(price) AS total])
              +- TableSourceScan(table=[[c, d, bids, project=[price]]], fields=[price])
    "#]],
    );
}
