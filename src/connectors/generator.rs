//! Sources that make their rows: numbered rows, dealt to the readers in turn, at a rate or as fast as they are taken.
//!
//! A row is a function of its number and of what its split was dealt with (a seed, the start of the job), so a position is all that is
//! needed to go on after a restart, with as many readers as there are then.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::array::ArrayRef;
use serde::{Deserialize, Serialize};

use super::known_splits::KnownSplits;
use crate::clock::{Clock, random_seed};
use crate::error::{Error, Result};
use crate::runtime::{ReaderContext, Source, SourceEvent, SourceReader, Split, SplitEnumerator};
use crate::types::{Batch, SplitId};

/// The rate is kept over stretches of this length: shorter ones would make tiny batches, longer ones a stutter.
const STRETCH_MS: u64 = 100;

/// Some rows to be made: the numbers `first`, `first + step`, … (`count` of them).
#[derive(Debug, Clone, Copy)]
pub struct RowSpan {
    /// The first number.
    pub first: u64,
    /// The distance of numbers.
    pub step: u64,
    /// How many.
    pub count: usize,
    /// What random values follow from, besides the number: the same for all rows of the source, and after restarts.
    pub seed: u64,
    /// When the job began that read the split first, milliseconds since the epoch.
    pub start_ms: i64,
}

/// Makes rows by their numbers.
pub trait RowGenerator: Send {
    /// The produced columns of some rows.
    fn generate(&mut self, rows: RowSpan) -> Result<Vec<ArrayRef>>;

    /// Rows that may stand in a batch, which their size allows.
    fn batch_rows_max(&self) -> u64 {
        u64::MAX
    }
}

/// Makes the generator of a reader.
pub type GeneratorFactory = Arc<dyn Fn(&ReaderContext) -> Result<Box<dyn RowGenerator>> + Send + Sync>;

/// A source of made rows.
#[derive(Clone)]
pub struct GeneratorSource {
    /// Makes the generators.
    pub factory: GeneratorFactory,
    /// Rows in all; none = without end.
    pub rows: Option<u64>,
    /// Rows a second of all readers together; none = as fast as they are taken.
    pub rows_per_second: Option<u64>,
}

impl fmt::Debug for GeneratorSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GeneratorSource({:?} rows)", self.rows)
    }
}

impl Source for GeneratorSource {
    fn enumerator(&self, parallelism: u32) -> Result<Box<dyn SplitEnumerator>> {
        let (readers, seed) = (u64::from(parallelism), random_seed());
        let split = |reader| {
            let numbers = RowNumbers { next: reader, step: readers, end: self.rows, seed, start_ms: None };
            let state = serde_json::to_string(&numbers).expect("row numbers have only plain fields");
            Split { id: SplitId(reader), state }
        };
        Ok(Box::new(KnownSplits::for_readers((0..readers).map(split).collect())))
    }

    fn reader(&self, context: ReaderContext) -> Result<Box<dyn SourceReader>> {
        Ok(Box::new(GeneratorReader {
            generator: (self.factory)(&context)?,
            splits: BTreeMap::new(),
            paused: BTreeSet::new(),
            no_more_splits: false,
            asked: false,
            batch_rows: context.batch_rows.max(1) as u64,
            job_start_ms: context.operator.job_start_ms,
            pace: self.rows_per_second.map(|rate| Pace::new(rate, context.parallelism, &context.clock)),
        }))
    }
}

/// The rows of one reader: every `step`-th from `next` on.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RowNumbers {
    next: u64,
    step: u64,
    end: Option<u64>,
    seed: u64,
    /// None until a reader has it.
    start_ms: Option<i64>,
}

impl RowNumbers {
    fn left(&self) -> u64 {
        self.end.map_or(u64::MAX, |end| end.saturating_sub(self.next).div_ceil(self.step))
    }
}

/// How many rows are due by the clock.
struct Pace {
    clock: Arc<dyn Clock>,
    start_ms: i64,
    /// Rows in a thousand seconds, so that a share of a small rate is not rounded away.
    rows_per_1000s: u64,
    emitted: u64,
}

impl Pace {
    fn new(rows_per_second: u64, readers: u32, clock: &Arc<dyn Clock>) -> Self {
        let rows_per_1000s = (rows_per_second.saturating_mul(1000) / u64::from(readers)).max(1);
        Pace { clock: Arc::clone(clock), start_ms: clock.now_ms(), rows_per_1000s, emitted: 0 }
    }

    /// Rows that may be emitted now; none = the waker is called when there may be some.
    fn due(&self, context: &Context<'_>) -> Option<u64> {
        let now_ms = self.clock.now_ms();
        let stretches = (now_ms - self.start_ms).max(0) as u64 / STRETCH_MS + 1;
        let rows = (u128::from(stretches) * u128::from(STRETCH_MS) * u128::from(self.rows_per_1000s)).div_ceil(1_000_000);
        let due = (rows as u64).saturating_sub(self.emitted);
        if due == 0 {
            self.clock.wake_at(self.start_ms + (stretches * STRETCH_MS) as i64, context.waker());
            return None;
        }
        Some(due)
    }
}

struct GeneratorReader {
    generator: Box<dyn RowGenerator>,
    /// One, or after a restart several.
    splits: BTreeMap<SplitId, RowNumbers>,
    /// Splits that give nothing for a while.
    paused: BTreeSet<SplitId>,
    no_more_splits: bool,
    asked: bool,
    batch_rows: u64,
    job_start_ms: i64,
    pace: Option<Pace>,
}

impl SourceReader for GeneratorReader {
    fn add_splits(&mut self, splits: Vec<Split>) -> Result<()> {
        for split in splits {
            let mut numbers: RowNumbers = serde_json::from_str(&split.state)
                .map_err(|error| Error::internal(format!("the state of a generator split is not readable: {error}")))?;
            numbers.start_ms.get_or_insert(self.job_start_ms);
            self.splits.insert(split.id, numbers);
        }
        self.asked = false;
        Ok(())
    }

    fn no_more_splits(&mut self) {
        self.no_more_splits = true;
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<SourceEvent>> {
        // The one whose next row comes first: so the rows of several come in their order.
        let running = self.splits.iter_mut().filter(|(id, _)| !self.paused.contains(id));
        let Some((id, numbers)) = running.min_by_key(|(_, numbers)| numbers.next) else {
            if self.no_more_splits {
                return Poll::Ready(Ok(SourceEvent::End));
            }
            return if std::mem::replace(&mut self.asked, true) {
                Poll::Pending
            } else {
                Poll::Ready(Ok(SourceEvent::NeedSplit))
            };
        };
        let id = *id;
        let left = numbers.left();
        if left == 0 {
            self.splits.remove(&id);
            return Poll::Ready(Ok(SourceEvent::SplitFinished(id)));
        }
        let due = match &self.pace {
            Some(pace) => match pace.due(context) {
                Some(due) => due,
                None => return Poll::Pending,
            },
            None => u64::MAX,
        };
        let count = left.min(due).min(self.batch_rows).min(self.generator.batch_rows_max());
        let start_ms = numbers.start_ms.unwrap_or(self.job_start_ms);
        let span = RowSpan { first: numbers.next, step: numbers.step, count: count as usize, seed: numbers.seed, start_ms };
        let columns = match self.generator.generate(span) {
            Ok(columns) => columns,
            Err(error) => return Poll::Ready(Err(error)),
        };
        numbers.next += count * numbers.step;
        if let Some(pace) = &mut self.pace {
            pace.emitted += count;
        }
        Poll::Ready(Ok(SourceEvent::Batch(id, Batch::new(columns, count as usize))))
    }

    fn pause(&mut self, splits: &BTreeSet<SplitId>) {
        self.paused.clone_from(splits);
    }

    fn snapshot(&self) -> Result<Vec<Split>> {
        let state = |numbers: &RowNumbers| serde_json::to_string(numbers).expect("row numbers have only plain fields");
        Ok(self.splits.iter().map(|(id, numbers)| Split { id: *id, state: state(numbers) }).collect())
    }
}
