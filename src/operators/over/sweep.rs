//! Counts, sums and extremes over frames that move along: each row of a stretch is looked at once, however wide frames are.
//!
//! They give exactly what the accumulators give: sums of whole numbers wrap, so a difference of running sums is the sum between. Sums of
//! floating point, of which that is not so, are folded frame by frame from the values alone.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, UInt32Array, make_comparator,
};
use arrow::compute::{self, SortOptions};
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type, Int64Type};
use arrow::row::{RowConverter, SortField};
use hashbrown::HashMap;

use super::frame_folds::{distinct_frames, fold_frames};
use crate::error::{Error, Result};
use crate::expr::{AggregateCall, Moments, variances, with_one_nan};
use crate::types::{DataType as SqlType, TypeKind};

/// An aggregate that can be swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sweep {
    Count,
    Sum,
    Average,
    Min,
    Max,
    /// Of FLOAT or DOUBLE.
    FloatExtreme {
        max: bool,
    },
    FloatSum,
    FloatAverage,
    Variance {
        sample: bool,
        root: bool,
    },
    DecimalSum,
    /// The n-th value that counts.
    Nth,
    /// The last value that counts.
    Last,
    CountDistinct,
    SumDistinct,
    AverageDistinct,
}

impl Sweep {
    /// How a call is swept; none = it cannot be.
    pub(super) fn of(call: &AggregateCall) -> Option<Self> {
        let arg = call.arg_types.first();
        let is_whole = arg.is_some_and(|arg| arg.is_integer());
        let is_ordered = |arg: &SqlType| arg.is_integer() || arg.is_character() || is_time(&arg.to_arrow());
        let is_float = arg.is_some_and(|arg| matches!(arg.kind, TypeKind::Float | TypeKind::Double));
        let is_decimal = arg.is_some_and(|arg| matches!(arg.kind, TypeKind::Decimal(..)));
        let variance = |sample, root| Some(Sweep::Variance { sample, root });
        match (call.function.as_str(), call.distinct) {
            ("COUNT", false) => Some(Sweep::Count),
            ("COUNT", true) if call.arg_types.iter().all(is_ordered) => Some(Sweep::CountDistinct),
            ("SUM", false) if is_whole => Some(Sweep::Sum),
            ("SUM", true) if is_whole => Some(Sweep::SumDistinct),
            ("SUM", false) if is_float => Some(Sweep::FloatSum),
            ("SUM", false) if is_decimal => Some(Sweep::DecimalSum),
            ("AVG", false) if is_whole => Some(Sweep::Average),
            ("AVG", true) if is_whole => Some(Sweep::AverageDistinct),
            ("AVG", false) if is_float => Some(Sweep::FloatAverage),
            ("MIN", _) if arg.is_some_and(is_ordered) => Some(Sweep::Min),
            ("MAX", _) if arg.is_some_and(is_ordered) => Some(Sweep::Max),
            ("MIN", _) if is_float => Some(Sweep::FloatExtreme { max: false }),
            ("MAX", _) if is_float => Some(Sweep::FloatExtreme { max: true }),
            ("STDDEV_POP", false) => variance(false, true),
            ("STDDEV_SAMP", false) => variance(true, true),
            ("VAR_POP", false) => variance(false, false),
            ("VAR_SAMP", false) => variance(true, false),
            ("FIRST_VALUE" | "FIRST_VALUE_RESPECT_NULLS" | "NTH_VALUE" | "NTH_VALUE_IGNORE_NULLS", false) => Some(Sweep::Nth),
            ("LAST_VALUE" | "LAST_VALUE_RESPECT_NULLS", false) => Some(Sweep::Last),
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
        // Of NTH_VALUE the second argument is how many; of others all arguments are values.
        let values = match call.function.as_str() {
            "NTH_VALUE" | "FIRST_VALUE_RESPECT_NULLS" | "LAST_VALUE_RESPECT_NULLS" => 0,
            "NTH_VALUE_IGNORE_NULLS" => 1,
            _ => args.len(),
        };
        let counted = |row: usize| {
            filter.is_none_or(|filter: &BooleanArray| filter.is_valid(row) && filter.value(row))
                && args[..values].iter().all(|arg| arg.is_valid(row))
        };
        if let Sweep::Min | Sweep::Max = self {
            let is_max = self == Sweep::Max;
            let ascending = SortOptions { descending: is_max, nulls_first: true };
            let comparator = make_comparator(args[0].as_ref(), args[0].as_ref(), ascending)?;
            let places = extremes(comparator, counted, frames, stretches);
            return Ok(compute::take(args[0], &UInt32Array::from(places), None)?);
        }
        let mut counts = Vec::with_capacity(num_rows + 1);
        counts.push(0i64);
        (0..num_rows).for_each(|row| counts.push(counts[row] + i64::from(counted(row))));
        if let Sweep::Count | Sweep::Sum | Sweep::Average = self {
            return sums(self, call, &args, counted, &counts, frames);
        }
        // From here on only the rows that count.
        let rows = UInt32Array::from_iter_values((0..num_rows).filter(|row| counted(*row)).map(|row| row as u32));
        let frames: Vec<Range<usize>> =
            frames.iter().map(|frame| counts[frame.start] as usize..counts[frame.end] as usize).collect();
        if let Sweep::Nth | Sweep::Last = self {
            let nth = if call.args.len() > 1 { nth(args[1])? } else { 0 };
            let place = |frame: &Range<usize>| match self {
                Sweep::Last => frame.end.checked_sub(1).filter(|place| *place >= frame.start),
                _ => frame.start.checked_add(nth).filter(|place| *place < frame.end),
            };
            let places = frames.iter().map(|frame| place(frame).map(|place| rows.value(place)));
            return Ok(compute::take(args[0], &places.collect::<UInt32Array>(), None)?);
        }
        let args = args.iter().map(|arg| compute::take(arg, &rows, None)).collect::<std::result::Result<Vec<_>, _>>()?;
        self.of_counted(call, &args, (&frames, stretches))
    }

    /// The results for frames over rows all of which count.
    fn of_counted(
        self,
        call: &AggregateCall,
        args: &[ArrayRef],
        (frames, stretches): (&[Range<usize>], &[Range<usize>]),
    ) -> Result<ArrayRef> {
        let result_type = call.data_type.to_arrow();
        let doubles =
            |arg: &ArrayRef| Ok::<_, Error>(compute::cast(arg, &DataType::Float64)?.as_primitive::<Float64Type>().clone());
        Ok(match self {
            Sweep::FloatSum if *args[0].data_type() == DataType::Float32 => {
                let values = args[0].as_primitive::<Float32Type>().values();
                let folds = fold_frames(frames, |value| values[value], |sum, value| *sum += values[value]);
                with_one_nan(Arc::new(folds.into_iter().collect::<Float32Array>()))
            }
            Sweep::FloatSum | Sweep::FloatAverage => {
                let values = doubles(&args[0])?;
                let values = values.values();
                let folds = fold_frames(frames, |value| values[value], |sum, value| *sum += values[value]);
                let of_frame = |(fold, frame): (Option<f64>, &Range<usize>)| match self {
                    Sweep::FloatSum => fold,
                    _ => fold.map(|sum| sum / frame.len() as f64),
                };
                let folds = folds.into_iter().zip(frames).map(of_frame);
                with_one_nan(match result_type {
                    DataType::Float32 => Arc::new(folds.map(|fold| fold.map(|fold| fold as f32)).collect::<Float32Array>()),
                    _ => Arc::new(folds.collect::<Float64Array>()),
                })
            }
            Sweep::Variance { sample, root } => {
                let values = doubles(&args[0])?;
                let values = values.values();
                let folds = fold_frames(frames, |value| Moments::of(values[value]), |moments, value| moments.add(values[value]));
                with_one_nan(variances(folds.into_iter().map(Option::unwrap_or_default), (sample, root), &result_type)?)
            }
            Sweep::FloatExtreme { max } => {
                let values = doubles(&args[0])?;
                let places = float_extremes(values.values(), max, frames, stretches);
                with_one_nan(compute::take(&args[0], &UInt32Array::from(places), None)?)
            }
            Sweep::DecimalSum => {
                let values = args[0].as_primitive::<Decimal128Type>().values();
                let sums = decimal_sums(values, frames);
                Arc::new(sums.into_iter().collect::<Decimal128Array>().with_data_type(result_type))
            }
            _ => {
                let ids = value_numbers(args)?;
                if self == Sweep::CountDistinct {
                    let counts = distinct_frames(&ids, (frames, stretches), (), |(), _| (), |(), _| ());
                    return Ok(Arc::new(Int64Array::from_iter_values(counts.into_iter().map(|(count, ())| count))));
                }
                let values = compute::cast(&args[0], &DataType::Int64)?;
                let values = values.as_primitive::<Int64Type>().values();
                let gained = |sum: i64, value: usize| sum.wrapping_add(values[value]);
                let lost = |sum: i64, value: usize| sum.wrapping_sub(values[value]);
                let sums = distinct_frames(&ids, (frames, stretches), 0, gained, lost);
                let of_frame =
                    |(count, sum): (i64, i64)| if self == Sweep::AverageDistinct { sum.wrapping_div(count) } else { sum };
                narrowed(sums.into_iter().map(|frame| (frame.0 > 0).then(|| of_frame(frame))), &result_type)?
            }
        })
    }
}

/// Counts, sums and averages of whole numbers, as differences of running ones.
fn sums(
    sweep: Sweep,
    call: &AggregateCall,
    args: &[&ArrayRef],
    counted: impl Fn(usize) -> bool,
    counts: &[i64],
    frames: &[Range<usize>],
) -> Result<ArrayRef> {
    let count = |frame: &Range<usize>| counts[frame.end] - counts[frame.start];
    if sweep == Sweep::Count {
        return Ok(Arc::new(Int64Array::from_iter_values(frames.iter().map(count))));
    }
    let values = compute::cast(args[0], &DataType::Int64)?;
    let values = values.as_primitive::<Int64Type>();
    let mut sums = Vec::with_capacity(counts.len());
    sums.push(0i64);
    (0..values.len()).for_each(|row| sums.push(sums[row].wrapping_add(if counted(row) { values.value(row) } else { 0 })));
    let result = |frame: &Range<usize>| {
        let (sum, count) = (sums[frame.end].wrapping_sub(sums[frame.start]), count(frame));
        (count > 0).then(|| if sweep == Sweep::Average { sum.wrapping_div(count) } else { sum })
    };
    narrowed(frames.iter().map(result), &call.data_type.to_arrow())
}

/// How many values NTH_VALUE passes over: a constant.
fn nth(numbers: &ArrayRef) -> Result<usize> {
    let numbers = compute::cast(numbers, &DataType::Int64)?;
    let number = numbers.as_primitive::<Int64Type>().iter().flatten().next().unwrap_or(1);
    Ok(usize::try_from(number - 1).unwrap_or(usize::MAX))
}

/// A number for each row, the same for rows with the same values.
fn value_numbers(args: &[ArrayRef]) -> Result<Vec<u32>> {
    let fields = args.iter().map(|arg| SortField::new(arg.data_type().clone())).collect();
    let rows = RowConverter::new(fields)?.convert_columns(args)?;
    let mut numbers: HashMap<&[u8], u32> = HashMap::new();
    let encoded: Vec<_> = rows.iter().collect();
    Ok(encoded
        .iter()
        .map(|row| {
            let next = numbers.len() as u32;
            *numbers.entry(row.data()).or_insert(next)
        })
        .collect())
}

/// Sums of decimals, NULL where there are no values; one with more than 38 digits begins anew with the next value, as that of the accumulator.
fn decimal_sums(values: &[i128], frames: &[Range<usize>]) -> Vec<Option<i128>> {
    let is_safe = |value: i128| value.unsigned_abs() < 10u128.pow(38);
    let most = values.iter().try_fold(0i128, |most, value| most.checked_add(value.checked_abs()?)).filter(|most| is_safe(*most));
    if most.is_some() {
        let mut sums = Vec::with_capacity(values.len() + 1);
        sums.push(0i128);
        values.iter().for_each(|value| sums.push(sums[sums.len() - 1] + value));
        return frames.iter().map(|frame| (!frame.is_empty()).then(|| sums[frame.end] - sums[frame.start])).collect();
    }
    let add = |sum: &mut Option<i128>, value: usize| {
        *sum = match *sum {
            Some(before) => before.checked_add(values[value]).filter(|sum| is_safe(*sum)),
            None => Some(values[value]),
        };
    };
    fold_frames(frames, |value| Some(values[value]), add).into_iter().map(Option::flatten).collect()
}

/// Extremes of numbers that are not exact. One that is no number stays where it comes first, and is passed over elsewhere.
fn float_extremes(values: &[f64], max: bool, frames: &[Range<usize>], stretches: &[Range<usize>]) -> Vec<Option<u32>> {
    let order = |a: usize, b: usize| {
        let order = values[a].partial_cmp(&values[b]).unwrap_or(Ordering::Equal);
        if max { order.reverse() } else { order }
    };
    let mut places = extremes(order, |row| !values[row].is_nan(), frames, stretches);
    for (place, frame) in places.iter_mut().zip(frames) {
        if !frame.is_empty() && values[frame.start].is_nan() {
            *place = Some(frame.start as u32);
        }
    }
    places
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
    comparator: impl Fn(usize, usize) -> Ordering,
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
        assert_eq!(Sweep::of(&call("LISTAGG", TypeKind::BigInt)), None);
    }
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod against_accumulators;
