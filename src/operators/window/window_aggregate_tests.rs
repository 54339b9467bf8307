//! Windows as Flink 2.3 fires them, on batches built by hand.

use std::sync::atomic::Ordering;

use super::*;
use crate::clock::VirtualClock;
use crate::operators::testing::*;
use crate::stream_graph::{WindowKind, WindowSource, WindowSpec};
use crate::types::{DataType, TimeAttribute, TypeKind};

fn spec(kind: WindowKind, time_type: DataType, input_retracts: bool) -> WindowAggregateSpec {
    WindowAggregateSpec {
        window: WindowSource::Assigned(WindowSpec::new(kind, 2, time_type)),
        keys: vec![0],
        aggregates: vec![aggregate("COUNT(*)"), aggregate("SUM")],
        properties: vec![WindowProperty::Start, WindowProperty::End, WindowProperty::Time],
        input_retracts,
        emit: None,
        emit_update_before: false,
    }
}

const TUMBLE_10: WindowKind = WindowKind::Tumble { size_ms: 10_000, offset_ms: 0 };
const HOP_5_10: WindowKind = WindowKind::Hop { slide_ms: 5_000, size_ms: 10_000, offset_ms: 0 };

fn operator(kind: WindowKind) -> (WindowAggregate, OperatorContext) {
    let context = context();
    (WindowAggregate::new(spec(kind, rowtime(), false), &context).unwrap(), context)
}

/// Rows out of order, each followed by its time as watermark where that rises.
const ROWS: [&str; 14] = [
    "+I a 1 1000",
    "~1000",
    "+I a 2 5000",
    "~5000",
    "+I a 3 12000",
    "~12000",
    "+I a 4 3000",
    "+I a 5 9999",
    "+I b 6 16000",
    "~16000",
    "+I b 7 2000",
    "+I b 8 11000",
    "+I b 9 31000",
    "~31000",
];

#[test]
fn tumbling_windows_fire_within_a_batch_and_late_rows_are_counted() {
    let (mut operator, context) = operator(TUMBLE_10);
    let mut output = Lines::default();
    push(&mut operator, batch(&ROWS), &mut output);
    assert_eq!(
        output.take(),
        ["+I a 2 3 0 10000 9999", "~12000", "+I a 1 3 10000 20000 19999", "+I b 2 14 10000 20000 19999", "~31000", "~31000",]
    );
    assert_eq!(context.metrics.late_rows.load(Ordering::Relaxed), 3);
    operator.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(output.take(), ["+I b 1 9 30000 40000 39999", "~max"]);
}

#[test]
fn hopping_windows_take_rows_for_those_that_have_not_fired() {
    let (mut operator, context) = operator(HOP_5_10);
    let mut output = Lines::default();
    push(&mut operator, batch(&ROWS), &mut output);
    operator.process_watermark(Watermark::MAX, &mut output).unwrap();
    let rows: Vec<String> = output.take().into_iter().filter(|line| !line.starts_with('~')).collect();
    assert_eq!(
        rows,
        [
            "+I a 1 1 -5000 5000 4999",
            "+I a 2 3 0 10000 9999",
            "+I a 3 10 5000 15000 14999",
            "+I a 1 3 10000 20000 19999",
            "+I b 2 14 10000 20000 19999",
            "+I b 1 6 15000 25000 24999",
            "+I b 1 9 25000 35000 34999",
            "+I b 1 9 30000 40000 39999",
        ]
    );
    assert_eq!(context.metrics.late_rows.load(Ordering::Relaxed), 2);
}

#[test]
fn batches_of_any_size_give_the_same_windows() {
    let odd = WindowKind::Hop { slide_ms: 4_000, size_ms: 6_000, offset_ms: -1_000 };
    let cumulate = WindowKind::Cumulate { step_ms: 2_000, size_ms: 6_000, offset_ms: -1_000 };
    for kind in [TUMBLE_10, HOP_5_10, odd, cumulate] {
        let whole = batch(&ROWS);
        let mut answers = Vec::new();
        for size in [1, 2, 5, 9] {
            let (mut operator, _) = operator(kind);
            let mut output = Lines::default();
            for offset in (0..whole.num_rows()).step_by(size) {
                push(&mut operator, whole.slice(offset, size.min(whole.num_rows() - offset)), &mut output);
            }
            operator.process_watermark(Watermark::MAX, &mut output).unwrap();
            answers.push(output.take_sorted_rows());
        }
        answers.windows(2).for_each(|pair| assert_eq!(pair[0], pair[1]));
    }
}

/// As Flink has them: each step shows what came before it too, and a row after its step counts from the next one on.
#[test]
fn cumulating_windows_grow_step_by_step() {
    let kind = WindowKind::Cumulate { step_ms: 5_000, size_ms: 15_000, offset_ms: 0 };
    let (mut operator, context) = operator(kind);
    let mut output = Lines::default();
    push(&mut operator, batch(&ROWS), &mut output);
    operator.process_watermark(Watermark::MAX, &mut output).unwrap();
    let rows: Vec<String> = output.take().into_iter().filter(|line| !line.starts_with('~')).collect();
    assert_eq!(
        rows,
        [
            "+I a 1 1 0 5000 4999",
            "+I a 2 3 0 10000 9999",
            "+I a 5 15 0 15000 14999",
            "+I b 1 6 15000 20000 19999",
            "+I b 1 6 15000 25000 24999",
            "+I b 1 6 15000 30000 29999",
            "+I b 1 9 30000 35000 34999",
            "+I b 1 9 30000 40000 39999",
            "+I b 1 9 30000 45000 44999",
        ]
    );
    assert_eq!(context.metrics.late_rows.load(Ordering::Relaxed), 2);
}

#[test]
fn the_last_step_may_be_shorter() {
    let (mut operator, _) = operator(WindowKind::Cumulate { step_ms: 4_000, size_ms: 10_000, offset_ms: 0 });
    let mut output = Lines::default();
    push(&mut operator, batch(&["+I a 1 1000", "+I a 2 9000"]), &mut output);
    operator.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(output.take(), ["+I a 1 1 0 4000 3999", "+I a 1 1 0 8000 7999", "+I a 2 3 0 10000 9999", "~max"]);
}

#[test]
fn windows_before_the_epoch_are_aligned_too() {
    let (mut operator, _) = operator(TUMBLE_10);
    let mut output = Lines::default();
    push(&mut operator, batch(&["+I a 1 -2000", "+I a 2 -12000", "+I a 3 0"]), &mut output);
    operator.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(output.take(), ["+I a 1 2 -20000 -10000 -10001", "+I a 1 1 -10000 0 -1", "+I a 1 3 0 10000 9999", "~max"]);
}

#[test]
fn rows_taken_back_leave_no_empty_group() {
    let mut operator = WindowAggregate::new(spec(HOP_5_10, rowtime(), true), &context()).unwrap();
    let mut output = Lines::default();
    push(
        &mut operator,
        batch(&["+I a 1 6000", "+I b 2 6000", "-D a 1 6000", "-U b 2 6000", "+U b 5 6000", "+I c 1 1000"]),
        &mut output,
    );
    operator.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(
        output.take(),
        ["+I c 1 1 -5000 5000 4999", "+I c 1 1 0 10000 9999", "+I b 1 5 0 10000 9999", "+I b 1 5 5000 15000 14999", "~max"]
    );
}

#[test]
fn a_row_without_time_is_an_error() {
    let (mut operator, _) = operator(TUMBLE_10);
    let error = operator.process_batch(InputNumber(0), batch(&["+I a 1 NULL"]), &mut Lines::default()).unwrap_err();
    assert_eq!(error.message(), "the rowtime of a row is NULL");
}

#[test]
fn instants_are_windowed_in_the_zone_of_the_session() {
    let instant = DataType::nullable(TypeKind::TimestampLtz(3)).with_time(Some(TimeAttribute::Rowtime));
    let day = WindowKind::Tumble { size_ms: 86_400_000, offset_ms: 0 };
    let context = context_of(0, 1, VirtualClock::new(0), &[("table.local-time-zone", "Asia/Shanghai")]);
    let mut operator = WindowAggregate::new(spec(day, instant, false), &context).unwrap();
    let mut output = Lines::default();
    // 1970-01-01 15:59 UTC is still the first of January in Shanghai, 16:00 is the second.
    push(&mut operator, batch(&["+I a 1 57540000", "+I a 2 57600000", "~57599998"]), &mut output);
    assert_eq!(output.take(), ["~57599998"]);
    operator.process_watermark(Watermark(57_599_999), &mut output).unwrap();
    assert_eq!(output.take(), ["+I a 1 1 0 86400000 57599999Z", "~57599999"]);
}

#[test]
fn processing_time_windows_fire_by_the_clock_and_are_dropped_at_the_end() {
    let proctime = DataType::not_null(TypeKind::TimestampLtz(3)).with_time(Some(TimeAttribute::Proctime));
    let clock = VirtualClock::new(1_000);
    let context = context_of(0, 1, clock.clone(), &[]);
    let mut operator = WindowAggregate::new(spec(TUMBLE_10, proctime, false), &context).unwrap();
    let mut output = Lines::default();
    push(&mut operator, batch(&["+I a 1", "+I a 2", "~99"]), &mut output);
    assert_eq!(output.take(), ["~99"]);
    assert_eq!(operator.next_processing_timer(), Some(10_000));
    clock.advance_to(10_000);
    operator.process_time(10_000, &mut output).unwrap();
    assert_eq!(output.take(), ["+I a 2 3 0 10000 9999Z"]);
    push(&mut operator, batch(&["+I a 3"]), &mut output);
    operator.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(output.take(), ["~max"]);
}

#[test]
fn attached_windows_close_by_the_watermark() {
    let window = WindowSource::Attached { start: 2, end: 2, time_type: rowtime() };
    let spec = WindowAggregateSpec { window, ..spec(TUMBLE_10, rowtime(), false) };
    let mut operator = WindowAggregate::new(spec, &context()).unwrap();
    let mut output = Lines::default();
    push(&mut operator, batch(&["+I a 1 20", "+I a 1 10", "+I a 2 10", "~9", "+I a 4 10", "+I a 8 20"]), &mut output);
    operator.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(output.take(), ["+I a 2 3 10 10 9", "~9", "~9", "+I a 2 9 20 20 19", "~max"]);
}

#[test]
fn attached_windows_with_one_end_and_several_starts_all_fire() {
    let window = WindowSource::Attached { start: 2, end: 3, time_type: rowtime() };
    let spec = WindowAggregateSpec { window, ..spec(TUMBLE_10, rowtime(), false) };
    let mut operator = WindowAggregate::new(spec, &context()).unwrap();
    let rows = batch(&["+I a 1 10", "+I a 2 20"]);
    let ends: ArrayRef = Arc::new(arrow::array::TimestampMillisecondArray::from(vec![30, 30]));
    let columns = rows.columns().iter().cloned().chain([ends]).collect();
    let mut output = Lines::default();
    push(&mut operator, Batch::new(columns, 2), &mut output);
    operator.process_watermark(Watermark(29), &mut output).unwrap();
    assert_eq!(output.take(), ["+I a 1 1 10 30 29", "+I a 1 2 20 30 29", "~29"]);
}

#[test]
fn state_is_split_and_joined_with_the_progress() {
    let lines: Vec<String> = (0..300).map(|n| format!("+I key{} {n} {}", n % 40, 100 * n)).collect();
    let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    lines.insert(150, "~14000");
    lines.push("+I key1 7 100"); // late for ever
    let (first, second) = (batch(&lines[..151]), batch(&lines[151..]));
    let mut whole = WindowAggregate::new(spec(HOP_5_10, rowtime(), false), &context()).unwrap();
    push(&mut whole, first, &mut Lines::default());
    let snapshots = snapshot(&mut whole);
    let mut expected = Lines::default();
    push(&mut whole, second.clone(), &mut expected);
    whole.process_watermark(Watermark::MAX, &mut expected).unwrap();
    let expected = expected.take_sorted_rows();

    let (mut halves, mut output) = (Vec::new(), Lines::default());
    for index in 0..2 {
        let context = context_of(index, 2, VirtualClock::new(0), &[]);
        let mut half = WindowAggregate::new(spec(HOP_5_10, rowtime(), false), &context).unwrap();
        restore(&mut half, &context, &snapshots);
        halves.push(snapshot(&mut half));
        push(&mut half, share(&second, index, 2), &mut output);
        half.process_watermark(Watermark::MAX, &mut output).unwrap();
    }
    assert_eq!(output.take_sorted_rows(), expected);

    let mut joined = WindowAggregate::new(spec(HOP_5_10, rowtime(), false), &context()).unwrap();
    halves.iter().for_each(|half| restore(&mut joined, &context(), half));
    push(&mut joined, second, &mut output);
    joined.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(output.take_sorted_rows(), expected);
}

#[test]
fn slices_that_are_merged_beforehand_give_what_slices_give() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let slide_ms = random.i64(1..4);
        let size_ms = slide_ms * random.i64(8..70) + random.i64(0..2);
        let kind = WindowKind::Hop { slide_ms, size_ms, offset_ms: random.i64(-5..5) };
        let (mut merged, _) = operator(kind);
        let (mut plain, _) = operator(kind);
        plain.slices.merged = MergedSlices::default();
        let (mut now, keys) = (random.i64(-200..200), random.usize(1..5));
        let (mut of_merged, mut of_plain) = (Lines::default(), Lines::default());
        for _ in 0..random.usize(1..30) {
            let mut rows = Vec::new();
            for _ in 0..random.usize(1..12) {
                now += if random.u8(..12) == 0 { random.i64(0..300) } else { random.i64(0..4) };
                let behind = random.i64(0..size_ms);
                rows.push(format!("+I {} {} {}", ["a", "b", "c", "d"][random.usize(..keys)], random.i64(-9..9), now - behind));
                if random.bool() {
                    rows.push(format!("~{}", now - random.i64(0..5)));
                }
            }
            let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
            push(&mut merged, batch(&rows), &mut of_merged);
            push(&mut plain, batch(&rows), &mut of_plain);
        }
        for (operator, output) in [(&mut merged, &mut of_merged), (&mut plain, &mut of_plain)] {
            operator.process_watermark(Watermark::MAX, output).unwrap();
        }
        let (mut of_merged, mut of_plain) = (of_merged.take(), of_plain.take());
        of_merged.sort_unstable();
        of_plain.sort_unstable();
        assert_eq!(of_merged, of_plain, "seed {seed}");
        assert_eq!(merged.slices.merged.bytes(), 0, "nothing stays");
    }
}
