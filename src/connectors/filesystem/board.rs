//! What the writers of one sink and its committer tell each other: how the parts are named, which partitions are begun, who holds rows of
//! them that are not visible yet, and who has come to the end of its input.
//!
//! With checkpoints, only the names and the partitions matter: the committer alone makes parts visible and marks partitions. Without
//! them, two promises rest on the board. A partition is marked complete once, by the writer that was the last to make its rows visible. What is
//! written at the end of the input becomes visible together, when all writers have come there: if one of them fails before, nothing
//! does.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use super::part::Part;
use crate::clock::random_seed;
use crate::error::Result;
use crate::types::{JobId, OperatorId, SubtaskIndex, Watermark};

/// The boards of the sinks that are at work in this process.
#[derive(Debug, Default)]
pub struct CommitBoards(Mutex<HashMap<(JobId, OperatorId), Arc<CommitBoard>>>);

impl CommitBoards {
    /// The board of a sink: new for the first that asks.
    pub fn of(&self, job: JobId, operator: OperatorId) -> Arc<CommitBoard> {
        let mut boards = self.0.lock().expect("no holder of this lock panics");
        Arc::clone(boards.entry((job, operator)).or_default())
    }

    /// The board of a sink with so many writers, for one of them.
    pub fn join(&self, job: JobId, operator: OperatorId, writers: u32) -> Arc<CommitBoard> {
        let board = self.of(job, operator);
        board.lock().watermarks.resize(writers as usize, Watermark::MIN);
        board
    }

    /// A job has ended. Parts that waited for a writer that did not come to its end are removed.
    pub fn release_job(&self, job: JobId) {
        self.0.lock().expect("no holder of this lock panics").retain(|(of, _), _| *of != job);
    }
}

/// The board of one sink.
#[derive(Debug)]
pub struct CommitBoard {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What the names of all parts of this job share, and of all jobs that go on from its checkpoints.
    lineage: String,
    /// What the names of the parts of this attempt share besides, so that no name comes twice.
    attempt: String,
    /// Attempts that the committer has begun.
    attempts: u32,
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

/// What a checkpoint keeps of a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardCheckpoint {
    lineage: String,
    /// Attempts until then.
    attempts: u32,
    /// Folders of partitions with their times.
    pending: BTreeMap<String, i64>,
}

fn incomplete(state: &State) -> BTreeMap<String, i64> {
    let text = |folder: &[u8]| String::from_utf8_lossy(folder).into_owned();
    state.pending.iter().map(|(folder, pending)| (text(folder), pending.time_ms)).collect()
}

/// What the last writer has to do for all.
#[derive(Debug, Default)]
pub struct LastWill {
    /// Parts to be made visible.
    pub parts: Vec<Part>,
    /// Partitions to be marked complete after that.
    pub partitions: Vec<Vec<u8>>,
}

impl Default for CommitBoard {
    fn default() -> Self {
        let state = State {
            lineage: random_lineage(),
            attempt: new_attempt(0),
            attempts: 0,
            watermarks: Vec::new(),
            pending: BTreeMap::new(),
            last_parts: Vec::new(),
        };
        CommitBoard { state: Mutex::new(state) }
    }
}

impl CommitBoard {
    /// What the names of all parts of this attempt begin with; together an id in the layout of a UUID.
    pub fn prefix(&self) -> String {
        let state = self.lock();
        format!("part-{}-{}-", state.lineage, state.attempt)
    }

    /// What the names of all parts of this job begin with, and of the jobs whose checkpoints it goes on from.
    pub fn lineage_prefix(&self) -> String {
        format!("part-{}-", self.lock().lineage)
    }

    /// Begins an attempt: with the lineage and the incomplete partitions of a checkpoint, or with none. Whether earlier attempts may have
    /// left parts behind.
    pub fn begin_attempt(&self, restored: Option<BoardCheckpoint>) -> bool {
        let mut state = self.lock();
        let has_past = restored.is_some() || state.attempts > 0;
        let anew = || BoardCheckpoint { lineage: state.lineage.clone(), attempts: state.attempts, pending: BTreeMap::new() };
        let restored = restored.unwrap_or_else(anew);
        let attempts = restored.attempts.max(state.attempts) + 1;
        let pending = |(folder, time_ms): (String, i64)| (folder.into_bytes(), Pending { time_ms, held_by: BTreeSet::new() });
        *state = State {
            lineage: restored.lineage,
            attempt: new_attempt(attempts),
            attempts,
            watermarks: Vec::new(),
            pending: restored.pending.into_iter().map(pending).collect(),
            last_parts: Vec::new(),
        };
        has_past
    }

    /// What a checkpoint keeps.
    pub fn checkpoint(&self) -> BoardCheckpoint {
        let state = self.lock();
        BoardCheckpoint { lineage: state.lineage.clone(), attempts: state.attempts, pending: incomplete(&state) }
    }

    /// The partitions that are not complete, with their times.
    pub fn incomplete(&self) -> BTreeMap<String, i64> {
        incomplete(&self.lock())
    }

    /// A partition is begun whose rows are visible.
    pub fn begin_partition(&self, folder: &str, time_ms: i64) {
        let mut state = self.lock();
        let pending = Pending { time_ms, held_by: BTreeSet::new() };
        state.pending.entry(folder.as_bytes().to_vec()).or_insert(pending);
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

/// The first four groups of a UUID, at random.
fn random_lineage() -> String {
    let hex = format!("{:016x}{:016x}", random_seed(), random_seed());
    format!("{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20])
}

/// The last group of a UUID, at random but for its begin: the parts of an attempt are listed after those of the attempts before.
fn new_attempt(attempts: u32) -> String {
    format!("{attempts:04}a{}", &format!("{:016x}", random_seed())[..7])
}
