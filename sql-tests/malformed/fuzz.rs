//! Mutated input, in this process, from fixed seeds: whatever the text or the bytes, nothing panics, everything ends, and what is wrong is
//! never taken for a fault of the engine.

#![expect(clippy::disallowed_methods, reason = "it watches how long a case in this process takes, by the real clock")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use flott::client::{Outcome, Session};
use flott::error::{Error, ErrorKind};
use libtest_mimic::{Failed, Trial};

use crate::case::CaseFile;

/// A query is left after so long, and so many batches: mutated sources may have no end.
const QUERY_LIMIT: Duration = Duration::from_millis(500);
const BATCHES_MAX: usize = 20;
/// A case that takes longer hangs.
const CASE_LIMIT: Duration = Duration::from_secs(20);
/// How long each trial goes on: it is a matter of seconds, the inputs are always the same.
const CASES: usize = 1_500;

/// Panics of any thread since the start.
static PANICS: AtomicUsize = AtomicUsize::new(0);
/// Held during a case, so that a panic is laid to the right one.
static ONE_CASE: Mutex<()> = Mutex::new(());

/// The trials.
pub fn trials(files: &[CaseFile]) -> Vec<Trial> {
    let earlier = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        earlier(info);
    }));
    let scripts: Vec<String> =
        files.iter().flat_map(|file| &file.cases).filter_map(|case| Some(case.file("case.sql")?.to_string())).collect();
    let short: Vec<String> = scripts.into_iter().filter(|script| script.len() < 1_000).collect();
    let records = |name: &str| -> Vec<String> {
        files.iter().flat_map(|file| &file.cases).filter_map(|case| Some(case.file(name)?.to_string())).collect()
    };
    let (json, csv) = (records("data.json"), records("data.csv"));
    vec![
        Trial::test("fuzz: mutated SQL", move || mutated_sql(&short)),
        Trial::test("fuzz: functions of extreme arguments", extreme_arguments),
        Trial::test("fuzz: mutated JSON", move || mutated_records(&json, "json")),
        Trial::test("fuzz: mutated CSV", move || mutated_records(&csv, "csv")),
    ]
}

fn mutated_sql(scripts: &[String]) -> Result<(), Failed> {
    let mut rng = Rng::with_seed(1);
    let words: Vec<&str> = scripts.iter().flat_map(|script| pieces(script)).collect();
    let folder = tempfile::tempdir()?;
    for _ in 0..CASES {
        let script = &scripts[rng.usize(..scripts.len())];
        let mut parts: Vec<&str> = pieces(script).collect();
        for _ in 0..rng.usize(1..4) {
            mutate_pieces(&mut parts, &words, &mut rng);
        }
        let sql = parts.concat();
        guarded(&sql, || run_script(&sql, folder.path()))?;
    }
    Ok(())
}

/// Words, blanks and single characters: what a script is put together from.
fn pieces(script: &str) -> impl Iterator<Item = &str> {
    let mut rest = script;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let same = |c: char| (c.is_alphanumeric() || c == '_') && (first.is_alphanumeric() || first == '_');
        let end = rest.char_indices().skip(1).find(|(_, c)| !same(*c)).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

fn mutate_pieces<'a>(parts: &mut Vec<&'a str>, words: &[&'a str], rng: &mut Rng) {
    if parts.is_empty() {
        return;
    }
    let at = rng.usize(..parts.len());
    match rng.u8(..7) {
        0 => drop(parts.remove(at)),
        1 => parts.insert(at, parts[at]),
        2 => {
            let other = rng.usize(..parts.len());
            parts.swap(at, other);
        }
        3 => parts.truncate(at),
        4 => parts[at] = ["(", ")", "'", "`", "-", "9", "\0", "é", ";", ",", "*", "NULL", "/*"][rng.usize(..13)],
        5 => {
            let end = (at + rng.usize(1..8)).min(parts.len());
            let copied: Vec<&str> = parts[at..end].to_vec();
            parts.splice(at..at, copied);
        }
        _ => parts[at] = words[rng.usize(..words.len())],
    }
}

fn run_script(sql: &str, folder: &Path) -> Result<(), Error> {
    let session = Session::builder().base_dir(folder).worker_threads(2).build();
    runtime().block_on(async {
        for statement in session.parse(sql)? {
            let outcome = session.execute_statement(&statement).await?.outcome;
            rows_of(outcome).await?;
        }
        session.shutdown().await;
        Ok(())
    })
}

/// Reads the first rows of a result; says how many it read, if it came to the end.
async fn rows_of(outcome: Outcome) -> Result<Option<usize>, Error> {
    let mut rows = match outcome {
        Outcome::Rows(rows) => rows,
        Outcome::Job(job) => {
            let _ = tokio::time::timeout(QUERY_LIMIT, job.wait()).await;
            return Ok(None);
        }
        _ => return Ok(None),
    };
    let mut count = 0;
    for _ in 0..BATCHES_MAX {
        match tokio::time::timeout(QUERY_LIMIT, rows.next_batch()).await {
            Ok(Ok(Some(batch))) => count += batch.num_rows(),
            Ok(Ok(None)) => return Ok(Some(count)),
            Ok(Err(error)) => return Err(error),
            Err(_) => break,
        }
    }
    Ok(None)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
}

/// Runs a case: a panic of any thread, a fault of the engine or a long time fail the trial.
fn guarded(input: &str, case: impl FnOnce() -> Result<(), Error>) -> Result<(), Failed> {
    let _one = ONE_CASE.lock().unwrap_or_else(PoisonError::into_inner);
    let (start, panics) = (Instant::now(), PANICS.load(Ordering::SeqCst));
    let outcome = catch_unwind(AssertUnwindSafe(case));
    let problem = match outcome {
        _ if PANICS.load(Ordering::SeqCst) != panics => "something panicked".to_string(),
        _ if start.elapsed() > CASE_LIMIT => format!("it took {} s", start.elapsed().as_secs()),
        Ok(Err(error)) if error.kind() == ErrorKind::Internal => error.render(),
        _ => return Ok(()),
    };
    Err(format!("{problem}\nthe input was\n{input}").into())
}

/// Values at the ends of their types.
const EXTREMES: &[&str] = &[
    "NULL",
    "''",
    "'x'",
    "'(é'",
    "TRUE",
    "0",
    "1",
    "-1",
    "2147483647",
    "(-2147483647 - 1)",
    "9223372036854775807",
    "(-9223372036854775807 - 1)",
    "CAST(127 AS TINYINT)",
    "99999999999999999999999999999999999999",
    "0.00000000000000000000000000000000000001",
    "1e308",
    "CAST('NaN' AS DOUBLE)",
    "CAST('-Infinity' AS DOUBLE)",
    "DATE '9999-12-31'",
    "DATE '0001-01-01'",
    "TIME '23:59:59.999'",
    "TIMESTAMP '9999-12-31 23:59:59.999'",
    "TIMESTAMP '0001-01-01 00:00:00'",
    "TO_TIMESTAMP_LTZ(-62135596800000, 3)",
    "INTERVAL '99' YEAR",
    "INTERVAL '-99' DAY",
    "X'00ff'",
    "ARRAY[1, 2]",
    "MAP['a', 1]",
    "ROW(1, 'a')",
];

/// Every function with arguments at the ends of their types.
fn extreme_arguments() -> Result<(), Failed> {
    let mut rng = Rng::with_seed(2);
    let (session, runtime) = (Session::builder().worker_threads(2).build(), runtime());
    let names = runtime.block_on(function_names(&session)).map_err(|error| error.render())?;
    if names.len() < 100 {
        return Err(format!("there are only {} functions", names.len()).into());
    }
    let operators = ["+", "-", "*", "/", "%", "||", "=", "<", "LIKE", "SIMILAR TO"];
    for number in 0..names.len() * 24 {
        let name = &names[number % names.len()];
        let arguments: Vec<&str> = (0..number / names.len() % 4).map(|_| EXTREMES[rng.usize(..EXTREMES.len())]).collect();
        let sql = match rng.u8(..8) {
            0 => format!("SELECT {} {} {}", pick(&mut rng), operators[rng.usize(..operators.len())], pick(&mut rng)),
            1 => format!("SELECT CAST({} AS {})", pick(&mut rng), TYPES[rng.usize(..TYPES.len())]),
            _ => format!("SELECT {name}({})", arguments.join(", ")),
        };
        guarded(&sql, || {
            runtime.block_on(async {
                let outcome = session.execute(&sql).await?.outcome;
                rows_of(outcome).await.map(drop)
            })
        })?;
    }
    runtime.block_on(session.shutdown());
    Ok(())
}

fn pick(rng: &mut Rng) -> &'static str {
    EXTREMES[rng.usize(..EXTREMES.len())]
}

/// Types to cast to.
const TYPES: &[&str] = &[
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(38, 0)",
    "DECIMAL(1, 1)",
    "CHAR(1)",
    "VARCHAR(2)",
    "STRING",
    "BYTES",
    "DATE",
    "TIME",
    "TIMESTAMP(0)",
    "TIMESTAMP(9)",
    "TIMESTAMP_LTZ(3)",
    "ARRAY<INT>",
];

async fn function_names(session: &Session) -> Result<Vec<String>, Error> {
    let mut rows = session.query("SHOW FUNCTIONS").await?;
    let mut names = Vec::new();
    while let Some(batch) = rows.next_batch().await? {
        let column = arrow::util::display::ArrayFormatter::try_new(batch.columns()[0].as_ref(), &Default::default())?;
        names.extend((0..batch.num_rows()).map(|row| column.value(row).to_string()));
    }
    // What is written otherwise than as a call is called as an operator, or not at all.
    names.retain(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_'));
    Ok(names)
}

/// Mutated files, read with and without `ignore-parse-errors`. Without it, a file that is read has a row for each of its lines.
fn mutated_records(files: &[String], format: &str) -> Result<(), Failed> {
    let mut rng = Rng::with_seed(3);
    let folder = tempfile::tempdir()?;
    let session = Session::builder().base_dir(folder.path()).worker_threads(2).build();
    let runtime = runtime();
    let columns = [
        "a INT",
        "a STRING, b INT",
        "a DOUBLE, b STRING",
        "a TIMESTAMP(3), b DATE",
        "a DECIMAL(5, 2), b BOOLEAN",
        "a ARRAY<INT>",
        "a BYTES, b BIGINT",
        "a ROW<b INT, c STRING>, b TIME",
    ];
    let path = folder.path().join(format!("data.{format}"));
    for number in 0..CASES / 2 {
        let mut bytes = files[rng.usize(..files.len())].as_bytes().to_vec();
        for _ in 0..rng.usize(1..5) {
            mutate_bytes(&mut bytes, &mut rng);
        }
        std::fs::write(&path, &bytes)?;
        let ignore = number % 2 == 0;
        let columns = columns[rng.usize(..columns.len())];
        let sql = format!(
            "CREATE TEMPORARY TABLE t{number} ({columns}) WITH ('connector' = 'filesystem', 'path' = 'data.{format}', \
             'format' = '{format}', '{format}.ignore-parse-errors' = '{ignore}'); SELECT * FROM t{number}"
        );
        let input = format!("{sql}\n{}", bytes.escape_ascii());
        let mut read = None;
        guarded(&input, || {
            runtime.block_on(async {
                let outcome = session.execute(&sql).await?.outcome;
                let rows = rows_of(outcome).await;
                // An error is fine where errors are not to be passed over.
                read = if ignore { rows? } else { rows.ok().flatten() };
                Ok(())
            })
        })?;
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        let one_a_line = format == "json" && !bytes.contains(&b'[');
        if let Some(rows) = read.filter(|rows| one_a_line && !ignore && *rows != lines.clone().count()) {
            return Err(format!("{rows} rows of {} lines\nthe input was\n{input}", lines.count()).into());
        }
    }
    runtime.block_on(session.shutdown());
    Ok(())
}

fn mutate_bytes(bytes: &mut Vec<u8>, rng: &mut Rng) {
    if bytes.is_empty() {
        return bytes.push(rng.u8(..));
    }
    let at = rng.usize(..bytes.len());
    match rng.u8(..6) {
        0 => drop(bytes.remove(at)),
        1 => bytes.insert(at, rng.u8(..)),
        2 => bytes[at] = b"{}[],:\"\\\n\r\t 0-9.eEntf\0;"[rng.usize(..23)],
        3 => bytes.truncate(at),
        4 => bytes[at] ^= 1 << rng.u8(..8),
        _ => {
            let end = (at + rng.usize(1..20)).min(bytes.len());
            let copied = bytes[at..end].to_vec();
            bytes.splice(at..at, copied);
        }
    }
}
