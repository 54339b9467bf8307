//! SQL text → statements.
//!
//! Queries and expressions stay sqlparser's AST (it has the spans); everything else of Flink's dialect has its own node in
//! [`Statement`]. Types are converted here, once ([`crate::types::DataType`]).
//!
//! What sqlparser's AST cannot hold is encoded in nodes that it has. For the binder:
//!
//! | SQL | node |
//! |---|---|
//! | `TABLE t PARTITION BY k ORDER BY o` as an argument | `Expr::Function` `TABLE` with the name as `CompoundIdentifier`; `over` = the two clauses, none = neither |
//! | `TABLE (SELECT …)`, `(SELECT …) PARTITION BY k` as an argument | the same with `Expr::Subquery` |
//! | `(SELECT …)` as an argument | `Expr::Subquery` |
//! | `DESCRIPTOR(ts)`, `ROW(…)`, `TIMESTAMPDIFF(DAY, a, b)`, `LOCALTIME` | `Expr::Function`; units are `Expr::Identifier` |
//! | `(a, b)` | `Expr::Tuple` |
//! | `name => value` | `FunctionArg::Named` |
//! | `CAST(x AS type)`, `TRY_CAST`, `x::type` | `Expr::Cast`; [`data_type_of`] reads the type |
//! | `DATE '…'`, `TIME '…'`, `TIMESTAMP '…'` | `Expr::TypedString` |
//! | `INTERVAL -'5' SECOND`, `INTERVAL '1-2' YEAR TO MONTH` | `Expr::Interval` over a string with the sign in it; units in the singular |
//! | `ARRAY[…]` | `Expr::Array` |
//! | `MAP[k, v, …]` | `Expr::Function` `MAP` with keys and values in turn |
//! | `a[1]`, `m['k']`, `f(x).field` | `Expr::CompoundFieldAccess`; `a.b.c` is `Expr::CompoundIdentifier` |
//! | `GROUP BY DISTINCT a, ROLLUP(b)` | `Expr::Array` without `named`, over the elements |
//! | `CEIL(x TO DAY)`, `FLOOR`, `EXTRACT`, `TRIM`, `SUBSTRING`, `POSITION`, `OVERLAY` | sqlparser's own nodes |
//! | `x [NOT] BETWEEN SYMMETRIC a AND b` | `[NOT] (x BETWEEN a AND b OR x BETWEEN b AND a)` |
//! | `JSON_VALUE(x, p RETURNING t DEFAULT d ON EMPTY ERROR ON ERROR)` | `Expr::Function` with named arguments `RETURNING` (a cast NULL), `ON_EMPTY`, `ON_ERROR`, `WRAPPER`, `ON_NULL` (strings), `DEFAULT_ON_EMPTY`, `DEFAULT_ON_ERROR` |
//! | `JSON_OBJECT(KEY k VALUE v, k : v)` | `Expr::Function` with keys and values in turn |
//! | `t FOR SYSTEM_TIME AS OF x` | `TableFactor::Table` with `version` |
//! | `TABLE(f(…))`, `f(…)`, `LATERAL TABLE(f(…))` in FROM | `TableFactor::TableFunction`, `Table` with `args`, `Function` named `TABLE` |
//! | `t /*+ OPTIONS(…) */` | [`ParsedStatement::hints`], by the end of the name; a hint that fits no table is an error |

mod create_table;
mod cursor;
mod ddl;
mod dialect;
mod dispatch;
mod dml;
mod expression;
mod foreign;
mod function;
mod hints;
mod json;
mod lexer;
mod parser;
mod quoting;
mod session;
mod statement;
mod syntax_error;
#[cfg(test)]
mod tests;
mod type_parser;
mod values_rows;

pub use hints::LATE_ROWS;
pub use parser::{ParseOptions, parse_expression, parse_name, parse_query, parse_script, parse_statement};
pub use quoting::{literal, quoted, with_quoted_columns};
pub use statement::{
    AlterTable, ColumnDefinition, CreateFunction, CreateTable, CreateTableAs, CreateView, DescribeTarget, DropKind,
    ExplainDetail, HintedOptions, Insert, LikeClause, LikeFeature, LikeStrategy, Name, OnConflict, ParsedStatement, Show,
    Statement, UseTarget, WatermarkClause,
};
pub use type_parser::{data_type_of, parse_data_type};
