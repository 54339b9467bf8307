//! PERCENTILE and MEDIAN: the numbers of each group with how often each occurs, in order, and a value between two of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, ListArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Float64Type, Int64Type};

use super::multiset::{elements, list, list_type};
use super::rows::Rows;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{Expr, GroupsAccumulator};
use crate::types::{RowKinds, TypeKind, Value};

/// A double by its bits, so that the order of the numbers is that of Java: NaN last, -0 before 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ordered(i64);

impl Ordered {
    fn of(number: f64) -> Self {
        let bits = (if number.is_nan() { f64::NAN } else { number }).to_bits() as i64;
        Ordered(bits ^ (((bits >> 63) as u64) >> 1) as i64)
    }

    fn number(self) -> f64 {
        f64::from_bits((self.0 ^ (((self.0 >> 63) as u64) >> 1) as i64) as u64)
    }
}

#[derive(Debug, Clone, Default)]
struct Numbers {
    /// Counts may be below 0 for a while, when a row is taken back before it came.
    counts: BTreeMap<Ordered, i64>,
    /// The percentages of the group's first row.
    percentages: Option<Arc<[f64]>>,
}

/// What an entry of a map takes, roughly.
const ENTRY_BYTES: usize = 24;

/// The numbers of all groups.
#[derive(Debug)]
pub(super) struct Percentile {
    groups: Vec<Numbers>,
    /// The last percentages seen, shared by the groups that have them.
    last: Arc<[f64]>,
    result: DataType,
    /// Whether percentages count from the greatest number.
    descending: bool,
    entries: usize,
}

impl Percentile {
    /// `result` is DOUBLE, or a list of them where several percentages are asked for. `descending`: these count from the greatest number.
    pub(super) fn new(result: DataType, descending: bool) -> Self {
        Percentile { groups: Vec::new(), last: Arc::new([]), result, descending, entries: 0 }
    }

    fn add(&mut self, group: usize, number: Ordered, count: i64) {
        let counts = &mut self.groups[group].counts;
        let before = counts.len();
        let total = counts.entry(number).or_default();
        *total += count;
        if *total == 0 {
            counts.remove(&number);
        }
        self.entries = self.entries + counts.len() - before;
    }

    fn set_percentages(&mut self, group: usize, percentages: &[f64]) {
        if self.groups[group].percentages.is_none() {
            if *self.last != *percentages {
                self.last = percentages.into();
            }
            self.groups[group].percentages = Some(Arc::clone(&self.last));
        }
    }
}

/// The percentages of each row.
struct Percentages<'a> {
    values: &'a Float64Array,
    offsets: Option<&'a [i32]>,
}

impl<'a> Percentages<'a> {
    fn of(array: &'a ArrayRef) -> Self {
        match array.data_type() {
            DataType::List(_) => {
                let lists = array.as_list::<i32>();
                Percentages { values: lists.values().as_primitive(), offsets: Some(lists.value_offsets()) }
            }
            _ => Percentages { values: array.as_primitive(), offsets: None },
        }
    }

    fn get(&self, row: usize) -> Result<&'a [f64]> {
        let range = match self.offsets {
            Some(offsets) => offsets[row] as usize..offsets[row + 1] as usize,
            None => row..row + 1,
        };
        let percentages = &self.values.values()[range.clone()];
        let in_range = |at: usize| self.values.is_valid(at) && (0.0..=1.0).contains(&self.values.value(at));
        if range.into_iter().all(in_range) {
            return Ok(percentages);
        }
        Err(Error::new(ErrorKind::InvalidArgument, "a percentage is not between 0 and 1").with_hint("write 0.95 for 95 percent"))
    }
}

impl GroupsAccumulator for Percentile {
    fn resize(&mut self, num_groups: usize) {
        self.groups.resize(num_groups, Numbers::default());
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        let numbers = args[0].as_primitive::<Float64Type>();
        let percentages = Percentages::of(&args[1]);
        let frequencies = args.get(2).map(|frequencies| frequencies.as_primitive::<Int64Type>());
        let mut failure = None;
        Rows::new(groups, &args[1..2], filter, kinds).for_each(|row, group, retract| {
            match percentages.get(row) {
                Ok(percentages) => self.set_percentages(group, percentages),
                Err(error) => {
                    failure.get_or_insert(error);
                    return;
                }
            }
            let frequency = match frequencies {
                Some(frequencies) if frequencies.is_null(row) => 0,
                Some(frequencies) => frequencies.value(row).max(0),
                None => 1,
            };
            if numbers.is_valid(row) && frequency > 0 {
                self.add(group, Ordered::of(numbers.value(row)), if retract { -frequency } else { frequency });
            }
        });
        failure.map_or(Ok(()), Err)
    }

    fn state_types(&self) -> Vec<DataType> {
        vec![list_type(DataType::Float64), list_type(DataType::Int64), list_type(DataType::Float64)]
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let of = |group: &u32| &self.groups[*group as usize];
        let offsets = OffsetBuffer::from_lengths(groups.iter().map(|group| of(group).counts.len()));
        let numbers = Float64Array::from_iter_values(groups.iter().flat_map(|group| of(group).counts.keys()).map(|n| n.number()));
        let counts = Int64Array::from_iter_values(groups.iter().flat_map(|group| of(group).counts.values()).copied());
        let percentages = |group: &u32| of(group).percentages.as_deref().unwrap_or_default();
        let percentage_offsets = OffsetBuffer::from_lengths(groups.iter().map(|group| percentages(group).len()));
        let percentages = Float64Array::from_iter_values(groups.iter().flat_map(|group| percentages(group).iter().copied()));
        Ok(vec![
            list(Arc::new(numbers), offsets.clone())?,
            list(Arc::new(counts), offsets)?,
            list(Arc::new(percentages), percentage_offsets)?,
        ])
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        let lists = state[0].as_list::<i32>();
        let (numbers, counts) = (elements(lists), elements(state[1].as_list::<i32>()));
        let mut entries = numbers.as_primitive::<Float64Type>().values().iter().zip(counts.as_primitive::<Int64Type>().values());
        let percentages = state[2].as_list::<i32>();
        for (row, group) in groups.iter().enumerate() {
            for (number, count) in entries.by_ref().take(lists.value_length(row) as usize) {
                self.add(*group as usize, Ordered::of(*number), *count);
            }
            if percentages.value_length(row) > 0 {
                let percentages = percentages.value(row);
                self.set_percentages(*group as usize, percentages.as_primitive::<Float64Type>().values());
            }
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        let results: Vec<Vec<f64>> = groups.iter().map(|group| self.groups[*group as usize].values(self.descending)).collect();
        let DataType::List(field) = &self.result else {
            return Ok(Arc::new(results.iter().map(|values| values.first().copied()).collect::<Float64Array>()));
        };
        let nulls = NullBuffer::from_iter(results.iter().map(|values| !values.is_empty()));
        let offsets = OffsetBuffer::from_lengths(results.iter().map(Vec::len));
        let values = Float64Array::from_iter_values(results.into_iter().flatten());
        Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, Arc::new(values), Some(nulls))?))
    }

    fn clear(&mut self, groups: &[u32]) {
        for group in groups {
            let numbers = std::mem::take(&mut self.groups[*group as usize]);
            self.entries -= numbers.counts.len();
        }
    }

    fn bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Numbers>() + self.entries * ENTRY_BYTES
    }
}

impl Numbers {
    /// The value of each percentage; none without numbers.
    fn values(&self, descending: bool) -> Vec<f64> {
        let present = || self.counts.iter().filter(|(_, count)| **count > 0);
        let total: i64 = present().map(|(_, count)| count).sum();
        let percentages = self.percentages.as_deref().unwrap_or_default();
        if total == 0 {
            return Vec::new();
        }
        percentages
            .iter()
            .map(|percentage| {
                let percentage = if descending { 1.0 - percentage } else { *percentage };
                // The place, counted from 1, between two numbers.
                let place = (total - 1) as f64 * percentage + 1.0;
                let (lower, higher) = (place.floor(), place.ceil());
                let at = |place: f64| {
                    let mut passed = 0;
                    let mut numbers = present();
                    numbers.find_map(|(number, count)| {
                        passed += count;
                        (passed as f64 >= place).then(|| number.number())
                    })
                };
                let (low, high) = (at(lower).unwrap_or(f64::NAN), at(higher).unwrap_or(f64::NAN));
                if lower == higher || low == high { low } else { (higher - place) * low + (place - lower) * high }
            })
            .collect()
    }
}

/// Whether a percentage may be one: constants must lie between 0 and 1.
pub(super) fn is_percentage(expr: &Expr) -> bool {
    let in_range = |number: f64| (0.0..=1.0).contains(&number);
    match expr {
        Expr::Literal { value, data_type } => match (value, &data_type.kind) {
            (Value::Null, _) => false,
            (Value::Double(number), _) => in_range(*number),
            (Value::Float(number), _) => in_range((*number).into()),
            (Value::Int(number), _) => in_range((*number).into()),
            (Value::Decimal(number), TypeKind::Decimal(_, scale)) => in_range(crate::expr::decimal::to_double(*number, *scale)),
            _ => true,
        },
        Expr::Call { function, args, .. } if function == "ARRAY" => args.iter().all(is_percentage),
        Expr::Cast { input, .. } => is_percentage(input),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_order_as_bits() {
        let numbers = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 2.0, f64::INFINITY, f64::NAN];
        let ordered: Vec<Ordered> = numbers.iter().map(|number| Ordered::of(*number)).collect();
        assert!(ordered.is_sorted());
        assert_eq!(ordered[1].number(), -1.5);
    }

    #[test]
    fn a_percentile_lies_between_two_numbers() {
        let mut percentile = Percentile::new(DataType::Float64, false);
        percentile.resize(1);
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![Some(0.7), None, Some(0.1)]));
        let percentages: ArrayRef = Arc::new(Float64Array::from(vec![0.1; 3]));
        percentile.update(&[0; 3], &[numbers, percentages], None, None).unwrap();
        assert_eq!(percentile.evaluate(&[0]).unwrap().as_ref(), &Float64Array::from(vec![0.160_000_000_000_000_06]));
    }
}
