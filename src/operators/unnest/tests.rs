//! Rows become the rows of their elements, with kinds and steps.

use super::*;
use crate::expr::builtin_functions;
use crate::operators::testing::*;
use crate::types::{DataType, Value};

fn bigint(column: usize) -> Expr {
    Expr::column(column, DataType::nullable(TypeKind::BigInt))
}

fn call(function: &str, args: Vec<Expr>) -> Expr {
    builtin_functions().scalar(function).unwrap().bind(args).unwrap()
}

/// `ARRAY[n, n + n]`; NULL where n is 0.
fn pair() -> Expr {
    let array = call("ARRAY", vec![bigint(1), call("+", vec![bigint(1), bigint(1)])]);
    let data_type = array.data_type().with_nullable(true);
    let zero = Expr::literal(Value::BigInt(0), DataType::not_null(TypeKind::BigInt));
    let null = Expr::literal(Value::Null, data_type.clone());
    Expr::Case { branches: vec![(call("=", vec![bigint(1), zero]), null)], otherwise: Box::new(array), data_type }
}

fn unnest(collection: Expr, kept: &[usize], outer: bool, ordinality: bool, condition: Option<Expr>) -> Unnest {
    Unnest::new(UnnestSpec { collection, is_call: false, outer, ordinality, condition, kept: kept.to_vec() }, &context()).unwrap()
}

fn check(mut operator: Unnest, rows: &[&str], expected: &[&str]) {
    let mut output = Lines::default();
    push(&mut operator, batch(rows), &mut output);
    assert_eq!(output.take(), expected);
}

#[test]
fn kinds_and_steps_go_with_the_elements() {
    check(
        unnest(pair(), &[0, 3], false, false, None),
        &["+I a 1", "~5", "-U b 0", "+U c 3", "~7"],
        &["+I a 1", "+I a 2", "~5", "+I c 3", "+I c 6", "~7"],
    );
}

#[test]
fn a_left_join_keeps_rows_without_elements_and_numbers_the_others() {
    check(
        unnest(pair(), &[0, 3, 4], true, true, None),
        &["+I a 1", "+I b 0", "-D NULL NULL"],
        &["+I a 1 1", "+I a 2 2", "+I b NULL NULL", "-D NULL NULL 1", "-D NULL NULL 2"],
    );
}

#[test]
fn elements_that_fail_the_condition_are_not_there() {
    let above_two = || Some(call(">", vec![bigint(3), Expr::literal(Value::BigInt(2), DataType::not_null(TypeKind::BigInt))]));
    let rows = ["+I a 1", "+I b 2", "+I c 3"];
    check(unnest(pair(), &[0, 3], false, false, above_two()), &rows, &["+I b 4", "+I c 3", "+I c 6"]);
    check(unnest(pair(), &[0, 3], true, false, above_two()), &rows, &["+I a NULL", "+I b 4", "+I c 3", "+I c 6"]);
}

#[test]
fn a_null_row_is_no_element() {
    let row = call("ROW", vec![bigint(1), Expr::column(0, DataType::nullable(TypeKind::Varchar(10)))]);
    let data_type = row.data_type().with_nullable(true);
    let zero = Expr::literal(Value::BigInt(0), DataType::not_null(TypeKind::BigInt));
    let null = Expr::literal(Value::Null, data_type.clone());
    let row = Expr::Case { branches: vec![(call("=", vec![bigint(1), zero]), null)], otherwise: Box::new(row), data_type };
    let array = call("ARRAY", vec![row]);
    check(unnest(array.clone(), &[0, 3, 4], false, false, None), &["+I a 1", "+I b 0"], &["+I a 1 a"]);
    check(unnest(array, &[0, 3, 4], true, false, None), &["+I a 1", "+I b 0"], &["+I a 1 a", "+I b NULL NULL"]);
}

#[test]
fn the_elements_of_a_multiset_come_as_often_as_they_are_counted() {
    let text = DataType::nullable(TypeKind::Varchar(10));
    let counted = Expr::literal(
        Value::Map(vec![(Value::String("x".into()), Value::Int(2)), (Value::String("y".into()), Value::Int(1))]),
        DataType::not_null(TypeKind::Multiset(Box::new(text))),
    );
    check(unnest(counted, &[1, 3, 4], false, true, None), &["+I a 7"], &["+I 7 x 1", "+I 7 x 2", "+I 7 y 3"]);
}

#[test]
fn many_elements_come_in_parts() {
    let mut operator = unnest(pair(), &[1, 3], false, false, None);
    let lines: Vec<String> = (1..=ROWS_MAX).map(|n| format!("+I a {n}")).chain(["~9".to_string()]).collect();
    let mut output = Lines::default();
    push(&mut operator, batch(&lines.iter().map(String::as_str).collect::<Vec<_>>()), &mut output);
    let rows = output.take();
    assert_eq!(rows.len(), 2 * ROWS_MAX + 1);
    assert_eq!(rows[2 * ROWS_MAX], "~9");
    assert_eq!(rows[2 * ROWS_MAX - 1], format!("+I {ROWS_MAX} {}", 2 * ROWS_MAX));
}

/// Notes how many rows each batch has, and where its watermarks stand.
#[derive(Default)]
struct Sizes(Vec<(usize, Vec<u32>)>);

impl Output for Sizes {
    fn batch(&mut self, batch: Batch) -> Result<()> {
        self.0.push((batch.num_rows(), batch.steps().as_slice().iter().map(|step| step.rows_before).collect()));
        Ok(())
    }

    fn watermark(&mut self, _watermark: Watermark) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_single_row_with_many_elements_makes_several_batches() {
    let (mut operator, mut output) = (unnest(bigint(1), &[0], false, false, None), Sizes::default());
    let many = 2 * ROWS_MAX + 5;
    let rows = batch(&["+I a 1", "~3", &format!("+I b {many}"), "~7"]);
    operator.process_batch(InputNumber(0), rows, &mut output).unwrap();
    let whole = (ROWS_MAX, vec![]);
    assert_eq!(output.0, [(1, vec![1]), whole.clone(), whole, (5, vec![5])]);
}
