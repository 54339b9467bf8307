//! The names that a clause can use, and which columns they stand for.
//!
//! A scope lists the columns of a FROM clause in order. A name is looked up as `column`, `relation.column`,
//! `catalog.database.table.column`, each optionally followed by fields of a ROW. Names are case-sensitive.

use sqlparser::ast::Ident;

use super::span::{Located, convert};
use crate::error::{Error, ErrorKind, Result, nearest};
use crate::expr::Expr;
use crate::types::{Field, Schema};

/// A column that can be named.
#[derive(Debug, Clone)]
pub(super) struct ScopeColumn {
    /// The relation's alias, or the parts of its full name; empty for a column that JOIN … USING merged.
    pub relation: Vec<String>,
    /// Name.
    pub name: String,
    /// What it stands for: a column, or what USING made of two.
    pub expr: Expr,
    /// Whether `*` and a bare name find it: columns that USING merged are found by their qualified names only.
    pub visible: bool,
}

/// The names that a clause can use.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    /// Columns in the order of `*`.
    pub columns: Vec<ScopeColumn>,
}

/// What a name was resolved to: a column and how many parts of the name it took.
pub(super) struct Resolved<'s> {
    /// The column.
    pub column: &'s ScopeColumn,
    /// How many parts of the name led to it; the others are fields of a ROW.
    pub parts: usize,
}

impl Scope {
    /// All columns of a relation, under its alias or full name.
    pub fn of_schema(relation: &[String], schema: &Schema) -> Self {
        let column = |(index, field): (usize, &Field)| ScopeColumn {
            relation: relation.to_vec(),
            name: field.name.clone(),
            expr: Expr::column(index, field.data_type.clone()),
            visible: true,
        };
        Scope { columns: schema.fields.iter().enumerate().map(column).collect() }
    }

    /// The columns that `*` stands for.
    pub fn visible(&self) -> impl Iterator<Item = &ScopeColumn> {
        self.columns.iter().filter(|column| column.visible)
    }

    /// The columns that `relation.*` stands for; none if there is no such relation.
    pub fn of_relation(&self, qualifier: &[Ident]) -> Vec<&ScopeColumn> {
        self.columns.iter().filter(|column| is_qualifier(qualifier, &column.relation)).collect()
    }

    /// Looks a name up; `None` if its first part is neither a relation nor a column.
    pub fn find(&self, name: &[Ident]) -> Result<Option<Resolved<'_>>> {
        for parts in (2..=name.len()).rev() {
            let (qualifier, column) = (&name[..parts - 1], &name[parts - 1]);
            if self.columns.iter().any(|candidate| is_qualifier(qualifier, &candidate.relation)) {
                let found = self.unique(column, |candidate| is_qualifier(qualifier, &candidate.relation))?;
                if let Some(column) = found {
                    return Ok(Some(Resolved { column, parts }));
                }
                if self.unique(&name[0], |candidate| candidate.visible)?.is_none() {
                    return Err(self.unknown_in_relation(qualifier, column));
                }
            }
        }
        let found = self.unique(&name[0], |candidate| candidate.visible)?;
        Ok(found.map(|column| Resolved { column, parts: 1 }))
    }

    /// The one column of this name among those that `eligible` admits.
    fn unique(&self, name: &Ident, eligible: impl Fn(&ScopeColumn) -> bool) -> Result<Option<&ScopeColumn>> {
        let mut found = self.columns.iter().filter(|column| column.name == name.value && eligible(column));
        let Some(first) = found.next() else { return Ok(None) };
        let Some(second) = found.next() else { return Ok(Some(first)) };
        let hint = match (first.relation.last(), second.relation.last()) {
            (Some(left), Some(right)) if left != right => {
                format!("qualify it: {left}.{name} or {right}.{name}", name = name.value)
            }
            _ => "rename one of them in a subquery: SELECT … AS …".to_string(),
        };
        Err(Error::new(ErrorKind::AmbiguousColumn, format!("column \"{}\" is ambiguous", name.value))
            .with_hint(hint)
            .at_span(convert(name.span)))
    }

    fn unknown_in_relation(&self, qualifier: &[Ident], column: &Ident) -> Error {
        let names: Vec<&str> = self.of_relation(qualifier).into_iter().map(|column| column.name.as_str()).collect();
        let relation = qualifier.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(".");
        let message = format!("column \"{}\" not found in \"{relation}\"", column.value);
        unknown_column(message, &column.value, &names).at_span(convert(column.span))
    }

    /// The error for a name of which nothing is known.
    pub fn unknown(&self, name: &[Ident]) -> Error {
        let span = convert(name[0].span);
        if name.len() == 1 {
            let names: Vec<&str> = self.visible().map(|column| column.name.as_str()).collect();
            let error = unknown_column(format!("column \"{}\" not found", name[0].value), &name[0].value, &names);
            let has_windows = names.iter().any(|name| window_property(name).is_some());
            return match window_property(&name[0].value).filter(|_| !has_windows) {
                Some(property) => error.with_hint(format!(
                    "rows have it behind a window table function: FROM TUMBLE(TABLE t, …); with GROUP BY TUMBLE(…) it is TUMBLE_{property}(…)"
                )),
                None => error,
            }
            .at_span(span);
        }
        let mut relations: Vec<&str> =
            self.columns.iter().filter_map(|column| column.relation.last()).map(String::as_str).collect();
        relations.dedup();
        let columns = self.visible().map(|column| column.name.as_str());
        let error = Error::new(ErrorKind::UndefinedColumn, format!("no table or column \"{}\" in FROM", name[0].value));
        match nearest(&name[0].value, relations.iter().copied().chain(columns)) {
            Some(near) => error.with_hint(format!("did you mean \"{near}\"?")),
            None if relations.is_empty() => error,
            None => error.with_hint(format!("its tables are called {}", relations.join(", "))),
        }
        .at_span(span)
    }
}

/// Whether `qualifier` names the relation: its alias, or the last parts of its full name.
fn is_qualifier(qualifier: &[Ident], relation: &[String]) -> bool {
    !qualifier.is_empty()
        && qualifier.len() <= relation.len()
        && qualifier.iter().zip(&relation[relation.len() - qualifier.len()..]).all(|(part, name)| part.value == *name)
}

/// What a function of a group window calls a column of window table functions.
fn window_property(column: &str) -> Option<&'static str> {
    match column.to_ascii_lowercase().as_str() {
        "window_start" => Some("START"),
        "window_end" => Some("END"),
        "window_time" => Some("ROWTIME"),
        _ => None,
    }
}

/// The error for an unknown column: with the nearest name, else with all of them.
pub(super) fn unknown_column(message: String, name: &str, candidates: &[&str]) -> Error {
    let error = Error::new(ErrorKind::UndefinedColumn, message);
    match nearest(name, candidates.iter().copied()) {
        Some(near) => error.with_hint(format!("did you mean \"{near}\"?")),
        None if candidates.is_empty() => error,
        None => error.with_hint(format!("there are: {}", candidates.join(", "))),
    }
}
