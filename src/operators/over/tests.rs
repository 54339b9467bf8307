//! What OVER gives, row by row; and that it does not mind being stopped and restored with another parallelism.

use std::sync::Arc;

use super::over;
use crate::clock::VirtualClock;
use crate::expr::SortKey;
use crate::operators::testing::*;
use crate::runtime::{Operator, OperatorContext};
use crate::stream_graph::{FrameBound, FrameUnit, OverCall, OverFrame, OverOperatorSpec, OverSpec, OverStrategy};
use crate::types::{Batch, DataType, Field, Schema, TypeKind, Watermark};

/// COUNT, SUM and MAX of the second column, partitioned by the first one, ordered by the third one.
pub(super) fn spec(strategy: OverStrategy, unit: FrameUnit, start: FrameBound) -> OverOperatorSpec {
    let fields = [("k", DataType::string()), ("v", DataType::nullable(TypeKind::BigInt)), ("ts", rowtime())];
    let input = Schema::new(fields.map(|(name, data_type)| Field::new(name, data_type)).to_vec());
    let frame = OverFrame::new(unit, start, FrameBound::CurrentRow);
    let over = OverSpec {
        partition_keys: vec![0],
        order_keys: vec![SortKey { column: 2, descending: false, nulls_first: true }],
        calls: ["COUNT(*)", "SUM", "MAX"].map(|call| OverCall { frame, call: aggregate(call) }).to_vec(),
        limit: None,
        ttl: None,
    };
    OverOperatorSpec { over, strategy, input_retracts: true, emit_update_before: true, changes: None, input: Arc::new(input) }
}

const BY_TIME: OverStrategy = OverStrategy::EventTime(2);

fn pushed(operator: &mut dyn Operator, lines: &[&str]) -> Vec<String> {
    let mut output = Lines::default();
    push(operator, batch(lines), &mut output);
    output.take()
}

#[test]
fn rows_come_out_in_the_order_of_their_time_when_the_watermark_passes_them() {
    let mut sums = over(&spec(BY_TIME, FrameUnit::Rows, FrameBound::UnboundedPreceding), &context()).unwrap();
    assert_eq!(pushed(&mut *sums, &["+I a 5 30", "+I a 1 10", "+I b 7 20"]), [""; 0]);
    let out = pushed(&mut *sums, &["~20", "+I a 2 20", "+I a 3 25"]);
    assert_eq!(out, ["+I a 1 10 1 1 1", "+I b 7 20 1 7 7", "~20"], "what the watermark has passed is late");
    let mut output = Lines::default();
    sums.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(output.take()[..2], ["+I a 3 25 2 4 3", "+I a 5 30 3 9 5"]);
}

#[test]
fn rows_of_one_time_share_their_range() {
    let mut sums = over(&spec(BY_TIME, FrameUnit::Range, FrameBound::UnboundedPreceding), &context()).unwrap();
    let out = pushed(&mut *sums, &["+I a 1 10", "+I a 2 10", "+I a 4 11", "~11"]);
    assert_eq!(out, ["+I a 1 10 2 3 2", "+I a 2 10 2 3 2", "+I a 4 11 3 7 4", "~11"]);
}

#[test]
fn rows_leave_their_frames() {
    let mut rows = over(&spec(BY_TIME, FrameUnit::Rows, FrameBound::Preceding(1)), &context()).unwrap();
    let out = pushed(&mut *rows, &["+I a 9 10", "+I a 2 11", "+I a 3 12", "~20"]);
    assert_eq!(out, ["+I a 9 10 1 9 9", "+I a 2 11 2 11 9", "+I a 3 12 2 5 3", "~20"]);
    // Late is what is not after the last row that came out.
    assert_eq!(pushed(&mut *rows, &["+I a 4 13", "+I a 1 12", "~21"]), ["+I a 4 13 2 7 4", "~21"]);
    let mut range = over(&spec(BY_TIME, FrameUnit::Range, FrameBound::Preceding(5)), &context()).unwrap();
    let out = pushed(&mut *range, &["+I a 9 10", "+I a 2 15", "+I a 3 16", "~16"]);
    assert_eq!(out, ["+I a 9 10 1 9 9", "+I a 2 15 2 11 9", "+I a 3 16 2 5 3", "~16"]);
}

#[test]
fn a_partition_that_no_frame_can_reach_is_forgotten() {
    let mut range = over(&spec(BY_TIME, FrameUnit::Range, FrameBound::Preceding(10)), &context()).unwrap();
    pushed(&mut *range, &["+I a 9 10"]);
    let empty: Vec<usize> = snapshot(&mut *range).iter().map(|table| table.rows().unwrap().len()).collect();
    assert_eq!(empty[1], 1, "the row waits");
    pushed(&mut *range, &["~100"]);
    assert!(snapshot(&mut *range)[..2].iter().all(|table| table.rows().unwrap().is_empty()), "nothing is left");
    assert_eq!(pushed(&mut *range, &["+I a 1 20", "~101"]), ["+I a 1 20 1 1 1", "~101"]);
}

#[test]
fn by_the_clock_rows_come_out_at_once_or_when_it_moves_on() {
    let clock = VirtualClock::new(1_000);
    let context: OperatorContext = context_of(0, 1, Arc::clone(&clock), &[]);
    let proctime = OverStrategy::ProcessingTime;
    let mut last = over(&spec(proctime, FrameUnit::Rows, FrameBound::Preceding(1)), &context).unwrap();
    assert_eq!(pushed(&mut *last, &["+I a 1", "+I a 2", "+I a 3"]), ["+I a 1 0 1 1 1", "+I a 2 0 2 3 2", "+I a 3 0 2 5 3"]);
    let mut range = over(&spec(proctime, FrameUnit::Range, FrameBound::Preceding(500)), &context).unwrap();
    assert_eq!(pushed(&mut *range, &["+I a 1", "+I a 2"]), [""; 0]);
    assert_eq!(range.next_processing_timer(), Some(1_001));
    clock.advance_to(1_500);
    let mut output = Lines::default();
    range.process_time(1_500, &mut output).unwrap();
    assert_eq!(output.take(), ["+I a 1 0 2 3 2", "+I a 2 0 2 3 2"]);
    pushed(&mut *range, &["+I a 4"]);
    clock.advance_to(1_501);
    assert_eq!(pushed(&mut *range, &["+I a 8"]), ["+I a 4 0 3 7 4"]);
    range.process_time(1_502, &mut output).unwrap();
    assert_eq!(output.take(), ["+I a 8 0 2 12 8"]);
}

#[test]
fn by_another_column_rows_change_the_results_of_those_behind_them() {
    let mut spec = spec(OverStrategy::Sorted, FrameUnit::Range, FrameBound::UnboundedPreceding);
    spec.over.order_keys[0].column = 1;
    let mut sums = over(&spec, &context()).unwrap();
    assert_eq!(pushed(&mut *sums, &["+I a 5 1", "+I b 7 1", "~3"]), ["+I a 5 1 1 5 5", "+I b 7 1 1 7 7", "~3"]);
    let out = pushed(&mut *sums, &["+I a 2 1", "+I a 5 2", "+I a 9 1"]);
    assert_eq!(out, ["+I a 2 1 1 2 2", "-U a 5 1 1 5 5", "+U a 5 1 3 12 5", "+I a 5 2 3 12 5", "+I a 9 1 4 21 9"]);
    let out = pushed(&mut *sums, &["-D a 5 1", "-D b 7 1"]);
    assert_eq!(
        out,
        ["-D a 5 1 3 12 5", "-D b 7 1 1 7 7", "-U a 5 2 3 12 5", "+U a 5 2 2 7 5", "-U a 9 1 4 21 9", "+U a 9 1 3 16 9"]
    );
    let mut restored = over(&spec, &context()).unwrap();
    restore(&mut *restored, &context(), &snapshot(&mut *sums));
    let out = pushed(&mut *restored, &["-U a 2 1", "+U a 6 1"]);
    let expected =
        ["-U a 5 2 2 7 5", "+U a 5 2 1 5 5", "-U a 2 1 1 2 2", "+U a 6 1 2 11 6", "-U a 9 1 3 16 9", "+U a 9 1 3 20 9"];
    assert_eq!(out, expected);
    assert_eq!(pushed(&mut *restored, &["-D a 5 2", "-D a 6 1", "-D a 9 1"]).len(), 3);
}

#[test]
fn rows_behind_the_last_rank_are_forgotten_where_rows_only_come() {
    for function in ["RANK", "DENSE_RANK"] {
        let mut spec = spec(OverStrategy::Sorted, FrameUnit::Range, FrameBound::UnboundedPreceding);
        spec.over.order_keys[0] = SortKey { column: 1, descending: true, nulls_first: false };
        spec.over.calls.truncate(1);
        spec.over.calls[0].call.function = function.to_string();
        spec.over.limit = Some(2);
        for (retracts, kept) in [(false, 3), (true, 5)] {
            spec.input_retracts = retracts;
            let mut ranks = over(&spec, &context()).unwrap();
            assert_eq!(
                pushed(&mut *ranks, &["+I a 5 1", "+I a 9 1", "+I a 7 1", "+I a 9 2"]).len(),
                if function == "RANK" { 2 } else { 3 }
            );
            pushed(&mut *ranks, &["+I a 10 1"]);
            let rows: usize = snapshot(&mut *ranks)[0].rows().unwrap().iter().map(|rows| rows.num_rows()).sum();
            assert_eq!(rows, kept, "{function} {retracts}");
            assert_eq!(pushed(&mut *ranks, &["+I a 6 1"]), [""; 0]);
        }
    }
}

/// What comes out when each part of the input is processed by so many subtasks that share out the state of those before.
fn run(spec: &OverOperatorSpec, parts: &[Batch], parallelisms: &[u32]) -> Vec<String> {
    let (mut snapshots, mut lines, mut told) = (Vec::new(), Vec::new(), None);
    for (stage, (part, parallelism)) in parts.iter().zip(parallelisms).enumerate() {
        let mut next = Vec::new();
        for index in 0..*parallelism {
            let context = context_of(index, *parallelism, VirtualClock::new(0), &[]);
            let mut operator = over(spec, &context).unwrap();
            operator.open(&context).unwrap();
            snapshots.iter().for_each(|snapshot: &Vec<_>| restore(&mut *operator, &context, snapshot));
            let mut output = Lines::default();
            // A task that is restored tells its operators again how far event time had come.
            told.into_iter().for_each(|watermark| operator.process_watermark(watermark, &mut output).unwrap());
            push(&mut *operator, share(part, index, *parallelism), &mut output);
            if stage + 1 == parts.len() {
                operator.process_watermark(Watermark::MAX, &mut output).unwrap();
            }
            next.push(snapshot(&mut *operator));
            lines.extend(output.take_sorted_rows());
        }
        snapshots = next;
        told = part.steps().last().or(told);
    }
    lines.sort_unstable();
    lines
}

#[test]
fn restored_with_another_parallelism_it_goes_on_as_if_nothing_had_been() {
    let mut random = fastrand::Rng::with_seed(11);
    let mut lines = Vec::new();
    for step in 0..600 {
        lines.push(format!("+I key{} {} {}", random.u8(0..12), random.i64(0..50), step * 3 + random.i64(-60..40)));
        if step % 40 == 39 {
            lines.push(format!("~{}", step * 3));
        }
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let parts: Vec<Batch> = lines.chunks(lines.len().div_ceil(3)).map(batch).collect();
    let whole = [Batch::concat(&parts).unwrap()];
    for (unit, start) in [
        (FrameUnit::Rows, FrameBound::UnboundedPreceding),
        (FrameUnit::Range, FrameBound::UnboundedPreceding),
        (FrameUnit::Rows, FrameBound::Preceding(3)),
        (FrameUnit::Range, FrameBound::Preceding(400)),
    ] {
        let spec = spec(BY_TIME, unit, start);
        let expected = run(&spec, &whole, &[1]);
        assert!((400..600).contains(&expected.len()), "some rows are late");
        assert_eq!(run(&spec, &parts, &[1, 3, 2]), expected, "{unit:?} {start:?}");
    }
    let by_clock = spec(OverStrategy::ProcessingTime, FrameUnit::Rows, FrameBound::Preceding(3));
    assert_eq!(run(&by_clock, &parts, &[2, 1, 3]), run(&by_clock, &whole, &[1]));
}
