//! Random expressions over random batches: a batch evaluated at once gives what its rows give one by one, and what they give as
//! constants.

mod expressions;
mod rows;

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::{Array, ArrayRef};

use self::expressions::ExpressionMaker;
use self::rows::{Row, columns_of, random_rows, schema};
use super::compile::can_fail;
use super::{EvalContext, Expr, FunctionRegistry, array_to_value, builtin_functions, compile};
use crate::error::Result;
use crate::testing::seeds::for_each_seed;
use crate::types::{TimeZone, TypeKind, Value, Watermark};

/// Seeds of a usual run.
const SEEDS: u64 = 6;

/// Batches of a seed: the maker learns on the way which arguments functions accept.
const BATCHES: usize = 10;

/// Functions that refuse a wrong constant pattern.
const PATTERN_FUNCTIONS: [&str; 2] = ["DATE_FORMAT", "FROM_UNIXTIME"];

/// Expressions that are tried on one batch.
const EXPRESSIONS_PER_BATCH: usize = 40;

fn context(num_rows: usize) -> EvalContext {
    EvalContext {
        num_rows,
        time_zone: TimeZone::parse("America/New_York").unwrap(),
        processing_time_ms: 1_700_000_000_000,
        query_start_ms: 1_700_000_000_000,
        watermark: Watermark::MIN,
    }
}

/// What an evaluation gave: values, or that it failed.
#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    Values(Vec<Value>),
    Failed,
}

/// Whether it can be NULL though its type does not say so, as in Flink: a DECIMAL that overflows, a text padded to less than nothing.
fn hides_null(expr: &Expr) -> bool {
    let pads = matches!(expr, Expr::Call { function, .. } if ["LPAD", "RPAD"].contains(&function.as_str()));
    pads || matches!(expr.data_type().kind, TypeKind::Decimal(..)) || expr.children().into_iter().any(hides_null)
}

fn evaluate(expr: &Expr, columns: &[ArrayRef], num_rows: usize, registry: &FunctionRegistry) -> Result<Vec<Value>> {
    let array = compile(expr, registry)?.evaluate_array(columns, &context(num_rows))?;
    let data_type = expr.data_type();
    assert_eq!(array.len(), num_rows, "a value for each row");
    assert_eq!(array.data_type(), &data_type.to_arrow(), "the Arrow form of {data_type}");
    let full = data_type.nullable || array.logical_null_count() == 0 || hides_null(expr);
    assert!(full, "no NULL where the type says NOT NULL");
    Ok((0..num_rows).map(|row| array_to_value(&array, row, &data_type)).collect())
}

fn outcome(expr: &Expr, columns: &[ArrayRef], num_rows: usize, registry: &FunctionRegistry) -> Outcome {
    evaluate(expr, columns, num_rows, registry).map_or(Outcome::Failed, Outcome::Values)
}

/// The expression with each column replaced by the value that a row has there.
fn with_constants(expr: Expr, row: &Row) -> Expr {
    match expr {
        Expr::Column { index, data_type } => Expr::literal(row.0[index].clone(), data_type),
        other => other.map_children(&mut |child| with_constants(child, row)),
    }
}

/// NaN equals NaN here, and the entries of a map have no order.
fn same(left: &Value, right: &Value) -> bool {
    let all = |left: &[Value], right: &[Value]| left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(l, r));
    match (left, right) {
        (Value::Double(left), Value::Double(right)) => left == right || (left.is_nan() && right.is_nan()),
        (Value::Float(left), Value::Float(right)) => left == right || (left.is_nan() && right.is_nan()),
        (Value::Array(left), Value::Array(right)) | (Value::Row(left), Value::Row(right)) => all(left, right),
        (Value::Map(left), Value::Map(right)) => {
            let has = |entry: &(Value, Value)| right.iter().any(|other| same(&entry.0, &other.0) && same(&entry.1, &other.1));
            left.len() == right.len() && left.iter().all(has)
        }
        _ => left == right,
    }
}

/// Whether a function takes a pattern, a path or a name there that a query may not have wrong.
fn has_pattern(expr: &Expr) -> bool {
    matches!(expr, Expr::Call { function, .. } if PATTERN_FUNCTIONS.contains(&function.as_str()))
        || expr.children().into_iter().any(has_pattern)
}

fn check(expr: &Expr, rows: &[Row], registry: &FunctionRegistry) {
    let columns = columns_of(rows);
    let at_once = outcome(expr, &columns, rows.len(), registry);
    let slice = |from: usize, len: usize| columns.iter().map(|column| column.slice(from, len)).collect::<Vec<_>>();
    let one_by_one: Vec<Outcome> = (0..rows.len()).map(|row| outcome(expr, &slice(row, 1), 1, registry)).collect();
    match &at_once {
        Outcome::Failed => {
            let error = evaluate(expr, &columns, rows.len(), registry).err();
            assert!(can_fail(expr, registry), "no part of it says that it can fail: {error:?}");
            assert!(one_by_one.contains(&Outcome::Failed), "the batch fails, and none of its rows: {error:?}");
        }
        Outcome::Values(values) => {
            for (row, value) in values.iter().enumerate() {
                let alone = &one_by_one[row];
                let agrees = matches!(alone, Outcome::Values(alone) if same(&alone[0], value));
                assert!(agrees, "row {row} {:?}: {value:?} in the batch, {alone:?} alone", rows[row]);
            }
        }
    }
    for (row, alone) in one_by_one.iter().enumerate() {
        let constant = outcome(&with_constants(expr.clone(), &rows[row]), &slice(row, 1), 1, registry);
        // A pattern that is none gives NULL when it comes with the row, and an error when the query has it.
        let agrees = match (alone, &constant) {
            (Outcome::Values(alone), Outcome::Values(constant)) => same(&alone[0], &constant[0]),
            (Outcome::Values(_), Outcome::Failed) => has_pattern(expr),
            (Outcome::Failed, constant) => *constant == Outcome::Failed,
        };
        assert!(agrees, "row {row} {:?}: {alone:?} of columns, {constant:?} of constants", rows[row]);
    }
}

fn fuzz(seed: u64, registry: &FunctionRegistry) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut maker = ExpressionMaker::new(registry);
    for _ in 0..BATCHES {
        let rows = random_rows(&mut random);
        for _ in 0..EXPRESSIONS_PER_BATCH {
            let expr = maker.expression(&mut random, 3);
            if expr.data_type().kind != TypeKind::Null {
                let checked = catch_unwind(AssertUnwindSafe(|| check(&expr, &rows, registry)));
                assert!(checked.is_ok(), "seed {seed}, columns {:?}, expression {expr:#?}", schema());
            }
        }
    }
}

#[test]
fn batches_give_what_their_rows_give() {
    let registry = builtin_functions();
    for_each_seed(SEEDS, |seed| fuzz(seed, &registry));
}
