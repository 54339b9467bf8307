//! The only place that reads time, waits, draws randomness or starts threads.
//!
//! The engine sees a [`Clock`]; production has [`SystemClock`], tests and simulations [`VirtualClock`], which moves only when
//! told to. So a whole job can be run again from one seed.

#![allow(clippy::disallowed_methods)] // this is the place that the lint sends everyone to

mod blocking;
mod executor;
mod system;

use std::collections::BinaryHeap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

pub use executor::{Ended, Executor, Panic, TokioExecutor, run_blocking_on, run_on};
pub use system::SystemClock;

/// Time as a job sees it.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Wall-clock time in milliseconds since the epoch: processing time.
    fn now_ms(&self) -> i64;

    /// Nanoseconds since some fixed moment, never going back: for durations and metrics.
    fn monotonic_nanos(&self) -> u64;

    /// Wakes the waker once [`Clock::now_ms`] is at least `at_ms`.
    fn wake_at(&self, at_ms: i64, waker: &Waker);

    /// Wakes the waker once [`Clock::monotonic_nanos`] is at least `at_nanos`.
    fn wake_at_nanos(&self, at_nanos: u64, waker: &Waker);

    /// Makes sure that whoever waits will be woken: before the first of them does.
    fn start(&self) -> std::io::Result<()> {
        Ok(())
    }

    /// Nobody waits any more: lets go of who is left, and of the thread that would wake them, until somebody waits again.
    fn rest(&self) {}
}

/// Takes out those who wait for `now` or before, earliest first.
fn pop_due(sleepers: &mut BinaryHeap<Sleeper>, now: i64) -> Vec<Sleeper> {
    let mut due = Vec::new();
    while sleepers.peek().is_some_and(|sleeper| sleeper.at <= now) {
        due.extend(sleepers.pop());
    }
    due
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
    at: i64,
    waker: Waker,
}

impl PartialEq for Sleeper {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
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
        other.at.cmp(&self.at) // the earliest is the greatest: BinaryHeap pops it first
    }
}

impl VirtualClock {
    /// A clock that stands at `now_ms`.
    pub fn new(now_ms: i64) -> Arc<Self> {
        Arc::new(VirtualClock { state: Mutex::new(VirtualTime { now_ms, sleepers: BinaryHeap::new() }) })
    }

    /// When the first of those who wait will be woken; none = nobody waits.
    pub fn next_alarm(&self) -> Option<i64> {
        let state = self.state.lock().expect("no holder of this lock panics");
        state.sleepers.peek().map(|sleeper| sleeper.at)
    }

    /// Moves to `now_ms` (never back) and wakes whom it reaches, in order.
    pub fn advance_to(&self, now_ms: i64) {
        let due = {
            let mut state = self.state.lock().expect("no holder of this lock panics");
            state.now_ms = state.now_ms.max(now_ms);
            let now_ms = state.now_ms;
            pop_due(&mut state.sleepers, now_ms)
        };
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
            state.sleepers.push(Sleeper { at: at_ms, waker: waker.clone() });
        }
    }

    fn wake_at_nanos(&self, at_nanos: u64, waker: &Waker) {
        self.wake_at(at_nanos.div_ceil(1_000_000) as i64, waker);
    }
}

/// Waits for so long, in whatever executor it is polled. Clocks that are set meanwhile make it neither longer nor shorter.
pub fn sleep_for(clock: Arc<dyn Clock>, duration: std::time::Duration) -> Sleep {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    Sleep { at_nanos: clock.monotonic_nanos().saturating_add(nanos), clock, registered: None }
}

/// The future of [`sleep_for`].
#[derive(Debug)]
pub struct Sleep {
    clock: Arc<dyn Clock>,
    at_nanos: u64,
    registered: Option<Waker>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.clock.monotonic_nanos() >= self.at_nanos {
            return Poll::Ready(());
        }
        // Registered once per waker: a clock keeps what it was given until the time has come.
        if self.registered.as_ref().is_none_or(|waker| !waker.will_wake(context.waker())) {
            self.clock.wake_at_nanos(self.at_nanos, context.waker());
            self.registered = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

/// Runs a future beside the caller's, on the caller's tokio runtime.
pub fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work);
}

/// Starts a named thread for work that blocks (reading files, decompressing).
pub fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_string()).spawn(work).map_err(|cause| no_thread(name, &cause))
}

fn no_thread(name: &str, cause: &std::io::Error) -> std::io::Error {
    std::io::Error::new(cause.kind(), format!("the system gives no thread for '{name}': {cause}"))
}

/// The same with a stack of so many bytes. They are set aside, and taken when they are used.
pub fn spawn_thread_with_stack(
    name: &str,
    stack_bytes: usize,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    let builder = std::thread::Builder::new().name(name.to_string()).stack_size(stack_bytes);
    builder.spawn(work).map_err(|cause| no_thread(name, &cause))
}

/// Waits for a future in a runtime of tokio, but no longer than this by the real time, whatever clock the engine has.
pub async fn give_up_after<T>(longest: std::time::Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(longest, future).await.ok()
}

/// Does work on a thread of its own and gives its result; none if it has not come on in a stretch of `limit_ms`, of which `comes_on` is asked
/// at the end of each. The thread is then left behind: only for programs that are about to end. A panic in the work is an error.
pub fn run_within<T: Send + 'static>(
    limit_ms: u64,
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
    mut comes_on: impl FnMut() -> bool,
) -> crate::error::Result<Option<T>> {
    let (sender, done) = std::sync::mpsc::channel();
    spawn_thread(name, move || drop(sender.send(work())))?;
    loop {
        match done.recv_timeout(std::time::Duration::from_millis(limit_ms)) {
            Ok(result) => return Ok(Some(result)),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) if comes_on() => {}
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => return Ok(None),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                return Err(crate::error::Error::internal(format!("the work of thread {name} panicked")));
            }
        }
    }
}

/// A seed for random numbers where the user gave none.
pub fn random_seed() -> u64 {
    fastrand::u64(..)
}

/// A random id, for jobs and leaders.
pub fn random_id() -> u128 {
    fastrand::u128(..)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::Wake;

    use super::*;

    struct Bell(mpsc::Sender<()>);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.send(()).expect("the test listens");
        }
    }

    #[test]
    fn the_virtual_clock_wakes_when_it_is_moved() {
        let clock = VirtualClock::new(100);
        let (sender, woken) = mpsc::channel();
        let waker = Waker::from(Arc::new(Bell(sender)));
        clock.wake_at(200, &waker);
        clock.advance_to(199);
        assert!(woken.try_recv().is_err());
        clock.advance_to(200);
        assert!(woken.try_recv().is_ok());
    }
}
