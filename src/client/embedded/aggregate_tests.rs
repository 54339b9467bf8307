//! Aggregate functions of the program give what built-in ones give, wherever these can stand; and say what they cannot do.

mod harness;

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::{DataType as ArrowType, Int64Type};
use futures::executor::block_on;

use super::function_tests::{error, rows, sorted};
use super::*;
use crate::client::Session;
use crate::clock::VirtualClock;
use crate::error::{ErrorKind, Result};
use crate::expr::GroupsAccumulator;
use crate::types::{DataType, RowKinds, TypeKind};

/// Weights and values times weights.
#[derive(Default)]
struct Sums {
    sum: i64,
    weight: i64,
}

/// The weighted average of values, with all that an accumulator can have.
#[derive(Default)]
struct Average(Sums);

impl Accumulator for Average {
    type Arguments = (i64, i64);
    type Value = Option<i64>;
    type State = (i64, i64);

    fn accumulate(&mut self, (value, weight): (i64, i64)) -> Result<()> {
        self.0.sum += value * weight;
        self.0.weight += weight;
        Ok(())
    }

    fn value(&self) -> Option<i64> {
        self.0.sum.checked_div(self.0.weight)
    }

    fn save(&self) -> (i64, i64) {
        (self.0.sum, self.0.weight)
    }

    fn load((sum, weight): (i64, i64)) -> Self {
        Average(Sums { sum, weight })
    }

    const RETRACT: Option<Retract<Self>> = Some(|own, (value, weight)| own.accumulate((value, -weight)));
    const MERGE: Option<Merge<Self>> = Some(|own, other| {
        own.0.sum += other.0.sum;
        own.0.weight += other.0.weight;
        Ok(())
    });
}

/// The same, which can only take rows in; it keeps them, and NULLs are its own affair.
#[derive(Default)]
struct Growing(Vec<(i64, i64)>);

impl Accumulator for Growing {
    type Arguments = (Option<i64>, Option<i64>);
    type Value = std::result::Result<Option<i64>, String>;
    type State = (Vec<i64>, Vec<i64>);

    fn accumulate(&mut self, row: (Option<i64>, Option<i64>)) -> Result<()> {
        if let (Some(value), Some(weight)) = row {
            self.0.push((value, weight));
        }
        Ok(())
    }

    fn value(&self) -> Self::Value {
        let sum: i64 = self.0.iter().map(|(value, weight)| value * weight).sum();
        Ok(sum.checked_div(self.0.iter().map(|(_, weight)| weight).sum()))
    }

    fn save(&self) -> Self::State {
        self.0.iter().copied().unzip()
    }

    fn load((values, weights): Self::State) -> Self {
        Growing(values.into_iter().zip(weights).collect())
    }

    fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<(i64, i64)>()
    }
}

/// The same over columns.
#[derive(Default)]
struct Columns {
    sums: Vec<i64>,
    weights: Vec<i64>,
}

impl GroupsAccumulator for Columns {
    fn resize(&mut self, num_groups: usize) {
        self.sums.resize(num_groups, 0);
        self.weights.resize(num_groups, 0);
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        let [values, weights] = [0, 1].map(|arg| args[arg].as_primitive::<Int64Type>());
        for (row, group) in groups.iter().enumerate() {
            if values.is_null(row)
                || weights.is_null(row)
                || filter.is_some_and(|filter| filter.is_null(row) || !filter.value(row))
            {
                continue;
            }
            let sign = if kinds.is_some_and(|kinds| kinds.get(row).is_retraction()) { -1 } else { 1 };
            self.sums[*group as usize] += sign * values.value(row) * weights.value(row);
            self.weights[*group as usize] += sign * weights.value(row);
        }
        Ok(())
    }

    fn state_types(&self) -> Vec<ArrowType> {
        vec![ArrowType::Int64; 2]
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let column = |values: &[i64]| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(groups.iter().map(|group| values[*group as usize])))
        };
        Ok(vec![column(&self.sums), column(&self.weights)])
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        let [sums, weights] = [0, 1].map(|column| state[column].as_primitive::<Int64Type>().values());
        for (row, group) in groups.iter().enumerate() {
            self.sums[*group as usize] += sums[row];
            self.weights[*group as usize] += weights[row];
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        let value = |group: &u32| self.sums[*group as usize].checked_div(self.weights[*group as usize]);
        Ok(Arc::new(Int64Array::from_iter(groups.iter().map(value))))
    }

    fn clear(&mut self, groups: &[u32]) {
        for group in groups {
            (self.sums[*group as usize], self.weights[*group as usize]) = (0, 0);
        }
    }

    fn bytes(&self) -> usize {
        (self.sums.capacity() + self.weights.capacity()) * size_of::<i64>()
    }
}

/// Rows of the input.
const ROWS: usize = 400;

fn input(folder: &Path) {
    let mut random = fastrand::Rng::with_seed(11);
    let mut files = [String::new(), String::new(), String::new()];
    for row in 0..ROWS {
        let (second, value) = (row / 8, random.i64(0..60));
        let value = if value == 0 { "null".to_string() } else { value.to_string() };
        let (key, weight) = (random.u8(b'a'..b'e') as char, random.i64(1..5));
        let time = format!("2024-01-01 00:{:02}:{:02}.{:03}", second / 60, second % 60, random.i64(0..1000));
        // Each second of the input lies in one file, so that none is late.
        writeln!(files[row % 3], r#"{{"k":"{key}","v":{value},"w":{weight},"n":{row},"ts":"{time}"}}"#).unwrap();
    }
    for (number, lines) in files.iter().enumerate() {
        std::fs::write(folder.join(format!("part-{number}.json")), lines).unwrap();
    }
}

fn session(folder: &Path, settings: &[(&str, &str)], interrupted: bool) -> Session {
    let mut builder = Session::builder().base_dir(folder).virtual_clock(VirtualClock::new(0)).worker_threads(2);
    for (key, value) in settings {
        builder = builder.set(key, value).unwrap();
    }
    let session = if interrupted { builder.interrupt_jobs() } else { builder }.build();
    session.register_aggregate_function(AggregateFn::of::<Average>("average")).unwrap();
    session.register_aggregate_function(AggregateFn::of::<Growing>("growing")).unwrap();
    let bigint = || DataType::nullable(TypeKind::BigInt);
    let columns = AggregateFn::new("columns", [bigint(), bigint()], bigint(), |_| Box::<Columns>::default());
    session.register_aggregate_function(columns).unwrap();
    let table = "CREATE TABLE t (k STRING, v BIGINT, w BIGINT, n BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
                 WITH ('connector' = 'filesystem', 'path' = '.', 'format' = 'json', 'source.path.regex-pattern' = '.*part-[0-9].json')";
    block_on(session.execute(table)).unwrap();
    session
}

/// Where an aggregate can stand over rows that stay. `$AGG …$` is a call, with what stands behind its arguments.
const OVER_ROWS: [&str; 15] = [
    "SELECT k, $AGG$ FROM t GROUP BY k",
    "SELECT $AGG$ FROM t",
    "SELECT k, $AGG FILTER (WHERE n > 100)$, $AGG$ FROM t GROUP BY k HAVING $AGG$ > 1",
    "SELECT k, $AGG$ FROM (SELECT DISTINCT k, v, w FROM t) AS d GROUP BY k",
    "SELECT k, w, $AGG$ FROM t GROUP BY GROUPING SETS ((k, w), (k), ())",
    "SELECT k, window_start, $AGG$ FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND) GROUP BY k, window_start, window_end",
    "SELECT k, window_end, $AGG$ FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '6' SECOND)
     GROUP BY k, window_start, window_end",
    "SELECT k, window_end, $AGG$ FROM CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '8' SECOND)
     GROUP BY k, window_start, window_end",
    "SELECT k, window_start, window_end, $AGG$ FROM SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '0.4' SECOND)
     GROUP BY k, window_start, window_end",
    "SELECT w, SESSION_END(ts, INTERVAL '1' SECOND), $AGG$ FROM t GROUP BY w, SESSION(ts, INTERVAL '1' SECOND)",
    "SELECT k, w, window_end, $AGG$ FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '6' SECOND)
     GROUP BY window_start, window_end, ROLLUP (k, w)",
    "SELECT n, $AGG OVER (PARTITION BY k ORDER BY ts)$ FROM t",
    "SELECT n, $AGG OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)$ FROM t",
    "SELECT n, $AGG FILTER (WHERE n > 9) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '2' SECOND PRECEDING AND CURRENT ROW)$
     FROM t",
    "SELECT n, $AGG OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING)$,
     $AGG OVER (PARTITION BY w ORDER BY n DESC)$ FROM t",
];

/// Where it can stand over rows that are taken back.
const OVER_CHANGES: [&str; 4] = [
    "SELECT $AGG$ FROM (SELECT k, COUNT(*) AS v, SUM(w) AS w FROM t GROUP BY k) AS c",
    "SELECT v, $AGG$ FROM (SELECT n / 20 AS g, MAX(v) AS v, COUNT(v) AS w FROM t GROUP BY n / 20) AS c GROUP BY v",
    "SELECT v, $AGG FILTER (WHERE w > 2)$ FROM (SELECT n / 9 AS g, MAX(v) AS v, COUNT(*) AS w FROM t GROUP BY n / 9) AS c
     GROUP BY GROUPING SETS ((v), ())",
    "SELECT g, $AGG OVER (ORDER BY g ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)$
     FROM (SELECT n / 20 AS g, MAX(v) AS v, COUNT(v) AS w FROM t GROUP BY n / 20) AS c",
];

/// The query with a call in each place: what stands in `$AGG …$` goes to `call`, which gets what is behind AGG.
fn filled(template: &str, call: impl Fn(&str) -> String) -> String {
    let parts = template.split('$').enumerate();
    parts.map(|(at, part)| if at % 2 == 0 { part.to_string() } else { call(part.strip_prefix("AGG").unwrap()) }).collect()
}

/// The same out of built-in aggregates.
fn builtin(behind: &str) -> String {
    format!("SUM(v * w){behind} / SUM(CASE WHEN v IS NOT NULL THEN w END){behind}")
}

#[test]
fn they_give_what_built_in_ones_give() {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    let plain = session(folder.path(), &[("parallelism.default", "1")], false);
    let changes = OVER_ROWS.len()..OVER_ROWS.len() + OVER_CHANGES.len();
    let templates: Vec<&str> = OVER_ROWS.into_iter().chain(OVER_CHANGES).collect();
    let expected: Vec<Vec<String>> = templates.iter().map(|template| sorted(&plain, &filled(template, builtin))).collect();
    assert!(expected.iter().all(|rows| !rows.is_empty()));
    for (settings, interrupted) in [
        (&[("parallelism.default", "1")][..], false),
        (&[("parallelism.default", "2")], false),
        (&[("parallelism.default", "1"), ("execution.batch-rows", "1")], false),
        (&[], true),
    ] {
        let session = session(folder.path(), settings, interrupted);
        for function in ["average", "growing", "columns"] {
            for (at, (template, expected)) in templates.iter().zip(&expected).enumerate() {
                // Those of the last kind are over frames, which need no rows taken back.
                if function == "growing" && changes.contains(&at) && at + 1 < changes.end {
                    continue;
                }
                let sql = filled(template, |behind| format!("{function}(v, w){behind}"));
                assert!(sorted(&session, &sql) == *expected, "{sql} with {settings:?}, interrupted: {interrupted}");
            }
        }
        let interruptions = session.engine.interruptions.clone();
        assert!(
            interruptions.is_none_or(|interruptions| block_on(interruptions.showed()).unwrap()),
            "jobs were stopped half-way"
        );
    }
}

#[test]
fn windows_that_fire_early_and_late_give_the_same_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    for parallelism in ["1", "2"] {
        let session = session(folder.path(), &[("parallelism.default", parallelism)], false);
        let emit = "SET 'table.exec.emit.early-fire.enabled' = 'true'; SET 'table.exec.emit.early-fire.delay' = '0 ms';
                    SET 'table.exec.emit.late-fire.enabled' = 'true'; SET 'table.exec.emit.late-fire.delay' = '0 ms';
                    SET 'table.exec.emit.allow-lateness' = '5 s'";
        block_on(session.execute(emit)).unwrap();
        for (template, is_session) in OVER_ROWS[5..9].iter().zip([false, false, false, true]) {
            let expected = sorted(&session, &filled(template, builtin));
            for function in ["average", "columns", "growing"].into_iter().filter(|function| !is_session || *function != "growing")
            {
                let sql = filled(template, |behind| format!("{function}(v, w){behind}"));
                assert_eq!(sorted(&session, &sql), expected, "{sql}");
            }
        }
    }
}

/// Each row as often as its weight says.
#[test]
fn event_time_goes_through_table_functions() {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    let times = || {
        TableFn::rows::<(i64,), (i64,), ()>("times", ["number"], |(n,), rows: &mut Rows<(i64,)>| {
            (1..=n).for_each(|n| rows.push((n,)))
        })
    };
    let windows = |repeated: &str| {
        format!(
            "SELECT k, window_end, COUNT(*), SUM(number) FROM TUMBLE(TABLE {repeated}, DESCRIPTOR(ts), INTERVAL '5' SECOND)
             GROUP BY k, window_start, window_end"
        )
    };
    let plain = session(folder.path(), &[], false);
    let weighed = "SELECT k, window_end, SUM(w), SUM(w * (w + 1) / 2) FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND)
                  GROUP BY k, window_start, window_end";
    let expected = sorted(&plain, weighed);
    for (settings, interrupted) in
        [(&[("parallelism.default", "2")][..], false), (&[("execution.batch-rows", "1")], false), (&[], true)]
    {
        let session = session(folder.path(), settings, interrupted);
        session.register_table_function(times()).unwrap();
        let view = "CREATE VIEW repeated AS SELECT k, ts, number FROM t, LATERAL TABLE(times(w)) AS n(number)";
        block_on(session.execute(view)).unwrap();
        assert_eq!(sorted(&session, &windows("repeated")), expected, "{settings:?}, interrupted: {interrupted}");
    }
}

#[test]
fn distinct_rows_count_once() {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    for (settings, interrupted) in [(&[("parallelism.default", "2")][..], false), (&[], true)] {
        let session = session(folder.path(), settings, interrupted);
        let once = sorted(&session, "SELECT k, average(v, w) FROM (SELECT DISTINCT k, v, w FROM t) AS d GROUP BY k");
        for function in ["average", "growing", "columns"] {
            assert_eq!(sorted(&session, &format!("SELECT k, {function}(DISTINCT v, w) FROM t GROUP BY k")), once);
        }
        let hop =
            "FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '6' SECOND) GROUP BY k, window_start, window_end";
        let once = sorted(&session, &format!("SELECT k, window_end, columns(DISTINCT v, w) {hop}"));
        for function in ["average", "growing"] {
            assert_eq!(sorted(&session, &format!("SELECT k, window_end, {function}(DISTINCT v, w) {hop}")), once);
        }
    }
}

#[test]
fn rows_that_are_taken_back_need_a_function_that_can() {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    let session = session(folder.path(), &[], false);
    for template in &OVER_CHANGES[..3] {
        let refused = error(&session, &filled(template, |behind| format!("growing(v, w){behind}")));
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        let message =
            "aggregate function growing, which cannot take rows back, over the update and delete changes that GroupAggregate(";
        assert!(refused.message().starts_with(message), "{refused}");
        assert!(refused.hint().unwrap().contains("RETRACT"), "{refused:?}");
    }
    block_on(
        session.execute("SET 'table.exec.emit.early-fire.enabled' = 'true'; SET 'table.exec.emit.early-fire.delay' = '1 s'"),
    )
    .unwrap();
    let refused = error(&session, &OVER_ROWS[8].replace("$AGG$", "growing(v, w)"));
    assert!(refused.message().contains("sessions with aggregate function growing, which cannot be merged"), "{refused}");
}

#[test]
fn a_row_goes_to_each_of_its_windows_where_accumulators_cannot_be_merged() {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    let session = session(folder.path(), &[], false);
    let plan = |function: &str| {
        let sql = format!("EXPLAIN {}", OVER_ROWS[6].replace("$AGG$", &format!("{function}(v, w)")));
        match block_on(session.execute(&sql)).unwrap().outcome {
            crate::client::Outcome::Text(plan) => plan,
            _ => panic!("EXPLAIN gives text"),
        }
    };
    assert!(plan("growing").contains("] WindowTableFunction("), "{}", plan("growing"));
    assert!(!plan("average").contains("] WindowTableFunction("), "{}", plan("average"));
}

#[test]
fn forms_and_mistakes_are_told_as_of_other_functions() {
    #[derive(Default)]
    struct Longest(String);

    impl Accumulator for Longest {
        type Arguments = (&'static str,);
        type Value = String;
        type State = (String,);

        fn accumulate(&mut self, (text,): (&str,)) -> Result<()> {
            assert!(text != "bad", "a bad text");
            if text.len() > self.0.len() {
                self.0 = text.to_string();
            }
            Ok(())
        }

        fn value(&self) -> String {
            self.0.clone()
        }

        fn save(&self) -> (String,) {
            (self.0.clone(),)
        }

        fn load((text,): (String,)) -> Self {
            Longest(text)
        }

        fn heap_bytes(&self) -> usize {
            self.0.capacity()
        }
    }

    let session = Session::new();
    session.register_aggregate_function(AggregateFn::of::<Longest>("summary").or(AggregateFn::of::<Average>(""))).unwrap();
    let of = |calls: &str| format!("SELECT {calls} FROM (VALUES ('a', 1, 2), ('abc', 3, 1)) AS t(s, v, w)");
    assert_eq!(rows(&session, &of("summary(s), SUMMARY(v, w), summary(s) FILTER (WHERE v > 5)")), ["abc 1 "]);
    let typed = error(&session, &of("summary(TRUE)"));
    assert_eq!(typed.message(), "function summary does not take arguments of type (BOOLEAN NOT NULL)");
    assert_eq!(typed.hint(), Some("it is called as summary(<STRING>) or summary(<BIGINT>, <BIGINT>)"));
    assert_eq!(
        error(&session, &of("summary(CASE v WHEN 3 THEN 'bad' ELSE s END)")).to_string(),
        "function summary panicked: a bad text"
    );
    assert_eq!(rows(&session, "DESCRIBE FUNCTION summary")[1], "kind AGGREGATE");
    assert_eq!(error(&session, "SELECT * FROM TABLE(summary('a'))").kind(), ErrorKind::UndefinedFunction);
    assert!(session.register_aggregate_function(AggregateFn::of::<Average>("sum")).is_err());
    block_on(session.execute("DROP FUNCTION summary")).unwrap();
    assert_eq!(error(&session, &of("summary(s)")).kind(), ErrorKind::UndefinedFunction);
}

#[test]
fn state_is_counted_and_released() {
    let mut accumulator = accumulator::PerGroup::<Growing>::new();
    accumulator.resize(2);
    let empty = accumulator.bytes();
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
    let groups: Vec<u32> = (0..1_000).map(|row| row % 2).collect();
    accumulator.update(&groups, &[numbers.clone(), numbers], None, None).unwrap();
    assert!(accumulator.bytes() >= empty + 1_000 * 16);
    let state = accumulator.state(&[0, 1]).unwrap();
    let mut other = accumulator::PerGroup::<Growing>::new();
    other.resize(2);
    other.merge(&[1, 0], &state).unwrap();
    assert_eq!(other.evaluate(&[1, 0]).unwrap().as_ref(), accumulator.evaluate(&[0, 1]).unwrap().as_ref());
    assert!(other.merge(&[0], &other.state(&[1]).unwrap()).is_err(), "it cannot be merged with rows that are there");
    accumulator.clear(&[0, 1]);
    assert_eq!(accumulator.bytes(), empty);
}
