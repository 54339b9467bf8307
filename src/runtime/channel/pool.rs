//! Buffer pools: how many batches a result partition may have waiting, and how many bytes all channels of the process may hold.
//!
//! A partition with nothing waiting may always send one batch, whatever the process holds: so a byte limit slows jobs down but never
//! locks them up.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Waker;

/// The bytes in all channels of a process.
#[derive(Debug, Default)]
pub struct NetworkBufferPool {
    bytes_max: usize,
    bytes: AtomicUsize,
    waiting: Mutex<Vec<Waker>>,
}

impl NetworkBufferPool {
    /// A pool of `bytes_max` bytes; 0 = without limit.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(NetworkBufferPool { bytes_max, ..NetworkBufferPool::default() })
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
        if self.is_limited() && !self.is_full() {
            let waiting = std::mem::take(&mut *self.waiting.lock().expect("no holder of this lock panics"));
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    fn is_limited(&self) -> bool {
        self.bytes_max > 0
    }

    fn is_full(&self) -> bool {
        self.is_limited() && self.bytes() >= self.bytes_max
    }

    /// Whether there is room; if not, the waker is woken when there is.
    fn has_room(&self, waker: &Waker) -> bool {
        if !self.is_full() {
            return true;
        }
        self.waiting.lock().expect("no holder of this lock panics").push(waker.clone());
        !self.is_full()
    }
}

/// The batches of one result partition that wait for credit.
#[derive(Debug)]
pub struct LocalBufferPool {
    buffers_max: usize,
    waiting: AtomicUsize,
    starved: AtomicBool,
    waker: Waker,
    network: Arc<NetworkBufferPool>,
}

impl LocalBufferPool {
    /// A pool of `buffers_max` batches; the waker is the producing task's.
    pub fn new(buffers_max: usize, network: Arc<NetworkBufferPool>, waker: Waker) -> Arc<Self> {
        let (waiting, starved) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(LocalBufferPool { buffers_max, waiting, starved, waker, network })
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
        let waiting = self.waiting.load(SeqCst);
        waiting == 0 || (waiting < self.buffers_max && self.network.has_room(&self.waker))
    }

    /// Batches that wait for credit.
    pub fn waiting(&self) -> usize {
        self.waiting.load(SeqCst)
    }

    pub(super) fn network(&self) -> &NetworkBufferPool {
        &self.network
    }

    pub(super) fn enqueue(&self) {
        self.waiting.fetch_add(1, SeqCst);
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
