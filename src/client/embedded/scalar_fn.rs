//! A scalar function out of a closure.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};

use super::guard;
use super::rows::{Arguments, Returned};
use super::signature::{Overloads, Signature};
use crate::client::Session;
use crate::error::Result;
use crate::expr::{Datum, EvalContext, Expr, ScalarFunction, UserFunction};
use crate::types::DataType;

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
    overloads: Overloads<Form>,
    deterministic: bool,
}

struct Form {
    result: DataType,
    kernel: Kernel,
}

impl fmt::Debug for ScalarFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScalarFn({})", self.overloads.signatures())
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
        Self::with(name.into(), Signature::of_types(arguments), result, Box::new(kernel))
    }

    /// A function over the values of a row. `A` is a tuple of argument types: `bool`, `i8` to `i64`, `f32`, `f64`, `&str`, `&[u8]`, each also
    /// in an `Option`; `R` is one of these with `String` and `Vec<u8>` for the borrowed ones, or a `Result` of one. Where an argument
    /// that is no `Option` is NULL, the result is NULL and the closure is not called.
    pub fn rows<A: Arguments, R: Returned>(
        name: impl Into<String>,
        function: impl for<'a> Fn(A::Values<'a>) -> R + Send + Sync + 'static,
    ) -> Self {
        let signature = Signature::of::<A>();
        let strict = signature.strict();
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
        Self::with(name.into(), signature, DataType::new(R::kind(), R::NULLABLE), Box::new(kernel))
    }

    fn with(name: String, signature: Signature, result: DataType, kernel: Kernel) -> Self {
        ScalarFn { overloads: Overloads::new(name, signature, Form { result, kernel }), deterministic: true }
    }

    /// The same function for other arguments, as `other` has it. A call means the form of just its types, else the one that needs the
    /// fewest casts, else the first.
    pub fn or(self, other: ScalarFn) -> Self {
        ScalarFn { overloads: self.overloads.or(other.overloads), deterministic: self.deterministic && other.deterministic }
    }

    /// Equal arguments may give different results: calls are never computed by the planner.
    pub fn non_deterministic(mut self) -> Self {
        self.deterministic = false;
        self
    }

    fn call(&self, args: &[ArrayRef], num_rows: usize, data_type: &DataType) -> Result<ArrayRef> {
        let (_, form) = self.overloads.of_arrays(args)?;
        let array = guard::call(self.name(), || (form.kernel)(args, num_rows))?;
        guard::conform(self.name(), array, data_type, num_rows)
    }
}

impl ScalarFunction for ScalarFn {
    fn name(&self) -> &str {
        self.overloads.name()
    }

    fn signatures(&self) -> &str {
        self.overloads.signatures()
    }

    fn bind(&self, args: Vec<Expr>) -> Result<Expr> {
        let (signature, form, args) = self.overloads.bind(&args)?;
        let nullable = form.result.nullable || signature.can_be_skipped(&args);
        let data_type = form.result.clone().with_nullable(nullable);
        Ok(Expr::Call { function: self.name().to_string(), args, data_type })
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

    fn check(&self) -> Result<()> {
        self.overloads.check()
    }
}

impl Session {
    /// Registers a scalar function of the program, to be called from SQL by its name in any case, by all statements from now on. A name
    /// that is taken, by a built-in function too, is an error.
    pub fn register_function(&self, function: impl ScalarFunction + 'static) -> Result<()> {
        super::register(&self.engine.functions, UserFunction::Scalar(Arc::new(function)))
    }
}
