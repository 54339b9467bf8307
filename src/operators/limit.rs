//! LIMIT and OFFSET without ORDER BY: the first rows in the order of arrival. When it has them all, it says so, and the sources may end.

use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, UInt16Array};
use arrow::datatypes::Int64Type;

use super::keyed_state::{rows_in_range, state_rows};
use crate::error::Result;
use crate::runtime::{Operator, Output, StateTable, StateTableSnapshot};
use crate::types::{Batch, InputNumber, KeyGroupRange};

/// The first rows in the order of arrival.
#[derive(Debug)]
pub struct Limit {
    counters: Counters,
}

/// What is still to be left out and to be passed.
#[derive(Debug)]
struct Counters {
    skip: u64,
    pass: Option<u64>,
}

impl Limit {
    /// Leaves out `offset` rows, then passes `fetch` (none = all).
    pub fn new(offset: u64, fetch: Option<u64>) -> Self {
        Limit { counters: Counters { skip: offset, pass: fetch } }
    }
}

impl Operator for Limit {
    fn process_batch(&mut self, _input: InputNumber, batch: Batch, output: &mut dyn Output) -> Result<()> {
        let num_rows = batch.num_rows() as u64;
        let skipped = self.counters.skip.min(num_rows);
        let passed = self.counters.pass.unwrap_or(u64::MAX).min(num_rows - skipped);
        self.counters.skip -= skipped;
        if let Some(pass) = &mut self.counters.pass {
            *pass -= passed;
        }
        let last = batch.steps().last();
        output.batch(batch.slice(skipped as usize, passed as usize))?;
        // Steps between rows that were left out are not lost.
        last.map_or(Ok(()), |watermark| output.watermark(watermark))
    }

    fn is_satisfied(&self) -> bool {
        self.counters.pass == Some(0)
    }

    fn state(&mut self) -> Vec<(&'static str, &mut dyn StateTable)> {
        vec![("counters", &mut self.counters)]
    }
}

impl StateTable for Counters {
    fn snapshot(&mut self) -> Result<StateTableSnapshot> {
        let skip = Int64Array::from(vec![self.skip as i64]);
        let pass = Int64Array::from(vec![self.pass.map(|pass| pass as i64)]);
        let rows = state_rows(UInt16Array::from(vec![0]), vec![Arc::new(skip), Arc::new(pass)])?;
        Ok(StateTableSnapshot::new(vec![rows]))
    }

    fn restore(&mut self, snapshot: &StateTableSnapshot, range: KeyGroupRange) -> Result<()> {
        for rows in &snapshot.rows()? {
            let rows = rows_in_range(rows, range)?;
            if let Some(skip) = rows.column(0).as_primitive::<Int64Type>().iter().next().flatten() {
                self.skip = skip as u64;
                self.pass = rows.column(1).as_primitive::<Int64Type>().iter().next().flatten().map(|pass| pass as u64);
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        size_of::<Counters>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::*;

    #[test]
    fn rows_are_counted_across_batches_and_a_restart() {
        let mut limit = Limit::new(1, Some(2));
        let mut output = Lines::default();
        push(&mut limit, batch(&["+I a 1", "~3", "+I b 2", "~4"]), &mut output);
        assert_eq!(output.take(), ["+I b 2 0", "~4", "~4"]);
        let mut restored = Limit::new(1, Some(2));
        restore(&mut restored, &context(), &snapshot(&mut limit));
        push(&mut restored, batch(&["+I c 3", "+I d 4", "~9"]), &mut output);
        assert_eq!(output.take(), ["+I c 3 0", "~9"]);
        assert!(restored.is_satisfied());
    }
}
