//! The values of each group with how often each occurs, sorted: what MIN and MAX need where rows are taken back, and COLLECT always.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int64Type};

use super::row_codec::RowCodec;
use super::rows::Rows;
use crate::error::Result;
use crate::expr::GroupsAccumulator;
use crate::types::{RowKinds, build_maps};

/// What is made of the values of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MultisetResult {
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// All of them, a MULTISET.
    Collect,
}

/// The multisets of all groups.
#[derive(Debug)]
pub(super) struct Multiset {
    values: Vec<BTreeMap<Box<[u8]>, i64>>,
    value_type: DataType,
    codec: RowCodec,
    result: MultisetResult,
    value_bytes: usize,
}

/// What a map entry takes beside its bytes, roughly.
const ENTRY_BYTES: usize = 56;

/// What the first entry of a group takes, roughly: the first node of its tree, which has room for more.
const TREE_BYTES: usize = 240;

impl Multiset {
    /// Of values of `value_type`.
    pub(super) fn new(value_type: DataType, result: MultisetResult) -> Result<Self> {
        let codec = RowCodec::new(&value_type)?;
        Ok(Multiset { values: Vec::new(), value_type, codec, result, value_bytes: 0 })
    }

    /// A count may fall below 0 for a while when a row is taken back before it came; at 0 the value is forgotten.
    fn add(&mut self, group: usize, value: &[u8], count: i64) {
        let values = &mut self.values[group];
        match values.get_mut(value) {
            Some(total) => {
                *total += count;
                if *total == 0 {
                    values.remove(value);
                    self.value_bytes -= value.len() + ENTRY_BYTES + if values.is_empty() { TREE_BYTES } else { 0 };
                }
            }
            None => {
                self.value_bytes += value.len() + ENTRY_BYTES + if values.is_empty() { TREE_BYTES } else { 0 };
                values.insert(value.into(), count);
            }
        }
    }

    /// The values that a group has, in their order, with how often each occurs.
    pub(super) fn present(&self, group: u32) -> impl DoubleEndedIterator<Item = (&[u8], i64)> {
        self.values[group as usize].iter().filter(|(_, count)| **count > 0).map(|(value, count)| (value.as_ref(), *count))
    }

    /// All entries of these groups: values, counts, and where each group's begin.
    fn entries(&self, groups: &[u32], all: bool) -> Result<(ArrayRef, Vec<i64>, OffsetBuffer<i32>)> {
        let of_group = |group: &u32| self.values[*group as usize].iter().filter(move |(_, count)| all || **count > 0);
        let values = self.codec.decode(groups.iter().flat_map(of_group).map(|(value, _)| Some(value.as_ref())))?;
        let counts = groups.iter().flat_map(of_group).map(|(_, count)| *count).collect();
        let lengths = groups.iter().map(|group| of_group(group).count());
        Ok((values, counts, OffsetBuffer::from_lengths(lengths)))
    }

    /// Adds values as [`GroupsAccumulator::update`] does, but no NULLs.
    pub(super) fn update_valid(
        &mut self,
        groups: &[u32],
        values: &ArrayRef,
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        let rows = self.codec.encode(values)?;
        Rows::new(groups, std::slice::from_ref(values), filter, kinds).for_each(|row, group, retract| {
            self.add(group, rows.row(row).data(), if retract { -1 } else { 1 });
        });
        Ok(())
    }

    /// The values of these encoded ones.
    pub(super) fn decode<'a>(&'a self, values: impl Iterator<Item = Option<&'a [u8]>>) -> Result<ArrayRef> {
        self.codec.decode(values)
    }

    fn collect(&self, groups: &[u32]) -> Result<ArrayRef> {
        let (values, counts, offsets) = self.entries(groups, false)?;
        let counts = Int32Array::from_iter_values(counts.into_iter().map(|count| count as i32));
        Ok(build_maps(offsets, values, Arc::new(counts), None)?)
    }
}

impl GroupsAccumulator for Multiset {
    fn resize(&mut self, num_groups: usize) {
        self.values.resize(num_groups, BTreeMap::new());
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        let rows = self.codec.encode(&args[0])?;
        Rows::new(groups, args, filter, kinds).for_each(|row, group, retract| {
            self.add(group, rows.row(row).data(), if retract { -1 } else { 1 });
        });
        Ok(())
    }

    fn state_types(&self) -> Vec<DataType> {
        vec![list_type(self.value_type.clone()), list_type(DataType::Int64)]
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let (values, counts, offsets) = self.entries(groups, true)?;
        Ok(vec![list(values, offsets.clone())?, list(Arc::new(Int64Array::from(counts)), offsets)?])
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        let (values, counts) = (state[0].as_list::<i32>(), elements(state[1].as_list::<i32>()));
        let rows = self.codec.encode(&elements(values))?;
        let mut entries = rows.iter().zip(counts.as_primitive::<Int64Type>().values());
        for (row, group) in groups.iter().enumerate() {
            for (value, count) in entries.by_ref().take(values.value_length(row) as usize) {
                self.add(*group as usize, value.data(), *count);
            }
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        match self.result {
            MultisetResult::Min => self.codec.decode(groups.iter().map(|group| self.present(*group).next().map(|entry| entry.0))),
            MultisetResult::Max => {
                self.codec.decode(groups.iter().map(|group| self.present(*group).next_back().map(|entry| entry.0)))
            }
            MultisetResult::Collect => self.collect(groups),
        }
    }

    fn clear(&mut self, groups: &[u32]) {
        for group in groups {
            let values = std::mem::take(&mut self.values[*group as usize]);
            let tree = if values.is_empty() { 0 } else { TREE_BYTES };
            self.value_bytes -= tree + values.keys().map(|value| value.len() + ENTRY_BYTES).sum::<usize>();
        }
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<BTreeMap<Box<[u8]>, i64>>() + self.value_bytes
    }
}

/// The Arrow type of a list in a state.
pub(super) fn list_type(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", element, true)))
}

/// A list column of a state.
pub(super) fn list(elements: ArrayRef, offsets: OffsetBuffer<i32>) -> Result<ArrayRef> {
    let field = Arc::new(Field::new("item", elements.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(field, offsets, elements, None)?))
}

/// The elements of all lists of a state, one list after another: lists lie side by side, and none is NULL.
pub(super) fn elements(lists: &ListArray) -> ArrayRef {
    let (first, last) = (lists.value_offsets()[0] as usize, lists.value_offsets()[lists.len()] as usize);
    lists.values().slice(first, last - first)
}
