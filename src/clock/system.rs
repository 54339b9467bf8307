//! The real clock, and the thread that wakes those who wait for it.
//!
//! Machines set their clocks. The time that jobs see never goes back all the same: when the clock of the machine was set back, theirs goes on at half
//! the speed until it has been caught up with, so that what waits for a time waits twice as long at most, and not for as long as the clock was wrong. Waiting
//! for a while (rather than until a time) does not look at the machine's clock at all.

use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::{Clock, Sleeper, pop_due, spawn_thread};

/// The real clock. One thread of its own serves all who wait; it starts with the first of them, unless it was told to before, and ends with
/// the clock, or when the clock is put to rest.
#[derive(Debug)]
pub struct SystemClock {
    time: Arc<RealTime>,
    alarms: Mutex<Option<Arc<Alarms>>>,
}

impl SystemClock {
    /// The real clock.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        SystemClock { time: Arc::new(RealTime::new()), alarms: Mutex::new(None) }
    }

    fn alarms(&self) -> MutexGuard<'_, Option<Arc<Alarms>>> {
        self.alarms.lock().expect("no holder of this lock panics")
    }

    fn running_alarms(&self) -> Arc<Alarms> {
        let start = || Alarms::start(&self.time).expect("the system has a thread for the clock");
        Arc::clone(self.alarms().get_or_insert_with(start))
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        self.time.now_ms()
    }

    fn monotonic_nanos(&self) -> u64 {
        self.time.monotonic_nanos()
    }

    fn wake_at(&self, at_ms: i64, waker: &Waker) {
        if at_ms <= self.now_ms() {
            waker.wake_by_ref();
            return;
        }
        self.running_alarms().add(|state| &mut state.by_time, Sleeper { at: at_ms, waker: waker.clone() });
    }

    fn wake_at_nanos(&self, at_nanos: u64, waker: &Waker) {
        if at_nanos <= self.monotonic_nanos() {
            waker.wake_by_ref();
            return;
        }
        let at = i64::try_from(at_nanos).unwrap_or(i64::MAX);
        self.running_alarms().add(|state| &mut state.by_nanos, Sleeper { at, waker: waker.clone() });
    }

    fn start(&self) -> std::io::Result<()> {
        let mut alarms = self.alarms();
        if alarms.is_none() {
            *alarms = Some(Alarms::start(&self.time)?);
        }
        Ok(())
    }

    fn rest(&self) {
        if let Some(alarms) = self.alarms().take() {
            alarms.close();
        }
    }
}

impl Drop for SystemClock {
    fn drop(&mut self) {
        self.rest();
    }
}

/// By how much the machine's clock may be behind what it showed before without being taken for set back: threads look at it one after another.
const SET_BACK_MS: i64 = 1_000;

/// The time of the machine, made one that never goes back.
#[derive(Debug)]
struct RealTime {
    started: Instant,
    /// The latest time that was given.
    latest: AtomicI64,
    /// While the machine's clock is behind that: since when, by [`Self::monotonic_nanos`], and what was the latest time then.
    behind: Mutex<Option<(u64, i64)>>,
}

impl RealTime {
    fn new() -> Self {
        RealTime { started: Instant::now(), latest: AtomicI64::new(i64::MIN), behind: Mutex::new(None) }
    }

    fn monotonic_nanos(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn now_ms(&self) -> i64 {
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        self.now_by(wall.map_or(0, |elapsed| elapsed.as_millis() as i64), || self.monotonic_nanos())
    }

    /// The time when the machine's clock shows this.
    fn now_by(&self, wall_ms: i64, monotonic_nanos: impl Fn() -> u64) -> i64 {
        let latest = self.latest.fetch_max(wall_ms, SeqCst);
        if latest.saturating_sub(wall_ms) < SET_BACK_MS {
            return latest.max(wall_ms);
        }
        let mut behind = self.behind.lock().expect("no holder of this lock panics");
        let nanos = monotonic_nanos();
        let slowed = |(since, at): (u64, i64)| at.saturating_add((nanos.saturating_sub(since) / 2_000_000) as i64);
        // The machine's clock may have been right again in between.
        let now = match *behind {
            Some(known) if slowed(known) >= latest => slowed(known),
            _ => {
                *behind = Some((nanos, latest));
                latest
            }
        };
        self.latest.fetch_max(now, SeqCst).max(now)
    }
}

/// The longest wait before the machine's clock is read again: it may have been set in the meantime.
const ALARM_CHECK_MS: i64 = 10_000;

/// Those who wait for the real clock, and the thread that wakes them.
#[derive(Debug)]
struct Alarms {
    time: Arc<RealTime>,
    state: Mutex<AlarmState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct AlarmState {
    /// By the time in milliseconds.
    by_time: BinaryHeap<Sleeper>,
    /// By [`RealTime::monotonic_nanos`].
    by_nanos: BinaryHeap<Sleeper>,
    closed: bool,
}

impl Alarms {
    fn start(time: &Arc<RealTime>) -> std::io::Result<Arc<Self>> {
        let alarms = Alarms { time: Arc::clone(time), state: Mutex::default(), changed: Condvar::new() };
        let alarms = Arc::new(alarms);
        let served = Arc::clone(&alarms);
        spawn_thread("flott-clock", move || served.serve())?;
        Ok(alarms)
    }

    fn add(&self, heap: impl FnOnce(&mut AlarmState) -> &mut BinaryHeap<Sleeper>, sleeper: Sleeper) {
        let mut state = self.lock();
        let sleepers = heap(&mut state);
        let is_first = sleepers.peek().is_none_or(|first| sleeper.at < first.at);
        sleepers.push(sleeper);
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
            let (now_ms, nanos) = (self.time.now_ms(), self.time.monotonic_nanos() as i64);
            let mut due = pop_due(&mut state.by_time, now_ms);
            due.extend(pop_due(&mut state.by_nanos, nanos));
            if !due.is_empty() {
                drop(state);
                due.into_iter().for_each(|sleeper| sleeper.waker.wake());
                state = self.lock();
                continue;
            }
            let until_time = state.by_time.peek().map_or(ALARM_CHECK_MS, |first| first.at.saturating_sub(now_ms));
            let until_nanos = state.by_nanos.peek().map_or(i64::MAX, |first| first.at.saturating_sub(nanos));
            let wait = Duration::from_millis(until_time.clamp(1, ALARM_CHECK_MS) as u64)
                .min(Duration::from_nanos(until_nanos.max(1) as u64));
            state = self.changed.wait_timeout(state, wait).expect("no holder of this lock panics").0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::Wake;

    use super::*;

    struct Bell(mpsc::Sender<Instant>);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.send(Instant::now()).expect("the test listens");
        }
    }

    fn bell() -> (Waker, mpsc::Receiver<Instant>) {
        let (sender, woken) = mpsc::channel();
        (Waker::from(Arc::new(Bell(sender))), woken)
    }

    #[test]
    fn the_real_clock_wakes_from_any_thread_and_in_order() {
        let clock = SystemClock::new();
        let (waker, woken) = bell();
        let (now, begun) = (clock.now_ms(), Instant::now());
        clock.wake_at(now + 30, &waker);
        clock.wake_at(now + 10, &waker);
        clock.wake_at(now, &waker);
        let times: Vec<u128> = (0..3).map(|_| (woken.recv().unwrap() - begun).as_millis()).collect();
        // A millisecond was under way.
        assert!(times[1] >= 9 && times[2] >= 29, "{times:?}");
    }

    #[test]
    fn who_waits_for_a_while_is_woken_beside_those_who_wait_for_a_time() {
        let clock = SystemClock::new();
        let (waker, woken) = bell();
        clock.wake_at(clock.now_ms() + 600_000, &waker);
        let begun = Instant::now();
        clock.wake_at_nanos(clock.monotonic_nanos() + 20_000_000, &waker);
        clock.wake_at_nanos(0, &waker);
        woken.recv().unwrap();
        assert!((woken.recv().unwrap() - begun).as_millis() >= 20);
    }

    #[test]
    fn a_clock_that_rested_wakes_again() {
        let clock = SystemClock::new();
        let (waker, woken) = bell();
        clock.wake_at(clock.now_ms() + 60_000, &waker);
        clock.rest();
        clock.wake_at(clock.now_ms() + 5, &waker);
        woken.recv().unwrap();
    }

    #[test]
    fn time_goes_on_at_half_the_speed_while_the_machine_s_clock_is_behind() {
        let time = RealTime::new();
        let nanos = |ms: u64| move || ms * 1_000_000;
        assert_eq!(time.now_by(100_000, nanos(0)), 100_000);
        assert_eq!(time.now_by(99_500, nanos(1)), 100_000, "another thread was quicker");
        // Set back by 60 seconds.
        assert_eq!(time.now_by(40_000, nanos(10)), 100_000);
        assert_eq!(time.now_by(50_000, nanos(10_010)), 105_000);
        assert_eq!(time.now_by(103_000, nanos(63_010)), 131_500);
        assert_eq!(time.now_by(161_000, nanos(121_010)), 161_000, "it has been caught up with");
        assert_eq!(time.now_by(261_000, nanos(221_010)), 261_000);
        // And once more.
        assert_eq!(time.now_by(200_000, nanos(222_010)), 261_000);
        assert_eq!(time.now_by(202_000, nanos(224_010)), 262_000);
    }
}
