//! Where futures and blocking work run: the threads of tokio in production, one thread with a seed in a simulation.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use tokio::sync::oneshot;

use super::blocking::BlockingThreads;

/// What a panic said.
pub type Panic = Box<dyn Any + Send>;

/// Runs what others hand to it.
pub trait Executor: Send + Sync + fmt::Debug {
    /// Drives a future to its end.
    fn spawn(&self, future: BoxFuture<'static, ()>);

    /// Runs work that may block, where it delays nobody. It must not wait for other such work. Fails when there is nobody to do it.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) -> std::io::Result<()>;
}

/// The threads of a tokio runtime, and others for work that blocks.
#[derive(Debug)]
pub struct TokioExecutor {
    runtime: tokio::runtime::Handle,
    blocking: BlockingThreads,
}

impl TokioExecutor {
    /// On a runtime. Threads for work that blocks start with it.
    pub fn new(runtime: tokio::runtime::Handle) -> Self {
        TokioExecutor { runtime, blocking: BlockingThreads::default() }
    }

    /// Nothing that blocks is begun any more; waits for what was, but no longer than this.
    pub fn close(&self, within: std::time::Duration) {
        self.blocking.close(within);
    }
}

impl Executor for TokioExecutor {
    fn spawn(&self, future: BoxFuture<'static, ()>) {
        self.runtime.spawn(future);
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
        self.blocking.run(work)
    }
}

/// How something that was handed to an executor ended: its output, what its panic said, or nothing when the executor was gone first.
pub type Ended<T> = Option<Result<T, Panic>>;

/// Drives a future on an executor. What is given back waits for its end; dropping that leaves the work alone.
pub fn run_on<T: Send + 'static>(
    executor: &dyn Executor,
    future: impl Future<Output = T> + Send + 'static,
) -> BoxFuture<'static, Ended<T>> {
    let (sender, ended) = oneshot::channel();
    executor.spawn(Box::pin(async move {
        let _ = sender.send(AssertUnwindSafe(future).catch_unwind().await);
    }));
    ended.map(Result::ok).boxed()
}

/// Runs work that may block on an executor, as [`run_on`] does. An error when nobody can do it.
pub fn run_blocking_on<T: Send + 'static>(
    executor: &dyn Executor,
    work: impl FnOnce() -> T + Send + 'static,
) -> BoxFuture<'static, std::io::Result<Ended<T>>> {
    let (sender, ended) = oneshot::channel();
    let spawned = executor.spawn_blocking(Box::new(move || {
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    }));
    match spawned {
        Ok(()) => ended.map(|ended| Ok(ended.ok())).boxed(),
        Err(cause) => ready(Err(cause)).boxed(),
    }
}
