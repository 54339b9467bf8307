//! Sessions with early and late firing, on batches built by hand.

use super::UpdatingSessions;
use crate::clock::VirtualClock;
use crate::operators::testing::*;
use crate::runtime::Operator;
use crate::stream_graph::{EmitStrategy, LateFire, WindowAggregateSpec, WindowKind, WindowProperty, WindowSource, WindowSpec};
use crate::types::Watermark;

const LATE: EmitStrategy = EmitStrategy { early_delay_ms: None, late: Some(LateFire { allowed_lateness_ms: 50, delay_ms: 0 }) };
const EARLY: EmitStrategy = EmitStrategy { early_delay_ms: Some(0), late: None };

/// Sessions with a gap of 10 by the first column.
fn spec(emit: EmitStrategy, input_retracts: bool) -> (WindowAggregateSpec, WindowSpec) {
    let kind = WindowKind::Session { gap_ms: 10 };
    let window = WindowSpec { partition_keys: vec![0], ..WindowSpec::new(kind, 2, rowtime()) };
    let spec = WindowAggregateSpec {
        window: WindowSource::Assigned(window.clone()),
        keys: vec![0],
        aggregates: vec![aggregate("COUNT(*)"), aggregate("SUM")],
        properties: vec![WindowProperty::Start, WindowProperty::End],
        input_retracts,
        emit: Some(emit),
        emit_update_before: true,
    };
    (spec, window)
}

fn operator(emit: EmitStrategy, input_retracts: bool) -> UpdatingSessions {
    let (spec, window) = spec(emit, input_retracts);
    UpdatingSessions::new(&spec, &window, &context()).unwrap()
}

#[test]
fn a_late_row_updates_a_session_and_takes_back_what_it_makes_one() {
    let mut operator = operator(LATE, false);
    let mut output = Lines::default();
    push(&mut operator, batch(&["+I a 1 100", "+I a 2 115", "+I b 5 100", "~130"]), &mut output);
    assert_eq!(output.take_sorted_rows(), ["+I a 1 1 100 110", "+I a 1 2 115 125", "+I b 1 5 100 110"]);
    // Within its bounds, then between the two.
    push(&mut operator, batch(&["+I b 1 100"]), &mut output);
    assert_eq!(output.take(), ["-U b 1 5 100 110", "+U b 2 6 100 110"]);
    push(&mut operator, batch(&["+I a 4 108"]), &mut output);
    assert_eq!(output.take_sorted_rows(), ["+I a 3 7 100 125", "-D a 1 1 100 110", "-D a 1 2 115 125"]);
    // It grows beyond event time, and is shown at once all the same, not again at its end.
    push(&mut operator, batch(&["+I a 8 125"]), &mut output);
    assert_eq!(output.take(), ["-D a 3 7 100 125", "+I a 4 15 100 135"]);
    operator.process_watermark(Watermark(140), &mut output).unwrap();
    assert_eq!(output.take(), ["~140"]);
    operator.process_watermark(Watermark(184), &mut output).unwrap();
    push(&mut operator, batch(&["+I a 1 120"]), &mut output);
    assert_eq!(output.take_sorted_rows(), Vec::<String>::new());
}

#[test]
fn an_early_result_is_taken_back_when_its_session_grows() {
    let mut operator = operator(EARLY, true);
    let mut output = Lines::default();
    for (lines, expected) in [
        (vec!["+I a 1 100"], vec!["+I a 1 1 100 110"]),
        (vec!["+I a 2 100"], vec!["-U a 1 1 100 110", "+U a 2 3 100 110"]),
        (vec!["+I a 3 105"], vec!["-D a 2 3 100 110", "+I a 3 6 100 115"]),
        (vec!["-D a 1 100", "-D a 2 100", "-D a 3 105"], vec!["-D a 3 6 100 115"]),
        (vec!["+I a 4 101"], vec!["+I a 1 4 100 115"]),
        (vec!["~114"], vec!["~114"]),
    ] {
        push(&mut operator, batch(&lines), &mut output);
        assert_eq!(output.take(), expected);
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
            let at = table.iter().position(|other| other == row).unwrap_or_else(|| panic!("{row} is not there: {table:?}"));
            table.swap_remove(at);
        }
    }
    table.sort_unstable();
    table
}

#[test]
fn batches_and_restarts_do_not_change_the_table() {
    let delayed = EmitStrategy { early_delay_ms: Some(5), late: Some(LateFire { allowed_lateness_ms: 90, delay_ms: 7 }) };
    let both = EmitStrategy { early_delay_ms: Some(0), ..LATE };
    for (seed, emit) in (0..40).flat_map(|seed| [LATE, EARLY, delayed, both].map(|emit| (seed, emit))) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut lines, mut time) = (Vec::new(), 100);
        for row in 0..90 {
            time += random.i64(0..9);
            lines.push(format!("+I key{} {row} {}", random.u8(0..4), time - random.i64(0..70)));
            lines.push(format!("~{time}"));
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (spec, window) = spec(emit, false);
        let answer = |size: usize, restart: bool| {
            let (mut output, clock) = (Lines::default(), VirtualClock::new(0));
            let mut contexts = vec![context_of(0, 1, clock.clone(), &[])];
            let mut parts = vec![UpdatingSessions::new(&spec, &window, &contexts[0]).unwrap()];
            for (index, chunk) in lines.chunks(size).enumerate() {
                if restart && index == 5 {
                    let snapshots = snapshot(&mut parts[0]);
                    contexts = (0..3).map(|index| context_of(index, 3, clock.clone(), &[])).collect();
                    parts = contexts.iter().map(|context| UpdatingSessions::new(&spec, &window, context).unwrap()).collect();
                    parts.iter_mut().zip(&contexts).for_each(|(part, context)| restore(part, context, &snapshots));
                }
                let count = parts.len() as u32;
                for (index, part) in parts.iter_mut().enumerate() {
                    let whole = batch(chunk);
                    let rows = if count == 1 { whole } else { share(&whole, index as u32, count) };
                    push(part, rows, &mut output);
                }
                clock.advance_to(index as i64 + 1);
                parts.iter_mut().for_each(|part| part.process_time(index as i64 + 1, &mut output).unwrap());
            }
            parts.iter_mut().for_each(|part| part.process_watermark(Watermark::MAX, &mut output).unwrap());
            fold(output.take())
        };
        let expected = answer(2, false);
        assert!(expected.len() > 5);
        for (size, restart) in [(1, false), (7, false), (180, false), (3, true), (10, true), (20, true)] {
            assert_eq!(answer(size, restart), expected, "seed {seed}, {emit}, batches of {size}, restarted: {restart}");
        }
    }
}
