//! The binder's state: the session's context, the common table expressions in view, and how deep views are nested.

use sqlparser::ast::Query;

use super::context::BindContext;
use super::hint::UsedHints;
use super::scope::Scope;
use super::view::ResolvedNames;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::LogicalPlan;
use crate::sql::HintedOptions;

/// How deep views may refer to views and queries be nested: deeper ones would exhaust the stack.
const MAX_DEPTH: usize = 64;

/// The binder's state. Cheap to clone: subqueries with their own WITH extend a copy.
#[derive(Clone)]
pub(super) struct Binder<'a> {
    /// The session.
    pub cx: BindContext<'a>,
    /// Common table expressions in view; later ones hide earlier ones of the same name.
    pub ctes: Vec<(String, LogicalPlan)>,
    /// The hints that found their table.
    pub used_hints: UsedHints,
    /// What the names of tables stand for.
    pub resolved_names: ResolvedNames,
    /// Nested queries and views around the one that is bound.
    depth: usize,
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
        Binder { cx: *cx, ctes: Vec::new(), used_hints: UsedHints::default(), resolved_names: ResolvedNames::default(), depth: 0 }
    }

    /// For a query inside of the one that is bound.
    pub fn nested(&self) -> Result<Self> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::new(ErrorKind::Unsupported, format!("queries nested deeper than {MAX_DEPTH} are not supported"))
                .with_hint("check whether a view refers to itself"));
        }
        Ok(Binder { depth: self.depth + 1, ..self.clone() })
    }

    /// For text that the catalog keeps, with its own hints: nothing of the statement around it is in view.
    pub fn for_text<'t>(&self, hints: &'t [HintedOptions]) -> Result<Binder<'t>>
    where
        'a: 't,
    {
        let depth = self.nested()?.depth;
        Ok(Binder { depth, ..Binder::new(&BindContext { hints, ..self.cx }) })
    }
}

/// A SELECT, VALUES or WITH as a plan.
pub fn bind_query(query: &Query, cx: &BindContext<'_>) -> Result<LogicalPlan> {
    Binder::new(cx).statement(query)
}
