//! The ResourceManager: knows the task executors and who holds which of their slots.
//!
//! A slot is the right to run one subtask of each vertex of a slot sharing group. Requests are served in the order in which they
//! came, each whole or not at all, so that two jobs never hold half of what both need.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::task_executor::{FreeJob, TaskExecutor};
use crate::error::{Error, ErrorKind, Result};
use crate::rpc::{Answer, CallTable, Gateway, Handle, MainThread, Reply, RpcAddress, RpcEndpoint, RpcService};
use crate::types::JobId;

/// A slot of a task executor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SlotId {
    /// The task executor.
    pub executor: RpcAddress,
    /// The slot, from 0.
    pub index: u32,
}

/// A task executor offers its slots.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RegisterTaskExecutor {
    /// Where it is.
    pub address: RpcAddress,
    /// How many.
    pub slots: u32,
}

/// A job asks for slots; answered when it has all of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RequestSlots {
    /// The job.
    pub job: JobId,
    /// How many.
    pub slots: u32,
}

/// A job has ended, or its master is lost: its slots are free again, and what still runs in them is stopped.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ReleaseSlots {
    /// The job.
    pub job: JobId,
}

crate::rpc_call!(RegisterTaskExecutor => (), RequestSlots => Vec<SlotId>, ReleaseSlots => ());

/// The endpoint.
#[derive(Debug)]
pub struct ResourceManager {
    service: RpcService,
    executors: BTreeMap<RpcAddress, Executor>,
    pending: VecDeque<(RequestSlots, Reply<Vec<SlotId>>)>,
}

#[derive(Debug)]
struct Executor {
    gateway: Gateway<TaskExecutor>,
    slots: u32,
    /// Who holds which slot.
    held: BTreeMap<u32, JobId>,
}

impl Executor {
    fn free(&self) -> u32 {
        self.slots - self.held.len() as u32
    }

    /// Takes the first free slot.
    fn take(&mut self, job: JobId) -> Option<u32> {
        let index = (0..self.slots).find(|index| !self.held.contains_key(index))?;
        self.held.insert(index, job);
        Some(index)
    }
}

impl ResourceManager {
    /// Without any task executor.
    pub fn new(service: RpcService) -> Self {
        ResourceManager { service, executors: BTreeMap::new(), pending: VecDeque::new() }
    }

    /// Serves who waits, the first come first, until one has to go on waiting.
    fn serve(&mut self) {
        while let Some((request, reply)) = self.pending.pop_front() {
            if !reply.is_wanted() {
                continue;
            }
            match self.allocate(&request) {
                Some(slots) => reply.send(Ok(slots)),
                None => return self.pending.push_front((request, reply)),
            }
        }
    }

    /// All slots of the request, each from the executor with the most free ones; or none at all.
    fn allocate(&mut self, request: &RequestSlots) -> Option<Vec<SlotId>> {
        let free: u32 = self.executors.values().map(Executor::free).sum();
        if free < request.slots {
            return None;
        }
        let mut allocated = Vec::with_capacity(request.slots as usize);
        for _ in 0..request.slots {
            let (address, executor) = self.executors.iter_mut().max_by_key(|(_, executor)| executor.free())?;
            let index = executor.take(request.job)?;
            allocated.push(SlotId { executor: address.clone(), index });
        }
        allocated.sort();
        Some(allocated)
    }
}

impl RpcEndpoint for ResourceManager {
    const GATEWAY: &'static str = "ResourceManager";

    fn calls(table: CallTable<Self>) -> CallTable<Self> {
        table.with::<RegisterTaskExecutor>().with::<RequestSlots>().with::<ReleaseSlots>()
    }
}

impl Handle<RegisterTaskExecutor> for ResourceManager {
    fn handle(&mut self, call: RegisterTaskExecutor, main: &MainThread<Self>) -> Answer<()> {
        let (reply, answer) = Answer::later();
        let (service, address) = (self.service.clone(), call.address.clone());
        main.when(
            async move { service.connect("resource manager", &address).await },
            move |manager, _, connected: Result<Gateway<TaskExecutor>>| {
                reply.send(connected.map(|gateway| {
                    manager.executors.insert(call.address, Executor { gateway, slots: call.slots, held: BTreeMap::new() });
                    manager.serve();
                }));
            },
        );
        answer
    }
}

impl Handle<RequestSlots> for ResourceManager {
    fn handle(&mut self, call: RequestSlots, _: &MainThread<Self>) -> Answer<Vec<SlotId>> {
        let all: u32 = self.executors.values().map(|executor| executor.slots).sum();
        if !self.executors.is_empty() && all < call.slots {
            let message = format!("the job needs {} slots, the cluster has {all}", call.slots);
            return Err(Error::new(ErrorKind::OutOfMemory, message).with_hint("lower the parallelism or add slots")).into();
        }
        let (reply, answer) = Answer::later();
        self.pending.push_back((call, reply));
        self.serve();
        answer
    }
}

impl Handle<ReleaseSlots> for ResourceManager {
    fn handle(&mut self, ReleaseSlots { job }: ReleaseSlots, _: &MainThread<Self>) -> Answer<()> {
        self.pending.retain(|(request, _)| request.job != job);
        for executor in self.executors.values_mut() {
            let before = executor.held.len();
            executor.held.retain(|_, holder| *holder != job);
            if executor.held.len() < before {
                executor.gateway.tell(FreeJob { job });
            }
        }
        self.serve();
        Ok(()).into()
    }
}
