//! Regular joins of random changes, in batches of all sizes and restarted with another parallelism, against the plain definition.

use std::sync::Arc;

use super::RegularJoin;
use crate::clock::VirtualClock;
use crate::expr::Expr;
use crate::operators::testing::*;
use crate::runtime::Operator;
use crate::stream_graph::{JoinKey, JoinType, RegularJoinSpec};
use crate::types::{DataType, Field, InputNumber, Schema, TypeKind};

const ALL_TYPES: [JoinType; 6] =
    [JoinType::Inner, JoinType::Left, JoinType::Right, JoinType::Full, JoinType::Semi, JoinType::Anti];

/// Texts are equal; with a residual the left number is less than the right one.
fn spec(join_type: JoinType, keyed: bool, residual: bool, retracts: bool) -> RegularJoinSpec {
    let bigint = DataType::nullable(TypeKind::BigInt);
    let schema = Arc::new(Schema::new(vec![
        Field::new("k", DataType::string()),
        Field::new("v", bigint.clone()),
        Field::new("ts", DataType::nullable(TypeKind::Timestamp(3))),
    ]));
    let less = Expr::Call {
        function: "<".to_string(),
        args: vec![Expr::column(1, bigint.clone()), Expr::column(4, bigint)],
        data_type: DataType::nullable(TypeKind::Boolean),
    };
    RegularJoinSpec {
        join_type,
        keys: if keyed { vec![JoinKey { left: 0, right: 0, null_safe: false }] } else { Vec::new() },
        residual: residual.then_some(less),
        left_retracts: retracts,
        right_retracts: retracts,
        left_schema: schema.clone(),
        right_schema: schema,
        output: if join_type.is_left_only() { vec![0, 1] } else { vec![0, 1, 3, 4] },
        ttl: [None; 2],
    }
}

/// A change of a side: its line without times.
type Change = (u8, String);

/// Rows that come and (where `retracts`) go again, some as updates, on both sides.
fn random_changes(seed: u64, retracts: bool) -> Vec<Change> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut present: [Vec<String>; 2] = Default::default();
    let mut changes = Vec::new();
    let new_row = |random: &mut fastrand::Rng| {
        let key = if random.u8(0..8) == 0 { "NULL".to_string() } else { format!("key{}", random.u8(0..6)) };
        let value = if random.u8(0..8) == 0 { "NULL".to_string() } else { random.i64(0..5).to_string() };
        format!("{key} {value}")
    };
    while changes.len() < 160 {
        let side = random.usize(0..2);
        let row = new_row(&mut random);
        if retracts && !present[side].is_empty() && random.f64() < 0.5 {
            let at = random.usize(0..present[side].len());
            let old = present[side].swap_remove(at);
            if random.bool() {
                changes.push((side as u8, format!("-U {old}")));
                changes.push((side as u8, format!("+U {row}")));
                present[side].push(row);
            } else {
                changes.push((side as u8, format!("-D {old}")));
            }
        } else {
            changes.push((side as u8, format!("+I {row}")));
            present[side].push(row);
        }
    }
    changes
}

/// The table that output lines fold to, sorted.
fn fold(lines: &[String]) -> Vec<String> {
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

/// What the join is by definition.
fn expected(spec: &RegularJoinSpec, changes: &[Change]) -> Vec<String> {
    let side = |side: u8| {
        let lines: Vec<String> = changes.iter().filter(|change| change.0 == side).map(|change| change.1.clone()).collect();
        fold(&lines)
    };
    let (left, right) = (side(0), side(1));
    let joins = |l: &str, r: &str| {
        let ((lk, lv), (rk, rv)) = (l.split_once(' ').unwrap(), r.split_once(' ').unwrap());
        let less = matches!((lv.parse::<i64>(), rv.parse::<i64>()), (Ok(l), Ok(r)) if l < r);
        (spec.keys.is_empty() || (lk == rk && lk != "NULL")) && (spec.residual.is_none() || less)
    };
    let mut rows = Vec::new();
    for l in &left {
        let partners: Vec<&String> = right.iter().filter(|r| joins(l, r)).collect();
        match spec.join_type {
            JoinType::Semi if !partners.is_empty() => rows.push(l.clone()),
            JoinType::Anti if partners.is_empty() => rows.push(l.clone()),
            JoinType::Semi | JoinType::Anti => {}
            _ => rows.extend(partners.iter().map(|r| format!("{l} {r}"))),
        }
        if partners.is_empty() && spec.join_type.pads_right() {
            rows.push(format!("{l} NULL NULL"));
        }
    }
    if spec.join_type.pads_left() {
        let alone = right.iter().filter(|r| !left.iter().any(|l| joins(l, r)));
        rows.extend(alone.map(|r| format!("NULL NULL {r}")));
    }
    rows.sort_unstable();
    rows
}

/// Changes in batches of `size`; after each part other subtasks go on with the state.
fn run(spec: &RegularJoinSpec, changes: &[Change], size: usize, parallelisms: &[u32]) -> Vec<String> {
    let (mut snapshots, mut lines) = (Vec::new(), Vec::new());
    for (part, parallelism) in changes.chunks(changes.len().div_ceil(parallelisms.len())).zip(parallelisms) {
        let mut next = Vec::new();
        for index in 0..*parallelism {
            let context = context_of(index, *parallelism, VirtualClock::new(0), &[("execution.batch-rows", "7")]);
            let mut join = RegularJoin::new(spec.clone(), &context).unwrap();
            join.open(&context).unwrap();
            snapshots.iter().for_each(|snapshot: &Vec<_>| restore(&mut join, &context, snapshot));
            let mut output = Lines::default();
            let mut rest = part;
            while let Some((side, _)) = rest.first() {
                let count = rest.iter().take(size).take_while(|change| change.0 == *side).count();
                let rows: Vec<&str> = rest[..count].iter().map(|change| change.1.as_str()).collect();
                let batch = share(&batch(&rows), index, *parallelism);
                join.process_batch(InputNumber(*side), batch, &mut output).unwrap();
                rest = &rest[count..];
            }
            lines.extend(output.take());
            next.push(snapshot(&mut join));
        }
        snapshots = next;
    }
    fold(&lines)
}

fn check(keyed: bool, parallelisms: &[&[u32]]) {
    for (join_type, residual, retracts) in ALL_TYPES
        .iter()
        .flat_map(|kind| [false, true].map(|residual| (kind, residual)))
        .flat_map(|(kind, residual)| [false, true].map(|retracts| (*kind, residual, retracts)))
    {
        let spec = spec(join_type, keyed, residual, retracts);
        for seed in 0..3 {
            // Sides alternate at random: runs of one side make batches.
            let mut changes = random_changes(seed, retracts);
            if seed % 2 == 0 {
                changes.sort_by_key(|change| change.0 ^ u8::from(seed == 2));
            }
            let expected = expected(&spec, &changes);
            for (size, parallelisms) in [1, 3, 200].into_iter().flat_map(|size| parallelisms.iter().map(move |p| (size, *p))) {
                let found = run(&spec, &changes, size, parallelisms);
                assert_eq!(found, expected, "{join_type:?} residual {residual} retracts {retracts} seed {seed} size {size}");
            }
        }
    }
}

#[test]
fn random_changes_give_the_join_by_its_definition() {
    check(true, &[&[1], &[1, 3, 2]]);
}

#[test]
fn so_they_do_without_keys() {
    check(false, &[&[1], &[1, 1]]);
}

fn push_to(join: &mut RegularJoin, side: u8, lines: &[&str]) -> Vec<String> {
    let mut output = Lines::default();
    join.process_batch(InputNumber(side), batch(lines), &mut output).unwrap();
    output.take()
}

#[test]
fn the_first_partner_takes_the_padded_row_back_and_the_last_one_brings_it_again() {
    let mut join = RegularJoin::new(spec(JoinType::Left, true, false, true), &context()).unwrap();
    assert_eq!(push_to(&mut join, 0, &["+I a 1", "+I NULL 2"]), ["+I NULL 2 NULL NULL", "+I a 1 NULL NULL"]);
    assert_eq!(push_to(&mut join, 1, &["+I a 7", "+I a 8"]), ["-D a 1 NULL NULL", "+I a 1 a 7", "+I a 1 a 8"]);
    assert_eq!(push_to(&mut join, 1, &["-U a 7", "+U a 9"]), ["-U a 1 a 7", "+U a 1 a 9"]);
    assert_eq!(push_to(&mut join, 1, &["-D a 9", "-D a 8", "+I a 5", "-D a 5"]).last().unwrap(), "+I a 1 NULL NULL");
}

#[test]
fn memory_is_given_back_and_a_watermark_passes() {
    let mut join = RegularJoin::new(spec(JoinType::Full, true, false, true), &context()).unwrap();
    assert_eq!(push_to(&mut join, 0, &["+I a 1", "~5"]), ["+I a 1 NULL NULL", "~5"]);
    let text = "a long text that does not fit a view ".repeat(4).replace(' ', "_");
    let rows: Vec<String> = (0..9_000).map(|n| format!("+I {text}{n} {n}")).collect();
    let gone: Vec<String> = rows.iter().map(|row| row.replace("+I", "-D")).collect();
    let bytes = |join: &mut RegularJoin| join.state().iter().map(|(_, table)| table.bytes()).sum::<usize>();
    push_to(&mut join, 1, &rows.iter().map(String::as_str).collect::<Vec<_>>());
    let full = bytes(&mut join);
    push_to(&mut join, 1, &gone.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(bytes(&mut join) < full / 3, "{} of {full} bytes", bytes(&mut join));
    assert_eq!(push_to(&mut join, 1, &["+I a 2"]), ["-D a 1 NULL NULL", "+I a 1 a 2"]);
}
