//! MIN and MAX while rows only come: the extreme value so far. (Where rows go too, see [`super::multiset`].)

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray};
use arrow::datatypes::DataType;

use super::group_values::GroupValues;
use super::rows::{Rows, array_at};
use crate::error::Result;
use crate::expr::GroupsAccumulator;
use crate::types::RowKinds;

/// Which extreme.
pub(super) trait Extreme: Send {
    /// Whether `candidate` replaces `current`.
    fn replaces<T: PartialOrd + ?Sized>(candidate: &T, current: &T) -> bool;
}

/// MIN.
pub(super) struct Least;

impl Extreme for Least {
    #[inline]
    fn replaces<T: PartialOrd + ?Sized>(candidate: &T, current: &T) -> bool {
        candidate < current
    }
}

/// MAX.
pub(super) struct Greatest;

impl Extreme for Greatest {
    #[inline]
    fn replaces<T: PartialOrd + ?Sized>(candidate: &T, current: &T) -> bool {
        candidate > current
    }
}

/// Extremes of a type of fixed width.
pub(super) struct PrimitiveExtreme<T: ArrowPrimitiveType, E> {
    data_type: DataType,
    values: Vec<T::Native>,
    present: Vec<bool>,
    extreme: PhantomData<E>,
}

impl<T: ArrowPrimitiveType, E> PrimitiveExtreme<T, E> {
    /// Of this Arrow type.
    pub(super) fn new(data_type: DataType) -> Self {
        PrimitiveExtreme { data_type, values: Vec::new(), present: Vec::new(), extreme: PhantomData }
    }
}

impl<T: ArrowPrimitiveType, E: Extreme> GroupsAccumulator for PrimitiveExtreme<T, E> {
    fn resize(&mut self, num_groups: usize) {
        self.values.resize(num_groups, T::Native::default());
        self.present.resize(num_groups, false);
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        _kinds: Option<&RowKinds>,
    ) -> Result<()> {
        let candidates = args[0].as_primitive::<T>().values();
        Rows::new(groups, args, filter, None).for_each(|row, group, _| {
            if !self.present[group] || E::replaces(&candidates[row], &self.values[group]) {
                self.values[group] = candidates[row];
                self.present[group] = true;
            }
        });
        Ok(())
    }

    fn state_types(&self) -> Vec<DataType> {
        vec![self.data_type.clone()]
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(groups)?])
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        self.update(groups, state, None, None)
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        Ok(Arc::new(array_at::<T>(&self.values, &self.present, groups).with_data_type(self.data_type.clone())))
    }

    fn clear(&mut self, groups: &[u32]) {
        groups.iter().for_each(|group| self.present[*group as usize] = false);
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<T::Native>() + self.present.capacity()
    }
}

/// Extremes of any other type, as rows of bytes.
pub(super) struct RowExtreme<E> {
    values: GroupValues,
    extreme: PhantomData<E>,
}

impl<E> RowExtreme<E> {
    /// Of this Arrow type.
    pub(super) fn new(data_type: DataType) -> Result<Self> {
        Ok(RowExtreme { values: GroupValues::new(data_type)?, extreme: PhantomData })
    }
}

impl<E: Extreme> GroupsAccumulator for RowExtreme<E> {
    fn resize(&mut self, num_groups: usize) {
        self.values.resize(num_groups);
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        _kinds: Option<&RowKinds>,
    ) -> Result<()> {
        let rows = self.values.encode(&args[0])?;
        Rows::new(groups, args, filter, None).for_each(|row, group, _| {
            let candidate = rows.row(row).data();
            if self.values.get(group).is_none_or(|current| E::replaces(candidate, current)) {
                self.values.set(group, candidate);
            }
        });
        Ok(())
    }

    fn state_types(&self) -> Vec<DataType> {
        vec![self.values.data_type().clone()]
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(groups)?])
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        self.update(groups, state, None, None)
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        self.values.decode(groups)
    }

    fn clear(&mut self, groups: &[u32]) {
        self.values.clear(groups);
    }

    fn bytes(&self) -> usize {
        self.values.bytes()
    }
}
