//! FIRST_VALUE and LAST_VALUE in the order of arrival, leaving out NULLs as Flink does; and SINGLE_VALUE.

use arrow::array::{ArrayRef, BooleanArray, UInt32Array};
use arrow::compute;
use arrow::datatypes::DataType;

use super::group_values::GroupValues;
use super::row_codec::{RowCodec, valid_row};
use super::rows::Rows;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::GroupsAccumulator;
use crate::types::RowKinds;

/// The first or last value of all groups, where rows only come.
#[derive(Debug)]
pub(super) struct FirstLast {
    values: GroupValues,
    last: bool,
}

impl FirstLast {
    /// Of this Arrow type.
    pub(super) fn new(data_type: DataType, last: bool) -> Result<Self> {
        Ok(FirstLast { values: GroupValues::new(data_type)?, last })
    }
}

impl GroupsAccumulator for FirstLast {
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
        // Only the rows that win are encoded: at most one for each group of the batch.
        let mut winners = hashbrown::HashMap::<usize, u32>::new();
        Rows::new(groups, args, filter, None).for_each(|row, group, _| {
            if self.last {
                winners.insert(group, row as u32);
            } else if self.values.get(group).is_none() {
                winners.entry(group).or_insert(row as u32);
            }
        });
        let (groups, rows): (Vec<usize>, Vec<u32>) = winners.into_iter().unzip();
        let rows = self.values.encode(&compute::take(&args[0], &UInt32Array::from(rows), None)?)?;
        groups.iter().zip(rows.iter()).for_each(|(group, row)| self.values.set(*group, row.data()));
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

    fn depends_on_order(&self) -> bool {
        true
    }
}

/// The one value of all groups, NULL included; a second one is an error.
#[derive(Debug)]
pub(super) struct SingleValue {
    data_type: DataType,
    codec: RowCodec,
    values: Vec<Single>,
    value_bytes: usize,
}

#[derive(Debug, Clone, Default)]
struct Single {
    count: i64,
    value: Option<Box<[u8]>>,
}

impl Single {
    fn len(&self) -> usize {
        self.value.as_ref().map_or(0, |value| value.len())
    }
}

impl SingleValue {
    /// Of this Arrow type.
    pub(super) fn new(data_type: DataType) -> Result<Self> {
        let codec = RowCodec::new(&data_type)?;
        Ok(SingleValue { data_type, codec, values: Vec::new(), value_bytes: 0 })
    }
}

impl GroupsAccumulator for SingleValue {
    fn resize(&mut self, num_groups: usize) {
        self.values.resize(num_groups, Single::default());
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        let rows = self.codec.encode(&args[0])?;
        let mut too_many = false;
        Rows::new(groups, &[], filter, kinds).for_each(|row, group, retract| {
            let single = &mut self.values[group];
            single.count += if retract { -1 } else { 1 };
            too_many |= single.count > 1;
            self.value_bytes -= single.len();
            single.value = if retract { None } else { valid_row(&rows, &args[0], row).map(Box::from) };
            self.value_bytes += single.len();
        });
        if too_many {
            return Err(Error::new(ErrorKind::InvalidArgument, "SINGLE_VALUE received more than one element"));
        }
        Ok(())
    }

    fn state_types(&self) -> Vec<DataType> {
        vec![DataType::Int64, self.data_type.clone()]
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let counts = arrow::array::Int64Array::from_iter_values(groups.iter().map(|group| self.values[*group as usize].count));
        Ok(vec![std::sync::Arc::new(counts), self.evaluate(groups)?])
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        use arrow::array::AsArray;
        let counts = state[0].as_primitive::<arrow::datatypes::Int64Type>();
        let filter = BooleanArray::from_iter(counts.values().iter().map(|count| Some(*count > 0)));
        self.update(groups, &state[1..], Some(&filter), None)
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        self.codec.decode(groups.iter().map(|group| self.values[*group as usize].value.as_deref()))
    }

    fn clear(&mut self, groups: &[u32]) {
        for group in groups {
            self.value_bytes -= std::mem::take(&mut self.values[*group as usize]).len();
        }
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<Single>() + self.value_bytes
    }
}
