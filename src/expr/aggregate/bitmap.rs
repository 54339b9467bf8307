//! The aggregates of bitmaps: BITMAP_BUILD_AGG, BITMAP_AND_AGG, BITMAP_OR_AGG, BITMAP_XOR_AGG, and the cardinalities of their results.
//!
//! For each number of a group there is a count of how often it came, so that rows can be taken back exactly.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryViewBuilder, BooleanArray, Int32Array, Int64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Int32Type, Int64Type};

use super::multiset::{elements, list, list_type};
use super::rows::Rows;
use crate::error::Result;
use crate::expr::{GroupsAccumulator, bitmap};
use crate::types::RowKinds;

/// Which numbers are in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BitmapOperation {
    /// Those of all bitmaps.
    And,
    /// Those of any; of BITMAP_BUILD_AGG the arguments.
    Or,
    /// Those of an odd number of bitmaps.
    Xor,
}

#[derive(Debug, Clone, Default)]
struct Members {
    counts: BTreeMap<u32, i64>,
    /// Rows that are not NULL.
    rows: i64,
}

/// What an entry of a map takes, roughly.
const ENTRY_BYTES: usize = 20;

/// The numbers of all groups.
#[derive(Debug)]
pub(super) struct Bitmaps {
    groups: Vec<Members>,
    operation: BitmapOperation,
    /// Whether the result is how many numbers there are.
    cardinality: bool,
    entries: usize,
}

impl Bitmaps {
    /// `cardinality`: the result is the number of numbers.
    pub(super) fn new(operation: BitmapOperation, cardinality: bool) -> Self {
        Bitmaps { groups: Vec::new(), operation, cardinality, entries: 0 }
    }

    fn add(&mut self, group: usize, member: u32, count: i64) {
        let counts = &mut self.groups[group].counts;
        let before = counts.len();
        let total = counts.entry(member).or_default();
        *total += count;
        if *total == 0 {
            counts.remove(&member);
        }
        self.entries = self.entries + counts.len() - before;
    }

    /// The numbers of a group's result; none without rows.
    fn result(&self, group: u32) -> Option<impl Iterator<Item = u32>> {
        let Members { counts, rows } = &self.groups[group as usize];
        let (operation, rows) = (self.operation, *rows);
        let is_in = move |count: i64| match operation {
            BitmapOperation::And => count == rows,
            BitmapOperation::Or => count > 0,
            BitmapOperation::Xor => count % 2 != 0,
        };
        (rows > 0).then(|| counts.iter().filter(move |(_, count)| is_in(**count)).map(|(member, _)| *member))
    }
}

impl GroupsAccumulator for Bitmaps {
    fn resize(&mut self, num_groups: usize) {
        self.groups.resize(num_groups, Members::default());
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        let numbers = args[0].as_primitive_opt::<Int32Type>();
        Rows::new(groups, &args[..1], filter, kinds).for_each(|row, group, retract| {
            let count = if retract { -1 } else { 1 };
            self.groups[group].rows += count;
            match numbers {
                Some(numbers) => self.add(group, numbers.value(row) as u32, count),
                None => {
                    for member in bitmap::members(args[0].as_binary_view().value(row)) {
                        self.add(group, member, count);
                    }
                }
            }
        });
        Ok(())
    }

    fn state_types(&self) -> Vec<DataType> {
        vec![list_type(DataType::Int32), list_type(DataType::Int64), DataType::Int64]
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let of = |group: &u32| &self.groups[*group as usize];
        let offsets = OffsetBuffer::from_lengths(groups.iter().map(|group| of(group).counts.len()));
        let members = Int32Array::from_iter_values(groups.iter().flat_map(|group| of(group).counts.keys()).map(|m| *m as i32));
        let counts = Int64Array::from_iter_values(groups.iter().flat_map(|group| of(group).counts.values()).copied());
        let rows = Int64Array::from_iter_values(groups.iter().map(|group| of(group).rows));
        Ok(vec![list(Arc::new(members), offsets.clone())?, list(Arc::new(counts), offsets)?, Arc::new(rows)])
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        let lists = state[0].as_list::<i32>();
        let (members, counts) = (elements(lists), elements(state[1].as_list::<i32>()));
        let mut entries = members.as_primitive::<Int32Type>().values().iter().zip(counts.as_primitive::<Int64Type>().values());
        let rows = state[2].as_primitive::<Int64Type>();
        for (row, group) in groups.iter().enumerate() {
            for (member, count) in entries.by_ref().take(lists.value_length(row) as usize) {
                self.add(*group as usize, *member as u32, *count);
            }
            self.groups[*group as usize].rows += rows.value(row);
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        if self.cardinality {
            let counts = groups.iter().map(|group| self.result(*group).map(|members| members.count() as i64));
            return Ok(Arc::new(counts.collect::<Int64Array>()));
        }
        let mut builder = BinaryViewBuilder::with_capacity(groups.len());
        for group in groups {
            match self.result(*group) {
                Some(members) => builder.append_value(bitmap::encode(&members.collect::<Vec<_>>())),
                None => builder.append_null(),
            }
        }
        Ok(Arc::new(builder.finish()))
    }

    fn clear(&mut self, groups: &[u32]) {
        for group in groups {
            let members = std::mem::take(&mut self.groups[*group as usize]);
            self.entries -= members.counts.len();
        }
    }

    fn bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Members>() + self.entries * ENTRY_BYTES
    }
}
