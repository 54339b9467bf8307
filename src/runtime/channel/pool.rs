//! Buffer pools: how many batches a result partition may have waiting, and how many bytes all channels of the process may hold.
//!
//! A partition of which consumers have taken everything may always send, whatever the process holds: so a byte limit slows jobs down
//! but never locks them up. All others wait while the limit is reached.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use crate::runtime::state::MemoryManager;

/// The bytes in all channels of a process: at most what the state of its tasks leaves of the limit.
#[derive(Debug, Default)]
pub struct NetworkBufferPool {
    memory: Arc<MemoryManager>,
    bytes: AtomicUsize,
    waiting: Mutex<Vec<Waker>>,
    /// Whether anyone waits: spares the lock on each batch.
    has_waiting: AtomicBool,
}

impl NetworkBufferPool {
    /// A pool under this limit.
    pub fn new(memory: Arc<MemoryManager>) -> Arc<Self> {
        Arc::new(NetworkBufferPool { memory, ..NetworkBufferPool::default() })
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.bytes.load(SeqCst)
    }

    pub(super) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, SeqCst);
    }

    pub(super) fn remove(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, SeqCst);
        assert!(before >= bytes, "bytes leave the pool once");
        if !self.is_full() && self.has_waiting.swap(false, SeqCst) {
            let waiting = std::mem::take(&mut *self.waiting.lock().expect("no holder of this lock panics"));
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    fn is_full(&self) -> bool {
        self.memory.left().is_some_and(|left| self.bytes() >= left)
    }

    /// Whether there is room; if not, the waker is woken when there is.
    fn has_room(&self, waker: &Waker) -> bool {
        if !self.is_full() {
            return true;
        }
        let mut waiting = self.waiting.lock().expect("no holder of this lock panics");
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
        drop(waiting);
        self.has_waiting.store(true, SeqCst);
        !self.is_full()
    }
}

/// The batches of one result partition that wait for credit, and those that are with its consumers.
#[derive(Debug)]
pub struct LocalBufferPool {
    buffers_max: usize,
    waiting: AtomicUsize,
    /// Those that wait, and those that consumers have not taken yet.
    in_flight: AtomicUsize,
    starved: AtomicBool,
    waker: Waker,
    network: Arc<NetworkBufferPool>,
}

impl LocalBufferPool {
    /// A pool of `buffers_max` batches; the waker is the producing task's.
    pub fn new(buffers_max: usize, network: Arc<NetworkBufferPool>, waker: Waker) -> Arc<Self> {
        let (waiting, in_flight, starved) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(LocalBufferPool { buffers_max, waiting, in_flight, starved, waker, network })
    }

    /// Whether the task may produce; if not, it is woken when it may.
    pub fn has_room(&self) -> bool {
        if self.check_room() {
            return true;
        }
        self.starved.store(true, SeqCst);
        self.check_room()
    }

    fn check_room(&self) -> bool {
        let in_flight = self.in_flight.load(SeqCst);
        in_flight == 0 || (self.waiting.load(SeqCst) < self.buffers_max.max(1) && self.network.has_room(&self.waker))
    }

    /// Batches that wait for credit.
    pub fn waiting(&self) -> usize {
        self.waiting.load(SeqCst)
    }

    pub(super) fn network(&self) -> &NetworkBufferPool {
        &self.network
    }

    pub(super) fn enqueue(&self) {
        self.in_flight.fetch_add(1, SeqCst);
        self.waiting.fetch_add(1, SeqCst);
    }

    /// Consumers have taken `count` batches (or will never).
    pub(super) fn consumed(&self, count: usize) {
        if count > 0 && self.in_flight.fetch_sub(count, SeqCst) == count {
            self.wake_if_starved();
        }
    }

    /// `count` batches were sent (or dropped).
    pub(super) fn dequeue(&self, count: usize) {
        if count == 0 {
            return;
        }
        self.waiting.fetch_sub(count, SeqCst);
        self.wake_if_starved();
    }

    /// Wakes the task: a consumer went away.
    pub(super) fn wake(&self) {
        self.waker.wake_by_ref();
    }

    fn wake_if_starved(&self) {
        if self.starved.swap(false, SeqCst) {
            self.waker.wake_by_ref();
        }
    }
}
