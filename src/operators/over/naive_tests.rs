//! Random windows over random changes against a plain recomputation: of each row from the list of all rows. Batches of any size, stopped
//! and restored at other parallelisms on the way.

mod model;
mod random;

use std::collections::BTreeMap;

use model::{Model, Row};
use random::Case;

use super::over;
use crate::clock::VirtualClock;
use crate::operators::testing::*;
use crate::runtime::{Operator, OperatorContext};
use crate::stream_graph::OverStrategy;
use crate::testing::seeds::for_each_seed;
use crate::types::{RowKind, Watermark};

/// What each of the operators gave, folded.
#[derive(Default)]
struct Folded(BTreeMap<String, i64>);

impl Folded {
    /// Takes in the changes of a batch. One that changes nothing is too many.
    fn apply(&mut self, lines: &[String]) {
        for (at, line) in lines.iter().enumerate() {
            let (kind, row) = line.split_at(3);
            let count = self.0.entry(row.to_string()).or_default();
            *count += if kind == "+I " || kind == "+U " { 1 } else { -1 };
            assert!(*count >= 0, "{line} takes away a row that is not there");
            if kind == "+U " {
                assert!(at > 0 && lines[at - 1].starts_with("-U"), "an update without what was before");
                assert_ne!(&lines[at - 1][3..], row, "an update that changes nothing");
            }
        }
        self.0.retain(|_, count| *count > 0);
    }

    fn rows(&self) -> Vec<String> {
        self.0.iter().flat_map(|(row, count)| std::iter::repeat_n(row.clone(), *count as usize)).collect()
    }
}

fn operators(case: &Case, parallelism: u32) -> Vec<(Box<dyn Operator>, OperatorContext)> {
    let operator = |index| {
        let context = context_of(index, parallelism, VirtualClock::new(0), &[]);
        (over(&case.spec, &context).unwrap(), context)
    };
    (0..parallelism).map(operator).collect()
}

/// Sometimes the operators are stopped, and others go on from what they had.
fn restored(
    operators_now: Vec<(Box<dyn Operator>, OperatorContext)>,
    case: &Case,
    random: &mut fastrand::Rng,
) -> Vec<(Box<dyn Operator>, OperatorContext)> {
    if random.u8(0..4) > 0 {
        return operators_now;
    }
    let snapshots: Vec<_> = operators_now.into_iter().map(|(mut operator, _)| snapshot(&mut *operator)).collect();
    let mut next = operators(case, random.u32(1..4));
    for (operator, context) in &mut next {
        snapshots.iter().for_each(|snapshot| restore(&mut **operator, context, snapshot));
    }
    next
}

/// Results that change: after each batch they are those of the rows that are there.
fn check_sorted(case: &Case, random: &mut fastrand::Rng) {
    let mut subtasks = operators(case, random.u32(1..4));
    let (mut model, mut folded) = (Model::default(), Folded::default());
    for _ in 0..random.usize(1..12) {
        subtasks = restored(subtasks, case, random);
        let changes = random::changes(&mut model, random, case);
        let batch = random::batch_of(&changes);
        let mut lines = Vec::new();
        let parallelism = subtasks.len() as u32;
        for (index, (operator, _)) in subtasks.iter_mut().enumerate() {
            let mut output = Lines::default();
            push(&mut **operator, share(&batch, index as u32, parallelism), &mut output);
            lines.extend(output.take());
        }
        folded.apply(&lines);
        assert_eq!(folded.rows(), model.results(case));
    }
}

/// Results that come out once: in the end they are those of the rows that were in time, and none was late.
fn check_timed(case: &Case, random: &mut fastrand::Rng) {
    let mut subtasks = operators(case, random.u32(1..4));
    let (mut model, mut folded) = (Model::default(), Folded::default());
    let mut watermark = i64::MIN;
    let mut base = 0;
    for _ in 0..random.usize(1..12) {
        subtasks = restored(subtasks, case, random);
        let rows: Vec<Row> = (0..random.usize(0..40)).map(|_| Row::random(random, case, base)).collect();
        base += random.i64(0..40) * case.unit();
        let batch = random::batch_of(&rows.iter().map(|row| (RowKind::Insert, row.clone())).collect::<Vec<_>>());
        model.rows.extend(rows.into_iter().filter(|row| row.time > watermark));
        watermark = watermark.max(base - random.i64(0..30) * case.unit());
        let parallelism = subtasks.len() as u32;
        for (index, (operator, _)) in subtasks.iter_mut().enumerate() {
            let mut output = Lines::default();
            push(&mut **operator, share(&batch, index as u32, parallelism), &mut output);
            operator.process_watermark(Watermark(watermark), &mut output).unwrap();
            folded.apply(&in_time(case, output.take(), watermark));
        }
        let early: Vec<String> = model.complete(case, watermark);
        let there = folded.rows();
        assert!(
            early.iter().all(|row| there.binary_search(row).is_ok()),
            "{early:?} were complete at {watermark}, out are {there:?}"
        );
    }
    for (operator, _) in &mut subtasks {
        let mut output = Lines::default();
        operator.process_watermark(Watermark::MAX, &mut output).unwrap();
        folded.apply(&in_time(case, output.take(), i64::MAX));
        let left: Vec<usize> = snapshot(&mut **operator).iter().map(|table| table.rows().unwrap().len()).collect();
        assert!(case.keeps_rows || left[0] == 0, "rows are left that nothing looks at");
    }
    assert_eq!(folded.rows(), model.results(case));
}

/// The rows of an output, each after the watermark that came before it, and so behind event time, as is the last one.
fn in_time(case: &Case, lines: Vec<String>, watermark: i64) -> Vec<String> {
    let mut last = i64::MIN;
    let mut rows = Vec::new();
    for line in lines {
        match line.strip_prefix('~') {
            Some(emitted) => {
                last = emitted.parse().unwrap_or(i64::MAX);
                assert!(last <= watermark);
            }
            None => {
                let time: i64 = line.split(' ').nth(3).unwrap().parse().unwrap();
                assert!(time > last, "{line} came after {last}: {case:?}");
                rows.push(line);
            }
        }
    }
    rows
}

/// Seeds of a usual run.
const SEEDS: u64 = 150;

fn check_all(strategy: fn(&mut fastrand::Rng) -> OverStrategy, check: fn(&Case, &mut fastrand::Rng)) {
    for_each_seed(SEEDS, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let case = Case::random(strategy(&mut random), &mut random);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&case, &mut random)));
        assert!(result.is_ok(), "seed {seed}: {case:?}");
    });
}

#[test]
fn results_that_change_are_those_of_the_rows_that_are_there() {
    check_all(|_| OverStrategy::Sorted, check_sorted);
}

#[test]
fn results_that_come_out_once_are_those_of_all_rows_in_time() {
    check_all(|_| OverStrategy::EventTimeFrames(random::TIME), check_timed);
}
