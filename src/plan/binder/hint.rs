//! Hints with options. `t /*+ OPTIONS('k' = 'v') */`: put over the options of the table whose name they stand behind.
//! `SELECT /*+ EMIT('k' = 'v') */`: when the windows that the query groups by show their results. A hint that stands behind anything
//! else is an error. `SELECT /*+ STATE_TTL('t' = '1 d') */`: how long this SELECT keeps what comes right from `t`,
//! a table, view or alias of its FROM.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use sqlparser::ast::{self, ObjectName, Query};

use super::scope::{Scope, ScopeColumn};
use super::span::{Located, span_of};
use super::state::Binder;
use crate::catalog::{CatalogTable, Options, check_options};
use crate::config::{STATE_TTL, parse_duration_ms};
use crate::error::{Error, ErrorKind, Location, Result, Span};
use crate::plan::stack::with_room;
use crate::plan::{JoinType, LogicalPlan, emit};
use crate::sql::{HintedOptions, LATE_ROWS};
use crate::stream_graph::WindowSpec;

/// The times to live that a SELECT hints: by table, view or alias, in milliseconds.
#[derive(Debug)]
pub(super) struct HintedTtls {
    of: Vec<(String, u64)>,
    span: Span,
}

/// Whether a column is one of the relation of this name: its alias, its last or its full name.
fn is_named(column: &ScopeColumn, name: &str) -> bool {
    column.relation.last().is_some_and(|last| last == name) || column.relation.join(".") == name
}

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
        // That of late rows speaks of all of the statement.
        let unused = self.cx.hints.iter().filter(|hint| hint.hint != LATE_ROWS).find(|hint| {
            let end = hint.name_end;
            span.start <= end && end <= span.end && !used.contains(&(end.line, end.column))
        });
        match unused {
            None => Ok(plan),
            Some(hint) if hint.hint == "OPTIONS" => Err(Error::new(ErrorKind::Syntax, "OPTIONS stands behind no table")
                .with_hint("put the hint right behind the name of a table in FROM")
                .at(hint.span)),
            Some(hint) if hint.hint == "STATE_TTL" => Err(Error::unsupported("STATE_TTL in this place").at(hint.span)),
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

    /// The binder for the clauses of a SELECT, with the times to live that it hints; none = this one.
    pub(super) fn for_hints_of(&self, select: &ast::Select) -> Result<Option<Self>> {
        if self.state_ttls.is_none() && self.cx.hints.iter().all(|hint| hint.hint != "STATE_TTL") {
            return Ok(None);
        }
        let end = select.select_token.0.span.end;
        let end = Location { line: end.line, column: end.column };
        let hint = self.cx.hints.iter().find(|hint| hint.hint == "STATE_TTL" && hint.name_end == end);
        let ttls = match hint {
            None => None,
            Some(hint) => {
                self.used_hints.0.borrow_mut().insert((end.line, end.column));
                let ttl = |(name, text): (&String, &String)| {
                    STATE_TTL.check(text).map_err(|error| error.at(hint.span))?;
                    Ok((name.clone(), parse_duration_ms(text).unwrap_or_default()))
                };
                Some(Rc::new(HintedTtls { of: hint.options.iter().map(ttl).collect::<Result<_>>()?, span: hint.span }))
            }
        };
        let mut binder = self.clone();
        binder.state_ttls = ttls;
        Ok(Some(binder))
    }

    /// Fails if a time to live is hinted for something that FROM does not have.
    pub(super) fn check_state_ttl(&self, from: &Scope) -> Result<()> {
        let Some(hinted) = &self.state_ttls else { return Ok(()) };
        let relations = || from.columns.iter().filter_map(|column| column.relation.last());
        let Some((unknown, _)) = hinted.of.iter().find(|(name, _)| !from.columns.iter().any(|column| is_named(column, name)))
        else {
            return Ok(());
        };
        let mut known: Vec<&str> = relations().map(String::as_str).collect();
        known.dedup();
        Err(Error::new(ErrorKind::InvalidOption, format!("STATE_TTL names \"{unknown}\", which FROM does not have"))
            .with_hint(format!("there are: {}", known.join(", ")))
            .at(hinted.span))
    }

    /// How long state of what a scope holds is kept: where a hint names the one relation that it is.
    pub(super) fn hinted_ttl(&self, scope: &Scope) -> Option<u64> {
        let hinted = self.state_ttls.as_ref()?;
        let is_it = |name: &str| !scope.columns.is_empty() && scope.columns.iter().all(|column| is_named(column, name));
        let (_, ttl) = hinted.of.iter().find(|(name, _)| is_it(name))?;
        Some(*ttl)
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

/// What is made of a plan, with the time to live of its rows in the joins with subqueries that stand above it now.
pub(super) fn with_hint(
    ttl: Option<u64>,
    plan: LogicalPlan,
    f: impl FnOnce(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<LogicalPlan> {
    let Some(ttl) = ttl else { return f(plan) };
    let before = plan.clone();
    let mut plan = f(plan)?;
    hint_subqueries(&mut plan, ttl, &before);
    Ok(plan)
}

/// The joins with subqueries above a plan keep its rows for so long. All that stands above it was made of subqueries.
fn hint_subqueries(plan: &mut LogicalPlan, hinted: u64, before: &LogicalPlan) {
    if plan == before {
        return;
    }
    match plan {
        LogicalPlan::Join { left, join_type: JoinType::Semi | JoinType::Anti | JoinType::Left, ttl, .. } => {
            ttl[0] = Some(hinted);
            hint_subqueries(left, hinted, before);
        }
        LogicalPlan::ScalarJoin { left, ttl, .. } => {
            *ttl = Some(hinted);
            hint_subqueries(left, hinted, before);
        }
        LogicalPlan::Filter { input, .. } | LogicalPlan::Project { input, .. } => hint_subqueries(input, hinted, before),
        // With and without a partner, each of the same rows.
        LogicalPlan::Union { inputs, .. } => inputs.iter_mut().for_each(|input| hint_subqueries(input, hinted, before)),
        _ => {}
    }
}

/// The aggregation that a plan is keeps a group without new rows for so long.
pub(super) fn hint_aggregate(plan: &mut LogicalPlan, hinted: Option<u64>) {
    match plan {
        LogicalPlan::Aggregate { ttl, .. } => *ttl = hinted,
        LogicalPlan::Filter { input, .. } | LogicalPlan::Project { input, .. } => hint_aggregate(input, hinted),
        _ => {}
    }
}

/// A table whose changes come by key keeps a key without changes for so long.
pub(super) fn hint_changes(plan: &mut LogicalPlan, hinted: Option<u64>) {
    if let LogicalPlan::ChangelogNormalize { ttl, .. } = plan {
        *ttl = hinted;
    }
}

fn without_window(hint: &HintedOptions) -> Error {
    Error::new(ErrorKind::Syntax, format!("{} goes with a GROUP BY of a window", hint.hint))
        .with_hint(
            "put it behind the SELECT that groups by TUMBLE, HOP, CUMULATE or SESSION; what groups by its bounds follows it",
        )
        .at(hint.span)
}
