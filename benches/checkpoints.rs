//! What a checkpoint costs where much state is kept: CPU time and bytes written for each.
//!
//! ```text
//! cargo bench --bench checkpoints -- [--keys 1_000_000,5_000_000] [--interval MS] [--runs N] [CASE…]
//! ```
//!
//! Each case runs with and without checkpoints; the difference is divided by how many there were.
mod measure;

use std::fs;
use std::path::{Path, PathBuf};

use measure::{Fallible, Usage, best_of, print, runs_script};

/// Keys of the state.
const KEYS: [u64; 2] = [1_000_000, 5_000_000];
/// Rows for each key.
const ROWS_PER_KEY: u64 = 10;
/// How often a checkpoint is taken, in milliseconds.
const INTERVAL_MS: u64 = 1_000;

/// What keeps state: name, the key of row `v` of so many keys, query.
const CASES: [(&str, &str, &str); 4] = [
    // All groups change between two checkpoints.
    ("groups", "MOD(v * 7919, ${KEYS})", "SELECT k, COUNT(*) AS n, SUM(v) AS s, MAX(v) AS m FROM t GROUP BY k"),
    // Those that are old rest.
    ("aging", "v / 10", "SELECT k, COUNT(*) AS n, SUM(v) AS s, MAX(v) AS m FROM t GROUP BY k"),
    (
        "texts",
        "CONCAT('a key of some length ', CAST(MOD(v * 7919, ${KEYS}) AS STRING))",
        "SELECT k, COUNT(*) AS n FROM t GROUP BY k",
    ),
    ("rows", "v / 10", "SELECT a.k, b.v FROM t AS a JOIN t AS b ON a.v = b.v"),
];

struct Arguments {
    keys: Vec<u64>,
    interval_ms: u64,
    runs: usize,
    cases: Vec<String>,
}

fn main() -> Fallible<()> {
    if runs_script(|_| Ok(()))? {
        return Ok(());
    }
    let arguments = Arguments::parse()?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/checkpoint-bench");
    fs::create_dir_all(&folder)?;
    print("case       keys   CPU s   wall s   with checkpoints: CPU s   wall s   how many   CPU ms each   MB each\n")?;
    for (name, key, query) in CASES {
        if !arguments.cases.is_empty() && !arguments.cases.iter().any(|case| case == name) {
            continue;
        }
        for keys in &arguments.keys {
            let of = |interval| run(&folder, key, query, *keys, interval, arguments.runs);
            let (plain, _) = of(None)?;
            let (with, count) = of(Some(arguments.interval_ms))?;
            let each = |all: f64| all / count.max(1) as f64;
            print(&format!(
                "{name:<7} {keys:>7} {:>7.2} {:>8.2} {:>24.2} {:>8.2} {count:>10} {:>13.0} {:>9.1}\n",
                plain.cpu.as_secs_f64(),
                plain.wall.as_secs_f64(),
                with.cpu.as_secs_f64(),
                with.wall.as_secs_f64(),
                each((with.cpu.as_secs_f64() - plain.cpu.as_secs_f64()) * 1e3),
                each(with.written as f64 / 1e6),
            ))?;
        }
    }
    Ok(())
}

/// What a case needs, and how many checkpoints it took.
fn run(folder: &Path, key: &str, query: &str, keys: u64, interval_ms: Option<u64>, runs: usize) -> Fallible<(Usage, u64)> {
    let checkpoints = folder.join("checkpoints");
    let _ = fs::remove_dir_all(&checkpoints); // there may be none
    let path = folder.join("case.sql");
    fs::write(&path, script(key, query, keys, interval_ms.map(|interval| (interval, checkpoints.as_path()))))?;
    let usage = best_of(runs, &path, 1)?;
    Ok((usage, number_of_last(&checkpoints) / runs as u64))
}

fn script(key: &str, query: &str, keys: u64, checkpoints: Option<(u64, &Path)>) -> String {
    let settings = checkpoints.map_or_else(String::new, |(interval_ms, directory)| {
        format!(
            "SET 'execution.checkpointing.interval' = '{interval_ms} ms';
             SET 'execution.checkpointing.dir' = '{}';
             SET 'execution.checkpointing.externalized-checkpoint-retention' = 'RETAIN_ON_CANCELLATION';\n",
            directory.display()
        )
    });
    let rows = keys * ROWS_PER_KEY;
    let key = key.replace("${KEYS}", &keys.to_string());
    format!(
        "{settings}CREATE TABLE t (v BIGINT, k AS {key}) WITH (
           'connector' = 'datagen', 'rows-per-second' = '1000000000', 'number-of-rows' = '{rows}',
           'fields.v.kind' = 'sequence', 'fields.v.start' = '1', 'fields.v.end' = '{rows}'
         );
         CREATE TABLE results WITH ('connector' = 'blackhole') AS {query};"
    )
}

/// The numbers of the last checkpoints of all jobs below a directory, together.
fn number_of_last(directory: &Path) -> u64 {
    let names = |path: &PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix("chk-")?.parse::<u64>().ok();
    let last = |job: &PathBuf| names(job).iter().filter_map(number).max().unwrap_or(0);
    names(&directory.to_path_buf()).iter().map(last).sum()
}

impl Arguments {
    fn parse() -> Fallible<Self> {
        let mut parsed = Arguments { keys: KEYS.to_vec(), interval_ms: INTERVAL_MS, runs: 1, cases: Vec::new() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--keys" => {
                    parsed.keys = value()?.split(',').map(|keys| keys.replace('_', "").parse()).collect::<Result<_, _>>()?;
                }
                "--interval" => parsed.interval_ms = value()?.parse()?,
                "--runs" => parsed.runs = value()?.parse::<usize>()?.max(1),
                case if CASES.iter().any(|(name, ..)| *name == case) => parsed.cases.push(argument),
                other => return Err(format!("no case and no option: {other}").into()),
            }
        }
        Ok(parsed)
    }
}
