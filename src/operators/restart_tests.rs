//! Every operator that keeps state, stopped at each point of its input and restored with other numbers of subtasks: what comes out
//! amounts to the same, and what was late is late. Stopped after its end and restored, it has nothing more to say.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::Configuration;
use crate::error::{ErrorKind, Result};
use crate::expr::{AggregateCall, Expr, SortKey};
use crate::stream_graph::{
    AttachedWindow, EmitStrategy, FrameBound, FrameUnit, IntervalJoinSpec, JoinKey, JoinType, LateFire, OperatorSpec, OverCall,
    OverFrame, OverOperatorSpec, OverSpec, OverStrategy, RankEnd, RankOperatorSpec, RankRange, RankSpec, RankStrategy,
    RegularJoinSpec, ScalarJoinSpec, SinkMaterializerSpec, SortLimitSpec, WatermarkSpec, WindowAggregateSpec, WindowColumns,
    WindowJoinSpec, WindowKind, WindowProperty, WindowSource, WindowSpec,
};
use crate::testing::operator_harness::{MAX_PARALLELISM, OperatorHarness, Snapshot};
use crate::testing::pretty::parse_batch;
use crate::types::{Batch, DataType, Field, KeyGroup, Schema, TimeAttribute, TypeKind, hash_columns};

const NAME: usize = 0;
const VALUE: usize = 1;
const TIME: usize = 2;
const START: usize = 3;
const END: usize = 4;

/// Event time, or rows of an input.
#[derive(Debug, Clone)]
enum Event {
    Watermark(i64),
    Rows(u8, String),
}

fn rowtime() -> DataType {
    DataType::nullable(TypeKind::Timestamp(3)).with_time(Some(TimeAttribute::Rowtime))
}

fn bigint() -> DataType {
    DataType::nullable(TypeKind::BigInt)
}

fn schema() -> Schema {
    let time = || DataType::nullable(TypeKind::Timestamp(3));
    Schema::new(vec![
        Field::new("name", DataType::string()),
        Field::new("value", bigint()),
        Field::new("time", rowtime()),
        Field::new("window_start", time()),
        Field::new("window_end", time()),
    ])
}

/// A row with a time and its window of 10 ms.
fn row(kind: &str, name: &str, value: i64, time_ms: i64) -> String {
    let start = time_ms / 10 * 10;
    format!("{kind} | {name} | {value} | {time_ms} | {start} | {}\n", start + 10)
}

/// Rows of several inputs that come, where asked for go again, and where asked for come too late.
fn events(inputs: u8, retracts: bool, late: bool) -> Vec<Event> {
    let mut random = fastrand::Rng::with_seed(11);
    let mut present: Vec<Vec<String>> = vec![Vec::new(); inputs.into()];
    let mut events = Vec::new();
    for turn in 0..24i64 {
        let input = random.u8(0..inputs);
        let mut text = String::new();
        for _ in 0..random.usize(1..5) {
            let there = &mut present[usize::from(input)];
            if retracts && !there.is_empty() && random.f64() < 0.4 {
                let gone = there.swap_remove(random.usize(0..there.len()));
                text.push_str(&gone.replacen("+I", "-D", 1));
            } else {
                let time_ms = turn * 4 + random.i64(0..9) - if late && random.u8(0..4) == 0 { 30 } else { 0 };
                let new = row("+I", &format!("n{}", random.u8(0..9)), random.i64(0..6), time_ms.max(1));
                there.push(new.clone());
                text.push_str(&new);
            }
        }
        events.push(Event::Rows(input, text));
        if turn % 3 == 2 {
            events.push(Event::Watermark(turn * 4));
        }
    }
    events
}

/// An operator and how its rows reach its subtasks: by these columns of each input; none = there is one subtask.
struct Case {
    spec: OperatorSpec,
    inputs: u8,
    keys: Option<usize>,
    /// Rows that come before the others, on the last input.
    first: Option<String>,
    /// Whether changes are by the first column, without the former row.
    upserts: bool,
    events: Vec<Event>,
    settings: Configuration,
}

struct Stage {
    subtasks: Vec<OperatorHarness>,
    late: u64,
}

impl Case {
    fn new(spec: OperatorSpec, inputs: u8, keys: Option<usize>, events: Vec<Event>) -> Self {
        Case { spec, inputs, keys, first: None, upserts: false, events, settings: Configuration::default() }
    }

    fn schemas(&self) -> Vec<Schema> {
        (0..self.inputs).map(|_| schema()).collect()
    }

    fn start(&self, parallelism: u32, snapshots: &[Snapshot]) -> Result<Stage> {
        let build = |index| {
            let mut subtask = OperatorHarness::subtask(&self.spec, self.schemas(), index, parallelism, &self.settings)?;
            subtask.restore(snapshots)?;
            Ok(subtask)
        };
        Ok(Stage { subtasks: (0..parallelism).map(build).collect::<Result<_>>()?, late: 0 })
    }

    /// The rows of a subtask.
    fn share(&self, batch: &Batch, index: u32, parallelism: u32) -> Batch {
        let Some(keys) = self.keys else { return batch.clone() };
        let mut hashes = Vec::new();
        hash_columns(&batch.columns()[keys..=keys], batch.num_rows(), &mut hashes);
        let owner = |hash: u64| KeyGroup::of_hash(hash, MAX_PARALLELISM).subtask(parallelism, MAX_PARALLELISM).0;
        batch.filter(&hashes.into_iter().map(|hash| Some(owner(hash) == index)).collect()).unwrap()
    }

    fn feed(&self, stage: &mut Stage, events: &[Event], out: &mut String) {
        let parallelism = stage.subtasks.len() as u32;
        for event in events {
            for (index, subtask) in (0..).zip(&mut stage.subtasks) {
                match event {
                    Event::Watermark(watermark) => out.push_str(&subtask.watermark(*watermark).unwrap()),
                    Event::Rows(input, text) => {
                        let share = self.share(&parse_batch(&schema(), text), index, parallelism);
                        if share.num_rows() > 0 {
                            out.push_str(&subtask.push_batch(*input, share).unwrap());
                        }
                    }
                }
            }
        }
    }

    fn stop(mut stage: Stage) -> (Vec<Snapshot>, u64) {
        let snapshots = stage.subtasks.iter_mut().map(|subtask| subtask.snapshot().unwrap()).collect();
        (snapshots, stage.late + stage.subtasks.iter().map(OperatorHarness::late_rows).sum::<u64>())
    }

    /// What comes out and how many rows are late when the operator is stopped before these events, to go on with so many subtasks.
    fn run(&self, first: u32, stops: &[(usize, u32)]) -> (Vec<String>, u64) {
        let mut out = String::new();
        let mut stage = self.start(first, &[]).unwrap();
        let mut late = 0;
        if let Some(rows) = &self.first {
            self.feed(&mut stage, &[Event::Rows(self.inputs - 1, rows.clone())], &mut out);
        }
        let mut done = 0;
        for (at, parallelism) in stops {
            self.feed(&mut stage, &self.events[done..*at], &mut out);
            let (snapshots, of_stage) = Self::stop(stage);
            late += of_stage;
            stage = self.start(*parallelism, &snapshots).unwrap();
            done = *at;
        }
        self.feed(&mut stage, &self.events[done..], &mut out);
        let parallelism = stage.subtasks.len() as u32;
        stage.subtasks.iter_mut().for_each(|subtask| out.push_str(&subtask.finish().unwrap()));
        // Stopped after its end, it has nothing more to say, and takes what it is told.
        let (snapshots, of_stage) = Self::stop(stage);
        let mut ended = self.start(parallelism, &snapshots).unwrap();
        let again: String = ended.subtasks.iter_mut().map(|subtask| subtask.finish().unwrap()).collect();
        let rows: Vec<&str> = again.lines().filter(|line| !line.starts_with("WATERMARK")).collect();
        assert_eq!(rows, [""; 0], "after the end of {:?}", self.spec);
        (if self.upserts { fold_upserts(&out) } else { fold(&out) }, late + of_stage)
    }

    fn check(mut self) {
        let expected = self.check_restarts();
        // With a time to live that is never over state is written with its times, and nothing else changes.
        self.settings.set("table.exec.state.ttl", "1 d").unwrap();
        assert_eq!(self.check_restarts(), expected, "with a time to live: {:?}", self.spec);
    }

    /// What comes out, wherever the operator is stopped; none = it is not supported.
    fn check_restarts(&self) -> Option<(Vec<String>, u64)> {
        match self.start(1, &[]) {
            Err(error) if error.kind() == ErrorKind::Unsupported => return None,
            started => drop(started.map_err(|error| error.render()).unwrap()),
        }
        let expected = self.run(1, &[]);
        assert!(!expected.0.is_empty(), "nothing comes out of {:?}", self.spec);
        let [one, two, three] = if self.keys.is_some() { [1, 2, 3] } else { [1, 1, 1] };
        let length = self.events.len();
        for at in (0..=length).step_by(3) {
            assert_eq!(self.run(one, &[(at, three)]), expected, "stopped at {at}, 1 to 3: {:?}", self.spec);
            let later = (at + 5).min(length);
            assert_eq!(self.run(three, &[(at, two), (later, three)]), expected, "stopped at {at} and {later}: {:?}", self.spec);
        }
        Some(expected)
    }
}

/// A kind and a row.
fn change(line: &str) -> (&str, &str) {
    match line.split_once(" | ") {
        Some((kind @ ("+I" | "-U" | "+U" | "-D"), row)) => (kind, row),
        _ => ("+I", line),
    }
}

/// The rows that changes by the first column amount to.
fn fold_upserts(out: &str) -> Vec<String> {
    let mut rows: BTreeMap<&str, &str> = BTreeMap::new();
    for (kind, row) in out.lines().filter(|line| !line.starts_with("WATERMARK")).map(change) {
        let key = row.split(" | ").next().unwrap();
        match kind {
            "+I" | "+U" => drop(rows.insert(key, row)),
            "-D" => drop(rows.remove(key)),
            _ => {}
        }
    }
    rows.into_values().map(str::to_string).collect()
}

/// The rows that changes amount to.
fn fold(out: &str) -> Vec<String> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for line in out.lines().filter(|line| !line.starts_with("WATERMARK")) {
        let (kind, row) = change(line);
        *counts.entry(row).or_default() += if kind.starts_with('+') { 1 } else { -1 };
    }
    assert!(counts.values().all(|count| *count >= 0), "rows are taken away that are not there: {counts:?}");
    counts.into_iter().flat_map(|(row, count)| std::iter::repeat_n(row.to_string(), count as usize)).collect()
}

fn sum() -> AggregateCall {
    AggregateCall {
        function: "SUM".to_string(),
        args: vec![VALUE],
        arg_types: vec![bigint()],
        distinct: false,
        order: Vec::new(),
        filter: None,
        data_type: bigint(),
        name: "s".to_string(),
    }
}

fn by_value() -> Vec<SortKey> {
    vec![SortKey { column: VALUE, descending: true, nulls_first: false }]
}

fn same_name() -> Vec<JoinKey> {
    vec![JoinKey { left: NAME, right: NAME, null_safe: false }]
}

const JOINS: [JoinType; 4] = [JoinType::Inner, JoinType::Left, JoinType::Right, JoinType::Full];

#[test]
fn groups() {
    for retracts in [false, true] {
        for (keys, by) in [(vec![NAME], Some(NAME)), (vec![], None)] {
            let aggregates = vec![sum()];
            let spec = OperatorSpec::GroupAggregate { keys, aggregates, input_retracts: retracts, emit_update_before: true };
            Case::new(spec, 1, by, events(1, retracts, false)).check();
        }
    }
}

#[test]
fn windows() {
    let tumble = WindowKind::Tumble { size_ms: 10, offset_ms: 0 };
    let hop = WindowKind::Hop { slide_ms: 5, size_ms: 10, offset_ms: 0 };
    let assigned = |kind| WindowSource::Assigned(WindowSpec::new(kind, TIME, rowtime()));
    let attached = WindowSource::Attached { start: START, end: END, time_type: rowtime() };
    let cumulate = WindowKind::Cumulate { step_ms: 2, size_ms: 10, offset_ms: 0 };
    let session =
        WindowSpec { partition_keys: vec![NAME], ..WindowSpec::new(WindowKind::Session { gap_ms: 3 }, TIME, rowtime()) };
    let sessions = WindowSource::Assigned(session.clone());
    for window in [assigned(tumble), assigned(hop), assigned(cumulate), sessions, attached] {
        let spec = OperatorSpec::WindowAggregate(WindowAggregateSpec {
            window,
            keys: vec![NAME],
            aggregates: vec![sum()],
            properties: vec![WindowProperty::Start, WindowProperty::End],
            input_retracts: false,
            emit: None,
            emit_update_before: false,
        });
        Case::new(spec, 1, Some(NAME), events(1, false, true)).check();
    }
    let time_window = WindowSpec::new(hop, TIME, rowtime());
    Case::new(OperatorSpec::WindowTableFunction(time_window), 1, None, events(1, false, true)).check();
    Case::new(OperatorSpec::WindowTableFunction(session), 1, Some(NAME), events(1, false, true)).check();
}

#[test]
fn windows_that_are_updated() {
    let tumble = WindowKind::Tumble { size_ms: 10, offset_ms: 0 };
    let hop = WindowKind::Hop { slide_ms: 5, size_ms: 10, offset_ms: 0 };
    let session = WindowKind::Session { gap_ms: 3 };
    let late = |delay_ms| Some(LateFire { allowed_lateness_ms: 20, delay_ms });
    let emits = [(Some(0), None), (None, late(0)), (Some(1_000), late(1_000)), (Some(0), late(0))];
    for (kind, (early_delay_ms, late)) in [tumble, hop, session].into_iter().flat_map(|kind| emits.map(|emit| (kind, emit))) {
        let partition_keys = if kind.is_session() { vec![NAME] } else { Vec::new() };
        for input_retracts in [false, true] {
            let spec = OperatorSpec::WindowAggregate(WindowAggregateSpec {
                window: WindowSource::Assigned(WindowSpec {
                    partition_keys: partition_keys.clone(),
                    ..WindowSpec::new(kind, TIME, rowtime())
                }),
                keys: vec![NAME],
                aggregates: vec![sum()],
                properties: vec![WindowProperty::Start, WindowProperty::End],
                input_retracts,
                emit: Some(EmitStrategy { early_delay_ms, late }),
                emit_update_before: true,
            });
            Case::new(spec, 1, Some(NAME), events(1, input_retracts, true)).check();
        }
    }
}

#[test]
fn orders() {
    for retracts in [false, true] {
        let (keys, input_retracts) = (by_value(), retracts);
        Case::new(OperatorSpec::BoundedSort { keys: keys.clone(), input_retracts }, 1, None, events(1, retracts, false)).check();
        let input = Arc::new(schema());
        let spec = OperatorSpec::SortLimit(SortLimitSpec { keys, offset: 2, fetch: 5, input_retracts, changes: None, input });
        Case::new(spec, 1, None, events(1, retracts, false)).check();
    }
    let keys = vec![SortKey { column: TIME, descending: false, nulls_first: false }];
    Case::new(OperatorSpec::TemporalSort { keys }, 1, None, events(1, false, true)).check();
    Case::new(OperatorSpec::Limit { offset: 3, fetch: Some(20) }, 1, None, events(1, false, false)).check();
}

#[test]
fn ranks() {
    let by_time = || vec![SortKey { column: TIME, descending: false, nulls_first: true }];
    let one = RankRange { start: 1, end: RankEnd::Constant(1) };
    let some = RankRange { start: 2, end: RankEnd::Constant(3) };
    let cases = [
        (RankStrategy::FirstToCome, by_time(), one),
        (RankStrategy::LastToCome, by_time(), one),
        (RankStrategy::Earliest(TIME), by_time(), one),
        (RankStrategy::Latest(TIME), by_time(), one),
        (RankStrategy::AppendFast, by_value(), some),
        (RankStrategy::Retract, by_value(), some),
        (RankStrategy::Window { latest_of_ties: false }, by_value(), RankRange { start: 1, ..some }),
    ];
    for (strategy, order_keys, range) in cases {
        let retracts = strategy == RankStrategy::Retract;
        let is_window = matches!(strategy, RankStrategy::Window { .. });
        let window = is_window.then(|| AttachedWindow { start: START, end: END, time_type: rowtime() });
        let rank =
            RankSpec { partition_keys: vec![NAME], order_keys, range, output_number: range.end != one.end, window, ttl: None };
        let input = Arc::new(schema());
        let spec = OperatorSpec::Rank(RankOperatorSpec { rank, strategy, emit_update_before: true, changes: None, input });
        Case::new(spec, 1, Some(NAME), events(1, retracts, !retracts)).check();
    }
}

#[test]
fn overs() {
    let rows = OverFrame::new(FrameUnit::Rows, FrameBound::Preceding(2), FrameBound::CurrentRow);
    let range = OverFrame::new(FrameUnit::Range, FrameBound::Preceding(12), FrameBound::CurrentRow);
    let following = OverFrame::new(FrameUnit::Rows, FrameBound::Preceding(1), FrameBound::Following(2));
    let later = OverFrame::new(FrameUnit::Range, FrameBound::CurrentRow, FrameBound::Following(12));
    let behind = OverFrame::new(FrameUnit::Rows, FrameBound::UnboundedPreceding, FrameBound::Preceding(1));
    for frame in [rows, range, OverFrame::RANGE_TO_CURRENT, following, later, behind] {
        let order_keys = vec![SortKey { column: TIME, descending: false, nulls_first: true }];
        let over = OverSpec {
            partition_keys: vec![NAME],
            order_keys,
            calls: vec![OverCall { frame, call: sum() }],
            limit: None,
            ttl: None,
        };
        let ends = frame.end == FrameBound::CurrentRow;
        let strategy = if ends { OverStrategy::EventTime(TIME) } else { OverStrategy::EventTimeFrames(TIME) };
        let spec = OperatorSpec::OverAggregate(OverOperatorSpec {
            over,
            strategy,
            input_retracts: false,
            input: Arc::new(schema()),
            emit_update_before: true,
            changes: None,
        });
        Case::new(spec, 1, Some(NAME), events(1, false, true)).check();
    }
    for frame in [rows, OverFrame::RANGE_TO_CURRENT, following, OverFrame::PARTITION] {
        let order_keys = vec![SortKey { column: VALUE, descending: true, nulls_first: false }];
        let over = OverSpec {
            partition_keys: vec![NAME],
            order_keys,
            calls: vec![OverCall { frame, call: sum() }],
            limit: None,
            ttl: None,
        };
        let (strategy, input) = (OverStrategy::Sorted, Arc::new(schema()));
        let spec = OperatorSpec::OverAggregate(OverOperatorSpec {
            over,
            strategy,
            input_retracts: true,
            input,
            emit_update_before: true,
            changes: None,
        });
        Case::new(spec, 1, Some(NAME), events(1, true, false)).check();
    }
}

#[test]
fn changes_by_key() {
    let keys = vec![NAME];
    let spec = OperatorSpec::ChangelogNormalize { keys, schema: Arc::new(schema()), emit_update_before: true, changes: None };
    Case::new(spec, 1, Some(NAME), events(1, true, false)).check();
    for upsert_key in [None, Some(vec![VALUE, TIME])] {
        let spec = SinkMaterializerSpec { primary_key: vec![NAME], upsert_key, schema: Arc::new(schema()) };
        let mut case = Case::new(OperatorSpec::SinkMaterializer(spec), 1, Some(NAME), events(1, true, false));
        case.upserts = true;
        case.check();
    }
}

#[test]
fn watermarks() {
    let watermark = WatermarkSpec { rowtime: TIME, expr: Expr::column(TIME, rowtime()), timing: Default::default() };
    Case::new(OperatorSpec::WatermarkAssigner(watermark), 1, None, events(1, false, true)).check();
}

#[test]
fn joins_with_one_row() {
    for left_retracts in [false, true] {
        let greater = Expr::Call {
            function: ">".to_string(),
            args: vec![Expr::column(VALUE, bigint()), Expr::column(5 + VALUE, bigint())],
            data_type: DataType::nullable(TypeKind::Boolean),
        };
        let spec = OperatorSpec::ScalarJoin(ScalarJoinSpec {
            predicate: Some(greater),
            left_retracts,
            outer: false,
            left_schema: Arc::new(schema()),
            right_schema: Arc::new(schema()),
        });
        let mut case = Case::new(spec, 2, None, events(1, left_retracts, false));
        case.first = Some(row("+I", "r", 1, 1));
        let (before, after) = (row("-U", "r", 1, 1), row("+U", "r", 3, 1));
        case.events.insert(case.events.len() / 2, Event::Rows(1, before + &after));
        case.check();
    }
}

#[test]
fn joins_of_windows() {
    for join_type in [JoinType::Inner, JoinType::Left, JoinType::Right, JoinType::Full, JoinType::Semi, JoinType::Anti] {
        let window = WindowColumns { start: START, end: END };
        let has_right = !matches!(join_type, JoinType::Semi | JoinType::Anti);
        let spec = OperatorSpec::WindowJoin(Box::new(WindowJoinSpec {
            join_type,
            left_window: window,
            right_window: window,
            time_type: rowtime(),
            keys: same_name(),
            residual: None,
            left_schema: Arc::new(schema()),
            right_schema: Arc::new(schema()),
            output: if has_right { vec![NAME, VALUE, START, 5 + VALUE] } else { vec![NAME, VALUE, START] },
        }));
        Case::new(spec, 2, Some(NAME), events(2, false, true)).check();
    }
}

#[test]
fn joins_of_intervals() {
    for join_type in JOINS {
        let spec = OperatorSpec::IntervalJoin(Box::new(IntervalJoinSpec {
            join_type,
            left_time: TIME,
            right_time: TIME,
            is_proctime: false,
            lower_ms: -8,
            upper_ms: 5,
            keys: same_name(),
            residual: None,
            left_schema: Arc::new(schema()),
            right_schema: Arc::new(schema()),
            output: vec![NAME, VALUE, TIME, 5 + VALUE, 5 + TIME],
        }));
        Case::new(spec, 2, Some(NAME), events(2, false, true)).check();
    }
}

#[test]
fn joins_of_tables() {
    for join_type in JOINS {
        for retracts in [false, true] {
            let spec = OperatorSpec::RegularJoin(Box::new(RegularJoinSpec {
                join_type,
                keys: same_name(),
                residual: None,
                left_retracts: retracts,
                right_retracts: retracts,
                left_schema: Arc::new(schema()),
                right_schema: Arc::new(schema()),
                output: vec![NAME, VALUE, 5 + VALUE],
                ttl: [None; 2],
            }));
            Case::new(spec, 2, Some(NAME), events(2, retracts, false)).check();
        }
    }
}
