//! The clauses of a window: its own, or those of the window that it names and extends.

use sqlparser::ast::{self, Expr as SqlExpr, NamedWindowExpr, WindowType};

use super::span::Located;
use crate::error::{Error, ErrorKind, Result};

/// How deep one named window may refer to another.
const NAMED_DEPTH_MAX: usize = 16;

/// What a window is put together from: its own clauses, or those of the window that it extends.
#[derive(Default)]
pub(super) struct WindowClauses<'e> {
    pub partition_by: &'e [SqlExpr],
    pub order_by: &'e [ast::OrderByExpr],
    pub frame: Option<&'e ast::WindowFrame>,
}

/// The clauses of a window; those of the window that it names come first.
pub(super) fn window_clauses<'e>(
    over: &'e WindowType,
    named: &'e [ast::NamedWindowDefinition],
    depth: usize,
) -> Result<WindowClauses<'e>> {
    let (base, spec) = match over {
        WindowType::NamedWindow(name) => (Some(name), None),
        WindowType::WindowSpec(spec) => (spec.window_name.as_ref(), Some(spec)),
    };
    let base = match base {
        Some(name) => named_clauses(name, named, depth)?,
        None => WindowClauses::default(),
    };
    let Some(spec) = spec else { return Ok(base) };
    Ok(extended(base, spec))
}

fn named_clauses<'e>(name: &ast::Ident, named: &'e [ast::NamedWindowDefinition], depth: usize) -> Result<WindowClauses<'e>> {
    let found = named.iter().find(|definition| definition.0.value == name.value).filter(|_| depth < NAMED_DEPTH_MAX);
    let Some(ast::NamedWindowDefinition(_, definition)) = found else {
        let error = Error::new(ErrorKind::InvalidArgument, format!("window \"{}\" not found", name.value));
        return Err(error
            .with_hint("define it: WINDOW w AS (PARTITION BY … ORDER BY …)")
            .at_span(super::query::ident_span(name)));
    };
    match definition {
        NamedWindowExpr::NamedWindow(other) => named_clauses(other, named, depth + 1),
        NamedWindowExpr::WindowSpec(spec) => {
            let base = match &spec.window_name {
                Some(other) => named_clauses(other, named, depth + 1)?,
                None => WindowClauses::default(),
            };
            Ok(extended(base, spec))
        }
    }
}

fn extended<'e>(base: WindowClauses<'e>, spec: &'e ast::WindowSpec) -> WindowClauses<'e> {
    let ast::WindowSpec { window_name: _, partition_by, order_by, window_frame } = spec;
    WindowClauses {
        partition_by: if partition_by.is_empty() { base.partition_by } else { partition_by },
        order_by: if order_by.is_empty() { base.order_by } else { order_by },
        frame: window_frame.as_ref().or(base.frame),
    }
}
