//! CORR, COVAR_POP and COVAR_SAMP: how two numbers go together. More than Flink has.
//!
//! Sums and products are kept with twice the digits of a DOUBLE: what is taken back leaves nothing behind, and the order of the rows
//! does not matter.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Float64Type, Int64Type};

use super::rows::{Rows, at};
use crate::error::Result;
use crate::expr::GroupsAccumulator;
use crate::types::RowKinds;

/// What is told of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Together {
    /// The correlation by Pearson.
    Correlation,
    /// The covariance of all.
    Population,
    /// The covariance of a sample.
    Sample,
}

/// A number with twice the digits of a DOUBLE: the sum of both parts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Wide(f64, f64);

impl Wide {
    /// The exact sum of two numbers.
    fn sum(a: f64, b: f64) -> Self {
        let sum = a + b;
        let part = sum - a;
        Wide(sum, (a - (sum - part)) + (b - part))
    }

    /// The exact product of two numbers.
    fn product(a: f64, b: f64) -> Self {
        let product = a * b;
        Wide(product, a.mul_add(b, -product))
    }

    fn plus(self, other: Wide) -> Self {
        let (high, low) = (Wide::sum(self.0, other.0), Wide::sum(self.1, other.1));
        let middle = Wide::sum(high.0, high.1 + low.0);
        Wide::sum(middle.0, middle.1 + low.1)
    }

    fn negated(self) -> Self {
        Wide(-self.0, -self.1)
    }

    fn times(self, other: Wide) -> Self {
        let product = Wide::product(self.0, other.0);
        Wide::sum(product.0, product.1 + (self.0 * other.1 + self.1 * other.0))
    }

    fn number(self) -> f64 {
        self.0 + self.1
    }
}

/// How many pairs a group has, and their sums: x, y, xx, yy, xy.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: i64,
    sums: [Wide; 5],
}

impl Sums {
    fn add(&mut self, x: f64, y: f64, retract: bool) {
        self.count += if retract { -1 } else { 1 };
        if self.count == 0 {
            // Infinity does not go away by being taken back.
            *self = Sums::default();
            return;
        }
        let terms = [Wide(x, 0.0), Wide(y, 0.0), Wide::product(x, x), Wide::product(y, y), Wide::product(x, y)];
        for (sum, term) in self.sums.iter_mut().zip(terms) {
            *sum = sum.plus(if retract { term.negated() } else { term });
        }
    }

    /// The sum of the products of the differences from the means, times the count.
    fn spread(&self, products: usize, one: usize, other: usize) -> f64 {
        let all = self.sums[products].times(Wide(self.count as f64, 0.0));
        all.plus(self.sums[one].times(self.sums[other]).negated()).number()
    }

    fn value(&self, together: Together) -> Option<f64> {
        let (count, both) = (self.count as f64, self.spread(4, 0, 1));
        match together {
            Together::Population => (self.count > 0).then(|| both / (count * count)),
            Together::Sample => (self.count > 1).then(|| both / (count * (count - 1.0))),
            Together::Correlation => {
                let (of_x, of_y) = (self.spread(2, 0, 0), self.spread(3, 1, 1));
                let is_known = self.count > 0 && of_x != 0.0 && of_y != 0.0;
                is_known.then(|| (both / (of_x.sqrt() * of_y.sqrt())).clamp(-1.0, 1.0))
            }
        }
    }
}

/// The sums of all groups.
#[derive(Debug)]
pub(super) struct Covariance {
    groups: Vec<Sums>,
    together: Together,
}

impl Covariance {
    /// Of two DOUBLE arguments.
    pub(super) fn new(together: Together) -> Self {
        Covariance { groups: Vec::new(), together }
    }
}

impl GroupsAccumulator for Covariance {
    fn resize(&mut self, num_groups: usize) {
        self.groups.resize(num_groups, Sums::default());
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        let of = |arg: usize| args[arg].as_primitive::<Float64Type>().values();
        let (xs, ys) = (of(0), of(1));
        Rows::new(groups, args, filter, kinds).for_each(|row, group, retract| self.groups[group].add(xs[row], ys[row], retract));
        Ok(())
    }

    fn state_types(&self) -> Vec<DataType> {
        [DataType::Int64].into_iter().chain(std::iter::repeat_n(DataType::Float64, 10)).collect()
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        let counts: ArrayRef = Arc::new(Int64Array::from_iter_values(at(&self.groups, groups).map(|sums| sums.count)));
        let part = |sum: usize, part: fn(Wide) -> f64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(at(&self.groups, groups).map(|sums| part(sums.sums[sum]))))
        };
        let parts = (0..5).flat_map(|sum| [part(sum, |wide| wide.0), part(sum, |wide| wide.1)]);
        Ok([counts].into_iter().chain(parts).collect())
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        let counts = state[0].as_primitive::<Int64Type>().values();
        let part = |column: usize, row: usize| state[column].as_primitive::<Float64Type>().value(row);
        for (row, group) in groups.iter().enumerate() {
            let sums = &mut self.groups[*group as usize];
            sums.count += counts[row];
            for (number, sum) in sums.sums.iter_mut().enumerate() {
                *sum = sum.plus(Wide(part(2 * number + 1, row), part(2 * number + 2, row)));
            }
            if sums.count == 0 {
                *sums = Sums::default();
            }
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        Ok(Arc::new(at(&self.groups, groups).map(|sums| sums.value(self.together)).collect::<Float64Array>()))
    }

    fn clear(&mut self, groups: &[u32]) {
        groups.iter().for_each(|group| self.groups[*group as usize] = Sums::default());
    }

    fn bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Sums>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(pairs: &[(f64, f64)]) -> Sums {
        let mut sums = Sums::default();
        pairs.iter().for_each(|(x, y)| sums.add(*x, *y, false));
        sums
    }

    #[test]
    fn numbers_that_go_together_are_correlated() {
        let line = sums(&[(1.0, 10.0), (2.0, 20.0), (3.0, 30.0)]);
        assert_eq!(line.value(Together::Correlation), Some(1.0));
        assert_eq!(line.value(Together::Population), Some(20.0 / 3.0));
        assert_eq!(line.value(Together::Sample), Some(10.0));
        assert_eq!(sums(&[(1.0, 5.0), (2.0, 5.0)]).value(Together::Correlation), None, "one of them does not move");
        assert_eq!(sums(&[(1.0, 5.0)]).value(Together::Sample), None);
    }

    #[test]
    fn what_is_taken_back_leaves_nothing_behind() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut pair = || (random.f64() * 1e6, random.f64() - 0.5);
        let (kept, gone): (Vec<_>, Vec<_>) = ((0..100).map(|_| pair()).collect(), (0..1_000).map(|_| pair()).collect());
        let mut all = sums(&[kept.clone(), gone.clone()].concat());
        gone.iter().rev().for_each(|(x, y)| all.add(*x, *y, true));
        let expected = sums(&kept);
        for together in [Together::Correlation, Together::Population, Together::Sample] {
            assert_eq!(all.value(together), expected.value(together), "{together:?}");
        }
    }
}
