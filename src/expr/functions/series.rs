//! GENERATE_SERIES: the numbers, dates or times from one to another, as an ARRAY. More than Flink has.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, Int64Array, ListArray, new_null_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute;
use arrow::datatypes::{DataType as ArrowType, DurationMillisecondType, Int64Type, IntervalYearMonthType};

use super::args::{Numbers, Rows};
use super::builtin::{Builtin, any_nullable, coerce};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::compile::map_array;
use crate::expr::datetime::add_months_to_ms;
use crate::expr::values::{timestamp_units, timestamps_of_units};
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind, Value};

/// Elements of an array at most.
const ELEMENTS_MAX: i128 = 10_000_000;

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[Builtin::new(
    "GENERATE_SERIES",
    "GENERATE_SERIES(<INTEGER>, <INTEGER> [, <INTEGER>])\nGENERATE_SERIES(<TIMESTAMP>, <TIMESTAMP>, <INTERVAL>)",
    bind,
    evaluate,
)
.failing()];

fn bind(function: &Builtin, mut args: Vec<Expr>) -> Result<Expr> {
    if args.len() == 2 && args.iter().all(|arg| arg.data_type().is_integer()) {
        args.push(Expr::literal(Value::Int(1), DataType::not_null(TypeKind::Int)));
    }
    let types: Vec<DataType> = args.iter().map(Expr::data_type).collect();
    let [first, last, step] = types.as_slice() else { return Err(function.mismatch(&args)) };
    let kinds = match (&first.kind, &last.kind) {
        _ if types.iter().all(DataType::is_integer) => {
            let is_big = [first, last].iter().any(|data_type| data_type.kind == TypeKind::BigInt);
            let kind = if is_big { TypeKind::BigInt } else { TypeKind::Int };
            [kind.clone(), kind, TypeKind::BigInt]
        }
        (TypeKind::Timestamp(_) | TypeKind::Date, TypeKind::Timestamp(_) | TypeKind::Date) if step.is_interval() => {
            let precision = |data_type: &DataType| match data_type.kind {
                TypeKind::Timestamp(precision) => precision.max(3),
                _ => 3,
            };
            let kind = TypeKind::Timestamp(precision(first).max(precision(last)));
            [kind.clone(), kind, step.kind.clone()]
        }
        _ => return Err(function.mismatch(&args)),
    };
    let data_type = DataType::new(TypeKind::Array(Box::new(DataType::not_null(kinds[0].clone()))), any_nullable(&args));
    let args = args.into_iter().zip(&kinds).map(|(arg, kind)| coerce(arg, kind)).collect();
    Ok(function.call(args, data_type))
}

/// How far one element is from the one before it.
#[derive(Clone, Copy)]
enum Step {
    Units(i64),
    /// Of the calendar, each counted from the first element.
    Months(i64),
}

fn evaluate(args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    let ArrowType::List(field) = data_type.to_arrow() else { return Err(Error::internal("a series is a list")) };
    let units_per_ms = match field.data_type() {
        ArrowType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, _) => 1_000_000,
        ArrowType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, _) => 1_000,
        _ => 1,
    };
    let as_units = |datum: &Datum| {
        map_array(datum.clone(), |array| match array.data_type() {
            ArrowType::Timestamp(..) => Ok(Arc::new(timestamp_units(array)) as ArrayRef),
            _ => Ok(compute::cast(array, &ArrowType::Int64)?),
        })
    };
    let (first, last) = (as_units(&args[0])?, as_units(&args[1])?);
    let (first, last) = (Numbers::<Int64Type>::of(&first), Numbers::<Int64Type>::of(&last));
    let step = |row: usize| match args[2].array().data_type() {
        ArrowType::Interval(_) => {
            Numbers::<IntervalYearMonthType>::of(&args[2]).get(row).map(|months| Step::Months(months.into()))
        }
        ArrowType::Duration(_) => {
            Numbers::<DurationMillisecondType>::of(&args[2]).get(row).map(|ms| Step::Units(ms.saturating_mul(units_per_ms)))
        }
        _ => Numbers::<Int64Type>::of(&args[2]).get(row).map(Step::Units),
    };
    let rows = Rows::of(args, context);
    let (mut elements, mut lengths, mut valid) = (Vec::new(), Vec::with_capacity(rows.count), Vec::with_capacity(rows.count));
    for row in 0..rows.count {
        let before = elements.len();
        let bounds = (first.get(row), last.get(row), step(row));
        if let (Some(first), Some(last), Some(step)) = bounds {
            extend(&mut elements, (first, last), step, units_per_ms)?;
        }
        lengths.push(elements.len() - before);
        valid.push(matches!(bounds, (Some(_), Some(_), Some(_))));
    }
    let elements: ArrayRef = match field.data_type() {
        _ if elements.is_empty() => new_null_array(field.data_type(), 0),
        ArrowType::Int32 => Arc::new(elements.iter().map(|element| *element as i32).collect::<Int32Array>()),
        ArrowType::Timestamp(..) => timestamps_of_units(&Int64Array::from(elements), field.data_type()),
        _ => Arc::new(Int64Array::from(elements)),
    };
    let nulls = Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0);
    Ok(rows.finish(Arc::new(ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), elements, nulls)?)))
}

/// Adds the elements from the first one to the last one, which is one of them if a step meets it.
fn extend(elements: &mut Vec<i64>, (first, last): (i64, i64), step: Step, units_per_ms: i64) -> Result<()> {
    let (Step::Units(size) | Step::Months(size)) = step;
    if size == 0 {
        return Err(Error::new(ErrorKind::InvalidArgument, "the step of GENERATE_SERIES is 0")
            .with_hint("let it be 1 or more, or less than 0"));
    }
    // Months have 28 days at least.
    let least = match step {
        Step::Units(units) => i128::from(units),
        Step::Months(months) => i128::from(months) * 28 * 86_400_000 * i128::from(units_per_ms),
    };
    let count = (i128::from(last) - i128::from(first)) / least + 1;
    if elements.len() as i128 + count.max(0) > ELEMENTS_MAX {
        return Err(Error::new(ErrorKind::InvalidArgument, format!("GENERATE_SERIES makes more than {ELEMENTS_MAX} elements"))
            .with_hint("take a greater step, or bounds that are nearer"));
    }
    for number in 0..count.max(0) as i64 {
        let element = match step {
            Step::Units(units) => first + number * units,
            Step::Months(months) => {
                let (ms, rest) = (first.div_euclid(units_per_ms), first.rem_euclid(units_per_ms));
                add_months_to_ms(ms, months * number) * units_per_ms + rest
            }
        };
        if (size > 0 && element > last) || (size < 0 && element < last) {
            break;
        }
        elements.push(element);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(bounds: (i64, i64), step: Step) -> Vec<i64> {
        let mut elements = Vec::new();
        extend(&mut elements, bounds, step, 1).unwrap();
        elements
    }

    #[test]
    fn a_series_ends_where_a_step_would_pass_its_end() {
        assert_eq!(series((1, 6), Step::Units(2)), [1, 3, 5]);
        assert_eq!(series((5, 1), Step::Units(-2)), [5, 3, 1]);
        assert_eq!(series((5, 1), Step::Units(1)), [0; 0]);
        assert_eq!(series((i64::MAX - 1, i64::MAX), Step::Units(1)), [i64::MAX - 1, i64::MAX]);
        let day = 86_400_000;
        // The ends of January, February and March 1970.
        assert_eq!(series((30 * day, 90 * day), Step::Months(1)), [30 * day, 58 * day, 89 * day]);
        assert!(extend(&mut Vec::new(), (0, i64::MAX), Step::Units(1), 1).is_err());
        assert!(extend(&mut Vec::new(), (0, 1), Step::Units(0), 1).is_err());
    }
}
