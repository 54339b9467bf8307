//! A function that is written in SQL: its body is put in the place of its calls, so plans and tasks know nothing of it.

use super::{CastMode, Datum, EvalContext, Expr, ScalarFunction, can_cast_implicitly};
use crate::error::{Error, ErrorKind, Result};
use crate::types::{DataType, Value};

/// A function that is written in SQL.
#[derive(Debug)]
pub struct SqlFunction {
    name: String,
    params: Vec<(String, DataType)>,
    /// Over the parameters as columns; of the type that it returns.
    body: Expr,
    /// The statement that makes it.
    definition: String,
    signature: String,
    /// For each parameter how often the body names it.
    uses: Vec<usize>,
    /// Parts of the body.
    size: usize,
}

/// Parts of what a call stands for, at most: functions that name a parameter twice and call each other would make a plan that no memory
/// holds.
const SIZE_MAX: usize = 10_000;

impl SqlFunction {
    /// A function. `body`: over the parameters as columns.
    pub fn new(name: String, params: Vec<(String, DataType)>, body: Expr, definition: String) -> Self {
        let types: Vec<String> = params.iter().map(|(name, data_type)| format!("{name} => <{data_type}>")).collect();
        let signature = format!("{name}({})", types.join(", "));
        let mut uses = vec![0; params.len()];
        count_uses(&body, &mut uses);
        let size = size_of_expr(&body);
        SqlFunction { name, params, body, definition, signature, uses, size }
    }

    /// Fails if the body with these arguments in it is too large.
    fn check_size(&self, args: &[Expr]) -> Result<()> {
        let of_args = args.iter().zip(&self.uses).map(|(arg, uses)| size_of_expr(arg).saturating_mul(*uses));
        if of_args.fold(self.size, usize::saturating_add) <= SIZE_MAX {
            return Ok(());
        }
        let error = Error::unsupported(format!("a call of {} that stands for more than {SIZE_MAX} expressions", self.name));
        Err(error.with_hint(
            "bodies are put in the place of calls, arguments wherever the body names them: compute parts in a subquery",
        ))
    }

    fn accept(&self, arg: Expr, (name, wanted): &(String, DataType)) -> Result<Expr> {
        let given = arg.data_type();
        if !wanted.nullable && given.nullable {
            let message = format!("parameter {name} of function {} is NOT NULL, and the argument can be NULL", self.name);
            return Err(Error::new(ErrorKind::TypeMismatch, message).with_hint("give what it is then: COALESCE(…, …)"));
        }
        if let Expr::Literal { value: Value::Null, .. } = arg {
            return Ok(Expr::literal(Value::Null, wanted.clone()));
        }
        if given.kind == wanted.kind && given.time.is_none() {
            return Ok(arg);
        }
        if given.kind != wanted.kind && !can_cast_implicitly(&given, wanted) {
            let message = format!("function {} takes {wanted} as {name}, not {}", self.name, given.regular());
            return Err(Error::new(ErrorKind::TypeMismatch, message));
        }
        let data_type = wanted.clone().with_nullable(given.nullable);
        Ok(Expr::Cast { input: Box::new(arg), data_type, mode: CastMode::Implicit })
    }
}

/// An expression and all its parts.
fn size_of_expr(expr: &Expr) -> usize {
    1 + expr.children().into_iter().map(size_of_expr).sum::<usize>()
}

fn count_uses(expr: &Expr, uses: &mut [usize]) {
    if let Expr::Column { index, .. } = expr {
        uses[*index] += 1;
    }
    expr.children().into_iter().for_each(|child| count_uses(child, uses));
}

impl ScalarFunction for SqlFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signatures(&self) -> &str {
        &self.signature
    }

    fn bind(&self, args: Vec<Expr>) -> Result<Expr> {
        if args.len() != self.params.len() {
            let message = format!("function {} takes {} arguments, not {}", self.name, self.params.len(), args.len());
            return Err(Error::new(ErrorKind::UndefinedFunction, message));
        }
        let args = args.into_iter().zip(&self.params).map(|(arg, param)| self.accept(arg, param)).collect::<Result<Vec<_>>>()?;
        self.check_size(&args)?;
        Ok(self.body.clone().map_columns(&mut |index, _| args[index].clone()))
    }

    fn evaluate(&self, _args: &[Datum], _data_type: &DataType, _context: &EvalContext) -> Result<Datum> {
        Err(Error::internal(format!("function {} stands in no plan: its body does", self.name)))
    }

    fn parameter_names(&self) -> Option<Vec<&str>> {
        Some(self.params.iter().map(|(name, _)| name.as_str()).collect())
    }

    fn definition(&self) -> Option<&str> {
        Some(&self.definition)
    }

    fn repeats(&self, argument: usize) -> bool {
        self.uses.get(argument).is_some_and(|uses| *uses > 1)
    }
}
