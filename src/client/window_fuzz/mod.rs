//! Random windows over random rows that come out of order: what streams gives equals what the rows say when they are looked at again.
#![allow(clippy::disallowed_methods)] // a program may do what the engine may not

mod recomputation;
mod windows;

use std::fmt::Write;
use std::fs;

use fastrand::Rng;
use futures::executor::block_on;

use self::recomputation::{Delays, Recomputation, expected_rows, timestamp};
use self::windows::WindowSpec;
use crate::client::Session;
use crate::testing::seeds::for_each_seed;

/// Seeds of a usual run.
const SEEDS: u64 = 40;

/// A row of the table.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Event time, milliseconds since the epoch.
    time_ms: i64,
    key: Option<i64>,
    value: Option<i64>,
}

/// Rows whose time goes on, with jumps ahead and rows that are behind.
fn random_rows(random: &mut Rng) -> Vec<Row> {
    let mut now_ms = 1_000_000 + random.i64(0..1_000_000_000_000);
    let (step_ms, disorder_ms) = (random.i64(1..5_000), random.i64(1..40_000));
    let (keys, nulls) = (random.i64(1..6), random.u8(0..4));
    let maybe = |random: &mut Rng, value: i64| if random.u8(..10) < nulls { None } else { Some(value) };
    (0..random.usize(..250))
        .map(|_| {
            now_ms += random.i64(0..step_ms) + if random.u8(..40) == 0 { random.i64(0..120_000) } else { 0 };
            let behind_ms = if random.bool() { random.i64(0..disorder_ms) } else { 0 };
            let (key, value) = (random.i64(0..keys), random.i64(-20..20));
            Row { time_ms: now_ms - behind_ms, key: maybe(random, key), value: maybe(random, value) }
        })
        .collect()
}

/// The rows as a CSV file.
fn csv(rows: &[Row]) -> String {
    let number = |value: Option<i64>| value.map_or(String::new(), |value| value.to_string());
    rows.iter().fold(String::new(), |mut text, row| {
        writeln!(text, "{},{},{}", timestamp(row.time_ms), number(row.key), number(row.value)).unwrap();
        text
    })
}

/// Settings under which the same must come out.
fn random_settings(random: &mut Rng) -> Vec<(&'static str, String)> {
    let mut settings = vec![("parallelism.default", random.u8(1..5).to_string())];
    if random.bool() {
        settings.push(("execution.batch-rows", random.u8(1..20).to_string()));
    }
    if random.u8(..4) == 0 {
        settings.push(("pipeline.operator-chaining.enabled", "false".into()));
    }
    if random.u8(..4) == 0 {
        settings.push(("pipeline.max-parallelism", random.u8(4..9).to_string()));
    }
    settings
}

/// What the query gives, sorted. Readers that find no file do not count for event time, whenever they notice.
async fn answer(folder: &str, delay_ms: i64, settings: &[(&'static str, String)], query: &str) -> Vec<String> {
    let mut builder = Session::builder();
    for (key, value) in settings {
        builder = builder.set(key, value).unwrap();
    }
    let session = builder.build();
    let table = format!(
        "CREATE TABLE t (ts TIMESTAMP(3), k BIGINT, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '{}' SECOND(3)) \
         WITH ('connector' = 'filesystem', 'path' = '{folder}/rows.csv', 'format' = 'csv', 'csv.null-literal' = '')",
        seconds(delay_ms)
    );
    session.execute(&table).await.unwrap();
    let rows = session.query(query).await.unwrap_or_else(|error| panic!("{query}\n{error}"));
    let rows = rows.collect_text().await.unwrap_or_else(|error| panic!("{query}\n{error}"));
    let mut rows: Vec<String> = rows.iter().map(|row| row.join(",")).collect();
    rows.sort_unstable();
    session.shutdown().await;
    rows
}

/// Milliseconds as an interval literal's seconds.
fn seconds(ms: i64) -> String {
    format!("{}{}.{:03}", if ms < 0 { "-" } else { "" }, ms.abs() / 1000, ms.abs() % 1000)
}

/// How long windows are kept for late rows, and settings that say so, with firings before and after their end: what comes out in the
/// end is what comes out without them.
fn random_emission(random: &mut Rng) -> (i64, Vec<(&'static str, String)>) {
    let lateness_ms = if random.bool() { random.i64(1..60_000) } else { 0 };
    let delay = |random: &mut Rng| format!("{} ms", random.u8(0..20));
    let mut settings = vec![("table.exec.emit.allow-lateness", format!("{lateness_ms} ms"))];
    if lateness_ms > 0 {
        settings.push(("table.exec.emit.late-fire.enabled", "true".into()));
        settings.push(("table.exec.emit.late-fire.delay", delay(random)));
    }
    if random.bool() {
        settings.push(("table.exec.emit.early-fire.enabled", "true".into()));
        settings.push(("table.exec.emit.early-fire.delay", delay(random)));
    }
    (lateness_ms, settings)
}

fn fuzz(seed: u64) {
    let mut random = Rng::with_seed(seed);
    let (rows, window) = (random_rows(&mut random), WindowSpec::random(&mut random));
    let delay_ms = if random.u8(..4) == 0 { 0 } else { random.i64(0..20_000) };
    let what = match random.u8(..8) {
        0 => Recomputation::Rows,
        1 if !matches!(window, WindowSpec::Session { .. }) => Recomputation::Sets,
        2 => Recomputation::Cascade { size_ms: random.i64(1..60_000) },
        3 => Recomputation::Top { keyed: random.bool() },
        _ => Recomputation::Aggregates { keyed: random.u8(..4) > 0 },
    };
    let mut settings = random_settings(&mut random);
    let (mut lateness_ms, emission) = random_emission(&mut random);
    match what {
        Recomputation::Aggregates { .. } if random.u8(..3) == 0 => settings.extend(emission),
        _ => lateness_ms = 0,
    }
    let older = match what {
        Recomputation::Aggregates { keyed } if random.bool() => windows::group_window_query(&window, keyed),
        _ => None,
    };
    let query = older.unwrap_or_else(|| windows::query(&window, what));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rows.csv"), csv(&rows)).unwrap();
    let given = block_on(answer(folder.path().to_str().unwrap(), delay_ms, &settings, &query));
    let expected = expected_rows(&rows, Delays { watermark_ms: delay_ms, lateness_ms }, &window, what);
    if given != expected {
        let kept = folder.keep();
        let missing: Vec<_> = expected.iter().filter(|row| !given.contains(row)).take(5).collect();
        let surplus: Vec<_> = given.iter().filter(|row| !expected.contains(row)).take(5).collect();
        panic!(
            "seed {seed}: rows in {}, delay {delay_ms} ms, {settings:?}\n{query}\nmissing {missing:#?}\nsurplus {surplus:#?}",
            kept.display()
        );
    }
}

#[test]
fn streams_give_what_a_second_look_gives() {
    for_each_seed(SEEDS, fuzz);
}
