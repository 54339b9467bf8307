//! LogicalPlans and the StreamGraphs made of them.

use expect_test::{Expect, expect};

use crate::error::ErrorKind;
use crate::plan::testing::*;
use crate::plan::{LogicalPlan, plan_inserts, plan_select};
use crate::types::ResultId;

fn check(plan: LogicalPlan, expected: Expect) {
    check_with(&Session::new(), plan, expected);
}

fn check_with(session: &Session, plan: LogicalPlan, expected: Expect) {
    let job = plan_select(plan, ResultId(7), &session.cx()).unwrap();
    expected.assert_eq(&job.stream_graph.to_string());
}

#[test]
fn filter_and_projection_are_one_calc() {
    let plan = columns(filter(scan(), compare(bigint(1), ">", int_literal(3))), &[0]);
    let session = Session::new().with("sql.optimizer.enabled", "false");
    check_with(
        &session,
        plan,
        expect![[r#"
        [1] TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts]) (parallelism=1)
        [2] Calc(select=[item], where=[(price > 3)]) (parallelism=1)
            <- [1] input=0 FORWARD
        [3] Collect(fields=[item]) (parallelism=1)
            <- [2] input=0 FORWARD
    "#]],
    );
}

#[test]
fn a_group_aggregate_is_reached_by_its_keys() {
    check(
        aggregate(scan(), &[0], vec![count("n"), sum(1, "s")]),
        expect![[r#"
            [1] TableSourceScan(table=[[c, d, bids, project=[item, price]]], fields=[item, price]) (parallelism=1)
            [2] GroupAggregate(groupBy=[item], select=[item, COUNT(*) AS n, SUM(price) AS s]) (parallelism=1)
                <- [1] input=0 HASH[item]
            [3] Collect(fields=[item, n, s]) (parallelism=1)
                <- [2] input=0 FORWARD
        "#]],
    );
}

#[test]
fn a_global_aggregate_runs_alone() {
    let session = Session::new().with("parallelism.default", "4");
    check_with(
        &session,
        aggregate(scan(), &[], vec![count("n")]),
        expect![[r#"
            [1] TableSourceScan(table=[[c, d, bids, project=[]]], fields=[]) (parallelism=4)
            [2] GroupAggregate(select=[COUNT(*) AS n]) (parallelism=1)
                <- [1] input=0 GLOBAL
            [3] Collect(fields=[n]) (parallelism=1)
                <- [2] input=0 FORWARD
        "#]],
    );
}

#[test]
fn a_window_aggregate_takes_the_place_of_its_table_function() {
    let windowed = windowed(scan_with_watermark(), TUMBLE_10S);
    let session = Session::new().with("sql.optimizer.enabled", "false");
    check_with(
        &session,
        aggregate(windowed, &[3, 4, 0], vec![count("n")]),
        expect![[r#"
            [1] TableSourceScan(table=[[c, d, bids, watermark=[(ts - 2000:INTERVAL SECOND)]]], fields=[item, price, ts]) (parallelism=1)
            [2] WindowAggregate(groupBy=[item], window=[TUMBLE(time_col=[ts], size=[10 s])], select=[item, COUNT(*) AS n, start('w$) AS window_start, end('w$) AS window_end]) (parallelism=1)
                <- [1] input=0 HASH[item]
            [3] Calc(select=[window_start, window_end, item, n]) (parallelism=1)
                <- [2] input=0 FORWARD
            [4] Collect(fields=[window_start, window_end, item, n]) (parallelism=1)
                <- [3] input=0 FORWARD
        "#]],
    );
}

#[test]
fn union_inputs_share_an_input_number_and_equal_scans_are_read_once() {
    let plan = aggregate(union(vec![scan(), filter(scan(), compare(bigint(1), ">", int_literal(3)))]), &[0], vec![count("n")]);
    let session = Session::new().with("sql.optimizer.enabled", "false");
    check_with(
        &session,
        plan,
        expect![[r#"
        [1] TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts]) (parallelism=1)
        [2] Calc(select=[item, price, ts], where=[(price > 3)]) (parallelism=1)
            <- [1] input=0 FORWARD
        [3] GroupAggregate(groupBy=[item], select=[item, COUNT(*) AS n]) (parallelism=1)
            <- [1] input=0 HASH[item]
            <- [2] input=0 HASH[item]
        [4] Collect(fields=[item, n]) (parallelism=1)
            <- [3] input=0 FORWARD
    "#]],
    );
}

#[test]
fn a_filter_above_a_scalar_join_is_its_predicate() {
    let join = scalar_join(scan(), aggregate(scan(), &[], vec![sum(1, "total")]));
    let plan = columns(filter(join, compare(bigint(1), ">", bigint(3))), &[0]);
    let session = Session::new().with("sql.optimizer.enabled", "false");
    check_with(
        &session,
        plan,
        expect![[r#"
        [1] TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts]) (parallelism=1)
        [2] GroupAggregate(select=[SUM(price) AS total]) (parallelism=1)
            <- [1] input=0 GLOBAL
        [3] ScalarJoin(where=[(price > total)], select=[item, price, ts, total]) (parallelism=1)
            <- [1] input=0 GLOBAL
            <- [2] input=1 GLOBAL
        [4] Calc(select=[item]) (parallelism=1)
            <- [3] input=0 FORWARD
        [5] Collect(fields=[item]) (parallelism=1)
            <- [4] input=0 FORWARD
    "#]],
    );
}

#[test]
fn sorts_choose_their_strategy() {
    check(
        sort(scan(), &[1], 1, Some(3)),
        expect![[r#"
        [1] TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts]) (parallelism=1)
        [2] SortLimit(orderBy=[price ASC], offset=[1], fetch=[3]) (parallelism=1)
            <- [1] input=0 GLOBAL
        [3] Collect(fields=[item, price, ts]) (parallelism=1)
            <- [2] input=0 FORWARD
    "#]],
    );
    check(
        sort(scan(), &[], 0, Some(5)),
        expect![[r#"
            [1] TableSourceScan(table=[[c, d, bids, limit=[5]]], fields=[item, price, ts]) (parallelism=1)
            [2] Limit(offset=[0], fetch=[5]) (parallelism=1)
                <- [1] input=0 FORWARD
            [3] Collect(fields=[item, price, ts]) (parallelism=1)
                <- [2] input=0 FORWARD
        "#]],
    );
    check(
        sort(scan_with_watermark(), &[2], 0, None),
        expect![[r#"
            [1] TableSourceScan(table=[[c, d, bids, watermark=[(ts - 2000:INTERVAL SECOND)]]], fields=[item, price, ts]) (parallelism=1)
            [2] TemporalSort(orderBy=[ts ASC]) (parallelism=1)
                <- [1] input=0 GLOBAL
            [3] Collect(fields=[item, price, ts]) (parallelism=1)
                <- [2] input=0 FORWARD
        "#]],
    );
    check(
        sort(scan_of(table("file", "bounded", &[], &[])), &[1], 2, None),
        expect![[r#"
        [1] TableSourceScan(table=[[c, d, file]], fields=[item, price, ts]) (parallelism=1)
        [2] BoundedSort(orderBy=[price ASC]) (parallelism=1)
            <- [1] input=0 GLOBAL
        [3] Limit(offset=[2], fetch=[unlimited]) (parallelism=1)
            <- [2] input=0 FORWARD
        [4] Collect(fields=[item, price, ts]) (parallelism=1)
            <- [3] input=0 FORWARD
    "#]],
    );
    let error = plan_select(sort(scan(), &[1], 0, None), ResultId(1), &Session::new().cx()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    expect![[r#"
        error (0A000): ORDER BY "price" without LIMIT, a sort on a non-time-attribute field of an unbounded input, is not supported
        hint: add LIMIT, or sort first by the rowtime in ascending order"#]].assert_eq(&error.render());
}

#[test]
fn a_statement_set_is_one_graph() {
    let big = filter(scan(), compare(bigint(1), ">", int_literal(100)));
    let plans = vec![sink(scan(), table("all", "append", &[], &[])), sink(big, table("big", "append", &[], &[]))];
    let session = Session::new().with("sql.optimizer.enabled", "false");
    let job = plan_inserts(plans, &session.cx()).unwrap();
    assert_eq!(job.stream_graph.name, "insert-into_c.d.all,c.d.big");
    expect![[r#"
        [1] TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts]) (parallelism=1)
        [2] Sink(table=[c.d.all], fields=[item, price, ts]) (parallelism=1)
            <- [1] input=0 FORWARD
        [3] Calc(select=[item, price, ts], where=[(price > 100)]) (parallelism=1)
            <- [1] input=0 FORWARD
        [4] Sink(table=[c.d.big], fields=[item, price, ts]) (parallelism=1)
            <- [3] input=0 FORWARD
    "#]]
    .assert_eq(&job.stream_graph.to_string());
}

#[test]
fn parallelism_differs_only_where_asked_for() {
    let session = Session::new().with("parallelism.default", "2");
    let narrow = table("bids", "append", &[], &[("scan.parallelism", "1")]);
    let plan = sink(columns(scan_of(narrow), &[0, 1, 2]), table("out", "append", &[], &[("sink.parallelism", "3")]));
    let job = plan_inserts(vec![plan], &session.cx()).unwrap();
    expect![[r#"
        [1] TableSourceScan(table=[[c, d, bids]], fields=[item, price, ts]) (parallelism=1)
        [2] Sink(table=[c.d.out], fields=[item, price, ts]) (parallelism=3)
            <- [1] input=0 REBALANCE
    "#]]
    .assert_eq(&job.stream_graph.to_string());
}

#[test]
fn updates_stay_together_on_the_way_to_a_wider_sink() {
    let session = Session::new();
    let totals = || aggregate(scan(), &[0], vec![sum(1, "price")]);
    let keyed = |key: &[&str]| sink(totals(), table("out", "retract", key, &[("sink.parallelism", "3")]));
    let job = plan_inserts(vec![keyed(&["item"])], &session.cx()).unwrap();
    expect![[r#"
        [1] TableSourceScan(table=[[c, d, bids, project=[item, price]]], fields=[item, price]) (parallelism=1)
        [2] GroupAggregate(groupBy=[item], select=[item, SUM(price) AS price]) (parallelism=1)
            <- [1] input=0 HASH[item]
        [3] Sink(table=[c.d.out], fields=[item, price]) (parallelism=3)
            <- [2] input=0 HASH[item]
    "#]]
    .assert_eq(&job.stream_graph.to_string());
    let job = plan_inserts(vec![keyed(&[])], &session.cx()).unwrap();
    expect![[r#"
        [1] TableSourceScan(table=[[c, d, bids, project=[item, price]]], fields=[item, price]) (parallelism=1)
        [2] GroupAggregate(groupBy=[item], select=[item, SUM(price) AS price]) (parallelism=1)
            <- [1] input=0 HASH[item]
        [3] Sink(table=[c.d.out], fields=[item, price]) (parallelism=3)
            <- [2] input=0 GLOBAL
    "#]]
    .assert_eq(&job.stream_graph.to_string());
}

#[test]
fn planning_twice_gives_the_same_graph() {
    let plan = || {
        let filtered = filter(windowed(scan_with_watermark(), TUMBLE_10S), compare(bigint(1), ">", int_literal(3)));
        aggregate(filtered, &[0, 3, 4], vec![count("n")])
    };
    let session = Session::new();
    let graph = |result| plan_select(plan(), result, &session.cx()).unwrap().stream_graph;
    assert_eq!(graph(ResultId(1)), graph(ResultId(1)));
    let ids = |result| {
        let job = crate::job_graph::generate(&graph(result)).unwrap();
        job.vertices.iter().flat_map(|vertex| vertex.operators.iter().map(|operator| operator.id)).collect::<Vec<_>>()
    };
    assert_eq!(ids(ResultId(1)), ids(ResultId(2)));
}

#[test]
fn graphs_survive_serialisation() {
    let session = Session::new();
    let plan = aggregate(filter(scan(), compare(bigint(1), ">", int_literal(3))), &[0], vec![count("n")]);
    let graph = plan_select(plan, ResultId(1), &session.cx()).unwrap().stream_graph;
    assert_eq!(serde_json::from_str::<crate::stream_graph::StreamGraph>(&serde_json::to_string(&graph).unwrap()).unwrap(), graph);
    let job = crate::job_graph::generate(&graph).unwrap();
    assert_eq!(serde_json::from_str::<crate::job_graph::JobGraph>(&serde_json::to_string(&job).unwrap()).unwrap(), job);
}

#[test]
fn more_subtasks_than_key_groups_are_refused() {
    let session = Session::new().with("parallelism.default", "200");
    let error = plan_select(scan(), ResultId(1), &session.cx()).unwrap_err();
    assert_eq!(error.message(), "value '200' of option 'parallelism.default' is not between 1 and 128");
    let wide = scan_of(table("bids", "append", &[], &[("scan.parallelism", "129")]));
    let error = plan_select(wide, ResultId(1), &Session::new().cx()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
}

#[test]
fn a_join_is_reached_by_its_keys_and_without_keys_runs_alone() {
    let join = |condition| LogicalPlan::Join {
        schema: scalar_join(scan(), scan()).schema().clone(),
        left: Box::new(scan()),
        right: Box::new(scan()),
        join_type: crate::plan::JoinType::Inner,
        condition,
        ttl: [None; 2],
    };
    let session = || Session::new().with("parallelism.default", "2");
    check_with(
        &session(),
        columns(join(compare(bigint(1), "=", bigint(4))), &[0, 3]),
        expect![[r#"
        [1] TableSourceScan(table=[[c, d, bids, project=[item, price]]], fields=[item, price]) (parallelism=2)
        [2] RegularJoin(joinType=[InnerJoin], where=[(price = price)], select=[item, item]) (parallelism=2)
            <- [1] input=0 HASH[price]
            <- [1] input=1 HASH[price]
        [3] Collect(fields=[item, item]) (parallelism=1)
            <- [2] input=0 REBALANCE
    "#]],
    );
    check_with(
        &session(),
        columns(join(compare(bigint(1), ">", bigint(4))), &[0]),
        expect![[r#"
        [1] TableSourceScan(table=[[c, d, bids, project=[item, price]]], fields=[item, price]) (parallelism=2)
        [2] Calc(select=[price]) (parallelism=2)
            <- [1] input=0 FORWARD
        [3] RegularJoin(joinType=[InnerJoin], where=[(price > price)], select=[item]) (parallelism=1)
            <- [1] input=0 GLOBAL
            <- [2] input=1 GLOBAL
        [4] Collect(fields=[item]) (parallelism=1)
            <- [3] input=0 FORWARD
    "#]],
    );
}
