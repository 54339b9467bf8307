//! A query: WITH, body, ORDER BY, LIMIT / OFFSET / FETCH.

use std::rc::Rc;

use sqlparser::ast::{self, Expr as SqlExpr, LimitClause, OrderByKind, SetExpr};

use super::expression::{Alias, ExprBinder, place};
use super::parts::Parts;
use super::scope::Scope;
use super::span::{Located, convert};
use super::state::Binder;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{Expr, SortKey};
use crate::plan::LogicalPlan;

/// ORDER BY, OFFSET and LIMIT of a query.
#[derive(Debug, Default)]
pub(super) struct Ordering<'e> {
    /// Keys as written.
    pub keys: Vec<&'e ast::OrderByExpr>,
    /// Rows left out at the front.
    pub offset: u64,
    /// Rows kept after them.
    pub fetch: Option<u64>,
}

impl Ordering<'_> {
    /// The plan cut to OFFSET and LIMIT, ordered by these keys. `ttl`: how long rows behind them are kept, where a hint says so.
    pub fn apply(&self, input: LogicalPlan, keys: Vec<SortKey>, ttl: Option<u64>) -> LogicalPlan {
        if keys.is_empty() && self.offset == 0 && self.fetch.is_none() {
            return input;
        }
        LogicalPlan::Sort { input: Box::new(input), keys, offset: self.offset, fetch: self.fetch, ttl }
    }
}

impl Binder<'_> {
    /// A query inside of another, whose order means nothing there: ORDER BY counts only together with LIMIT.
    pub(super) fn subquery(&self, query: &ast::Query) -> Result<LogicalPlan> {
        Ok(unordered(self.nested()?.query(query)?))
    }

    /// A query with everything around its body.
    pub(super) fn query(&self, query: &ast::Query) -> Result<LogicalPlan> {
        let ast::Query { with, body, order_by, limit_clause, fetch, locks, for_clause, settings, format_clause, pipe_operators } =
            query;
        if !locks.is_empty() {
            return Err(Error::unsupported("FOR UPDATE and FOR SHARE").at_node(query));
        }
        if for_clause.is_some() || settings.is_some() || format_clause.is_some() {
            return Err(Error::unsupported("FOR XML, SETTINGS and FORMAT").at_node(query));
        }
        if !pipe_operators.is_empty() {
            return Err(Error::unsupported("the pipe operator |>").at_node(query));
        }
        let ordering = ordering(order_by.as_ref(), limit_clause.as_ref(), fetch.as_ref())?;
        match with {
            None => self.body(body, &ordering),
            Some(with) => self.with(with)?.body(body, &ordering),
        }
    }

    /// A binder that sees the tables of WITH.
    fn with(&self, with: &ast::With) -> Result<Self> {
        let ast::With { with_token: _, recursive, cte_tables } = with;
        if *recursive {
            return Err(Error::unsupported("WITH RECURSIVE").at_node(with));
        }
        let mut binder = self.nested()?;
        for cte in cte_tables {
            let ast::Cte { alias, query, from, materialized: _, closing_paren_token: _ } = cte;
            if from.is_some() {
                return Err(Error::unsupported("FROM in WITH").at_node(cte));
            }
            let plan = binder.subquery(query)?;
            let plan = super::relation::rename_columns(plan, alias)?;
            binder.ctes.push((alias.name.value.clone(), Rc::new(plan)));
        }
        Ok(binder)
    }

    /// The body of a query with its order.
    pub(super) fn body(&self, body: &SetExpr, ordering: &Ordering<'_>) -> Result<LogicalPlan> {
        let plan = match body {
            SetExpr::Select(select) => return self.select(select, ordering),
            SetExpr::Query(query) => self.nested()?.query(query)?,
            SetExpr::SetOperation { .. } => self.set_operation(body)?,
            SetExpr::Values(values) => self.values(values)?,
            SetExpr::Table(table) => self.table_body(table)?,
            SetExpr::Insert(_) => return Err(Error::unsupported("INSERT inside of a query")),
            SetExpr::Update(_) => return Err(Error::unsupported("UPDATE inside of a query")),
            SetExpr::Delete(_) => return Err(Error::unsupported("DELETE inside of a query")),
            SetExpr::Merge(_) => return Err(Error::unsupported("MERGE inside of a query")),
        };
        self.order(plan, ordering)
    }

    /// Orders a query that has no select list of its own: keys are its columns.
    fn order(&self, plan: LogicalPlan, ordering: &Ordering<'_>) -> Result<LogicalPlan> {
        let scope = Scope::of_schema(&[], plan.schema());
        let columns: Vec<Alias> = plan
            .schema()
            .fields
            .iter()
            .enumerate()
            .map(|(index, field)| Alias { name: field.name.clone(), expr: Expr::column(index, field.data_type.clone()) })
            .collect();
        let mut keys = Vec::new();
        let mut exprs: Vec<Expr> = columns.iter().map(|column| column.expr.clone()).collect();
        for key in &ordering.keys {
            let bound = match ordinal(&key.expr, columns.len())? {
                Some(index) => columns[index].expr.clone(),
                None => {
                    let mut parts = Parts::default();
                    let bound = ExprBinder::new(self, &scope, "ORDER BY", &mut parts).bind(&key.expr)?;
                    if !parts.input_subqueries.is_empty() {
                        return Err(Error::unsupported("a subquery in ORDER BY").at_node(&key.expr));
                    }
                    bound
                }
            };
            keys.push(sort_key(position_of(&mut exprs, bound), key)?);
        }
        Ok(sort_and_drop(plan, columns, exprs, keys, ordering))
    }
}

/// A plan without the ORDER BY at its top, unless OFFSET or LIMIT need it.
pub(super) fn unordered(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Sort { input, offset: 0, fetch: None, .. } => *input,
        LogicalPlan::Project { input, exprs, schema } => {
            LogicalPlan::Project { input: Box::new(unordered(*input)), exprs, schema }
        }
        plan => plan,
    }
}

/// The plan with the sort keys computed, sorted, and cut back to the first columns.
pub(super) fn sort_and_drop(
    plan: LogicalPlan,
    columns: Vec<Alias>,
    exprs: Vec<Expr>,
    keys: Vec<SortKey>,
    ordering: &Ordering<'_>,
) -> LogicalPlan {
    if exprs.len() == columns.len() {
        return ordering.apply(plan, keys, None);
    }
    let hidden = (columns.len()..exprs.len()).map(|index| format!("$sort{index}"));
    let names = columns.iter().map(|column| column.name.clone()).chain(hidden).collect();
    let sorted = ordering.apply(LogicalPlan::project(plan, exprs, names), keys, None);
    let (kept, names): (Vec<Expr>, Vec<String>) = columns
        .into_iter()
        .enumerate()
        .map(|(index, column)| (Expr::column(index, column.expr.data_type()), column.name))
        .unzip();
    LogicalPlan::project(sorted, kept, names)
}

/// The position of an expression, added if it is new.
pub(super) fn position_of<T: PartialEq>(exprs: &mut Vec<T>, expr: T) -> usize {
    exprs.iter().position(|known| *known == expr).unwrap_or_else(|| {
        exprs.push(expr);
        exprs.len() - 1
    })
}

/// The position that a number in ORDER BY stands for.
pub(super) fn ordinal(expr: &SqlExpr, columns: usize) -> Result<Option<usize>> {
    let SqlExpr::Value(value) = expr else { return Ok(None) };
    let ast::Value::Number(text, _) = &value.value else { return Ok(None) };
    let Ok(number) = text.parse::<usize>() else { return Ok(None) };
    if number == 0 || number > columns {
        let message = format!("ORDER BY position {number} is not in the select list of {columns} columns");
        return Err(Error::new(ErrorKind::InvalidArgument, message).at_span(place(expr)));
    }
    Ok(Some(number - 1))
}

/// A sort key over a column. NULL is the least value unless NULLS FIRST or NULLS LAST say otherwise.
pub(super) fn sort_key(column: usize, key: &ast::OrderByExpr) -> Result<SortKey> {
    let ast::OrderByExpr { expr: _, options, with_fill } = key;
    if with_fill.is_some() {
        return Err(Error::unsupported("WITH FILL").at_node(key));
    }
    let ast::OrderByOptions { sort, nulls_first } = options;
    let descending = match sort {
        None | Some(ast::OrderBySort::Asc) => false,
        Some(ast::OrderBySort::Desc) => true,
        Some(ast::OrderBySort::Using(_)) => return Err(Error::unsupported("ORDER BY … USING").at_node(key)),
    };
    Ok(SortKey { column, descending, nulls_first: nulls_first.unwrap_or(!descending) })
}

fn ordering<'e>(
    order_by: Option<&'e ast::OrderBy>,
    limit: Option<&'e LimitClause>,
    fetch: Option<&'e ast::Fetch>,
) -> Result<Ordering<'e>> {
    let mut ordering = Ordering::default();
    if let Some(ast::OrderBy { kind, interpolate }) = order_by {
        if interpolate.is_some() {
            return Err(Error::unsupported("INTERPOLATE"));
        }
        match kind {
            OrderByKind::Expressions(keys) => ordering.keys = keys.iter().collect(),
            OrderByKind::All(_) => return Err(Error::unsupported("ORDER BY ALL").with_hint("name the columns")),
        }
    }
    match limit {
        None => {}
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
            if let Some(by) = limit_by.first() {
                return Err(Error::unsupported("LIMIT … BY").at_node(by));
            }
            ordering.fetch = limit.as_ref().map(|limit| row_count(limit, "LIMIT")).transpose()?;
            if let Some(ast::Offset { value, rows: _ }) = offset {
                ordering.offset = row_count(value, "OFFSET")?;
            }
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
            ordering.offset = row_count(offset, "OFFSET")?;
            ordering.fetch = Some(row_count(limit, "LIMIT")?);
        }
    }
    if let Some(ast::Fetch { with_ties, percent, quantity }) = fetch {
        if *with_ties || *percent {
            return Err(Error::unsupported("FETCH … WITH TIES and FETCH … PERCENT"));
        }
        let rows = quantity.as_ref().map_or(Ok(1), |quantity| row_count(quantity, "FETCH"))?;
        ordering.fetch = Some(ordering.fetch.map_or(rows, |limit| limit.min(rows)));
    }
    Ok(ordering)
}

/// A constant number of rows.
fn row_count(expr: &SqlExpr, clause: &str) -> Result<u64> {
    let number = match expr {
        SqlExpr::Value(value) => match &value.value {
            ast::Value::Number(text, _) => text.parse().ok(),
            _ => None,
        },
        _ => None,
    };
    number.ok_or_else(|| {
        Error::new(ErrorKind::InvalidArgument, format!("{clause} takes a whole number of rows")).at_span(place(expr))
    })
}

/// The place of an identifier, for errors.
pub(super) fn ident_span(ident: &ast::Ident) -> Option<crate::error::Span> {
    convert(ident.span)
}
