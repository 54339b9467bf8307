//! Evaluation of part of a batch: AND, OR and CASE look at later terms only where the former ones leave the answer open.
//!
//! A term that cannot fail and is small is evaluated on all rows, which costs less than narrowing the columns to a few of them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, new_null_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute;
use arrow::compute::kernels::zip::zip;

use super::compile::{Term, boolean_scalar, null_scalar};
use super::{Datum, EvalContext};
use crate::error::Result;
use crate::types::DataType;

/// AND in three-valued logic.
pub(super) fn all_of(terms: &[Term], columns: &[ArrayRef], context: &EvalContext) -> Result<Datum> {
    connective(terms, columns, context, false)
}

/// OR in three-valued logic.
pub(super) fn any_of(terms: &[Term], columns: &[ArrayRef], context: &EvalContext) -> Result<Datum> {
    connective(terms, columns, context, true)
}

/// AND (`decisive` = false) or OR (`decisive` = true): a term of the decisive value settles a row.
fn connective(terms: &[Term], columns: &[ArrayRef], context: &EvalContext, decisive: bool) -> Result<Datum> {
    let mut so_far: Option<BooleanArray> = None;
    let mut scalar = Some(!decisive);
    for term in terms {
        let open = so_far.as_ref().map(|values| open_rows(values, decisive));
        let open_count = open.as_ref().map_or(context.num_rows, BooleanArray::true_count);
        if open.is_some() && open_count == 0 {
            break;
        }
        let value = match &open {
            Some(open) if open_count < context.num_rows && !term.eager => {
                let (columns, context) = narrow(&term.columns, columns, context, open, open_count)?;
                let part = term.evaluate_boolean(&columns, &context)?;
                Datum::Array(Arc::new(scatter(&part, open)))
            }
            _ => term.evaluate(columns, context)?,
        };
        match value {
            Datum::Scalar(array) => {
                let value = (!array.is_null(0)).then(|| array.as_boolean().value(0));
                if value == Some(decisive) {
                    return Ok(boolean_scalar(value));
                }
                scalar = if value.is_none() { None } else { scalar };
            }
            Datum::Array(array) => {
                let array = array.as_boolean();
                so_far = Some(match so_far {
                    None => array.clone(),
                    Some(former) => kleene(&former, array, decisive)?,
                });
            }
        }
    }
    Ok(match so_far {
        None => boolean_scalar(scalar),
        Some(values) if scalar.is_none() => {
            let unknown = BooleanArray::new_null(values.len());
            Datum::Array(Arc::new(kleene(&values, &unknown, decisive)?))
        }
        Some(values) => Datum::Array(Arc::new(values)),
    })
}

fn kleene(left: &BooleanArray, right: &BooleanArray, or: bool) -> Result<BooleanArray> {
    Ok(if or { compute::or_kleene(left, right)? } else { compute::and_kleene(left, right)? })
}

/// The rows that `values` does not settle.
fn open_rows(values: &BooleanArray, decisive: bool) -> BooleanArray {
    let settled = if decisive { values.values().clone() } else { !values.values() };
    let settled = match values.nulls() {
        Some(nulls) => &settled & nulls.inner(),
        None => settled,
    };
    BooleanArray::new(!&settled, None)
}

/// The values of the selected rows put back at their places. Other rows get a value that changes nothing: they are settled.
fn scatter(part: &BooleanArray, selected: &BooleanArray) -> BooleanArray {
    let mut values = BooleanBufferBuilder::new(selected.len());
    values.append_n(selected.len(), false);
    let mut valid = BooleanBufferBuilder::new(selected.len());
    valid.append_n(selected.len(), true);
    for (at, row) in selected.values().set_indices().enumerate() {
        values.set_bit(row, part.value(at));
        valid.set_bit(row, !part.is_null(at));
    }
    BooleanArray::new(values.finish(), Some(NullBuffer::new(valid.finish())))
}

/// The needed columns, narrowed to the selected rows. Columns that are not needed stay as they are, only to keep positions.
fn narrow(
    needed: &[usize],
    columns: &[ArrayRef],
    context: &EvalContext,
    selected: &BooleanArray,
    count: usize,
) -> Result<(Vec<ArrayRef>, EvalContext)> {
    let mut narrowed = columns.to_vec();
    let filter = compute::FilterBuilder::new(selected).optimize().build();
    for &index in needed {
        narrowed[index] = filter.filter(&columns[index])?;
    }
    let mut context = context.clone();
    context.num_rows = count;
    Ok((narrowed, context))
}

/// CASE: of each row the result of the first branch whose condition is true. Only constant conditions make one value for all: whether
/// a pattern is the query's or a row's must not depend on who shares the row's batch.
pub(super) fn case(
    branches: &[(Term, Term)],
    otherwise: &Term,
    data_type: &DataType,
    columns: &[ArrayRef],
    context: &EvalContext,
) -> Result<Datum> {
    let result = chosen(branches, otherwise, data_type, columns, context)?;
    match branches.iter().all(|(when, _)| when.columns.is_empty()) {
        true => Ok(result),
        false => Ok(Datum::Array(result.into_array(context.num_rows)?)),
    }
}

fn chosen(
    branches: &[(Term, Term)],
    otherwise: &Term,
    data_type: &DataType,
    columns: &[ArrayRef],
    context: &EvalContext,
) -> Result<Datum> {
    let mut state = CaseState { open: None, parts: Vec::new() };
    for (when, then) in branches {
        let hit = match state.condition(when, columns, context)? {
            Condition::Never => continue,
            Condition::Always => {
                state.take_open(then, columns, context)?;
                return state.merge(data_type, context);
            }
            Condition::Sometimes(hit) => hit,
        };
        state.take(hit, then, columns, context)?;
        if state.open.as_ref().is_some_and(|open| open.true_count() == 0) {
            return state.merge(data_type, context);
        }
    }
    state.take_open(otherwise, columns, context)?;
    state.merge(data_type, context)
}

enum Condition {
    Never,
    Always,
    /// For these rows, all of them open.
    Sometimes(BooleanArray),
}

/// What is known of the rows of a CASE so far.
struct CaseState {
    /// Rows that no branch has taken; none = all.
    open: Option<BooleanArray>,
    /// Rows (none = all open ones at the end, or all) and their values: of the batch's length, narrowed, or one for all.
    parts: Vec<Part>,
}

struct Part {
    /// The rows that the part decides; none = all.
    rows: Option<BooleanArray>,
    values: Datum,
    /// Whether `values` has a value for each row of `rows` only.
    narrowed: bool,
}

impl CaseState {
    fn condition(&self, when: &Term, columns: &[ArrayRef], context: &EvalContext) -> Result<Condition> {
        let truth = match &self.open {
            Some(open) if !when.eager => {
                let (columns, context) = narrow(&when.columns, columns, context, open, open.true_count())?;
                let part = when.evaluate_boolean(&columns, &context)?;
                Datum::Array(Arc::new(scatter(&part, open)))
            }
            _ => when.evaluate(columns, context)?,
        };
        Ok(match truth {
            Datum::Scalar(array) if !array.is_null(0) && array.as_boolean().value(0) => Condition::Always,
            Datum::Scalar(_) => Condition::Never,
            Datum::Array(array) => {
                let hit = self.still_open(true_rows(array.as_boolean()));
                match hit.true_count() {
                    0 => Condition::Never,
                    count if count == context.num_rows => Condition::Always,
                    _ => Condition::Sometimes(hit),
                }
            }
        })
    }

    fn still_open(&self, rows: BooleanBuffer) -> BooleanArray {
        let rows = match &self.open {
            Some(open) => &rows & open.values(),
            None => rows,
        };
        BooleanArray::new(rows, None)
    }

    /// Gives the rows `hit` the values of `then`.
    fn take(&mut self, hit: BooleanArray, then: &Term, columns: &[ArrayRef], context: &EvalContext) -> Result<()> {
        let (values, narrowed) = if then.eager {
            (then.evaluate(columns, context)?, false)
        } else {
            let (columns, context) = narrow(&then.columns, columns, context, &hit, hit.true_count())?;
            (then.evaluate(&columns, &context)?, true)
        };
        let rest = !hit.values();
        self.open = Some(self.still_open(rest));
        self.parts.push(Part { rows: Some(hit), values, narrowed });
        Ok(())
    }

    /// Gives all open rows the values of `then`.
    fn take_open(&mut self, then: &Term, columns: &[ArrayRef], context: &EvalContext) -> Result<()> {
        match self.open.take() {
            Some(open) => {
                self.open = None;
                self.take(open, then, columns, context)
            }
            None => {
                self.parts.push(Part { rows: None, values: then.evaluate(columns, context)?, narrowed: false });
                Ok(())
            }
        }
    }

    fn merge(mut self, data_type: &DataType, context: &EvalContext) -> Result<Datum> {
        let Some(last) = self.parts.pop() else { return Ok(null_scalar(data_type)) };
        if last.rows.is_none() {
            return Ok(last.values); // it decides all rows, and nothing came before
        }
        if self.parts.iter().chain([&last]).any(|part| part.narrowed) {
            self.parts.push(last);
            return interleave(&self.parts, data_type, context.num_rows);
        }
        // The last part may decide more rows than it has to: those of the former parts are put over it.
        let mut result = last.values;
        for part in self.parts.into_iter().rev() {
            let rows = part.rows.expect("only the last part can decide all rows");
            result = Datum::Array(zip(&rows, &part.values, &result)?);
        }
        Ok(result)
    }
}

fn true_rows(values: &BooleanArray) -> BooleanBuffer {
    match values.nulls() {
        Some(nulls) => values.values() & nulls.inner(),
        None => values.values().clone(),
    }
}

/// Puts parts of which some have values only for their own rows together.
fn interleave(parts: &[Part], data_type: &DataType, num_rows: usize) -> Result<Datum> {
    let null = new_null_array(&data_type.to_arrow(), 1);
    let mut places = vec![(parts.len(), 0); num_rows];
    for (number, part) in parts.iter().enumerate() {
        let rows = part.rows.as_ref().expect("parts of a mixed CASE decide some rows");
        for (at, row) in rows.values().set_indices().enumerate() {
            let index = match (&part.values, part.narrowed) {
                (Datum::Scalar(_), _) => 0,
                (Datum::Array(_), true) => at,
                (Datum::Array(_), false) => row,
            };
            places[row] = (number, index);
        }
    }
    let arrays: Vec<&dyn Array> =
        parts.iter().map(|part| part.values.array().as_ref()).chain([null.as_ref() as &dyn Array]).collect();
    Ok(Datum::Array(compute::interleave(&arrays, &places)?))
}
