//! The state contract over all keyed operators: stopped half-way and restored with another parallelism, twice, they end up with what
//! one that was never stopped has.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::Int64Type;

use super::group_aggregate::GroupAggregate;
use super::testing::*;
use crate::clock::VirtualClock;
use crate::expr::AggregateCall;
use crate::runtime::{Operator, OperatorContext};
use crate::stream_graph::{WindowAggregateSpec, WindowKind, WindowProperty, WindowSource, WindowSpec};
use crate::types::{Batch, DataType, TimeAttribute, TypeKind, Watermark};

type Make<'a> = &'a dyn Fn(&OperatorContext) -> Box<dyn Operator>;

/// The column of [`with_filter`].
const FILTER: usize = 3;
/// When the clock is moved at the end.
const END_MS: i64 = 60_000;

/// Adds a column that says which numbers are even, for FILTER.
fn with_filter(batch: Batch) -> Batch {
    let numbers = batch.column(1).as_primitive::<Int64Type>();
    let even = BooleanArray::from_iter(numbers.iter().map(|number| Some(number? % 2 == 0)));
    let mut columns = batch.columns().to_vec();
    columns.push(Arc::new(even) as ArrayRef);
    batch.with_columns(columns)
}

/// All aggregates over the second column, some with DISTINCT, some with FILTER, some with both.
fn all_aggregates() -> Vec<AggregateCall> {
    let names = [
        "COUNT(*)",
        "COUNT",
        "SUM",
        "AVG",
        "MIN",
        "MAX",
        "FIRST_VALUE",
        "LAST_VALUE",
        "STDDEV_POP",
        "STDDEV_SAMP",
        "VAR_POP",
        "VAR_SAMP",
        "COLLECT",
        "ARRAY_AGG",
    ];
    let calls: Vec<AggregateCall> = names.into_iter().map(aggregate).collect();
    let distinct = ["COUNT", "SUM", "AVG", "MIN", "MAX"].map(|name| AggregateCall { distinct: true, ..aggregate(name) });
    let plain: Vec<AggregateCall> = calls.into_iter().chain(distinct).collect();
    let filtered: Vec<AggregateCall> = plain
        .iter()
        .filter(|call| call.function != "COLLECT")
        .map(|call| AggregateCall { filter: Some(FILTER), ..call.clone() })
        .collect();
    plain.into_iter().chain(filtered).collect()
}

/// What comes out when each part of the input is processed by so many subtasks that share out the state of those before.
fn run(make: Make<'_>, parts: &[Batch], parallelisms: &[u32]) -> Vec<String> {
    let (mut snapshots, mut lines) = (Vec::new(), Vec::new());
    for (stage, (part, parallelism)) in parts.iter().zip(parallelisms).enumerate() {
        let mut next = Vec::new();
        for index in 0..*parallelism {
            let clock = VirtualClock::new(1_000 * stage as i64);
            let context = context_of(index, *parallelism, Arc::clone(&clock), &[]);
            let mut operator = make(&context);
            operator.open(&context).unwrap();
            snapshots.iter().for_each(|snapshot: &Vec<_>| restore(&mut *operator, &context, snapshot));
            let mut output = Lines::default();
            push(&mut *operator, share(part, index, *parallelism), &mut output);
            if stage + 1 == parts.len() {
                clock.advance_to(END_MS);
                operator.process_time(END_MS, &mut output).unwrap();
                operator.process_watermark(Watermark::MAX, &mut output).unwrap();
                operator.finish(&mut output).unwrap();
            }
            lines.extend(output.take().into_iter().filter(|line| !line.starts_with('~')));
            next.push(snapshot(&mut *operator));
        }
        snapshots = next;
    }
    lines
}

/// The table that changes fold to, sorted.
fn fold(lines: Vec<String>) -> Vec<String> {
    let mut table: Vec<String> = Vec::new();
    for line in lines {
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

/// Rows that come and (where `retracts`) go again, with times that rise, in three parts.
fn parts(retracts: bool) -> Vec<Batch> {
    let mut random = fastrand::Rng::with_seed(7);
    let (mut present, mut lines): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for step in 0..600 {
        if retracts && !present.is_empty() && random.f64() < 0.4 {
            lines.push(format!("-D {}", present.swap_remove(random.usize(0..present.len()))));
        } else {
            let value = if random.u8(0..6) == 0 { "NULL".to_string() } else { random.i64(0..9).to_string() };
            present.push(format!("key{} {value} {}", random.u8(0..30), step * 100 + random.i64(0..300)));
            lines.push(format!("+I {}", present[present.len() - 1]));
        }
        if step % 50 == 49 && !retracts {
            lines.push(format!("~{}", step * 100));
        }
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    lines.chunks(lines.len().div_ceil(3)).map(|lines| with_filter(batch(lines))).collect()
}

fn check(make: Make<'_>, parts: &[Batch]) {
    let expected = fold(run(make, &[Batch::concat(parts).unwrap()], &[1]));
    assert!(expected.len() > 10, "there is something to compare: {}", expected.len());
    for parallelisms in [[1, 1, 1], [1, 3, 2], [4, 1, 3]] {
        let found = fold(run(make, parts, &parallelisms));
        assert_eq!(found, expected, "{parallelisms:?}");
    }
}

#[test]
fn group_aggregates_go_on_with_another_parallelism() {
    for retracts in [false, true] {
        check(&|context| Box::new(GroupAggregate::new(vec![0], all_aggregates(), retracts, true, context)), &parts(retracts));
    }
}

fn check_windows(window: WindowSource, input_retracts: bool) {
    let spec = WindowAggregateSpec {
        window,
        keys: vec![0],
        aggregates: all_aggregates(),
        properties: vec![WindowProperty::Start, WindowProperty::End],
        input_retracts,
        emit: None,
        emit_update_before: false,
    };
    check(&|context| super::window::aggregate(&spec, context).unwrap(), &parts(input_retracts));
}

#[test]
fn windows_go_on_with_another_parallelism() {
    let tumble = WindowKind::Tumble { size_ms: 10_000, offset_ms: 0 };
    let hop = WindowKind::Hop { slide_ms: 5_000, size_ms: 10_000, offset_ms: 0 };
    let assigned = |kind, time_type| WindowSource::Assigned(WindowSpec::new(kind, 2, time_type));
    let odd_hop = WindowKind::Hop { slide_ms: 4_000, size_ms: 10_000, offset_ms: 1_000 };
    let cumulate = WindowKind::Cumulate { step_ms: 3_000, size_ms: 10_000, offset_ms: 0 };
    for kind in [tumble, hop, odd_hop, cumulate] {
        check_windows(assigned(kind, rowtime()), false);
        check_windows(assigned(kind, rowtime()), true);
    }
    let proctime = DataType::not_null(TypeKind::TimestampLtz(3)).with_time(Some(TimeAttribute::Proctime));
    check_windows(assigned(tumble, proctime), false);
    let session = WindowSpec::new(WindowKind::Session { gap_ms: 700 }, 2, rowtime());
    let session = WindowSource::Assigned(WindowSpec { partition_keys: vec![0], ..session });
    check_windows(session.clone(), false);
    check_windows(session, true);
    check_windows(WindowSource::Attached { start: 2, end: 2, time_type: rowtime() }, false);
}
