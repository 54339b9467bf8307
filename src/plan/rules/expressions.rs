//! What rules do with expressions: take conjunctions apart, put columns in place, ask whether a call always gives the same.

use crate::error::Result;
use crate::expr::{Expr, FunctionRegistry, Shape};
use crate::plan::LogicalPlan;
use crate::types::Value;

/// The terms of a conjunction, nested ones included.
pub fn conjuncts(predicate: Expr) -> Vec<Expr> {
    match predicate {
        Expr::And(terms) => terms.into_iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

/// All terms as one predicate; none for no terms.
pub(super) fn conjunction(mut terms: Vec<Expr>) -> Option<Expr> {
    match terms.len() {
        0 | 1 => terms.pop(),
        _ => Some(Expr::And(terms)),
    }
}

/// The comparison that says the same with its sides changed over; none = no comparison.
pub(super) fn turned(operator: &str) -> Option<&'static str> {
    Some(match operator {
        "=" => "=",
        "<>" => "<>",
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        _ => return None,
    })
}

/// Whether a term is the constant TRUE.
pub(super) fn is_true(term: &Expr) -> bool {
    matches!(term, Expr::Literal { value: Value::Boolean(true), .. })
}

/// `input` filtered by all terms.
pub(super) fn filtered(input: LogicalPlan, terms: Vec<Expr>) -> LogicalPlan {
    match conjunction(terms) {
        Some(predicate) => LogicalPlan::Filter { input: Box::new(input), predicate },
        None => input,
    }
}

/// `expr`, which reads the columns of a projection, over what the projection reads.
pub(super) fn substitute(expr: Expr, projection: &[Expr]) -> Expr {
    expr.map_columns(&mut |index, _| projection[index].clone())
}

/// Whether [`substitute`] makes an expression of a size that can be worked with.
pub(super) fn can_substitute(expr: &Expr, projection: &[Expr]) -> bool {
    let shapes: Vec<Shape> = projection.iter().map(Shape::of).collect();
    let whole = Shape::with_columns(expr, &|index| shapes[index]);
    whole.fits() || whole == Shape::of(expr)
}

/// `expr` with its columns moved to where `moved` says.
pub(super) fn shifted(expr: Expr, moved: &dyn Fn(usize) -> usize) -> Expr {
    expr.map_columns(&mut |index, data_type| Expr::column(moved(index), data_type))
}

/// Whether equal rows give equal values, now and later.
pub fn is_deterministic(expr: &Expr, functions: &FunctionRegistry) -> bool {
    let call_is = match expr {
        Expr::Call { function, .. } => functions.callable(function).is_none_or(|function| function.is_deterministic()),
        _ => true,
    };
    call_is && expr.children().into_iter().all(|child| is_deterministic(child, functions))
}

/// Whether it gives the same value for the same row and the same watermark: then a join may leave it to the side that it reads, where event time
/// is that of the side.
pub(super) fn depends_on_row_and_time(expr: &Expr, functions: &FunctionRegistry) -> bool {
    match expr {
        Expr::Call { function, args, .. } if function == CURRENT_WATERMARK => {
            args.iter().all(|arg| depends_on_row_and_time(arg, functions))
        }
        Expr::Call { function, .. } if functions.callable(function).is_some_and(|function| !function.is_deterministic()) => false,
        expr => expr.children().into_iter().all(|child| depends_on_row_and_time(child, functions)),
    }
}

const CURRENT_WATERMARK: &str = "CURRENT_WATERMARK";

/// Whether evaluating it again costs nothing.
pub(super) fn is_trivial(expr: &Expr) -> bool {
    matches!(expr, Expr::Column { .. } | Expr::Literal { .. })
}

/// Whether expressions pass all columns of an input of this width on, in their order.
pub(super) fn is_identity(exprs: &[Expr], width: usize) -> bool {
    let passes = |(at, expr): (usize, &Expr)| matches!(expr, Expr::Column { index, .. } if *index == at);
    exprs.len() == width && exprs.iter().enumerate().all(passes)
}

/// The same node with each of its own expressions mapped by `f`; those of its inputs stay.
pub(super) fn map_expressions(plan: LogicalPlan, f: &mut dyn FnMut(Expr) -> Result<Expr>) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Project { input, exprs, schema } => {
            LogicalPlan::Project { input, exprs: exprs.into_iter().map(f).collect::<Result<_>>()?, schema }
        }
        LogicalPlan::Filter { input, predicate } => LogicalPlan::Filter { input, predicate: f(predicate)? },
        LogicalPlan::WatermarkAssigner { input, mut watermark, schema } => {
            watermark.expr = f(watermark.expr)?;
            LogicalPlan::WatermarkAssigner { input, watermark, schema }
        }
        LogicalPlan::Unnest { input, mut spec, schema } => {
            spec.collection = f(spec.collection)?;
            spec.condition = spec.condition.map(f).transpose()?;
            LogicalPlan::Unnest { input, spec, schema }
        }
        LogicalPlan::Join { left, right, join_type, condition, schema, ttl } => {
            LogicalPlan::Join { left, right, join_type, condition: f(condition)?, schema, ttl }
        }
        other => other,
    })
}
