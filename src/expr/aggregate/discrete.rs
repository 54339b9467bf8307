//! PERCENTILE_DISC and MODE: one of the values of a group, chosen by how often each occurs. More than Flink has.
//!
//! All different values are kept with their counts, so what is taken back is taken back exactly. NULLs are left out.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type};

use super::multiset::{Multiset, MultisetResult};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::GroupsAccumulator;
use crate::types::RowKinds;

/// Which value of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The first one, in order, up to which so great a share of the values lies.
    Percentile,
    /// The one that occurs most often; of several the first.
    Mode,
}

/// The values of all groups with their counts.
pub(super) struct Discrete {
    values: Multiset,
    choice: Choice,
    /// Whether the greatest value is the first one.
    descending: bool,
    /// The share that is asked for: of each group that of its first row.
    shares: Vec<Option<f64>>,
}

impl Discrete {
    /// Of values of this type.
    pub(super) fn new(value_type: DataType, choice: Choice, descending: bool) -> Result<Self> {
        // NULLs do not come in, and the result is chosen here.
        let values = Multiset::new(value_type, MultisetResult::Min)?;
        Ok(Discrete { values, choice, descending, shares: Vec::new() })
    }

    fn chosen(&self, group: u32) -> Option<&[u8]> {
        match self.descending {
            false => self.first(group, self.values.present(group)),
            true => self.first(group, self.values.present(group).rev()),
        }
    }

    /// The chosen one of values in their order.
    fn first<'a>(&self, group: u32, mut values: impl Iterator<Item = (&'a [u8], i64)>) -> Option<&'a [u8]> {
        match self.choice {
            Choice::Percentile => {
                let total: i64 = self.values.present(group).map(|(_, count)| count).sum();
                let share = self.shares[group as usize]?;
                let mut passed = 0;
                values.find_map(|(value, count)| {
                    passed += count;
                    (passed as f64 / total as f64 >= share).then_some(value)
                })
            }
            Choice::Mode => {
                let mut most: Option<(&[u8], i64)> = None;
                for (value, count) in values {
                    if most.is_none_or(|(_, best)| count > best) {
                        most = Some((value, count));
                    }
                }
                most.map(|(value, _)| value)
            }
        }
    }
}

impl GroupsAccumulator for Discrete {
    fn resize(&mut self, num_groups: usize) {
        self.values.resize(num_groups);
        self.shares.resize(num_groups, None);
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        if self.choice == Choice::Percentile {
            let shares = args[1].as_primitive::<Float64Type>();
            for (row, group) in groups.iter().enumerate() {
                let share = &mut self.shares[*group as usize];
                if share.is_none() {
                    let known = shares.is_valid(row).then(|| shares.value(row)).filter(|share| (0.0..=1.0).contains(share));
                    *share = Some(known.ok_or_else(|| {
                        Error::new(ErrorKind::InvalidArgument, "the share of PERCENTILE_DISC is not between 0 and 1")
                            .with_hint("write 0.95 for 95 percent")
                    })?);
                }
            }
        }
        self.values.update_valid(groups, &args[0], filter, kinds)
    }

    fn state_types(&self) -> Vec<DataType> {
        let mut types = self.values.state_types();
        types.push(DataType::Float64);
        types
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let mut state = self.values.state(groups)?;
        state.push(Arc::new(groups.iter().map(|group| self.shares[*group as usize]).collect::<Float64Array>()));
        Ok(state)
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        let (shares, values) = state.split_last().expect("shares are the last column");
        let shares = shares.as_primitive::<Float64Type>();
        for (row, group) in groups.iter().enumerate() {
            let share = &mut self.shares[*group as usize];
            *share = share.or(shares.is_valid(row).then(|| shares.value(row)));
        }
        self.values.merge(groups, values)
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        self.values.decode(groups.iter().map(|group| self.chosen(*group)))
    }

    fn clear(&mut self, groups: &[u32]) {
        self.values.clear(groups);
        groups.iter().for_each(|group| self.shares[*group as usize] = None);
    }

    fn bytes(&self) -> usize {
        self.values.bytes() + self.shares.capacity() * size_of::<Option<f64>>()
    }
}
