//! Whole jobs that fail, stop and start again: the same answer as if nothing had happened.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use expect_test::expect;

use super::{JobHandle, Outcome, ScalarFn, Session};
use crate::clock::{Clock, SystemClock};
use crate::cluster::JobMetrics;
use crate::error::Error;

/// Rows of the input.
const ROWS: u64 = 12_000;

/// A function `slowly(x)` that gives x after a while, and fails when it is told to.
#[derive(Clone, Default)]
struct Slowly {
    calls: Arc<AtomicU64>,
    fails: Arc<AtomicBool>,
    is_fast: Arc<AtomicBool>,
}

impl Slowly {
    fn function(&self) -> ScalarFn {
        let (this, clock) = (self.clone(), SystemClock::new());
        ScalarFn::rows::<(i64,), Result<i64, String>>("slowly", move |(value,)| {
            this.calls.fetch_add(1, SeqCst);
            let since = clock.monotonic_nanos();
            while !this.is_fast.load(SeqCst) && clock.monotonic_nanos() < since + 100_000 {
                std::hint::spin_loop();
            }
            if this.fails.swap(false, SeqCst) { Err("as it was told to".to_string()) } else { Ok(value) }
        })
    }
}

fn input(folder: &Path) {
    let line = |row: u64| {
        let time = 1_700_000_000_000 + row as i64 * 10 - (row % 7) as i64 * 30;
        let time = chrono::DateTime::from_timestamp_millis(time).unwrap().format("%Y-%m-%d %H:%M:%S%.3f");
        format!("{{\"k\":{},\"v\":{row},\"ts\":\"{time}\"}}\n", row * 7919 % 31)
    };
    for part in 0..3 {
        let rows = (0..ROWS).filter(|row| row % 3 == part).map(line).collect::<String>();
        std::fs::write(folder.join(format!("part-{part}.json")), rows).unwrap();
    }
}

async fn session(folder: &Path, settings: &[(&str, &str)], slowly: &Slowly) -> Session {
    let mut builder = Session::builder().base_dir(folder).set("execution.batch-rows", "20").unwrap();
    for (key, value) in settings {
        builder = builder.set(key, value).unwrap();
    }
    let session = builder.build();
    session.register_function(slowly.function()).unwrap();
    let table = "CREATE TABLE t (k BIGINT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
                 WITH ('connector' = 'filesystem', 'path' = '.', 'format' = 'json', 'source.path.regex-pattern' = '.*part-[0-9].json')";
    session.execute(table).await.unwrap();
    session
}

const QUERY: &str = "SELECT k, window_start, COUNT(*), SUM(slowly(v)), MAX(v)
    FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECONDS)) GROUP BY k, window_start, window_end";

fn sorted(mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    rows.sort();
    rows
}

async fn undisturbed(folder: &Path) -> Vec<Vec<String>> {
    let slowly = Slowly::default();
    slowly.is_fast.store(true, SeqCst);
    let session = session(folder, &[], &slowly).await;
    let rows = session.query(QUERY).await.unwrap().collect_text().await.unwrap();
    session.shutdown().await;
    sorted(rows)
}

#[tokio::test]
async fn a_job_that_fails_goes_on_from_its_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    let expected = undisturbed(folder.path()).await;
    assert!(expected.len() > 300);
    for parallelism in ["1", "3"] {
        let slowly = Slowly::default();
        let settings = [
            ("execution.checkpointing.interval", "20 ms"),
            ("restart-strategy.exponential-delay.initial-backoff", "1 ms"),
            ("parallelism.default", parallelism),
        ];
        let session = session(folder.path(), &settings, &slowly).await;
        let rows = session.query(QUERY).await.unwrap();
        let job = rows.job().unwrap().clone();
        let disturb = async {
            for failures in 1..=2 {
                until(&job, |metrics| metrics.checkpoints.completed >= failures).await;
                slowly.fails.store(true, SeqCst);
                until(&job, |metrics| metrics.restarts as u64 >= failures).await;
            }
            slowly.is_fast.store(true, SeqCst);
        };
        let (rows, ()) = futures::join!(rows.collect_text(), disturb);
        assert_eq!(sorted(rows.unwrap()), expected, "parallelism {parallelism}");
        let metrics = job.wait().await.unwrap();
        assert_eq!(metrics.restarts, 2);
        assert!(metrics.last_failure.unwrap().contains("as it was told to"));
        session.shutdown().await;
    }
}

/// Waits until the job is so far.
async fn until(job: &JobHandle, is_so_far: impl Fn(&JobMetrics) -> bool) {
    while !is_so_far(&job.metrics().await.unwrap()) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Stops the query once so many rows went through it: its rows, and the savepoint.
async fn stop(session: &Session, slowly: &Slowly, rows: u64, drain: bool) -> (Vec<Vec<String>>, String) {
    let stream = session.query(QUERY).await.unwrap();
    let job = stream.job().unwrap().clone();
    let stop = async {
        while slowly.calls.load(SeqCst) < rows {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        job.stop_with_savepoint(drain).await
    };
    let (rows, savepoint) = futures::join!(stream.collect_text(), stop);
    (rows.unwrap(), savepoint.unwrap())
}

#[tokio::test]
async fn a_stopped_query_goes_on_at_another_parallelism() {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    let expected = undisturbed(folder.path()).await;
    let (mut rows, mut restore) = (Vec::new(), String::new());
    for (stop_at, parallelism) in [(1_000, "1"), (1_500, "3"), (1_000, "2")] {
        let slowly = Slowly::default();
        let settings = [
            ("execution.checkpointing.savepoint-dir", "savepoints"),
            ("parallelism.default", parallelism),
            ("execution.state-recovery.path", restore.as_str()),
        ];
        let session = session(folder.path(), &settings, &slowly).await;
        let (more, savepoint) = stop(&session, &slowly, stop_at, false).await;
        assert!(slowly.calls.load(SeqCst) < ROWS, "it did not begin anew");
        rows.extend(more);
        restore = savepoint;
        session.shutdown().await;
    }
    let slowly = Slowly::default();
    slowly.is_fast.store(true, SeqCst);
    let session = session(folder.path(), &[("execution.state-recovery.path", restore.as_str())], &slowly).await;
    rows.extend(session.query(QUERY).await.unwrap().collect_text().await.unwrap());
    assert_eq!(sorted(rows), expected);
    session.shutdown().await;
}

#[tokio::test]
async fn a_drained_query_says_all_that_it_knows() {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    let slowly = Slowly::default();
    let settings = [("execution.checkpointing.savepoint-dir", "savepoints")];
    let session = session(folder.path(), &settings, &slowly).await;
    let (rows, _) = stop(&session, &slowly, 1_000, true).await;
    let counted: u64 = rows.iter().map(|row| row[2].parse::<u64>().unwrap()).sum();
    assert_eq!(counted, slowly.calls.load(SeqCst), "every row that was read stands in a window that came out");
    session.shutdown().await;
}

#[tokio::test]
async fn what_does_not_fit_a_savepoint_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    let slowly = Slowly::default();
    let first = session(folder.path(), &[("execution.checkpointing.savepoint-dir", "savepoints")], &slowly).await;
    let (_, savepoint) = stop(&first, &slowly, 1_000, false).await;
    first.shutdown().await;
    slowly.is_fast.store(true, SeqCst);
    let run = async |settings: &[(&str, &str)], query: &str| {
        let mut all = vec![("execution.state-recovery.path", savepoint.as_str())];
        all.extend(settings);
        let session = session(folder.path(), &all, &slowly).await;
        let result = session.query(query).await.unwrap().collect_text().await;
        session.shutdown().await;
        result
    };
    let text = |result: Result<Vec<Vec<String>>, Error>| {
        let error = result.unwrap_err();
        format!("{} / {}", error.message(), error.detail().unwrap_or_default()).replace(&savepoint, "SAVEPOINT")
    };
    let other = "SELECT k, COUNT(*) FROM t GROUP BY k";
    expect![["the job cannot start from 'SAVEPOINT' / operator \"Source: t[1]\" has no state in it"]]
        .assert_eq(&text(run(&[], other).await));
    let rows = run(&[("execution.state-recovery.ignore-unclaimed-state", "true")], other).await.unwrap();
    assert!(!rows.is_empty(), "new operators start empty, sources go on");
    expect![["the job cannot start from 'SAVEPOINT' / operator \"Source: t[1]\" had 128 key groups, now it has 64"]]
        .assert_eq(&text(run(&[("pipeline.max-parallelism", "64")], QUERY).await));

    let metadata = Path::new(&savepoint).join("_metadata");
    let manifest = std::fs::read(&metadata).unwrap();
    std::fs::write(&metadata, &manifest[..manifest.len() - 1]).unwrap();
    let torn = text(run(&[], QUERY).await);
    assert!(torn.starts_with("'SAVEPOINT/_metadata' is no manifest of a checkpoint / it has "), "{torn}");
    std::fs::remove_file(&metadata).unwrap();
    let missing = text(run(&[], QUERY).await);
    assert!(missing.starts_with("there is no complete checkpoint in 'SAVEPOINT'"), "{missing}");

    // What the checkpoint itself lacks no restart brings back.
    std::fs::write(&metadata, &manifest).unwrap();
    let restarting =
        [("execution.checkpointing.interval", "1 h"), ("restart-strategy.exponential-delay.initial-backoff", "1 ms")];
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 3] = [
        ("is corrupted", |file| {
            let mut bytes = std::fs::read(file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(file, bytes).unwrap();
        }),
        ("is damaged / it ends after 7 bytes, and was longer", |file| {
            std::fs::OpenOptions::new().write(true).open(file).unwrap().set_len(7).unwrap();
        }),
        ("is gone", |file| std::fs::remove_file(file).unwrap()),
    ];
    for (complaint, damage) in damages {
        let files = std::fs::read_dir(&savepoint).unwrap().map(|file| file.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|extension| extension == "arrow")).for_each(|file| damage(&file));
        let refused = text(run(&restarting, QUERY).await);
        assert!(refused.contains(&format!(".arrow' {complaint}")), "{refused}");
    }
}

#[tokio::test]
async fn a_directory_that_cannot_hold_checkpoints_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    std::fs::write(folder.path().join("file"), "").unwrap();
    for directory in ["file", "file/below", "/proc/checkpoints"] {
        let settings = [("execution.checkpointing.interval", "1 h"), ("execution.checkpointing.dir", directory)];
        let session = session(folder.path(), &settings, &Slowly::default()).await;
        let error = session.query("SELECT k FROM t").await.unwrap().collect_text().await.unwrap_err();
        assert!(error.message().starts_with("cannot use checkpoint directory '"), "{}", error.render());
        session.shutdown().await;
    }
    let settings = [("execution.checkpointing.interval", "1 h"), ("execution.checkpointing.dir", "new/below")];
    let session = session(folder.path(), &settings, &Slowly::default()).await;
    session.query("SELECT k FROM t").await.unwrap().collect_text().await.unwrap();
    session.shutdown().await;
    let below =
        |path: &Path| std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let left: Vec<_> =
        below(&folder.path().join("new/below")).iter().flat_map(|job| below(job)).filter(|path| path.is_file()).collect();
    assert!(left.is_empty(), "{left:?} is left of the trial");
}

#[tokio::test]
async fn a_job_that_had_finished_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    let slowly = Slowly::default();
    let insert =
        "CREATE TABLE IF NOT EXISTS s (k BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = 'out', 'format' = 'json');
                  INSERT INTO s SELECT k, slowly(v) FROM t";
    let lines = || {
        let files = std::fs::read_dir(folder.path().join("out")).unwrap().map(|file| file.unwrap().path());
        let files = files.filter(|file| file.is_file() && !file.file_name().unwrap().to_string_lossy().starts_with(['.', '_']));
        files.map(|file| std::fs::read_to_string(file).unwrap().lines().count() as u64).sum::<u64>()
    };
    slowly.is_fast.store(true, SeqCst);
    for (parallelism, restore) in [("1", ""), ("2", "checkpoints"), ("1", "checkpoints")] {
        let settings = [
            ("execution.checkpointing.interval", "1 h"),
            ("execution.checkpointing.dir", "checkpoints"),
            ("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION"),
            ("execution.state-recovery.path", restore),
            ("parallelism.default", parallelism),
        ];
        let session = session(folder.path(), &settings, &slowly).await;
        let Outcome::Job(job) = session.execute(insert).await.unwrap().outcome else { panic!("an INSERT is a job") };
        let result = job.result().await.unwrap();
        assert!(result.error.is_none(), "{:?}", result.error);
        assert!(result.checkpoint.is_some_and(|directory| Path::new(&directory).join("_metadata").exists()));
        assert_eq!((lines(), slowly.calls.load(SeqCst)), (ROWS, ROWS), "nothing is read or written again");
        session.shutdown().await;
    }
}

#[tokio::test]
async fn a_cancelled_job_goes_on_from_the_checkpoint_that_it_left() {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    let expected = undisturbed(folder.path()).await;
    let slowly = Slowly::default();
    let settings = [
        ("execution.checkpointing.interval", "20 ms"),
        ("execution.checkpointing.dir", "checkpoints"),
        ("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION"),
        ("execution.checkpointing.num-retained", "2"),
    ];
    let first = session(folder.path(), &settings, &slowly).await;
    let mut stream = first.query(QUERY).await.unwrap();
    let job = stream.job().unwrap().clone();
    until(&job, |metrics| metrics.checkpoints.completed >= 3).await;
    job.cancel().await.unwrap();
    let checkpoint = job.result().await.unwrap().checkpoint.unwrap();
    let mut rows = Vec::new();
    while let Ok(Some(more)) = stream.next_text().await {
        rows.extend(more);
    }
    first.shutdown().await;
    let of_job = Path::new(&checkpoint).parent().unwrap();
    let kept = std::fs::read_dir(of_job).unwrap().filter(|entry| entry.as_ref().unwrap().path().join("_metadata").exists());
    assert_eq!(kept.count(), 2);
    slowly.is_fast.store(true, SeqCst);
    let second = session(folder.path(), &[("execution.state-recovery.path", "checkpoints")], &slowly).await;
    rows.extend(second.query(QUERY).await.unwrap().collect_text().await.unwrap());
    assert_eq!(sorted(rows), expected, "what was shown before is what the checkpoint has");
    second.shutdown().await;
}

#[tokio::test]
async fn a_job_that_goes_on_supersedes_the_checkpoints_of_its_earlier_lives() {
    let folder = tempfile::tempdir().unwrap();
    input(folder.path());
    let slowly = Slowly::default();
    // Two earlier lives of the query, as if they had been killed, and another job.
    let kept = |name: &str, query: &str| {
        let (folder, slowly, name, query) = (folder.path().to_path_buf(), slowly.clone(), name.to_string(), query.to_string());
        async move {
            let settings = [
                ("execution.checkpointing.interval", "5 ms"),
                ("execution.checkpointing.dir", "checkpoints"),
                ("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION"),
                ("pipeline.name", name.as_str()),
            ];
            let session = session(&folder, &settings, &slowly).await;
            let stream = session.query(&query).await.unwrap();
            let job = stream.job().unwrap().clone();
            until(&job, |metrics| metrics.checkpoints.completed >= 1).await;
            job.cancel().await.unwrap();
            job.result().await.unwrap();
            session.shutdown().await;
        }
    };
    kept("query", QUERY).await;
    kept("query", QUERY).await;
    kept("other", "SELECT slowly(v) FROM t").await;
    let jobs = || {
        let jobs = std::fs::read_dir(folder.path().join("checkpoints")).unwrap().map(|entry| entry.unwrap().path());
        let is_complete = |checkpoint: std::io::Result<std::fs::DirEntry>| checkpoint.unwrap().path().join("_metadata").exists();
        jobs.filter(|job| std::fs::read_dir(job).is_ok_and(|mut below| below.any(is_complete))).count()
    };
    assert_eq!(jobs(), 3);
    let settings = |interval: &'static str| {
        [
            ("execution.checkpointing.interval", interval),
            ("execution.checkpointing.dir", "checkpoints"),
            ("execution.state-recovery.path", "checkpoints"),
            ("pipeline.name", "query"),
        ]
    };
    for (interval, left) in [("1 h", 3), ("5 ms", 1)] {
        let session = session(folder.path(), &settings(interval), &slowly).await;
        let stream = session.query(QUERY).await.unwrap();
        let job = stream.job().unwrap().clone();
        if left == 1 {
            until(&job, |metrics| metrics.checkpoints.completed >= 1).await;
        } else {
            until(&job, |metrics| metrics.vertices.iter().any(|vertex| vertex.rows_out() > 0)).await;
        }
        job.cancel().await.unwrap();
        job.result().await.unwrap();
        session.shutdown().await;
        assert_eq!(jobs(), left, "a checkpoint every {interval}");
    }
}
