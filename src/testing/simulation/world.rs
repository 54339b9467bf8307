//! Runs one job to its end, through crashes: each incarnation of the process has a cluster of its own, and finds the disk as the one
//! before it left it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::connectors::SimulatedConnectors;
use super::disk::Disk;
use super::executor::SimulatedExecutor;
use super::faults::Faults;
use super::stores::FailingStores;
use crate::clock::{Clock, VirtualClock, run_on};
use crate::cluster::{AwaitResult, DataPlane, Dispatcher, JobResult, JobState, SubmitJob, start_endpoints};
use crate::config::RECOVERY_PATH;
use crate::error::Result;
use crate::expr::builtin_functions;
use crate::job_graph::JobGraph;
use crate::operators::Operators;
use crate::rpc::{Gateway, RpcService};
use crate::runtime::channel::ShuffleEnvironment;
use crate::runtime::checkpoint::LocalStores;
use crate::runtime::state::MemoryManager;
use crate::runtime::{Environment, ResultHub};
use crate::types::JobId;

/// Where the jobs of a simulation keep their checkpoints.
pub const CHECKPOINTS: &str = "memory://checkpoints";

/// Steps that one incarnation may take: a job that needs more is stuck.
const STEPS_MAX: u64 = 5_000_000;
/// Slots of the cluster.
const SLOTS: u32 = 64;

/// What goes wrong in a simulation.
#[derive(Debug, Clone, Copy)]
pub struct Trouble {
    /// How often the process is killed, at moments that the seed chooses.
    pub crashes: u32,
    /// One in so many operations of sinks and storage fails while crashes are still to come; none = all succeed.
    pub fault_one_in: Option<u32>,
    /// A crash comes within so many steps.
    pub crash_within_steps: u64,
}

impl Trouble {
    /// Nothing goes wrong.
    pub const NONE: Trouble = Trouble { crashes: 0, fault_one_in: None, crash_within_steps: 0 };
}

/// What came of a simulation.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The table that the visible output describes.
    pub table: BTreeMap<String, i64>,
    /// Files that nobody sees, at the end.
    pub hidden_files: usize,
    /// Incarnations that the job needed.
    pub incarnations: u32,
    /// How often one began with the state of a checkpoint.
    pub restores: u32,
    /// How often that referred to what checkpoints before it had written.
    pub shared_restores: u32,
    /// Operations that failed.
    pub faults: u64,
    /// What was run in which order, as one number.
    pub trace: u64,
    /// Steps of the last incarnation.
    pub steps: u64,
    /// The virtual time at the end.
    pub now_ms: i64,
}

/// Runs a job to its end. Of its graphs, which differ in parallelism, each incarnation has one that the seed chooses.
pub fn simulate(seed: u64, graphs: &[JobGraph], disk: &Disk, trouble: Trouble) -> Outcome {
    let mut random = fastrand::Rng::with_seed(seed);
    let clock = VirtualClock::new(1_000);
    let faults = Faults::new(random.u64(..), trouble.fault_one_in);
    let stores = Arc::new(FailingStores::new(Arc::new(LocalStores::default()), faults.clone()));
    let (mut trace, mut restores, mut shared_restores) = (0u64, 0, 0);
    let mut from: Option<JobId> = None;
    for incarnation in 1.. {
        let crash_at = (incarnation <= trouble.crashes).then(|| random.u64(1..=trouble.crash_within_steps));
        if crash_at.is_none() {
            faults.cease();
        }
        let process = Process::start(random.u64(..), &clock, disk, &faults, &stores);
        let mut graph = graphs[random.usize(..graphs.len())].clone();
        if let Some(job) = from.filter(|job| stores.has_checkpoint(&format!("{CHECKPOINTS}/{job}"))) {
            restores += 1;
            shared_restores += u32::from(stores.refers_to_earlier_ones(&format!("{CHECKPOINTS}/{job}")));
            graph.configuration.insert(RECOVERY_PATH.key.to_string(), format!("{CHECKPOINTS}/{job}"));
        }
        let end = process.run(graph, crash_at);
        trace = trace.rotate_left(1) ^ process.executor.trace();
        process.executor.kill();
        from = end.job.filter(|job| stores.has_checkpoint(&format!("{CHECKPOINTS}/{job}"))).or(from);
        match end.result {
            Some(result) if result.state == JobState::Finished => {
                return Outcome {
                    table: disk.folded(),
                    hidden_files: disk.hidden_files(),
                    incarnations: incarnation,
                    restores,
                    shared_restores,
                    faults: faults.struck(),
                    trace,
                    steps: process.executor.steps(),
                    now_ms: clock.now_ms(),
                };
            }
            // It gave up after too many faults: somebody starts it again, as after a crash.
            Some(result) => assert!(crash_at.is_some(), "seed {seed}: without faults the job ended as {result:?}"),
            None => {}
        }
    }
    unreachable!("the last incarnation ends or panics")
}

/// One incarnation of the process.
struct Process {
    executor: SimulatedExecutor,
    clock: Arc<VirtualClock>,
    dispatcher: Gateway<Dispatcher>,
}

/// How an incarnation ended.
#[derive(Default)]
struct End {
    /// The job, once it was submitted.
    job: Option<JobId>,
    /// How the job ended; none = the process was killed before.
    result: Option<JobResult>,
}

impl Process {
    fn start(seed: u64, clock: &Arc<VirtualClock>, disk: &Disk, faults: &Faults, stores: &Arc<FailingStores>) -> Self {
        let executor = SimulatedExecutor::new(seed);
        let environment = Arc::new(Environment {
            clock: Arc::clone(clock) as Arc<dyn Clock>,
            functions: Arc::new(builtin_functions()),
            connectors: Arc::new(SimulatedConnectors { disk: disk.clone(), faults: faults.clone() }),
            operators: Arc::new(Operators),
            results: Arc::new(ResultHub::default()),
            stores: Arc::clone(stores) as _,
        });
        let memory = MemoryManager::new(0);
        let service = RpcService::new("local", Arc::new(executor.clone()), Arc::clone(clock) as Arc<dyn Clock>, None);
        let shuffle = ShuffleEnvironment::new(Arc::clone(&memory));
        let data_plane = DataPlane { executor: Arc::new(executor.clone()), environment, shuffle, memory };
        let dispatcher = start_endpoints(&service, data_plane, SLOTS).expect("the names of endpoints are free");
        Process { executor, clock: Arc::clone(clock), dispatcher: dispatcher.gateway("simulation") }
    }

    /// Runs a job to its end, or to the step at which the process is killed.
    fn run(&self, graph: JobGraph, crash_at: Option<u64>) -> End {
        let end = Arc::new(Mutex::new(End::default()));
        let (told, dispatcher) = (Arc::clone(&end), self.dispatcher.clone());
        drop(run_on(&self.executor, async move {
            let run = async {
                let job = dispatcher.ask(SubmitJob { graph }, None).await?;
                told.lock().unwrap().job = Some(job);
                dispatcher.ask(AwaitResult { job }, None).await
            };
            let result: Result<JobResult> = run.await;
            told.lock().unwrap().result = Some(result.expect("the dispatcher answers"));
        }));
        while end.lock().unwrap().result.is_none() {
            let steps = self.executor.steps();
            assert!(steps < STEPS_MAX, "the job is stuck after {steps} steps");
            if crash_at.is_some_and(|crash| steps >= crash) {
                break;
            }
            if !self.executor.step() {
                let alarm = self.clock.next_alarm().expect("somebody waits for time, or the job would have ended");
                self.clock.advance_to(alarm);
            }
        }
        std::mem::take(&mut end.lock().unwrap())
    }
}
