//! From an [`Expr`] to something that evaluates batches: functions looked up, constants made arrays, casts prepared.
//!
//! Terms that can fail are evaluated only where SQL asks for them: `AND`, `OR` and `CASE` narrow the batch to those rows first
//! (see [`super::selection`]).

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::compute;

use super::cast::Cast;
use super::in_set::InSet;
use super::nan::with_one_nan;
use super::selection;
use super::values::value_to_array;
use super::{CastMode, Datum, EvalContext, Expr, FunctionRegistry, ScalarFunction};
use crate::error::{Error, ErrorKind, Result};
use crate::types::{DataType, TypeKind};

/// An expression that is ready to evaluate batches. Cheap to clone, free of state.
#[derive(Debug, Clone)]
pub struct CompiledExpr {
    root: Arc<Node>,
    data_type: DataType,
}

/// Compiles an expression against the functions of a session.
pub fn compile(expr: &Expr, registry: &FunctionRegistry) -> Result<CompiledExpr> {
    Ok(CompiledExpr { root: Arc::new(Node::new(expr, registry)?), data_type: expr.data_type() })
}

impl CompiledExpr {
    /// The type of the result.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The values over these columns: one per row, or one for all.
    pub fn evaluate(&self, columns: &[ArrayRef], context: &EvalContext) -> Result<Datum> {
        self.root.evaluate(columns, context)
    }

    /// The values over these columns, one per row.
    pub fn evaluate_array(&self, columns: &[ArrayRef], context: &EvalContext) -> Result<ArrayRef> {
        self.evaluate(columns, context)?.into_array(context.num_rows)
    }

    /// The truth of a BOOLEAN expression, one per row; a row passes where it is true and not NULL.
    pub fn evaluate_predicate(&self, columns: &[ArrayRef], context: &EvalContext) -> Result<BooleanArray> {
        Ok(self.evaluate_array(columns, context)?.as_boolean().clone())
    }
}

/// A compiled part of an expression.
#[derive(Debug)]
pub(super) enum Node {
    Column(usize),
    Literal(ArrayRef),
    Call { function: Arc<dyn ScalarFunction>, args: Vec<Term>, data_type: DataType },
    Cast { input: Box<Term>, cast: Cast },
    And(Vec<Term>),
    Or(Vec<Term>),
    Not(Box<Term>),
    Case { branches: Vec<(Term, Term)>, otherwise: Box<Term>, data_type: DataType },
    InList { needle: Box<Term>, set: InSet, negated: bool },
}

/// A part with what decides whether it may be evaluated on rows that do not need it.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) node: Node,
    /// Columns that it reads, rising.
    pub(super) columns: Vec<usize>,
    /// Whether it never fails and costs less than narrowing the batch.
    pub(super) eager: bool,
}

/// Parts up to this size are evaluated on all rows rather than on a selection, if they cannot fail.
const EAGER_NODES_MAX: usize = 4;

impl Term {
    fn new(expr: &Expr, registry: &FunctionRegistry) -> Result<Term> {
        let eager = node_count(expr) <= EAGER_NODES_MAX && !can_fail(expr, registry);
        Ok(Term { node: Node::new(expr, registry)?, columns: expr.columns(), eager })
    }

    /// The values over these columns.
    pub(super) fn evaluate(&self, columns: &[ArrayRef], context: &EvalContext) -> Result<Datum> {
        self.node.evaluate(columns, context)
    }

    /// The truth values over these columns, one per row.
    pub(super) fn evaluate_boolean(&self, columns: &[ArrayRef], context: &EvalContext) -> Result<BooleanArray> {
        Ok(self.evaluate(columns, context)?.into_array(context.num_rows)?.as_boolean().clone())
    }
}

fn node_count(expr: &Expr) -> usize {
    1 + expr.children().into_iter().map(node_count).sum::<usize>()
}

/// Whether evaluating can give an error, or must not be repeated at will.
pub(super) fn can_fail(expr: &Expr, registry: &FunctionRegistry) -> bool {
    let itself = match expr {
        Expr::Call { function, .. } => {
            registry.callable(function).is_none_or(|function| function.can_fail() || !function.is_deterministic())
        }
        Expr::Cast { input, data_type, mode } => *mode != CastMode::Try && Cast::can_fail(&input.data_type(), data_type),
        _ => false,
    };
    itself || expr.children().into_iter().any(|child| can_fail(child, registry))
}

impl Node {
    fn new(expr: &Expr, registry: &FunctionRegistry) -> Result<Node> {
        let term = |expr: &Expr| Term::new(expr, registry);
        let terms = |exprs: &[Expr]| exprs.iter().map(term).collect::<Result<Vec<_>>>();
        Ok(match expr {
            Expr::Column { index, .. } => Node::Column(*index),
            Expr::Literal { value, data_type } => Node::Literal(value_to_array(value, data_type, 1)),
            Expr::Call { function: name, args, data_type } => {
                let function = registry.callable(name).ok_or_else(|| not_registered(name))?;
                Node::Call { function, args: terms(args)?, data_type: data_type.clone() }
            }
            Expr::Cast { input, data_type, mode } => {
                Node::Cast { input: Box::new(term(input)?), cast: Cast::new(&input.data_type(), data_type, *mode)? }
            }
            Expr::And(parts) => Node::And(terms(parts)?),
            Expr::Or(parts) => Node::Or(terms(parts)?),
            Expr::Not(inner) => Node::Not(Box::new(term(inner)?)),
            Expr::Case { branches, otherwise, data_type } => Node::Case {
                branches: branches.iter().map(|(when, then)| Ok((term(when)?, term(then)?))).collect::<Result<_>>()?,
                otherwise: Box::new(term(otherwise)?),
                data_type: data_type.clone(),
            },
            Expr::InList { needle, list, negated } => {
                Node::InList { needle: Box::new(term(needle)?), set: InSet::new(list, &needle.data_type())?, negated: *negated }
            }
        })
    }

    fn evaluate(&self, columns: &[ArrayRef], context: &EvalContext) -> Result<Datum> {
        match self {
            Node::Column(index) => Ok(Datum::Array(Arc::clone(&columns[*index]))),
            Node::Literal(array) => Ok(Datum::Scalar(Arc::clone(array))),
            Node::Call { function, args, data_type } => {
                let args = args.iter().map(|arg| arg.evaluate(columns, context)).collect::<Result<Vec<_>>>()?;
                Ok(match function.evaluate(&args, data_type, context)? {
                    Datum::Array(array) => Datum::Array(with_one_nan(array)),
                    Datum::Scalar(array) => Datum::Scalar(with_one_nan(array)),
                })
            }
            Node::Cast { input, cast } => cast.apply(&input.evaluate(columns, context)?, context),
            Node::And(terms) => selection::all_of(terms, columns, context),
            Node::Or(terms) => selection::any_of(terms, columns, context),
            Node::Not(inner) => {
                map_array(inner.evaluate(columns, context)?, |array| Ok(Arc::new(compute::not(array.as_boolean())?) as ArrayRef))
            }
            Node::Case { branches, otherwise, data_type } => selection::case(branches, otherwise, data_type, columns, context),
            Node::InList { needle, set, negated } => {
                map_array(needle.evaluate(columns, context)?, |array| set.contains(array, *negated))
            }
        }
    }
}

/// A plan calls a function that this process does not know: it was made where there is one.
pub(super) fn not_registered(name: &str) -> Error {
    Error::new(ErrorKind::UndefinedFunction, format!("function \"{name}\" not found"))
        .with_hint("a job needs the functions of the program that it was planned with: register it before the job starts")
}

/// A result of the same shape as `datum`.
pub(super) fn map_array(datum: Datum, f: impl FnOnce(&ArrayRef) -> Result<ArrayRef>) -> Result<Datum> {
    Ok(match &datum {
        Datum::Array(array) => Datum::Array(f(array)?),
        Datum::Scalar(array) => Datum::Scalar(f(array)?),
    })
}

/// The constant NULL of a type, for all rows.
pub(super) fn null_scalar(data_type: &DataType) -> Datum {
    Datum::Scalar(arrow::array::new_null_array(&data_type.to_arrow(), 1))
}

/// BOOLEAN, as the scalar of a truth value.
pub(super) fn boolean_scalar(value: Option<bool>) -> Datum {
    debug_assert_eq!(DataType::nullable(TypeKind::Boolean).to_arrow(), arrow::datatypes::DataType::Boolean);
    let array = BooleanArray::from(vec![value]);
    debug_assert_eq!(array.len(), 1);
    Datum::Scalar(Arc::new(array))
}
