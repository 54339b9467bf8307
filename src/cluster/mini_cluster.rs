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
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use super::dispatcher::Dispatcher;
use super::resource_manager::ResourceManager;
use super::task_executor::{DataPlane, TaskExecutor};
use crate::clock::{Clock, TokioExecutor, random_id, sleep_until, spawn_thread_with_stack};
use crate::error::Result;
use crate::rpc::{FencingToken, Gateway, RpcServer, RpcService};
use crate::runtime::Environment;
use crate::runtime::channel::ShuffleEnvironment;
use crate::runtime::state::MemoryManager;

/// How long the end of the cluster waits for its jobs to stop: they are asked to stop at once, and only a connector that is stuck in the
/// operating system needs longer.
const SHUTDOWN_TIMEOUT_MS: i64 = 10_000;
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
        let control = Builder::new_current_thread().enable_time().build()?;
        let data = Builder::new_multi_thread()
            .worker_threads(options.worker_threads.max(1))
            .thread_name("flott-task")
            .thread_stack_size(STACK_BYTES)
            .enable_time()
            .build()?;
        let clock = Arc::clone(&environment.clock);
        let service = RpcService::new("local", Arc::new(TokioExecutor(control.handle().clone())), Arc::clone(&clock), None);
        let shuffle = ShuffleEnvironment::new(Arc::clone(&memory));
        let data_plane = DataPlane {
            executor: Arc::new(TokioExecutor(data.handle().clone())),
            environment,
            shuffle: Arc::clone(&shuffle),
            memory,
        };
        let dispatcher = start_endpoints(&service, data_plane, options.slots)?;
        let gateway = dispatcher.gateway("client");
        let (stop, stopping) = oneshot::channel();
        let (has_stopped, stopped) = oneshot::channel();
        let control = spawn_thread_with_stack("flott-control", STACK_BYTES, move || {
            run_control(control, data, &service, &dispatcher, clock, stopping);
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
    Ok(dispatcher)
}

/// The control thread: drives the endpoints until the cluster is to end, then ends them, jobs first.
fn run_control(
    control: Runtime,
    data: Runtime,
    service: &RpcService,
    dispatcher: &RpcServer<Dispatcher>,
    clock: Arc<dyn Clock>,
    stopping: oneshot::Receiver<()>,
) {
    control.block_on(async {
        let _ = stopping.await;
        let ending = async {
            let _ = dispatcher.terminate().wait().await;
            let _ = service.terminate().await;
        };
        let deadline = sleep_until(Arc::clone(&clock), clock.now_ms() + SHUTDOWN_TIMEOUT_MS);
        tokio::select! {
            () = ending => {}
            () = deadline => {}
        }
    });
    data.shutdown_timeout(THREADS_TIMEOUT);
    control.shutdown_timeout(THREADS_TIMEOUT);
}
