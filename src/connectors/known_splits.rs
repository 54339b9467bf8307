//! The enumerator of a source whose splits are known before anything is read: all come with the first look, and no more ever.

use crate::error::Result;
use crate::runtime::{Split, SplitEnumerator};

/// Splits that are given out once.
pub(super) struct KnownSplits {
    /// Those that have not been given out: all or none.
    splits: Vec<Split>,
    all_at_start: bool,
}

impl KnownSplits {
    /// A whole table as one split, so that its rows keep their order.
    pub(super) fn one(split: Split) -> Self {
        KnownSplits { splits: vec![split], all_at_start: false }
    }

    /// One split a reader: with a watermark none of them may start alone.
    pub(super) fn for_readers(splits: Vec<Split>) -> Self {
        KnownSplits { splits, all_at_start: true }
    }
}

impl SplitEnumerator for KnownSplits {
    fn discover(&mut self) -> Result<Vec<Split>> {
        Ok(std::mem::take(&mut self.splits))
    }

    fn discovery_interval_ms(&self) -> Option<u64> {
        None
    }

    fn assign_all_at_start(&self) -> bool {
        self.all_at_start
    }

    /// Nothing: the splits were given out before anyone could ask.
    fn snapshot(&self) -> String {
        String::new()
    }

    fn restore(&mut self, _state: &str) -> Result<()> {
        self.splits.clear();
        Ok(())
    }
}
