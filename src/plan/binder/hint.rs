//! Hints with options. `t /*+ OPTIONS('k' = 'v') */`: put over the options of the table whose name they stand behind.
//! `SELECT /*+ EMIT('k' = 'v') */`: when the windows that the query groups by show their results. A hint that stands behind anything
//! else is an error.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use sqlparser::ast::{self, ObjectName, Query};

use super::span::{Located, span_of};
use super::state::Binder;
use crate::catalog::{CatalogTable, Options, check_options};
use crate::error::{Error, ErrorKind, Location, Result};
use crate::plan::stack::with_room;
use crate::plan::{LogicalPlan, emit};
use crate::sql::HintedOptions;
use crate::stream_graph::WindowSpec;

/// The hints that found their table, by the end of its name; shared by all binders of a statement.
#[derive(Debug, Clone, Default)]
pub(super) struct UsedHints(Rc<RefCell<HashSet<(u64, u64)>>>);

/// Where the name of a table ends: behind its last character, as hints are tied to it.
pub(super) fn name_end(name: &ObjectName) -> Location {
    let end = name.0.last().and_then(|part| part.as_ident()).map(|part| part.span.end);
    end.map_or(Location::default(), |end| Location { line: end.line, column: end.column })
}

impl Binder<'_> {
    /// A query of the statement, every hint in it used.
    pub(super) fn statement(&self, query: &Query) -> Result<LogicalPlan> {
        let plan = with_room(|| self.query(query))?;
        let Some(span) = span_of(query) else { return Ok(plan) };
        let used = self.used_hints.0.borrow();
        let unused = self.cx.hints.iter().find(|hint| {
            let end = hint.name_end;
            span.start <= end && end <= span.end && !used.contains(&(end.line, end.column))
        });
        match unused {
            None => Ok(plan),
            Some(hint) if hint.hint == "OPTIONS" => Err(Error::new(ErrorKind::Syntax, "OPTIONS stands behind no table")
                .with_hint("put the hint right behind the name of a table in FROM")
                .at(hint.span)),
            Some(hint) => Err(without_window(hint)),
        }
    }

    /// The options of a table with those of the hint behind its name put over them, checked by its connector.
    pub(super) fn options(&self, table: &CatalogTable, name_end: Location) -> Result<Options> {
        let Some(hint) = self.cx.hints.iter().find(|hint| hint.name_end == name_end) else {
            return Ok(table.options.clone());
        };
        self.used_hints.0.borrow_mut().insert((name_end.line, name_end.column));
        let mut hinted = table.clone();
        hinted.options.extend(hint.options.clone());
        let places = hint.options.iter().map(|(key, value)| (key.clone(), (value.clone(), hint.span))).collect();
        check_options(&hinted, self.cx.connectors, &places).map_err(|error| error.at(hint.span))?;
        Ok(hinted.options)
    }

    /// When the windows that a SELECT groups by show their results, as its hint EMIT says. `plan`: its aggregation.
    pub(super) fn emitting(&self, select: &ast::Select, plan: LogicalPlan) -> Result<LogicalPlan> {
        let end = select.select_token.0.span.end;
        let end = Location { line: end.line, column: end.column };
        let Some(hint) = self.cx.hints.iter().find(|hint| hint.name_end == end && hint.hint == "EMIT") else { return Ok(plan) };
        self.used_hints.0.borrow_mut().insert((end.line, end.column));
        let hinted = |window: &WindowSpec| {
            emit::hinted_strategy(&hint.options, self.cx.configuration, window.time_type.is_proctime())
                .map_err(|error| error.at(hint.span))
        };
        emit::in_windows(plan, &hinted)?.ok_or_else(|| without_window(hint))
    }

    /// The error for a hint behind the name of something that has no options.
    pub(super) fn refuse_hint(&self, name: &ObjectName, what: &str) -> Result<()> {
        let end = name_end(name);
        match self.cx.hints.iter().find(|hint| hint.name_end == end) {
            None => Ok(()),
            Some(hint) => Err(Error::new(ErrorKind::InvalidOption, format!("{what} takes no OPTIONS"))
                .with_hint("give them to the tables that it reads")
                .at(hint.span)),
        }
        .at_node(name)
    }
}

fn without_window(hint: &HintedOptions) -> Error {
    Error::new(ErrorKind::Syntax, format!("{} goes with a GROUP BY of a window", hint.hint))
        .with_hint("put it behind the SELECT that groups by TUMBLE, HOP, CUMULATE or SESSION")
        .at(hint.span)
}
