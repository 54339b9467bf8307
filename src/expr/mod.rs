//! Typed expressions: what they are ([`Expr`]), how functions join them ([`ScalarFunction`], [`AggregateFunction`]), and how
//! they are evaluated over Arrow arrays.

pub mod aggregate;
mod expression;
mod function;

pub use aggregate::{AggregateSet, GroupKeys, builtin_aggregates};
pub use expression::{AggregateCall, CastMode, Expr, SortKey};
pub use function::{AggregateFunction, Datum, EvalContext, FunctionRegistry, GroupsAccumulator, ScalarFunction};
