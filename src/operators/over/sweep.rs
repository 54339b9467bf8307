//! Counts, sums and extremes over frames that move along: each row of a stretch is looked at once, however wide frames are.
//!
//! They give exactly what the accumulators give: sums of whole numbers wrap, so a difference of running sums is the sum between.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DynComparator, Int8Array, Int16Array, Int32Array, Int64Array, UInt32Array,
    make_comparator,
};
use arrow::compute::{self, SortOptions};
use arrow::datatypes::{DataType, Int64Type};

use crate::error::{Error, Result};
use crate::expr::AggregateCall;

/// An aggregate that can be swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sweep {
    Count,
    Sum,
    Average,
    Min,
    Max,
}

impl Sweep {
    /// How a call is swept; none = it cannot be.
    pub(super) fn of(call: &AggregateCall) -> Option<Self> {
        let arg = call.arg_types.first();
        let is_whole = arg.is_some_and(|arg| arg.is_integer());
        // Numbers that are not exact have an order of their own where they are not numbers.
        let is_ordered = arg.is_some_and(|arg| arg.is_integer() || arg.is_character() || is_time(&arg.to_arrow()));
        match call.function.as_str() {
            "COUNT" if !call.distinct => Some(Sweep::Count),
            "SUM" if !call.distinct && is_whole => Some(Sweep::Sum),
            "AVG" if !call.distinct && is_whole => Some(Sweep::Average),
            "MIN" if is_ordered => Some(Sweep::Min),
            "MAX" if is_ordered => Some(Sweep::Max),
            _ => None,
        }
    }

    /// The results for frames over the rows of these columns. Frames of one stretch rise; `stretches` say which frames are of one.
    pub(super) fn evaluate(
        self,
        call: &AggregateCall,
        columns: &[ArrayRef],
        num_rows: usize,
        (frames, stretches): (&[Range<usize>], &[Range<usize>]),
    ) -> Result<ArrayRef> {
        let args: Vec<&ArrayRef> = call.args.iter().map(|column| &columns[*column]).collect();
        let filter = call.filter.map(|column| columns[column].as_boolean());
        let counted = |row: usize| {
            filter.is_none_or(|filter: &BooleanArray| filter.is_valid(row) && filter.value(row))
                && args.iter().all(|arg| arg.is_valid(row))
        };
        if let Sweep::Min | Sweep::Max = self {
            let is_max = self == Sweep::Max;
            let ascending = SortOptions { descending: is_max, nulls_first: true };
            let comparator = make_comparator(args[0].as_ref(), args[0].as_ref(), ascending)?;
            let places = extremes(&comparator, counted, frames, stretches);
            return Ok(compute::take(args[0], &UInt32Array::from(places), None)?);
        }
        let mut counts = Vec::with_capacity(num_rows + 1);
        counts.push(0i64);
        (0..num_rows).for_each(|row| counts.push(counts[row] + i64::from(counted(row))));
        let count = |frame: &Range<usize>| counts[frame.end] - counts[frame.start];
        if self == Sweep::Count {
            return Ok(Arc::new(Int64Array::from_iter_values(frames.iter().map(count))));
        }
        let values = compute::cast(args[0], &DataType::Int64)?;
        let values = values.as_primitive::<Int64Type>();
        let mut sums = Vec::with_capacity(num_rows + 1);
        sums.push(0i64);
        (0..num_rows).for_each(|row| sums.push(sums[row].wrapping_add(if counted(row) { values.value(row) } else { 0 })));
        let result = |frame: &Range<usize>| {
            let (sum, count) = (sums[frame.end].wrapping_sub(sums[frame.start]), count(frame));
            (count > 0).then(|| if self == Sweep::Average { sum.wrapping_div(count) } else { sum })
        };
        narrowed(frames.iter().map(result), &call.data_type.to_arrow())
    }
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Time32(_) | DataType::Timestamp(..) | DataType::Decimal128(..))
}

/// Whole numbers in the type of the result: the low bits, as in Java.
fn narrowed(values: impl Iterator<Item = Option<i64>>, data_type: &DataType) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Int8 => Arc::new(values.map(|value| value.map(|value| value as i8)).collect::<Int8Array>()),
        DataType::Int16 => Arc::new(values.map(|value| value.map(|value| value as i16)).collect::<Int16Array>()),
        DataType::Int32 => Arc::new(values.map(|value| value.map(|value| value as i32)).collect::<Int32Array>()),
        DataType::Int64 => Arc::new(values.collect::<Int64Array>()),
        other => return Err(Error::internal(format!("no sum of whole numbers is of type {other}"))),
    })
}

/// For each frame the first of its rows that no other one comes before; none = it has no row that counts.
fn extremes(
    comparator: &DynComparator,
    counted: impl Fn(usize) -> bool,
    frames: &[Range<usize>],
    stretches: &[Range<usize>],
) -> Vec<Option<u32>> {
    let mut places = Vec::with_capacity(frames.len());
    // Rows that can still be the extreme of a frame to come: none of them is behind a better one.
    let mut candidates: VecDeque<usize> = VecDeque::new();
    for stretch in stretches {
        candidates.clear();
        let mut seen = frames.get(stretch.start).map_or(0, |frame| frame.start);
        for frame in &frames[stretch.clone()] {
            seen = seen.max(frame.start);
            for row in (seen..frame.end).filter(|row| counted(*row)) {
                while candidates.back().is_some_and(|last| comparator(row, *last).is_lt()) {
                    candidates.pop_back();
                }
                candidates.push_back(row);
            }
            seen = seen.max(frame.end);
            while candidates.front().is_some_and(|first| *first < frame.start) {
                candidates.pop_front();
            }
            places.push(candidates.front().filter(|first| **first < frame.end).map(|first| *first as u32));
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{DataType as SqlType, TypeKind};

    fn call(function: &str, kind: TypeKind) -> AggregateCall {
        AggregateCall {
            function: function.to_string(),
            args: vec![0],
            arg_types: vec![SqlType::nullable(kind.clone())],
            distinct: false,
            order: Vec::new(),
            filter: None,
            data_type: SqlType::nullable(kind),
            name: String::new(),
        }
    }

    #[test]
    fn narrow_sums_wrap_and_frames_without_values_have_none() {
        let column: ArrayRef = Arc::new(Int8Array::from(vec![Some(100), Some(100), None, Some(-3)]));
        let frames = [0..2, 0..4, 2..3, 3..4];
        let run = |function: &str| {
            let call = call(function, TypeKind::TinyInt);
            let sweep = Sweep::of(&call).unwrap();
            sweep.evaluate(&call, &[Arc::clone(&column)], 4, (&frames, &[0..3, 3..4])).unwrap()
        };
        let expected: ArrayRef = Arc::new(Int8Array::from(vec![Some(-56), Some(-59), None, Some(-3)]));
        assert_eq!(&run("SUM"), &expected);
        let expected: ArrayRef = Arc::new(Int8Array::from(vec![Some(100), Some(65), None, Some(-3)]));
        assert_eq!(&run("AVG"), &expected);
        let expected: ArrayRef = Arc::new(Int8Array::from(vec![Some(100), Some(-3), None, Some(-3)]));
        assert_eq!(&run("MIN"), &expected);
        let expected: ArrayRef = Arc::new(Int8Array::from(vec![Some(100), Some(100), None, Some(-3)]));
        assert_eq!(&run("MAX"), &expected);
        assert_eq!(Sweep::of(&call("SUM", TypeKind::Double)), None, "the order of additions matters");
    }
}
