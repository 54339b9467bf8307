//! Typed expressions: what they are ([`Expr`]), how functions join them ([`ScalarFunction`], [`AggregateFunction`]), and how
//! they are evaluated over Arrow arrays ([`compile()`] → [`CompiledExpr`]).

pub mod aggregate;
mod bitmap;
mod cast;
mod common_type;
mod compile;
pub(crate) mod datetime;
mod decimal;
mod expression;
mod fold;
mod function;
mod functions;
#[cfg(test)]
mod fuzz;
mod in_set;
mod java_regex;
mod json;
mod merged_type;
mod nan;
mod registry;
mod selection;
mod shape;
mod shared;
mod sql_function;
mod table_function;
#[cfg(test)]
mod tests;
pub mod text;
mod values;
mod written_functions;
mod zone;

pub use aggregate::{AggregateSet, GroupKeys};
pub(crate) use aggregate::{Moments, variances};
pub use cast::{can_cast, can_cast_implicitly};
pub use common_type::common_type;
pub use compile::{CompiledExpr, compile};
pub(crate) use datetime::{Ymd, days_of_month};
pub use expression::{AggregateCall, CastMode, Expr, SortKey};
pub use fold::{fold, fold_row};
pub use function::{AggregateFunction, ArgumentOrder, Datum, EvalContext, GroupsAccumulator, ScalarFunction};
pub use functions::builtin_functions;
pub(crate) use nan::with_one_nan;
pub use registry::{FunctionRegistry, UserFunction};
pub use shape::Shape;
pub use shared::CompiledExprs;
pub use sql_function::SqlFunction;
pub use table_function::{TableFunction, TableRows, table_call};
pub use values::{array_to_value, value_to_array, values_to_array};
