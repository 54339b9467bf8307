//! VAR_POP, VAR_SAMP, STDDEV_POP and STDDEV_SAMP by Welford's method in DOUBLE, cast to the argument's type as in Flink.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
};
use arrow::compute;
use arrow::datatypes::{DataType, Float64Type, Int64Type};

use super::rows::{Rows, at};
use super::sum::DECIMAL_MAX;
use crate::error::{Error, Result};
use crate::expr::GroupsAccumulator;
use crate::types::RowKinds;

/// Count, mean and sum of squared differences of a group.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moments {
    count: i64,
    mean: f64,
    m2: f64,
}

impl Moments {
    /// Of one value.
    pub(crate) fn of(value: f64) -> Self {
        let mut moments = Moments::default();
        moments.add(value);
        moments
    }

    /// Takes in a value.
    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1;
        let delta = value - self.mean;
        self.mean += delta / self.count as f64;
        self.m2 += delta * (value - self.mean);
    }

    fn variance(self, sample: bool, root: bool) -> Option<f64> {
        let divisor = self.count - i64::from(sample);
        let variance = (divisor > 0).then(|| self.m2 / divisor as f64)?;
        Some(if root { variance.powf(0.5) } else { variance })
    }

    fn take_back(&mut self, value: f64) {
        self.count -= 1;
        if self.count == 0 {
            *self = Moments::default();
            return;
        }
        let delta = value - self.mean;
        self.mean -= delta / self.count as f64;
        self.m2 -= delta * (value - self.mean);
        // Rounding must not leave less than nothing, nor anything of a single value.
        if self.m2 < 0.0 || self.count == 1 {
            self.m2 = 0.0;
        }
    }

    fn merge(&mut self, other: Moments) {
        if self.count == 0 || other.count == 0 {
            if self.count == 0 {
                *self = other;
            }
            return;
        }
        let (ours, theirs) = (self.count as f64, other.count as f64);
        let delta = other.mean - self.mean;
        self.count += other.count;
        self.mean += delta * theirs / (ours + theirs);
        self.m2 += other.m2 + delta * delta * ours * theirs / (ours + theirs);
    }
}

/// The variances (or their roots) of all groups.
#[derive(Debug)]
pub(super) struct Variance {
    moments: Vec<Moments>,
    sample: bool,
    root: bool,
    result: DataType,
}

impl Variance {
    /// Of a sample (or the population); the standard deviation if `root`.
    pub(super) fn new(sample: bool, root: bool, result: DataType) -> Self {
        Variance { moments: Vec::new(), sample, root, result }
    }
}

/// The variances (or, `root`, the standard deviations) of a `sample` or a population, in an Arrow type.
pub(crate) fn variances(
    moments: impl Iterator<Item = Moments>,
    (sample, root): (bool, bool),
    result: &DataType,
) -> Result<ArrayRef> {
    let values = moments.map(|moments| moments.variance(sample, root));
    // Java's narrowing: towards zero, to the nearest bound of INT, from there the low bits.
    Ok(match result {
        DataType::Int8 => Arc::new(values.map(|v| v.map(|v| v as i32 as i8)).collect::<Int8Array>()),
        DataType::Int16 => Arc::new(values.map(|v| v.map(|v| v as i32 as i16)).collect::<Int16Array>()),
        DataType::Int32 => Arc::new(values.map(|v| v.map(|v| v as i32)).collect::<Int32Array>()),
        DataType::Int64 => Arc::new(values.map(|v| v.map(|v| v as i64)).collect::<Int64Array>()),
        DataType::Float32 => Arc::new(values.map(|v| v.map(|v| v as f32)).collect::<Float32Array>()),
        DataType::Float64 => Arc::new(values.collect::<Float64Array>()),
        DataType::Decimal128(_, scale) => {
            let decimals = values.map(|value| value.and_then(|value| decimal_of(value, *scale)));
            Arc::new(decimals.collect::<Decimal128Array>().with_data_type(result.clone()))
        }
        other => return Err(Error::internal(format!("no variance is of type {other}"))),
    })
}

impl GroupsAccumulator for Variance {
    fn resize(&mut self, num_groups: usize) {
        self.moments.resize(num_groups, Moments::default());
    }

    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        kinds: Option<&RowKinds>,
    ) -> Result<()> {
        let doubles = compute::cast(&args[0], &DataType::Float64)?;
        let values = doubles.as_primitive::<Float64Type>().values();
        let moments = &mut self.moments;
        Rows::new(groups, args, filter, kinds).for_each(|row, group, retract| {
            if retract { moments[group].take_back(values[row]) } else { moments[group].add(values[row]) }
        });
        Ok(())
    }

    fn state_types(&self) -> Vec<DataType> {
        vec![DataType::Int64, DataType::Float64, DataType::Float64]
    }

    fn state(&self, groups: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![
            Arc::new(Int64Array::from_iter_values(at(&self.moments, groups).map(|m| m.count))),
            Arc::new(Float64Array::from_iter_values(at(&self.moments, groups).map(|m| m.mean))),
            Arc::new(Float64Array::from_iter_values(at(&self.moments, groups).map(|m| m.m2))),
        ])
    }

    fn merge(&mut self, groups: &[u32], state: &[ArrayRef]) -> Result<()> {
        let counts = state[0].as_primitive::<Int64Type>().values();
        let (means, m2s) = (state[1].as_primitive::<Float64Type>().values(), state[2].as_primitive::<Float64Type>().values());
        for (row, group) in groups.iter().enumerate() {
            self.moments[*group as usize].merge(Moments { count: counts[row], mean: means[row], m2: m2s[row] });
        }
        Ok(())
    }

    fn evaluate(&self, groups: &[u32]) -> Result<ArrayRef> {
        variances(at(&self.moments, groups), (self.sample, self.root), &self.result)
    }

    fn clear(&mut self, groups: &[u32]) {
        groups.iter().for_each(|group| self.moments[*group as usize] = Moments::default());
    }

    fn bytes(&self) -> usize {
        self.moments.capacity() * size_of::<Moments>()
    }
}

/// The decimal of `scale` digits nearest to the shortest text of a double, halves away from zero; none = does not fit.
fn decimal_of(value: f64, scale: i8) -> Option<i128> {
    let text = format!("{}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let kept = fraction.len().min(scale as usize);
    let mut unscaled: i128 = format!("{whole}{}", &fraction[..kept]).parse().ok()?;
    unscaled = unscaled.checked_mul(10i128.pow(scale as u32 - kept as u32))?;
    if fraction.as_bytes().get(kept).is_some_and(|digit| *digit >= b'5') {
        unscaled += 1;
    }
    (unscaled <= DECIMAL_MAX).then_some(if value < 0.0 { -unscaled } else { unscaled })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn welford_gives_the_digits_of_flink() {
        let mut moments = Moments::default();
        [1_000_000_000.1, 1_000_000_000.2, 1_000_000_000.4].iter().for_each(|value| moments.add(*value));
        assert_eq!(moments.variance(false, false), Some(0.015555544429356397));
    }

    #[test]
    fn what_is_left_of_values_that_were_taken_back_is_never_negative() {
        let mut moments = Moments::default();
        [34.0, 46.0, 31.0, 30.0].iter().for_each(|value| moments.add(*value));
        [46.0, 31.0, 30.0].iter().for_each(|value| moments.take_back(*value));
        assert_eq!(moments.variance(false, true), Some(0.0));
        for seed in 0..50 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (same, others) = (random.f64() * 100.0, [random.f64(), random.f64() * 1e6, random.f64() * 1e-3]);
            let mut moments = Moments::default();
            [same, same].iter().chain(&others).for_each(|value| moments.add(*value));
            others.iter().for_each(|value| moments.take_back(*value));
            assert!(moments.m2 >= 0.0, "seed {seed}: {moments:?}");
        }
    }

    #[test]
    fn doubles_become_decimals_half_up() {
        assert_eq!(decimal_of(0.123_456_5, 6), Some(123_457));
        assert_eq!(decimal_of(-2.5, 0), Some(-3));
        assert_eq!(decimal_of(3.0, 2), Some(300));
    }
}
