//! What the operators of a rank do, row by row; and that none of them minds being stopped and restored with another parallelism.

use std::sync::Arc;

use super::rank;
use crate::clock::VirtualClock;
use crate::expr::SortKey;
use crate::operators::testing::*;
use crate::runtime::{Operator, OperatorContext};
use crate::stream_graph::{AttachedWindow, RankEnd, RankOperatorSpec, RankRange, RankSpec, RankStrategy};
use crate::types::{Batch, DataType, Field, Schema, TypeKind, Watermark};

/// STRING, BIGINT, rowtime: the columns of [`batch`].
fn input() -> Schema {
    let fields = [("k", DataType::string()), ("v", DataType::nullable(TypeKind::BigInt)), ("ts", rowtime())];
    Schema::new(fields.map(|(name, data_type)| Field::new(name, data_type)).to_vec())
}

fn spec(strategy: RankStrategy, start: u64, end: u64, output_number: bool) -> RankOperatorSpec {
    let rank = RankSpec {
        partition_keys: vec![0],
        order_keys: vec![SortKey { column: 1, descending: true, nulls_first: false }],
        range: RankRange { start, end: RankEnd::Constant(end) },
        output_number,
        window: None,
        ttl: None,
    };
    RankOperatorSpec { rank, strategy, emit_update_before: true, changes: None, input: Arc::new(input()) }
}

fn operator(spec: &RankOperatorSpec) -> Box<dyn Operator> {
    rank(spec, &context()).unwrap()
}

fn pushed(operator: &mut dyn Operator, lines: &[&str]) -> Vec<String> {
    let mut output = Lines::default();
    push(operator, batch(lines), &mut output);
    output.take()
}

#[test]
fn rows_move_each_other_down() {
    let mut top = operator(&spec(RankStrategy::AppendFast, 1, 2, true));
    assert_eq!(pushed(&mut *top, &["+I a 5", "+I b 7", "~3"]), ["+I a 5 0 1", "+I b 7 0 1", "~3"]);
    // Of equal keys the first to come goes first; NULL is the least.
    assert_eq!(pushed(&mut *top, &["+I a NULL 1"]), ["+I a NULL 1 2"]);
    assert_eq!(pushed(&mut *top, &["+I a 9 1", "+I a 9 2"]), ["-U a 5 0 1", "+U a 9 1 1", "-U a NULL 1 2", "+U a 9 2 2"]);
    assert_eq!(pushed(&mut *top, &["+I a 9 3", "+I a 8"]), [""; 0]);
}

#[test]
fn without_a_number_rows_come_and_go() {
    let mut top = operator(&spec(RankStrategy::AppendFast, 1, 2, false));
    assert_eq!(pushed(&mut *top, &["+I a 5", "+I a 4", "+I a 6"]), ["+I a 6 0", "+I a 5 0"]);
    assert_eq!(pushed(&mut *top, &["+I a 7"]), ["-D a 5 0", "+I a 7 0"]);
}

#[test]
fn a_range_starts_behind_the_first_rows() {
    let mut top = operator(&spec(RankStrategy::AppendFast, 2, 3, true));
    assert_eq!(pushed(&mut *top, &["+I a 5"]), [""; 0]);
    assert_eq!(pushed(&mut *top, &["+I a 6"]), ["+I a 5 0 2"]);
    assert_eq!(pushed(&mut *top, &["+I a 7"]), ["-U a 5 0 2", "+U a 6 0 2", "+I a 5 0 3"]);
}

#[test]
fn gaps_are_filled_when_rows_are_taken_back() {
    let mut top = operator(&spec(RankStrategy::Retract, 1, 2, true));
    assert_eq!(pushed(&mut *top, &["+I a 5", "+I a 4", "+I a 3"]), ["+I a 5 0 1", "+I a 4 0 2"]);
    assert_eq!(pushed(&mut *top, &["-D a 5"]), ["-U a 5 0 1", "+U a 4 0 1", "-U a 4 0 2", "+U a 3 0 2"]);
    assert_eq!(pushed(&mut *top, &["-U a 4", "+U a 1"]), ["-U a 4 0 1", "+U a 3 0 1", "-U a 3 0 2", "+U a 1 0 2"]);
    assert_eq!(pushed(&mut *top, &["-D a 1", "-D a 3"]), ["-D a 3 0 1", "-D a 1 0 2"]);
    // What never came cannot go.
    assert_eq!(pushed(&mut *top, &["-D a 7", "+I a 2"]), ["+I a 2 0 1"]);
}

#[test]
fn the_first_row_of_a_partition_says_where_it_ends() {
    let mut spec = spec(RankStrategy::AppendFast, 1, 1, true);
    spec.rank.range.end = RankEnd::Column(1);
    spec.rank.order_keys = Vec::new();
    let mut top = operator(&spec);
    assert_eq!(pushed(&mut *top, &["+I a 2", "+I a 9", "+I a 9", "+I b NULL"]), ["+I a 2 0 1", "+I a 9 0 2"]);
}

#[test]
fn first_and_last_rows_to_come() {
    let mut first = operator(&spec(RankStrategy::FirstToCome, 1, 1, false));
    assert_eq!(pushed(&mut *first, &["+I a 1", "~1", "+I a 2", "+I b 3", "~2"]), ["+I a 1 0", "~1", "+I b 3 0", "~2"]);
    assert_eq!(pushed(&mut *first, &["+I b 4", "+I NULL 5", "+I NULL 6"]), ["+I NULL 5 0"]);
    let mut last = operator(&spec(RankStrategy::LastToCome, 1, 1, false));
    assert_eq!(pushed(&mut *last, &["+I a 1", "+I b 1", "+I a 2"]), ["+I a 2 0", "+I b 1 0"]);
    assert_eq!(pushed(&mut *last, &["+I c 1", "+I a 3", "+I a 4"]), ["+I c 1 0", "-U a 2 0", "+U a 4 0"]);
}

#[test]
fn of_rows_with_one_time_the_last_to_come_is_the_latest() {
    let mut latest = operator(&spec(RankStrategy::Latest(2), 1, 1, false));
    assert_eq!(pushed(&mut *latest, &["+I a 1 10", "+I a 2 20", "+I a 3 15"]), ["+I a 2 20"]);
    assert_eq!(pushed(&mut *latest, &["+I a 4 20"]), ["-U a 2 20", "+U a 4 20"]);
    assert_eq!(pushed(&mut *latest, &["+I a 5 19"]), [""; 0]);
    // Nobody needs the former row: it is not even kept.
    let mut latest = operator(&RankOperatorSpec { emit_update_before: false, ..spec(RankStrategy::Latest(2), 1, 1, false) });
    pushed(&mut *latest, &["+I a 1 10"]);
    assert_eq!(pushed(&mut *latest, &["+I a 2 20", "+I b 2 20"]), ["+U a 2 20", "+I b 2 20"]);
}

#[test]
fn the_earliest_row_waits_for_the_watermark() {
    let mut earliest = operator(&spec(RankStrategy::Earliest(2), 1, 1, false));
    assert_eq!(pushed(&mut *earliest, &["+I a 1 50", "+I a 2 35", "+I c 3 45", "~34"]), ["~34"]);
    assert_eq!(pushed(&mut *earliest, &["+I c 4 45", "+I d 5 33", "+I d 6 60", "~45"]), ["+I a 2 35", "+I c 3 45", "~45"]);
    // Late rows are no rows; what was emitted stays.
    assert_eq!(pushed(&mut *earliest, &["+I e 7 44", "+I a 8 46", "+I f 9 45", "~59"]), ["+I f 9 45", "~59"]);
    let mut output = Lines::default();
    earliest.process_watermark(Watermark::MAX, &mut output).unwrap();
    assert_eq!(output.take()[0], "+I d 6 60");
}

/// A window that is as long as one unit of the third column, which it starts with; rows are ordered by the second one.
fn window_spec(end: u64, output_number: bool) -> RankOperatorSpec {
    let mut spec = spec(RankStrategy::Window { latest_of_ties: false }, 1, end, output_number);
    // The window of a row is from its time to its time.
    spec.rank.window = Some(AttachedWindow { start: 2, end: 2, time_type: rowtime() });
    spec
}

#[test]
fn a_window_gives_its_rows_when_it_ends() {
    let mut top = operator(&window_spec(2, true));
    let lines = ["+I a 1 10", "+I a 2 10", "+I b 1 10", "+I a 3 20", "+I a 3 10", "~9", "+I a 9 10", "~15"];
    assert_eq!(pushed(&mut *top, &lines), ["+I a 3 10 1", "+I a 2 10 2", "+I b 1 10 1", "~15"]);
    assert_eq!(pushed(&mut *top, &["+I a 4 20", "~19"]), ["+I a 4 20 1", "+I a 3 20 2", "~19"]);
}

/// The table that output lines fold to, sorted.
fn fold(lines: &[String]) -> Vec<String> {
    let mut table: Vec<&str> = Vec::new();
    for line in lines.iter().filter(|line| !line.starts_with('~')) {
        let (kind, row) = line.split_once(' ').unwrap();
        if kind.starts_with('+') {
            table.push(row);
        } else {
            let at = table.iter().position(|other| *other == row).unwrap_or_else(|| panic!("{row} is not there"));
            table.swap_remove(at);
        }
    }
    table.sort_unstable();
    table.into_iter().map(str::to_string).collect()
}

/// Random rows with rising times, some of which are taken back again if `retracts`.
fn random_lines(seed: u64, retracts: bool) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut present, mut lines): (Vec<String>, Vec<String>) = Default::default();
    for step in 0..400 {
        if retracts && !present.is_empty() && random.f64() < 0.4 {
            lines.push(format!("-D {}", present.swap_remove(random.usize(0..present.len()))));
            continue;
        }
        let value = if random.u8(0..8) == 0 { "NULL".to_string() } else { random.i64(0..30).to_string() };
        // No two rows are equal: which of them is at which place would be seen.
        let row = format!("key{} {value} {}", random.u8(0..10), step / 4 * 4 + random.i64(0..4));
        if !present.contains(&row) {
            lines.push(format!("+I {row}"));
            present.push(row);
        }
    }
    lines
}

/// The rows that are there in the end.
fn present(lines: &[String]) -> Vec<Vec<String>> {
    fold(lines).iter().map(|line| line.split(' ').map(str::to_string).collect()).collect()
}

#[test]
fn random_changes_leave_the_first_rows_of_what_is_there() {
    for seed in 0..30 {
        for (retracts, size) in [(false, 1), (false, 60), (true, 1), (true, 37), (true, 400)] {
            let strategy = if retracts { RankStrategy::Retract } else { RankStrategy::AppendFast };
            let mut spec = spec(strategy, 2, 4, seed % 2 == 0);
            // The time as the second key: rows with equal keys would be told apart by their arrival.
            spec.rank.order_keys.push(SortKey { column: 2, descending: false, nulls_first: true });
            let lines = random_lines(seed, retracts);
            let (mut top, mut output) = (operator(&spec), Lines::default());
            for chunk in lines.chunks(size) {
                push(&mut *top, batch(&chunk.iter().map(String::as_str).collect::<Vec<_>>()), &mut output);
            }
            let mut expected = Vec::new();
            let mut rows = present(&lines);
            let number = |text: &str| text.parse::<i64>().unwrap_or(i64::MIN);
            rows.sort_by_key(|row| (row[0].clone(), -number(&row[1]).max(-i64::MAX), number(&row[2])));
            for partition in rows.chunk_by(|a, b| a[0] == b[0]) {
                for (place, row) in partition.iter().enumerate().take(4).skip(1) {
                    let number = if spec.rank.output_number { format!(" {}", place + 1) } else { String::new() };
                    expected.push(format!("{}{number}", row.join(" ")));
                }
            }
            expected.sort_unstable();
            assert_eq!(fold(&output.take()), expected, "seed {seed}, batches of {size}");
        }
    }
}

/// What comes out when each part of the input is processed by so many subtasks that share out the state of those before.
fn run(spec: &RankOperatorSpec, parts: &[Batch], parallelisms: &[u32]) -> Vec<String> {
    let (mut snapshots, mut lines) = (Vec::new(), Vec::new());
    for (stage, (part, parallelism)) in parts.iter().zip(parallelisms).enumerate() {
        let mut next = Vec::new();
        for index in 0..*parallelism {
            let context: OperatorContext = context_of(index, *parallelism, VirtualClock::new(0), &[]);
            let mut operator = rank(spec, &context).unwrap();
            operator.open(&context).unwrap();
            snapshots.iter().for_each(|snapshot: &Vec<_>| restore(&mut *operator, &context, snapshot));
            let mut output = Lines::default();
            push(&mut *operator, share(part, index, *parallelism), &mut output);
            if stage + 1 == parts.len() {
                operator.process_watermark(Watermark::MAX, &mut output).unwrap();
            }
            next.push(snapshot(&mut *operator));
            lines.extend(output.take());
        }
        snapshots = next;
    }
    fold(&lines)
}

#[test]
fn restored_with_another_parallelism_all_go_on_as_if_nothing_had_been() {
    let wide = RankOperatorSpec { emit_update_before: false, ..spec(RankStrategy::Latest(2), 1, 1, false) };
    let mut by_column = spec(RankStrategy::AppendFast, 1, 1, true);
    by_column.rank.range.end = RankEnd::Column(1);
    let specs = [
        spec(RankStrategy::AppendFast, 1, 3, true),
        spec(RankStrategy::AppendFast, 2, 3, false),
        spec(RankStrategy::Retract, 1, 3, true),
        spec(RankStrategy::FirstToCome, 1, 1, false),
        spec(RankStrategy::LastToCome, 1, 1, false),
        spec(RankStrategy::Latest(2), 1, 1, false),
        spec(RankStrategy::Earliest(2), 1, 1, false),
        window_spec(2, true),
        by_column,
    ];
    for spec in &specs {
        let mut lines = random_lines(3, spec.strategy == RankStrategy::Retract);
        lines.insert(100, "~20".to_string());
        lines.insert(250, "~90".to_string());
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let parts: Vec<Batch> = lines.chunks(lines.len().div_ceil(3)).map(batch).collect();
        let whole = run(spec, &parts, &[1, 1, 1]);
        assert!(!whole.is_empty());
        assert_eq!(run(spec, &parts, &[1, 3, 2]), whole, "{:?}", spec.strategy);
    }
    // Without `-U` the changes do not fold; what is known of each partition is.
    let lines = ["+I a 1 10", "+I b 1 10"];
    let (mut latest, mut restored) = (operator(&wide), operator(&wide));
    pushed(&mut *latest, &lines);
    restore(&mut *restored, &context(), &snapshot(&mut *latest));
    assert_eq!(pushed(&mut *restored, &["+I a 2 9", "+I b 2 11", "+I c 1 1"]), ["+U b 2 11", "+I c 1 1"]);
}

#[test]
fn what_is_not_visible_any_more_is_released() {
    let mut top = operator(&spec(RankStrategy::AppendFast, 1, 1, true));
    let mut bytes = Vec::new();
    for round in 0..40 {
        let lines: Vec<String> = (0..2_000).map(|n| format!("+I key{} {}", n % 1_000, round * 2_000 + n)).collect();
        pushed(&mut *top, &lines.iter().map(String::as_str).collect::<Vec<_>>());
        bytes.push(top.state().iter().map(|(_, table)| table.bytes()).sum::<usize>());
    }
    assert!(bytes[39] < bytes[5] * 2, "{bytes:?}");
}
