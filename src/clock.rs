//! The only place that reads time, waits, draws randomness or starts threads.
//!
//! The engine sees a [`Clock`]; production has [`SystemClock`], tests and simulations [`VirtualClock`], which moves only when
//! told to. So a whole job can be run again from one seed.

use std::collections::BinaryHeap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// Time as a job sees it.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Wall-clock time in milliseconds since the epoch: processing time.
    fn now_ms(&self) -> i64;

    /// Nanoseconds since some fixed moment, never going back: for durations and metrics.
    fn monotonic_nanos(&self) -> u64;

    /// Wakes the waker once [`Clock::now_ms`] is at least `at_ms`.
    fn wake_at(&self, at_ms: i64, waker: &Waker);
}

/// The real clock.
#[derive(Debug)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    /// The real clock.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        SystemClock { started: std::time::Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |elapsed| elapsed.as_millis() as i64)
    }

    fn monotonic_nanos(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn wake_at(&self, at_ms: i64, waker: &Waker) {
        let delay = std::time::Duration::from_millis(at_ms.saturating_sub(self.now_ms()).max(0) as u64);
        let waker = waker.clone();
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            waker.wake();
        });
    }
}

/// A clock that stands still until it is moved: for tests and simulations.
#[derive(Debug, Default)]
pub struct VirtualClock {
    state: Mutex<VirtualTime>,
}

#[derive(Debug, Default)]
struct VirtualTime {
    now_ms: i64,
    sleepers: BinaryHeap<Sleeper>,
}

#[derive(Debug)]
struct Sleeper {
    at_ms: i64,
    waker: Waker,
}

impl PartialEq for Sleeper {
    fn eq(&self, other: &Self) -> bool {
        self.at_ms == other.at_ms
    }
}
impl Eq for Sleeper {}
impl PartialOrd for Sleeper {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Sleeper {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.at_ms.cmp(&self.at_ms) // the earliest is the greatest: BinaryHeap pops it first
    }
}

impl VirtualClock {
    /// A clock that stands at `now_ms`.
    pub fn new(now_ms: i64) -> Arc<Self> {
        Arc::new(VirtualClock { state: Mutex::new(VirtualTime { now_ms, sleepers: BinaryHeap::new() }) })
    }

    /// Moves to `now_ms` (never back) and wakes whom it reaches, in order.
    pub fn advance_to(&self, now_ms: i64) {
        let mut due = Vec::new();
        {
            let mut state = self.state.lock().expect("no holder of this lock panics");
            state.now_ms = state.now_ms.max(now_ms);
            while state.sleepers.peek().is_some_and(|sleeper| sleeper.at_ms <= state.now_ms) {
                due.extend(state.sleepers.pop());
            }
        }
        due.into_iter().for_each(|sleeper| sleeper.waker.wake());
    }
}

impl Clock for VirtualClock {
    fn now_ms(&self) -> i64 {
        self.state.lock().expect("no holder of this lock panics").now_ms
    }

    fn monotonic_nanos(&self) -> u64 {
        self.now_ms() as u64 * 1_000_000
    }

    fn wake_at(&self, at_ms: i64, waker: &Waker) {
        let mut state = self.state.lock().expect("no holder of this lock panics");
        if at_ms <= state.now_ms {
            drop(state);
            waker.wake_by_ref();
        } else {
            state.sleepers.push(Sleeper { at_ms, waker: waker.clone() });
        }
    }
}

/// Waits until the clock shows `at_ms`. Polled within a tokio runtime when the clock is the real one.
pub fn sleep_until(clock: Arc<dyn Clock>, at_ms: i64) -> Sleep {
    Sleep { clock, at_ms, registered: None }
}

/// The future of [`sleep_until`].
#[derive(Debug)]
pub struct Sleep {
    clock: Arc<dyn Clock>,
    at_ms: i64,
    registered: Option<Waker>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.clock.now_ms() >= self.at_ms {
            return Poll::Ready(());
        }
        // Registered once per waker: a clock keeps what it was given until the time has come.
        if self.registered.as_ref().is_none_or(|waker| !waker.will_wake(context.waker())) {
            self.clock.wake_at(self.at_ms, context.waker());
            self.registered = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

/// Starts a named thread for work that blocks (reading files, decompressing).
pub fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_string()).spawn(work)
}

/// A seed for random numbers where the user gave none.
pub fn random_seed() -> u64 {
    fastrand::u64(..)
}
