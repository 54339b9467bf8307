//! Join of rows of the same window: rows wait by window, and when event time has passed its end both sides are joined at once.
//!
//! A batch is cut only where one of its watermark steps ends a window. A row whose window has ended is dropped and counted. Output
//! rows come before the watermark that ended their window, so what follows finds them in time.

use arrow::array::{ArrayRef, UInt32Array};
use arrow::buffer::NullBuffer;
use hashbrown::HashMap;

use super::key_index::KeyIndex;
use super::pairs::{Pairing, Rows};
use super::window_rows::{Window, WindowRows};
use crate::config::BATCH_ROWS;
use crate::error::Result;
use crate::operators::late_rows::LateRows;
use crate::operators::progress::Progress;
use crate::operators::window::{WindowTime, milliseconds};
use crate::runtime::{Operator, OperatorContext, Output, StateTable};
use crate::stream_graph::{JoinType, WindowJoinSpec};
use crate::types::{Batch, InputNumber, Watermark, hash_columns};

/// Pairs that are checked at once.
const PAIRS_MAX: usize = 1 << 14;

/// Join of rows of the same window.
pub struct WindowJoin {
    spec: WindowJoinSpec,
    pairing: Pairing,
    time: WindowTime,
    sides: [WindowRows; 2],
    progress: Progress,
    batch_rows: usize,
    late: LateRows,
}

impl WindowJoin {
    /// From its spec.
    pub fn new(spec: WindowJoinSpec, context: &OperatorContext) -> Result<Self> {
        let schemas = [spec.left_schema.clone(), spec.right_schema.clone()];
        let pairing = Pairing::new(&spec.keys, spec.residual.as_ref(), &spec.output, schemas, context)?;
        let [left_keys, right_keys] = match spec.keys.as_slice() {
            [] => [spec.left_window, spec.right_window].map(|window| vec![window.start, window.end]),
            keys => [keys.iter().map(|key| key.left).collect(), keys.iter().map(|key| key.right).collect()],
        };
        Ok(WindowJoin {
            pairing,
            time: WindowTime::new(&spec.time_type, context.configuration.time_zone()),
            sides: [left_keys, right_keys].map(|keys| WindowRows::new(keys, context.max_parallelism)),
            progress: Progress::new(i64::MIN, context.key_groups),
            batch_rows: context.configuration.integer(&BATCH_ROWS).max(1) as usize,
            late: LateRows::new(context),
            spec,
        })
    }

    /// The event time at which a window has ended.
    fn end_of(&self, window: Window) -> i64 {
        self.time.trigger(window.end.saturating_sub(1))
    }

    fn windows_of(&self, side: usize, batch: &Batch) -> Result<Vec<Window>> {
        let columns = [self.spec.left_window, self.spec.right_window][side];
        let starts = milliseconds(batch.column(columns.start), 3)?;
        let ends = milliseconds(batch.column(columns.end), 3)?;
        Ok(starts.into_iter().zip(ends).map(|(start, end)| Window { end, start }).collect())
    }

    fn add(&mut self, side: usize, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        let steps = batch.take_steps();
        let windows = self.windows_of(side, &batch)?;
        let mut waiting = Waiting::default();
        let mut row = 0;
        let mut due: Option<(Window, i64)> = None;
        for step in steps.as_slice() {
            row = self.gather(&windows, row, step.rows_before as usize, &mut waiting);
            let first = self.sides.iter().filter_map(WindowRows::first).chain(waiting.first).min();
            if first != due.map(|(window, _)| window) {
                due = first.map(|window| (window, self.end_of(window)));
            }
            if due.is_some_and(|(_, end)| end <= step.watermark.0) {
                self.keep(side, batch.columns(), &mut waiting)?;
                self.advance(step.watermark.0, output)?;
            }
            self.progress.time = self.progress.time.max(step.watermark.0);
        }
        self.gather(&windows, row, windows.len(), &mut waiting);
        self.keep(side, batch.columns(), &mut waiting)?;
        self.late.give_out(InputNumber(side as u8), &batch, output)?;
        steps.last().map_or(Ok(()), |watermark| output.watermark(watermark))
    }

    /// Sorts rows by window, leaving out and counting the late ones. A window with waiting rows has not ended: it would have been
    /// joined.
    fn gather(&mut self, windows: &[Window], from: usize, to: usize, waiting: &mut Waiting) -> usize {
        for (row, window) in windows.iter().enumerate().take(to).skip(from) {
            if !waiting.add(*window, row as u32, |window| self.end_of(window) > self.progress.time) {
                self.late.add(row, self.progress.time, self.end_of(*window));
            }
        }
        to.max(from)
    }

    fn keep(&mut self, side: usize, columns: &[ArrayRef], waiting: &mut Waiting) -> Result<()> {
        let windows = std::mem::take(waiting).windows;
        windows.into_iter().try_for_each(|(window, rows)| self.sides[side].push(window, columns, rows))
    }

    /// Joins the windows that have ended, in the order of their ends.
    fn advance(&mut self, time: i64, output: &mut dyn Output) -> Result<()> {
        while let Some(window) = self.sides.iter().filter_map(WindowRows::first).min() {
            let end = self.end_of(window);
            if end > time {
                break;
            }
            let [left, right] = &mut self.sides;
            let (left, right) = (left.take(window)?, right.take(window)?);
            self.progress.time = self.progress.time.max(end);
            WindowPair::new(self, left, right).join(output)?;
        }
        self.progress.time = self.progress.time.max(time);
        output.watermark(Watermark(time))
    }
}

/// The rows of a batch since it was last cut, by window, without the late ones.
#[derive(Default)]
struct Waiting {
    windows: Vec<(Window, Vec<u32>)>,
    /// Where each window is in the list.
    places: HashMap<Window, usize>,
    /// The window that ends first.
    first: Option<Window>,
    /// Where the last row went.
    last: usize,
}

impl Waiting {
    /// Adds a row, unless its window has no rows yet and is not open.
    #[inline]
    fn add(&mut self, window: Window, row: u32, is_open: impl Fn(Window) -> bool) -> bool {
        if self.windows.get(self.last).is_none_or(|(known, _)| *known != window) {
            self.last = match self.places.get(&window) {
                Some(place) => *place,
                None if !is_open(window) => return false,
                None => {
                    self.places.insert(window, self.windows.len());
                    self.windows.push((window, Vec::new()));
                    self.first = self.first.into_iter().chain([window]).min();
                    self.windows.len() - 1
                }
            };
        }
        self.windows[self.last].1.push(row);
        true
    }
}

/// Both sides of one window.
struct WindowPair<'a> {
    operator: &'a WindowJoin,
    sides: [Side; 2],
}

struct Side {
    columns: Vec<ArrayRef>,
    num_rows: usize,
    /// Which rows have a partner; empty where nobody asks.
    joined: Vec<bool>,
    hashes: Vec<u64>,
    matchable: Option<NullBuffer>,
}

impl<'a> WindowPair<'a> {
    fn new(operator: &'a WindowJoin, left: Option<Batch>, right: Option<Batch>) -> Self {
        let spec = &operator.spec;
        let asked = [spec.join_type.pads_right() || spec.join_type.is_left_only(), spec.join_type.pads_left()];
        let side = |number: usize, batch: Option<Batch>| {
            let (columns, num_rows) = batch.map_or((Vec::new(), 0), |batch| (batch.columns().to_vec(), batch.num_rows()));
            let joined = if asked[number] { vec![false; num_rows] } else { Vec::new() };
            let (mut hashes, mut matchable) = (Vec::new(), None);
            if num_rows > 0 {
                let keys: Vec<ArrayRef> =
                    spec.keys.iter().map(|key| ArrayRef::clone(&columns[[key.left, key.right][number]])).collect();
                hash_columns(&keys, num_rows, &mut hashes);
                matchable = operator.pairing.matchable(number, &columns);
            }
            Side { columns, num_rows, joined, hashes, matchable }
        };
        WindowPair { sides: [side(0, left), side(1, right)], operator }
    }

    fn join(mut self, output: &mut dyn Output) -> Result<()> {
        if self.sides.iter().all(|side| side.num_rows > 0) {
            self.join_rows(output)?;
        }
        match self.operator.spec.join_type {
            JoinType::Inner => Ok(()),
            JoinType::Left => self.emit_rows(0, false, output),
            JoinType::Right => self.emit_rows(1, false, output),
            JoinType::Full => {
                self.emit_rows(0, false, output)?;
                self.emit_rows(1, false, output)
            }
            JoinType::Semi => self.emit_rows(0, true, output),
            JoinType::Anti => self.emit_rows(0, false, output),
        }
    }

    /// The smaller side is found by key, the greater one looks it up.
    fn join_rows(&mut self, output: &mut dyn Output) -> Result<()> {
        let kept = usize::from(self.sides[1].num_rows <= self.sides[0].num_rows);
        let asking = 1 - kept;
        let mut index = KeyIndex::default();
        let mut numbers = Vec::new(); // of rows that can have a partner
        for (row, hash) in self.sides[kept].hashes.iter().enumerate() {
            if self.sides[kept].matchable.as_ref().is_none_or(|matchable| matchable.is_valid(row)) {
                index.push(*hash);
                numbers.push(row as u32);
            }
        }
        let mut pairs = [Vec::new(), Vec::new()];
        for row in 0..self.sides[asking].num_rows {
            if self.sides[asking].matchable.as_ref().is_some_and(|matchable| matchable.is_null(row)) {
                continue;
            }
            for found in index.rows(self.sides[asking].hashes[row]) {
                pairs[asking].push(row as u32);
                pairs[kept].push(numbers[found as usize]);
                if pairs[kept].len() >= PAIRS_MAX {
                    self.emit_pairs(&mut pairs, output)?;
                }
            }
        }
        self.emit_pairs(&mut pairs, output)
    }

    fn emit_pairs(&mut self, pairs: &mut [Vec<u32>; 2], output: &mut dyn Output) -> Result<()> {
        let pairs = std::mem::take(pairs);
        let count = pairs[0].len();
        if count == 0 {
            return Ok(());
        }
        let [left, right] = [0, 1].map(|side| Rows::Of(&self.sides[side].columns, UInt32Array::from(pairs[side].clone())));
        let watermark = Watermark(self.operator.progress.time);
        let pairing = &self.operator.pairing;
        let (mask, batch) = if self.operator.spec.join_type.is_left_only() {
            (pairing.matches(&left, &right, watermark)?, None)
        } else {
            let joined = pairing.join(left, right, watermark)?;
            (joined.mask, Some(joined.batch))
        };
        for (side, rows) in self.sides.iter_mut().zip(&pairs).filter(|(side, _)| !side.joined.is_empty()) {
            match &mask {
                None => rows.iter().for_each(|row| side.joined[*row as usize] = true),
                Some(mask) => mask.values().set_indices().for_each(|pair| side.joined[rows[pair] as usize] = true),
            }
        }
        batch.map_or(Ok(()), |batch| output.batch(batch))
    }

    /// Emits the rows of a side that have a partner, or that have none, once each; the other side is NULL.
    fn emit_rows(&self, side: usize, joined: bool, output: &mut dyn Output) -> Result<()> {
        let Side { columns, joined: flags, .. } = &self.sides[side];
        let rows: Vec<u32> = (0..flags.len() as u32).filter(|row| flags[*row as usize] == joined).collect();
        for chunk in rows.chunks(self.operator.batch_rows) {
            let own = Rows::Of(columns, UInt32Array::from(chunk.to_vec()));
            let other = Rows::Nulls(chunk.len());
            let (left, right) = if side == 0 { (own, other) } else { (other, own) };
            output.batch(self.operator.pairing.put_together(&left, &right)?)?;
        }
        Ok(())
    }
}

impl Operator for WindowJoin {
    fn process_batch(&mut self, input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        self.add(usize::from(input.0), batch, output)
    }

    fn process_watermark(&mut self, watermark: Watermark, output: &mut dyn Output) -> Result<()> {
        self.advance(watermark.0, output)
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        let [left, right] = &mut self.sides;
        vec![("left", left), ("right", right), ("progress", &mut self.progress)]
    }
}
