//! GROUP BY: what it says, which clauses survive an aggregation, and the plan of it.
//!
//! Below the aggregation stand the columns of FROM, above it the keys, then the aggregates. An expression above may use a key,
//! as a whole or inside of a larger expression, and aggregates; a column beside them is an error.

use std::sync::Arc;

use sqlparser::ast::{Array as SqlArray, Expr as SqlExpr, GroupByExpr};

use super::grouping_sets::{self, BoundGrouping, GroupingSet, following_nulls, is_same_key};
use super::outer::OUTER_BASE;
use super::parts::{AGGREGATE_BASE, BoundAggregate, GROUPING_BASE, INPUT_SUBQUERY_BASE, place_columns};
use super::query::position_of;
use super::span::Located;
use crate::error::{Error, ErrorKind, Result, Span};
use crate::expr::{AggregateCall, Expr, FunctionRegistry};
use crate::plan::LogicalPlan;
use crate::stream_graph::{ExpandCopy, ExpandSpec};
use crate::types::{DataType, Field, Schema, TypeKind};

/// What GROUP BY says.
#[derive(Clone, Copy)]
pub(super) enum GroupBy<'e> {
    /// There is none.
    None,
    /// These elements; none of them: `GROUP BY ()`.
    Elements(&'e [SqlExpr]),
    /// ALL: all of the select list that is no aggregate.
    All,
}

impl<'e> GroupBy<'e> {
    /// The clause of a SELECT.
    pub fn of(group_by: &'e GroupByExpr) -> Result<Self> {
        match group_by {
            GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers) if !modifiers.is_empty() => {
                Err(Error::unsupported("GROUP BY … WITH ROLLUP, CUBE or TOTALS").with_hint("write GROUP BY ROLLUP(…)"))
            }
            GroupByExpr::All(_) => Ok(GroupBy::All),
            GroupByExpr::Expressions(exprs, _) => match exprs.as_slice() {
                [] => Ok(GroupBy::None),
                [SqlExpr::Tuple(items)] if items.is_empty() => Ok(GroupBy::Elements(&[])),
                // DISTINCT.
                [SqlExpr::Array(SqlArray { elem, named: false })] => Ok(GroupBy::Elements(elem)),
                exprs => Ok(GroupBy::Elements(exprs)),
            },
        }
    }

    /// GROUP BY DISTINCT: of equal grouping sets there is one.
    pub fn is_distinct(group_by: &GroupByExpr) -> bool {
        matches!(group_by, GroupByExpr::Expressions(exprs, _) if matches!(exprs.as_slice(), [SqlExpr::Array(array)] if !array.named))
    }

    /// Whether there are elements, which also make the group of all rows be there only when there are rows.
    pub fn has_elements(self) -> bool {
        matches!(self, GroupBy::Elements(elements) if !elements.is_empty())
    }
}

/// The keys of a GROUP BY, each once, and the sets of them that it asks for.
#[derive(Default)]
pub(super) struct Keys {
    /// Expressions over the columns of FROM.
    pub exprs: Vec<Expr>,
    /// The sets in the order of their rows; one at least.
    pub sets: Vec<GroupingSet>,
    /// Keys that columns of the input hold already.
    pub computed: Vec<(Expr, Expr)>,
}

impl Keys {
    /// One set of all of them.
    pub fn all(exprs: Vec<Expr>) -> Self {
        let sets = vec![GroupingSet { has: vec![true; exprs.len()], group_id: 0 }];
        Keys { exprs, sets, computed: Vec::new() }
    }

    /// Adds keys that all sets have.
    pub fn add_to_all(&mut self, exprs: impl Iterator<Item = Expr>) {
        self.exprs.extend(exprs);
        self.sets.iter_mut().for_each(|set| set.has.resize(self.exprs.len(), true));
    }

    /// Whether rows are expanded.
    fn are_expanded(&self) -> bool {
        self.sets.len() > 1
    }

    /// The type of a key after the aggregation: NULL where a set leaves it out.
    fn data_type(&self, key: usize) -> DataType {
        let data_type = self.exprs[key].data_type();
        let nullable = data_type.nullable || self.sets.iter().any(|set| !set.has[key]);
        data_type.with_nullable(nullable)
    }
}

/// An aggregation: keys and aggregates over the columns of its input.
pub(super) struct Grouping {
    keys: Keys,
    aggregates: Vec<BoundAggregate>,
    groupings: Vec<BoundGrouping>,
    /// Columns named outside of aggregates, for errors.
    named_columns: Vec<(usize, String, Option<Span>)>,
    /// Where the subqueries of keys and arguments are among the input's columns.
    first_subquery: usize,
}

impl Grouping {
    /// An aggregation. Subqueries of keys and arguments stand in the input from column `first_subquery` on.
    pub fn new(
        keys: Keys,
        aggregates: Vec<BoundAggregate>,
        groupings: Vec<BoundGrouping>,
        named_columns: Vec<(usize, String, Option<Span>)>,
        first_subquery: usize,
    ) -> Self {
        Grouping { keys, aggregates, groupings, named_columns, first_subquery }
    }

    /// An expression as it is computed above the aggregation.
    pub fn after(&self, expr: Expr, functions: &FunctionRegistry) -> Result<Expr> {
        let above = self.above(expr)?;
        Ok(if self.keys.are_expanded() { following_nulls(above, functions) } else { above })
    }

    fn above(&self, expr: Expr) -> Result<Expr> {
        let is_expr = |key: &Expr| if self.keys.are_expanded() { is_same_key(key, &expr) } else { *key == expr };
        if let Some(key) = self.keys.exprs.iter().position(is_expr) {
            return Ok(Expr::column(key, self.keys.data_type(key)));
        }
        if let Expr::Column { index, data_type } = expr {
            return match index {
                0..GROUPING_BASE => Err(self.not_grouped(index)),
                GROUPING_BASE..AGGREGATE_BASE => {
                    let call = &self.groupings[index - GROUPING_BASE];
                    grouping_sets::value_of(call, &self.keys.exprs, &self.keys.sets, self.set_number())
                }
                AGGREGATE_BASE..INPUT_SUBQUERY_BASE => {
                    Ok(Expr::column(index - AGGREGATE_BASE + self.first_aggregate(), data_type))
                }
                _ => Ok(Expr::column(index, data_type)),
            };
        }
        let mut failure = None;
        let mapped = expr.map_children(&mut |child| {
            let fallback = child.clone();
            self.above(child).unwrap_or_else(|error| {
                failure.get_or_insert(error);
                fallback
            })
        });
        failure.map_or(Ok(mapped), Err)
    }

    /// The column that holds the number of the grouping set, if there are several.
    fn set_number(&self) -> Option<Expr> {
        self.keys.are_expanded().then(|| Expr::column(self.keys.exprs.len(), set_number_type()))
    }

    fn first_aggregate(&self) -> usize {
        self.keys.exprs.len() + usize::from(self.keys.are_expanded())
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
        let expanded = self.keys.are_expanded();
        let sets = self.keys.sets;
        let computed = self.keys.computed;
        let held = |key: Expr| computed.iter().find(|(known, _)| *known == key).map_or(key, |(_, column)| column.clone());
        let keys: Vec<Expr> = self.keys.exprs.into_iter().map(held).map(settle).collect();
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
                order: aggregate.order,
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
        let input = if all_columns { input } else { LogicalPlan::project(input, needed.clone(), names) };
        if expanded { aggregate_expanded(input, &key_columns, &sets, calls) } else { aggregate(input, key_columns, calls) }
    }
}

fn set_number_type() -> DataType {
    DataType::not_null(TypeKind::BigInt)
}

fn aggregate(input: LogicalPlan, keys: Vec<usize>, aggregates: Vec<AggregateCall>) -> LogicalPlan {
    let mut fields: Vec<Field> = keys.iter().map(|key| input.schema().field(*key).clone()).collect();
    fields.extend(aggregates.iter().map(|call| Field::new(call.name.clone(), call.data_type.clone())));
    let schema = Arc::new(Schema::new(fields));
    LogicalPlan::Aggregate { input: Box::new(input), keys, aggregates, schema, ttl: None }
}

/// The aggregation by keys and number of the set, over rows that come once for each set. What is aggregated is never NULL for a set.
fn aggregate_expanded(
    input: LogicalPlan,
    keys: &[usize],
    sets: &[GroupingSet],
    mut aggregates: Vec<AggregateCall>,
) -> LogicalPlan {
    let is_nulled = |key: usize| sets.iter().any(|set| !set.has[key]);
    let mut columns: Vec<usize> = keys.to_vec();
    let mut names: Vec<String> = keys.iter().map(|key| input.schema().field(*key).name.clone()).collect();
    for read in aggregates.iter_mut().flat_map(|call| call.args.iter_mut().chain(&mut call.filter)) {
        let kept = |at: &usize| columns[*at] == *read && (*at >= keys.len() || !is_nulled(*at));
        let place = (0..columns.len()).find(kept).unwrap_or(columns.len());
        if place == columns.len() {
            let name = &input.schema().field(*read).name;
            names.push(if keys.contains(read) { format!("{name}_0") } else { name.clone() });
            columns.push(*read);
        }
        *read = place;
    }
    let copy = |set: &GroupingSet| ExpandCopy { nulls: (0..keys.len()).filter(|key| !set.has[*key]).collect(), id: set.id() };
    let spec = ExpandSpec { copies: sets.iter().map(copy).collect(), columns };
    let field = |(at, name): (usize, String)| {
        let data_type = input.schema().field(spec.columns[at]).data_type.clone();
        let nullable = data_type.nullable || spec.is_nulled(at);
        Field::new(name, data_type.with_nullable(nullable))
    };
    let mut fields: Vec<Field> = names.into_iter().enumerate().map(field).collect();
    fields.push(Field::new("$e", set_number_type()));
    let grouped = (0..keys.len()).chain([spec.columns.len()]).collect();
    let expand = LogicalPlan::Expand { input: Box::new(input), spec, schema: Arc::new(Schema::new(fields)) };
    aggregate(expand, grouped, aggregates)
}
