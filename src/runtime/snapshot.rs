//! A frozen table of state: taken in no time while the task waits at a barrier, written out while it goes on.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::error::Result;

/// Takes the batches of a snapshot one by one.
pub type TakeBatch<'a> = dyn FnMut(RecordBatch) -> Result<()> + 'a;

/// State as it was at one moment, whatever happens to its table since: shared columns and copies of what is small.
///
/// A closure is one too: `StateTableSnapshot::frozen(move |take: &mut TakeBatch<'_>| …)`.
pub trait FrozenState: Send + Sync {
    /// Gives all rows, a batch at a time, so that a big table is never held twice. Called beside the task, perhaps more than once.
    fn for_each_batch(&self, take: &mut TakeBatch<'_>) -> Result<()>;
}

impl<F: Fn(&mut TakeBatch<'_>) -> Result<()> + Send + Sync> FrozenState for F {
    fn for_each_batch(&self, take: &mut TakeBatch<'_>) -> Result<()> {
        self(take)
    }
}

/// Rows that are there already.
impl FrozenState for Vec<RecordBatch> {
    fn for_each_batch(&self, take: &mut TakeBatch<'_>) -> Result<()> {
        self.iter().cloned().try_for_each(take)
    }
}

/// A frozen table of state: self-describing rows whose first column, `key_group`, is UInt16 (0 for state that is not keyed). Cheap to
/// clone.
#[derive(Clone)]
pub struct StateTableSnapshot(Arc<dyn FrozenState>);

impl StateTableSnapshot {
    /// Of rows that are there already.
    pub fn new(rows: Vec<RecordBatch>) -> Self {
        StateTableSnapshot(Arc::new(rows))
    }

    /// Of state whose rows are made when they are asked for, on another thread.
    pub fn frozen(state: impl FrozenState + 'static) -> Self {
        StateTableSnapshot(Arc::new(state))
    }

    /// Gives all rows, a batch at a time.
    pub fn for_each_batch(&self, mut take: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        self.0.for_each_batch(&mut take)
    }

    /// All rows at once: for what is small, and for restoring.
    pub fn rows(&self) -> Result<Vec<RecordBatch>> {
        let mut rows = Vec::new();
        self.for_each_batch(|batch| {
            rows.push(batch);
            Ok(())
        })?;
        Ok(rows)
    }
}

impl fmt::Debug for StateTableSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateTableSnapshot")
    }
}
