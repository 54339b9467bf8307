//! Windows with early and late firing, on batches built by hand.

use super::UpdatingWindowAggregate;
use crate::clock::VirtualClock;
use crate::operators::testing::*;
use crate::runtime::{Operator, OperatorContext};
use crate::stream_graph::{EmitStrategy, LateFire, WindowAggregateSpec, WindowKind, WindowProperty, WindowSource, WindowSpec};
use crate::types::{DataType, TimeAttribute, TypeKind, Watermark};

const TUMBLE_10: WindowKind = WindowKind::Tumble { size_ms: 10_000, offset_ms: 0 };
const HOP_5_10: WindowKind = WindowKind::Hop { slide_ms: 5_000, size_ms: 10_000, offset_ms: 0 };

const EARLY: EmitStrategy = EmitStrategy { early_delay_ms: Some(0), late: None };
const LATE: EmitStrategy = late(10_000, 0);

const fn late(allowed_lateness_ms: i64, delay_ms: i64) -> EmitStrategy {
    EmitStrategy { early_delay_ms: None, late: Some(LateFire { allowed_lateness_ms, delay_ms }) }
}

fn spec(kind: WindowKind, emit: EmitStrategy, time_type: DataType, input_retracts: bool) -> WindowAggregateSpec {
    WindowAggregateSpec {
        window: WindowSource::Assigned(WindowSpec::new(kind, 2, time_type)),
        keys: vec![0],
        aggregates: vec![aggregate("COUNT(*)"), aggregate("SUM")],
        properties: vec![WindowProperty::Start],
        input_retracts,
        emit: Some(emit),
        emit_update_before: true,
    }
}

fn operator(kind: WindowKind, emit: EmitStrategy) -> (UpdatingWindowAggregate, OperatorContext) {
    let context = context();
    (UpdatingWindowAggregate::new(spec(kind, emit, rowtime(), false), &context).unwrap(), context)
}

fn late_rows(context: &OperatorContext) -> u64 {
    context.metrics.late_rows.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn a_late_row_updates_its_window_until_the_allowed_lateness_has_passed() {
    let (mut operator, context) = operator(TUMBLE_10, LATE);
    let mut output = Lines::default();
    push(&mut operator, batch(&["+I a 1 1000", "+I b 2 8000", "~11000", "+I b 5 9000", "+I b 6 11500"]), &mut output);
    assert_eq!(output.take(), ["+I a 1 1 0", "+I b 1 2 0", "~11000", "-U b 1 2 0", "+U b 2 7 0", "~11000"]);
    // A window that had no row yet is shown at once; groups that no row came for are not.
    push(&mut operator, batch(&["~19998", "+I c 7 3000", "~19999", "+I a 8 3000"]), &mut output);
    assert_eq!(output.take(), ["+I c 1 7 0", "+I b 1 6 10000", "~19999", "~19999"]);
    assert_eq!(late_rows(&context), 1, "event time was at the end and the allowed lateness");
    operator.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(output.take(), ["~max"]);
}

#[test]
fn a_row_late_for_one_hopping_window_is_early_for_the_next() {
    let (mut operator, _) = operator(HOP_5_10, LATE);
    let mut output = Lines::default();
    push(&mut operator, batch(&["+I a 1 6000", "~11000", "+I a 2 7000"]), &mut output);
    assert_eq!(output.take(), ["+I a 1 1 0", "~11000", "-U a 1 1 0", "+U a 2 3 0", "~11000"]);
    operator.process_watermark(Watermark(15_000), &mut output).unwrap();
    assert_eq!(output.take(), ["+I a 2 3 5000", "~15000"]);
}

#[test]
fn an_early_result_is_updated_and_not_said_again_at_the_end() {
    let (mut operator, context) = operator(TUMBLE_10, EARLY);
    let mut output = Lines::default();
    push(&mut operator, batch(&["+I a 1 1000", "+I a 2 2000"]), &mut output);
    push(&mut operator, batch(&["+I a 3 3000", "+I b 0 3000"]), &mut output);
    assert_eq!(output.take(), ["+I a 2 3 0", "-U a 2 3 0", "+U a 3 6 0", "+I b 1 0 0"]);
    push(&mut operator, batch(&["~9999", "+I a 1 1000"]), &mut output);
    assert_eq!(output.take(), ["~9999", "~9999"]);
    assert_eq!(late_rows(&context), 1);
}

#[test]
fn a_delayed_firing_goes_by_the_clock_and_is_not_lost_at_the_end() {
    let clock = VirtualClock::new(0);
    let context = context_of(0, 1, clock.clone(), &[]);
    let emit = EmitStrategy { early_delay_ms: Some(1_000), ..late(10_000, 3_000) };
    let mut operator = UpdatingWindowAggregate::new(spec(TUMBLE_10, emit, rowtime(), false), &context).unwrap();
    let mut output = Lines::default();
    push(&mut operator, batch(&["+I a 1 1000"]), &mut output);
    clock.advance_to(500);
    push(&mut operator, batch(&["+I a 2 1000"]), &mut output);
    assert_eq!((output.take(), operator.next_processing_timer()), (vec![], Some(1_000)));
    operator.process_time(1_000, &mut output).unwrap();
    assert_eq!((output.take(), operator.next_processing_timer()), (vec!["+I a 2 3 0".to_string()], None));
    clock.advance_to(2_000);
    push(&mut operator, batch(&["+I a 3 1000", "~10000", "+I a 4 1000"]), &mut output);
    assert_eq!(output.take(), ["-U a 2 3 0", "+U a 3 6 0", "~10000", "~10000"]);
    assert_eq!(operator.next_processing_timer(), Some(5_000));
    operator.process_watermark(Watermark(19_999), &mut output).unwrap();
    assert_eq!(output.take(), ["-U a 3 6 0", "+U a 4 10 0", "~19999"]);
}

#[test]
fn a_group_whose_rows_are_all_taken_back_is_deleted_and_may_come_again() {
    let mut operator = UpdatingWindowAggregate::new(spec(TUMBLE_10, EARLY, rowtime(), true), &context()).unwrap();
    let mut output = Lines::default();
    for (lines, expected) in [
        (vec!["+I a 1 1000", "+I b 2 1000"], vec!["+I a 1 1 0", "+I b 1 2 0"]),
        (vec!["-U a 1 1000", "+U a 4 1000", "-D b 2 1000"], vec!["-U a 1 1 0", "+U a 1 4 0", "-D b 1 2 0"]),
        (vec!["+I b 3 1000", "+I c 1 1000", "-D c 1 1000"], vec!["+I b 1 3 0"]),
        (vec!["-U b 3 1000", "+U b 3 1000"], vec![]),
    ] {
        push(&mut operator, batch(&lines), &mut output);
        assert_eq!(output.take(), expected);
    }
}

#[test]
fn the_clock_ends_windows_on_processing_time() {
    let clock = VirtualClock::new(0);
    let context = context_of(0, 1, clock.clone(), &[]);
    let time_type = DataType::nullable(TypeKind::TimestampLtz(3)).with_time(Some(TimeAttribute::Proctime));
    let emit = EmitStrategy { early_delay_ms: Some(4_000), late: None };
    let mut operator = UpdatingWindowAggregate::new(spec(TUMBLE_10, emit, time_type, false), &context).unwrap();
    let mut output = Lines::default();
    push(&mut operator, batch(&["+I a 1"]), &mut output);
    assert_eq!(operator.next_processing_timer(), Some(4_000));
    clock.advance_to(4_000);
    operator.process_time(4_000, &mut output).unwrap();
    clock.advance_to(8_000);
    push(&mut operator, batch(&["+I a 2"]), &mut output);
    assert_eq!((output.take(), operator.next_processing_timer()), (vec!["+I a 1 1 0".to_string()], Some(10_000)));
    clock.advance_to(10_000);
    operator.process_time(10_000, &mut output).unwrap();
    assert_eq!(
        (output.take(), operator.next_processing_timer()),
        (vec!["-U a 1 1 0".to_string(), "+U a 2 3 0".to_string()], None)
    );
}

/// Rows out of order in batches of any size, with a restart at any place, fold to one table.
#[test]
fn batches_and_restarts_do_not_change_the_table() {
    for (kind, emit) in [(TUMBLE_10, LATE), (HOP_5_10, LATE), (HOP_5_10, EARLY), (TUMBLE_10, late(15_000, 500))] {
        let mut random = fastrand::Rng::with_seed(7);
        let mut lines = Vec::new();
        let mut time = 0;
        for row in 0..120 {
            time += random.i64(0..1_500);
            lines.push(format!("+I key{} {row} {}", random.u8(0..9), (time - random.i64(0..22_000)).max(0)));
            lines.push(format!("~{time}"));
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let answer = |size: usize, restart: bool| {
            let mut parts = vec![(context(), None)];
            let mut output = Lines::default();
            for (index, chunk) in lines.chunks(size).enumerate() {
                if restart && index == 4 {
                    let snapshots: Vec<_> = parts
                        .iter_mut()
                        .filter_map(|(_, operator): &mut (_, Option<UpdatingWindowAggregate>)| operator.as_mut())
                        .map(|operator| snapshot(operator))
                        .collect();
                    parts = (0..3).map(|index| (context_of(index, 3, VirtualClock::new(0), &[]), None)).collect();
                    for (context, part) in &mut parts {
                        let mut fresh = UpdatingWindowAggregate::new(spec(kind, emit, rowtime(), false), context).unwrap();
                        snapshots.iter().for_each(|snapshots| restore(&mut fresh, context, snapshots));
                        *part = Some(fresh);
                    }
                }
                let count = parts.len() as u32;
                for (index, (context, part)) in parts.iter_mut().enumerate() {
                    let operator = part.get_or_insert_with(|| {
                        UpdatingWindowAggregate::new(spec(kind, emit, rowtime(), false), context).unwrap()
                    });
                    let whole = batch(chunk);
                    let rows = if count == 1 { whole } else { share(&whole, index as u32, count) };
                    push(operator, rows, &mut output);
                }
            }
            for (_, operator) in &mut parts {
                operator.as_mut().unwrap().process_watermark(Watermark::MAX, &mut output).unwrap();
            }
            fold(output.take())
        };
        let expected = answer(2, false);
        assert!(expected.len() > 30);
        for size in [1, 7, 24, 240] {
            assert_eq!(answer(size, false), expected, "{kind:?} {emit} in batches of {size}");
        }
        for size in [3, 10, 20] {
            assert_eq!(answer(size, true), expected, "{kind:?} {emit} restarted, in batches of {size}");
        }
    }
}

/// The table that output lines fold to, sorted.
fn fold(lines: Vec<String>) -> Vec<String> {
    let mut table: Vec<String> = Vec::new();
    for line in lines.into_iter().filter(|line| !line.starts_with('~')) {
        let (kind, row) = line.split_once(' ').unwrap();
        if kind.starts_with('+') {
            table.push(row.to_string());
        } else {
            let at = table.iter().position(|other| other == row).expect("only rows that are there are taken back");
            table.swap_remove(at);
        }
    }
    table.sort_unstable();
    table
}
