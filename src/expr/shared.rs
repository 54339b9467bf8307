//! Several expressions over the same rows, of which equal parts are evaluated once.
//!
//! A part is shared when it stands at least twice, and at least once where it is evaluated for every row: so nothing is evaluated, and
//! nothing can fail, that would not have been without sharing. Shared parts become columns behind those of the batch.

use arrow::array::{ArrayRef, AsArray, BooleanArray};

use super::{CompiledExpr, EvalContext, Expr, FunctionRegistry, compile};
use crate::error::Result;

/// Expressions with more parts than this are left as they are: looking for equal ones takes time by the square.
const PARTS_MAX: usize = 2_000;

/// Several expressions over the same rows.
#[derive(Debug, Clone)]
pub struct CompiledExprs {
    /// Columns of the batch that are read: the first so many. The shared parts come after them.
    num_columns: usize,
    /// Each may use the ones before it.
    shared: Vec<CompiledExpr>,
    exprs: Vec<CompiledExpr>,
}

impl CompiledExprs {
    /// Compiles expressions against the functions of a session.
    pub fn new(exprs: &[Expr], registry: &FunctionRegistry) -> Result<Self> {
        let num_columns = exprs.iter().flat_map(Expr::columns).max().map_or(0, |last| last + 1);
        let compile_all = |exprs: &[Expr]| exprs.iter().map(|expr| compile(expr, registry)).collect::<Result<Vec<_>>>();
        let mut parts = Parts { found: Vec::new(), registry };
        for expr in exprs {
            parts.visit(expr, true);
        }
        let mut shared: Vec<&Expr> = parts.shared().collect();
        shared.sort_by_key(|expr| count(expr));
        let rewritten: Vec<Expr> = exprs.iter().map(|expr| replace(expr, &shared, num_columns)).collect();
        let columns: Vec<Expr> = (0..shared.len()).map(|at| replace(shared[at], &shared[..at], num_columns)).collect();
        Ok(CompiledExprs { num_columns, shared: compile_all(&columns)?, exprs: compile_all(&rewritten)? })
    }

    /// The values of each expression, one per row.
    pub fn evaluate(&self, columns: &[ArrayRef], context: &EvalContext) -> Result<Vec<ArrayRef>> {
        if self.shared.is_empty() {
            return self.exprs.iter().map(|expr| expr.evaluate_array(columns, context)).collect();
        }
        let mut columns = columns[..self.num_columns].to_vec();
        for expr in &self.shared {
            columns.push(expr.evaluate_array(&columns, context)?);
        }
        self.exprs.iter().map(|expr| expr.evaluate_array(&columns, context)).collect()
    }

    /// The truth of the only expression, one per row; a row passes where it is true and not NULL.
    pub fn evaluate_predicate(&self, columns: &[ArrayRef], context: &EvalContext) -> Result<BooleanArray> {
        Ok(self.evaluate(columns, context)?[0].as_boolean().clone())
    }
}

/// The parts of expressions that may be shared.
struct Parts<'a> {
    found: Vec<Part<'a>>,
    registry: &'a FunctionRegistry,
}

struct Part<'a> {
    expr: &'a Expr,
    times: usize,
    /// Whether it is evaluated for every row somewhere.
    always: bool,
}

impl<'a> Parts<'a> {
    /// Notes an expression and its parts; `always` says whether it is evaluated for every row. Gives back whether it can be shared.
    fn visit(&mut self, expr: &'a Expr, always: bool) -> bool {
        let is_first_only = matches!(expr, Expr::And(_) | Expr::Or(_) | Expr::Case { .. });
        let mut repeatable = match expr {
            Expr::Call { function, .. } => self.registry.scalar(function).is_some_and(|function| function.is_deterministic()),
            _ => true,
        };
        for (at, child) in expr.children().into_iter().enumerate() {
            repeatable &= self.visit(child, always && (at == 0 || !is_first_only));
        }
        if repeatable && !matches!(expr, Expr::Column { .. } | Expr::Literal { .. }) && self.found.len() < PARTS_MAX {
            match self.found.iter_mut().find(|part| part.expr == expr) {
                Some(part) => {
                    part.times += 1;
                    part.always |= always;
                }
                None => self.found.push(Part { expr, times: 1, always }),
            }
        }
        repeatable
    }

    fn shared(self) -> impl Iterator<Item = &'a Expr> {
        self.found
            .into_iter()
            .filter(|part| part.times > 1 && part.always && !part.expr.columns().is_empty())
            .map(|part| part.expr)
    }
}

fn count(expr: &Expr) -> usize {
    1 + expr.children().into_iter().map(count).sum::<usize>()
}

/// The expression with every shared part as a column: the greatest ones, since they are met first.
fn replace(expr: &Expr, shared: &[&Expr], num_columns: usize) -> Expr {
    match shared.iter().position(|part| *part == expr) {
        Some(at) => Expr::column(num_columns + at, expr.data_type()),
        None => expr.clone().map_children(&mut |child| replace(&child, shared, num_columns)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int32Array, StringViewArray};

    use super::*;
    use crate::expr::builtin_functions;
    use crate::expr::tests::{call, context, int, string};
    use crate::types::{DataType, TypeKind};

    fn lower() -> Expr {
        call("LOWER", vec![Expr::column(1, DataType::string())]).unwrap()
    }

    fn is(expr: Expr, text: &str) -> Expr {
        call("=", vec![expr, string(text)]).unwrap()
    }

    #[test]
    fn a_part_of_several_branches_is_evaluated_once() {
        let branches = ["x", "y"].map(|text| (is(lower(), text), int(1))).to_vec();
        let case = Expr::Case { branches, otherwise: Box::new(int(0)), data_type: DataType::not_null(TypeKind::Int) };
        let exprs = CompiledExprs::new(&[case, lower()], &builtin_functions()).unwrap();
        assert_eq!(exprs.shared.len(), 1);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(vec![0; 3])),
            Arc::new(StringViewArray::from(vec!["X", "y", "Z"])),
            Arc::new(Int32Array::from(vec![7; 3])),
        ];
        let values = exprs.evaluate(&columns, &context(3)).unwrap();
        assert_eq!(values[0].as_ref(), &Int32Array::from(vec![1, 1, 0]));
        assert_eq!(values[1].as_ref(), &StringViewArray::from(vec!["x", "y", "z"]));
    }

    #[test]
    fn a_part_that_only_some_rows_need_is_left_where_it_is() {
        let number = || Expr::column(0, DataType::nullable(TypeKind::Int));
        let quotient = || call("/", vec![int(6), number()]).unwrap();
        let guarded = |value: i32| {
            let nonzero = call("<>", vec![number(), int(0)]).unwrap();
            Expr::And(vec![nonzero, call("=", vec![quotient(), int(value)]).unwrap()])
        };
        let exprs = CompiledExprs::new(&[guarded(3), guarded(2)], &builtin_functions()).unwrap();
        let columns: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![0, 2]))];
        let values = exprs.evaluate(&columns, &context(2)).unwrap();
        assert_eq!(values[0].as_boolean(), &BooleanArray::from(vec![false, true]));
        assert_eq!(exprs.shared.len(), 1, "only what guards the quotient");
    }

    #[test]
    fn what_changes_from_call_to_call_is_not_shared() {
        let random = || call("RAND", Vec::new()).unwrap();
        let number = Expr::column(0, DataType::nullable(TypeKind::Int));
        let sum = || call("+", vec![call("+", vec![number.clone(), int(1)]).unwrap(), random()]);
        let Ok(sum) = sum() else { return };
        let exprs = CompiledExprs::new(&[sum.clone(), sum], &builtin_functions()).unwrap();
        assert_eq!(exprs.shared.len(), 2, "the number and its cast, not the sum");
    }
}
