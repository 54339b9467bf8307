//! AVG: a wide sum over a count, in Flink's result types. Whole numbers are summed as BIGINT and the quotient is cut towards zero;
//! FLOAT is summed as DOUBLE; decimals divide at the result's scale, half up, and are NULL where the sum does not fit it.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
};
use arrow::compute;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};

use super::adapted::{Adapted, Adapter};
use super::sum::{DECIMAL_MAX, Sum, Summable};
use crate::error::{Error, Result};

/// A wide type in which an average is summed up.
pub(super) trait Averageable: Summable {
    /// The quotients in the Arrow type of the result; `scale` is that of the sums.
    fn divide(quotients: impl Iterator<Item = Option<(Self::Native, i64)>>, scale: i8, result: &DataType) -> Result<ArrayRef>;
}

/// Averages, from sums in a wide type.
pub(super) struct Average<W> {
    wide: DataType,
    result: DataType,
    sums: PhantomData<fn() -> W>,
}

impl<W: Averageable> Average<W> {
    /// Sums of Arrow type `wide`, averages of Arrow type `result`.
    pub(super) fn of_sums(wide: DataType, result: DataType) -> Adapted<Self> {
        let sums = Sum::new(wide.clone(), true);
        Adapted::new(Average { wide, result, sums: PhantomData }, sums)
    }
}

impl Averageable for Int64Type {
    fn divide(quotients: impl Iterator<Item = Option<(i64, i64)>>, _scale: i8, result: &DataType) -> Result<ArrayRef> {
        let quotients = quotients.map(|quotient| quotient.map(|(sum, count)| sum.wrapping_div(count)));
        Ok(match result {
            DataType::Int8 => Arc::new(quotients.map(|q| q.map(|q| q as i8)).collect::<Int8Array>()),
            DataType::Int16 => Arc::new(quotients.map(|q| q.map(|q| q as i16)).collect::<Int16Array>()),
            DataType::Int32 => Arc::new(quotients.map(|q| q.map(|q| q as i32)).collect::<Int32Array>()),
            _ => Arc::new(quotients.collect::<Int64Array>()),
        })
    }
}

impl Averageable for Float64Type {
    fn divide(quotients: impl Iterator<Item = Option<(f64, i64)>>, _scale: i8, result: &DataType) -> Result<ArrayRef> {
        let quotients = quotients.map(|quotient| quotient.map(|(sum, count)| sum / count as f64));
        Ok(match result {
            DataType::Float32 => Arc::new(quotients.map(|q| q.map(|q| q as f32)).collect::<Float32Array>()),
            _ => Arc::new(quotients.collect::<Float64Array>()),
        })
    }
}

impl Averageable for Decimal128Type {
    fn divide(quotients: impl Iterator<Item = Option<(i128, i64)>>, scale: i8, result: &DataType) -> Result<ArrayRef> {
        let DataType::Decimal128(_, result_scale) = result else {
            return Err(Error::internal(format!("the average of decimals is no {result}")));
        };
        let factor = 10i128.pow((result_scale - scale).max(0) as u32);
        let quotients = quotients.map(|quotient| {
            let (sum, count) = quotient?;
            let widened = sum.checked_mul(factor).filter(|sum| sum.abs() <= DECIMAL_MAX)?;
            Some(divide_half_up(widened, i128::from(count)))
        });
        Ok(Arc::new(quotients.collect::<Decimal128Array>().with_data_type(result.clone())))
    }
}

/// The quotient to the nearest whole number, halves away from zero.
fn divide_half_up(dividend: i128, divisor: i128) -> i128 {
    let (quotient, remainder) = (dividend / divisor, dividend % divisor);
    let away = if (dividend < 0) == (divisor < 0) { 1 } else { -1 };
    if remainder.abs() >= divisor.abs() - remainder.abs() { quotient + away } else { quotient }
}

impl<W: Averageable> Adapter for Average<W> {
    type Inner = Sum<W>;

    fn values(&self, args: &[ArrayRef], _filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        Ok(vec![if *args[0].data_type() == self.wide { Arc::clone(&args[0]) } else { compute::cast(&args[0], &self.wide)? }])
    }

    fn results(&self, sums: &Sum<W>, groups: &[u32]) -> Result<ArrayRef> {
        let scale = if let DataType::Decimal128(_, scale) = self.wide { scale } else { 0 };
        let quotients = groups.iter().map(|group| sums.get(*group).map(|sum| (sum, sums.count(*group))));
        W::divide(quotients, scale, &self.result)
    }
}

#[cfg(test)]
mod tests {
    use super::divide_half_up;

    #[test]
    fn halves_go_away_from_zero() {
        assert_eq!([5, -5, 4, -4, 7, 6].map(|n| divide_half_up(n, 2)), [3, -3, 2, -2, 4, 3]);
        assert_eq!([4, 5, -4, -5].map(|n| divide_half_up(n, 3)), [1, 2, -1, -2]);
    }
}
