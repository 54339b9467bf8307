//! The rows of the query that a scalar subquery is joined with, and how long they are kept.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, AsArray, Int64Array, UInt16Array};
use arrow::datatypes::Int64Type;

use crate::clock::Clock;
use crate::error::Result;
use crate::operators::keyed_state::{rows_in_range, state_rows};
use crate::operators::row_bag::RowBag;
use crate::operators::row_buffer::RowBuffer;
use crate::operators::state_ttl::{has_times, split_times, with_times};
use crate::runtime::{OperatorContext, OperatorMetrics, StateTable, StateTableSnapshot};
use crate::types::{Batch, KeyGroupRange};

/// Parts of a time to live after which rows that are over are looked for.
const SWEEPS: i64 = 8;

/// All rows of the left input. With a time to live each is forgotten so long after it came.
#[derive(Debug)]
pub(super) struct LeftRows {
    kept: Kept,
    ttl: Option<Ttl>,
}

#[derive(Debug)]
enum Kept {
    /// It only adds rows. With a time to live their last column says when they came.
    Buffer(RowBuffer),
    /// It takes rows back too.
    Bag(RowBag),
}

#[derive(Debug)]
struct Ttl {
    ttl_ms: i64,
    clock: Arc<dyn Clock>,
    metrics: Arc<OperatorMetrics>,
    now: i64,
    /// When rows that are over are looked for; none = there are no rows.
    next_sweep: Option<i64>,
}

impl LeftRows {
    pub(super) fn new(retracts: bool, context: &OperatorContext) -> Self {
        let ttl_ms = context.state_ttl_ms.first().copied().filter(|ttl| *ttl > 0);
        let ttl = ttl_ms.map(|ttl_ms| Ttl {
            ttl_ms: i64::try_from(ttl_ms).unwrap_or(i64::MAX),
            clock: Arc::clone(&context.environment.clock),
            metrics: Arc::clone(&context.metrics),
            now: i64::MIN,
            next_sweep: None,
        });
        let kept = match retracts {
            true if ttl.is_some() => Kept::Bag(RowBag::that_forgets()),
            true => Kept::Bag(RowBag::default()),
            false => Kept::Buffer(RowBuffer::default()),
        };
        LeftRows { kept, ttl }
    }

    /// Adds rows, or by kind takes them back.
    pub(super) fn add(&mut self, batch: Batch) -> Result<()> {
        match &mut self.ttl {
            None => self.add_at(batch, None),
            Some(ttl) => {
                let times = Int64Array::from_value(ttl.tick(), batch.num_rows());
                self.add_at(batch, Some(&times))
            }
        }
    }

    fn add_at(&mut self, batch: Batch, times: Option<&Int64Array>) -> Result<()> {
        match (&mut self.kept, times) {
            (Kept::Buffer(buffer), None) => buffer.push(batch),
            (Kept::Buffer(buffer), Some(times)) => {
                let columns = batch.columns().iter().cloned().chain([Arc::new(times.clone()) as ArrayRef]).collect();
                buffer.push(batch.with_columns(columns));
            }
            (Kept::Bag(bag), times) => bag.update_at(&batch, |row| times.map_or(0, |times| times.value(row)))?,
        }
        Ok(())
    }

    /// All rows that are not over; none = there is no row.
    pub(super) fn all(&mut self) -> Result<Option<Batch>> {
        self.expire()?;
        Ok(self.all_with_times()?.0)
    }

    fn all_with_times(&mut self) -> Result<(Option<Batch>, Option<ArrayRef>)> {
        let timed = self.ttl.is_some();
        let times_of = |times: &Int64Array| Arc::new(times.clone()) as ArrayRef;
        Ok(match &mut self.kept {
            Kept::Bag(bag) => (bag.rows()?, timed.then(|| times_of(&bag.times()))),
            Kept::Buffer(buffer) => match buffer.all()? {
                Some(rows) if timed => {
                    let (rows, times) = without_times(rows);
                    (Some(rows), Some(times_of(times)))
                }
                rows => (rows.cloned(), None),
            },
        })
    }

    /// When [`Self::expire`] has something to forget.
    pub(super) fn next_timer(&self) -> Option<i64> {
        self.ttl.as_ref()?.next_sweep
    }

    /// Forgets the rows that are over.
    pub(super) fn expire(&mut self) -> Result<()> {
        let Some(ttl) = &mut self.ttl else { return Ok(()) };
        let now = ttl.tick();
        // Also a row of this very millisecond lives for the whole time.
        let limit = now.saturating_sub(ttl.ttl_ms);
        let (expired, is_empty) = match &mut self.kept {
            Kept::Bag(bag) => (bag.expire(limit), bag.is_empty()),
            Kept::Buffer(buffer) => {
                let Some(rows) = buffer.take()? else {
                    ttl.next_sweep = None;
                    return Ok(());
                };
                let (_, times) = without_times(&rows);
                let over = times.values().iter().take_while(|time| **time <= limit).count();
                let rest = rows.slice(over, rows.num_rows() - over);
                let is_empty = rest.num_rows() == 0;
                // What is over must not be held by what is left.
                buffer.push(if over > 0 { Batch::concat(&[rest.slice(0, 0), rest])? } else { rest });
                (over, is_empty)
            }
        };
        ttl.metrics.expired.fetch_add(expired as u64, Ordering::Relaxed);
        ttl.next_sweep = (!is_empty).then(|| now.saturating_add((ttl.ttl_ms / SWEEPS).max(1)));
        Ok(())
    }
}

impl StateTable for LeftRows {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let (rows, times) = self.all_with_times()?;
        let Some(rows) = rows else { return Ok(StateTableSnapshot::new(Vec::new())) };
        let rows = state_rows(UInt16Array::from_value(0, rows.num_rows()), rows.columns().to_vec())?;
        Ok(StateTableSnapshot::new(vec![with_times(rows, times)?]))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            let timed = has_times(rows);
            let rows = rows_in_range(rows, range)?;
            let (columns, times) = split_times(rows.columns(), timed);
            let columns = Batch::new(columns.to_vec(), rows.num_rows());
            match (&mut self.ttl, times) {
                (Some(ttl), Some(times)) => {
                    ttl.next_sweep = Some(ttl.tick());
                    self.add_at(columns, Some(times))?;
                }
                _ => self.add(columns)?,
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        match &self.kept {
            Kept::Buffer(buffer) => buffer.bytes(),
            Kept::Bag(bag) => bag.bytes(),
        }
    }
}

impl Ttl {
    fn tick(&mut self) -> i64 {
        self.now = self.now.max(self.clock.now_ms());
        self.next_sweep.get_or_insert(self.now.saturating_add(self.ttl_ms));
        self.now
    }
}

fn without_times(rows: &Batch) -> (Batch, &Int64Array) {
    let (times, columns) = rows.columns().split_last().expect("the time is the last column");
    (Batch::new(columns.to_vec(), rows.num_rows()), times.as_primitive::<Int64Type>())
}
