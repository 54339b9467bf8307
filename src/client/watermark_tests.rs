//! What a session tells of event time: who holds it back, who waits for whom, and why nothing comes. On a virtual clock.

use std::sync::Arc;

use futures::executor::block_on;

use super::silence::{Situation, reasons};
use super::{JobHandle, Outcome, Session, WatermarkReport};
use crate::clock::VirtualClock;

fn session() -> (Session, Arc<VirtualClock>) {
    let clock = VirtualClock::new(1_704_067_200_000); // 2024-01-01
    (Session::builder().virtual_clock(Arc::clone(&clock)).build(), clock)
}

fn job(session: &Session, sql: &str) -> JobHandle {
    match block_on(session.execute(sql)).unwrap().outcome {
        Outcome::Job(job) => job,
        _ => panic!("INSERT is a job"),
    }
}

/// Runs INSERTs into memory tables and waits until those that follow them have seen their rows.
fn insert(session: &Session, sql: &str) {
    block_on(job(session, sql).wait()).unwrap();
    block_on(session.flush()).unwrap();
}

/// The report, once it is as it should be: tasks take their time.
fn until(job: &JobHandle, holds: impl Fn(&WatermarkReport) -> bool) -> WatermarkReport {
    for _ in 0..100_000 {
        let report = block_on(job.watermarks()).unwrap();
        if holds(&report) {
            return report;
        }
        std::thread::yield_now();
    }
    panic!("it did not come to that: {:#?}", block_on(job.watermarks()).unwrap());
}

fn splits(report: &WatermarkReport) -> Vec<String> {
    let time = |ms: Option<i64>| ms.map_or("none".to_string(), |ms| format!("{} s", (ms - 1_704_067_200_000) / 1_000));
    let text = |line: &super::WatermarkLine| {
        let back = if line.holds_back { ", holds back" } else { "" };
        format!("{}: {} {}, {} rows{back}", line.operator, time(line.watermark_ms), line.state.unwrap_or_default(), line.rows)
    };
    report.lines.iter().filter(|line| line.split.is_some()).map(text).collect()
}

const TABLES: &str = "
    CREATE TABLE a (v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'memory', 'memory.mode' = 'changelog' @);
    CREATE TABLE b (v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'memory', 'memory.mode' = 'changelog' @);
    CREATE TABLE sums (window_start TIMESTAMP(3), total INT) WITH ('connector' = 'memory');
    CREATE VIEW ab AS SELECT * FROM a UNION ALL SELECT * FROM b;
    INSERT INTO sums SELECT window_start, SUM(v) FROM TUMBLE(TABLE ab, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
        GROUP BY window_start, window_end";

#[test]
fn explain_watermark_names_who_holds_event_time_back() {
    let (session, clock) = session();
    let windows = job(&session, &TABLES.replace('@', ", 'scan.watermark.idle-timeout' = '10 s'"));
    let report = until(&windows, |report| splits(report).len() == 2);
    assert_eq!(report.reasons, ["no row has come yet from a, b"]);
    insert(&session, "INSERT INTO a VALUES (1, TIMESTAMP '2024-01-01 00:00:30'), (1, TIMESTAMP '2024-01-01 00:02:00')");
    let report = until(&windows, |report| splits(report).iter().any(|split| split.contains("2 rows")));
    assert_eq!(splits(&report), ["Source: a[1]: 120 s ACTIVE, 2 rows", "Source: b[2]: none ACTIVE, 0 rows, holds back"]);
    assert_eq!(report.reasons, ["there is no watermark yet: split 0 of b has given no row"]);
    insert(&session, "INSERT INTO b VALUES (1, TIMESTAMP '2024-01-01 00:00:10')");
    let report = until(&windows, |report| splits(report)[1].contains("1 rows"));
    let held = "event time is held at 2024-01-01 00:00:10.000 by split 0 of b, whose last row came 0 ms ago; what waits for a later \
                time comes when its watermark has passed that";
    assert_eq!(report.reasons, [held]);
    // Both fall idle; then b is back.
    clock.advance_to(1_704_067_200_000 + 10_000);
    let report = until(&windows, |report| splits(report).iter().all(|split| split.contains("IDLE")));
    assert_eq!(report.reasons, ["all splits are idle: event time stands still until rows come"]);
    insert(&session, "INSERT INTO b VALUES (1, TIMESTAMP '2024-01-01 00:00:20')");
    let report = until(&windows, |report| splits(report)[1].contains("2 rows"));
    assert_eq!(splits(&report)[1], "Source: b[2]: 20 s ACTIVE, 2 rows, holds back");
    let window = report.lines.iter().find(|line| line.operator.starts_with("WindowAggregate")).unwrap();
    assert_eq!(window.late_rows, 1, "the last row of b came after a had been let past it");
    assert!(report.reasons[0].starts_with("1 of 4 row(s) that came to WindowAggregate"), "{:?}", report.reasons);
    let rows = block_on(session.query(&format!("EXPLAIN WATERMARK '{}'", windows.id))).unwrap();
    let names: Vec<String> = rows.schema().fields.iter().map(|field| field.name.clone()).collect();
    assert_eq!(names, ["operator", "split", "watermark", "state", "rows", "last row", "late rows", "holds back"]);
    let text = block_on(rows.collect_text()).unwrap();
    assert_eq!(text[3], ["Source: b[2]", "split 0", "2024-01-01 00:00:20.000", "ACTIVE", "2", "0 ms ago", "0", "TRUE"]);
    assert_eq!(block_on(session.explain_watermark("cafe")).unwrap_err().message(), "job 'cafe' not found");
}

#[test]
fn sources_of_one_group_wait_for_the_slowest() {
    let (session, clock) = session();
    let options = ", 'scan.watermark.alignment.group' = 'g', 'scan.watermark.alignment.max-drift' = '10 s'";
    let windows = job(&session, &TABLES.replace('@', options));
    let write = |table: &str, second: u32| {
        let sql = format!("INSERT INTO {table} VALUES (1, TIMESTAMP '2024-01-01 00:00:00' + INTERVAL '{second}' SECOND)");
        block_on(job(&session, &sql).wait()).unwrap();
    };
    // What is ahead does not reach the readers: a flush would wait for it, so none is sent.
    [1, 30, 60].into_iter().for_each(|second| write("a", second));
    write("b", 5);
    let at = |ticks: i64, holds: &dyn Fn(&str, &str) -> bool| {
        clock.advance_to(1_704_067_200_000 + ticks * 1_000);
        until(&windows, |report| matches!(&splits(report)[..], [a, b] if holds(a, b)));
    };
    at(0, &|a, b| a.contains("1 s PAUSED, 1 rows") && b.contains("5 s PAUSED, 1 rows"));
    // They compare once a second, one after the other: the second one knows of both. b has come to 5 s, so a may go on to 30 s.
    at(1, &|a, b| a.contains("2 rows") || b.contains("ACTIVE"));
    at(2, &|a, b| a.contains("30 s PAUSED, 2 rows") && b.contains("5 s ACTIVE, 1 rows"));
    at(3, &|a, b| a.contains("30 s PAUSED, 2 rows") && b.contains("5 s ACTIVE, 1 rows"));
    write("b", 25);
    at(4, &|_, b| b.contains("25 s ACTIVE, 2 rows"));
    at(5, &|a, b| a.contains("60 s PAUSED, 3 rows") && b.contains("25 s ACTIVE, 2 rows"));
}

#[test]
fn an_empty_result_is_explained() {
    let (session, _) = session();
    let source =
        "CREATE TABLE t (v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts + INTERVAL '1' HOUR) WITH ('connector' = 'memory');
        CREATE TABLE out (v BIGINT) WITH ('connector' = 'memory')";
    block_on(session.execute(source)).unwrap();
    let why = |filter: &str, having: &str| {
        let sql = format!(
            "INSERT INTO out SELECT SUM(v) FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE) {filter}
             GROUP BY window_start, window_end {having}"
        );
        let metrics = block_on(job(&session, &sql).wait()).unwrap();
        reasons(&metrics, Situation::Empty).join("; ")
    };
    assert_eq!(why("", ""), "no row was read: t gave none");
    let rows = "INSERT INTO t VALUES (1, TIMESTAMP '2024-01-01 01:00:00'), (2, TIMESTAMP '2024-01-01 00:30:00')";
    block_on(job(&session, rows).wait()).unwrap();
    let filtered = why("WHERE v > 5", "");
    assert!(filtered.starts_with("2 row(s) were read, and none of them came to WindowAggregate"), "{filtered}");
    let having = why("", "HAVING SUM(v) > 5");
    assert!(having.starts_with("1 row(s) came out of WindowAggregate") && having.ends_with("left none of them"), "{having}");
    let late = why("WHERE v = 2", "");
    assert!(late.contains("were late, the latest by 1 h 29 min"), "{late}");
}
