//! Every operator with a time to live, on a clock that the test moves: what is over is not seen, its memory is given back, and a
//! restart does not make it younger.

use std::sync::Arc;

use crate::config::Configuration;
use crate::expr::{AggregateCall, SortKey, builtin_functions};
use crate::stream_graph::{
    JoinKey, JoinType, OperatorSpec, OverCall, OverFrame, OverOperatorSpec, OverSpec, OverStrategy, RankEnd, RankOperatorSpec,
    RankRange, RankSpec, RankStrategy, RegularJoinSpec, ScalarJoinSpec, SinkMaterializerSpec, SortLimitSpec,
};
use crate::testing::operator_harness::OperatorHarness;
use crate::types::{DataType, Field, Schema, TypeKind};

/// One second.
const TTL: &str = "1 s";

fn schema() -> Schema {
    Schema::new(vec![Field::new("k", DataType::string()), Field::new("v", DataType::nullable(TypeKind::BigInt))])
}

fn settings() -> Configuration {
    let mut settings = Configuration::default();
    settings.set("table.exec.state.ttl", TTL).unwrap();
    settings
}

fn harness(spec: &OperatorSpec, inputs: usize) -> OperatorHarness {
    OperatorHarness::subtask(spec, vec![schema(); inputs], 0, 1, &settings()).unwrap()
}

/// Stopped, and restored elsewhere at the same time.
fn restarted(mut old: OperatorHarness, spec: &OperatorSpec, inputs: usize) -> OperatorHarness {
    let now = old.now();
    let snapshot = old.snapshot().unwrap();
    let mut new = harness(spec, inputs);
    new.set_time(now).unwrap();
    new.restore(&[snapshot]).unwrap();
    new
}

fn call(function: &str, distinct: bool) -> AggregateCall {
    let bigint = DataType::nullable(TypeKind::BigInt);
    let args = if function == "COUNT(*)" { vec![] } else { vec![crate::expr::Expr::column(1, bigint)] };
    let name = function.trim_end_matches("(*)");
    let (args, data_type) = builtin_functions().aggregate(name).unwrap().bind(args, distinct, true).unwrap();
    AggregateCall {
        function: name.to_string(),
        args: args.iter().flat_map(crate::expr::Expr::columns).collect(),
        arg_types: args.iter().map(crate::expr::Expr::data_type).collect(),
        distinct,
        order: Vec::new(),
        filter: None,
        data_type,
        name: name.to_lowercase(),
    }
}

fn group_by(aggregates: Vec<AggregateCall>, input_retracts: bool) -> OperatorSpec {
    OperatorSpec::GroupAggregate { keys: vec![0], aggregates, input_retracts, emit_update_before: true }
}

fn join(join_type: JoinType, retracts: bool) -> OperatorSpec {
    OperatorSpec::RegularJoin(Box::new(RegularJoinSpec {
        join_type,
        keys: vec![JoinKey { left: 0, right: 0, null_safe: false }],
        residual: None,
        left_retracts: retracts,
        right_retracts: retracts,
        left_schema: Arc::new(schema()),
        right_schema: Arc::new(schema()),
        output: vec![0, 1, 3],
        ttl: [None; 2],
    }))
}

fn rank(strategy: RankStrategy, end: u64, emit_update_before: bool) -> OperatorSpec {
    OperatorSpec::Rank(RankOperatorSpec {
        changes: None,
        rank: RankSpec {
            partition_keys: vec![0],
            order_keys: vec![SortKey { column: 1, descending: false, nulls_first: true }],
            range: RankRange { start: 1, end: RankEnd::Constant(end) },
            output_number: false,
            window: None,
            ttl: None,
        },
        strategy,
        emit_update_before,
        input: Arc::new(schema()),
    })
}

#[test]
fn a_group_that_is_over_begins_anew() {
    let spec = group_by(vec![call("COUNT(*)", false), call("SUM", false)], false);
    let mut groups = harness(&spec, 1);
    assert_eq!(groups.push("a | 1\nb | 2").unwrap(), "a | 1 | 1\nb | 1 | 2\n");
    groups.set_time(600).unwrap();
    assert_eq!(groups.push("a | 2").unwrap(), "-U | a | 1 | 1\n+U | a | 2 | 3\n");
    let mut groups = restarted(groups, &spec, 1);
    groups.set_time(1_000).unwrap();
    assert_eq!(groups.push("b | 5\nc | 6").unwrap(), "b | 1 | 5\nc | 1 | 6\n", "b was written a second ago");
    assert_eq!(groups.push("a | 4").unwrap(), "-U | a | 2 | 3\n+U | a | 3 | 7\n", "a was written since");
    assert_eq!(groups.expired(), 1);
}

#[test]
fn what_is_taken_back_of_a_group_that_is_not_there_is_passed_over() {
    let mut groups = harness(&group_by(vec![call("COUNT(*)", false), call("MAX", false)], true), 1);
    groups.push("+I | a | 1\n+I | a | 7").unwrap();
    groups.set_time(1_000).unwrap();
    assert_eq!(groups.push("-U | a | 1\n+U | a | 2\n-D | b | 3").unwrap(), "a | 1 | 2\n");
    // The group is there again, but the row is not: as in Flink it counts all the same.
    assert_eq!(groups.push("-D | a | 7").unwrap(), "-D | a | 1 | 2\n");
    assert_eq!(groups.push("-D | a | 2").unwrap(), "");
}

#[test]
fn a_result_that_stays_is_told_so_that_others_keep_it() {
    let mut groups = harness(&group_by(vec![call("MAX", false)], false), 1);
    groups.push("a | 5").unwrap();
    assert_eq!(groups.push("a | 1").unwrap(), "-U | a | 5\n+U | a | 5\n");
    let mut keys = harness(&group_by(vec![], false), 1);
    assert_eq!((keys.push("a | 5").unwrap().as_str(), keys.push("a | 1").unwrap().as_str()), ("a\n", ""));
}

#[test]
fn memory_of_groups_is_given_back_by_the_clock_alone() {
    let spec = group_by(vec![call("COUNT", true), call("SUM", false)], false);
    let mut groups = harness(&spec, 1);
    let rows = |from: usize| (from..from + 2_000).map(|n| format!("a rather long key of group {n} | {n}\n")).collect::<String>();
    groups.push(&rows(0)).unwrap();
    let full = groups.state_bytes();
    groups.set_time(1_124).unwrap();
    assert_eq!(groups.expired(), 2_000);
    // Numbers of groups are used again, so that state does not grow.
    for round in 1..6 {
        groups.push(&rows(round * 2_000)).unwrap();
        groups.set_time(1_124 * (round as i64 + 1)).unwrap();
    }
    assert_eq!(groups.expired(), 12_000);
    assert!(groups.state_bytes() < full * 3 / 2, "{} of {full} bytes", groups.state_bytes());
    assert_eq!(groups.snapshot().unwrap()["groups"].rows().unwrap().len(), 0);
}

#[test]
fn rows_of_a_join_are_over_one_by_one_and_what_was_joined_stays() {
    for retracts in [false, true] {
        let spec = join(JoinType::Inner, retracts);
        let mut join = harness(&spec, 2);
        join.push_to(0, "a | 1").unwrap();
        join.set_time(600).unwrap();
        join.push_to(0, "a | 2").unwrap();
        let mut join = restarted(join, &spec, 2);
        assert_eq!(join.push_to(1, "a | 7").unwrap(), "a | 2 | 7\na | 1 | 7\n");
        join.set_time(1_000).unwrap();
        assert_eq!(join.push_to(1, "a | 8").unwrap(), "a | 2 | 8\n", "the first row is over, though not yet swept");
        join.set_time(1_124).unwrap();
        assert_eq!(join.expired(), 1);
        assert_eq!(join.push_to(1, "a | 9").unwrap(), "a | 2 | 9\n");
        if retracts {
            assert_eq!(join.push_to(0, "-D | a | 1").unwrap(), "-D | a | 1 | 9\n-D | a | 1 | 8\n-D | a | 1 | 7\n");
            assert_eq!(join.push_to(0, "-D | a | 2").unwrap(), "-D | a | 2 | 9\n-D | a | 2 | 8\n-D | a | 2 | 7\n");
        }
        join.set_time(9_000).unwrap();
        assert_eq!(join.push_to(0, "a | 3").unwrap(), "");
    }
}

#[test]
fn a_row_of_an_outer_join_lives_on_when_its_partners_change() {
    let spec = join(JoinType::Left, true);
    let mut join = harness(&spec, 2);
    assert_eq!(join.push_to(0, "a | 1\nb | 2").unwrap(), "a | 1 | NULL\nb | 2 | NULL\n");
    join.set_time(600).unwrap();
    assert_eq!(join.push_to(1, "a | 7").unwrap(), "-D | a | 1 | NULL\n+I | a | 1 | 7\n");
    let mut join = restarted(join, &spec, 2);
    join.set_time(1_200).unwrap();
    assert_eq!(join.push_to(1, "b | 8").unwrap(), "");
    assert_eq!(join.push_to(1, "-D | a | 7").unwrap(), "-D | a | 1 | 7\n+I | a | 1 | NULL\n");
}

#[test]
fn memory_of_a_join_is_given_back() {
    for join_type in [JoinType::Inner, JoinType::Full, JoinType::Semi] {
        let output = if join_type == JoinType::Semi { vec![0, 1] } else { vec![0, 1, 3] };
        let OperatorSpec::RegularJoin(spec) = join(join_type, true) else { unreachable!() };
        let spec = OperatorSpec::RegularJoin(Box::new(RegularJoinSpec { output, ..*spec }));
        let mut join = harness(&spec, 2);
        let rows: String = (0..9_000).map(|n| format!("a rather long key {n} | {n}\n")).collect();
        join.push_to(0, &rows).unwrap();
        join.push_to(1, &rows).unwrap();
        let full = join.state_bytes();
        join.set_time(1_124).unwrap();
        assert_eq!(join.expired(), 18_000);
        assert!(join.state_bytes() < full * 3 / 5, "{join_type:?}: {} of {full} bytes", join.state_bytes());
        assert!(join.snapshot().unwrap().values().all(|table| table.rows().unwrap().is_empty()));
        assert!(!join.push_to(0, "a rather long key 5 | 5").unwrap().contains("| 5 | 5"));
    }
}

#[test]
fn partitions_of_a_rank_begin_anew() {
    for strategy in [RankStrategy::AppendFast, RankStrategy::Retract] {
        let spec = rank(strategy, 2, true);
        let mut top = harness(&spec, 1);
        assert_eq!(top.push("a | 1\na | 2\nb | 3").unwrap(), "a | 1\na | 2\nb | 3\n");
        top.set_time(600).unwrap();
        assert_eq!(top.push("b | 9\nb | 10").unwrap(), "b | 9\n");
        let mut top = restarted(top, &spec, 1);
        top.set_time(1_000).unwrap();
        assert_eq!(top.push("c | 0\na | 5\nb | 1").unwrap(), "+I | c | 0\n+I | a | 5\n-D | b | 9\n+I | b | 1\n", "{strategy:?}");
        assert_eq!(top.expired(), 1);
        top.set_time(9_000).unwrap();
        assert_eq!(top.push("b | 7").unwrap(), "b | 7\n");
    }
}

#[test]
fn rows_behind_the_visible_ones_are_forgotten_and_those_stay() {
    let spec = rank(RankStrategy::Retract, 1, true);
    let mut top = harness(&spec, 1);
    top.push("a | 1\na | 2\na | 3").unwrap();
    top.set_time(600).unwrap();
    top.push("a | 4").unwrap();
    let mut top = restarted(top, &spec, 1);
    top.set_time(1_124).unwrap();
    assert_eq!(top.expired(), 2, "2 and 3");
    assert_eq!(top.push("-D | a | 1").unwrap(), "-U | a | 1\n+U | a | 4\n");
}

#[test]
fn the_first_row_counts_from_when_it_came_and_the_last_one_anew() {
    let spec = rank(RankStrategy::FirstToCome, 1, false);
    let mut first = harness(&spec, 1);
    assert_eq!(first.push("a | 1").unwrap(), "a | 1\n");
    first.set_time(600).unwrap();
    assert_eq!(first.push("a | 2\nb | 1").unwrap(), "b | 1\n");
    let mut first = restarted(first, &spec, 1);
    first.set_time(1_000).unwrap();
    assert_eq!(first.push("c | 0\nb | 2\na | 3\na | 4").unwrap(), "c | 0\na | 3\n");

    for emit_update_before in [false, true] {
        let spec = rank(RankStrategy::LastToCome, 1, emit_update_before);
        let mut last = harness(&spec, 1);
        last.push("a | 1\nb | 1").unwrap();
        last.set_time(600).unwrap();
        last.push("a | 2").unwrap();
        let mut last = restarted(last, &spec, 1);
        last.set_time(1_000).unwrap();
        let expected = if emit_update_before {
            "+I | c | 0\n+I | b | 3\n-U | a | 2\n+U | a | 3\n"
        } else {
            "+I | c | 0\n+I | b | 3\n+U | a | 3\n"
        };
        assert_eq!(last.push("c | 0\nb | 3\na | 3").unwrap(), expected);
        last.set_time(9_000).unwrap();
        assert_eq!(last.push("a | 3").unwrap(), "a | 3\n");
    }
}

#[test]
fn normalized_keys_are_forgotten_with_their_rows() {
    let spec =
        OperatorSpec::ChangelogNormalize { keys: vec![0], schema: Arc::new(schema()), emit_update_before: true, changes: None };
    let mut normalize = harness(&spec, 1);
    normalize.push("+U | a | 1\n+U | b | 1").unwrap();
    normalize.set_time(600).unwrap();
    assert_eq!(normalize.push("+U | a | 1").unwrap(), "-U | a | 1\n+U | a | 1\n", "told so that others keep it");
    let mut normalize = restarted(normalize, &spec, 1);
    normalize.set_time(1_000).unwrap();
    assert_eq!(normalize.push("+U | c | 1\n-D | b | NULL\n+U | a | 2").unwrap(), "+I | c | 1\n-U | a | 1\n+U | a | 2\n");
    let bytes = normalize.state_bytes();
    normalize.set_time(9_000).unwrap();
    assert!(normalize.state_bytes() <= bytes);
    assert_eq!((normalize.expired(), normalize.push("-D | a | 2").unwrap().as_str()), (3, ""));
}

#[test]
fn a_sink_key_is_forgotten_with_all_its_rows() {
    let spec = OperatorSpec::SinkMaterializer(SinkMaterializerSpec {
        primary_key: vec![0],
        upsert_key: None,
        schema: Arc::new(schema()),
    });
    let mut sink = harness(&spec, 1);
    sink.push("+I | a | 1\n+I | a | 2\n+I | b | 1\n+I | b | 2").unwrap();
    sink.set_time(600).unwrap();
    sink.push("+I | b | 3").unwrap();
    let mut sink = restarted(sink, &spec, 1);
    sink.set_time(1_000).unwrap();
    assert_eq!(sink.push("-D | a | 2\n-D | b | 3").unwrap(), "+U | b | 2\n");
    sink.set_time(9_000).unwrap();
    assert_eq!(sink.push("-D | b | 2\n+I | a | 1").unwrap(), "+I | a | 1\n");
    assert_eq!(sink.push("-D | a | 1").unwrap(), "-D | a | 1\n");
}

#[test]
fn left_rows_of_a_scalar_join_are_over_one_by_one() {
    for left_retracts in [false, true] {
        let spec = OperatorSpec::ScalarJoin(ScalarJoinSpec {
            predicate: None,
            left_retracts,
            outer: true,
            left_schema: Arc::new(schema()),
            right_schema: Arc::new(schema()),
        });
        let mut join = harness(&spec, 2);
        join.push_to(1, "r | 1").unwrap();
        join.push_to(0, "a | 1").unwrap();
        join.set_time(600).unwrap();
        join.push_to(0, "b | 2").unwrap();
        let mut join = restarted(join, &spec, 2);
        join.set_time(1_000).unwrap();
        assert_eq!(join.push_to(1, "-U | r | 1\n+U | r | 2").unwrap(), "-U | b | 2 | r | 1\n+U | b | 2 | r | 2\n");
        if left_retracts {
            join.push_to(0, "-D | a | 1").unwrap();
            assert_eq!(join.push_to(1, "-U | r | 2\n+U | r | 3").unwrap(), "-U | b | 2 | r | 2\n+U | b | 2 | r | 3\n");
        }
        join.set_time(1_800).unwrap();
        assert_eq!(join.push_to(1, "-U | r | 3\n+U | r | 4").unwrap(), "");
        assert_eq!(join.expired(), 2);
    }
}

#[test]
fn rows_behind_a_limit_are_forgotten() {
    let spec = OperatorSpec::SortLimit(SortLimitSpec {
        keys: vec![SortKey { column: 1, descending: false, nulls_first: true }],
        offset: 0,
        fetch: 1,
        input_retracts: true,
        changes: None,
        input: Arc::new(schema()),
    });
    let mut sort = harness(&spec, 1);
    sort.push("a | 1\nb | 2\nc | 3").unwrap();
    sort.set_time(600).unwrap();
    sort.push("d | 4").unwrap();
    let mut sort = restarted(sort, &spec, 1);
    sort.set_time(1_125).unwrap();
    assert_eq!(sort.push("-D | a | 1").unwrap(), "-D | a | 1\n+I | d | 4\n");
    assert_eq!(sort.expired(), 2);
}

#[test]
fn a_partition_of_over_begins_anew() {
    let spec = OperatorSpec::OverAggregate(OverOperatorSpec {
        over: OverSpec {
            partition_keys: vec![0],
            order_keys: vec![SortKey { column: 1, descending: false, nulls_first: true }],
            calls: vec![OverCall { frame: OverFrame::ROWS_TO_CURRENT, call: call("SUM", false) }],
            limit: None,
            ttl: None,
        },
        strategy: OverStrategy::Sorted,
        input_retracts: true,
        emit_update_before: true,
        changes: None,
        input: Arc::new(schema()),
    });
    let mut over = harness(&spec, 1);
    assert_eq!(over.push("a | 1\nb | 1").unwrap(), "a | 1 | 1\nb | 1 | 1\n");
    over.set_time(600).unwrap();
    over.push("b | 2").unwrap();
    let mut over = restarted(over, &spec, 1);
    over.set_time(1_000).unwrap();
    assert_eq!(over.push("a | 5\nb | 5").unwrap(), "a | 5 | 5\nb | 5 | 8\n");
}
