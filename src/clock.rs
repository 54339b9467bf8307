//! The only place that reads time, waits, draws randomness or starts threads.
//!
//! The engine sees a [`Clock`]; production has [`SystemClock`], tests and simulations [`VirtualClock`], which moves only when
//! told to. So a whole job can be run again from one seed.

#![allow(clippy::disallowed_methods)] // this is the place that the lint sends everyone to

mod blocking;
mod executor;

use std::collections::BinaryHeap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

pub use executor::{Ended, Executor, Panic, TokioExecutor, run_blocking_on, run_on};

/// Time as a job sees it.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Wall-clock time in milliseconds since the epoch: processing time.
    fn now_ms(&self) -> i64;

    /// Nanoseconds since some fixed moment, never going back: for durations and metrics.
    fn monotonic_nanos(&self) -> u64;

    /// Wakes the waker once [`Clock::now_ms`] is at least `at_ms`.
    fn wake_at(&self, at_ms: i64, waker: &Waker);

    /// Makes sure that whoever waits will be woken: before the first of them does.
    fn start(&self) -> std::io::Result<()> {
        Ok(())
    }

    /// Nobody waits any more: lets go of who is left, and of the thread that would wake them, until somebody waits again.
    fn rest(&self) {}
}

/// The real clock. One thread of its own serves all who wait; it starts with the first of them, unless it was told to before, and ends with
/// the clock, or when the clock is put to rest.
#[derive(Debug)]
pub struct SystemClock {
    started: std::time::Instant,
    alarms: Mutex<Option<Arc<Alarms>>>,
}

impl SystemClock {
    /// The real clock.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        SystemClock { started: std::time::Instant::now(), alarms: Mutex::new(None) }
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        wall_clock_ms()
    }

    fn monotonic_nanos(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn wake_at(&self, at_ms: i64, waker: &Waker) {
        if at_ms <= self.now_ms() {
            waker.wake_by_ref();
            return;
        }
        let start = || Alarms::start().expect("the system has a thread for the clock");
        self.alarms().get_or_insert_with(start).add(Sleeper { at_ms, waker: waker.clone() });
    }

    fn start(&self) -> std::io::Result<()> {
        let mut alarms = self.alarms();
        if alarms.is_none() {
            *alarms = Some(Alarms::start()?);
        }
        Ok(())
    }

    fn rest(&self) {
        if let Some(alarms) = self.alarms().take() {
            alarms.close();
        }
    }
}

impl SystemClock {
    fn alarms(&self) -> MutexGuard<'_, Option<Arc<Alarms>>> {
        self.alarms.lock().expect("no holder of this lock panics")
    }
}

impl Drop for SystemClock {
    fn drop(&mut self) {
        self.rest();
    }
}

fn wall_clock_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |elapsed| elapsed.as_millis() as i64)
}

/// The longest wait before the wall clock is read again: it may have been set in the meantime.
const ALARM_CHECK_MS: i64 = 10_000;

/// Those who wait for the real clock, and the thread that wakes them.
#[derive(Debug, Default)]
struct Alarms {
    state: Mutex<AlarmState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct AlarmState {
    sleepers: BinaryHeap<Sleeper>,
    closed: bool,
}

impl Alarms {
    fn start() -> std::io::Result<Arc<Self>> {
        let alarms = Arc::new(Alarms::default());
        let served = Arc::clone(&alarms);
        spawn_thread("flott-clock", move || served.serve())?;
        Ok(alarms)
    }

    fn add(&self, sleeper: Sleeper) {
        let mut state = self.lock();
        let is_first = state.sleepers.peek().is_none_or(|first| sleeper.at_ms < first.at_ms);
        state.sleepers.push(sleeper);
        if is_first {
            self.changed.notify_one();
        }
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, AlarmState> {
        self.state.lock().expect("no holder of this lock panics")
    }

    fn serve(&self) {
        let mut state = self.lock();
        while !state.closed {
            let now_ms = wall_clock_ms();
            let due = pop_due(&mut state.sleepers, now_ms);
            if !due.is_empty() {
                drop(state);
                due.into_iter().for_each(|sleeper| sleeper.waker.wake());
                state = self.lock();
                continue;
            }
            let next_ms = state.sleepers.peek().map_or(i64::MAX, |sleeper| sleeper.at_ms);
            let wait = std::time::Duration::from_millis(next_ms.saturating_sub(now_ms).clamp(1, ALARM_CHECK_MS) as u64);
            state = self.changed.wait_timeout(state, wait).expect("no holder of this lock panics").0;
        }
    }
}

/// Takes out those who wait for `now_ms` or before, earliest first.
fn pop_due(sleepers: &mut BinaryHeap<Sleeper>, now_ms: i64) -> Vec<Sleeper> {
    let mut due = Vec::new();
    while sleepers.peek().is_some_and(|sleeper| sleeper.at_ms <= now_ms) {
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

    /// When the first of those who wait will be woken; none = nobody waits.
    pub fn next_alarm(&self) -> Option<i64> {
        let state = self.state.lock().expect("no holder of this lock panics");
        state.sleepers.peek().map(|sleeper| sleeper.at_ms)
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
            state.sleepers.push(Sleeper { at_ms, waker: waker.clone() });
        }
    }
}

/// Waits until the clock shows `at_ms`, in whatever executor it is polled.
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

    struct Bell(mpsc::Sender<i64>);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.send(wall_clock_ms()).expect("the test listens");
        }
    }

    #[test]
    fn the_real_clock_wakes_from_any_thread_and_in_order() {
        let clock = SystemClock::new();
        let (sender, woken) = mpsc::channel();
        let waker = Waker::from(Arc::new(Bell(sender)));
        let now = clock.now_ms();
        clock.wake_at(now + 30, &waker);
        clock.wake_at(now + 10, &waker);
        clock.wake_at(now, &waker);
        let times: Vec<i64> = (0..3).map(|_| woken.recv().unwrap() - now).collect();
        assert!(times[1] >= 10 && times[2] >= 30, "{times:?}");
    }

    #[test]
    fn a_clock_that_rested_wakes_again() {
        let clock = SystemClock::new();
        let (sender, woken) = mpsc::channel();
        let waker = Waker::from(Arc::new(Bell(sender)));
        clock.wake_at(clock.now_ms() + 60_000, &waker);
        clock.rest();
        clock.wake_at(clock.now_ms() + 5, &waker);
        woken.recv().unwrap();
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
