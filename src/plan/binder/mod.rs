//! sqlparser's tree → [`LogicalPlan`](super::LogicalPlan): names, types and clauses resolved, columns by position.
//!
//! Positional, as in Calcite: a [`scope`](self) maps names to columns, expressions refer to columns by index, every operator
//! and function is typed by the registry. No clause is skipped: what is not supported is an error that names it.

mod aggregate;
mod call;
mod context;
#[cfg(test)]
mod ddl_tests;
mod decorrelation;
mod expression;
mod flink_functions;
mod frame;
mod function;
mod group_window;
mod grouping;
mod grouping_sets;
mod hint;
mod insert;
mod intersection;
mod join;
mod json;
mod late_rows;
mod lateral;
mod like;
mod literal;
mod matching;
mod operator;
mod outer;
mod over;
mod overlaps;
mod parts;
mod query;
mod relation;
mod right_side;
mod scan;
mod scope;
mod select;
mod set_operation;
mod span;
mod sql_function;
mod state;
mod subquery;
mod subquery_join;
#[cfg(test)]
mod subquery_tests;
mod subquery_value;
mod table;
mod table_function;
#[cfg(test)]
mod tests;
mod unnest;
mod view;
mod watermark_options;
mod window;
mod window_clauses;
mod window_signature;

pub use call::is_special_function;
pub use context::{BindContext, ResolvedRelation, TableResolver};
pub use insert::bind_insert;
pub use late_rows::late_rows_table;
pub use sql_function::bind_function;
pub use state::bind_query;
pub use table::{bind_table_query, validate_table};
pub use view::bind_view;
