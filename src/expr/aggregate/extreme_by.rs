//! MAX_BY and MIN_BY: the value of one column where another is greatest or least. Of rows that are equal there, the greater (lesser) value.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, StructArray};
use arrow::compute::is_not_null;
use arrow::datatypes::{DataType, Field, Fields};

use crate::error::Result;
use crate::expr::GroupsAccumulator;
use crate::types::RowKinds;

/// Extremes of pairs: the deciding column and the value.
pub(super) struct ExtremeBy {
    pairs: Box<dyn GroupsAccumulator>,
    fields: Fields,
}

impl ExtremeBy {
    /// `accumulator` makes the one for values of a type that finds the extreme.
    pub(super) fn new(
        value: DataType,
        by: DataType,
        accumulator: impl FnOnce(DataType) -> Result<Box<dyn GroupsAccumulator>>,
    ) -> Result<Self> {
        let fields = Fields::from(vec![Field::new("by", by, true), Field::new("value", value, true)]);
        Ok(ExtremeBy { pairs: accumulator(DataType::Struct(fields.clone()))?, fields })
    }
}

impl GroupsAccumulator for ExtremeBy {
    fn resize(&mut self, num_groups: usize) {
        self.pairs.resize(num_groups);
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        let decided = is_not_null(args[1].as_ref())?;
        let columns = vec![Arc::clone(&args[1]), Arc::clone(&args[0])];
        let pairs = StructArray::try_new(self.fields.clone(), columns, Some(decided.values().clone().into()))?;
        self.pairs.update(groups, &[Arc::new(pairs)], filter, kinds)
    }

    fn state_types(&self) -> Vec<DataType> {
        self.pairs.state_types()
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        self.pairs.state(groups)
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        self.pairs.merge(groups, state)
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        let pairs = self.pairs.evaluate(groups)?;
        let pairs = pairs.as_struct();
        crate::expr::values::field_of(pairs, 1)
    }

    fn clear(&mut self, groups: &[u32]) {
        self.pairs.clear(groups);
    }

    fn bytes(&self) -> usize {
        self.pairs.bytes()
    }
}
