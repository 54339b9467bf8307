//! A function that is written in SQL: its body is put in the place of its calls, so plans and tasks know nothing of it.

use super::{CastMode, Datum, EvalContext, Expr, ScalarFunction, Shape, can_cast_implicitly};
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
    /// For each parameter whether the body names it more than once.
    repeated: Vec<bool>,
}

impl SqlFunction {
    /// A function. `body`: over the parameters as columns.
    pub fn new(name: String, params: Vec<(String, DataType)>, body: Expr, definition: String) -> Self {
        let types: Vec<String> = params.iter().map(|(name, data_type)| format!("{name} => <{data_type}>")).collect();
        let signature = format!("{name}({})", types.join(", "));
        let mut uses = vec![0; params.len()];
        count_uses(&body, &mut uses);
        SqlFunction { name, params, body, definition, signature, repeated: uses.into_iter().map(|uses| uses > 1).collect() }
    }

    /// Fails if the body with these arguments in it is too large.
    fn check_size(&self, args: &[Expr]) -> Result<()> {
        let of_args: Vec<Shape> = args.iter().map(Shape::of).collect();
        if Shape::with_columns(&self.body, &|param| of_args[param]).fits() {
            return Ok(());
        }
        let (name, size, depth) = (&self.name, Shape::SIZE_MAX, Shape::DEPTH_MAX);
        let message =
            format!("a call of {name} that stands for more than {size} expressions, or nests them deeper than {depth},");
        let hint = "bodies are put in the place of calls, arguments wherever the body names them: compute parts in a subquery";
        Err(Error::unsupported(message).with_hint(hint))
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

fn count_uses(expr: &Expr, uses: &mut [u32]) {
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
        self.repeated.get(argument).copied().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::TypeKind;

    /// A function that adds 1 to its parameter.
    fn next() -> SqlFunction {
        let int = DataType::nullable(TypeKind::Int);
        let one = Expr::literal(Value::Int(1), DataType::not_null(TypeKind::Int));
        let sum = |args| Expr::Call { function: "+".to_string(), args, data_type: int.clone() };
        let body = sum(vec![Expr::column(0, int.clone()), one]);
        SqlFunction::new("next".to_string(), vec![("x".to_string(), int.clone())], body, String::new())
    }

    #[test]
    fn calls_are_nested_as_deep_as_the_stack_holds() {
        let function = next();
        let mut expr = Expr::column(0, DataType::nullable(TypeKind::Int));
        for _ in 1..Shape::DEPTH_MAX {
            expr = function.bind(vec![expr]).unwrap();
        }
        assert_eq!(Shape::of(&expr).depth, Shape::DEPTH_MAX);
        assert!(function.bind(vec![expr]).unwrap_err().message().contains("nests them deeper"));
    }
}
