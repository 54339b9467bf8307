//! What runs the jobs of a session: connectors, functions and the cluster of this process.
//!
//! The cluster starts with the first job: a session that only defines tables, or explains, starts no thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::job::{ASK_TIMEOUT, JobHandle};
use super::slt::{Interruptions, PausingConnectors, PausingOperators};
use crate::catalog::ConnectorRegistry;
use crate::clock::{Clock, SystemClock};
use crate::cluster::{Dispatcher, MiniCluster, MiniClusterOptions, SubmitJob};
use crate::connectors::{self, BuiltinConnectors, ConnectorServices};
use crate::error::Result;
use crate::expr::FunctionRegistry;
use crate::job_graph::JobGraph;
use crate::operators::Operators;
use crate::rpc::Gateway;
use crate::runtime::checkpoint::LocalStores;
use crate::runtime::state::MemoryManager;
use crate::runtime::{ConnectorFactory, Environment, FlushId, OperatorFactory, ResultHub, ResultStream};
use crate::types::ResultId;

/// What runs the jobs of a session.
pub(super) struct Engine {
    clock: Arc<dyn Clock>,
    /// Whether nobody else uses the clock.
    owns_clock: bool,
    pub(super) connectors: Arc<BuiltinConnectors>,
    pub(super) descriptors: ConnectorRegistry,
    pub(super) functions: Arc<FunctionRegistry>,
    results: Arc<ResultHub>,
    pub(super) stores: Arc<LocalStores>,
    /// What state and channels take, and may take.
    pub(super) memory: Arc<MemoryManager>,
    options: MiniClusterOptions,
    /// Whether jobs are stopped in the middle, and where that is noted: for tests.
    pub(super) interruptions: Option<Arc<Interruptions>>,
    cluster: Mutex<Option<MiniCluster>>,
    next_result: AtomicU64,
    next_flush: AtomicU64,
}

impl Engine {
    pub(super) fn new(
        clock: Option<Arc<dyn Clock>>,
        services: ConnectorServices,
        functions: FunctionRegistry,
        options: MiniClusterOptions,
    ) -> Self {
        Engine {
            owns_clock: clock.is_none(),
            clock: clock.unwrap_or_else(|| Arc::new(SystemClock::new())),
            connectors: Arc::new(BuiltinConnectors::new(services)),
            descriptors: connectors::descriptors(),
            functions: Arc::new(functions),
            results: Arc::default(),
            stores: Arc::default(),
            memory: Arc::default(),
            options,
            interruptions: None,
            cluster: Mutex::new(None),
            next_result: AtomicU64::new(1),
            next_flush: AtomicU64::new(1),
        }
    }

    /// A place where the rows of a SELECT are collected.
    pub(super) fn new_result(&self) -> (ResultId, ResultStream) {
        let result = ResultId(self.next_result.fetch_add(1, Ordering::Relaxed));
        (result, self.results.register(result))
    }

    /// A flush that comes after all others.
    pub(super) fn next_flush(&self) -> FlushId {
        FlushId(self.next_flush.fetch_add(1, Ordering::Relaxed))
    }

    /// The Dispatcher of the cluster, if it has been started: without it there is no job.
    pub(super) fn running_dispatcher(&self) -> Option<Gateway<Dispatcher>> {
        self.locked().as_ref().map(MiniCluster::dispatcher)
    }

    /// Looks at the counters of the cluster's channels.
    pub(super) fn with_cluster<T>(&self, look: impl FnOnce(&MiniCluster) -> T) -> Option<T> {
        self.locked().as_ref().map(look)
    }

    /// Runs a job.
    pub(super) async fn submit(&self, graph: JobGraph, bounded: bool) -> Result<JobHandle> {
        let dispatcher = self.dispatcher()?;
        let name = graph.name.clone();
        let id = dispatcher.ask(SubmitJob { graph }, ASK_TIMEOUT).await?;
        Ok(JobHandle { id, name, bounded, dispatcher })
    }

    /// Ends all jobs and waits until they have ended.
    pub(super) async fn shutdown(&self) {
        let cluster = self.locked().take();
        if let Some(cluster) = cluster {
            cluster.shutdown().await;
            self.rest();
        }
    }

    /// The cluster has ended: nobody waits for the clock any more, though handles of jobs may still hold it.
    fn rest(&self) {
        if self.owns_clock {
            self.clock.rest();
        }
    }

    fn dispatcher(&self) -> Result<Gateway<Dispatcher>> {
        let mut cluster = self.locked();
        if cluster.is_none() {
            *cluster = Some(MiniCluster::start(Arc::new(self.environment()), Arc::clone(&self.memory), self.options)?);
        }
        Ok(cluster.as_ref().expect("it was just started").dispatcher())
    }

    fn environment(&self) -> Environment {
        let (mut connectors, mut operators): (Arc<dyn ConnectorFactory>, Arc<dyn OperatorFactory>) =
            (Arc::clone(&self.connectors) as _, Arc::new(Operators));
        if let Some(interruptions) = &self.interruptions {
            let pauses = || Arc::clone(&interruptions.pauses);
            connectors = Arc::new(PausingConnectors { inner: connectors, pauses: pauses() });
            operators = Arc::new(PausingOperators { inner: Operators, pauses: pauses() });
        }
        Environment {
            clock: Arc::clone(&self.clock),
            functions: Arc::clone(&self.functions),
            connectors,
            operators,
            results: Arc::clone(&self.results),
            stores: Arc::clone(&self.stores) as _,
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Option<MiniCluster>> {
        self.cluster.lock().expect("no holder of this lock panics")
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Ok(cluster) = self.cluster.get_mut() {
            drop(cluster.take()); // waits for its threads
        }
        self.rest();
    }
}
