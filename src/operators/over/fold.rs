//! Aggregates over the frames of rows: what each frame holds is folded in its order, so that a result depends on nothing else.
//!
//! Every frame gets a group of accumulators, and the rows of all frames are added at once. Frames without a start begin with the last
//! [mark](Marks) before their end. Where the state of a group can be large (all its values, say), those frames are run through row by
//! row instead. Counts, whole sums and extremes are [swept](Sweep), where that looks at fewer rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, NullArray, UInt32Array};
use arrow::compute;

use super::marks::{Marks, STEP};
use super::sections::{Section, SectionRows};
use super::sweep::Sweep;
use crate::error::Result;
use crate::expr::{AggregateCall, AggregateSet, FunctionRegistry};
use crate::operators::rank::RankKey;
use crate::runtime::state::{RowId, RowStore};
use crate::stream_graph::{FrameBound, OverFrame};

/// Rows that are added at once.
const CHUNK_ROWS: usize = 1 << 16;

/// Built-in aggregates whose state stays small, however many rows there are.
const SMALL_STATES: [&str; 20] = [
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "FIRST_VALUE",
    "LAST_VALUE",
    "FIRST_VALUE_RESPECT_NULLS",
    "LAST_VALUE_RESPECT_NULLS",
    "NTH_VALUE",
    "NTH_VALUE_IGNORE_NULLS",
    "SINGLE_VALUE",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "VAR_POP",
    "VAR_SAMP",
    "MAX_BY",
    "MIN_BY",
    "BOOL_AND",
    "BOOL_OR",
];

/// Aggregates over one kind of frame.
pub(super) struct Fold {
    pub(super) frame: OverFrame,
    /// The numbers of its calls among all.
    pub(super) calls: Vec<usize>,
    work: AggregateSet,
    used: Vec<usize>,
    /// Where all calls can be swept, how each is.
    sweeps: Option<Vec<(Sweep, AggregateCall)>>,
    /// Where frames have no start and states are small.
    pub(super) marks: Option<Marks>,
    from_start: bool,
    num_groups: usize,
}

/// The frames whose rows are added at once.
#[derive(Default)]
struct Chunk {
    /// Rows to be fetched.
    fetched: Vec<RowId>,
    /// Which of them are added, and the groups that they are added to.
    rows: Vec<u32>,
    groups: Vec<u32>,
    num_groups: u32,
    /// Groups that begin with a mark, and the group of that mark.
    marked: Vec<u32>,
    marks: Vec<u32>,
    /// Groups that hold all rows of a partition.
    ends: Vec<(u32, u32, usize)>,
}

impl Fold {
    /// Of these calls, which have numbers among all.
    pub(super) fn new(frame: OverFrame, calls: Vec<(usize, AggregateCall)>, functions: &FunctionRegistry) -> Result<Self> {
        let (numbers, calls): (Vec<usize>, Vec<AggregateCall>) = calls.into_iter().unzip();
        let set = || AggregateSet::new(&calls, functions, false);
        let is_small = |call: &AggregateCall| {
            let distinct = call.distinct && call.function != "MIN" && call.function != "MAX";
            !distinct && (SMALL_STATES.contains(&call.function.as_str()) || is_small_user_state(call, functions))
        };
        let from_start = frame.start == FrameBound::UnboundedPreceding;
        let work = set()?;
        let sweeps = calls.iter().map(|call| Some((Sweep::of(call)?, call.clone()))).collect::<Option<Vec<_>>>();
        Ok(Fold {
            sweeps,
            frame,
            calls: numbers,
            used: work.input_columns(),
            work,
            marks: if from_start && calls.iter().all(is_small) { Some(Marks::new(set()?)) } else { None },
            from_start,
            num_groups: 0,
        })
    }

    /// The results for rows with these frames, a column for each call. `settled`: the rows of the table stay as they are for now.
    pub(super) fn evaluate<K: RankKey>(
        &mut self,
        rows: &SectionRows<'_, K>,
        frames: &[(usize, usize)],
        settled: bool,
    ) -> Result<Vec<ArrayRef>> {
        if self.from_start && self.marks.is_none() {
            return self.run_through(rows, frames);
        }
        if let Some(sweeps) = self.sweeps.as_ref().filter(|_| !self.from_start || sweeping_pays(rows, frames)) {
            return sweep_all(sweeps, &self.used, rows, frames);
        }
        self.extend_marks(rows, frames)?;
        let (mut chunk, mut results, mut places) = (Chunk::default(), Vec::new(), Vec::with_capacity(frames.len()));
        let mut done = 0;
        for (section, start) in rows.iter() {
            let frames = &frames[start..start + section.to - section.from];
            let mut entries = None;
            // The stretch of the partition that is fetched: its first position, and where in the chunk it starts.
            let (mut fetched_from, mut fetched_to, mut fetched_at) = (0, 0, 0);
            for frame in frames.chunk_by(|a, b| a == b) {
                let (from, to) = frame[0];
                let mark = self.marks.as_ref().and_then(|marks| marks.before(section.group, to));
                let base = mark.map_or(from, |(position, _)| position);
                if chunk.rows.len() + (to - base) > CHUNK_ROWS && chunk.num_groups > 0 {
                    done += chunk.num_groups;
                    results.push(self.finish(std::mem::take(&mut chunk), rows.table.store(), settled)?);
                    entries = None;
                }
                if base < to {
                    if entries.is_none() || base > fetched_to {
                        entries = Some(rows.table.entries(section.group, base));
                        (fetched_from, fetched_to, fetched_at) = (base, base, chunk.fetched.len());
                    }
                    if let Some(entries) = entries.as_mut().filter(|_| to > fetched_to) {
                        chunk.fetched.extend(entries.take(to - fetched_to).map(|(_, id)| id));
                        fetched_to = to;
                    }
                }
                let rows_at = (base..to).map(|at| (at - fetched_from + fetched_at) as u32);
                let group = chunk.add(rows_at, mark.map(|(_, mark)| mark));
                if settled && to == rows.table.len(section.group) && from == 0 {
                    chunk.ends.push((group, section.group, to));
                }
                places.extend(std::iter::repeat_n(done + group, frame.len()));
            }
        }
        results.push(self.finish(chunk, rows.table.store(), settled)?);
        gather(&results, places)
    }

    /// Adds the rows of a chunk; the results of its groups.
    fn finish(&mut self, chunk: Chunk, store: &RowStore, settled: bool) -> Result<Vec<ArrayRef>> {
        self.make_groups(chunk.num_groups as usize);
        if let Some(marks) = &self.marks {
            self.work.merge(&chunk.marked, &marks.accumulators.state(&chunk.marks)?)?;
        }
        let fetched = store.take_columns(&chunk.fetched, &self.used)?;
        self.add(&fetched, &chunk.rows, &chunk.groups)?;
        let all: Vec<u32> = (0..chunk.num_groups).collect();
        let results = self.work.evaluate(&all)?;
        if settled {
            self.mark_ends(&chunk.ends)?;
        }
        self.work.clear(&all)?;
        Ok(results)
    }

    fn make_groups(&mut self, num_groups: usize) {
        if num_groups > self.num_groups {
            self.work.resize(num_groups);
            self.num_groups = num_groups;
        }
    }

    /// Adds some of the fetched rows to their groups.
    fn add(&mut self, fetched: &[ArrayRef], rows: &[u32], groups: &[u32]) -> Result<()> {
        let rows = UInt32Array::from(rows.to_vec());
        let taken = fetched.iter().map(|values| compute::take(values, &rows, None)).collect::<std::result::Result<_, _>>()?;
        self.work.update(groups, &at_places(&self.used, taken, rows.len()), None)
    }

    /// Makes the marks up to the last frames of partitions.
    fn extend_marks<K: RankKey>(&mut self, rows: &SectionRows<'_, K>, frames: &[(usize, usize)]) -> Result<()> {
        let Some(marks) = &self.marks else { return Ok(()) };
        let mut open: Vec<(u32, usize, usize)> = Vec::new();
        for (section, start) in rows.iter() {
            let Some((_, last)) = frames[start..start + section.to - section.from].last() else { continue };
            let (at, _) = marks.before(section.group, *last).unwrap_or_default();
            if next_step(at) <= *last {
                open.push((section.group, at, *last));
            }
        }
        // Several sections of one partition: the furthest is enough.
        open.sort_by_key(|(group, _, last)| (*group, std::cmp::Reverse(*last)));
        open.dedup_by_key(|(group, ..)| *group);
        while !open.is_empty() {
            let sections: Vec<Section> =
                open.iter().map(|(group, at, _)| Section { group: *group, from: *at, to: next_step(*at) }).collect();
            self.make_marks(rows, &sections)?;
            open.iter_mut().for_each(|(_, at, _)| *at = next_step(*at));
            open.retain(|(_, at, last)| next_step(*at) <= *last);
        }
        Ok(())
    }

    /// A mark behind each section, from the one before it.
    fn make_marks<K: RankKey>(&mut self, rows: &SectionRows<'_, K>, sections: &[Section]) -> Result<()> {
        let mut chunk = Chunk::default();
        for section in sections {
            let mark = self.marks.as_ref().and_then(|marks| marks.before(section.group, section.from));
            let first = chunk.fetched.len() as u32;
            chunk
                .fetched
                .extend(rows.table.entries(section.group, section.from).take(section.to - section.from).map(|(_, id)| id));
            let group = chunk.add(first..chunk.fetched.len() as u32, mark.map(|(_, mark)| mark));
            chunk.ends.push((group, section.group, section.to));
        }
        self.finish(chunk, rows.table.store(), true)?;
        Ok(())
    }

    /// Groups that hold the first rows of partitions become marks.
    fn mark_ends(&mut self, ends: &[(u32, u32, usize)]) -> Result<()> {
        let Some(marks) = &mut self.marks else { return Ok(()) };
        let (mut groups, mut made) = (Vec::new(), Vec::new());
        for (group, partition, position) in ends {
            if !Marks::wants_end(*position) || marks.is_at(*partition, *position) {
                continue;
            }
            marks.drop_end(*partition)?;
            groups.push(*group);
            made.push(marks.add(*partition, *position));
        }
        marks.accumulators.merge(&made, &self.work.state(&groups)?)
    }

    /// Frames without a start, each after the rows that it has more than the one before it.
    fn run_through<K: RankKey>(&mut self, rows: &SectionRows<'_, K>, frames: &[(usize, usize)]) -> Result<Vec<ArrayRef>> {
        self.make_groups(rows.sections.len());
        let mut steps: Vec<Chunk> = Vec::new();
        let mut fetched = Vec::new();
        // For each row the step that gives its result, and the place there.
        let mut places: Vec<(usize, u32)> = Vec::with_capacity(frames.len());
        for (number, (section, start)) in rows.iter().enumerate() {
            let frames = &frames[start..start + section.to - section.from];
            let first = fetched.len();
            let all = frames.last().map_or(0, |(_, to)| *to);
            fetched.extend(rows.table.entries(section.group, 0).take(all).map(|(_, id)| id));
            let mut before = 0;
            for (step, frame) in frames.chunk_by(|a, b| a == b).enumerate() {
                if step == steps.len() {
                    steps.push(Chunk::default());
                }
                let to = frame[0].1;
                let step_rows = &mut steps[step];
                step_rows.rows.extend((before..to).map(|at| (first + at) as u32));
                step_rows.groups.resize(step_rows.rows.len(), number as u32);
                places.extend(std::iter::repeat_n((step, step_rows.marked.len() as u32), frame.len()));
                step_rows.marked.push(number as u32);
                before = to;
            }
        }
        let fetched = rows.table.store().take_columns(&fetched, &self.used)?;
        let (mut results, mut firsts, mut count) = (Vec::new(), Vec::new(), 0);
        for step in &steps {
            self.add(&fetched, &step.rows, &step.groups)?;
            results.push(self.work.evaluate(&step.marked)?);
            firsts.push(count);
            count += step.marked.len() as u32;
        }
        self.work.clear(&(0..rows.sections.len() as u32).collect::<Vec<_>>())?;
        if results.is_empty() {
            results.push(self.work.evaluate(&[])?);
        }
        gather(&results, places.into_iter().map(|(step, place)| firsts[step] + place).collect())
    }
}

fn is_small_user_state(call: &AggregateCall, functions: &FunctionRegistry) -> bool {
    functions.aggregate(&call.function).is_some_and(|function| function.has_small_state(call) && function.can_merge(call))
}

impl Chunk {
    /// A group with these rows, after those of a mark.
    fn add(&mut self, rows: impl Iterator<Item = u32>, mark: Option<u32>) -> u32 {
        let group = self.num_groups;
        self.num_groups += 1;
        self.rows.extend(rows);
        self.groups.resize(self.rows.len(), group);
        if let Some(mark) = mark {
            self.marked.push(group);
            self.marks.push(mark);
        }
        group
    }
}

/// Columns at their places among those of the input; the others are there in name only.
fn at_places(used: &[usize], fetched: Vec<ArrayRef>, num_rows: usize) -> Vec<ArrayRef> {
    let unread: ArrayRef = Arc::new(NullArray::new(num_rows));
    let mut columns = vec![unread; used.last().map_or(0, |last| last + 1)];
    used.iter().zip(fetched).for_each(|(column, values)| columns[*column] = values);
    columns
}

/// Whether frames without a start are better swept from the first row of their partition than begun with marks, from which on half a
/// step of rows is added for each frame.
fn sweeping_pays<K: RankKey>(rows: &SectionRows<'_, K>, frames: &[(usize, usize)]) -> bool {
    let last =
        |(section, start): (Section, usize)| frames[start..start + section.to - section.from].last().map_or(0, |(_, to)| *to);
    rows.iter().map(last).sum::<usize>() <= rows.len() * (STEP / 2)
}

/// The results of all calls, each stretch of rows swept once.
fn sweep_all<K: RankKey>(
    sweeps: &[(Sweep, AggregateCall)],
    used: &[usize],
    rows: &SectionRows<'_, K>,
    frames: &[(usize, usize)],
) -> Result<Vec<ArrayRef>> {
    let (mut fetched, mut ranges, mut stretches) = (Vec::new(), Vec::with_capacity(frames.len()), Vec::new());
    for (section, start) in rows.iter() {
        let frames = &frames[start..start + section.to - section.from];
        let (Some((first, _)), Some((_, end))) = (frames.first(), frames.last()) else { continue };
        let at = fetched.len();
        fetched.extend(rows.table.entries(section.group, *first).take(end - first).map(|(_, id)| id));
        stretches.push(start..start + frames.len());
        ranges.extend(frames.iter().map(|(from, to)| at + from - first..at + to - first));
    }
    let columns = at_places(used, rows.table.store().take_columns(&fetched, used)?, fetched.len());
    sweeps.iter().map(|(sweep, call)| sweep.evaluate(call, &columns, fetched.len(), (&ranges, &stretches))).collect()
}

/// The first whole step behind a position.
fn next_step(position: usize) -> usize {
    (position / STEP + 1) * STEP
}

/// The results of chunks at these places.
fn gather(results: &[Vec<ArrayRef>], places: Vec<u32>) -> Result<Vec<ArrayRef>> {
    let places = UInt32Array::from(places);
    let column = |call: usize| {
        let parts: Vec<&dyn Array> = results.iter().map(|part| part[call].as_ref()).collect();
        let whole = if parts.len() == 1 { Arc::clone(&results[0][call]) } else { compute::concat(&parts)? };
        Ok(compute::take(&whole, &places, None)?)
    };
    (0..results[0].len()).map(column).collect()
}
