//! Windows driven by text: event time, processing time, lateness, and their state shared out among more subtasks.

use crate::config::Configuration;
use crate::expr::AggregateCall;
use crate::stream_graph::{OperatorSpec, WindowAggregateSpec, WindowKind, WindowProperty, WindowSource, WindowSpec};
use crate::testing::operator_harness::OperatorHarness;
use crate::types::{DataType, Field, Schema, TimeAttribute, TypeKind};

/// `SELECT key, COUNT(*), window_end FROM TUMBLE(…, 10 s) GROUP BY key, window_start, window_end`.
fn count_per_window(time: TimeAttribute) -> (OperatorSpec, Schema) {
    let kind = match time {
        TimeAttribute::Rowtime => TypeKind::Timestamp(3),
        TimeAttribute::Proctime => TypeKind::TimestampLtz(3),
    };
    let time_type = DataType::nullable(kind).with_time(Some(time));
    let schema = Schema::new(vec![Field::new("key", DataType::string()), Field::new("ts", time_type.clone())]);
    let count = AggregateCall {
        function: "COUNT".to_string(),
        args: Vec::new(),
        arg_types: Vec::new(),
        distinct: false,
        order: Vec::new(),
        filter: None,
        data_type: DataType::not_null(TypeKind::BigInt),
        name: "n".to_string(),
    };
    let window = WindowSpec::new(WindowKind::Tumble { size_ms: 10_000, offset_ms: 0 }, 1, time_type);
    let spec = WindowAggregateSpec {
        window: WindowSource::Assigned(window),
        keys: vec![0],
        aggregates: vec![count],
        properties: vec![WindowProperty::End],
        input_retracts: false,
        emit: None,
        emit_update_before: false,
    };
    (OperatorSpec::WindowAggregate(spec), schema)
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_window_fires_when_the_watermark_passes_and_counts_what_is_late() {
    let (spec, schema) = count_per_window(TimeAttribute::Rowtime);
    let mut harness = OperatorHarness::new(&spec, vec![schema]).unwrap();
    assert_eq!(harness.push("a | 1000\nb | 2000\na | 11000").unwrap(), "");
    assert_eq!(harness.watermark(9_998).unwrap(), "WATERMARK 9998\n");
    let fired = harness.watermark(9_999).unwrap();
    assert_eq!(sorted(&fired), ["WATERMARK 9999", "a | 1 | 1970-01-01T00:00:10", "b | 1 | 1970-01-01T00:00:10"]);
    assert_eq!(harness.push("a | 3000").unwrap(), "");
    assert_eq!(harness.late_rows(), 1);
    assert_eq!(harness.finish().unwrap(), "a | 1 | 1970-01-01T00:00:20\nWATERMARK max\n");
}

#[test]
fn a_step_within_a_batch_fires_between_its_rows() {
    let (spec, schema) = count_per_window(TimeAttribute::Rowtime);
    let mut harness = OperatorHarness::new(&spec, vec![schema]).unwrap();
    let out = harness.push("a | 1000\nWATERMARK 9999\na | 2000\na | 12000").unwrap();
    assert_eq!(out, "a | 1 | 1970-01-01T00:00:10\nWATERMARK 9999\n");
    assert_eq!(harness.late_rows(), 1, "the second row came after the watermark of its window");
}

#[test]
fn a_processing_time_window_fires_by_the_clock_and_is_dropped_at_the_end() {
    let (spec, schema) = count_per_window(TimeAttribute::Proctime);
    let mut harness = OperatorHarness::new(&spec, vec![schema]).unwrap();
    assert_eq!(harness.push("a | NULL\na | NULL").unwrap(), "");
    assert_eq!(harness.set_time(9_000).unwrap(), "");
    assert_eq!(harness.set_time(10_000).unwrap(), "a | 2 | 1970-01-01T00:00:10\n");
    assert_eq!(harness.push("a | NULL").unwrap(), "");
    assert_eq!(harness.finish().unwrap(), "WATERMARK max\n");
}

#[test]
fn open_windows_are_shared_out_when_subtasks_become_more() {
    let (spec, schema) = count_per_window(TimeAttribute::Rowtime);
    let mut old = [OperatorHarness::new(&spec, vec![schema]).unwrap()];
    let rows: Vec<String> = (0..40).map(|key| format!("k{key} | {}", 1_000 + key)).collect();
    old[0].push(&rows.join("\n")).unwrap();
    let new = OperatorHarness::rescale(&mut old, &spec, 3, &Configuration::default()).unwrap();
    let mut fired = Vec::new();
    for mut subtask in new {
        let out = subtask.watermark(9_999).unwrap();
        let rows: Vec<String> = out.lines().filter(|line| !line.starts_with("WATERMARK")).map(str::to_string).collect();
        assert!(!rows.is_empty(), "forty keys reach each of three subtasks");
        fired.extend(rows);
    }
    fired.sort();
    let mut expected: Vec<String> = (0..40).map(|key| format!("k{key} | 1 | 1970-01-01T00:00:10")).collect();
    expected.sort();
    assert_eq!(fired, expected);
}
