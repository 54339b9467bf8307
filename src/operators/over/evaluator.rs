//! All calls of a window, evaluated for stretches of partitions.

use arrow::array::ArrayRef;

use super::fold::Fold;
use super::marks::Marks;
use super::numbers::PlaceFunction;
use super::sections::{RangeKey, Section, SectionRows};
use super::sweep::Sweep;
use crate::error::Result;
use crate::expr::{AggregateCall, FunctionRegistry};
use crate::operators::rank::{RankKey, RankTable};
use crate::runtime::state::RowId;
use crate::runtime::{StateTable, StateTableSnapshot};
use crate::stream_graph::{OverFrame, OverSpec};
use crate::types::KeyGroupRange;

/// All calls of a window.
pub(super) struct Evaluator {
    num_calls: usize,
    folds: Vec<Fold>,
    /// Functions of places, with their numbers among all calls.
    places: Vec<(usize, PlaceFunction, AggregateCall)>,
    key: Option<RangeKey>,
}

/// A frame and whether it can be swept, with its calls and their numbers among all.
type FrameCalls = ((OverFrame, bool), Vec<(usize, AggregateCall)>);

/// Rows of sections with their results.
pub(super) struct Results {
    pub(super) ids: Vec<RowId>,
    /// Where the rows of each section start, and the end.
    pub(super) starts: Vec<usize>,
    /// A column for each call; none where there is no row.
    pub(super) values: Vec<ArrayRef>,
}

impl Evaluator {
    /// Of the calls of a window.
    pub(super) fn new(spec: &OverSpec, functions: &FunctionRegistry) -> Result<Self> {
        let mut places = Vec::new();
        // Apart what can be swept.
        let mut by_frame: Vec<FrameCalls> = Vec::new();
        for (number, over) in spec.calls.iter().enumerate() {
            let call = over.call.clone();
            if let Some(function) = PlaceFunction::of(&call.function, spec.ranks_count_peers()) {
                places.push((number, function, call));
                continue;
            }
            let kind = (over.frame, Sweep::of(&call).is_some());
            match by_frame.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, calls)) => calls.push((number, call)),
                None => by_frame.push((kind, vec![(number, call)])),
            }
        }
        let folds = by_frame.into_iter().map(|((frame, _), calls)| Fold::new(frame, calls, functions));
        Ok(Evaluator { num_calls: spec.calls.len(), folds: folds.collect::<Result<_>>()?, places, key: range_key(spec) })
    }

    /// The results for the rows of these sections. `settled`: the table stays as it is until the next change.
    pub(super) fn evaluate<K: RankKey>(&mut self, table: &RankTable<K>, sections: &[Section], settled: bool) -> Result<Results> {
        let rows = SectionRows::new(table, sections);
        let mut values = Vec::new();
        if rows.len() > 0 {
            let mut columns: Vec<Option<ArrayRef>> = vec![None; self.num_calls];
            for fold in &mut self.folds {
                let frames = rows.frames(&fold.frame, self.key)?;
                let results = fold.evaluate(&rows, &frames, settled)?;
                fold.calls.iter().zip(results).for_each(|(number, column)| columns[*number] = Some(column));
            }
            for (number, function, call) in &self.places {
                columns[*number] = Some(function.evaluate(call, &rows)?);
            }
            values = columns.into_iter().flatten().collect();
        }
        let SectionRows { starts, ids, .. } = rows;
        Ok(Results { ids, starts, values })
    }

    /// The rows of a partition from a position on will not be those that they were.
    pub(super) fn cut(&mut self, partition: u32, position: usize) -> Result<()> {
        self.marks().try_for_each(|marks| marks.cut(partition, position))
    }

    fn marks(&mut self) -> impl Iterator<Item = &mut Marks> {
        self.folds.iter_mut().filter_map(|fold| fold.marks.as_mut())
    }
}

/// There is nothing to keep: marks follow from the rows, and are made again.
impl StateTable for Evaluator {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        Ok(StateTableSnapshot::new(Vec::new()))
    }

    fn restore(&mut self, _snapshot: &StateTableSnapshot, _range: KeyGroupRange) -> Result<()> {
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.folds.iter().filter_map(|fold| fold.marks.as_ref()).map(Marks::bytes).sum()
    }
}

/// What RANGE counts its distances on.
pub(super) fn range_key(spec: &OverSpec) -> Option<RangeKey> {
    match spec.order_keys.as_slice() {
        [key] => Some(RangeKey { column: key.column, descending: key.descending }),
        _ => None,
    }
}
