//! Sessions within a program, as far as they can only be seen from outside: their threads.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a program may do what the engine may not

use std::time::{Duration, Instant};

use flott::{Outcome, Session};

const ENDLESS: &str = "CREATE TABLE t (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')";

/// The threads of the engine in this process.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.map(|name| name.trim().to_string()).filter(|name| name.starts_with("flott-")).collect()
}

/// Threads end a moment after they have been told to.
fn assert_no_threads() {
    let until = Instant::now() + Duration::from_secs(5);
    while !threads().is_empty() {
        assert!(Instant::now() < until, "threads are left: {:?}", threads());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One test for all: the threads of one would be seen by another.
#[test]
fn dropping_a_session_stops_all_that_it_runs() {
    let session = Session::new();
    assert!(threads().is_empty(), "a session without jobs has no threads");

    // Within a runtime of one thread, with a query that is read and an INSERT that runs on.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let job = runtime.block_on(async {
        session.execute(ENDLESS).await.unwrap();
        session.execute("CREATE TABLE hole (n BIGINT) WITH ('connector' = 'blackhole')").await.unwrap();
        let insert = session.execute("INSERT INTO hole SELECT n FROM t").await.unwrap();
        let mut rows = session.query("SELECT n FROM t").await.unwrap();
        rows.next_batch().await.unwrap().unwrap();
        assert!(!threads().is_empty());
        drop(session);
        while let Ok(Some(_)) = rows.next_batch().await {}
        let Outcome::Job(job) = insert.outcome else { panic!("an INSERT is a job") };
        job
    });
    assert_no_threads();
    runtime.block_on(job.cancel()).expect("it ended with its session");

    // Within a runtime of several threads, dropped by a task.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let session = Session::new();
        session.execute(ENDLESS).await.unwrap();
        let clone = session.clone();
        tokio::spawn(async move { drop(clone.query("SELECT n FROM t").await.unwrap().next_batch().await) }).await.unwrap();
        drop(session);
    });
    assert_no_threads();
}
