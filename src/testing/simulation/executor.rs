//! One thread that runs everything, in an order that follows from a seed.
//!
//! Whenever several futures can go on, a random one does: what production leaves to the operating system is tried out here, and can be
//! run again. Work that may block runs like any other, in one step.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};

use futures::future::BoxFuture;

use crate::clock::Executor;

/// The thread. Clones are the same.
#[derive(Clone)]
pub struct SimulatedExecutor {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
}

struct State {
    random: fastrand::Rng,
    /// Those that wait; one that is being run is not among them.
    futures: BTreeMap<u64, BoxFuture<'static, ()>>,
    /// Those that can go on, each once.
    ready: Vec<u64>,
    next: u64,
    steps: u64,
    /// What was run, folded into one number: two runs that did the same have the same.
    trace: u64,
}

impl fmt::Debug for SimulatedExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimulatedExecutor")
    }
}

/// Makes one future ready.
struct Bell {
    id: u64,
    inner: Arc<Inner>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.inner.lock();
        if !state.ready.contains(&self.id) {
            state.ready.push(self.id);
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

impl SimulatedExecutor {
    /// Without anything to run.
    pub fn new(seed: u64) -> Self {
        let state = State {
            random: fastrand::Rng::with_seed(seed),
            futures: BTreeMap::new(),
            ready: Vec::new(),
            next: 0,
            steps: 0,
            trace: 0,
        };
        SimulatedExecutor { inner: Arc::new(Inner { state: Mutex::new(state) }) }
    }

    /// Lets one future that can go on do so; false when none can.
    pub fn step(&self) -> bool {
        let Some((id, mut future)) = self.take() else { return false };
        let waker = Waker::from(Arc::new(Bell { id, inner: Arc::clone(&self.inner) }));
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.inner.lock().futures.insert(id, future);
        }
        true
    }

    fn take(&self) -> Option<(u64, BoxFuture<'static, ()>)> {
        let mut state = self.inner.lock();
        while !state.ready.is_empty() {
            let candidates = state.ready.len();
            let chosen = state.random.usize(..candidates);
            let id = state.ready.swap_remove(chosen);
            // One that has ended may be woken once more.
            if let Some(future) = state.futures.remove(&id) {
                state.steps += 1;
                state.trace = state.trace.rotate_left(5) ^ id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                return Some((id, future));
            }
        }
        None
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.inner.lock().steps
    }

    /// What was run so far, as one number.
    pub fn trace(&self) -> u64 {
        self.inner.lock().trace
    }

    /// Forgets everything that has not ended, as if the process had been killed.
    pub fn kill(&self) {
        loop {
            // Dropped outside of the lock: what is dropped may wake others, or hand over new work.
            let futures = std::mem::take(&mut self.inner.lock().futures);
            if futures.is_empty() {
                break;
            }
            drop(futures);
        }
        self.inner.lock().ready.clear();
    }
}

impl Executor for SimulatedExecutor {
    fn spawn(&self, future: BoxFuture<'static, ()>) {
        let mut state = self.inner.lock();
        let id = state.next;
        state.next += 1;
        state.futures.insert(id, future);
        state.ready.push(id);
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) -> std::io::Result<()> {
        let mut work = Some(work);
        self.spawn(Box::pin(std::future::poll_fn(move |_| {
            if let Some(work) = work.take() {
                work();
            }
            Poll::Ready(())
        })));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seed: u64) -> (Vec<u32>, u64) {
        let executor = SimulatedExecutor::new(seed);
        let order = Arc::new(Mutex::new(Vec::new()));
        for number in 0..8 {
            let order = Arc::clone(&order);
            executor.spawn_blocking(Box::new(move || order.lock().unwrap().push(number))).unwrap();
        }
        while executor.step() {}
        let order = order.lock().unwrap().clone();
        (order, executor.trace())
    }

    #[test]
    fn the_order_follows_from_the_seed() {
        assert_eq!(order(1), order(1));
        assert!((2..10).any(|seed| order(seed).0 != order(1).0));
    }

    #[test]
    fn whoever_waits_goes_on_when_it_is_woken() {
        let executor = SimulatedExecutor::new(7);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let done = Arc::new(Mutex::new(false));
        let told = Arc::clone(&done);
        executor.spawn(Box::pin(async move {
            receiver.await.unwrap();
            *told.lock().unwrap() = true;
        }));
        while executor.step() {}
        assert!(!*done.lock().unwrap());
        sender.send(()).unwrap();
        while executor.step() {}
        assert!(*done.lock().unwrap());
    }
}
