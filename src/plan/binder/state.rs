//! The binder's state: the session's context, the common table expressions in view, and how deep views are nested.

use std::cell::Cell;
use std::rc::Rc;

use sqlparser::ast::Query;

use super::context::BindContext;
use super::hint::{HintedTtls, UsedHints};
use super::outer::Frame;
use super::scope::Scope;
use super::view::ResolvedNames;
use crate::catalog::ObjectPath;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::LogicalPlan;
use crate::sql::HintedOptions;

/// How deep views may refer to views and queries be nested: deeper ones would exhaust the stack.
const MAX_DEPTH: usize = 64;

/// Names in FROM of a statement, and nodes of a plan that one of them stands for, at most.
const NAMES_MAX: usize = 10_000;

/// The binder's state. Cheap to clone: subqueries with their own WITH extend a copy.
#[derive(Clone)]
pub(super) struct Binder<'a> {
    /// The session.
    pub cx: BindContext<'a>,
    /// Common table expressions in view; later ones hide earlier ones of the same name.
    pub ctes: Vec<(String, Rc<LogicalPlan>)>,
    /// The names of the queries around the one that is bound, the innermost last.
    pub outers: Vec<Rc<Frame>>,
    /// The hints that found their table.
    pub used_hints: UsedHints,
    /// How long the SELECT that is bound wants state to be kept.
    pub state_ttls: Option<Rc<HintedTtls>>,
    /// What the names of tables stand for.
    pub resolved_names: ResolvedNames,
    /// The views whose text is bound, or will be once they are defined: none may refer to itself.
    pub views: Rc<Vec<ObjectPath>>,
    /// Nested queries and views around the one that is bound.
    depth: usize,
    /// Names in FROM so far, those inside of views included; shared by all binders of a statement.
    names: Rc<Cell<usize>>,
}

/// A plan with the names of its columns: an item of FROM.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    /// The plan.
    pub plan: LogicalPlan,
    /// Names for its columns.
    pub scope: Scope,
}

impl<'a> Binder<'a> {
    /// For a statement.
    pub fn new(cx: &BindContext<'a>) -> Self {
        Binder {
            cx: *cx,
            ctes: Vec::new(),
            outers: Vec::new(),
            used_hints: UsedHints::default(),
            state_ttls: None,
            resolved_names: ResolvedNames::default(),
            views: Rc::default(),
            depth: 0,
            names: Rc::default(),
        }
    }

    /// For a query inside of the one that is bound.
    pub fn nested(&self) -> Result<Self> {
        if self.depth >= MAX_DEPTH {
            let error = Error::unsupported(format!("a query nested deeper than {MAX_DEPTH}"));
            return Err(error.with_hint("split it: write a part of it to a table"));
        }
        Ok(Binder { depth: self.depth + 1, ..self.clone() })
    }

    /// For the text of a view, with its own hints: nothing of the statement around it is in view.
    pub fn for_view<'t>(&self, path: &ObjectPath, hints: &'t [HintedOptions]) -> Result<Binder<'t>>
    where
        'a: 't,
    {
        let depth = self.nested()?.depth;
        let names = Rc::clone(&self.names);
        let views = Rc::new(self.views.iter().chain([path]).cloned().collect());
        Ok(Binder { depth, names, views, ..Binder::new(&BindContext { hints, ..self.cx }) })
    }

    /// Fails if this is a view whose text is being bound.
    pub fn refuse_cycle(&self, path: &ObjectPath) -> Result<()> {
        if !self.views.contains(path) {
            return Ok(());
        }
        let error = Error::new(ErrorKind::InvalidArgument, format!("view {path} refers to itself"));
        Err(error.with_hint("read from a table or another view in its query"))
    }

    /// Counts a name in FROM. A view stands for its whole query each time that it is named, so that a few that name each other twice
    /// make a plan that no memory holds.
    pub fn count_name(&self) -> Result<()> {
        self.names.set(self.names.get() + 1);
        if self.names.get() > NAMES_MAX { Err(too_large("names in FROM, those inside of views included,")) } else { Ok(()) }
    }

    /// The plan of a common table expression, which stands for all of it each time that it is named.
    pub fn copy_of(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        if plan.node_count() > NAMES_MAX {
            return Err(too_large("steps in a common table expression, counted as often as they are used,"));
        }
        Ok(plan.clone())
    }
}

fn too_large(what: &str) -> Error {
    Error::unsupported(format!("more than {NAMES_MAX} {what}")).with_hint("write a part of the query to a table, and read that")
}

/// A SELECT, VALUES or WITH as a plan.
pub fn bind_query(query: &Query, cx: &BindContext<'_>) -> Result<LogicalPlan> {
    Binder::new(cx).statement(query)
}
