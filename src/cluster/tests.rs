//! MiniClusters that run tiny jobs to all their ends.

mod fixture;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fixture::{Job, SOON, SPLIT_ROWS, World, values};
use futures::executor::block_on;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};

use super::*;
use crate::clock::{Clock, Executor, SystemClock, TokioExecutor, VirtualClock};
use crate::error::ErrorKind;
use crate::rpc::RpcService;
use crate::runtime::FlushId;
use crate::runtime::channel::ShuffleEnvironment;
use crate::runtime::state::MemoryManager;
use crate::stream_graph::Partitioner;
use crate::types::ResultId;

fn bounded(splits: &str, parallelism: u32) -> Job {
    Job::source(parallelism, &[("splits", splits)])
}

fn hash() -> Partitioner {
    Partitioner::Hash { keys: vec![0] }
}

#[test]
fn a_job_runs_to_its_end() {
    let world = World::new();
    let (outcome, rows) = block_on(world.run(bounded("3", 1).then("Calc", Partitioner::Forward, 1)));
    assert_eq!(outcome.state, JobState::Finished, "{:?}", outcome.error);
    assert_eq!(rows, (0..3 * SPLIT_ROWS).collect::<Vec<_>>());
    let [source] = outcome.metrics.vertices.as_slice() else { panic!("one chain: {:?}", outcome.metrics) };
    assert_eq!(source.name, "[vertex-0]Source: t -> Calc -> Collect");
}

#[test]
fn rows_are_spread_over_four_subtasks_and_none_is_lost() {
    let world = World::new();
    for options in [&[("splits", "8")][..], &[("splits", "8"), ("all-at-start", "true")]] {
        let job = Job::source(4, options).then("Calc", hash(), 4).then("More", Partitioner::Rescale, 2);
        let (outcome, rows) = block_on(world.run(job));
        assert_eq!(outcome.state, JobState::Finished, "{:?}", outcome.error);
        assert_eq!(rows, (0..8 * SPLIT_ROWS).collect::<Vec<_>>());
        let parallelism: Vec<u32> = outcome.metrics.vertices.iter().map(|vertex| vertex.parallelism).collect();
        assert_eq!(parallelism, [4, 4, 2, 1]);
        assert!(outcome.metrics.vertices[1..].iter().all(|vertex| vertex.total.rows_in == 8 * SPLIT_ROWS as u64));
    }
}

#[test]
fn a_failing_operator_fails_its_job_with_the_cause() {
    let world = World::new();
    let (outcome, _) = block_on(world.run(bounded("8", 2).then("by zero", hash(), 4).then("Calc", hash(), 4)));
    assert_eq!(outcome.state, JobState::Failed);
    let error = outcome.error.unwrap();
    assert_eq!((error.kind(), error.operator()), (ErrorKind::DivisionByZero, Some("by zero")));
}

#[test]
fn a_panicking_operator_fails_its_job_and_no_other() {
    let world = World::new();
    let (endless, mut rows) = block_on(world.submit(Job::source(1, &[("endless", "true")])));
    let (outcome, _) = block_on(world.run(bounded("1", 1).then("panics", hash(), 1)));
    assert_eq!(outcome.state, JobState::Failed);
    let error = outcome.error.unwrap();
    assert_eq!((error.kind(), error.detail()), (ErrorKind::Internal, Some("index out of bounds")));
    assert_eq!(values(&block_on(rows.next()).unwrap().unwrap()).len() as i64, SPLIT_ROWS);
    let info = block_on(world.dispatcher.ask(RequestJobInfo { job: endless }, Some(SOON))).unwrap();
    assert_eq!(info.state, JobState::Running);
}

#[test]
fn an_operator_that_cannot_be_built_fails_the_job() {
    let world = World::new();
    let (outcome, _) = block_on(world.run(bounded("1", 2).then("too big", hash(), 2)));
    assert_eq!((outcome.state, outcome.error.unwrap().kind()), (JobState::Failed, ErrorKind::OutOfMemory));
}

#[test]
fn a_source_that_cannot_be_opened_fails_the_job_before_it_runs() {
    let world = World::new();
    let (outcome, _) = block_on(world.run(Job::source(1, &[("missing", "true")])));
    let error = outcome.error.unwrap();
    assert_eq!((outcome.state, error.kind(), error.operator()), (JobState::Failed, ErrorKind::FileNotFound, Some("Source: t")));
}

#[test]
fn more_parallelism_than_slots_is_refused() {
    let world = World::new();
    let (outcome, _) = block_on(world.run(bounded("1", 17)));
    let error = outcome.error.unwrap();
    assert_eq!(error.to_string(), "the job needs 17 slots, the cluster has 16");
}

#[test]
fn a_job_that_waits_is_cancelled_at_once() {
    let world = World::new();
    // A source whose splits never come; and one that is held back since nobody reads the result.
    let waiting = Job::source(2, &[("discovers", "true")]).then("Calc", hash(), 2);
    let held_back = Job::source(2, &[("endless", "true")]).then("Calc", hash(), 2);
    for job in [waiting, held_back] {
        let (job, _rows) = block_on(world.submit(job));
        while block_on(world.dispatcher.ask(RequestJobInfo { job }, None)).unwrap().state != JobState::Running {}
        let clock = crate::clock::SystemClock::new();
        block_on(world.dispatcher.ask(CancelJob { job }, Some(SOON))).unwrap();
        assert_eq!(block_on(world.outcome(job)).state, JobState::Canceled);
        assert!(Duration::from_nanos(clock.monotonic_nanos()) < Duration::from_secs(2), "cancelling takes milliseconds");
        let again = block_on(world.dispatcher.ask(CancelJob { job }, Some(SOON))).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::NotRunning);
    }
}

#[test]
fn a_job_that_is_stopped_finishes_what_it_read() {
    let world = World::new();
    let (job, mut rows) = block_on(world.submit(Job::source(1, &[("endless", "true")]).then("Calc", hash(), 2)));
    block_on(rows.next()).unwrap().unwrap();
    block_on(world.dispatcher.ask(StopJob { job }, Some(SOON))).unwrap();
    while block_on(rows.next()).is_some() {}
    assert_eq!(block_on(world.outcome(job)).state, JobState::Finished);
}

#[test]
fn a_job_ends_whenever_it_is_stopped_or_cancelled() {
    let world = World::new();
    for round in 0..40 {
        let (job, rows) = block_on(world.submit(Job::source(2, &[("endless", "true")]).then("Calc", hash(), 2)));
        (0..round * 20).for_each(|_| std::hint::spin_loop());
        if round % 2 == 0 {
            world.dispatcher.tell(StopJob { job });
            // Nobody reads the rows: what was read can only be processed to the end once they are.
            drop(rows);
        } else {
            world.dispatcher.tell(CancelJob { job });
        }
        let state = block_on(world.outcome(job)).state;
        assert!(state == JobState::Canceled || (round % 2 == 0 && state == JobState::Finished), "{state}");
    }
}

#[test]
fn splits_that_are_found_later_reach_their_readers() {
    for options in
        [&[("splits", "1"), ("discovers", "true")][..], &[("splits", "1"), ("discovers", "true"), ("all-at-start", "1")]]
    {
        let clock = VirtualClock::new(0);
        let world = World::with_clock(clock.clone());
        let (job, mut rows) = block_on(world.submit(Job::source(1, options)));
        let first = values(&block_on(rows.next()).unwrap().unwrap());
        let mut missing: BTreeSet<i64> = (first.len() as i64..3 * SPLIT_ROWS).collect();
        // Only now that the job runs: while it is deployed, calls would time out by a clock that races ahead.
        while !missing.is_empty() {
            match rows.next().now_or_never() {
                Some(batch) => {
                    let found = values(&batch.unwrap().unwrap());
                    missing.retain(|value| !found.contains(value));
                }
                None => clock.advance_to(clock.now_ms() + 100),
            }
        }
        block_on(world.dispatcher.ask(CancelJob { job }, Some(SOON))).unwrap();
        assert_eq!(block_on(world.outcome(job)).state, JobState::Canceled);
    }
}

#[test]
fn jobs_are_listed_in_the_order_of_submission_with_their_states() {
    let world = World::new();
    let (first, _) = block_on(world.run(bounded("1", 1)));
    assert_eq!(first.state, JobState::Finished);
    let (endless, _rows) = block_on(world.submit(Job::source(1, &[("endless", "true")])));
    let jobs = block_on(world.dispatcher.ask(ListJobs, Some(SOON))).unwrap();
    assert_eq!(jobs.len(), 2);
    assert_eq!((jobs[0].state, jobs[0].name.as_str()), (JobState::Finished, "test"));
    assert!(jobs[0].end_ms >= Some(jobs[0].start_ms));
    assert_eq!((jobs[1].id, jobs[1].end_ms), (endless, None));
    let unknown = block_on(world.dispatcher.ask(CancelJob { job: crate::types::JobId(7) }, Some(SOON))).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::UndefinedObject);
}

#[test]
fn shutting_down_cancels_what_runs() {
    let world = World::new();
    let (job, _rows) = block_on(world.submit(Job::source(2, &[("endless", "true")]).then("Calc", hash(), 2)));
    let outcome = world.dispatcher.ask(AwaitResult { job }, None);
    let dispatcher = world.dispatcher.clone();
    block_on(world.cluster.shutdown());
    assert_eq!(block_on(outcome).unwrap().state, JobState::Canceled);
    assert_eq!(block_on(dispatcher.ask(ListJobs, None)).unwrap_err().kind(), ErrorKind::NotRunning);
}

#[tokio::test]
async fn it_runs_within_a_tokio_program() {
    let world = World::new();
    let (outcome, rows) = world.run(bounded("2", 2).then("Calc", hash(), 2)).await;
    assert_eq!((outcome.state, rows.len() as i64), (JobState::Finished, 2 * SPLIT_ROWS));
    drop(world);
}

#[test]
fn a_hundred_jobs_in_a_row_leave_no_threads() {
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, |tasks| tasks.count());
    let before = threads();
    for _ in 0..100 {
        let world = World::new();
        let (outcome, rows) = block_on(world.run(bounded("2", 2).then("Calc", hash(), 2)));
        assert_eq!((outcome.state, rows.len() as i64), (JobState::Finished, 2 * SPLIT_ROWS));
    }
    // Other tests of this process have threads of their own; a hundred clusters would have hundreds.
    assert!(threads() < before + 60, "{before} threads before, {} after", threads());
}

#[test]
fn a_flush_is_awaited_until_it_has_passed_all_sinks() {
    let world = World::new();
    let source = Job::source(1, &[("splits", "1"), ("discovers", "true"), ("flush", "5")]);
    let (job, _rows) = block_on(world.submit(source.then("Calc", hash(), 2)));
    block_on(world.dispatcher.ask(AwaitFlush { job, flush: FlushId(5) }, Some(SOON))).unwrap();
    let later = world.dispatcher.ask(AwaitFlush { job, flush: FlushId(6) }, None);
    block_on(world.dispatcher.ask(CancelJob { job }, Some(SOON))).unwrap();
    // Nothing of a job that has ended becomes visible any more.
    block_on(later).unwrap();
}

#[test]
fn metrics_are_seen_while_the_job_runs() {
    let world = World::new();
    let (job, mut rows) = block_on(world.submit(Job::source(2, &[("endless", "true")]).then("Calc", hash(), 2)));
    for _ in 0..100 {
        block_on(rows.next()).unwrap().unwrap();
    }
    let metrics = block_on(world.dispatcher.ask(RequestMetrics { job }, Some(SOON))).unwrap();
    assert_eq!(metrics.vertices.len(), 3);
    assert!(metrics.vertices[1].total.rows_in > 0);
}

#[test]
fn a_broken_job_graph_fails_that_job_alone() {
    let world = World::new();
    let mut graph = bounded("1", 2).then("Calc", hash(), 2).collect(crate::types::ResultId(0));
    graph.vertices[0].results.clear();
    let job = block_on(world.dispatcher.ask(SubmitJob { graph }, Some(SOON))).unwrap();
    let outcome = block_on(world.outcome(job));
    assert_eq!((outcome.state, outcome.error.unwrap().kind()), (JobState::Failed, ErrorKind::Internal));
    let (outcome, _) = block_on(world.run(bounded("1", 16)));
    assert_eq!(outcome.state, JobState::Finished, "the slots are free again");
}

#[test]
fn jobs_wait_for_slots_in_turn() {
    let world = World::new();
    let (first, _rows) = block_on(world.submit(Job::source(10, &[("endless", "true")])));
    let (second, _more) = block_on(world.submit(Job::source(10, &[("endless", "true")])));
    let (third, _) = block_on(world.submit(bounded("1", 1)));
    block_on(world.dispatcher.ask(CancelJob { job: first }, Some(SOON))).unwrap();
    assert_eq!(block_on(world.outcome(third)).state, JobState::Finished);
    block_on(world.dispatcher.ask(CancelJob { job: second }, Some(SOON))).unwrap();
    assert_eq!(block_on(world.outcome(second)).state, JobState::Canceled);
}

/// Does what tokio does where the system gives no thread.
#[derive(Debug)]
struct WithoutThreads {
    inner: TokioExecutor,
    panics: AtomicBool,
}

impl Executor for WithoutThreads {
    fn spawn(&self, future: BoxFuture<'static, ()>) {
        self.inner.spawn(future);
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
        assert!(!self.panics.load(Ordering::SeqCst), "there is no thread");
        self.inner.spawn_blocking(work)
    }
}

#[test]
fn jobs_end_with_the_cause_when_an_endpoint_is_lost_that_they_need() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let environment = World::environment(Arc::new(SystemClock::new()));
    let tokio = || TokioExecutor::new(runtime.handle().clone());
    let executor = Arc::new(WithoutThreads { inner: tokio(), panics: AtomicBool::new(false) });
    let service = RpcService::new("local", Arc::clone(&executor) as _, Arc::clone(&environment.clock), None);
    let (results, memory) = (Arc::clone(&environment.results), MemoryManager::new(0));
    let shuffle = ShuffleEnvironment::new(Arc::clone(&memory));
    let data_plane = DataPlane { executor: Arc::new(tokio()), environment, shuffle, memory };
    let dispatcher = start_endpoints(&service, data_plane, 4).unwrap().gateway("test");

    let _rows = results.register(ResultId(1));
    let mut graph = Job::source(1, &[("endless", "true")]).collect(ResultId(1));
    graph.configuration.insert("execution.checkpointing.interval".to_string(), "50 ms".to_string());
    let job = block_on(dispatcher.ask(SubmitJob { graph }, Some(SOON))).unwrap();
    while block_on(dispatcher.ask(RequestJobInfo { job }, None)).unwrap().state != JobState::Running {}
    executor.panics.store(true, Ordering::SeqCst);
    let result = block_on(dispatcher.ask(AwaitResult { job }, Some(SOON))).unwrap();
    assert_eq!(result.state, JobState::Failed);
    let cause = result.error.unwrap();
    assert!(cause.message().contains("panicked") && cause.detail() == Some("there is no thread"), "{cause:?}");
    let graph = Job::source(1, &[]).collect(ResultId(1));
    assert!(block_on(dispatcher.ask(SubmitJob { graph }, Some(SOON))).is_err(), "no job would run any more");
}
