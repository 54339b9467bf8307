//! Tables read in whole tasks: watermarks of splits, computed columns, filters, limits; sinks and results behind them.

use std::sync::Arc;
use std::task::{Context, Waker};

use futures::StreamExt;

use super::TableSource;
use crate::clock::{Clock, SystemClock, VirtualClock};
use crate::config::Configuration;
use crate::error::ErrorKind;
use crate::expr::Expr;
use crate::runtime::{OperatorMetrics, Output, SourceOperator, Split, SplitProgress};
use crate::stream_graph::{OperatorSpec, Partitioner, SourceSpec, WatermarkAlignment, WatermarkSpec};
use crate::testing::connectors::{Scripted, ScriptedConnectors, Written};
use crate::testing::job::TestJob;
use crate::testing::operator_harness::environment;
use crate::testing::pretty::{format_batch, parse_batch};
use crate::testing::specs::{sink_spec, source_spec};
use crate::types::{Batch, DataType, Field, ResultId, Schema, SchemaRef, SplitId, TypeKind, Value, Watermark};

fn schema() -> SchemaRef {
    let time = DataType::nullable(TypeKind::Timestamp(3));
    Arc::new(Schema::new(vec![Field::new("ts", time), Field::new("name", DataType::string())]))
}

/// A table whose watermark is its first column.
fn table() -> SourceSpec {
    let expr = Expr::column(0, schema().field(0).data_type.clone());
    SourceSpec { watermark: Some(WatermarkSpec { rowtime: 0, expr, timing: Default::default() }), ..source_spec("t", schema()) }
}

fn rows(text: &str) -> Scripted {
    Scripted::Rows(parse_batch(&schema(), text))
}

fn text(written: &[Written]) -> String {
    let line = |written: &Written| match written {
        Written::Rows(batch) => format_batch(batch),
        Written::Watermark(watermark) if *watermark == i64::MAX => "WATERMARK max\n".to_string(),
        Written::Watermark(watermark) => format!("WATERMARK {watermark}\n"),
        Written::Flush => "FLUSH\n".to_string(),
        Written::Finish => "FINISH\n".to_string(),
    };
    written.iter().map(line).collect()
}

fn job_of(clock: Arc<dyn Clock>, splits: Vec<Vec<Scripted>>) -> (TestJob, ScriptedConnectors) {
    let connectors = ScriptedConnectors::default();
    let count = splits.len();
    connectors.set("t", splits);
    let mut job = TestJob::new(environment(clock, &connectors));
    Arc::get_mut(&mut job.splits).unwrap().all_at_start = Some(1);
    job.splits.add(job.operator_id(0, 0), vec![String::new(); count]);
    (job, connectors)
}

/// What a sink gets that is chained behind the table.
async fn read(spec: SourceSpec, splits: Vec<Vec<Scripted>>) -> crate::Result<String> {
    let (mut job, connectors) = job_of(Arc::new(SystemClock::new()), splits);
    job.vertex(1, vec![OperatorSpec::Source(Box::new(spec)), OperatorSpec::Sink(Box::new(sink_spec("s", schema())))]);
    job.run().await?;
    Ok(text(&connectors.written("s")))
}

#[tokio::test]
async fn rows_are_filtered_after_they_gave_their_watermark() {
    let is_b = Expr::InList {
        needle: Box::new(Expr::column(1, DataType::string())),
        list: vec![Value::String("b".into())],
        negated: false,
    };
    let spec = SourceSpec { predicate: Some(is_b), ..table() };
    let seen = read(spec, vec![vec![rows("10 | a\n20 | b\n15 | b\n30 | a")]]).await.unwrap();
    expect_test::expect![[r#"
        1970-01-01T00:00:00.020 | b
        1970-01-01T00:00:00.015 | b
        WATERMARK 30
        WATERMARK max
        FINISH
    "#]]
    .assert_eq(&seen);
}

#[tokio::test]
async fn the_split_furthest_behind_is_served_first() {
    let late = vec![rows("100 | x"), rows("200 | x")];
    let early = vec![rows("50 | y"), rows("150 | y")];
    let seen = read(table(), vec![late, early]).await.unwrap();
    expect_test::expect![[r#"
        1970-01-01T00:00:00.100 | x
        1970-01-01T00:00:00.050 | y
        WATERMARK 50
        1970-01-01T00:00:00.150 | y
        WATERMARK 100
        1970-01-01T00:00:00.200 | x
        WATERMARK 150
        WATERMARK 200
        WATERMARK max
        FINISH
    "#]]
    .assert_eq(&seen);
}

#[tokio::test]
async fn times_before_the_epoch_give_no_watermark() {
    let seen = read(table(), vec![vec![rows("-5 | a\n0 | b\n-9 | c")]]).await.unwrap();
    assert!(!seen.contains("WATERMARK 0") && !seen.contains("WATERMARK -"), "{seen}");
}

#[tokio::test]
async fn a_null_rowtime_fails_the_job_and_names_the_source() {
    let error = read(table(), vec![vec![rows("NULL | a")]]).await.unwrap_err();
    assert_eq!((error.kind(), error.operator()), (ErrorKind::DataFormat, Some("v0.0")));
    assert_eq!(error.message(), "RowTime field should not be null, please convert it to a non-null long value.");
}

#[tokio::test]
async fn a_limit_stops_the_reader() {
    let spec = SourceSpec { limit: Some(2), watermark: None, ..table() };
    let seen = read(spec, vec![vec![rows("1 | a\n2 | b\n3 | c"), Scripted::Stall]]).await.unwrap();
    assert_eq!(seen, "1970-01-01T00:00:00.001 | a\n1970-01-01T00:00:00.002 | b\nWATERMARK max\nFINISH\n");
}

#[tokio::test]
async fn watermarks_and_flushes_of_the_connector_pass() {
    let spec = SourceSpec { watermark: None, ..table() };
    let script = vec![rows("1 | a"), Scripted::Watermark(7), Scripted::Flush(1), rows("9 | b")];
    let seen = read(spec, vec![script]).await.unwrap();
    expect_test::expect![[r#"
        1970-01-01T00:00:00.001 | a
        WATERMARK 7
        FLUSH
        1970-01-01T00:00:00.009 | b
        WATERMARK max
        FINISH
    "#]]
    .assert_eq(&seen);
}

#[tokio::test]
async fn an_idle_split_is_left_out_after_its_timeout() {
    let clock = VirtualClock::new(0);
    let stalled = vec![rows("10 | x"), Scripted::Stall];
    let (mut job, connectors) =
        job_of(Arc::clone(&clock) as Arc<dyn Clock>, vec![vec![rows("500 | a"), Scripted::Stall], stalled]);
    let mut spec = table();
    let timing = &mut spec.watermark.as_mut().unwrap().timing;
    (timing.idle_timeout_ms, timing.idle_alone) = (Some(1_000), true);
    job.vertex(1, vec![OperatorSpec::Source(Box::new(spec)), OperatorSpec::Sink(Box::new(sink_spec("s", schema())))]);
    let handles = job.start().unwrap();
    let settle = async || {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    };
    settle().await;
    assert_eq!(text(&connectors.written("s")).lines().last(), Some("WATERMARK 10"));
    clock.advance_to(1_000);
    settle().await;
    assert_eq!(text(&connectors.written("s")).lines().last(), Some("WATERMARK 500"));
    handles[0].cancel();
    handles[0].ended().await;
}

/// A source over scripted splits, outside of any task.
fn source_of(spec: &SourceSpec, clock: &Arc<VirtualClock>, splits: Vec<Vec<Scripted>>) -> TableSource {
    let connectors = ScriptedConnectors::default();
    let count = splits.len() as u64;
    connectors.set("t", splits);
    let environment = environment(Arc::clone(clock) as Arc<dyn Clock>, &connectors);
    let mut context = crate::testing::operator_harness::context(0, 1, &Configuration::default(), &environment);
    context.metrics = Arc::new(OperatorMetrics::new(&OperatorSpec::Source(Box::new(spec.clone()))));
    let mut source = TableSource::new(spec, &context).unwrap();
    source.add_splits((0..count).map(|id| Split { id: SplitId(id), state: String::new() }).collect()).unwrap();
    source
}

/// Splits as the JobMaster hears of them: name, watermark, rows, state.
fn told(source: &TableSource) -> Vec<String> {
    let told = source.reading.metrics.source.as_ref().unwrap().snapshot();
    let text = |split: &SplitProgress| {
        let watermark = if split.watermark == i64::MIN { "none".to_string() } else { split.watermark.to_string() };
        format!("{} {watermark} {} {:?}", split.name, split.rows, split.state)
    };
    told.splits.values().map(text).chain([format!("{} rows, {} finished", told.rows, told.finished)]).collect()
}

#[test]
fn a_split_beside_others_is_left_out_by_default_and_told() {
    let clock = VirtualClock::new(0);
    let mut spec = table();
    spec.watermark.as_mut().unwrap().timing.idle_timeout_ms = Some(60_000);
    let mut source = source_of(&spec, &clock, vec![vec![rows("500 | a")], vec![rows("10 | x"), Scripted::Stall]]);
    (0..3).for_each(|_| drop(poll(&mut source)));
    assert_eq!(told(&source), ["split 0 500 1 Active", "split 1 10 1 Active", "2 rows, 0 finished"]);
    assert_eq!(source.next_processing_timer(), Some(60_000));
    clock.advance_to(60_000);
    let mut seen = Seen::default();
    source.process_time(60_000, &mut seen).unwrap();
    assert_eq!(seen.0, "WATERMARK 500\n", "both are idle: the furthest counts");
    assert_eq!(told(&source), ["split 0 500 1 Idle", "split 1 10 1 Idle", "2 rows, 0 finished"]);
    let mut alone = source_of(&spec, &clock, vec![vec![rows("500 | a"), Scripted::Stall]]);
    (0..3).for_each(|_| drop(poll(&mut alone)));
    assert_eq!(alone.next_processing_timer(), None, "nothing goes on without it");
}

#[test]
fn periodic_watermarks_are_told_by_the_clock() {
    let clock = VirtualClock::new(0);
    let mut spec = table();
    spec.watermark.as_mut().unwrap().timing.emit_interval_ms = Some(200);
    let mut source = source_of(&spec, &clock, vec![vec![rows("10 | a\n30 | b"), rows("20 | c"), Scripted::Stall]]);
    assert!(!poll(&mut source).contains("WATERMARK") && !poll(&mut source).contains("WATERMARK"));
    assert_eq!(source.next_processing_timer(), Some(200));
    let mut seen = Seen::default();
    source.process_time(200, &mut seen).unwrap();
    assert_eq!((seen.0.as_str(), source.next_processing_timer()), ("WATERMARK 30\n", None));
}

#[test]
fn splits_that_are_ahead_of_their_group_wait() {
    let clock = VirtualClock::new(0);
    let mut spec = table();
    let alignment = WatermarkAlignment { group: "g".to_string(), max_drift_ms: 100, update_interval_ms: 1_000 };
    spec.watermark.as_mut().unwrap().timing.alignment = Some(alignment);
    let fast = vec![rows("500 | a"), rows("900 | b")];
    let slow = vec![rows("10 | x"), rows("20 | y"), rows("700 | z"), Scripted::Stall];
    let mut source = source_of(&spec, &clock, vec![fast, slow]);
    assert_eq!((source.alignment_interval_ms(), source.waited_for()), (Some(1_000), Some(Watermark(0))));
    (0..8).for_each(|_| drop(poll(&mut source)));
    assert_eq!(told(&source), ["split 0 500 1 Paused", "split 1 10 1 Paused", "2 rows, 0 finished"], "nobody knows the others");
    source.set_limit(Watermark(100));
    (0..8).for_each(|_| drop(poll(&mut source)));
    assert_eq!(told(&source), ["split 0 500 1 Paused", "split 1 700 3 Paused", "4 rows, 0 finished"]);
    source.set_limit(Watermark(600));
    (0..8).for_each(|_| drop(poll(&mut source)));
    assert_eq!(told(&source), ["split 0 900 2 Paused", "split 1 700 3 Paused", "5 rows, 0 finished"]);
    source.set_limit(Watermark::MAX);
    (0..8).for_each(|_| drop(poll(&mut source)));
    assert_eq!(told(&source), ["split 0 900 2 Active", "split 1 700 3 Active", "5 rows, 0 finished"], "none waits");
}

#[tokio::test]
async fn null_for_a_not_null_column_fails_or_is_dropped() {
    for (enforcer, expected) in [("ERROR", None), ("DROP", Some("1970-01-01T00:00:00.001 | b\nWATERMARK max\nFINISH\n"))] {
        let (mut job, connectors) = job_of(Arc::new(SystemClock::new()), vec![vec![rows("1 | NULL\n1 | b")]]);
        job.configuration.set("table.exec.sink.not-null-enforcer", enforcer).unwrap();
        let mut sink = sink_spec("s", schema());
        let name = Field::new("name", DataType::string().with_nullable(false));
        sink.schema = Arc::new(Schema::new(vec![schema().field(0).clone(), name]));
        let spec = SourceSpec { watermark: None, ..table() };
        job.vertex(1, vec![OperatorSpec::Source(Box::new(spec)), OperatorSpec::Sink(Box::new(sink))]);
        let outcome = job.run().await;
        match expected {
            Some(expected) => {
                assert_eq!(text(&connectors.written("s")), expected);
                assert_eq!(outcome.unwrap()[0].metrics().operators[1].dropped_rows, 1);
            }
            None => assert_eq!(
                outcome.unwrap_err().message(),
                "Column 'name' is NOT NULL, however, a null value is being written into it"
            ),
        }
    }
}

#[tokio::test]
async fn a_slow_session_holds_the_query_back_and_gets_every_row() {
    let connectors = ScriptedConnectors::default();
    let environment = environment(Arc::new(SystemClock::new()), &connectors);
    let mut results = environment.results.register(ResultId(1));
    let mut job = TestJob::new(Arc::clone(&environment));
    job.configuration.set("execution.batch-rows", "1").unwrap();
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::nullable(TypeKind::Int))]));
    let values = (0..100).map(|n| vec![Value::Int(n)]).collect();
    let source = job.vertex(2, vec![OperatorSpec::Values { rows: values, schema: Arc::clone(&schema) }]);
    let collect = job.vertex(1, vec![OperatorSpec::Collect { result: ResultId(1), schema }]);
    job.edge(source, collect, 0, Partitioner::Global);
    let handles = job.start().unwrap();
    let mut rows = String::new();
    while let Some(batch) = results.next().await {
        rows.push_str(&format_batch(&batch.unwrap()));
        tokio::task::yield_now().await;
    }
    assert_eq!(rows, (0..100).map(|n| format!("{n}\n")).collect::<String>());
    for handle in handles {
        handle.ended().await;
    }
}

#[tokio::test]
async fn a_session_that_leaves_ends_the_query() {
    let (mut job, _) = job_of(Arc::new(SystemClock::new()), vec![vec![rows("1 | a"); 100_000]]);
    let schema = schema();
    let results = job.environment().results.register(ResultId(2));
    let spec = SourceSpec { watermark: None, ..table() };
    let source = job.vertex(1, vec![OperatorSpec::Source(Box::new(spec))]);
    let collect = job.vertex(1, vec![OperatorSpec::Collect { result: ResultId(2), schema }]);
    job.edge(source, collect, 0, Partitioner::Global);
    let handles = job.start().unwrap();
    tokio::task::yield_now().await;
    drop(results);
    for handle in handles {
        assert!(matches!(handle.ended().await, crate::runtime::task::TaskStatus::Finished));
    }
}

/// What a source emits, as text.
#[derive(Default)]
struct Seen(String);

impl Output for Seen {
    fn batch(&mut self, batch: Batch) -> crate::Result<()> {
        self.0.push_str(&format_batch(&batch));
        Ok(())
    }

    fn watermark(&mut self, watermark: Watermark) -> crate::Result<()> {
        self.0.push_str(&format!("WATERMARK {watermark}\n"));
        Ok(())
    }
}

fn poll(source: &mut TableSource) -> String {
    let mut seen = Seen::default();
    let _ = source.poll(&mut Context::from_waker(Waker::noop()), &mut seen);
    seen.0
}

#[test]
fn splits_and_watermarks_survive_a_restart_with_another_parallelism() {
    let connectors = ScriptedConnectors::default();
    let of_split = |at: i64| vec![rows(&format!("{at} | a")), Scripted::Stall];
    connectors.set("t", (1..=4).map(|split| of_split(split * 10)).collect());
    let environment = environment(VirtualClock::new(0), &connectors);
    let source = |index, parallelism| {
        let context = crate::testing::operator_harness::context(index, parallelism, &Configuration::default(), &environment);
        TableSource::new(&table(), &context).unwrap()
    };
    let mut old = source(0, 1);
    old.add_splits((0..4).map(|id| Split { id: SplitId(id), state: String::new() }).collect()).unwrap();
    for _ in 0..4 {
        poll(&mut old);
    }
    assert_eq!(old.reading.splits.emitted(), Watermark(10));
    let snapshot = old.state()[0].1.snapshot().unwrap();
    let mut restored: Vec<TableSource> = (0..3).map(|index| source(index, 3)).collect();
    let mut watermarks = Vec::new();
    for source in &mut restored {
        let range = source.context.key_groups;
        source.state()[0].1.restore(&snapshot, range).unwrap();
        assert_eq!(source.reading.splits.emitted(), Watermark(10));
        let splits = source.reading.reader.snapshot().unwrap();
        assert!(splits.len() < 4, "they are shared out");
        watermarks.extend(splits.iter().map(|split| (split.id.0, source.reading.splits.highest_of(split.id).0)));
    }
    watermarks.sort_unstable();
    assert_eq!(watermarks, [(0, 10), (1, 20), (2, 30), (3, 40)]);
}
