//! How long partitions of OVER are kept where time does not bound them, on a clock that the test moves; and that time bounds the others.

use super::tests::spec;
use crate::config::Configuration;
use crate::stream_graph::{FrameBound, FrameUnit, OperatorSpec, OverFrame, OverOperatorSpec, OverStrategy};
use crate::testing::operator_harness::OperatorHarness;
use crate::types::Schema;

const BY_TIME: OverStrategy = OverStrategy::EventTime(2);
const BY_TIME_FRAMES: OverStrategy = OverStrategy::EventTimeFrames(2);

fn harness(spec: &OverOperatorSpec) -> OperatorHarness {
    let mut settings = Configuration::default();
    settings.set("table.exec.state.ttl", "1 s").unwrap();
    let schemas = vec![Schema::clone(&spec.input)];
    OperatorHarness::subtask(&OperatorSpec::OverAggregate(spec.clone()), schemas, 0, 1, &settings).unwrap()
}

/// Stopped, and restored elsewhere at the same time.
fn restarted(mut old: OperatorHarness, spec: &OverOperatorSpec) -> OperatorHarness {
    let snapshot = old.snapshot().unwrap();
    let mut new = harness(spec);
    new.set_time(old.now()).unwrap();
    new.restore(&[snapshot]).unwrap();
    new
}

/// Rows of the three columns, at milliseconds after 1970.
fn rows(rows: &[(&str, i64, i64)]) -> String {
    let line = |(key, value, ms): &(&str, i64, i64)| format!("{key} | {value} | 1970-01-01 00:00:00.{ms:03}\n");
    rows.iter().map(line).collect()
}

fn with_end(mut spec: OverOperatorSpec, end: FrameBound) -> OverOperatorSpec {
    spec.over.calls.iter_mut().for_each(|over| over.frame.end = end);
    spec
}

/// The counts and sums that came out.
fn results(text: &str) -> Vec<String> {
    let of = |line: &str| {
        let cells: Vec<&str> = line.split(" | ").collect();
        format!("{} {} {}", cells[0], cells[3], cells[4])
    };
    text.lines().filter(|line| !line.starts_with("WATERMARK")).map(of).collect()
}

#[test]
fn a_partition_to_which_no_row_came_begins_anew() {
    for (strategy, unit, start) in [
        (BY_TIME, FrameUnit::Rows, FrameBound::UnboundedPreceding),
        (BY_TIME, FrameUnit::Range, FrameBound::UnboundedPreceding),
        (BY_TIME, FrameUnit::Rows, FrameBound::Preceding(5)),
        (BY_TIME_FRAMES, FrameUnit::Rows, FrameBound::UnboundedPreceding),
        (BY_TIME_FRAMES, FrameUnit::Rows, FrameBound::Preceding(5)),
        (OverStrategy::ProcessingTime, FrameUnit::Range, FrameBound::UnboundedPreceding),
        (OverStrategy::ProcessingTime, FrameUnit::Rows, FrameBound::Preceding(5)),
    ] {
        let spec = spec(strategy, unit, start);
        let mut over = harness(&spec);
        let step = |over: &mut OperatorHarness, values: &[(&str, i64, i64)], watermark| {
            let mut out = over.push(&rows(values)).unwrap();
            out.push_str(&over.watermark(watermark).unwrap());
            results(&out)
        };
        assert_eq!(step(&mut over, &[("a", 1, 10), ("b", 2, 11)], 20), ["a 1 1", "b 1 2"]);
        over.set_time(600).unwrap();
        assert_eq!(step(&mut over, &[("b", 3, 21)], 30), ["b 2 5"]);
        let mut over = restarted(over, &spec);
        over.set_time(1_000).unwrap();
        assert_eq!(step(&mut over, &[("a", 4, 31), ("b", 5, 32)], 40), ["a 1 4", "b 3 10"], "{strategy:?} {unit:?} {start:?}");
        assert_eq!(over.expired(), 1);
        over.set_time(2_200).unwrap();
        assert_eq!(over.expired(), 3, "swept without a row");
        for (name, table) in over.snapshot().unwrap() {
            let is_progress = name == "progress";
            assert!(is_progress || table.rows().unwrap().is_empty(), "{name} of {strategy:?} {unit:?} {start:?}");
        }
        assert_eq!(step(&mut over, &[("b", 7, 41)], 50), ["b 1 7"]);
    }
}

#[test]
fn rows_that_wait_for_event_time_keep_their_partition() {
    for strategy in [BY_TIME, BY_TIME_FRAMES] {
        let mut over = harness(&spec(strategy, FrameUnit::Rows, FrameBound::UnboundedPreceding));
        over.push(&rows(&[("a", 1, 10)])).unwrap();
        over.watermark(20).unwrap();
        over.push(&rows(&[("a", 2, 30)])).unwrap();
        over.set_time(5_000).unwrap();
        assert_eq!(over.expired(), 0);
        assert_eq!(results(&over.watermark(40).unwrap()), ["a 2 3"]);
        over.set_time(5_999).unwrap();
        over.push(&rows(&[("b", 2, 50)])).unwrap();
        over.set_time(7_200).unwrap();
        assert_eq!(over.expired(), 1, "a went, b waits");
    }
}

#[test]
fn a_partition_that_ends_lets_out_the_rows_that_wait_for_others() {
    let spec = with_end(spec(BY_TIME_FRAMES, FrameUnit::Rows, FrameBound::CurrentRow), FrameBound::Following(1));
    let mut over = harness(&spec);
    over.push(&rows(&[("a", 1, 10), ("a", 2, 11), ("b", 5, 12)])).unwrap();
    let out = over.watermark(20).unwrap();
    assert_eq!(
        (results(&out), out.contains("WATERMARK 10\n")),
        (vec!["a 2 3".to_string()], true),
        "a's second row holds event time back"
    );
    let mut over = restarted(over, &spec);
    let out = over.set_time(1_200).unwrap();
    assert_eq!(results(&out), ["a 1 2", "b 1 5"]);
    assert!(out.ends_with("WATERMARK 20\n"), "event time goes on: {out}");
    assert_eq!(over.expired(), 2);
    // What was counted of the old partitions is not counted for the new ones.
    over.push(&rows(&[("a", 3, 30)])).unwrap();
    assert_eq!(results(&over.watermark(40).unwrap()), [""; 0]);
    over.push(&rows(&[("a", 4, 50)])).unwrap();
    assert_eq!(results(&over.watermark(60).unwrap()), ["a 2 7"]);
}

#[test]
fn frames_to_the_end_of_the_partition_come_out_when_it_ends() {
    let spec = with_end(spec(BY_TIME_FRAMES, FrameUnit::Range, FrameBound::CurrentRow), FrameBound::UnboundedFollowing);
    let mut over = harness(&spec);
    over.push(&rows(&[("a", 1, 10), ("a", 2, 11)])).unwrap();
    assert_eq!(results(&over.watermark(20).unwrap()), [""; 0]);
    assert_eq!(results(&over.set_time(1_200).unwrap()), ["a 2 3", "a 1 2"]);
}

#[test]
fn what_time_bounds_has_no_time_to_live() {
    let bounded = |strategy| spec(strategy, FrameUnit::Range, FrameBound::Preceding(500));
    for strategy in [BY_TIME, BY_TIME_FRAMES] {
        let mut over = harness(&bounded(strategy));
        over.push(&rows(&[("a", 1, 10)])).unwrap();
        over.watermark(20).unwrap();
        over.set_time(100_000).unwrap();
        over.push(&rows(&[("a", 2, 30)])).unwrap();
        assert_eq!(results(&over.watermark(40).unwrap()), ["a 2 3"]);
        assert_eq!(over.expired(), 0);
    }
}

#[test]
fn the_clock_alone_gives_back_what_it_has_passed() {
    let spec = spec(OverStrategy::ProcessingTime, FrameUnit::Range, FrameBound::Preceding(500));
    let mut over = harness(&spec);
    over.push(&rows(&[("a", 1, 0)])).unwrap();
    let mut over = restarted(over, &spec);
    assert_eq!(results(&over.set_time(1).unwrap()), ["a 1 1"], "a restored row comes out by the clock alone");
    assert_eq!(over.snapshot().unwrap()["rows"].rows().unwrap().len(), 1);
    let mut over = restarted(over, &spec);
    over.set_time(751).unwrap();
    let left: Vec<usize> = over.snapshot().unwrap().values().map(|table| table.rows().unwrap().len()).collect();
    assert_eq!((left[0], left[2]), (0, 0), "partitions and rows are gone");
    over.push(&rows(&[("a", 2, 0)])).unwrap();
    assert_eq!(results(&over.set_time(752).unwrap()), ["a 1 2"]);
}

#[test]
fn frames_say_whether_time_bounds_them() {
    let of = |strategy, unit, start, end| {
        let mut spec = spec(strategy, unit, start);
        spec.over.calls.iter_mut().for_each(|over| over.frame = OverFrame::new(unit, start, end));
        spec.is_bounded_by_time()
    };
    let hour = FrameBound::Preceding(3_600_000);
    assert!(of(BY_TIME, FrameUnit::Range, hour, FrameBound::CurrentRow));
    assert!(of(BY_TIME_FRAMES, FrameUnit::Range, hour, FrameBound::Following(1)));
    assert!(!of(BY_TIME, FrameUnit::Rows, hour, FrameBound::CurrentRow));
    assert!(!of(BY_TIME, FrameUnit::Range, FrameBound::UnboundedPreceding, FrameBound::CurrentRow));
    assert!(!of(BY_TIME_FRAMES, FrameUnit::Range, hour, FrameBound::UnboundedFollowing));
    assert!(!of(OverStrategy::Sorted, FrameUnit::Range, hour, FrameBound::CurrentRow));
}
