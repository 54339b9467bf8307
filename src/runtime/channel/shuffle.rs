//! Where the two ends of channels meet: producers and consumers of one process find each other by the id of the subpartition, whoever
//! comes first.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use super::credit::FloatingBuffers;
use super::input_gate::GateSignal;
use super::local::{LocalChannel, LocalReceiver, LocalSender};
use super::pool::{LocalBufferPool, NetworkBufferPool};
use super::router::Router;
use super::{ChannelReceiver, ChannelSender, ChannelSettings, InputGate, ResultPartition};
use crate::runtime::state::MemoryManager;
use crate::runtime::task::{InputGateDescriptor, Mailbox, ResultPartitionDescriptor, SubpartitionId};
use crate::types::JobId;

/// Counters of a process, for tests and for those who tune it.
#[derive(Debug, Default)]
pub struct RuntimeCounters {
    /// Subtasks that were started.
    pub subtasks_run: AtomicU64,
    /// Batches sent over channels.
    pub buffers: AtomicU64,
    /// Most batches that one channel held between sender and consumer.
    pub buffers_in_flight_max: AtomicU64,
    /// Most rows of a batch that went over a channel.
    pub batch_rows_max: AtomicU64,
    /// Most key groups over which the keys of a task were spread.
    pub key_groups_max: AtomicU64,
}

/// The channels of a process.
#[derive(Debug)]
pub struct ShuffleEnvironment {
    network: Arc<NetworkBufferPool>,
    counters: Arc<RuntimeCounters>,
    /// Channels of which one end is taken.
    half_open: Mutex<HashMap<SubpartitionId, Arc<LocalChannel>>>,
}

impl ShuffleEnvironment {
    /// Channels that take no more than state leaves of the limit.
    pub fn new(memory: Arc<MemoryManager>) -> Arc<Self> {
        Arc::new(ShuffleEnvironment {
            network: NetworkBufferPool::new(memory),
            counters: Arc::default(),
            half_open: Mutex::default(),
        })
    }

    /// Bytes in all channels.
    pub fn network(&self) -> &Arc<NetworkBufferPool> {
        &self.network
    }

    /// Counters since the start.
    pub fn counters(&self) -> &Arc<RuntimeCounters> {
        &self.counters
    }

    /// The output of a task. Full pools and lost consumers wake the mailbox.
    pub fn partition(
        &self,
        descriptor: &ResultPartitionDescriptor,
        max_parallelism: u32,
        settings: &ChannelSettings,
        mailbox: &Mailbox,
    ) -> ResultPartition {
        let buffers = descriptor.subpartitions as usize * settings.exclusive as usize + settings.floating as usize;
        let pool = LocalBufferPool::new(buffers, Arc::clone(&self.network), mailbox.waker());
        let sender = |index| {
            let channel = self.meet(SubpartitionId { partition: descriptor.id, index });
            Box::new(LocalSender::new(channel, Arc::clone(&pool))) as Box<dyn ChannelSender>
        };
        let senders = (0..descriptor.subpartitions).map(sender).collect();
        let subtask = descriptor.id.producer.subtask.0;
        let router = Router::new(&descriptor.partitioner, descriptor.subpartitions, max_parallelism, subtask);
        ResultPartition::new(router, senders, Arc::clone(&pool), settings)
    }

    /// The input of a task. What arrives wakes the mailbox.
    pub fn gate(&self, descriptor: &InputGateDescriptor, settings: &ChannelSettings, mailbox: &Mailbox) -> InputGate {
        let floating = Arc::new(Mutex::new(FloatingBuffers::new(settings.floating)));
        let signal = GateSignal::new(mailbox.waker());
        let receiver = |(index, id): (usize, &SubpartitionId)| {
            let (floating, signal) = (Arc::clone(&floating), Arc::clone(&signal));
            let network = Arc::clone(&self.network);
            let receiver = LocalReceiver::connect(self.meet(*id), network, settings.exclusive, floating, signal, index);
            Box::new(receiver) as Box<dyn ChannelReceiver>
        };
        let channels = descriptor.channels.iter().enumerate().map(receiver).collect();
        InputGate::new(channels, floating, signal)
    }

    /// Forgets the channels of a job whose other end never came.
    pub fn release_job(&self, job: JobId) {
        self.half_open.lock().expect("no holder of this lock panics").retain(|id, _| id.partition.producer.job != job);
    }

    /// The channel of this id: new for whoever comes first, taken out by the second.
    fn meet(&self, id: SubpartitionId) -> Arc<LocalChannel> {
        match self.half_open.lock().expect("no holder of this lock panics").entry(id) {
            Entry::Occupied(entry) => entry.remove(),
            Entry::Vacant(entry) => Arc::clone(entry.insert(LocalChannel::new(id, Arc::clone(&self.counters)))),
        }
    }
}
