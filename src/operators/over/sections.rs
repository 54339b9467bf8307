//! Stretches of partitions whose rows are evaluated, and where their frames lie.

use arrow::array::ArrayRef;

use super::shift::shifted;
use crate::error::Result;
use crate::operators::rank::{EncodedKeys, RankKey, RankTable};
use crate::runtime::state::RowId;
use crate::stream_graph::{FrameBound, FrameUnit, OverFrame, RangeUnit};

/// Rows `from .. to` of a partition in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) group: u32,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The rows of sections, one after the other.
pub(super) struct SectionRows<'t, K> {
    pub(super) table: &'t RankTable<K>,
    pub(super) sections: &'t [Section],
    /// Where the rows of each section start, and the end.
    pub(super) starts: Vec<usize>,
    pub(super) ids: Vec<RowId>,
    /// For each row the positions of its first peer and of the row behind its last one.
    peers: Vec<(usize, usize)>,
}

/// How much longer or shorter than from a day on as many months can be to it.
const MONTHS_DIFFER_MS: i64 = 3 * 86_400_000;

/// The order column and what tells its direction: frames of RANGE with distances have one.
#[derive(Debug, Clone, Copy)]
pub(super) struct RangeKey {
    pub(super) column: usize,
    pub(super) descending: bool,
}

impl RangeKey {
    /// The keys so far after those of a column, in the order of rows.
    pub(super) fn after<K: RankKey>(
        self,
        keys: &ArrayRef,
        distance: i64,
        counts: RangeUnit,
        table: &RankTable<K>,
    ) -> Result<EncodedKeys> {
        table.encoder().encode_keys(&[shifted(keys, self.directed(distance), counts)?])
    }

    /// Keys that are not nearer than any that is so far away from those of a column: rows a month before 31 March are not those that have it
    /// a month after them. `distance` is less than 0 for those before.
    pub(super) fn not_nearer<K: RankKey>(
        self,
        keys: &ArrayRef,
        (distance, is_before): (i64, bool),
        counts: RangeUnit,
        table: &RankTable<K>,
    ) -> Result<EncodedKeys> {
        if counts != RangeUnit::Months {
            return self.after(keys, distance, counts, table);
        }
        let moved = shifted(keys, self.directed(distance), counts)?;
        self.after(&moved, if is_before { -MONTHS_DIFFER_MS } else { MONTHS_DIFFER_MS }, RangeUnit::Milliseconds, table)
    }

    fn directed(self, distance: i64) -> i64 {
        if self.descending { -distance } else { distance }
    }
}

impl<'t, K: RankKey> SectionRows<'t, K> {
    /// The rows of these sections.
    pub(super) fn new(table: &'t RankTable<K>, sections: &'t [Section]) -> Self {
        let mut rows = SectionRows { table, sections, starts: vec![0], ids: Vec::new(), peers: Vec::new() };
        sections.iter().for_each(|section| rows.add(*section));
        rows
    }

    fn add(&mut self, Section { group, from, to }: Section) {
        let entries: Vec<(&K, RowId)> = self.table.entries(group, from).take(to - from).collect();
        self.ids.extend(entries.iter().map(|(_, id)| *id));
        let mut first = from;
        for peers in entries.chunk_by(|(a, _), (b, _)| a == b) {
            let (start, end) = (first, first + peers.len());
            let key = peers[0].0;
            let low = if start == from { self.table.position(group, key, false) } else { start };
            let high = if end == to { self.table.position(group, key, true) } else { end };
            self.peers.extend(std::iter::repeat_n((low, high), peers.len()));
            first = end;
        }
        self.starts.push(self.ids.len());
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The sections, each with where its rows start.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Section, usize)> {
        self.sections.iter().copied().zip(self.starts.iter().copied())
    }

    /// For each row its partition, its position and its peers.
    pub(super) fn positions(&self) -> impl Iterator<Item = (u32, usize, (usize, usize))> {
        let positions = self.sections.iter().flat_map(|section| (section.from..section.to).map(|at| (section.group, at)));
        positions.zip(&self.peers).map(|((group, at), peers)| (group, at, *peers))
    }

    /// The frame of each row: the positions of its first row and of the one behind its last one.
    pub(super) fn frames(&self, frame: &OverFrame, key: Option<RangeKey>) -> Result<Vec<(usize, usize)>> {
        let (start_keys, end_keys) = match key.filter(|_| frame.has_distances()) {
            Some(key) => {
                let keys = &self.table.store().take_columns(&self.ids, &[key.column])?[0];
                let at = |bound: FrameBound| {
                    let distance = match bound {
                        FrameBound::Preceding(distance) => -distance,
                        FrameBound::Following(distance) => distance,
                        _ => return Ok(None),
                    };
                    key.after(keys, distance, frame.counts, self.table).map(Some)
                };
                (at(frame.start)?, at(frame.end)?)
            }
            None => (None, None),
        };
        let frame_of = |(row, (group, at, (first_peer, peers_end))): (usize, (u32, usize, (usize, usize)))| {
            let len = self.table.len(group);
            let by_key = |keys: &EncodedKeys, after| self.table.position(group, &K::of(keys.bytes(row)), after);
            let start = match (frame.start, frame.unit) {
                (FrameBound::UnboundedPreceding, _) => 0,
                (FrameBound::UnboundedFollowing, _) => len,
                (FrameBound::CurrentRow, FrameUnit::Range) => first_peer,
                (bound, FrameUnit::Rows) => moved(at, bound.before().map_or(0, |before| -before)).min(len),
                (_, FrameUnit::Range) => start_keys.as_ref().map_or(0, |keys| by_key(keys, false)),
            };
            let end = match (frame.end, frame.unit) {
                (FrameBound::UnboundedPreceding, _) => 0,
                (FrameBound::UnboundedFollowing, _) => len,
                (FrameBound::CurrentRow, FrameUnit::Range) => peers_end,
                (bound, FrameUnit::Rows) => moved(at + 1, bound.after().unwrap_or(0)).min(len),
                (_, FrameUnit::Range) => end_keys.as_ref().map_or(len, |keys| by_key(keys, true)),
            };
            (start, end.max(start))
        };
        Ok(self.positions().enumerate().map(frame_of).collect())
    }
}

/// A position so many rows further, at least 0.
fn moved(at: usize, by: i64) -> usize {
    (at as i64).saturating_add(by).max(0) as usize
}
