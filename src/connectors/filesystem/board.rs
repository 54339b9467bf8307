//! What the writers of one sink tell each other: which partitions are begun, who holds rows of them that are not visible yet, and who
//! has come to the end of its input.
//!
//! Two promises rest on it. A partition is marked complete once, by the writer that was the last to make its rows visible. What is
//! written at the end of the input becomes visible together, when all writers have come there: if one of them fails before, nothing
//! does.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use super::part::Part;
use crate::clock::random_seed;
use crate::error::Result;
use crate::types::{JobId, OperatorId, SubtaskIndex, Watermark};

/// The boards of the sinks that are at work in this process.
#[derive(Debug, Default)]
pub struct CommitBoards(Mutex<HashMap<(JobId, OperatorId), Arc<CommitBoard>>>);

impl CommitBoards {
    /// The board of a sink with so many writers: new for the first that comes.
    pub fn join(&self, job: JobId, operator: OperatorId, writers: u32) -> Arc<CommitBoard> {
        let mut boards = self.0.lock().expect("no holder of this lock panics");
        Arc::clone(boards.entry((job, operator)).or_insert_with(|| Arc::new(CommitBoard::new(writers))))
    }

    /// A job has ended. Parts that waited for a writer that did not come to its end are removed.
    pub fn release_job(&self, job: JobId) {
        self.0.lock().expect("no holder of this lock panics").retain(|(of, _), _| *of != job);
    }
}

/// The board of one sink.
#[derive(Debug)]
pub struct CommitBoard {
    uid: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// How far each writer has come in event time; the maximum when its input has ended.
    watermarks: Vec<Watermark>,
    /// The partitions that are not complete yet.
    pending: BTreeMap<Vec<u8>, Pending>,
    /// The last parts of the writers that have come to their end before the others.
    last_parts: Vec<Part>,
}

#[derive(Debug)]
struct Pending {
    /// When it was begun (by the clock), or its own time.
    time_ms: i64,
    /// The writers that hold rows of it that are not visible yet.
    held_by: BTreeSet<SubtaskIndex>,
}

/// What the last writer has to do for all.
#[derive(Debug, Default)]
pub struct LastWill {
    /// Parts to be made visible.
    pub parts: Vec<Part>,
    /// Partitions to be marked complete after that.
    pub partitions: Vec<Vec<u8>>,
}

impl CommitBoard {
    fn new(writers: u32) -> Self {
        let watermarks = vec![Watermark::MIN; writers as usize];
        let state = State { watermarks, pending: BTreeMap::new(), last_parts: Vec::new() };
        CommitBoard { uid: random_uid(), state: Mutex::new(state) }
    }

    /// A random id that the names of all parts of the sink share.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }

    /// A writer holds rows of a partition. `time` is asked for when the partition is new.
    pub fn hold(&self, writer: SubtaskIndex, partition: &[u8], time: impl FnOnce() -> Result<i64>) -> Result<()> {
        let mut state = self.lock();
        if let Some(pending) = state.pending.get_mut(partition) {
            pending.held_by.insert(writer);
            return Ok(());
        }
        let pending = Pending { time_ms: time()?, held_by: BTreeSet::from([writer]) };
        state.pending.insert(partition.to_vec(), pending);
        Ok(())
    }

    /// A writer has made all rows that it had of a partition visible.
    pub fn publish(&self, writer: SubtaskIndex, partition: &[u8]) {
        if let Some(pending) = self.lock().pending.get_mut(partition) {
            pending.held_by.remove(&writer);
        }
    }

    /// Whether a partition is pending.
    pub fn has_pending(&self) -> bool {
        !self.lock().pending.is_empty()
    }

    /// The pending partitions whose time is no later than this.
    pub fn due(&self, until_ms: i64) -> Vec<Vec<u8>> {
        let state = self.lock();
        let due = state.pending.iter().filter(|(_, pending)| pending.time_ms <= until_ms);
        due.map(|(partition, _)| partition.clone()).collect()
    }

    /// A writer has published what it had up to this watermark. The watermark of all.
    pub fn advance(&self, writer: SubtaskIndex, watermark: Watermark) -> Watermark {
        let mut state = self.lock();
        let own = &mut state.watermarks[writer.0 as usize];
        *own = (*own).max(watermark);
        state.watermarks.iter().copied().min().unwrap_or(watermark)
    }

    /// Takes the pending partitions whose time is no later than this and of which nobody holds rows: the caller marks them.
    pub fn take_complete(&self, until_ms: i64) -> Vec<Vec<u8>> {
        let mut state = self.lock();
        let complete = |pending: &Pending| pending.time_ms <= until_ms && pending.held_by.is_empty();
        let taken: Vec<Vec<u8>> =
            state.pending.iter().filter(|(_, pending)| complete(pending)).map(|(partition, _)| partition.clone()).collect();
        taken.iter().for_each(|partition| drop(state.pending.remove(partition)));
        taken
    }

    /// The input of a writer has ended, with these parts. When it is the last one, it does what is left for all.
    pub fn finish(&self, writer: SubtaskIndex, parts: Vec<Part>) -> LastWill {
        let mut state = self.lock();
        state.last_parts.extend(parts);
        state.watermarks[writer.0 as usize] = Watermark::MAX;
        if state.watermarks.iter().any(|watermark| *watermark != Watermark::MAX) {
            return LastWill::default();
        }
        let partitions = std::mem::take(&mut state.pending).into_keys().collect();
        LastWill { parts: std::mem::take(&mut state.last_parts), partitions }
    }

    /// The parts of writers that have come to their end: a flush makes them visible too.
    pub fn take_last_parts(&self) -> Vec<Part> {
        std::mem::take(&mut self.lock().last_parts)
    }
}

/// A random id in the layout of a UUID.
fn random_uid() -> String {
    let hex = format!("{:016x}{:016x}", random_seed(), random_seed());
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
