//! Expressions compiled and evaluated over small batches.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array};

use super::text::{TextStyle, write_value};
use super::*;
use crate::error::{ErrorKind, Result};
use crate::types::{DataType, TimeZone, TypeKind, VARCHAR_MAX, Value, Watermark};

/// 2024-01-01 00:00:00 UTC.
const NOW_MS: i64 = 1_704_067_200_000;

/// The surroundings of a batch of so many rows.
pub(super) fn context(num_rows: usize) -> EvalContext {
    EvalContext {
        num_rows,
        time_zone: TimeZone::UTC,
        processing_time_ms: NOW_MS,
        query_start_ms: NOW_MS,
        watermark: Watermark(NOW_MS - 1_000),
    }
}

/// A call, typed as the binder does.
pub(super) fn call(name: &str, args: Vec<Expr>) -> Result<Expr> {
    builtin_functions().scalar(name).unwrap_or_else(|| panic!("no function {name}")).bind(args)
}

pub(super) fn int(value: i32) -> Expr {
    Expr::literal(Value::Int(value), DataType::not_null(TypeKind::Int))
}

pub(super) fn string(value: &str) -> Expr {
    Expr::literal(Value::String(value.to_string()), DataType::not_null(TypeKind::Varchar(VARCHAR_MAX)))
}

pub(super) fn cast(expr: Expr, kind: TypeKind) -> Expr {
    Expr::Cast { data_type: DataType::new(kind, expr.data_type().nullable), input: Box::new(expr), mode: CastMode::Strict }
}

/// The type and the value of a constant expression, as the conformance suite writes them; of an error its kind.
pub(super) fn answer(expr: Result<Expr>) -> String {
    let evaluate = |expr: &Expr| -> Result<String> {
        let array = compile(expr, &builtin_functions())?.evaluate_array(&[], &context(1))?;
        assert_eq!(array.data_type(), &expr.data_type().to_arrow(), "{expr:?}");
        let mut text = format!("{} ", expr.data_type());
        write_value(&mut text, &array, 0, &expr.data_type(), TextStyle::Conformance, TimeZone::UTC);
        Ok(text)
    };
    expr.and_then(|expr| evaluate(&expr)).unwrap_or_else(|error| format!("{:?}", error.kind()))
}

fn ints(values: Vec<Option<i32>>) -> ArrayRef {
    Arc::new(Int32Array::from(values))
}

fn column(index: usize) -> Expr {
    Expr::column(index, DataType::nullable(TypeKind::Int))
}

fn evaluate(expr: &Expr, columns: &[ArrayRef]) -> Result<ArrayRef> {
    compile(expr, &builtin_functions())?.evaluate_array(columns, &context(columns[0].len()))
}

#[test]
fn case_evaluates_a_branch_only_where_its_condition_holds() {
    let columns = [ints(vec![Some(6), Some(7), None, Some(9)]), ints(vec![Some(2), Some(0), Some(1), Some(3)])];
    let guard = call("<>", vec![column(1), int(0)]).unwrap();
    let quotient = call("/", vec![column(0), column(1)]).unwrap();
    let case = Expr::Case {
        branches: vec![(guard.clone(), quotient.clone())],
        otherwise: Box::new(Expr::literal(Value::Null, DataType::nullable(TypeKind::Int))),
        data_type: DataType::nullable(TypeKind::Int),
    };
    assert_eq!(&evaluate(&case, &columns).unwrap(), &ints(vec![Some(3), None, None, Some(3)]));
    assert_eq!(evaluate(&quotient, &columns).unwrap_err().kind(), ErrorKind::DivisionByZero);

    let both = Expr::And(vec![guard, call(">", vec![quotient.clone(), int(2)]).unwrap()]);
    let truth: ArrayRef = Arc::new(arrow::array::BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]));
    assert_eq!(&evaluate(&both, &columns).unwrap(), &truth);

    let either = Expr::Or(vec![call("=", vec![column(1), int(0)]).unwrap(), call(">", vec![quotient, int(3)]).unwrap()]);
    let truth: ArrayRef = Arc::new(arrow::array::BooleanArray::from(vec![Some(false), Some(true), None, Some(false)]));
    assert_eq!(&evaluate(&either, &columns).unwrap(), &truth);
}

#[test]
fn arithmetic_has_flinks_types_and_wraps() {
    let tiny = |value| cast(int(value), TypeKind::TinyInt);
    let decimal = |value: i128, p, s| Expr::literal(Value::Decimal(value), DataType::not_null(TypeKind::Decimal(p, s)));
    let double = |value| Expr::literal(Value::Double(value), DataType::not_null(TypeKind::Double));
    let float = |value| Expr::literal(Value::Float(value), DataType::not_null(TypeKind::Float));
    assert_eq!(answer(call("*", vec![tiny(100), tiny(2)])), "TINYINT NOT NULL -56");
    assert_eq!(answer(call("+", vec![int(i32::MAX), int(1)])), "INT NOT NULL -2147483648");
    assert_eq!(answer(call("+", vec![int(1), decimal(15, 2, 1)])), "DECIMAL(12, 1) NOT NULL 2.5");
    assert_eq!(answer(call("/", vec![int(1), decimal(30, 2, 1)])), "DECIMAL(17, 6) NOT NULL 0.333333");
    assert_eq!(answer(call("%", vec![decimal(55, 2, 1), int(2)])), "DECIMAL(2, 1) NOT NULL 1.5");
    assert_eq!(answer(call("%", vec![cast(int(7), TypeKind::BigInt), tiny(2)])), "TINYINT NOT NULL 1");
    assert_eq!(answer(call("*", vec![float(0.1), double(0.1)])), "FLOAT NOT NULL 0.010000001");
    assert_eq!(answer(call("/", vec![int(1), int(0)])), "DivisionByZero");
    assert_eq!(answer(call("+", vec![int(1), string("2")])), "TypeMismatch");
    assert_eq!(answer(call("%", vec![double(7.0), int(2)])), "TypeMismatch");
}

#[test]
fn strings_compare_with_times_but_not_with_numbers() {
    let date = Expr::literal(Value::Date(0), DataType::not_null(TypeKind::Date));
    assert_eq!(answer(call("=", vec![date.clone(), string("1970-01-01")])), "BOOLEAN NOT NULL true");
    assert_eq!(answer(call("=", vec![string("nonsense"), date])), "InvalidCast");
    assert_eq!(answer(call("=", vec![int(1), string("1")])), "TypeMismatch");
    assert_eq!(answer(call("IS DISTINCT FROM", vec![int(1), int(2)])), "BOOLEAN NOT NULL true");
}

#[test]
fn casts_wrap_round_and_pad_as_flink_does() {
    let double = |value| Expr::literal(Value::Double(value), DataType::not_null(TypeKind::Double));
    assert_eq!(answer(Ok(cast(int(300), TypeKind::TinyInt))), "TINYINT NOT NULL 44");
    assert_eq!(answer(Ok(cast(double(1e20), TypeKind::Int))), "INT NOT NULL 2147483647");
    assert_eq!(answer(Ok(cast(double(1.005), TypeKind::Decimal(6, 2)))), "DECIMAL(6, 2) NOT NULL 1.01");
    assert_eq!(answer(Ok(cast(int(12345), TypeKind::Decimal(4, 0)))), "DECIMAL(4, 0) NOT NULL NULL");
    assert_eq!(answer(Ok(cast(int(12345), TypeKind::Char(7)))), "CHAR(7) NOT NULL 12345  ");
    assert_eq!(answer(Ok(cast(string("abc"), TypeKind::Binary(5)))), "BINARY(5) NOT NULL x'6162630000'");
    assert_eq!(answer(Ok(cast(string("x"), TypeKind::Int))), "InvalidCast");
}
