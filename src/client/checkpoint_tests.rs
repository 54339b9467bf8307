//! Whole jobs that fail, stop and start again: the same answer as if nothing had happened.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use super::{JobHandle, ScalarFn, Session};
use crate::clock::{Clock, SystemClock};
use crate::cluster::JobMetrics;

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
    let mut builder = Session::builder().base_dir(folder).set("execution.batch-rows", "200").unwrap();
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
