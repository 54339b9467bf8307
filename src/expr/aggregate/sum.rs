//! SUM: in the argument's type (DECIMAL in 38 digits). Whole numbers wrap on overflow and decimals become NULL, both as in Flink.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Int64Array, PrimitiveArray};
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};

use super::rows::{Rows, array_at, at};
use crate::error::Result;
use crate::expr::GroupsAccumulator;
use crate::types::RowKinds;

/// A type that can be summed up.
pub(super) trait Summable: ArrowPrimitiveType {
    /// a + b; none = does not fit.
    fn plus(a: Self::Native, b: Self::Native) -> Option<Self::Native>;
    /// a − b; none = does not fit.
    fn minus(a: Self::Native, b: Self::Native) -> Option<Self::Native>;
}

macro_rules! wrapping {
    ($($type:ty),*) => {$(
        impl Summable for $type {
            #[inline]
            fn plus(a: Self::Native, b: Self::Native) -> Option<Self::Native> {
                Some(a.wrapping_add(b))
            }
            #[inline]
            fn minus(a: Self::Native, b: Self::Native) -> Option<Self::Native> {
                Some(a.wrapping_sub(b))
            }
        }
    )*};
}
wrapping!(Int8Type, Int16Type, Int32Type, Int64Type);

macro_rules! approximate {
    ($($type:ty),*) => {$(
        impl Summable for $type {
            #[inline]
            fn plus(a: Self::Native, b: Self::Native) -> Option<Self::Native> {
                Some(a + b)
            }
            #[inline]
            fn minus(a: Self::Native, b: Self::Native) -> Option<Self::Native> {
                Some(a - b)
            }
        }
    )*};
}
approximate!(Float32Type, Float64Type);

/// The greatest unscaled value of 38 digits.
pub(super) const DECIMAL_MAX: i128 = 10i128.pow(38) - 1;

fn within_38_digits(value: i128) -> Option<i128> {
    (-DECIMAL_MAX..=DECIMAL_MAX).contains(&value).then_some(value)
}

impl Summable for Decimal128Type {
    #[inline]
    fn plus(a: i128, b: i128) -> Option<i128> {
        a.checked_add(b).and_then(within_38_digits)
    }
    #[inline]
    fn minus(a: i128, b: i128) -> Option<i128> {
        a.checked_sub(b).and_then(within_38_digits)
    }
}

/// The sums of all groups.
#[derive(Debug)]
pub(super) struct Sum<T: Summable> {
    data_type: DataType,
    sums: Vec<T::Native>,
    /// Whether the sum is a value: false before the first one, and after a decimal overflow (the next value then starts afresh).
    present: Vec<bool>,
    /// Values that are not NULL, when rows may be taken back: at 0 the sum is NULL again.
    counts: Option<Vec<i64>>,
}

impl<T: Summable> Sum<T> {
    /// Sums of `data_type`.
    pub(super) fn new(data_type: DataType, retractable: bool) -> Self {
        Sum { data_type, sums: Vec::new(), present: Vec::new(), counts: retractable.then(Vec::new) }
    }

    #[inline]
    fn add(&mut self, group: usize, value: T::Native, retract: bool) {
        let former = if self.present[group] { self.sums[group] } else { T::Native::default() };
        let sum = match (self.present[group], retract) {
            (false, false) => Some(value),
            (true, false) => T::plus(former, value),
            (_, true) => T::minus(former, value),
        };
        self.present[group] = sum.is_some();
        self.sums[group] = sum.unwrap_or_default();
    }

    /// The sum of a group, if it has one.
    pub(super) fn get(&self, group: u32) -> Option<T::Native> {
        let group = group as usize;
        let counted = self.counts.as_ref().is_none_or(|counts| counts[group] != 0);
        (counted && self.present[group]).then(|| self.sums[group])
    }

    /// The number of values in a group; known only when rows may be taken back.
    pub(super) fn count(&self, group: u32) -> i64 {
        self.counts.as_ref().map_or(0, |counts| counts[group as usize])
    }

    fn array(&self, values: impl Iterator<Item = Option<T::Native>>) -> ArrayRef {
        Arc::new(values.collect::<PrimitiveArray<T>>().with_data_type(self.data_type.clone()))
    }
}

impl<T: Summable> GroupsAccumulator for Sum<T> {
    fn resize(&mut self, num_groups: usize) {
        self.sums.resize(num_groups, T::Native::default());
        self.present.resize(num_groups, false);
        if let Some(counts) = &mut self.counts {
            counts.resize(num_groups, 0);
        }
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        let values = args[0].as_primitive::<T>().values();
        let rows = Rows::new(groups, args, filter, kinds);
        rows.for_each(|row, group, retract| self.add(group, values[row], retract));
        if let Some(counts) = &mut self.counts {
            rows.for_each(|_, group, retract| counts[group] += if retract { -1 } else { 1 });
        }
        Ok(())
    }

    fn state_types(&self) -> Vec<DataType> {
        let mut types = vec![self.data_type.clone()];
        types.extend(self.counts.as_ref().map(|_| DataType::Int64));
        types
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let sums = array_at::<T>(&self.sums, &self.present, groups).with_data_type(self.data_type.clone());
        let mut state: Vec<ArrayRef> = vec![Arc::new(sums)];
        if let Some(counts) = &self.counts {
            state.push(Arc::new(Int64Array::from_iter_values(at(counts, groups))));
        }
        Ok(state)
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        let sums = state[0].as_primitive::<T>().values();
        Rows::new(groups, &state[..1], None, None).for_each(|row, group, _| self.add(group, sums[row], false));
        if let Some(counts) = &mut self.counts {
            let added = state[1].as_primitive::<Int64Type>().values();
            groups.iter().zip(added).for_each(|(group, count)| counts[*group as usize] += count);
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        match self.counts {
            None => Ok(Arc::new(array_at::<T>(&self.sums, &self.present, groups).with_data_type(self.data_type.clone()))),
            Some(_) => Ok(self.array(groups.iter().map(|group| self.get(*group)))),
        }
    }

    fn clear(&mut self, groups: &[u32]) {
        for group in groups {
            self.present[*group as usize] = false;
            if let Some(counts) = &mut self.counts {
                counts[*group as usize] = 0;
            }
        }
    }

    fn bytes(&self) -> usize {
        self.sums.capacity() * size_of::<T::Native>()
            + self.present.capacity()
            + self.counts.as_ref().map_or(0, |counts| counts.capacity() * size_of::<i64>())
    }
}
