//! How far a row that comes or goes reaches: the rows of its partition whose results it can change.

use super::numbers::PlaceFunction;
use super::sections::RangeKey;
use crate::error::Result;
use crate::operators::rank::{EncodedKeys, RankKey, RankTable};
use crate::stream_graph::{FrameBound, FrameUnit, OverFrame, OverSpec};
use crate::types::Batch;

/// The reach of rows, over all calls of a window.
pub(super) struct Reach {
    reaches: Vec<Extent>,
    key: Option<RangeKey>,
}

/// The reach for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// So many rows before it and behind it; none = all.
    Rows { before: Option<usize>, behind: Option<usize> },
    /// The rows whose frame, by their keys, has its key.
    Range(OverFrame),
}

/// Keys of the rows of a batch, moved by the distances of frames.
pub(super) struct ReachKeys {
    /// For each call where its reach starts and ends, if those are distances.
    bounds: Vec<(Option<EncodedKeys>, Option<EncodedKeys>)>,
}

impl Reach {
    /// For the calls of a window.
    pub(super) fn new(spec: &OverSpec, key: Option<RangeKey>) -> Self {
        let mut reaches: Vec<Extent> = Vec::new();
        for over in &spec.calls {
            let extent = match PlaceFunction::of(&over.call.function, spec.ranks_count_peers()) {
                Some(PlaceFunction::PercentRank | PlaceFunction::CumeDist | PlaceFunction::Ntile) => {
                    Extent::Rows { before: None, behind: None }
                }
                Some(PlaceFunction::RowNumber | PlaceFunction::Rank | PlaceFunction::DenseRank) => {
                    Extent::Rows { before: Some(0), behind: None }
                }
                Some(PlaceFunction::PeersEnd) => Extent::Range(OverFrame::RANGE_TO_CURRENT),
                Some(PlaceFunction::Away { .. }) | None => extent(over.frame),
            };
            if !reaches.contains(&extent) {
                reaches.push(extent);
            }
        }
        Reach { reaches, key }
    }

    /// The keys of a batch, moved as the calls need them.
    pub(super) fn keys<K: RankKey>(&self, batch: &Batch, table: &RankTable<K>) -> Result<ReachKeys> {
        let bounds = self.reaches.iter().map(|extent| {
            let (Extent::Range(frame), Some(key)) = (extent, self.key) else { return Ok((None, None)) };
            let moved = |distance: Option<i64>, bound: FrameBound, is_before| match (bound, distance) {
                (FrameBound::Preceding(_) | FrameBound::Following(_), Some(distance)) => {
                    key.not_nearer(batch.column(key.column), (distance, is_before), frame.counts, table).map(Some)
                }
                _ => Ok(None),
            };
            // A frame that goes on after its row has the keys before it, and the other way round.
            let start = moved(frame.end.after().map(|after| -after), frame.end, true)?;
            let end = moved(frame.start.before(), frame.start, false)?;
            Ok((start, end))
        });
        Ok(ReachKeys { bounds: bounds.collect::<Result<_>>()? })
    }

    /// The rows of a partition, as positions, that a row of the batch with this key can change, and where it can be itself.
    pub(super) fn of_row<K: RankKey>(
        &self,
        table: &RankTable<K>,
        (group, key): (u32, &K),
        keys: &ReachKeys,
        (row, is_retraction): (usize, bool),
    ) -> (usize, usize) {
        let len = table.len(group);
        let end = table.position(group, key, true);
        // One that is taken back is any of those with its key.
        let (low, high) = if is_retraction { (table.position(group, key, false), end) } else { (end, end) };
        let (mut first, mut last) = (low, high);
        for (extent, (start_keys, end_keys)) in self.reaches.iter().zip(&keys.bounds) {
            let (from, to) = match extent {
                Extent::Rows { before, behind } => (
                    before.map_or(0, |before| low.saturating_sub(before)),
                    behind.map_or(len, |behind| high.saturating_add(behind).min(len)),
                ),
                Extent::Range(frame) => {
                    let moved = |keys: &EncodedKeys, after| table.position(group, &K::of(keys.bytes(row)), after);
                    let from = match (frame.end, start_keys) {
                        (FrameBound::UnboundedFollowing, _) => 0,
                        (_, Some(keys)) => moved(keys, false),
                        _ => table.position(group, key, false),
                    };
                    let to = match (frame.start, end_keys) {
                        (FrameBound::UnboundedPreceding, _) => len,
                        (_, Some(keys)) => moved(keys, true),
                        _ => end,
                    };
                    if from < to { (from, to) } else { (low, high) }
                }
            };
            (first, last) = (first.min(from), last.max(to));
        }
        (first, last)
    }
}

fn extent(frame: OverFrame) -> Extent {
    if frame.unit == FrameUnit::Range {
        return Extent::Range(frame);
    }
    let rows = |distance: i64| distance.max(0) as usize;
    Extent::Rows { before: frame.end.after().map(rows), behind: frame.start.before().map(rows) }
}
