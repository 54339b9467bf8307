//! How a built-in function is written down: a row of a table with its name, how it is called, how a call is typed, and its kernel.

use crate::error::{Error, ErrorKind, Result};
use crate::expr::{CastMode, Datum, EvalContext, Expr, ScalarFunction};
use crate::types::{DataType, TypeKind, VARCHAR_MAX, Value};

/// Types a call: from the arguments as written to the expression.
pub(super) type BindFn = fn(&Builtin, Vec<Expr>) -> Result<Expr>;

/// Evaluates a call over a batch.
pub(super) type EvaluateFn = fn(&[Datum], &DataType, &EvalContext) -> Result<Datum>;

/// A built-in scalar function.
#[derive(Debug, Clone, Copy)]
pub(super) struct Builtin {
    /// Name, upper case.
    pub(super) name: &'static str,
    /// How it is called, one form a line.
    pub(super) signatures: &'static str,
    /// Types a call.
    pub(super) bind: BindFn,
    /// The kernel.
    pub(super) evaluate: EvaluateFn,
    /// Whether equal arguments give equal results.
    pub(super) deterministic: bool,
    /// Whether a call can fail.
    pub(super) can_fail: bool,
}

impl Builtin {
    /// A deterministic function that never fails.
    pub(super) const fn new(name: &'static str, signatures: &'static str, bind: BindFn, evaluate: EvaluateFn) -> Self {
        Builtin { name, signatures, bind, evaluate, deterministic: true, can_fail: false }
    }

    /// The same function, which can fail.
    pub(super) const fn failing(mut self) -> Self {
        self.can_fail = true;
        self
    }

    /// The same function, whose results change.
    pub(super) const fn volatile(mut self) -> Self {
        self.deterministic = false;
        self
    }

    /// A call of this function.
    pub(super) fn call(&self, args: Vec<Expr>, data_type: DataType) -> Expr {
        Expr::Call { function: self.name.to_string(), args, data_type }
    }

    /// The error for arguments that fit no form of the function.
    pub(super) fn mismatch(&self, args: &[Expr]) -> Error {
        let given: Vec<String> = args.iter().map(|arg| arg.data_type().regular().to_string()).collect();
        let message = match (self.name, given.as_slice()) {
            ("ITEM", [container, key]) => format!("{container} has no elements that are found by {key}"),
            (name, _) if name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                format!("function {name} does not take arguments of type ({})", given.join(", "))
            }
            (operator, _) => format!("cannot apply '{operator}' to arguments of type {}", given.join(" and ")),
        };
        let is_text = |arg: &Expr| arg.data_type().is_character();
        let is_time = |arg: &Expr| arg.data_type().is_datetime();
        let hint = match self.name {
            "+" if args.iter().any(is_text) && !args.iter().any(is_time) => "strings are put together by ||".to_string(),
            _ => format!("it is called as {}", self.signatures.replace('\n', " or ")),
        };
        Error::new(ErrorKind::TypeMismatch, message).with_hint(hint)
    }

    /// The error for arguments that are to become one type and cannot.
    pub(super) fn no_common_type(&self, args: &[Expr]) -> Error {
        let given: Vec<String> = args.iter().map(|arg| arg.data_type().regular().to_string()).collect();
        let message = format!("the arguments of {} have no common type: {}", self.name, given.join(", "));
        Error::new(ErrorKind::TypeMismatch, message).with_hint("CAST them to one type")
    }
}

impl ScalarFunction for Builtin {
    fn name(&self) -> &str {
        self.name
    }

    fn signatures(&self) -> &str {
        self.signatures
    }

    fn bind(&self, args: Vec<Expr>) -> Result<Expr> {
        (self.bind)(self, args)
    }

    fn evaluate(&self, args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
        (self.evaluate)(args, data_type, context)
    }

    fn is_deterministic(&self) -> bool {
        self.deterministic
    }

    fn can_fail(&self) -> bool {
        self.can_fail
    }
}

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Param {
    /// CHAR or VARCHAR.
    Text,
    /// BINARY or VARBINARY.
    Bytes,
    /// Any integer, as INT.
    Int,
    /// An integer that an INT holds, as INT.
    SmallerInt,
    /// Any integer, as BIGINT.
    BigInt,
    /// Any number, as DOUBLE.
    Double,
    /// BOOLEAN.
    Boolean,
    /// Anything, as it is.
    Any,
}

impl Param {
    /// The argument as the parameter takes it; none = it does not fit.
    pub(super) fn accept(self, arg: Expr) -> Option<Expr> {
        let given = arg.data_type();
        let kind = match self {
            Param::Any => return Some(arg),
            Param::Text if given.is_character() => return Some(arg),
            Param::Bytes if given.is_binary() => return Some(arg),
            Param::Text => TypeKind::Varchar(VARCHAR_MAX),
            Param::Bytes => TypeKind::Varbinary(VARCHAR_MAX),
            Param::Int | Param::SmallerInt => TypeKind::Int,
            Param::BigInt => TypeKind::BigInt,
            Param::Double => TypeKind::Double,
            Param::Boolean => TypeKind::Boolean,
        };
        let fits = match self {
            Param::Int | Param::BigInt => given.is_integer(),
            Param::SmallerInt => given.is_integer() && given.kind != TypeKind::BigInt,
            Param::Double => given.is_numeric(),
            Param::Boolean => given.kind == TypeKind::Boolean,
            _ => false,
        };
        (fits || given.kind == TypeKind::Null).then(|| coerce(arg, &kind))
    }
}

/// Brings arguments to what the parameters take: the first `required` must be there.
pub(super) fn accept_all(function: &Builtin, args: Vec<Expr>, params: &[Param], required: usize) -> Result<Vec<Expr>> {
    if args.len() < required || args.len() > params.len() {
        return Err(function.mismatch(&args));
    }
    let accepted: Option<Vec<Expr>> = args.iter().zip(params).map(|(arg, param)| param.accept(arg.clone())).collect();
    accepted.ok_or_else(|| function.mismatch(&args))
}

/// The same value as a value of `kind`: an implicit cast where the kinds differ. Nullability stays.
pub(in crate::expr) fn coerce(expr: Expr, kind: &TypeKind) -> Expr {
    let given = expr.data_type();
    if given.kind == *kind {
        return expr;
    }
    if let Expr::Literal { value: Value::Null, .. } = expr {
        return Expr::literal(Value::Null, DataType::nullable(kind.clone()));
    }
    let data_type = DataType::new(kind.clone(), given.nullable);
    Expr::Cast { input: Box::new(expr), data_type, mode: CastMode::Implicit }
}

/// Whether any argument can be NULL.
pub(super) fn any_nullable(args: &[Expr]) -> bool {
    args.iter().any(|arg| arg.data_type().nullable)
}

/// The text of a literal argument: units, formats.
pub(super) fn literal_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal { value: Value::String(text), .. } => Some(text),
        _ => None,
    }
}

/// Types a call by its parameters and the type of its result, given the accepted arguments.
pub(super) fn bind_with(
    function: &Builtin,
    args: Vec<Expr>,
    params: &[Param],
    required: usize,
    result: impl Fn(&[Expr]) -> DataType,
) -> Result<Expr> {
    let args = accept_all(function, args, params, required)?;
    let data_type = result(&args);
    Ok(function.call(args, data_type))
}

/// A type that is nullable if any argument is.
pub(super) fn by_args(kind: TypeKind, args: &[Expr]) -> DataType {
    DataType::new(kind, any_nullable(args))
}

/// STRING, nullable if any argument is.
pub(super) fn string_by_args(args: &[Expr]) -> DataType {
    by_args(TypeKind::Varchar(VARCHAR_MAX), args)
}

/// STRING that can be NULL whatever the arguments are.
pub(super) fn nullable_string(_: &[Expr]) -> DataType {
    DataType::string()
}

/// The length of a string type.
pub(super) fn text_length(data_type: &DataType) -> u32 {
    match data_type.kind {
        TypeKind::Char(length) | TypeKind::Varchar(length) => length,
        _ => VARCHAR_MAX,
    }
}
