//! An accumulator that works on other values than its arguments: it keeps what another one keeps, with a conversion before and after.

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::DataType;

use crate::error::Result;
use crate::expr::GroupsAccumulator;
use crate::types::RowKinds;

/// The conversions around an accumulator.
pub(super) trait Adapter: Send {
    /// What keeps the groups.
    type Inner: GroupsAccumulator;

    /// The values that are kept, of arguments; `filter` as in [`GroupsAccumulator::update`].
    fn values(&self, args: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>>;

    /// The results of these groups, from what is kept.
    fn results(&self, kept: &Self::Inner, groups: &[u32]) -> Result<ArrayRef>;
}

/// An accumulator with conversions around it.
pub(super) struct Adapted<A: Adapter> {
    adapter: A,
    inner: A::Inner,
}

impl<A: Adapter> Adapted<A> {
    /// Of both parts.
    pub(super) fn new(adapter: A, inner: A::Inner) -> Self {
        Adapted { adapter, inner }
    }
}

impl<A: Adapter> GroupsAccumulator for Adapted<A> {
    fn resize(&mut self, num_groups: usize) {
        self.inner.resize(num_groups);
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        self.inner.update(groups, &self.adapter.values(args, filter)?, filter, kinds)
    }

    fn state_types(&self) -> Vec<DataType> {
        self.inner.state_types()
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        self.inner.state(groups)
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        self.inner.merge(groups, state)
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        self.adapter.results(&self.inner, groups)
    }

    fn clear(&mut self, groups: &[u32]) {
        self.inner.clear(groups);
    }

    fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    fn depends_on_order(&self) -> bool {
        self.inner.depends_on_order()
    }
}
