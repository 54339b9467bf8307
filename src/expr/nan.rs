//! One NaN. Arithmetic makes some of either sign (∞ − ∞ has one on x86), and keys, DISTINCT and orders look at bits.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};

/// The same numbers, all NaNs alike; other arrays as they are.
pub(crate) fn with_one_nan(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float64 => {
            let numbers = array.as_primitive::<Float64Type>();
            if !numbers.values().iter().any(|number| number.is_nan()) {
                return array;
            }
            Arc::new(numbers.unary::<_, Float64Type>(|number| if number.is_nan() { f64::NAN } else { number }))
        }
        DataType::Float32 => {
            let numbers = array.as_primitive::<Float32Type>();
            if !numbers.values().iter().any(|number| number.is_nan()) {
                return array;
            }
            Arc::new(numbers.unary::<_, Float32Type>(|number| if number.is_nan() { f32::NAN } else { number }))
        }
        _ => array,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, Float32Array, Float64Array};

    use super::*;

    #[test]
    fn nans_of_both_signs_are_one() {
        let doubles: ArrayRef = Arc::new(Float64Array::from(vec![Some(-f64::NAN), None, Some(-0.0), Some(f64::NAN)]));
        let doubles = with_one_nan(doubles);
        let bits: Vec<_> = doubles.as_primitive::<Float64Type>().iter().map(|number| number.map(f64::to_bits)).collect();
        assert_eq!(bits, [Some(f64::NAN.to_bits()), None, Some((-0.0f64).to_bits()), Some(f64::NAN.to_bits())]);
        let floats = with_one_nan(Arc::new(Float32Array::from(vec![-f32::NAN, 1.5])));
        assert_eq!(floats.as_primitive::<Float32Type>().value(0).to_bits(), f32::NAN.to_bits());
        assert_eq!(floats.null_count(), 0);
    }
}
