//! Whether a query costs as much per event after 50 million of them as after one, and how many bytes a key takes.
//!
//! ```text
//! cargo bench --bench growth -- [--events 1_000_000,10_000_000] [--runs N] [QUERY…]
//! ```
//!
//! Generated rows: a number that counts up, 1,000 keys, a millisecond of event time each. The line of `none` is what they cost to be made.
mod measure;

use std::fs;
use std::path::{Path, PathBuf};

use measure::{Fallible, best_of, print, runs_script};

/// Events of the runs that are compared.
const EVENTS: [u64; 3] = [1_000_000, 10_000_000, 50_000_000];

/// What is asked of the rows: name, query.
const QUERIES: [(&str, &str); 8] = [
    ("none", "SELECT k, v, v AS w FROM t"),
    (
        "tumble",
        "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY k, window_start, window_end",
    ),
    (
        "hop",
        "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND)
         GROUP BY k, window_start, window_end",
    ),
    (
        "cumulate",
        "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND)
         GROUP BY k, window_start, window_end",
    ),
    (
        "session",
        "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '0.900' SECOND(3))
         GROUP BY k, window_start, window_end",
    ),
    ("group", "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY k"),
    (
        "over",
        "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) AS s FROM t",
    ),
    ("top_n", "SELECT k, v, r FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS r FROM t) WHERE r <= 3"),
];

/// Queries that keep something for each key, over rows that each have one of their own.
const KEYED: [(&str, &str); 2] = [
    (
        "tumble",
        "SELECT v, COUNT(*) AS n, SUM(k) AS s FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' DAY) GROUP BY v, window_start, window_end",
    ),
    ("group", "SELECT v, COUNT(*) AS n, SUM(k) AS s FROM t GROUP BY v"),
];

struct Arguments {
    events: Vec<u64>,
    runs: usize,
    queries: Vec<String>,
}

fn main() -> Fallible<()> {
    if runs_script(|_| Ok(()))? {
        return Ok(());
    }
    let arguments = Arguments::parse()?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/growth-bench");
    fs::create_dir_all(&folder)?;
    print("query        events    CPU ns per event   wall s   peak MB\n")?;
    let asked = |name: &str| arguments.queries.is_empty() || arguments.queries.iter().any(|query| query == name);
    for (name, query) in QUERIES.into_iter().filter(|(name, _)| asked(name)) {
        for events in &arguments.events {
            let usage = best_of(arguments.runs, &script(&folder, name, query, *events)?, 1)?;
            let nanoseconds = usage.cpu.as_nanos() as f64 / *events as f64;
            print(&format!(
                "{name:<9} {events:>9} {nanoseconds:>19.0} {:>8.2} {:>9.0}\n",
                usage.wall.as_secs_f64(),
                usage.memory as f64 / 1e6
            ))?;
        }
    }
    print("\nquery     bytes of memory a BIGINT key, COUNT(*) and SUM\n")?;
    for (name, query) in KEYED.into_iter().filter(|(name, _)| asked(name)) {
        let memory = |keys| Ok(best_of(arguments.runs, &script(&folder, name, query, keys)?, 1)?.memory as f64);
        let (some, more): (Fallible<f64>, Fallible<f64>) = (memory(1_000_000), memory(2_000_000));
        print(&format!("{name:<9} {:>9.0}\n", (more? - some?) / 1e6))?;
    }
    Ok(())
}

impl Arguments {
    fn parse() -> Fallible<Self> {
        let mut parsed = Arguments { events: EVENTS.to_vec(), runs: 2, queries: Vec::new() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--events" => {
                    parsed.events =
                        value()?.split(',').map(|events| events.replace('_', "").parse()).collect::<Result<_, _>>()?;
                }
                "--runs" => parsed.runs = value()?.parse::<usize>()?.max(1),
                query if QUERIES.iter().any(|(name, _)| *name == query) => parsed.queries.push(argument),
                other => return Err(format!("no query and no option: {other}").into()),
            }
        }
        Ok(parsed)
    }
}

/// A file with the query over so many generated rows, into a sink that reads every value and keeps none.
fn script(folder: &Path, name: &str, query: &str, events: u64) -> Fallible<PathBuf> {
    let path = folder.join(format!("{name}.sql"));
    let statements = format!(
        "CREATE TABLE t (v BIGINT, k AS v % 1000, ts AS CAST(TO_TIMESTAMP_LTZ(v, 3) AS TIMESTAMP(3)), WATERMARK FOR ts AS ts) WITH (
           'connector' = 'datagen', 'rows-per-second' = '1000000000', 'number-of-rows' = '{events}',
           'fields.v.kind' = 'sequence', 'fields.v.start' = '1', 'fields.v.end' = '{events}'
         );
         CREATE TABLE results WITH ('connector' = 'blackhole') AS {query};"
    );
    fs::write(&path, statements)?;
    Ok(path)
}
