//! The MiniCluster: Dispatcher, ResourceManager and one TaskExecutor in this process, on threads of its own.
//!
//! ```text
//!   any program ── Gateway<Dispatcher> ──▶ flott-control   one thread: all endpoints
//!                                          flott-task      N threads: the tasks
//! ```
//!
//! It runs inside any program, in a tokio runtime or not: nothing of it runs on the caller's threads and nothing blocks them, except for
//! dropping it, which waits until its threads are gone ([`MiniCluster::shutdown`] waits without blocking).

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use super::dispatcher::Dispatcher;
use super::resource_manager::ResourceManager;
use super::task_executor::{DataPlane, TaskExecutor};
use crate::clock::{TokioExecutor, give_up_after, random_id, spawn_thread, spawn_thread_with_stack};
use crate::error::Result;
use crate::rpc::{FencingToken, Gateway, RpcServer, RpcService};
use crate::runtime::Environment;
use crate::runtime::channel::ShuffleEnvironment;
use crate::runtime::state::MemoryManager;

/// How long the end of the cluster waits for its jobs to stop: they are asked to stop at once, and only a connector that is stuck in the
/// operating system needs longer.
const SHUTDOWN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);
/// How long it waits for the threads after that.
const THREADS_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);

/// How big a cluster is.
#[derive(Debug, Clone, Copy)]
pub struct MiniClusterOptions {
    /// Threads that run tasks; at least 1.
    pub worker_threads: usize,
    /// Slots: the parallelism of all jobs together.
    pub slots: u32,
}

impl Default for MiniClusterOptions {
    fn default() -> Self {
        let worker_threads = std::thread::available_parallelism().map_or(1, usize::from);
        // A slot costs nothing until it is used: so many that a mistyped parallelism is refused and a meant one is not.
        MiniClusterOptions { worker_threads, slots: 4096 }
    }
}

/// A cluster within the process.
pub struct MiniCluster {
    dispatcher: Gateway<Dispatcher>,
    shuffle: Arc<ShuffleEnvironment>,
    /// Dropped (or sent): the control thread ends.
    stop: Option<oneshot::Sender<()>>,
    stopped: Option<oneshot::Receiver<()>>,
    control: Option<JoinHandle<()>>,
}

impl fmt::Debug for MiniCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MiniCluster")
    }
}

/// The stack of a thread: expressions are compiled and evaluated there, and may be nested deeper than the 2 MB of a thread hold in a debug
/// build.
const STACK_BYTES: usize = 16 << 20;

impl MiniCluster {
    /// Starts a cluster whose tasks find `environment` around them, and whose state and channels stay below the limit of `memory`.
    /// Takes about a millisecond.
    pub fn start(environment: Arc<Environment>, memory: Arc<MemoryManager>, options: MiniClusterOptions) -> Result<Self> {
        environment.clock.start()?;
        // The runtime of tasks panics where it gets no thread: better ask before.
        let _ = spawn_thread("flott-task", || {})?.join();
        let control = Threads::of(Builder::new_current_thread().enable_time().build()?);
        let mut data = Builder::new_multi_thread();
        data.worker_threads(options.worker_threads.max(1)).thread_name("flott-task").thread_stack_size(STACK_BYTES).enable_time();
        let data = catch_unwind(AssertUnwindSafe(|| data.build()));
        let data = Threads::of(data.unwrap_or_else(|_| Err(std::io::Error::other("the system gives no thread for tasks")))?);
        let executor = Arc::clone(&control.executor);
        let service = RpcService::new("local", executor, Arc::clone(&environment.clock), None);
        let shuffle = ShuffleEnvironment::new(Arc::clone(&memory));
        let data_plane =
            DataPlane { executor: Arc::clone(&data.executor) as _, environment, shuffle: Arc::clone(&shuffle), memory };
        let dispatcher = start_endpoints(&service, data_plane, options.slots)?;
        let gateway = dispatcher.gateway("client");
        let (stop, stopping) = oneshot::channel();
        let (has_stopped, stopped) = oneshot::channel();
        let control = spawn_thread_with_stack("flott-control", STACK_BYTES, move || {
            run_control(control, data, &service, &dispatcher, stopping);
            let _ = has_stopped.send(());
        })?;
        Ok(MiniCluster { dispatcher: gateway, shuffle, stop: Some(stop), stopped: Some(stopped), control: Some(control) })
    }

    /// The way in.
    pub fn dispatcher(&self) -> Gateway<Dispatcher> {
        self.dispatcher.clone()
    }

    /// The channels of the process, with their counters: for tests and for those who tune it.
    pub fn shuffle(&self) -> &Arc<ShuffleEnvironment> {
        &self.shuffle
    }

    /// Cancels all jobs and waits until everything has ended and all threads are gone.
    pub async fn shutdown(mut self) {
        drop(self.stop.take());
        if let Some(stopped) = self.stopped.take() {
            let _ = stopped.await;
        }
        // What is left to join in `drop` is a thread past its last line.
    }
}

impl Drop for MiniCluster {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(control) = self.control.take() {
            let _ = control.join();
        }
    }
}

/// Starts the endpoints of a cluster on the executor of `service`.
pub(crate) fn start_endpoints(service: &RpcService, data_plane: DataPlane, slots: u32) -> Result<RpcServer<Dispatcher>> {
    let token = FencingToken(random_id());
    let resource_manager = service.add_server("resourcemanager", ResourceManager::new(service.clone()), Some(token))?;
    let environment = Arc::clone(&data_plane.environment);
    let executor = TaskExecutor::new(service.clone(), resource_manager.gateway("task executor"), data_plane, slots);
    let executor = service.add_server("taskexecutor-0", executor, None)?;
    let dispatcher = Dispatcher::new(service.clone(), resource_manager.gateway("dispatcher"), environment, token);
    let dispatcher = service.add_server("dispatcher", dispatcher, Some(token))?;
    resource_manager.start();
    executor.start();
    dispatcher.start();
    // Jobs would wait for their answers for ever.
    for termination in [resource_manager.termination(), executor.termination()] {
        dispatcher.main_thread().when(termination.wait(), |dispatcher, main, outcome| {
            if let Err(cause) = outcome {
                dispatcher.cluster_lost(&cause, main);
            }
        });
    }
    Ok(dispatcher)
}

/// A runtime with its executor. It can be dropped anywhere: a runtime alone panics where others run.
struct Threads {
    runtime: Option<Runtime>,
    executor: Arc<TokioExecutor>,
}

impl Threads {
    fn of(runtime: Runtime) -> Self {
        let executor = Arc::new(TokioExecutor::new(runtime.handle().clone()));
        Threads { runtime: Some(runtime), executor }
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is there until the end")
    }

    /// Waits for the threads, but not for those that are stuck.
    fn end(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(THREADS_TIMEOUT);
        }
        self.executor.close(THREADS_TIMEOUT);
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The control thread: drives the endpoints until the cluster is to end, then ends them, jobs first.
fn run_control(
    control: Threads,
    data: Threads,
    service: &RpcService,
    dispatcher: &RpcServer<Dispatcher>,
    stopping: oneshot::Receiver<()>,
) {
    control.runtime().block_on(async {
        let _ = stopping.await;
        let ending = async {
            let _ = dispatcher.terminate().wait().await;
            let _ = service.terminate().await;
        };
        // By the real time: what is stuck is stuck whatever the clock of the jobs says.
        give_up_after(SHUTDOWN_TIMEOUT, ending).await;
    });
    data.end();
    control.end();
}
