//! A scalar function out of a closure.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::Field as ArrowField;

use super::rows::{Arguments, Returned};
use crate::client::Session;
use crate::connectors::embedded::{convert, sql_type};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{CastMode, Datum, EvalContext, Expr, ScalarFunction, can_cast_implicitly};
use crate::types::{DataType, TypeKind, Value};

type Kernel = Box<dyn Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync>;

/// A scalar function of the program: a name, the types of its arguments and its result, and a closure over Arrow arrays or over the
/// values of a row.
///
/// ```
/// use flott::{ScalarFn, Session};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> flott::Result<()> {
/// let session = Session::new();
/// session.register_function(ScalarFn::rows::<(&str, i32), String>("shout", |(text, times)| {
///     text.to_uppercase() + &"!".repeat(times.max(0) as usize)
/// }))?;
/// let shouted = session.query("SELECT shout('hey', 3), shout(CAST(NULL AS STRING), 1)").await?.collect_text().await?;
/// assert_eq!(shouted, [["HEY!!!", "<NULL>"]]);
/// # Ok(())
/// # }
/// ```
pub struct ScalarFn {
    name: String,
    signature: String,
    params: Vec<Param>,
    result: DataType,
    deterministic: bool,
    kernel: Kernel,
}

struct Param {
    kind: TypeKind,
    /// Whether a NULL here makes the result NULL.
    strict: bool,
}

impl fmt::Debug for ScalarFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScalarFn({})", self.signature)
    }
}

impl ScalarFn {
    /// A function over arrays. The closure gets its arguments in the Arrow form of their types ([`DataType::to_arrow`]) and the number
    /// of rows; it gives an array of so many rows, in any Arrow form of the result's type. NULLs are its own affair.
    ///
    /// Arguments of other types are cast where Flink casts implicitly. The nullability of `arguments` is not checked; a `result` that is
    /// NOT NULL must not hold a NULL.
    pub fn new(
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = DataType>,
        result: DataType,
        kernel: impl Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync + 'static,
    ) -> Self {
        let params = arguments.into_iter().map(|argument| Param { kind: argument.kind, strict: false }).collect();
        Self::with(name.into(), params, result, Box::new(kernel))
    }

    /// A function over the values of a row. `A` is a tuple of argument types: `bool`, `i8` to `i64`, `f32`, `f64`, `&str`, `&[u8]`, each also
    /// in an `Option`; `R` is one of these with `String` and `Vec<u8>` for the borrowed ones, or a `Result` of one. Where an argument
    /// that is no `Option` is NULL, the result is NULL and the closure is not called.
    pub fn rows<A: Arguments, R: Returned>(
        name: impl Into<String>,
        function: impl for<'a> Fn(A::Values<'a>) -> R + Send + Sync + 'static,
    ) -> Self {
        let params: Vec<Param> = A::params().into_iter().map(|(kind, strict)| Param { kind, strict }).collect();
        let strict: Vec<bool> = params.iter().map(|param| param.strict).collect();
        let kernel = move |args: &[ArrayRef], num_rows: usize| {
            let columns = A::columns(args)?;
            let is_null = |row: usize| args.iter().zip(&strict).any(|(arg, strict)| *strict && arg.is_null(row));
            let mut builder = R::Builder::default();
            for row in 0..num_rows {
                if is_null(row) {
                    R::append_null(&mut builder);
                } else {
                    function(A::row(&columns, row)).append(&mut builder)?;
                }
            }
            Ok(R::finish(builder))
        };
        Self::with(name.into(), params, DataType::new(R::kind(), R::NULLABLE), Box::new(kernel))
    }

    fn with(name: String, params: Vec<Param>, result: DataType, kernel: Kernel) -> Self {
        let types: Vec<String> =
            params.iter().map(|param| format!("<{}>", DataType::nullable(param.kind.clone()).kind_text())).collect();
        let signature = format!("{name}({})", types.join(", "));
        ScalarFn { name, signature, params, result, deterministic: true, kernel }
    }

    /// Equal arguments may give different results: calls are never computed by the planner.
    pub fn non_deterministic(mut self) -> Self {
        self.deterministic = false;
        self
    }

    fn accept(&self, arg: Expr, param: &Param) -> Option<Expr> {
        let given = arg.data_type();
        let wanted = DataType::new(param.kind.clone(), given.nullable);
        let is_text = wanted.is_character() && given.is_character() && param.kind == DataType::string().kind;
        if given.kind == param.kind || is_text {
            return Some(arg);
        }
        if let Expr::Literal { value: Value::Null, .. } = arg {
            return Some(Expr::literal(Value::Null, DataType::nullable(param.kind.clone())));
        }
        can_cast_implicitly(&given, &wanted).then(|| Expr::Cast {
            input: Box::new(arg),
            data_type: wanted,
            mode: CastMode::Implicit,
        })
    }

    fn call(&self, args: &[ArrayRef], num_rows: usize, data_type: &DataType) -> Result<ArrayRef> {
        // Constants are computed by the planner, on a thread of the program: a panic must not reach it.
        let array = catch_unwind(AssertUnwindSafe(|| (self.kernel)(args, num_rows))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
            Err(Error::new(ErrorKind::JobFailed, format!("function {} panicked", self.name)).with_detail(text))
        })?;
        let wrong = |what: String| {
            Err(Error::new(ErrorKind::TypeMismatch, format!("function {} does not give what it declares", self.name))
                .with_detail(what))
        };
        if array.len() != num_rows {
            return wrong(format!("{} rows for {num_rows}", array.len()));
        }
        if !data_type.nullable && array.logical_null_count() > 0 {
            return wrong("NULL, and its result is NOT NULL".to_string());
        }
        if *array.data_type() == data_type.to_arrow() {
            return Ok(array);
        }
        let fits = match (&data_type.kind, sql_type(&ArrowField::new("", array.data_type().clone(), true))?.kind) {
            (TypeKind::Char(_) | TypeKind::Varchar(_), TypeKind::Varchar(_)) => true,
            (TypeKind::Binary(_) | TypeKind::Varbinary(_), TypeKind::Varbinary(_) | TypeKind::Binary(_)) => true,
            (declared, given) => *declared == given,
        };
        if fits { convert(&array, data_type) } else { wrong(format!("{} for {}", array.data_type(), data_type.kind_text())) }
    }
}

impl ScalarFunction for ScalarFn {
    fn name(&self) -> &str {
        &self.name
    }

    fn signatures(&self) -> &str {
        &self.signature
    }

    fn bind(&self, args: Vec<Expr>) -> Result<Expr> {
        let given: Vec<String> = args.iter().map(|arg| arg.data_type().regular().to_string()).collect();
        let accepted: Option<Vec<Expr>> = match args.len() == self.params.len() {
            true => args.into_iter().zip(&self.params).map(|(arg, param)| self.accept(arg, param)).collect(),
            false => None,
        };
        let Some(args) = accepted else {
            let message = format!("function {} does not take arguments of type ({})", self.name, given.join(", "));
            return Err(Error::new(ErrorKind::TypeMismatch, message).with_hint(format!("it is called as {}", self.signature)));
        };
        let null_in = args.iter().zip(&self.params).any(|(arg, param)| param.strict && arg.data_type().nullable);
        let data_type = self.result.clone().with_nullable(self.result.nullable || null_in);
        Ok(Expr::Call { function: self.name.clone(), args, data_type })
    }

    fn evaluate(&self, args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
        if self.deterministic && args.iter().all(Datum::is_scalar) {
            let arrays: Vec<ArrayRef> = args.iter().map(|arg| Arc::clone(arg.array())).collect();
            return Ok(Datum::Scalar(self.call(&arrays, 1, data_type)?));
        }
        let arrays = args.iter().map(|arg| arg.clone().into_array(context.num_rows)).collect::<Result<Vec<_>>>()?;
        Ok(Datum::Array(self.call(&arrays, context.num_rows, data_type)?))
    }

    fn is_deterministic(&self) -> bool {
        self.deterministic
    }
}

impl Session {
    /// Registers a scalar function of the program, to be called from SQL by its name in any case, by all statements from now on. A name
    /// that is taken, by a built-in function too, is an error.
    pub fn register_function(&self, function: impl ScalarFunction + 'static) -> Result<()> {
        self.engine.functions.register_user(Arc::new(function))
    }
}
