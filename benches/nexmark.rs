//! Nexmark: wall time, CPU time and memory of each query of `benches/nexmark/`, beside what Apache Flink needs for it.
//!
//! `cargo bench --bench nexmark -- [--events N] [--parallelism P] [--runs R] [query …]` prints a table. Each run is a process of its
//! own, so that CPU time and memory are those of the query, start and planning included; of several runs the one with the least CPU
//! time counts. Persons, auctions and bids are generated once into `target/nexmark-bench/`. Flink's figures were measured on 2,000,000
//! events, the default; they are left out for other numbers of events. A query that fails is said so, and the others still run.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time and waits for a process")]

mod measure;

use std::fs;
use std::path::{Path, PathBuf};

use flott::ScalarFn;
use measure::{Fallible, Usage, best_of, print, run, runs_script};

/// Events in all: of 50 one is a person, 3 are auctions, 46 are bids.
const EVENTS: u64 = 2_000_000;
/// Runs of a query; the best one counts.
const RUNS: usize = 3;
/// Part files of each table: what two readers can share.
const PARTS: usize = 2;
/// All queries.
const QUERIES: [&str; 26] = [
    "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10", "q11", "q12", "q14", "q15", "q16", "q17", "q18", "q19",
    "q20", "q21", "q22", "q23", "w1", "w2", "w3",
];
/// The tables: type of event, name of the placeholder in `tables.sql`, columns.
const TABLES: [(&str, &str, &str); 3] = [
    (
        "person",
        "${PERSONS}",
        "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, `dateTime` TIMESTAMP(3),
         extra STRING",
    ),
    (
        "auction",
        "${AUCTIONS}",
        "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, `dateTime` TIMESTAMP(3),
         expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING",
    ),
    (
        "bid",
        "${BIDS}",
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING",
    ),
];
/// Flink's figures.
const FLINK: &str = include_str!("results/flink-2.3.0.tsv");

struct Arguments {
    events: u64,
    parallelism: u32,
    runs: usize,
    queries: Vec<String>,
}

fn main() -> Fallible<()> {
    // Query 14 asks for it.
    let count_char = ScalarFn::rows::<(&str, &str), i64>("count_char", |(text, letter)| text.matches(letter).count() as i64);
    if runs_script(|session| session.register_function(count_char))? {
        return Ok(());
    }
    let arguments = Arguments::parse()?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("target/nexmark-bench");
    let tables = tables(root, &folder, arguments.events)?;
    print("query   wall s    CPU s   events per CPU second   peak MB   Flink CPU s   ratio   Flink peak MB   ratio\n")?;
    let mut failed = Vec::new();
    for query in &arguments.queries {
        let path = folder.join(format!("{query}.sql"));
        fs::write(&path, script(root, query, &tables)?)?;
        match best_of(arguments.runs, &path, arguments.parallelism) {
            Ok(best) => print(&line(query, &arguments, best))?,
            Err(error) => {
                print(&format!("{query:<5} {error}\n"))?;
                failed.push(query.as_str());
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

impl Arguments {
    fn parse() -> Fallible<Self> {
        let mut parsed = Arguments { events: EVENTS, parallelism: 1, runs: RUNS, queries: Vec::new() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--events" => parsed.events = value()?.replace('_', "").parse()?,
                "--parallelism" => parsed.parallelism = value()?.parse()?,
                "--runs" => parsed.runs = value()?.parse::<usize>()?.max(1),
                query if QUERIES.contains(&query) => parsed.queries.push(argument),
                other => return Err(format!("no query and no option: {other}").into()),
            }
        }
        if parsed.queries.is_empty() {
            parsed.queries = QUERIES.map(String::from).to_vec();
        }
        Ok(parsed)
    }
}

/// The statements that define the tables, over files of so many events.
fn tables(root: &Path, folder: &Path, events: u64) -> Fallible<String> {
    let mut statements = fs::read_to_string(root.join("benches/nexmark/tables.sql"))?;
    for (event, placeholder, columns) in TABLES {
        statements = statements.replace(placeholder, &generate(folder, event, columns, events)?.to_string_lossy());
    }
    Ok(statements)
}

/// The folder of the files of one type of event, generated when it is not there yet.
fn generate(folder: &Path, event: &str, columns: &str, events: u64) -> Fallible<PathBuf> {
    let rows = folder.join(format!("{event}s-{events}"));
    if rows.exists() {
        return Ok(rows);
    }
    let unfinished = folder.join("unfinished");
    let _ = fs::remove_dir_all(&unfinished); // mostly there is none
    fs::create_dir_all(&unfinished)?;
    let script = format!(
        "CREATE TABLE events ({columns}) WITH (
          'connector' = 'nexmark', 'event.type' = '{event}', 'events.num' = '{events}', 'first-event.rate' = '10000',
          'base-time' = '2024-01-15 12:00:00'
        );
        CREATE TABLE written WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'json') AS SELECT * FROM events;\n",
        unfinished.display()
    );
    let path = folder.join("generate.sql");
    fs::write(&path, script)?;
    run(&path, PARTS as u32)?;
    fs::rename(&unfinished, &rows)?;
    Ok(rows)
}

/// The query with its tables, into a sink that reads every value and keeps none.
fn script(root: &Path, query: &str, tables: &str) -> Fallible<String> {
    let query = fs::read_to_string(root.join(format!("benches/nexmark/{query}.sql")))?;
    Ok(format!("{tables}\nCREATE TABLE results WITH ('connector' = 'blackhole') AS\n{query}"))
}

fn line(query: &str, arguments: &Arguments, usage: Usage) -> String {
    let (wall, cpu) = (usage.wall.as_secs_f64(), usage.cpu.as_secs_f64());
    let megabytes = usage.memory as f64 / 1e6;
    let mut line =
        format!("{query:<5} {wall:>8.2} {cpu:>8.2} {:>23.0} {megabytes:>9.0}", arguments.events as f64 / cpu.max(0.01));
    if let Some((flink_cpu, flink_megabytes)) = flink(query, arguments) {
        let (faster, smaller) = (flink_cpu / cpu.max(0.01), flink_megabytes / megabytes.max(1.0));
        line.push_str(&format!(" {flink_cpu:>13.2} {faster:>7.1} {flink_megabytes:>15.0} {smaller:>7.1}"));
    }
    line.push('\n');
    line
}

/// CPU seconds and peak megabytes of Flink for the query; of its run with one subtask where no other was measured.
fn flink(query: &str, arguments: &Arguments) -> Option<(f64, f64)> {
    if arguments.events != EVENTS {
        return None;
    }
    let rows = FLINK.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect::<Vec<_>>());
    let rows: Vec<Vec<&str>> = rows.filter(|row| row.len() == 4 && row[0] == query).collect();
    let of = |parallelism: &str| rows.iter().find(|row| row[1] == parallelism);
    let row = of(&arguments.parallelism.to_string()).or_else(|| of("1"))?;
    Some((row[2].parse().ok()?, row[3].parse().ok()?))
}
