//! MIN and MAX of texts while rows only come: compared where they stand, and copied only when the extreme moves.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, StringViewArray};
use arrow::datatypes::DataType;

use super::min_max::Extreme;
use super::rows::Rows;
use crate::error::Result;
use crate::expr::GroupsAccumulator;
use crate::types::RowKinds;

/// Extremes of texts, in the order of their bytes.
pub(super) struct TextExtreme<E> {
    values: Vec<Option<String>>,
    value_bytes: usize,
    extreme: PhantomData<E>,
}

impl<E> Default for TextExtreme<E> {
    fn default() -> Self {
        TextExtreme { values: Vec::new(), value_bytes: 0, extreme: PhantomData }
    }
}

impl<E: Extreme> GroupsAccumulator for TextExtreme<E> {
    fn resize(&mut self, num_groups: usize) {
        self.values.resize(num_groups, None);
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        _kinds: Option<&RowKinds>,
    ) -> Result<()> {
        let candidates = args[0].as_string_view();
        Rows::new(groups, args, filter, None).for_each(|row, group, _| {
            let candidate = candidates.value(row);
            match &mut self.values[group] {
                Some(current) if !E::replaces(candidate, current.as_str()) => {}
                Some(current) => {
                    self.value_bytes -= current.capacity();
                    current.clear();
                    current.push_str(candidate);
                    self.value_bytes += current.capacity();
                }
                none => self.value_bytes += none.insert(candidate.to_string()).capacity(),
            }
        });
        Ok(())
    }

    fn state_types(&self) -> Vec<DataType> {
        vec![DataType::Utf8View]
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(groups)?])
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        self.update(groups, state, None, None)
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        let values = groups.iter().map(|group| self.values[*group as usize].as_deref());
        Ok(Arc::new(values.collect::<StringViewArray>()))
    }

    fn clear(&mut self, groups: &[u32]) {
        for group in groups {
            self.value_bytes -= self.values[*group as usize].take().map_or(0, |value| value.capacity());
        }
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<Option<String>>() + self.value_bytes
    }
}
