//! Views: their text with full names when they are created, their plan when they are read.
//!
//! A view keeps its text. The names of tables in it are completed with catalog and database at creation, so that it means the
//! same whatever is current when it is read.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::ObjectName;
use sqlparser::tokenizer::Location as SqlLocation;

use super::context::BindContext;
use super::query::unordered;
use super::scan::in_definition;
use super::state::Binder;
use crate::catalog::{CatalogView, ObjectPath};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{CastMode, Expr, can_cast};
use crate::plan::LogicalPlan;
use crate::sql::{CreateView, LATE_ROWS, ParseOptions, ParsedStatement, Statement, parse_statement};
use crate::types::{DataType, Schema};

/// The names of tables in a query's text: where each starts and ends, and what it stands for. Shared by all binders of a query.
#[derive(Debug, Clone, Default)]
pub(super) struct ResolvedNames(Rc<RefCell<Vec<(SqlLocation, SqlLocation, ObjectPath)>>>);

impl ResolvedNames {
    /// Keeps what a name stands for.
    pub fn note(&self, name: &ObjectName, path: &ObjectPath) {
        let first = name.0.first().and_then(|part| part.as_ident());
        let last = name.0.last().and_then(|part| part.as_ident());
        if let (Some(first), Some(last)) = (first, last) {
            self.0.borrow_mut().push((first.span.start, last.span.end, path.clone()));
        }
    }
}

/// CREATE VIEW as the catalog keeps it: its query is checked, its columns and tables have their names.
pub fn bind_view(create: &CreateView, path: &ObjectPath, cx: &BindContext<'_>) -> Result<CatalogView> {
    if let Some(hint) = cx.hints.iter().find(|hint| hint.hint == LATE_ROWS) {
        let error = Error::unsupported("the hint LATE_ROWS in a view").at(hint.span);
        return Err(error.with_hint("give it to the query that reads the view"));
    }
    let binder = Binder::new(cx);
    // What else would take a name that is taken fails for that.
    let takes_name = create.or_replace || create.temporary;
    let binder = if takes_name { binder.for_view(path, cx.hints)? } else { binder };
    let plan = binder.statement(&create.query)?;
    let mut schema = Schema::clone(plan.schema());
    if !create.columns.is_empty() {
        if create.columns.len() != schema.len() {
            let names: Vec<&str> = schema.fields.iter().map(|field| field.name.as_str()).collect();
            let message = format!("the view names {} columns, its query has {}", create.columns.len(), schema.len());
            return Err(Error::new(ErrorKind::InvalidArgument, message)
                .with_detail(format!("the query's columns are {}", names.join(", ")))
                .at(create.columns[0].span));
        }
        schema.fields.iter_mut().zip(&create.columns).for_each(|(field, name)| field.name = name.parts.join("."));
    }
    let mut seen = HashSet::new();
    if let Some(twice) = schema.fields.iter().find(|field| !seen.insert(field.name.as_str())) {
        let message = format!("the view has two columns \"{}\"", twice.name);
        return Err(Error::new(ErrorKind::DuplicateObject, message).at(create.name.span));
    }
    Ok(CatalogView {
        sql: with_full_names(&create.sql, cx)?,
        schema: Arc::new(schema),
        comment: create.comment.clone(),
        temporary: create.temporary,
    })
}

/// The text of a query with the full names of its tables.
fn with_full_names(sql: &str, cx: &BindContext<'_>) -> Result<String> {
    let parsed = kept_query(sql)?;
    let binder = Binder::new(&BindContext { hints: &parsed.hints, ..*cx });
    let Statement::Query(query) = &parsed.statement else { return Err(no_query()) };
    binder.query(query)?;
    let mut names = binder.resolved_names.0.borrow().clone();
    names.sort_by_key(|(start, ..)| *start);
    names.dedup_by_key(|(start, ..)| *start);
    let starts: Vec<usize> =
        std::iter::once(0).chain(sql.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1)).collect();
    let offset = |at: SqlLocation| {
        let start = starts.get((at.line as usize).checked_sub(1)?)?;
        let line = &sql[*start..];
        let mut characters = line.char_indices().map(|(index, _)| index).chain([line.len()]);
        Some(start + characters.nth((at.column as usize).checked_sub(1)?)?)
    };
    let mut text = String::with_capacity(sql.len() + names.len() * 32);
    let mut copied = 0;
    for (start, end, path) in names {
        let (Some(start), Some(end)) = (offset(start), offset(end)) else { continue };
        text.push_str(&sql[copied..start]);
        text.push_str(&path.to_string());
        copied = end;
    }
    text.push_str(&sql[copied..]);
    // A hint is a comment: one that ends the query is not part of its text.
    for hint in cx.hints.iter().skip(parsed.hints.len()) {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let options = hint.options.iter().map(|(key, value)| format!("{} = {}", quoted(key), quoted(value)));
        text.push_str(&format!(" /*+ OPTIONS({}) */", options.collect::<Vec<_>>().join(", ")));
    }
    Ok(text)
}

/// A view's text as a statement. `"x"` is a name in it: had it not been, the text would not have been kept.
fn kept_query(sql: &str) -> Result<ParsedStatement> {
    parse_statement(sql, &ParseOptions { double_quoted_identifiers: true })
}

fn no_query() -> Error {
    Error::internal("the text of a view is a query")
}

impl Binder<'_> {
    /// A view: its query, with the names of its columns.
    pub(super) fn view(&self, path: &ObjectPath, view: &CatalogView) -> Result<LogicalPlan> {
        let at_view = |error: Error| in_definition(error, &format!("view {path}"));
        let parsed = kept_query(&view.sql).map_err(at_view)?;
        let Statement::Query(query) = &parsed.statement else { return Err(at_view(no_query())) };
        let plan = self.for_view(path, &parsed.hints)?.query(query).map(unordered).map_err(at_view)?;
        let names: Vec<&String> = view.schema.fields.iter().map(|field| &field.name).collect();
        if names.len() != plan.schema().len() {
            return Err(at_view(Error::new(ErrorKind::InvalidArgument, "the tables that it reads have changed"))
                .with_hint("create the view anew"));
        }
        let fields = plan.schema().fields.iter().zip(&view.schema.fields);
        if fields.clone().all(|(field, kept)| field.name == kept.name && field.data_type.kind == kept.data_type.kind) {
            return Ok(plan);
        }
        let exprs = fields.enumerate().map(|(index, (field, kept))| {
            kept_column(index, &field.data_type, &kept.data_type).ok_or_else(|| {
                let message = format!(
                    "column {} was {}, and is {} now",
                    kept.name,
                    kept.data_type.kind_text(),
                    field.data_type.kind_text()
                );
                at_view(Error::new(ErrorKind::TypeMismatch, message)).with_hint("create the view anew")
            })
        });
        let exprs = exprs.collect::<Result<Vec<_>>>()?;
        Ok(LogicalPlan::project(plan, exprs, names.into_iter().cloned().collect()))
    }
}

/// A column of a view. When what the view reads has other types now, it is cast to those that the view was made with, as in Flink.
fn kept_column(index: usize, given: &DataType, kept: &DataType) -> Option<Expr> {
    let column = Expr::column(index, given.clone());
    if given.kind == kept.kind {
        return Some(column);
    }
    can_cast(given, kept).then(|| {
        let data_type = DataType::new(kept.kind.clone(), given.nullable);
        Expr::Cast { input: Box::new(column), data_type, mode: CastMode::Implicit }
    })
}
