//! Sessions as Flink 2.3 makes them, on batches built by hand.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::*;
use crate::clock::VirtualClock;
use crate::expr::AggregateCall;
use crate::operators::testing::*;
use crate::runtime::{Operator, OperatorContext};
use crate::stream_graph::{WindowAggregateSpec, WindowKind, WindowProperty, WindowSource, WindowSpec};
use crate::types::{Batch, DataType, TimeAttribute, TypeKind, Watermark};

fn window(time_type: DataType) -> WindowSpec {
    WindowSpec { partition_keys: vec![0], ..WindowSpec::new(WindowKind::Session { gap_ms: 5_000 }, 2, time_type) }
}

fn aggregation(time_type: DataType, calls: Vec<AggregateCall>, input_retracts: bool) -> WindowAggregateSpec {
    WindowAggregateSpec {
        window: WindowSource::Assigned(window(time_type)),
        keys: vec![0],
        aggregates: calls,
        properties: vec![WindowProperty::Start, WindowProperty::End, WindowProperty::Time],
        input_retracts,
        emit: None,
        emit_update_before: false,
    }
}

fn operator_of(time_type: DataType, context: &OperatorContext, retracts: bool) -> SessionWindow<SessionGroups> {
    let calls = vec![aggregate("COUNT(*)"), aggregate("SUM"), aggregate("ARRAY_AGG")];
    let spec = aggregation(time_type.clone(), calls, retracts);
    SessionWindow::aggregate(&spec, &window(time_type), context).unwrap()
}

fn operator() -> (SessionWindow<SessionGroups>, OperatorContext) {
    let context = context();
    (operator_of(rowtime(), &context, false), context)
}

/// What Flink 2.3 was given, with a watermark two seconds behind.
const ROWS: [&str; 16] = [
    "+I a 1 10000",
    "~8000",
    "+I a 2 15000",
    "~13000",
    "+I b 3 10000",
    "+I b 4 15001",
    "~13001",
    "+I c 5 30000",
    "~28000",
    "+I a 6 12000", // late
    "+I c 7 26000",
    "+I c 8 21000",
    "+I c 9 17000", // late, but it joins a session that is open
    "+I c 10 40000",
    "~38000",
    "+I c 11 35000",
];

const ANSWER: [&str; 5] = [
    "+I a 2 3 [1, 2] 10000 20000 19999",
    "+I b 1 3 [3] 10000 15000 14999",
    "+I b 1 4 [4] 15001 20001 20000",
    "+I c 2 21 [10, 11] 35000 45000 44999",
    "+I c 4 29 [5, 7, 8, 9] 17000 35000 34999",
];

#[test]
fn sessions_touch_extend_and_fire_as_in_flink() {
    let (mut operator, context) = operator();
    let mut output = Lines::default();
    push(&mut operator, batch(&ROWS), &mut output);
    operator.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(output.take_sorted_rows(), ANSWER);
    assert_eq!(context.metrics.late_rows.load(Ordering::Relaxed), 1);
    assert_eq!(operator.state().iter_mut().map(|(_, table)| table.snapshot().unwrap().rows().unwrap().len()).sum::<usize>(), 1);
}

#[test]
fn sessions_that_end_within_a_batch_come_out_before_their_watermarks() {
    let (mut operator, _) = operator();
    let mut output = Lines::default();
    let rows = ["+I a 1 1000", "+I b 2 2000", "~5999", "+I a 3 6000", "~6999", "+I b 4 9000", "~7000"];
    push(&mut operator, batch(&rows), &mut output);
    assert_eq!(
        output.take(),
        ["+I a 1 1 [1] 1000 6000 5999", "~5999", "+I b 1 2 [2] 2000 7000 6999", "~7000"],
        "a row that comes when its session has ended opens another one"
    );
    operator.process_watermark(Watermark(13_999), &mut output).unwrap();
    assert_eq!(output.take(), ["+I a 1 3 [3] 6000 11000 10999", "+I b 1 4 [4] 9000 14000 13999", "~13999"]);
}

#[test]
fn a_row_between_two_sessions_makes_them_one() {
    let (mut operator, _) = operator();
    let mut output = Lines::default();
    push(&mut operator, batch(&["+I a 1 20000", "+I a 2 10000", "+I a 3 12000", "+I a 4 16000", "+I a 5 30000"]), &mut output);
    operator.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(output.take(), ["+I a 4 10 [2, 3, 1, 4] 10000 25000 24999", "+I a 1 5 [5] 30000 35000 34999", "~max"]);
}

#[test]
fn batches_of_any_size_give_the_same_sessions() {
    let whole = batch(&ROWS);
    for size in [1, 2, 3, 7] {
        let (mut operator, _) = operator();
        let mut output = Lines::default();
        for offset in (0..whole.num_rows()).step_by(size) {
            push(&mut operator, whole.slice(offset, size.min(whole.num_rows() - offset)), &mut output);
        }
        operator.process_watermark(Watermark::MAX, &mut output).unwrap();
        assert_eq!(output.take_sorted_rows(), ANSWER, "{size}");
    }
}

#[test]
fn what_is_taken_back_leaves_no_empty_session() {
    let mut operator = operator_of(rowtime(), &context(), true);
    let mut output = Lines::default();
    let rows = ["+I a 1 1000", "+I b 2 1000", "-D a 1 1000", "-U b 2 1000", "+U b 5 3000", "+I c 1 1000"];
    push(&mut operator, batch(&rows), &mut output);
    operator.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(output.take(), ["+I c 1 1 [1] 1000 6000 5999", "+I b 1 5 [5] 1000 8000 7999", "~max"]);
}

#[test]
fn a_row_without_time_is_an_error_in_an_aggregation_only() {
    let (mut aggregation, _) = operator();
    let null = || batch(&["+I a 1 NULL"]);
    let error = aggregation.process_batch(crate::types::InputNumber(0), null(), &mut Lines::default()).unwrap_err();
    assert_eq!(error.message(), "the rowtime of a row is NULL");
    let mut rows = SessionWindow::rows(&window(rowtime()), &context()).unwrap();
    let mut output = Lines::default();
    push(&mut rows, null(), &mut output);
    rows.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(output.take(), ["~max"]);
}

#[test]
fn by_the_clock_a_session_ends_when_no_row_has_come_for_so_long() {
    let proctime = DataType::not_null(TypeKind::TimestampLtz(3)).with_time(Some(TimeAttribute::Proctime));
    let clock = VirtualClock::new(1_000);
    let context = context_of(0, 1, Arc::clone(&clock), &[]);
    let mut operator = operator_of(proctime, &context, false);
    let mut output = Lines::default();
    push(&mut operator, batch(&["+I a 1", "+I b 2", "~99"]), &mut output);
    assert_eq!((output.take(), operator.next_processing_timer()), (vec!["~99".to_string()], Some(6_000)));
    clock.advance_to(4_000);
    push(&mut operator, batch(&["+I a 3"]), &mut output);
    clock.advance_to(6_000);
    operator.process_time(6_000, &mut output).unwrap();
    assert_eq!(output.take(), ["+I b 1 2 [2] 1000 6000 5999Z"]);
    assert_eq!(operator.next_processing_timer(), Some(9_000));
    clock.advance_to(9_000);
    operator.process_time(9_000, &mut output).unwrap();
    assert_eq!(output.take(), ["+I a 2 4 [1, 3] 1000 9000 8999Z"]);
    push(&mut operator, batch(&["+I a 3"]), &mut output);
    operator.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(output.take(), ["~max"], "an end of input does not move the clock");
}

#[test]
fn rows_without_aggregation_wait_for_the_end_of_their_session() {
    let mut operator = SessionWindow::rows(&window(rowtime()), &context()).unwrap();
    let mut output = Lines::default();
    let rows = ["+I a 1 20000", "+I b 2 1000", "+I a 3 12000", "~9999", "-U a 4 16000", "+U a 5 16000"];
    push(&mut operator, batch(&rows), &mut output);
    assert_eq!(output.take(), ["+I b 2 1000 1000 6000 5999", "~9999"]);
    operator.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(
        output.take(),
        [
            "+I a 3 12000 12000 25000 24999",
            "+I a 1 20000 12000 25000 24999",
            "-U a 4 16000 12000 25000 24999",
            "+U a 5 16000 12000 25000 24999",
            "~max",
        ]
    );
    assert_eq!(operator.state()[0].1.snapshot().unwrap().rows().unwrap().len(), 0);
}

/// Rows of forty keys out of order, in two parts with a watermark between them.
fn parts() -> [Batch; 2] {
    let mut random = fastrand::Rng::with_seed(5);
    let mut lines: Vec<String> =
        (0..600).map(|n| format!("+I key{} {n} {}", random.u8(0..40), 100 * n + random.i64(0..9_000))).collect();
    lines.insert(300, "~25000".to_string());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    [batch(&lines[..301]), batch(&lines[301..])]
}

fn check_restart<C: SessionContent>(make: impl Fn(&OperatorContext) -> SessionWindow<C>) {
    let [first, second] = parts();
    let mut whole = make(&context());
    push(&mut whole, first, &mut Lines::default());
    let snapshots = snapshot(&mut whole);
    let mut expected = Lines::default();
    push(&mut whole, second.clone(), &mut expected);
    whole.process_watermark(Watermark::MAX, &mut expected).unwrap();
    let expected = expected.take_sorted_rows();
    assert!(expected.len() > 40);

    let (mut thirds, mut output) = (Vec::new(), Lines::default());
    for index in 0..3 {
        let context = context_of(index, 3, VirtualClock::new(0), &[]);
        let mut third = make(&context);
        restore(&mut third, &context, &snapshots);
        thirds.push(snapshot(&mut third));
        push(&mut third, share(&second, index, 3), &mut output);
        third.process_watermark(Watermark::MAX, &mut output).unwrap();
    }
    assert_eq!(output.take_sorted_rows(), expected);

    let mut joined = make(&context());
    thirds.iter().for_each(|third| restore(&mut joined, &context(), third));
    push(&mut joined, second, &mut output);
    joined.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(output.take_sorted_rows(), expected);
}

#[test]
fn state_is_split_and_joined() {
    check_restart(|context| operator_of(rowtime(), context, false));
    check_restart(|context| SessionWindow::rows(&window(rowtime()), context).unwrap());
}
