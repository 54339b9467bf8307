//! Calls of registered functions: found by name, typed by the function itself, errors put in place.

use super::flink_functions::instead_of;
use super::group_window::is_window_function;
use super::grouping_sets::GroupingFunction;
use super::json::is_json_function;
use super::over::needs_over;
use super::state::Binder;
use super::window_signature::SIGNATURES;
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::expr::{CastMode, Expr, fold};
use crate::plan::rules::is_deterministic;
use crate::types::{DataType, TypeKind, Value};

impl Binder<'_> {
    /// A call of a scalar function or operator.
    pub(super) fn call(&self, name: &str, args: Vec<Expr>) -> Result<Expr> {
        let function = self.cx.functions.scalar(name).ok_or_else(|| self.unknown_function(name))?;
        let repeated =
            args.iter().enumerate().find(|(at, arg)| function.repeats(*at) && !is_deterministic(arg, self.cx.functions));
        if repeated.is_some() {
            let what = format!("an argument of {name} that is another value each time that it is computed");
            return Err(Error::unsupported(what).with_hint("compute it in a subquery: the function names it more than once"));
        }
        function.bind(args).map_err(|error| match error.hint() {
            Some(_) => error,
            None => error.with_hint(usage(function.signatures())),
        })
    }

    /// The error for a name that is no function.
    pub(super) fn unknown_function(&self, name: &str) -> Error {
        if self.cx.functions.table(name).is_some() {
            let error =
                Error::new(ErrorKind::UndefinedFunction, format!("{name} is a table function: it gives rows, not a value"));
            return error.with_hint(format!("call it in FROM: FROM t, LATERAL TABLE({name}(…)) AS x(…)"));
        }
        if let Some(signature) = SIGNATURES.iter().find(|signature| signature.name.eq_ignore_ascii_case(name)) {
            let error = Error::new(ErrorKind::UndefinedFunction, format!("{name} is a window table function"));
            return error.with_hint(format!("call it in FROM, and group by window_start and window_end: {}", signature.usage));
        }
        let error = Error::new(ErrorKind::UndefinedFunction, format!("function {name} not found"));
        if let Some(hint) = instead_of(name) {
            return error.with_hint(hint);
        }
        match nearest(name, self.cx.functions.names().iter().map(String::as_str)) {
            Some(near) => error.with_hint(format!("did you mean {near}?")),
            None => error.with_hint("SHOW FUNCTIONS lists all functions"),
        }
    }
}

impl Binder<'_> {
    /// The expression with its constants computed.
    pub(super) fn folded(&self, expr: Expr) -> Result<Expr> {
        fold(expr, self.cx.functions, self.cx.configuration.time_zone())
    }
}

/// Whether a name is called in a way of its own, so that no function can have it.
pub fn is_special_function(name: &str) -> bool {
    const WORDS: [&str; 5] = ["UNNEST", "TABLE", "ROW", "CURRENT_DATABASE", "DESCRIPTOR"];
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(name))
        || needs_over(&name.to_uppercase())
        || is_window_function(name)
        || is_json_function(name)
        || GroupingFunction::named(name).is_some()
}

/// How a function is called, as a hint.
pub(super) fn usage(signatures: &str) -> String {
    format!("it is called as {}", signatures.lines().collect::<Vec<_>>().join(" or "))
}

/// The same value as a value of `target`'s kind, cast where the kinds differ. Nullability stays the value's own.
pub(super) fn cast_to(expr: Expr, target: &DataType) -> Expr {
    let given = expr.data_type();
    if given.kind == target.kind {
        return expr;
    }
    let data_type = DataType::new(target.kind.clone(), given.nullable);
    match expr {
        // A value of the type NULL can only be NULL.
        _ if given.kind == TypeKind::Null => Expr::literal(Value::Null, DataType::nullable(target.kind.clone())),
        Expr::Literal { value: Value::Null, .. } => Expr::literal(Value::Null, DataType::nullable(target.kind.clone())),
        Expr::Literal { value, data_type: from } => match convert_literal(&value, &from.kind, &target.kind) {
            Some(value) => Expr::literal(value, data_type),
            None => implicit_cast(Expr::literal(value, from), data_type),
        },
        expr => implicit_cast(expr, data_type),
    }
}

fn implicit_cast(input: Expr, data_type: DataType) -> Expr {
    Expr::Cast { input: Box::new(input), data_type, mode: CastMode::Implicit }
}

/// A constant as a value of another type, where that loses nothing and needs no evaluation.
pub(super) fn convert_literal(value: &Value, from: &TypeKind, to: &TypeKind) -> Option<Value> {
    if from == to {
        return Some(value.clone());
    }
    let whole = match value {
        Value::Null => return Some(Value::Null),
        Value::TinyInt(value) => Some(i128::from(*value)),
        Value::SmallInt(value) => Some(i128::from(*value)),
        Value::Int(value) => Some(i128::from(*value)),
        Value::BigInt(value) => Some(i128::from(*value)),
        _ => None,
    };
    match (whole, value, to) {
        (Some(whole), _, TypeKind::TinyInt) => whole.try_into().ok().map(Value::TinyInt),
        (Some(whole), _, TypeKind::SmallInt) => whole.try_into().ok().map(Value::SmallInt),
        (Some(whole), _, TypeKind::Int) => whole.try_into().ok().map(Value::Int),
        (Some(whole), _, TypeKind::BigInt) => whole.try_into().ok().map(Value::BigInt),
        (Some(whole), _, TypeKind::Decimal(precision, scale)) => rescale(whole, 0, *precision, *scale),
        (Some(whole), _, TypeKind::Double) if whole.unsigned_abs() <= 1 << 53 => Some(Value::Double(whole as f64)),
        (Some(whole), _, TypeKind::Float) if whole.unsigned_abs() <= 1 << 24 => Some(Value::Float(whole as f32)),
        (None, Value::Decimal(unscaled), TypeKind::Decimal(precision, scale)) => {
            let TypeKind::Decimal(_, given) = from else { return None };
            rescale(*unscaled, *given, *precision, *scale)
        }
        (None, Value::String(text), TypeKind::Varchar(length)) => {
            (text.chars().count() <= *length as usize).then(|| value.clone())
        }
        (None, Value::String(text), TypeKind::Char(length)) => (text.chars().count() == *length as usize).then(|| value.clone()),
        (None, Value::Bytes(bytes), TypeKind::Varbinary(length)) => (bytes.len() <= *length as usize).then(|| value.clone()),
        (None, Value::Timestamp(units), TypeKind::Timestamp(precision)) => {
            let TypeKind::Timestamp(given) = from else { return None };
            let (from, to) = (DataType::units_per_ms(*given), DataType::units_per_ms(*precision));
            if to >= from && precision >= given { units.checked_mul(to / from).map(Value::Timestamp) } else { None }
        }
        _ => None,
    }
}

/// An unscaled decimal with another scale, if it stays exact and fits.
fn rescale(unscaled: i128, from: u8, precision: u8, to: u8) -> Option<Value> {
    let factor = 10i128.checked_pow(u32::from(to.checked_sub(from)?))?;
    let value = unscaled.checked_mul(factor)?;
    let limit = 10i128.checked_pow(u32::from(precision))?;
    (value.unsigned_abs() < limit.unsigned_abs()).then_some(Value::Decimal(value))
}
