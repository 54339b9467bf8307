//! The open sessions of all keys: which one a row belongs to, which ones it makes one, and which have ended.
//!
//! Two sessions that touch are one, as in Flink. A row is late when it joins no open session and its own would have ended already; one
//! that joins extends, however old it is. A session that has ended is not joined any more.
//!
//! A session's timer lies in a heap, at its end or before: it is moved on when it is due, not with every row. Timers follow from the
//! sessions, so no snapshot has them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use hashbrown::HashMap;

use crate::error::Result;
use crate::expr::GroupKeys;
use crate::types::hash_columns;

/// No session.
const NONE: u32 = u32::MAX;
/// The timer of a session that is not open.
const NO_TIMER: i64 = i64::MIN;
/// So many sessions of a key are looked at one by one, the newest first; then they are found by their starts.
const WALK_MAX: usize = 32;

/// A session of a key. Both bounds are local milliseconds.
#[derive(Debug, Clone, Copy)]
struct Session {
    start: i64,
    end: i64,
    timer: i64,
    key: u32,
    /// The sessions of the same key beside it.
    older: u32,
    newer: u32,
}

/// Where a row went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    /// Nowhere: it is late.
    Late,
    /// Into this session.
    In(u32),
    /// Into the first session, which has become one with the second.
    Merged { into: u32, from: u32 },
}

/// The open sessions of all keys. A session has a number, which is used again when it is released.
pub(super) struct OpenSessions {
    gap: i64,
    keys: GroupKeys,
    /// For each key its newest session.
    newest: Vec<u32>,
    /// Of keys for whose many sessions rows came far out of order: them by their starts.
    by_start: HashMap<u32, BTreeMap<i64, u32>>,
    sessions: Vec<Session>,
    free: Vec<u32>,
    timers: BinaryHeap<Reverse<(i64, u32)>>,
    /// The keys of the rows that were looked up last.
    row_keys: Vec<u32>,
    /// Keys that came with them, and may have been left without a session.
    fresh: Vec<u32>,
    hashes: Vec<u64>,
}

impl OpenSessions {
    /// Of keys of these types.
    pub(super) fn new(gap: i64, key_types: &[DataType]) -> Result<Self> {
        Ok(OpenSessions {
            gap,
            keys: GroupKeys::new(key_types)?,
            newest: Vec::new(),
            by_start: HashMap::new(),
            sessions: Vec::new(),
            free: Vec::new(),
            timers: BinaryHeap::new(),
            row_keys: Vec::new(),
            fresh: Vec::new(),
            hashes: Vec::new(),
        })
    }

    /// One more than the greatest session number ever given.
    pub(super) fn num_sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Looks the keys of rows up, before they are placed.
    pub(super) fn find_keys(&mut self, keys: &[ArrayRef], num_rows: usize) -> Result<()> {
        hash_columns(keys, num_rows, &mut self.hashes);
        self.keys.assign(keys, &self.hashes, &mut self.row_keys)?;
        self.newest.resize(self.keys.num_groups(), NONE);
        self.fresh.extend_from_slice(self.keys.fresh());
        Ok(())
    }

    /// Places a row of those whose keys were looked up. `is_over`: whether a session with this end has ended.
    #[inline]
    pub(super) fn place(&mut self, row: usize, time: i64, is_over: impl Fn(i64) -> bool) -> Placed {
        let key = self.row_keys[row];
        let (start, end) = (time, time.saturating_add(self.gap));
        let (at, newer) = self.find(key, end);
        if at == NONE || self.sessions[at as usize].end < start {
            return match is_over(end) {
                true => Placed::Late,
                false => Placed::In(self.insert(key, start, end, at, newer)),
            };
        }
        if start < self.sessions[at as usize].start {
            self.start_earlier(at, start);
        }
        let session = &mut self.sessions[at as usize];
        session.end = session.end.max(end);
        let Session { end, older, .. } = *session;
        if older == NONE || self.sessions[older as usize].end < start {
            return Placed::In(at);
        }
        self.sessions[older as usize].end = end;
        self.unlink(at);
        Placed::Merged { into: older, from: at }
    }

    /// The newest session of a key that starts by a time, and the one after it.
    #[inline]
    fn find(&mut self, key: u32, time: i64) -> (u32, u32) {
        let (mut at, mut newer) = (self.newest[key as usize], NONE);
        for _ in 0..WALK_MAX {
            if at == NONE || self.sessions[at as usize].start <= time {
                return (at, newer);
            }
            (at, newer) = (self.sessions[at as usize].older, at);
        }
        self.find_by_start(key, time)
    }

    #[cold]
    fn find_by_start(&mut self, key: u32, time: i64) -> (u32, u32) {
        let (sessions, newest) = (&self.sessions, self.newest[key as usize]);
        let by_start = self.by_start.entry(key).or_insert_with(|| {
            let older = |number: &u32| Some(sessions[*number as usize].older).filter(|older| *older != NONE);
            std::iter::successors(Some(newest), older).map(|number| (sessions[number as usize].start, number)).collect()
        });
        match by_start.range(..=time).next_back() {
            Some((_, at)) => (*at, sessions[*at as usize].newer),
            None => (NONE, by_start.first_key_value().map_or(NONE, |(_, oldest)| *oldest)),
        }
    }

    /// An older row came for a session.
    fn start_earlier(&mut self, number: u32, start: i64) {
        let session = &mut self.sessions[number as usize];
        let former = std::mem::replace(&mut session.start, start);
        if let Some(by_start) = self.by_start.get_mut(&session.key) {
            by_start.remove(&former);
            by_start.insert(start, number);
        }
    }

    /// Opens a session between two others of its key.
    fn insert(&mut self, key: u32, start: i64, end: i64, older: u32, newer: u32) -> u32 {
        let session = Session { start, end, timer: end, key, older, newer };
        let number = match self.free.pop() {
            Some(number) => {
                self.sessions[number as usize] = session;
                number
            }
            None => {
                self.sessions.push(session);
                self.sessions.len() as u32 - 1
            }
        };
        if older != NONE {
            self.sessions[older as usize].newer = number;
        }
        match newer {
            NONE => self.newest[key as usize] = number,
            newer => self.sessions[newer as usize].older = number,
        }
        if let Some(by_start) = self.by_start.get_mut(&key) {
            by_start.insert(start, number);
        }
        self.timers.push(Reverse((end, number)));
        number
    }

    /// Takes a session out of those of its key. It keeps its bounds until it is released.
    fn unlink(&mut self, number: u32) {
        let session = &mut self.sessions[number as usize];
        session.timer = NO_TIMER;
        let Session { key, start, older, newer, .. } = *session;
        if older != NONE {
            self.sessions[older as usize].newer = newer;
        }
        match newer {
            NONE => self.newest[key as usize] = older,
            newer => self.sessions[newer as usize].older = older,
        }
        if let Some(by_start) = self.by_start.get_mut(&key) {
            by_start.remove(&start);
            if by_start.len() < WALK_MAX / 2 {
                self.by_start.remove(&key);
            }
        }
    }

    /// When the first timer is due: no open session ends before.
    pub(super) fn next_timer(&self) -> Option<i64> {
        self.timers.peek().map(|Reverse((time, _))| *time)
    }

    /// Closes all sessions that have ended, the first to end first. Their numbers must be released.
    pub(super) fn close(&mut self, is_over: impl Fn(i64) -> bool, closed: &mut Vec<u32>) {
        while let Some(Reverse((time, number))) = self.timers.peek().copied().filter(|Reverse((time, _))| is_over(*time)) {
            self.timers.pop();
            let session = &mut self.sessions[number as usize];
            if session.timer != time {
                continue; // of a session that was merged into another
            }
            if session.end > time {
                session.timer = session.end;
                self.timers.push(Reverse((session.end, number)));
            } else {
                self.unlink(number);
                closed.push(number);
            }
        }
    }

    /// Forgets sessions that were closed or merged into others, and the keys that have no session now, those of rows that were late included.
    pub(super) fn release(&mut self, sessions: &[u32]) {
        let mut keys = std::mem::take(&mut self.fresh);
        keys.extend(sessions.iter().map(|number| self.sessions[*number as usize].key));
        keys.retain(|key| self.newest[*key as usize] == NONE);
        keys.sort_unstable();
        keys.dedup();
        self.keys.remove(&keys);
        keys.clear();
        self.fresh = keys;
        self.free.extend_from_slice(sessions);
    }

    /// The bounds of a session.
    pub(super) fn bounds(&self, session: u32) -> (i64, i64) {
        let Session { start, end, .. } = self.sessions[session as usize];
        (start, end)
    }

    /// The key columns of sessions.
    pub(super) fn keys(&self, sessions: &[u32]) -> Result<Vec<ArrayRef>> {
        self.keys.keys(&self.keys_of(sessions))
    }

    /// The hashes of the keys of sessions.
    pub(super) fn hashes(&self, sessions: &[u32]) -> impl Iterator<Item = u64> {
        self.keys_of(sessions).into_iter().map(|key| self.keys.hash(key))
    }

    fn keys_of(&self, sessions: &[u32]) -> Vec<u32> {
        sessions.iter().map(|number| self.sessions[*number as usize].key).collect()
    }

    /// All open sessions.
    pub(super) fn open(&self) -> Vec<u32> {
        (0..self.sessions.len() as u32).filter(|number| self.sessions[*number as usize].timer != NO_TIMER).collect()
    }

    /// The session of a row of state whose key was looked up: opened again with the first such row.
    pub(super) fn restore(&mut self, row: usize, start: i64, end: i64) -> u32 {
        let key = self.row_keys[row];
        let (older, newer) = self.find(key, start);
        if older != NONE && self.sessions[older as usize].start == start {
            return older;
        }
        self.insert(key, start, end, older, newer)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.keys.bytes()
            + self.newest.capacity() * size_of::<u32>()
            + self.sessions.capacity() * size_of::<Session>()
            + self.timers.capacity() * size_of::<Reverse<(i64, u32)>>()
            + self.by_start.values().map(BTreeMap::len).sum::<usize>() * size_of::<(i64, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Array;

    use super::*;

    /// Sessions of one key with a gap of 5, after these times came at watermarks.
    struct Script(OpenSessions);

    impl Script {
        fn new() -> Self {
            Script(OpenSessions::new(5, &[DataType::Int64]).unwrap())
        }

        fn row(&mut self, time: i64, watermark: i64) -> Placed {
            self.0.find_keys(&[Arc::new(Int64Array::from(vec![7]))], 1).unwrap();
            let placed = self.0.place(0, time, |end| end - 1 <= watermark);
            match placed {
                Placed::Merged { from, .. } => self.0.release(&[from]),
                _ => self.0.release(&[]),
            }
            placed
        }

        fn close(&mut self, watermark: i64) -> Vec<(i64, i64)> {
            let mut closed = Vec::new();
            self.0.close(|end| end - 1 <= watermark, &mut closed);
            let bounds = closed.iter().map(|number| self.0.bounds(*number)).collect();
            self.0.release(&closed);
            bounds
        }
    }

    #[test]
    fn rows_that_touch_are_one_session() {
        let mut script = Script::new();
        for time in [10, 15, 20, 26] {
            script.row(time, 0);
        }
        assert_eq!(script.close(i64::MAX), [(10, 25), (26, 31)]);
        assert!(script.0.keys.is_empty());
    }

    #[test]
    fn a_row_in_the_gap_makes_two_sessions_one() {
        let mut script = Script::new();
        assert_eq!(script.row(30, 0), Placed::In(0));
        assert_eq!(script.row(10, 0), Placed::In(1));
        assert_eq!(script.row(20, 0), Placed::In(2));
        assert_eq!(script.row(15, 0), Placed::Merged { into: 1, from: 2 });
        assert_eq!(script.row(50, 0), Placed::In(2), "its number is used again");
        assert_eq!(script.row(25, 0), Placed::Merged { into: 1, from: 0 });
        assert_eq!(script.close(33), []);
        assert_eq!(script.close(34), [(10, 35)]);
        assert_eq!(script.close(54), [(50, 55)]);
    }

    #[test]
    fn a_late_row_joins_an_open_session_but_not_one_that_has_ended() {
        let mut script = Script::new();
        script.row(10, 0);
        assert_eq!(script.close(14), [(10, 15)]);
        assert_eq!(script.row(9, 14), Placed::Late);
        assert!(script.0.keys.is_empty(), "a key without a session is not kept");
        assert_eq!(script.row(10, 13), Placed::In(0), "its session has not ended");
        script.row(15, 17);
        assert_eq!(script.row(6, 17), Placed::In(0));
        assert_eq!(script.close(100), [(6, 20)]);
    }

    #[test]
    fn random_rows_give_the_sessions_of_a_recomputation() {
        let mut random = fastrand::Rng::with_seed(3);
        for (rows, until) in [(40, 150); 200].into_iter().chain([(600, 5_000); 20]) {
            let mut script = Script::new();
            let mut times: Vec<i64> = (0..random.usize(1..rows)).map(|_| random.i64(0..until)).collect();
            times.iter().for_each(|time| {
                script.row(*time, -1);
            });
            let found = [script.close(until / 2), script.close(i64::MAX)].concat();
            assert!(script.0.by_start.is_empty(), "what finds sessions goes with them");
            times.sort_unstable();
            let mut expected: Vec<(i64, i64)> = Vec::new();
            for time in times {
                match expected.last_mut().filter(|(_, end)| *end >= time) {
                    Some((_, end)) => *end = time + 5,
                    None => expected.push((time, time + 5)),
                }
            }
            assert_eq!(found, expected);
        }
    }
}
