//! Sessions as a program uses them.
#![allow(clippy::disallowed_methods)] // a program may do what the engine may not

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{
    ArrayRef, AsArray, DictionaryArray, Int32Array, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder,
    TimestampMillisecondArray, UInt64Array,
};
use arrow::datatypes::{DataType as ArrowType, Field, Int32Type, Int64Type, Schema, SchemaRef, TimeUnit};
use futures::channel::mpsc;
use futures::executor::block_on;
use futures::{SinkExt, StreamExt, stream};

use super::*;
use crate::client::{Outcome, RowStream, Session};
use crate::error::{Error, ErrorKind, Result};
use crate::types::{DataType, RowKind, TypeKind};

fn numbers_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", ArrowType::Int64, false)]))
}

fn numbers(values: impl IntoIterator<Item = i64>) -> RecordBatch {
    RecordBatch::try_new(numbers_schema(), vec![Arc::new(Int64Array::from_iter_values(values))]).unwrap()
}

fn session_of(columns: Vec<(&str, ArrayRef)>) -> Session {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let session = Session::new();
    session.register_batches("t", batch.schema(), [batch]).unwrap();
    session
}

fn text(session: &Session, sql: &str) -> Vec<Vec<String>> {
    block_on(async { session.query(sql).await?.collect_text().await }).unwrap()
}

async fn first_numbers(rows: &mut RowStream) -> Vec<i64> {
    let batch = rows.next().await.unwrap().unwrap();
    batch.rows.column(0).as_primitive::<Int64Type>().values().to_vec()
}

#[test]
fn a_session_can_be_shared_and_its_futures_can_be_spawned() {
    fn shared<T: Send + Sync>(_: &T) {}
    fn sent<T: Send>(_: T) {}
    let session = Session::new();
    shared(&session);
    sent(session.execute("SELECT 1"));
    sent(async { session.query("SELECT 1").await?.collect().await });
}

#[test]
fn batches_are_read_in_order_and_as_often_as_wanted() {
    let session = Session::new();
    session.register_batches("t", numbers_schema(), [numbers(0..3), numbers([]), numbers(3..5)]).unwrap();
    for _ in 0..2 {
        let rows = block_on(async { session.query("SELECT n FROM t").await?.collect().await }).unwrap();
        assert_eq!(rows.column(0).as_primitive::<Int64Type>().values(), &[0, 1, 2, 3, 4]);
    }
    assert_eq!(text(&session, "SELECT COUNT(*) FROM t WHERE n > 1"), [["3"]]);
}

#[test]
fn arrow_types_become_sql_types() {
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("a"), None]);
    let days: DictionaryArray<Int32Type> = ["mon"].into_iter().collect();
    let session = session_of(vec![
        ("u", Arc::new(UInt64Array::from(vec![u64::MAX]))),
        ("s", Arc::new(StringArray::from(vec!["é"]))),
        ("d", Arc::new(days)),
        ("ts", Arc::new(TimestampMillisecondArray::from(vec![1]))),
        ("tz", Arc::new(TimestampMillisecondArray::from(vec![1]).with_timezone("+02:00"))),
        ("l", Arc::new(lists.finish())),
    ]);
    let described = text(&session, "DESCRIBE t");
    let types: Vec<&str> = described.iter().map(|line| line[1].as_str()).collect();
    assert_eq!(types, ["DECIMAL(20, 0)", "STRING", "STRING", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", "ARRAY<STRING>"]);
    let row = text(&session, "SELECT u, s || d, ts, CARDINALITY(l) FROM t");
    assert_eq!(row, [["18446744073709551615", "émon", "1970-01-01 00:00:00.001", "2"]]);
}

#[test]
fn arrow_types_without_counterpart_are_refused_by_name() {
    let schema = Arc::new(Schema::new(vec![Field::new("t", ArrowType::Time64(TimeUnit::Nanosecond), true)]));
    let error = Session::new().register_batches("t", schema, []).unwrap_err();
    assert_eq!((error.kind(), error.detail()), (ErrorKind::Unsupported, Some("column \"t\"")));
    assert!(error.message().contains("Time64"), "{error}");
}

#[test]
fn a_name_is_registered_once_and_freed_by_drop_table() {
    let session = Session::new();
    session.register_batches("my t", numbers_schema(), [numbers([1])]).unwrap();
    let again = session.register_batches("my t", numbers_schema(), [numbers([2])]).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::DuplicateObject);
    assert_eq!(text(&session, "SELECT n FROM `my t`"), [["1"]]);
    block_on(session.execute("DROP TABLE `my t`")).unwrap();
    session.register_batches("my t", numbers_schema(), [numbers([2])]).unwrap();
    assert_eq!(text(&session, "SELECT n FROM `my t`"), [["2"]]);
}

#[test]
fn sql_cannot_define_a_table_of_the_program() {
    let error = block_on(Session::new().execute("CREATE TABLE t (a INT) WITH ('connector' = 'embedded')")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOption);
}

#[tokio::test]
async fn a_stream_is_a_table_without_end_until_it_ends() {
    let session = Session::new();
    let (mut sender, receiver) = mpsc::channel::<Result<RecordBatch>>(1);
    session.register_stream("t", numbers_schema(), receiver).unwrap();
    let mut rows = session.query("SELECT n * 10 FROM t").await.unwrap();
    assert!(!rows.job().unwrap().bounded);
    for n in 0..3 {
        sender.send(Ok(numbers([n]))).await.unwrap();
        assert_eq!(first_numbers(&mut rows).await, [n * 10]);
    }
    drop(sender);
    assert!(rows.next().await.is_none());
    let again = session.query("SELECT n FROM t").await.unwrap().collect().await.unwrap_err();
    assert!(again.message().contains("was read already"), "{again}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_close_as_the_watermark_of_a_stream_passes() {
    let schema = Arc::new(Schema::new(vec![Field::new("ts", ArrowType::Timestamp(TimeUnit::Millisecond, None), true)]));
    let at = |ms: i64| {
        Ok::<_, Error>(RecordBatch::try_new(schema.clone(), vec![Arc::new(TimestampMillisecondArray::from(vec![ms]))]).unwrap())
    };
    let session = Session::new();
    let (mut sender, receiver) = mpsc::channel(8);
    session.register("t", EmbeddedTable::stream(schema.clone(), receiver).unwrap().watermark("ts", "ts")).unwrap();
    let sql = "SELECT COUNT(*) FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' SECOND) GROUP BY window_start, window_end";
    let mut rows = session.query(sql).await.unwrap();
    for ms in [100, 200, 1_000] {
        sender.send(at(ms)).await.unwrap();
    }
    assert_eq!(first_numbers(&mut rows).await, [2]);
    sender.send(at(2_500)).await.unwrap();
    assert_eq!(first_numbers(&mut rows).await, [1]);
}

#[tokio::test]
async fn a_stream_may_use_the_timers_of_the_program() {
    let session = Session::new();
    let ticks = stream::unfold(0, |n| async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        tokio::task::spawn(async {}).await.unwrap();
        (n < 3).then(|| (Ok::<_, Error>(numbers([n])), n + 1))
    });
    session.register("t", EmbeddedTable::stream(numbers_schema(), ticks).unwrap().bounded()).unwrap();
    let rows = session.query("SELECT n FROM t ORDER BY n DESC").await.unwrap().collect_text().await.unwrap();
    assert_eq!(rows, [["2"], ["1"], ["0"]]);
}

#[test]
fn a_query_that_nobody_reads_holds_its_stream_back() {
    let session = Session::new();
    let taken = Arc::new(std::sync::atomic::AtomicI64::new(0));
    let counter = Arc::clone(&taken);
    let endless = stream::iter(0..).map(move |n| {
        counter.store(n, std::sync::atomic::Ordering::Relaxed);
        Ok::<_, Error>(numbers([n]))
    });
    session.register_stream("t", numbers_schema(), endless).unwrap();
    let mut rows = block_on(session.query("SELECT n FROM t")).unwrap();
    assert_eq!(block_on(first_numbers(&mut rows)), [0]);
    let mut before = -1;
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let now = taken.load(std::sync::atomic::Ordering::Relaxed);
        if now == before {
            break;
        }
        assert!(now < 100_000, "nothing holds the stream back");
        before = now;
    }
    let job = rows.job().unwrap().clone();
    drop(rows);
    assert_eq!(block_on(job.result()).unwrap().state.to_string(), "CANCELED");
}

#[test]
fn the_error_of_a_stream_fails_its_query() {
    let session = Session::new();
    let failing = stream::iter([Ok(numbers([1])), Err(Error::new(ErrorKind::Io, "the line is dead"))]);
    session.register_stream("t", numbers_schema(), failing).unwrap();
    let error = block_on(async { session.query("SELECT n FROM t").await?.collect().await }).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Io, "the line is dead"));
}

#[test]
fn a_batch_that_does_not_fit_fails_its_query() {
    let session = Session::new();
    let wrong = RecordBatch::try_from_iter([("n", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]).unwrap();
    session.register_stream("t", numbers_schema(), stream::iter([Ok::<_, Error>(wrong)])).unwrap();
    let error = block_on(async { session.query("SELECT n FROM t").await?.collect().await }).unwrap_err();
    assert_eq!((error.kind(), error.detail()), (ErrorKind::DataFormat, Some("column \"n\" is Int32, the table has Int64")));
}

#[test]
fn functions_can_be_registered_while_jobs_run() {
    let session = session_of(vec![("s", Arc::new(StringArray::from(vec![Some("banana"), None])))]);
    assert_eq!(text(&session, "SELECT COUNT(*) FROM t"), [["2"]], "the cluster runs");
    let count = |(text, wanted): (&str, &str)| text.matches(wanted).count() as i64;
    session.register_function(ScalarFn::rows::<(&str, &str), i64>("count_char", count)).unwrap();
    assert_eq!(text(&session, "SELECT COUNT_CHAR(s, 'a'), count_char('abc', 'b') FROM t"), [["3", "1"], ["<NULL>", "1"]]);
    let taken = session.register_function(ScalarFn::rows::<(i32,), i32>("upper", |(n,)| n)).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::DuplicateObject);
    let listed = text(&session, "SHOW USER FUNCTIONS");
    assert_eq!(listed, [["count_char"]]);
}

/// Nexmark's query 14, whose function the benchmark brings along.
#[test]
fn a_function_of_the_program_counts_the_same_in_any_number_of_subtasks() {
    let rows_of = |parallelism: u32, function: &str| {
        let session = Session::new();
        let count = |(text, letter): (&str, &str)| text.matches(letter).count() as i64;
        session.register_function(ScalarFn::rows::<(&str, &str), i64>("count_char", count)).unwrap();
        let script = format!(
            "SET 'parallelism.default' = '{parallelism}';
             CREATE TABLE bid (
                auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING
             ) WITH (
                'connector' = 'nexmark', 'event.type' = 'bid', 'events.num' = '20000', 'first-event.rate' = '200',
                'base-time' = '2024-01-15 23:59:20'
             )"
        );
        block_on(session.execute(&script)).unwrap();
        let query = include_str!("../../../benches/nexmark/q14.sql").trim().trim_end_matches(';');
        let mut rows = text(&session, &query.replace("count_char(extra, 'c')", function));
        rows.sort_unstable();
        rows
    };
    let expected = rows_of(1, "CAST(CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS BIGINT)");
    assert!(expected.len() > 1_000, "{}", expected.len());
    for parallelism in [1, 2, 4] {
        assert!(rows_of(parallelism, "count_char(extra, 'c')") == expected, "parallelism {parallelism}");
    }
}

#[test]
fn a_function_over_arrays_gives_any_arrow_form_of_its_type() {
    let session = session_of(vec![("n", Arc::new(Int32Array::from(vec![1, 2])))]);
    let ordinal = ScalarFn::new("ordinal", [DataType::nullable(TypeKind::BigInt)], DataType::string(), |args, _| {
        let ordinals = args[0].as_primitive::<Int64Type>().iter().map(|n| n.map(|n| format!("{n}.")));
        Ok(Arc::new(ordinals.collect::<StringArray>()) as ArrayRef)
    });
    session.register_function(ordinal).unwrap();
    assert_eq!(
        text(&session, "SELECT ordinal(n), ordinal(7), ordinal(NULL) FROM t"),
        [["1.", "7.", "<NULL>"], ["2.", "7.", "<NULL>"]]
    );
    let error = block_on(session.query("SELECT ordinal('x') FROM t")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch);
}

#[test]
fn functions_that_fail_or_panic_fail_their_query_alone() {
    let session = session_of(vec![("n", Arc::new(Int64Array::from(vec![1])))]);
    session.register_function(ScalarFn::rows::<(i64,), std::result::Result<i64, String>>("fails", |_| Err("no".into()))).unwrap();
    session.register_function(ScalarFn::rows::<(i64,), i64>("panics", |_| panic!("oh"))).unwrap();
    for (sql, message) in
        [("SELECT fails(n) FROM t", "function fails failed: no"), ("SELECT panics(n) FROM t", "function panics panicked: oh")]
    {
        let error = block_on(async { session.query(sql).await?.collect().await }).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let constant = block_on(async { session.query("SELECT panics(CAST(1 AS BIGINT))").await?.collect().await }).unwrap_err();
    assert_eq!(constant.to_string(), "function panics panicked: oh");
    assert_eq!(text(&session, "SELECT n FROM t"), [["1"]]);
}

#[test]
fn results_carry_their_row_kinds() {
    let session = session_of(vec![("n", Arc::new(Int64Array::from(vec![1, 2])))]);
    let kinds: Vec<RowKind> = block_on(async {
        let rows = session.query("SELECT COUNT(*) FROM t").await.unwrap();
        rows.map(|batch| batch.unwrap().kinds).collect::<Vec<_>>().await.concat()
    });
    assert_eq!(kinds.first(), Some(&RowKind::Insert));
}

#[test]
fn inserts_are_jobs_that_can_be_awaited_and_cancelled_at_any_time() {
    let session = session_of(vec![("n", Arc::new(Int64Array::from(vec![1, 2])))]);
    block_on(session.execute("CREATE TABLE copy (n BIGINT) WITH ('connector' = 'memory')")).unwrap();
    let Outcome::Job(job) = block_on(session.execute("INSERT INTO copy SELECT n FROM t")).unwrap().outcome else {
        panic!("an INSERT is a job")
    };
    assert!(job.bounded);
    let metrics = block_on(job.wait()).unwrap();
    assert_eq!(metrics.vertices.len(), 1);
    block_on(job.cancel()).expect("it has ended: nothing to cancel");
    assert_eq!(text(&session, "SELECT SUM(n) FROM copy"), [["3"]]);
    drop(session);
    block_on(job.cancel()).expect("it ended before its session");
}

#[test]
fn a_job_is_stopped_and_found_by_the_beginning_of_its_id() {
    let session = Session::new();
    let endless = "CREATE TABLE endless (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000');
                   CREATE TABLE copy (n BIGINT) WITH ('connector' = 'memory');";
    block_on(session.execute(endless)).unwrap();
    let start = || match block_on(session.execute("INSERT INTO copy SELECT n FROM endless")).unwrap().outcome {
        Outcome::Job(job) => job,
        other => panic!("an INSERT is a job: {other:?}"),
    };
    let job = start();
    block_on(session.execute(&format!("DESCRIBE JOB '{}'", &job.id.to_string()[..16]))).unwrap();
    while block_on(job.metrics()).unwrap().vertices.iter().all(|vertex| vertex.rows_in() == 0) {}
    let stopped = block_on(job.stop()).unwrap();
    assert_eq!(stopped.state.to_string(), "FINISHED");

    let other = start();
    let ambiguous = block_on(session.execute("STOP JOB ''")).unwrap_err();
    assert_eq!(ambiguous.kind(), ErrorKind::UndefinedObject);
    block_on(session.execute(&format!("STOP JOB '{}'", &other.id.to_string()[..16].to_uppercase()))).unwrap();
    assert_eq!(block_on(other.result()).unwrap().state.to_string(), "CANCELED");
}

#[test]
fn what_has_no_rows_is_not_run_as_a_query() {
    let session = Session::new();
    for sql in ["CREATE VIEW v AS SELECT 1 AS a", "SELECT 1; DROP FUNCTION f", "SET 'pipeline.name' = 'x'", ""] {
        let refused = block_on(session.query(sql)).unwrap_err();
        assert_eq!(refused.message(), "the statement has no rows", "{sql}");
    }
    assert_eq!(text(&session, "SHOW TABLES"), Vec::<Vec<String>>::new());
    assert_eq!(text(&session, "CREATE VIEW v AS SELECT 1 AS a; SELECT a FROM v"), [["1"]]);
}
