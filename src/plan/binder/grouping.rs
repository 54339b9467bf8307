//! GROUP BY: which clauses survive an aggregation, and the plan of it.
//!
//! Below the aggregation stand the columns of FROM, above it the keys, then the aggregates. An expression above may use a key,
//! as a whole or inside of a larger expression, and aggregates; a column beside them is an error.

use std::sync::Arc;

use sqlparser::ast::{self, Expr as SqlExpr, GroupByExpr};

use super::outer::OUTER_BASE;
use super::parts::{AGGREGATE_BASE, BoundAggregate, INPUT_SUBQUERY_BASE, place_columns};
use super::query::position_of;
use super::span::Located;
use crate::error::{Error, ErrorKind, Result, Span};
use crate::expr::{AggregateCall, Expr};
use crate::plan::LogicalPlan;
use crate::types::{Field, Schema};

/// The expressions of GROUP BY; none = there is no GROUP BY; empty = `GROUP BY ()`.
pub(super) fn expressions(group_by: &GroupByExpr) -> Result<Option<&[SqlExpr]>> {
    match group_by {
        GroupByExpr::All(_) => Err(Error::unsupported("GROUP BY ALL").with_hint("name the columns")),
        GroupByExpr::Expressions(_, modifiers) if !modifiers.is_empty() => {
            Err(Error::unsupported("GROUP BY … WITH ROLLUP, CUBE or TOTALS"))
        }
        GroupByExpr::Expressions(exprs, _) => match exprs.as_slice() {
            [] => Ok(None),
            [SqlExpr::Tuple(items)] if items.is_empty() => Ok(Some(&[])),
            exprs => {
                if let Some(sets) = exprs.iter().find(|expr| is_grouping_set(expr)) {
                    let message = "GROUPING SETS, CUBE and ROLLUP are not supported";
                    return Err(Error::new(ErrorKind::Unsupported, message).at_node(sets));
                }
                Ok(Some(exprs))
            }
        },
    }
}

fn is_grouping_set(expr: &SqlExpr) -> bool {
    matches!(expr, ast::Expr::GroupingSets(_) | ast::Expr::Cube(_) | ast::Expr::Rollup(_))
}

/// An aggregation: keys and aggregates over the columns of its input.
pub(super) struct Grouping {
    keys: Vec<Expr>,
    aggregates: Vec<BoundAggregate>,
    /// Columns named outside of aggregates, for errors.
    named_columns: Vec<(usize, String, Option<Span>)>,
    /// Where the subqueries of keys and arguments are among the input's columns.
    first_subquery: usize,
}

impl Grouping {
    /// An aggregation. Subqueries of keys and arguments stand in the input from column `first_subquery` on.
    pub fn new(
        keys: Vec<Expr>,
        aggregates: Vec<BoundAggregate>,
        named_columns: Vec<(usize, String, Option<Span>)>,
        first_subquery: usize,
    ) -> Self {
        Grouping { keys, aggregates, named_columns, first_subquery }
    }

    /// An expression as it is computed above the aggregation.
    pub fn after(&self, expr: Expr) -> Result<Expr> {
        if let Some(key) = self.keys.iter().position(|key| *key == expr) {
            return Ok(Expr::column(key, expr.data_type()));
        }
        if let Expr::Column { index, data_type } = expr {
            return match index {
                0..AGGREGATE_BASE => Err(self.not_grouped(index)),
                AGGREGATE_BASE..INPUT_SUBQUERY_BASE => Ok(Expr::column(index - AGGREGATE_BASE + self.keys.len(), data_type)),
                _ => Ok(Expr::column(index, data_type)),
            };
        }
        let mut failure = None;
        let mapped = expr.map_children(&mut |child| {
            let fallback = child.clone();
            self.after(child).unwrap_or_else(|error| {
                failure.get_or_insert(error);
                fallback
            })
        });
        failure.map_or(Ok(mapped), Err)
    }

    fn not_grouped(&self, column: usize) -> Error {
        let named = self.named_columns.iter().find(|(index, ..)| *index == column);
        let (text, span) = named.map_or(("?", None), |(_, text, span)| (text.as_str(), *span));
        Error::new(ErrorKind::Grouping, format!("column \"{text}\" is neither grouped nor aggregated"))
            .with_hint(format!("add {text} to GROUP BY, or aggregate it: MAX({text})"))
            .at_span(span)
    }

    /// The aggregation over its input. Keys, arguments and filters that are no plain columns are computed first.
    pub fn plan(self, input: LogicalPlan) -> LogicalPlan {
        let settle = |expr: Expr| place_columns(expr, INPUT_SUBQUERY_BASE, self.first_subquery);
        let keys: Vec<Expr> = self.keys.into_iter().map(settle).collect();
        let aggregates: Vec<BoundAggregate> = self
            .aggregates
            .into_iter()
            .map(|aggregate| BoundAggregate {
                args: aggregate.args.into_iter().map(settle).collect(),
                filter: aggregate.filter.map(settle),
                ..aggregate
            })
            .collect();
        let mut needed = Vec::new();
        let exprs = keys.iter().chain(aggregates.iter().flat_map(|aggregate| aggregate.args.iter().chain(&aggregate.filter)));
        exprs.for_each(|expr| {
            position_of(&mut needed, expr.clone());
        });
        let is_own = |index: &usize| *index < OUTER_BASE;
        let all_columns = needed.iter().all(|expr| matches!(expr, Expr::Column { index, .. } if is_own(index)));
        let input_schema = input.schema().clone();
        let position = |expr: &Expr| match expr {
            Expr::Column { index, .. } if all_columns => *index,
            expr => needed.iter().position(|known| known == expr).expect("all needed expressions were collected"),
        };
        let key_columns: Vec<usize> = keys.iter().map(position).collect();
        let calls: Vec<AggregateCall> = aggregates
            .into_iter()
            .enumerate()
            .map(|(number, aggregate)| AggregateCall {
                args: aggregate.args.iter().map(position).collect(),
                arg_types: aggregate.args.iter().map(Expr::data_type).collect(),
                distinct: aggregate.distinct,
                filter: aggregate.filter.as_ref().map(position),
                data_type: aggregate.data_type,
                name: format!("EXPR${number}"),
                function: aggregate.function,
            })
            .collect();
        let names: Vec<String> = needed
            .iter()
            .enumerate()
            .map(|(number, expr)| match expr {
                Expr::Column { index, .. } if is_own(index) => input_schema.field(*index).name.clone(),
                _ => format!("$f{number}"),
            })
            .collect();
        let key_field = |key: &Expr| match key {
            Expr::Column { index, data_type } if is_own(index) => {
                Field::new(input_schema.field(*index).name.clone(), data_type.clone())
            }
            key => Field::new(names[position(key)].clone(), key.data_type()),
        };
        let mut fields: Vec<Field> = keys.iter().map(key_field).collect();
        fields.extend(calls.iter().map(|call| Field::new(call.name.clone(), call.data_type.clone())));
        let schema = Arc::new(Schema::new(fields));
        let input = if all_columns { input } else { LogicalPlan::project(input, needed.clone(), names.clone()) };
        LogicalPlan::Aggregate { input: Box::new(input), keys: key_columns, aggregates: calls, schema, ttl: None }
    }
}
