//! Threads for work that blocks: it reads directories, writes checkpoints, commits files.
//!
//! They are no threads of tokio. There is a limit to how many there are, and the system may give fewer; so work on them must never wait for other
//! work on them, or all could wait for what none has room to do. `object_store` does just that on a thread of tokio: it hands each operation on to
//! another one. On these threads it does them where it is.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::spawn_thread;

/// Work for a thread.
pub(super) type Work = Box<dyn FnOnce() + Send>;

/// Threads at most: enough to keep a disk busy that answers slowly, few enough that a job with many tasks needs no more memory for its snapshots.
const THREADS_MAX: usize = 32;
/// How long a thread without work stays, the last one apart: that one may not be to be had again.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// The threads. They start with work, and end when this is dropped.
#[derive(Debug, Default)]
pub(super) struct BlockingThreads(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Work that no thread has begun.
    waiting: VecDeque<Work>,
    threads: usize,
    /// Those of the threads that wait for work.
    idle: usize,
    closed: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} threads, {} idle, {} waiting", self.threads, self.idle, self.waiting.len())
    }
}

impl BlockingThreads {
    /// Has a thread do this, before what is handed over later is begun. Fails when the system gives no thread at all.
    pub(super) fn run(&self, work: Work) -> io::Result<()> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(io::Error::other("the threads for work that blocks have ended"));
        }
        state.waiting.push_back(work);
        if state.waiting.len() <= state.idle {
            self.0.changed.notify_one();
        } else if state.threads < THREADS_MAX {
            let shared = Arc::clone(&self.0);
            match spawn_thread("flott-blocking", move || shared.serve()) {
                Ok(_) => state.threads += 1,
                Err(cause) if state.threads == 0 => {
                    state.waiting.pop_back();
                    return Err(cause);
                }
                // Those that there are come to it.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Forgets what was not begun, and waits for the rest, but no longer than this.
    pub(super) fn close(&self, within: Duration) {
        let until = Instant::now() + within;
        let mut state = self.0.close();
        while state.threads > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.0.wait(state, left);
        }
    }
}

impl Drop for BlockingThreads {
    fn drop(&mut self) {
        drop(self.0.close());
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, longest: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, longest).expect("no holder of this lock panics").0
    }

    fn close(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.closed = true;
        let forgotten = std::mem::take(&mut state.waiting);
        // What is dropped with it may look at the state.
        drop(state);
        drop(forgotten);
        self.changed.notify_all();
        self.lock()
    }

    /// The life of a thread.
    fn serve(&self) {
        let mut state = self.lock();
        let mut idle_since = None;
        while !state.closed {
            if let Some(work) = state.waiting.pop_front() {
                drop(state);
                // Who handed it over notices that it did not come to its end.
                let _ = catch_unwind(AssertUnwindSafe(work));
                state = self.lock();
                idle_since = None;
                continue;
            }
            let idle = idle_since.get_or_insert_with(Instant::now).elapsed();
            if idle >= IDLE_MAX && state.threads > 1 {
                break;
            }
            state.idle += 1;
            state = self.wait(state, IDLE_MAX);
            state.idle -= 1;
        }
        state.threads -= 1;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn more_work_than_threads_is_done_in_the_end() {
        let threads = BlockingThreads::default();
        let (done, results) = mpsc::channel();
        let (go, gone) = (Arc::new(Mutex::new(())), THREADS_MAX * 3);
        let held = go.lock().unwrap();
        for number in 0..gone {
            let (done, go) = (done.clone(), Arc::clone(&go));
            let work = move || {
                drop(go.lock());
                done.send(number).unwrap();
            };
            threads.run(Box::new(work)).unwrap();
        }
        assert_eq!(threads.0.lock().threads, THREADS_MAX);
        drop(held);
        let mut numbers: Vec<usize> = results.iter().take(gone).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..gone).collect::<Vec<_>>());
    }

    #[test]
    fn what_panics_ends_nothing_but_itself() {
        let threads = BlockingThreads::default();
        for number in 0..10 {
            let (done, result) = mpsc::channel();
            threads.run(Box::new(move || done.send(number).unwrap())).unwrap();
            assert_eq!(result.recv().unwrap(), number);
            let (done, result) = mpsc::channel::<()>();
            threads
                .run(Box::new(move || {
                    let _done = done;
                    std::panic::resume_unwind(Box::new("a panic"));
                }))
                .unwrap();
            assert!(result.recv().is_err());
        }
    }

    #[test]
    fn what_was_not_begun_is_forgotten_at_the_end() {
        let threads = BlockingThreads::default();
        let (begun, has_begun) = mpsc::channel();
        let (go, goes) = mpsc::channel::<()>();
        let goes = Arc::new(Mutex::new(goes));
        for _ in 0..THREADS_MAX + 1 {
            let (begun, goes) = (begun.clone(), Arc::clone(&goes));
            let work = move || {
                begun.send(()).unwrap();
                let _ = goes.lock().map(|goes| goes.recv());
            };
            threads.run(Box::new(work)).unwrap();
        }
        (0..THREADS_MAX).for_each(|_| has_begun.recv().unwrap());
        threads.close(Duration::from_millis(1));
        drop(go);
        threads.close(Duration::from_secs(60));
        assert_eq!(threads.0.lock().threads, 0);
        drop(begun);
        assert!(has_begun.recv().is_err(), "the last one was not begun");
        assert!(threads.run(Box::new(|| {})).is_err());
    }
}
