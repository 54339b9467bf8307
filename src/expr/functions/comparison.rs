//! `= <> < <= > >=`, `IS [NOT] DISTINCT FROM`, `IS [NOT] NULL`.
//!
//! Typing is Flink's: numbers compare with numbers (exactly where a DECIMAL is involved), strings with strings; a string beside a
//! date or time is read as one (NULL when it is none); a string beside a number is read as one by `<` and its kin, and refused by `=`. Floats compare as in Java.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::make_comparator;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp;
use arrow::datatypes::{DataType as ArrowType, Decimal128Type, Float32Type, Float64Type};
use arrow::error::ArrowError;

use super::args::{Rows, union_nulls};
use super::builtin::{Builtin, any_nullable, coerce};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::cast::Cast;
use crate::expr::common_type::common_number;
use crate::expr::compile::{boolean_scalar, map_array};
use crate::expr::{CastMode, Datum, EvalContext, Expr, common_type, decimal, value_to_array};
use crate::types::{DataType, Maps, TimeZone, TypeKind, VARCHAR_MAX, Value, is_map};

const FORM: &str = "<COMPARABLE> = <COMPARABLE>";

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("=", FORM, bind_equality, |args, _, context| compare(args, context, Operator::Equal)),
    Builtin::new("<>", "<COMPARABLE> <> <COMPARABLE>", bind_equality, |args, _, context| {
        compare(args, context, Operator::NotEqual)
    }),
    Builtin::new("<", "<COMPARABLE> < <COMPARABLE>", bind_order, |args, _, context| compare(args, context, Operator::Less)),
    Builtin::new("<=", "<COMPARABLE> <= <COMPARABLE>", bind_order, |args, _, context| {
        compare(args, context, Operator::LessOrEqual)
    }),
    Builtin::new(">", "<COMPARABLE> > <COMPARABLE>", bind_order, |args, _, context| compare(args, context, Operator::Greater)),
    Builtin::new(">=", "<COMPARABLE> >= <COMPARABLE>", bind_order, |args, _, context| {
        compare(args, context, Operator::GreaterOrEqual)
    }),
    Builtin::new("IS DISTINCT FROM", "<COMPARABLE> IS DISTINCT FROM <COMPARABLE>", bind_distinct, |args, _, context| {
        distinct(args, context, true)
    }),
    Builtin::new("IS NOT DISTINCT FROM", "<COMPARABLE> IS NOT DISTINCT FROM <COMPARABLE>", bind_distinct, |args, _, context| {
        distinct(args, context, false)
    }),
    Builtin::new("IS NULL", "<ANY> IS NULL", bind_null_test, |args, _, _| null_test(args, true)),
    Builtin::new("IS NOT NULL", "<ANY> IS NOT NULL", bind_null_test, |args, _, _| null_test(args, false)),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
        }
    }
}

fn bind_equality(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let args = comparable(function, args, true)?;
    Ok(of_itself(function, &args).unwrap_or_else(|| boolean_call(function, args)))
}

fn bind_order(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let args = comparable(function, args, false)?;
    Ok(of_itself(function, &args).unwrap_or_else(|| boolean_call(function, args)))
}

fn boolean_call(function: &Builtin, args: Vec<Expr>) -> Expr {
    let data_type = DataType::new(TypeKind::Boolean, any_nullable(&args));
    function.call(args, data_type)
}

/// A column compared with itself: Flink's planner knows the answer, also for NaN and for maps with NULLs, which are not equal to
/// themselves as rows come.
fn of_itself(function: &Builtin, args: &[Expr]) -> Option<Expr> {
    let [column @ Expr::Column { data_type, .. }, other] = args else { return None };
    let may_differ = data_type.is_approximate()
        || matches!(data_type.kind, TypeKind::Array(_) | TypeKind::Map(..) | TypeKind::Row(_) | TypeKind::Structured(..));
    if column != other || !may_differ {
        return None;
    }
    let truth = DataType::new(TypeKind::Boolean, data_type.nullable);
    let holds = Expr::literal(Value::Boolean(matches!(function.name, "=" | "<=" | ">=")), DataType::not_null(TypeKind::Boolean));
    if !data_type.nullable {
        return Some(holds);
    }
    let is_there = Expr::Call {
        function: "IS NOT NULL".to_string(),
        args: vec![column.clone()],
        data_type: DataType::not_null(TypeKind::Boolean),
    };
    let null = Expr::literal(Value::Null, truth.clone());
    Some(Expr::Case { branches: vec![(is_there, holds)], otherwise: Box::new(null), data_type: truth })
}

fn bind_distinct(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    Ok(function.call(comparable(function, args, true)?, DataType::not_null(TypeKind::Boolean)))
}

fn bind_null_test(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    match args.len() {
        1 => Ok(function.call(args, DataType::not_null(TypeKind::Boolean))),
        _ => Err(function.mismatch(&args)),
    }
}

/// Brings both sides to types that the kernel compares.
pub(super) fn comparable(function: &Builtin, args: Vec<Expr>, equality: bool) -> Result<Vec<Expr>> {
    let [left, right]: [Expr; 2] = args.try_into().map_err(|args: Vec<Expr>| function.mismatch(&args))?;
    let (l, r) = (left.data_type().regular(), right.data_type().regular());
    let refuse = || {
        let message = format!("cannot apply '{}' to arguments of type {l} and {r}", function.name);
        Error::new(ErrorKind::TypeMismatch, message)
    };
    let text_beside_number = (l.is_character() && r.is_numeric()) || (l.is_numeric() && r.is_character());
    if text_beside_number && !equality {
        // As in Flink the string is read as a number, and it fails if it is none; for `=` it is refused.
        let kind = beside_text(if l.is_character() { &r.kind } else { &l.kind });
        return Ok(vec![coerce(left, &kind), coerce(right, &kind)]);
    }
    if text_beside_number {
        return Err(refuse().with_hint("a string and a number are not compared: CAST one of them"));
    }
    if l.kind == TypeKind::Null || r.kind == TypeKind::Null {
        let kind = if l.kind == TypeKind::Null { r.kind } else { l.kind };
        return Ok(vec![coerce(left, &kind), coerce(right, &kind)]);
    }
    if (l.is_character() && r.is_character()) || (l.is_binary() && r.is_binary()) {
        return Ok(vec![left, right]);
    }
    if l.is_character() && r.is_datetime() {
        return Ok(vec![read_as(left, &r.kind, equality)?, right]);
    }
    if l.is_datetime() && r.is_character() {
        return Ok(vec![left, read_as(right, &l.kind, equality)?]);
    }
    if matches!((&l.kind, &r.kind), (TypeKind::Boolean, _) | (_, TypeKind::Boolean)) && (l.is_character() || r.is_character()) {
        let text = TypeKind::Varchar(VARCHAR_MAX);
        return Ok(vec![coerce(left, &text), coerce(right, &text)]);
    }
    if l.is_numeric() && r.is_numeric() {
        let (l, r) = comparable_numbers(&l.kind, &r.kind, equality);
        return Ok(vec![coerce(left, &l), coerce(right, &r)]);
    }
    let nested = l.is_nested() || matches!(l.kind, TypeKind::Bitmap | TypeKind::Variant);
    match common_type(&[l.clone(), r.clone()]) {
        Some(common) if equality || !nested => Ok(vec![side(left, &common.kind), side(right, &common.kind)]),
        _ if nested || r.is_nested() => Err(refuse().with_hint("compare an element or a field of a nested value")),
        _ => Err(refuse().with_hint(format!("{} and {} are not compared: CAST one of them", family(&l), family(&r)))),
    }
}

/// One side as the kind that is compared. A constant beyond the years of nanoseconds is before or behind all of them.
fn side(expr: Expr, kind: &TypeKind) -> Expr {
    let (TypeKind::Timestamp(to) | TypeKind::TimestampLtz(to)) = kind else { return coerce(expr, kind) };
    if let Expr::Literal { value: Value::Timestamp(units), data_type } = &expr
        && let TypeKind::Timestamp(from) | TypeKind::TimestampLtz(from) = data_type.kind
        && std::mem::discriminant(&data_type.kind) == std::mem::discriminant(kind)
        && units.checked_mul((DataType::units_per_ms(*to) / DataType::units_per_ms(from)).max(1)).is_none()
    {
        let end = if *units < 0 { i64::MIN } else { i64::MAX };
        return Expr::literal(Value::Timestamp(end), DataType::not_null(kind.clone()));
    }
    coerce(expr, kind)
}

/// What a reader calls a type beside which another one is of no use.
fn family(data_type: &DataType) -> String {
    match data_type {
        text if text.is_character() => "a string".to_string(),
        number if number.is_numeric() => "a number".to_string(),
        other => other.clone().with_nullable(true).to_string(),
    }
}

/// The kind as which a string beside a number of this kind is read: one with the digits of a BIGINT at least.
fn beside_text(number: &TypeKind) -> TypeKind {
    match number {
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::Int => TypeKind::BigInt,
        kind @ TypeKind::Decimal(..) => common_number(kind, &TypeKind::BigInt).unwrap_or_else(|| kind.clone()),
        kind => kind.clone(),
    }
}

/// Both sides' kinds for comparing numbers: decimals keep their scales, integers beside them become decimals of scale 0.
fn comparable_numbers(left: &TypeKind, right: &TypeKind, equality: bool) -> (TypeKind, TypeKind) {
    let is_decimal = |kind: &TypeKind| matches!(kind, TypeKind::Decimal(..));
    if let (true, Some(l), Some(r)) = (is_decimal(left) || is_decimal(right), decimal::of_exact(left), decimal::of_exact(right)) {
        return (l.kind(), r.kind());
    }
    let kind = match (left, right) {
        // Flink tests equality in the type of the left side, and order as DOUBLE.
        (TypeKind::Float, TypeKind::Double) | (TypeKind::Double, TypeKind::Float) if !equality => Some(TypeKind::Double),
        _ => common_number(left, right),
    };
    let kind = kind.unwrap_or_else(|| left.clone());
    (kind.clone(), kind)
}

/// A string read as a date or time. A constant that is none fails when the query is planned. Of other strings the row fails where the
/// order is asked for; where equality is, they are NULL, as in Flink.
fn read_as(text: Expr, kind: &TypeKind, equality: bool) -> Result<Expr> {
    if let Expr::Literal { value: value @ Value::String(_), data_type } = &text {
        let cast = Cast::new(data_type, &DataType::not_null(kind.clone()), CastMode::Implicit)?;
        cast.cast(&value_to_array(value, data_type, 1), TimeZone::UTC).map_err(|error| error.with_hint(written_as(kind)))?;
        return Ok(coerce(text, kind));
    }
    if equality {
        return Ok(Expr::Cast { input: Box::new(text), data_type: DataType::nullable(kind.clone()), mode: CastMode::Try });
    }
    Ok(coerce(text, kind))
}

/// How a date or time is written.
fn written_as(kind: &TypeKind) -> &'static str {
    match kind {
        TypeKind::Date => "a date is written '2024-01-31'",
        TypeKind::Time(_) => "a time is written '12:30:00'",
        _ => "a timestamp is written '2024-01-31 12:30:00'",
    }
}

pub(super) fn compare(args: &[Datum], context: &EvalContext, operator: Operator) -> Result<Datum> {
    let (left, right) = (&args[0], &args[1]);
    if args.iter().any(|arg| arg.is_scalar() && arg.array().is_null(0)) {
        return Ok(boolean_scalar(None));
    }
    let rows = Rows::of(args, context);
    let array = match (left.array().data_type(), right.array().data_type()) {
        (ArrowType::Float32, _) => floats::<Float32Type>(left, right, operator),
        (ArrowType::Float64, _) => floats::<Float64Type>(left, right, operator),
        (ArrowType::Decimal128(_, a), ArrowType::Decimal128(_, b)) if a != b => {
            decimals(left, right, *a as u8, *b as u8, operator)
        }
        (ArrowType::List(_) | ArrowType::Struct(_), _) => nested(left, right, rows.count, operator)?,
        (ArrowType::Decimal128(a, s), ArrowType::Decimal128(b, _)) if a != b => {
            let wide = ArrowType::Decimal128(*a.max(b), *s);
            arrow_compare(&with_type(left, &wide)?, &with_type(right, &wide)?, operator)?
        }
        _ => arrow_compare(left, right, operator)?,
    };
    Ok(rows.finish(Arc::new(array)))
}

fn with_type(datum: &Datum, data_type: &ArrowType) -> Result<Datum> {
    map_array(datum.clone(), |array| {
        Ok(Arc::new(array.as_primitive::<Decimal128Type>().clone().with_data_type(data_type.clone())) as ArrayRef)
    })
}

fn arrow_compare(left: &Datum, right: &Datum, operator: Operator) -> Result<BooleanArray, ArrowError> {
    match operator {
        Operator::Equal => cmp::eq(left, right),
        Operator::NotEqual => cmp::neq(left, right),
        Operator::Less => cmp::lt(left, right),
        Operator::LessOrEqual => cmp::lt_eq(left, right),
        Operator::Greater => cmp::gt(left, right),
        Operator::GreaterOrEqual => cmp::gt_eq(left, right),
    }
}

/// Compares values by a plain function of both natives.
fn by_values<T: ArrowPrimitiveType>(left: &Datum, right: &Datum, holds: impl Fn(T::Native, T::Native) -> bool) -> BooleanArray {
    let (l, r): (&PrimitiveArray<T>, &PrimitiveArray<T>) = (left.array().as_primitive(), right.array().as_primitive());
    let (a, b) = (l.values(), r.values());
    let buffer = match (left.is_scalar(), right.is_scalar()) {
        (false, true) => BooleanBuffer::collect_bool(a.len(), |row| holds(a[row], b[0])),
        (true, false) => BooleanBuffer::collect_bool(b.len(), |row| holds(a[0], b[row])),
        _ => BooleanBuffer::collect_bool(a.len(), |row| holds(a[row], b[row])),
    };
    BooleanArray::new(buffer, union_nulls(left, right))
}

fn floats<T: ArrowPrimitiveType>(left: &Datum, right: &Datum, operator: Operator) -> BooleanArray
where
    T::Native: PartialOrd,
{
    match operator {
        Operator::Equal => by_values::<T>(left, right, |a, b| a == b),
        Operator::NotEqual => by_values::<T>(left, right, |a, b| a != b),
        Operator::Less => by_values::<T>(left, right, |a, b| a < b),
        Operator::LessOrEqual => by_values::<T>(left, right, |a, b| a <= b),
        Operator::Greater => by_values::<T>(left, right, |a, b| a > b),
        Operator::GreaterOrEqual => by_values::<T>(left, right, |a, b| a >= b),
    }
}

fn decimals(left: &Datum, right: &Datum, a_scale: u8, b_scale: u8, operator: Operator) -> BooleanArray {
    by_values::<Decimal128Type>(left, right, |a, b| operator.holds(decimal::compare(a, a_scale, b, b_scale)))
}

fn nested(left: &Datum, right: &Datum, rows: usize, operator: Operator) -> Result<BooleanArray> {
    let (l, r) = (left.clone().into_array(rows)?, right.clone().into_array(rows)?);
    let nulls = union_nulls(left, right);
    if has_map(l.data_type()) {
        let equal = BooleanBuffer::collect_bool(rows, |row| maps_equal(&l, &r, row) == (operator == Operator::Equal));
        return Ok(BooleanArray::new(equal, nulls));
    }
    let order = make_comparator(l.as_ref(), r.as_ref(), Default::default())?;
    Ok(BooleanArray::new(BooleanBuffer::collect_bool(rows, |row| operator.holds(order(row, row))), nulls))
}

/// Whether a type is a map or has one inside.
pub(super) fn has_map(data_type: &ArrowType) -> bool {
    match data_type {
        maps if is_map(maps) => true,
        ArrowType::List(field) => has_map(field.data_type()),
        ArrowType::Struct(fields) => fields.iter().any(|field| has_map(field.data_type())),
        _ => false,
    }
}

/// Maps are equal when they have the same entries in any order. As in Flink NULL is equal to NULL as a key, but not as a value.
fn maps_equal(left: &ArrayRef, right: &ArrayRef, row: usize) -> bool {
    if left.is_null(row) || right.is_null(row) {
        return left.is_null(row) == right.is_null(row);
    }
    match left.data_type() {
        maps if is_map(maps) => {
            let (l, r) = (Maps::of(left), Maps::of(right));
            let (l_range, r_range) = (l.range(row), r.range(row));
            let is_in =
                |i: usize| l.values().is_valid(i) && r_range.clone().any(|j| entries_equal(l.columns(), i, r.columns(), j));
            l_range.len() == r_range.len() && { l_range }.all(is_in)
        }
        ArrowType::List(_) => {
            let (l, r) = (left.as_list::<i32>().value(row), right.as_list::<i32>().value(row));
            l.len() == r.len() && (0..l.len()).all(|i| maps_equal(&l, &r, i))
        }
        ArrowType::Struct(_) => {
            left.as_struct().columns().iter().zip(right.as_struct().columns()).all(|(l, r)| maps_equal(l, r, row))
        }
        _ => entries_equal(std::slice::from_ref(left), row, std::slice::from_ref(right), row),
    }
}

fn entries_equal(left: &[ArrayRef], i: usize, right: &[ArrayRef], j: usize) -> bool {
    left.iter().zip(right).all(|(l, r)| values_equal(l, i, r, j))
}

/// Whether two values that may have maps inside are equal.
pub(super) fn values_equal(left: &ArrayRef, i: usize, right: &ArrayRef, j: usize) -> bool {
    let (left, right) = (left.slice(i, 1), right.slice(j, 1));
    if has_map(left.data_type()) { maps_equal(&left, &right, 0) } else { left.to_data() == right.to_data() }
}

fn distinct(args: &[Datum], context: &EvalContext, negated: bool) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let equal = compare(args, context, Operator::Equal)?.into_array(rows.count)?;
    let equal = equal.as_boolean();
    let is_null = |datum: &Datum, row: usize| datum.array().is_null(if datum.is_scalar() { 0 } else { row });
    let same = BooleanBuffer::collect_bool(rows.count, |row| match (is_null(&args[0], row), is_null(&args[1], row)) {
        (false, false) => equal.value(row),
        (left, right) => left && right,
    });
    let values = if negated { !&same } else { same };
    Ok(rows.finish(Arc::new(BooleanArray::new(values, None))))
}

fn null_test(args: &[Datum], expect: bool) -> Result<Datum> {
    map_array(args[0].clone(), |array| {
        let nulls = match array.logical_nulls() {
            Some(nulls) if expect => !nulls.inner(),
            Some(nulls) => nulls.inner().clone(),
            None if expect => BooleanBuffer::new_unset(array.len()),
            None => BooleanBuffer::new_set(array.len()),
        };
        Ok(Arc::new(BooleanArray::new(nulls, None)) as ArrayRef)
    })
}
