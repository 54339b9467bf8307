//! ORDER BY … LIMIT: the first rows of a changing table.
//!
//! After each batch the rows that left the window `offset .. offset + fetch` go (`-D`) and those that entered it come (`+I`). An input
//! that only adds needs no more than the first `offset + fetch` rows; of one that takes back all rows are kept, to fill the gaps.
//! Rows with equal keys stand in the order of their arrival, as in Flink.
//!
//! With a time to live rows behind the window are forgotten so long after they came: those in it stay, so that what is shown stays true.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, UInt16Array};
use arrow::row::{RowConverter, Rows};
use hashbrown::HashMap;

use super::keyed_state::{rows_in_range, state_rows, unkeyed_snapshot};
use super::row_bag::row_converter;
use super::sorting::{key_columns, sort_converter};
use super::state_ttl::{has_times, split_times, with_times};
use crate::clock::Clock;
use crate::error::Result;
use crate::expr::SortKey;
use crate::runtime::{Operator, OperatorContext, OperatorMetrics, Output, StateTable, StateTableSnapshot};
use crate::types::{Batch, InputNumber, KeyGroupRange, RowKind, RowKinds};

/// ORDER BY … LIMIT.
#[derive(Debug)]
pub struct SortLimit {
    rows: SortedRows,
    /// Whether the window was filled from restored rows, which were emitted before.
    is_current: bool,
    /// The rows that stand in the window, in order.
    visible: Vec<Box<[u8]>>,
}

/// The rows that matter, in order.
#[derive(Debug)]
struct SortedRows {
    keys: Vec<SortKey>,
    offset: usize,
    fetch: usize,
    input_retracts: bool,
    converters: Option<Converters>,
    /// By sort key and arrival: the whole row.
    rows: BTreeMap<Place, Kept>,
    ttl: Option<Ttl>,
    arrivals: u64,
    row_bytes: usize,
}

/// Sort key and arrival.
type Place = (Box<[u8]>, u64);

/// A row.
#[derive(Debug)]
struct Kept {
    row: Box<[u8]>,
    /// When it came, where rows have a time to live.
    written: i64,
}

/// A time to live.
#[derive(Debug)]
struct Ttl {
    ttl_ms: i64,
    clock: Arc<dyn Clock>,
    metrics: Arc<OperatorMetrics>,
    now: i64,
    /// When rows that are over are looked for; none = there are no rows behind the window.
    next_sweep: Option<i64>,
}

/// Parts of a time to live after which rows that are over are looked for.
const SWEEPS: i64 = 8;

impl Ttl {
    fn new(context: &OperatorContext) -> Option<Self> {
        let ttl_ms = context.state_ttl_ms.first().copied().filter(|ttl| *ttl > 0)?;
        Some(Ttl {
            ttl_ms: i64::try_from(ttl_ms).unwrap_or(i64::MAX),
            clock: Arc::clone(&context.environment.clock),
            metrics: Arc::clone(&context.metrics),
            now: i64::MIN,
            next_sweep: None,
        })
    }

    fn tick(&mut self) -> i64 {
        self.now = self.now.max(self.clock.now_ms());
        self.next_sweep.get_or_insert(self.now.saturating_add(self.ttl_ms));
        self.now
    }
}

#[derive(Debug)]
struct Converters {
    sort: RowConverter,
    row: RowConverter,
}

impl SortLimit {
    /// From the parts of its spec. Rows that leave the window always go by `-D`, whether or not someone needs `-U`.
    pub fn new(keys: Vec<SortKey>, offset: u64, fetch: u64, input_retracts: bool, context: &OperatorContext) -> Self {
        let rows = SortedRows {
            keys,
            offset: usize::try_from(offset).unwrap_or(usize::MAX),
            fetch: usize::try_from(fetch).unwrap_or(usize::MAX),
            input_retracts,
            converters: None,
            rows: BTreeMap::new(),
            ttl: if input_retracts { Ttl::new(context) } else { None },
            arrivals: 0,
            row_bytes: 0,
        };
        SortLimit { rows, is_current: true, visible: Vec::new() }
    }

    /// What changed in the window since the last time.
    fn changes(&mut self) -> Result<Option<Batch>> {
        let visible: Vec<Box<[u8]>> = self.rows.window().cloned().collect();
        let former = std::mem::replace(&mut self.visible, visible);
        let mut balance: HashMap<&[u8], i64> = HashMap::with_capacity(former.len() + self.visible.len());
        former.iter().for_each(|row| *balance.entry(row).or_default() -= 1);
        self.visible.iter().for_each(|row| *balance.entry(row).or_default() += 1);
        let mut take = |row: &[u8], sign: i64| {
            let left = balance.get_mut(row).expect("every row was counted");
            let counts = left.signum() == sign;
            *left -= if counts { sign } else { 0 };
            counts
        };
        let mut changed: Vec<(RowKind, &[u8])> = Vec::new();
        // Of equal rows the last ones go and come.
        for row in former.iter().rev().filter(|row| take(row, -1)) {
            changed.push((RowKind::Delete, row));
        }
        changed.reverse();
        let gone = changed.len();
        for row in self.visible.iter().rev().filter(|row| take(row, 1)) {
            changed.push((RowKind::Insert, row));
        }
        changed[gone..].reverse();
        if changed.is_empty() {
            return Ok(None);
        }
        let columns = self.rows.decode(changed.iter().map(|(_, row)| *row))?;
        let kinds = (gone > 0).then(|| RowKinds::new(changed.iter().map(|(kind, _)| *kind)));
        Ok(Some(Batch::new(columns, changed.len()).with_kinds(kinds)))
    }
}

impl SortedRows {
    fn converters(&mut self, columns: &[ArrayRef]) -> Result<&Converters> {
        if self.converters.is_none() {
            self.converters = Some(Converters { sort: sort_converter(columns, &self.keys)?, row: row_converter(columns)? });
        }
        Ok(self.converters.as_ref().expect("made above"))
    }

    /// How many rows are kept at most.
    fn capacity(&self) -> usize {
        if self.input_retracts { usize::MAX } else { self.offset.saturating_add(self.fetch) }
    }

    /// Adds rows, or by kind takes them back; whether anything changed.
    fn update(&mut self, batch: &Batch) -> Result<bool> {
        self.expire();
        self.update_at(batch, None)
    }

    /// The same with the times of rows; none = now.
    fn update_at(&mut self, batch: &Batch, times: Option<&Int64Array>) -> Result<bool> {
        let now = self.ttl.as_mut().map_or(0, Ttl::tick);
        let keys = key_columns(batch.columns(), &self.keys);
        let converters = self.converters(batch.columns())?;
        let sort_keys = converters.sort.convert_columns(&keys)?;
        let (batch, sort_keys) = self.leave_out_hopeless(batch, sort_keys)?;
        let rows = self.converters(batch.columns())?.row.convert_columns(batch.columns())?;
        for row in 0..batch.num_rows() {
            let (sort_key, bytes) = (sort_keys.row(row).data(), rows.row(row).data());
            if batch.kind(row).is_retraction() {
                self.remove(sort_key, bytes);
            } else {
                self.insert(sort_key, bytes, times.map_or(now, |times| times.value(row)));
            }
        }
        Ok(batch.num_rows() > 0)
    }

    /// When all places are taken, rows after the last one are left out before they are encoded.
    fn leave_out_hopeless(&self, batch: &Batch, sort_keys: Rows) -> Result<(Batch, Rows)> {
        let full = self.rows.len() >= self.capacity();
        let Some(((worst, _), _)) = self.rows.last_key_value().filter(|_| full) else {
            // With no place at all nothing is kept.
            return if full { Ok((batch.slice(0, 0), sort_keys)) } else { Ok((batch.clone(), sort_keys)) };
        };
        let mask = BooleanArray::from_iter(sort_keys.iter().map(|key| Some(key.data() < worst.as_ref())));
        let batch = batch.filter(&mask)?;
        let converters = self.converters.as_ref().expect("rows were encoded");
        let sort_keys = converters.sort.convert_columns(&key_columns(batch.columns(), &self.keys))?;
        Ok((batch, sort_keys))
    }

    fn insert(&mut self, sort_key: &[u8], row: &[u8], written: i64) {
        self.rows.insert((sort_key.into(), self.arrivals), Kept { row: row.into(), written });
        self.arrivals += 1;
        self.row_bytes += sort_key.len() + row.len();
        if self.rows.len() > self.capacity() {
            self.forget_last();
        }
    }

    fn forget_last(&mut self) {
        if let Some(((sort_key, _), kept)) = self.rows.pop_last() {
            self.row_bytes -= sort_key.len() + kept.row.len();
        }
    }

    /// Removes the earliest row that is equal; there is one unless the input is out of order.
    fn remove(&mut self, sort_key: &[u8], row: &[u8]) {
        let mut equal = self.rows.range((sort_key.into(), 0)..=(sort_key.into(), u64::MAX));
        let found = equal.find(|(_, other)| other.row.as_ref() == row).map(|(key, _)| key.clone());
        if let Some(key) = found {
            self.rows.remove(&key);
            self.row_bytes -= sort_key.len() + row.len();
        }
    }

    fn window(&self) -> impl Iterator<Item = &Box<[u8]>> {
        self.rows.values().skip(self.offset).take(self.fetch).map(|kept| &kept.row)
    }

    /// Forgets the rows behind the window that are over.
    fn expire(&mut self) {
        let Some(ttl) = &mut self.ttl else { return };
        let now = ttl.tick();
        if ttl.next_sweep.is_none_or(|at| at > now) {
            return;
        }
        let behind = self.offset.saturating_add(self.fetch);
        let limit = now.saturating_sub(ttl.ttl_ms);
        let (mut place, mut expired) = (0, 0);
        let row_bytes = &mut self.row_bytes;
        self.rows.retain(|(sort_key, _), kept| {
            place += 1;
            let stays = place <= behind || kept.written > limit;
            if !stays {
                expired += 1;
                *row_bytes -= sort_key.len() + kept.row.len();
            }
            stays
        });
        ttl.metrics.expired.fetch_add(expired, Ordering::Relaxed);
        ttl.next_sweep = (self.rows.len() > behind).then(|| now.saturating_add((ttl.ttl_ms / SWEEPS).max(1)));
    }

    fn decode<'a>(&self, rows: impl Iterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        let converter = &self.converters.as_ref().expect("rows were encoded").row;
        let parser = converter.parser();
        let rows: Vec<_> = rows.map(|row| row.to_vec()).collect();
        Ok(converter.convert_rows(rows.iter().map(|row| parser.parse(row)))?)
    }
}

impl Operator for SortLimit {
    fn process_batch(&mut self, _input: InputNumber, mut batch: Batch, output: &mut dyn Output) -> Result<()> {
        if !self.is_current {
            self.visible = self.rows.window().cloned().collect();
            self.is_current = true;
        }
        let steps = batch.take_steps();
        if batch.num_rows() > 0
            && self.rows.update(&batch)?
            && let Some(changes) = self.changes()?
        {
            output.batch(changes)?;
        }
        steps.last().map_or(Ok(()), |watermark| output.watermark(watermark))
    }

    fn next_processing_timer(&self) -> Option<i64> {
        self.rows.ttl.as_ref()?.next_sweep
    }

    fn process_time(&mut self, _now_ms: i64, _output: &mut dyn Output) -> Result<()> {
        self.rows.expire();
        Ok(())
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        self.is_current &= !self.rows.rows.is_empty();
        vec![("rows", &mut self.rows)]
    }
}

impl StateTable for SortedRows {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        if self.rows.is_empty() {
            return unkeyed_snapshot(None);
        }
        let columns = self.decode(self.rows.values().map(|kept| kept.row.as_ref()))?;
        let rows = state_rows(UInt16Array::from_value(0, self.rows.len()), columns)?;
        let times = self.ttl.as_ref().map(|_| Int64Array::from_iter_values(self.rows.values().map(|kept| kept.written)));
        Ok(StateTableSnapshot::new(vec![with_times(rows, times.map(|times| Arc::new(times) as ArrayRef))?]))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            let timed = has_times(rows);
            let rows = rows_in_range(rows, range)?;
            let (columns, times) = split_times(rows.columns(), timed);
            if rows.num_rows() > 0 {
                self.update_at(&Batch::new(columns.to_vec(), rows.num_rows()), times)?;
            }
            if let Some(ttl) = &mut self.ttl {
                ttl.next_sweep = Some(ttl.tick());
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.row_bytes + self.rows.len() * size_of::<(Place, Kept)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::*;

    fn by_number(descending: bool) -> Vec<SortKey> {
        vec![SortKey { column: 1, descending, nulls_first: !descending }]
    }

    #[test]
    fn the_first_rows_replace_each_other() {
        let mut sort = SortLimit::new(by_number(true), 0, 2, false, &context());
        let mut output = Lines::default();
        push(&mut sort, batch(&["+I a 10", "~1", "+I b NULL", "+I c 20", "~2"]), &mut output);
        assert_eq!(output.take(), ["+I c 20 0", "+I a 10 0", "~2"]);
        push(&mut sort, batch(&["+I d 10", "+I e 5"]), &mut output);
        assert_eq!(output.take(), [""; 0]);
        push(&mut sort, batch(&["+I f 30", "+I g 11", "+I h 25"]), &mut output);
        assert_eq!(output.take(), ["-D c 20 0", "-D a 10 0", "+I f 30 0", "+I h 25 0"]);
    }

    #[test]
    fn gaps_are_filled_when_rows_are_taken_back() {
        let mut sort = SortLimit::new(by_number(false), 1, 2, true, &context());
        let mut output = Lines::default();
        push(&mut sort, batch(&["+I a 1", "+I b 2", "+I c 3", "+I d 4"]), &mut output);
        assert_eq!(output.take(), ["+I b 2 0", "+I c 3 0"]);
        let mut restored = SortLimit::new(by_number(false), 1, 2, true, &context());
        restore(&mut restored, &context(), &snapshot(&mut sort));
        push(&mut restored, batch(&["-D a 1", "-U c 3", "+U c 9"]), &mut output);
        assert_eq!(output.take(), ["-D b 2 0", "-D c 3 0", "+I d 4 0", "+I c 9 0"]);
        push(&mut restored, batch(&["+I d 4", "-D d 4"]), &mut output);
        assert_eq!(output.take(), [""; 0]);
    }

    #[test]
    fn a_limit_of_nothing_lets_nothing_out() {
        let mut sort = SortLimit::new(by_number(false), 0, 0, false, &context());
        let mut output = Lines::default();
        push(&mut sort, batch(&["+I a 1"]), &mut output);
        assert_eq!(output.take(), [""; 0]);
    }

    #[test]
    fn random_changes_leave_the_first_rows_of_what_is_there() {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut sort = SortLimit::new(by_number(false), 2, 5, true, &context());
            let (mut present, mut shown): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
            for _ in 0..60 {
                let mut lines = Vec::new();
                for _ in 0..random.usize(1..6) {
                    if !present.is_empty() && random.bool() {
                        lines.push(format!("-D a {}", present.swap_remove(random.usize(0..present.len()))));
                    } else {
                        present.push(random.i64(0..20));
                        lines.push(format!("+I a {}", present[present.len() - 1]));
                    }
                }
                let mut output = Lines::default();
                push(&mut sort, batch(&lines.iter().map(String::as_str).collect::<Vec<_>>()), &mut output);
                for line in output.take() {
                    let number: i64 = line.split(' ').nth(2).unwrap().parse().unwrap();
                    match line.starts_with('+') {
                        true => shown.push(number),
                        false => drop(shown.swap_remove(shown.iter().position(|other| *other == number).unwrap())),
                    }
                }
                present.sort_unstable();
                shown.sort_unstable();
                assert_eq!(shown, present.iter().skip(2).take(5).copied().collect::<Vec<_>>(), "seed {seed}");
            }
        }
    }
}
