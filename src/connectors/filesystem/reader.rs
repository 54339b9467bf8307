//! Reads files on a thread of its own, and hands decoded batches to the task.
//!
//! One thread a reader: it reads, decompresses and decodes, so that the task only ever moves finished batches. What waits between
//! them is bounded ([`QUEUED_BATCHES`]). With several splits open each has a queue and a position of its own; the thread works for
//! the preferred split first, and reads ahead for the others only while there is room.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use super::split::FileSplit;
use super::worker::{FileWorker, Produced};
use crate::clock::spawn_thread;
use crate::error::{Error, Result};
use crate::runtime::{SourceEvent, SourceReader, Split};
use crate::types::{Batch, SplitId};

/// Batches that wait for the task, of all splits together: a few megabytes, enough that neither side waits for the other.
const QUEUED_BATCHES: usize = 6;

/// What the task and the thread share.
struct Shared {
    state: Mutex<State>,
    /// Wakes the thread: there is room, another split, or the reader is gone.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    open: BTreeMap<SplitId, OpenSplit>,
    preferred: Option<SplitId>,
    /// Splits that give nothing for a while.
    paused: BTreeSet<SplitId>,
    /// The thread is gone.
    panicked: Option<Error>,
    queued: usize,
    waker: Option<Waker>,
    closed: bool,
}

struct OpenSplit {
    /// As a checkpoint would keep it: read up to the last batch that the task took.
    split: FileSplit,
    queue: VecDeque<(Batch, u64)>,
    read_to_end: bool,
    /// Why it was not read further than what is queued.
    failure: Option<Error>,
}

impl State {
    /// The split that the task takes from next.
    fn current(&self) -> Option<SplitId> {
        let takes = |id: &SplitId| self.open.contains_key(id) && !self.paused.contains(id);
        self.preferred.filter(takes).or_else(|| self.open.keys().find(|id| takes(id)).copied())
    }

    /// The split that the thread works for next.
    fn next_to_read(&self) -> Option<SplitId> {
        let current = self.current()?;
        let starved = self.open[&current].queue.is_empty();
        if self.queued >= QUEUED_BATCHES && !starved {
            return None;
        }
        let unread = |id: &SplitId| !self.open[id].read_to_end;
        if unread(&current) {
            return Some(current);
        }
        if self.queued >= QUEUED_BATCHES {
            return None;
        }
        // Read ahead for the split with the shortest queue, the earliest of them.
        self.open.keys().filter(|id| unread(id)).min_by_key(|id| self.open[id].queue.len()).copied()
    }

    fn wake_task(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The thread's panics are caught by its own failure path; a poisoned lock still holds a consistent state.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Reads the files of one subtask.
pub struct FileReader {
    shared: Arc<Shared>,
    worker: Option<FileWorker>,
    no_more_splits: bool,
    asked: bool,
}

impl FileReader {
    /// A reader; its thread starts with the first split.
    pub fn new(worker: FileWorker) -> Self {
        let shared = Arc::new(Shared { state: Mutex::new(State::default()), changed: Condvar::new() });
        FileReader { shared, worker: Some(worker), no_more_splits: false, asked: false }
    }
}

impl SourceReader for FileReader {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        let mut state = self.shared.lock();
        for split in splits {
            let open =
                OpenSplit { split: FileSplit::parse(&split.state)?, queue: VecDeque::new(), read_to_end: false, failure: None };
            state.open.insert(split.id, open);
        }
        self.asked = false;
        state.wake_task();
        drop(state);
        self.shared.changed.notify_one();
        if let Some(worker) = self.worker.take() {
            let shared = Arc::clone(&self.shared);
            spawn_thread("flott-file-reader", move || Sentinel { shared: &shared }.run(worker))?;
        }
        Ok(())
    }

    fn no_more_splits(&mut self) {
        self.no_more_splits = true;
        self.shared.lock().wake_task();
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<SourceEvent>> {
        let mut state = self.shared.lock();
        let Some(id) = state.current() else {
            if self.no_more_splits {
                return Poll::Ready(Ok(SourceEvent::End));
            }
            if !self.asked {
                self.asked = true;
                return Poll::Ready(Ok(SourceEvent::NeedSplit));
            }
            state.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        let panicked = state.panicked.clone();
        let open = state.open.get_mut(&id).expect("the current split is open");
        if let Some((batch, next)) = open.queue.pop_front() {
            open.split.position = Some(next);
            state.queued -= 1;
            drop(state);
            self.shared.changed.notify_one();
            return Poll::Ready(Ok(SourceEvent::Batch(id, batch)));
        }
        // Only now, so that the rows before a failure do not depend on how far the thread is ahead.
        if let Some(failure) = open.failure.take().or(panicked) {
            return Poll::Ready(Err(failure));
        }
        if open.read_to_end {
            state.open.remove(&id);
            drop(state);
            self.shared.changed.notify_one();
            return Poll::Ready(Ok(SourceEvent::SplitFinished(id)));
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    fn is_busy(&self) -> bool {
        !self.shared.lock().open.is_empty()
    }

    fn split_name(&self, split: &Split) -> String {
        let known = FileSplit::parse(&split.state).ok();
        known.map_or_else(
            || format!("split {}", split.id),
            |file| match (file.start, file.end) {
                (0, None) => file.path.display().to_string(),
                (start, _) => format!("{} from byte {start}", file.path.display()),
            },
        )
    }

    fn prefer(&mut self, split: SplitId) {
        let mut state = self.shared.lock();
        if state.preferred != Some(split) {
            state.preferred = Some(split);
            drop(state);
            self.shared.changed.notify_one();
        }
    }

    fn pause(&mut self, splits: &BTreeSet<SplitId>) {
        let mut state = self.shared.lock();
        if state.paused != *splits {
            state.paused = splits.clone();
            drop(state);
            self.shared.changed.notify_one();
        }
    }

    fn snapshot(&self) -> Result<Vec<Split>> {
        Ok(self.shared.lock().open.iter().map(|(id, open)| open.split.to_split(*id)).collect())
    }
}

impl Drop for FileReader {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
    }
}

/// The life of the thread. If it panics, the task is told instead of waiting for ever.
struct Sentinel<'a> {
    shared: &'a Shared,
}

impl Sentinel<'_> {
    fn run(self, mut worker: FileWorker) {
        let mut state = self.shared.lock();
        while !state.closed {
            let Some(id) = state.next_to_read() else {
                state = self.shared.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
                continue;
            };
            let (split, open_files) = (state.open[&id].split.clone(), state.open.len());
            drop(state);
            let produced = worker.produce(id, &split, open_files);
            state = self.shared.lock();
            let state = &mut *state;
            let Some(open) = state.open.get_mut(&id) else { continue };
            match produced {
                Ok(Produced::Batch { batch, next }) => {
                    open.queue.push_back((batch, next));
                    state.queued += 1;
                }
                Ok(Produced::End) => open.read_to_end = true,
                Err(error) => {
                    open.read_to_end = true;
                    open.failure = Some(error);
                }
            }
            state.wake_task();
        }
    }
}

impl Drop for Sentinel<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = self.shared.lock();
            state.panicked = Some(Error::internal("the thread that reads files panicked"));
            state.wake_task();
        }
    }
}
