//! A job that reads files and writes files is killed again and again, at moments that follow from a seed, and goes on from its last
//! checkpoint each time: in the end it has written what one wrote that was left alone, every row once.
//!
//! Three runs by default; `FLOTT_KILL_RUNS=30` makes thirty.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a test may do what the engine may not, and fail so

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fastrand::Rng;

const FILES: usize = 6;
const ROWS_OF_A_FILE: usize = 20_000;
const CUSTOMERS: usize = 50;
/// A process is left alone for this long at most before it is killed, milliseconds.
const LIFE_MS: u64 = 1_500;
/// A run that takes longer hangs.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// A window, a join and a Top-N over the same orders, in one job. Its last checkpoint is kept: it may be killed between its end and that of the
/// process.
const SCRIPT: &str = "
SET 'execution.checkpointing.interval' = '50 ms';
SET 'execution.checkpointing.dir' = 'checkpoints';
SET 'execution.checkpointing.externalized-checkpoint-retention' = 'RETAIN_ON_CANCELLATION';
SET 'parallelism.default' = '2';
CREATE TABLE orders (id INT, customer INT, price INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
  WITH ('connector' = 'filesystem', 'path' = 'orders', 'format' = 'csv');
CREATE TABLE customers (customer INT, name STRING) WITH ('connector' = 'filesystem', 'path' = 'customers.csv', 'format' = 'csv');
CREATE TABLE per_window (window_start TIMESTAMP(3), customer INT, n BIGINT, total INT)
  WITH ('connector' = 'filesystem', 'path' = 'per_window', 'format' = 'csv', 'sink.rolling-policy.file-size' = '64 kb');
CREATE TABLE named (id INT, name STRING, price INT) WITH ('connector' = 'filesystem', 'path' = 'named', 'format' = 'csv');
CREATE TABLE top (customer INT, id INT, price INT, rn BIGINT)
  WITH ('connector' = 'filesystem', 'path' = 'top', 'format' = 'debezium-json');
EXECUTE STATEMENT SET BEGIN
INSERT INTO per_window SELECT window_start, customer, COUNT(*), SUM(price)
  FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, customer;
INSERT INTO named SELECT o.id, c.name, o.price FROM orders AS o JOIN customers AS c ON o.customer = c.customer;
INSERT INTO top SELECT customer, id, price, rn FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY price DESC, id) AS rn FROM orders) WHERE rn <= 3;
END;
";

/// A folder with the script and its input.
fn prepare(folder: &Path) {
    let mut random = Rng::with_seed(42);
    std::fs::create_dir(folder.join("orders")).unwrap();
    for file in 0..FILES {
        let mut text = String::new();
        for row in 0..ROWS_OF_A_FILE {
            let id = row * FILES + file;
            // Nearly in order: no row is late.
            let ms = id * 50 + random.usize(0..4_000);
            let (minute, second) = (ms / 60_000, ms % 60_000);
            let (hour, minute) = (minute / 60, minute % 60);
            let (customer, price) = (random.usize(0..CUSTOMERS), random.usize(1..10_000));
            let time = format!("{hour:02}:{minute:02}:{:02}.{:03}", second / 1_000, second % 1_000);
            writeln!(text, "{id},{customer},{price},2024-01-01 {time}").unwrap();
        }
        let path = folder.join(format!("orders/{file}.csv"));
        if file % 2 == 0 {
            std::fs::write(path, text).unwrap();
        } else {
            let file = std::fs::File::create(path.with_extension("csv.gz")).unwrap();
            let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap();
        }
    }
    let customers: String = (0..CUSTOMERS).map(|customer| format!("{customer},name {customer}\n")).collect();
    std::fs::write(folder.join("customers.csv"), customers).unwrap();
    std::fs::write(folder.join("job.sql"), SCRIPT).unwrap();
}

/// Whether a checkpoint is complete: without one, the job begins anew.
fn has_checkpoint(folder: &Path) -> bool {
    let below =
        |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    below(folder).iter().flat_map(|job| below(job)).any(|checkpoint| checkpoint.join("_metadata").exists())
}

fn start(folder: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flott"));
    command.arg("run").arg(folder.join("job.sql"));
    if has_checkpoint(&folder.join("checkpoints")) {
        command.arg("--restore").arg(folder.join("checkpoints"));
    } else {
        clear(folder); // nobody knows the hidden files of a job without a checkpoint
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the process has ended by itself; whether it has, in so many milliseconds.
fn ends_within(child: &mut Child, ms: u64) -> bool {
    let until = Instant::now() + Duration::from_millis(ms);
    loop {
        match child.try_wait().unwrap() {
            Some(status) => {
                let mut complaint = String::new();
                std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut complaint).unwrap();
                assert!(status.success(), "{status}: {complaint}");
                return true;
            }
            None if Instant::now() >= until => return false,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// What is visible in the folder of a table, line by line.
fn lines(folder: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let hidden = path.file_name().unwrap().to_string_lossy().starts_with('.');
        assert!(!hidden, "{} is left behind", path.display());
        lines.extend(std::fs::read_to_string(path).unwrap().lines().map(String::from));
    }
    lines.sort_unstable();
    lines
}

/// The rows that changes amount to, whatever their order.
fn fold(changes: Vec<String>) -> Vec<String> {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for change in changes {
        let change: serde_json::Value = serde_json::from_str(&change).unwrap();
        for (image, sign) in [("before", -1), ("after", 1)] {
            if !change[image].is_null() {
                *counts.entry(change[image].to_string()).or_default() += sign;
            }
        }
    }
    assert!(counts.values().all(|count| (0..=1).contains(count)), "a change is there twice, or is missing");
    counts.into_iter().filter(|(_, count)| *count > 0).map(|(row, _)| row).collect()
}

/// What the job has written.
fn written(folder: &Path) -> [Vec<String>; 3] {
    [lines(&folder.join("per_window")), lines(&folder.join("named")), fold(lines(&folder.join("top")))]
}

/// Removes what a job has written that had no checkpoint yet: nothing of it is visible.
fn clear(folder: &Path) {
    for table in ["per_window", "named", "top"] {
        let entries = std::fs::read_dir(folder.join(table)).into_iter().flatten().map(|entry| entry.unwrap().file_name());
        let visible: Vec<_> = entries.filter(|name| !name.to_string_lossy().starts_with('.')).collect();
        assert!(visible.is_empty(), "visible without a checkpoint: {visible:?}");
        let _ = std::fs::remove_dir_all(folder.join(table)); // it may not have been begun
    }
}

#[test]
fn a_job_that_is_killed_writes_every_row_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    prepare(folder);
    let begun = Instant::now();
    assert!(ends_within(&mut start(folder), RUN_LIMIT.as_millis() as u64), "it hangs");
    let expected = written(folder);
    let life_ms = (begun.elapsed().as_millis() as u64).min(LIFE_MS);
    assert_eq!(expected[1].len(), FILES * ROWS_OF_A_FILE, "each order has a customer");
    assert_eq!(expected[2].len(), 3 * CUSTOMERS);
    let runs = std::env::var("FLOTT_KILL_RUNS").ok().map_or(3, |runs| runs.parse().unwrap());
    let mut killed = 0;
    for seed in 0..runs {
        for table in ["per_window", "named", "top", "checkpoints"] {
            std::fs::remove_dir_all(folder.join(table)).unwrap();
        }
        let mut random = Rng::with_seed(seed);
        let (begun, mut lives) = (Instant::now(), 0);
        loop {
            let mut child = start(folder);
            lives += 1;
            // Every life but the first ones is long enough to get somewhere.
            let life_ms = random.u64(0..life_ms) + 100 * lives;
            if ends_within(&mut child, life_ms) {
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            killed += 1;
            assert!(begun.elapsed() < RUN_LIMIT, "seed {seed}: it does not come to its end, after {lives} lives");
        }
        for (table, (found, expected)) in written(folder).iter().zip(&expected).enumerate() {
            let differs = found.iter().zip(expected).find(|(found, expected)| found != expected);
            let counts = (found.len(), expected.len());
            assert!(
                found == expected,
                "seed {seed}, {lives} lives, table {table}: {counts:?} rows, first difference {differs:?}"
            );
        }
    }
    assert!(killed > 0, "no process lived to be killed");
}
