//! COUNT(*) and COUNT(x, …): rows, or rows where no argument is NULL.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, Int64Type};

use super::rows::{Rows, at};
use crate::error::Result;
use crate::expr::GroupsAccumulator;
use crate::types::RowKinds;

/// The counts of all groups.
#[derive(Debug, Default)]
pub(super) struct Count {
    counts: Vec<i64>,
}

impl GroupsAccumulator for Count {
    fn resize(&mut self, num_groups: usize) {
        self.counts.resize(num_groups, 0);
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        let counts = &mut self.counts;
        Rows::new(groups, args, filter, kinds).for_each(|_, group, retract| counts[group] += if retract { -1 } else { 1 });
        Ok(())
    }

    fn state_types(&self) -> Vec<DataType> {
        vec![DataType::Int64]
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(groups)?])
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        let added = state[0].as_primitive::<Int64Type>().values();
        groups.iter().zip(added).for_each(|(group, count)| self.counts[*group as usize] += count);
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        Ok(Arc::new(Int64Array::from_iter_values(at(&self.counts, groups))))
    }

    fn clear(&mut self, groups: &[u32]) {
        groups.iter().for_each(|group| self.counts[*group as usize] = 0);
    }

    fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<i64>()
    }
}
