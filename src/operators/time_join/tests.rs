//! Joins driven by text: event time, lateness, what is held back and what is forgotten, and state shared out among more subtasks.

use std::sync::Arc;

use crate::config::Configuration;
use crate::stream_graph::{IntervalJoinSpec, JoinKey, JoinType, OperatorSpec, WindowColumns, WindowJoinSpec};
use crate::testing::operator_harness::OperatorHarness;
use crate::types::{DataType, Field, Schema, TimeAttribute, TypeKind};

const KEY: JoinKey = JoinKey { left: 0, right: 0, null_safe: false };

fn timestamp() -> DataType {
    DataType::nullable(TypeKind::Timestamp(3))
}

fn side() -> Schema {
    let rowtime = timestamp().with_time(Some(TimeAttribute::Rowtime));
    Schema::new(vec![Field::new("k", DataType::string()), Field::new("ts", rowtime)])
}

/// `ON l.k = r.k AND l.ts BETWEEN r.ts - lower AND r.ts + upper`.
pub(super) fn interval_join(join_type: JoinType, lower_ms: i64, upper_ms: i64, is_proctime: bool) -> OperatorSpec {
    OperatorSpec::IntervalJoin(Box::new(IntervalJoinSpec {
        join_type,
        left_time: 1,
        right_time: 1,
        is_proctime,
        lower_ms,
        upper_ms,
        keys: vec![KEY],
        residual: None,
        left_schema: Arc::new(side()),
        right_schema: Arc::new(side()),
        output: vec![0, 1, 2, 3],
    }))
}

fn windowed() -> Schema {
    let fields = [("k", DataType::string()), ("v", DataType::nullable(TypeKind::BigInt))].into_iter();
    let bounds = ["start", "end"].map(|name| (name, timestamp()));
    Schema::new(fields.chain(bounds).map(|(name, data_type)| Field::new(name, data_type)).collect())
}

/// `ON l.k = r.k` and the same window; output k, v of both sides.
fn window_join(join_type: JoinType) -> OperatorSpec {
    let window = WindowColumns { start: 2, end: 3 };
    OperatorSpec::WindowJoin(Box::new(WindowJoinSpec {
        join_type,
        left_window: window,
        right_window: window,
        time_type: timestamp().with_time(Some(TimeAttribute::Rowtime)),
        keys: vec![KEY],
        residual: None,
        left_schema: Arc::new(windowed()),
        right_schema: Arc::new(windowed()),
        output: if join_type.is_left_only() { vec![0, 1] } else { vec![0, 1, 4, 5] },
    }))
}

pub(super) fn harness(spec: &OperatorSpec) -> OperatorHarness {
    let schema = if matches!(spec, OperatorSpec::WindowJoin(_)) { windowed() } else { side() };
    OperatorHarness::new(spec, vec![schema.clone(), schema]).unwrap()
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Times as they come out.
pub(super) fn at(ms: i64) -> String {
    let time = chrono::DateTime::from_timestamp_millis(ms).unwrap();
    time.format("%Y-%m-%dT%H:%M:%S%.f").to_string()
}

#[test]
fn rows_within_the_interval_join_whichever_comes_first() {
    let mut join = harness(&interval_join(JoinType::Inner, -1_000, 2_000, false));
    assert_eq!(join.push("a | 10000\nNULL | 10000").unwrap(), "");
    let joined = join.push_to(1, "a | 7999\na | 8000\na | 11000\na | 11001\nb | 10000\nNULL | 10000").unwrap();
    let pair = |left: i64, right: i64| format!("a | {} | a | {}", at(left), at(right));
    assert_eq!(sorted(&joined), [pair(10_000, 8_000), pair(10_000, 11_000)]);
    assert_eq!(sorted(&join.push("a | 12000").unwrap()), [pair(12_000, 11_000), pair(12_000, 11_001)]);
}

#[test]
fn the_watermark_is_held_back_by_the_longer_reach_also_within_a_batch() {
    let mut join = harness(&interval_join(JoinType::Inner, -1_000, 2_000, false));
    join.push_to(1, "a | 10000").unwrap();
    assert_eq!(join.watermark(5_000).unwrap(), "WATERMARK 3000\n");
    let joined = join.push("a | 10000\nWATERMARK 9000\na | 10001").unwrap();
    let pair = |left: i64| format!("a | {} | a | {}\n", at(left), at(10_000));
    assert_eq!(joined, pair(10_000) + "WATERMARK 7000\n" + &pair(10_001));
    assert_eq!(join.finish().unwrap(), "WATERMARK max\n");
}

#[test]
fn rows_alone_come_out_before_the_watermark_that_proves_it() {
    let mut join = harness(&interval_join(JoinType::Full, -1_000, 2_000, false));
    join.push("a | 10000\nb | 10000").unwrap();
    join.push_to(1, "a | 10500\nc | 10000\nNULL | 9000").unwrap();
    // A left row waits a second, a right one two.
    assert_eq!(join.watermark(10_999).unwrap(), "WATERMARK 8999\n");
    assert_eq!(join.watermark(11_000).unwrap(), format!("b | {} | NULL | NULL\nWATERMARK 9000\n", at(10_000)));
    assert_eq!(join.watermark(12_000).unwrap(), format!("NULL | NULL | c | {}\nWATERMARK 10000\n", at(10_000)));
    assert_eq!(join.finish().unwrap(), "WATERMARK max\n");
}

#[test]
fn what_is_over_is_forgotten_and_late_rows_meet_what_is_left() {
    let mut join = harness(&interval_join(JoinType::Inner, -1_000, 2_000, false));
    join.push_to(1, "a | 8000\na | 9000").unwrap();
    join.watermark(10_000).unwrap();
    assert_eq!(join.push("a | 9500").unwrap(), format!("a | {} | a | {}\n", at(9_500), at(9_000)));
    assert_eq!(join.late_rows(), 0);
    join.push("a | 7000").unwrap();
    assert_eq!(join.late_rows(), 1, "it has no partner and can have none");
    join.watermark(1_000_000).unwrap();
    let rows: usize = join.snapshot().unwrap().iter().filter(|(name, _)| **name != "progress").map(rows_of).sum();
    assert_eq!(rows, 0);
}

fn rows_of((_, snapshot): (&&'static str, &crate::runtime::StateTableSnapshot)) -> usize {
    snapshot.rows().unwrap().iter().map(|rows| rows.num_rows()).sum()
}

#[test]
fn with_processing_time_the_clock_lets_go_of_rows() {
    let mut join = harness(&interval_join(JoinType::Left, -1_000, 2_000, true));
    assert_eq!(join.push("a | NULL\nb | NULL").unwrap(), "");
    assert_eq!(join.set_time(1_000).unwrap(), "");
    assert_eq!(join.push_to(1, "a | NULL").unwrap(), "a | NULL | a | NULL\n");
    assert_eq!(join.set_time(1_001).unwrap(), "b | NULL | NULL | NULL\n");
    assert_eq!(join.push_to(1, "b | NULL").unwrap(), "");
    assert_eq!(join.watermark(77).unwrap(), "WATERMARK 77\n");
}

/// Pushes half of the rows, shares the state out among three subtasks, pushes the rest to the subtask of its key, and compares the
/// rows that come out with those of an undisturbed run.
fn survives_rescaling(spec: &OperatorSpec, first: [&[String]; 2], then: [&[String]; 2], until: i64) {
    let mut undisturbed = harness(spec);
    let mut expected = String::new();
    let mut old = [harness(spec)];
    for input in [0, 1] {
        let rows = first[usize::from(input)].join("\n");
        expected += &undisturbed.push_to(input, &rows).unwrap();
        old[0].push_to(input, &rows).unwrap();
    }
    expected.clear();
    let mut new = OperatorHarness::rescale(&mut old, spec, 3, &Configuration::default()).unwrap();
    let mut found = String::new();
    for input in [0, 1] {
        for row in then[usize::from(input)] {
            expected += &undisturbed.push_to(input, row).unwrap();
            found += &new[subtask_of(row, 3)].push_to(input, row).unwrap();
        }
    }
    expected += &undisturbed.watermark(until).unwrap();
    for subtask in &mut new {
        found += &subtask.watermark(until).unwrap();
    }
    let rows = |text: &str| -> Vec<String> {
        let mut rows: Vec<String> = text.lines().filter(|line| !line.starts_with("WATERMARK")).map(str::to_string).collect();
        rows.sort();
        rows
    };
    assert!(!rows(&expected).is_empty());
    assert_eq!(rows(&found), rows(&expected));
}

/// The subtask of a row by its first column.
fn subtask_of(row: &str, parallelism: u32) -> usize {
    use crate::testing::operator_harness::MAX_PARALLELISM;
    use crate::types::{KeyGroup, hash_columns};
    let key: arrow::array::ArrayRef =
        Arc::new(arrow::array::StringViewArray::from(vec![row.split(" | ").next().expect("there is a key")]));
    let mut hashes = Vec::new();
    hash_columns(&[key], 1, &mut hashes);
    KeyGroup::of_hash(hashes[0], MAX_PARALLELISM).subtask(parallelism, MAX_PARALLELISM).0 as usize
}

fn rows(keys: std::ops::Range<i64>, rest: impl Fn(i64) -> String) -> Vec<String> {
    keys.map(|key| format!("k{key} | {}", rest(key))).collect()
}

#[test]
fn kept_rows_and_who_had_a_partner_survive_rescaling() {
    let time = |key: i64| (10_000 + key).to_string();
    let first = [rows(0..30, time), rows(10..40, time)];
    let then = [rows(20..60, time), rows(0..50, time)];
    survives_rescaling(
        &interval_join(JoinType::Full, -1_000, 1_000, false),
        [&first[0], &first[1]],
        [&then[0], &then[1]],
        100_000,
    );
}

fn in_window(end: i64) -> impl Fn(i64) -> String {
    move |key| format!("{key} | {} | {end}", end - 10_000)
}

#[test]
fn a_window_is_joined_when_event_time_has_passed_it() {
    let cases: [(JoinType, &[&str]); 6] = [
        (JoinType::Inner, &["a | 1 | a | 3"]),
        (JoinType::Left, &["NULL | 9 | NULL | NULL", "a | 1 | a | 3", "b | 2 | NULL | NULL"]),
        (JoinType::Right, &["NULL | NULL | NULL | 9", "NULL | NULL | c | 4", "a | 1 | a | 3"]),
        (
            JoinType::Full,
            &["NULL | 9 | NULL | NULL", "NULL | NULL | NULL | 9", "NULL | NULL | c | 4", "a | 1 | a | 3", "b | 2 | NULL | NULL"],
        ),
        (JoinType::Semi, &["a | 1"]),
        (JoinType::Anti, &["NULL | 9", "b | 2"]),
    ];
    for (join_type, expected) in cases {
        let mut join = harness(&window_join(join_type));
        join.push("a | 1 | 0 | 10000\nb | 2 | 0 | 10000\nNULL | 9 | 0 | 10000\na | 5 | 10000 | 20000").unwrap();
        join.push_to(1, "a | 3 | 0 | 10000\nc | 4 | 0 | 10000\nNULL | 9 | 0 | 10000").unwrap();
        assert_eq!(join.watermark(9_998).unwrap(), "WATERMARK 9998\n");
        let fired = join.watermark(9_999).unwrap();
        let fired = fired.strip_suffix("WATERMARK 9999\n").unwrap();
        assert_eq!(sorted(fired), expected, "{join_type:?}");
        assert_eq!(join.push("a | 6 | 0 | 10000").unwrap(), "");
        assert_eq!(join.late_rows(), 1);
    }
}

#[test]
fn a_step_within_a_batch_ends_a_window_between_its_rows() {
    let mut join = harness(&window_join(JoinType::Inner));
    join.push_to(1, "a | 3 | 0 | 10000").unwrap();
    let out = join.push("a | 1 | 0 | 10000\nWATERMARK 9999\na | 2 | 0 | 10000\na | 4 | 10000 | 20000").unwrap();
    assert_eq!(out, "a | 1 | a | 3\nWATERMARK 9999\n");
    assert_eq!(join.late_rows(), 1, "the second row came after the end of its window");
}

#[test]
fn waiting_windows_survive_rescaling() {
    let first = [rows(0..30, in_window(10_000)), rows(10..40, in_window(10_000))];
    let then = [rows(20..60, in_window(10_000)), rows(0..50, in_window(20_000))];
    survives_rescaling(&window_join(JoinType::Full), [&first[0], &first[1]], [&then[0], &then[1]], 19_999);
}
