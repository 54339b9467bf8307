//! Places: from sqlparser's spans (whose end lies behind the last character) to ours (whose end is the last character).

use sqlparser::ast::Spanned;

use crate::error::{Error, Location, Result, Span};

/// The place of a node, if the parser kept it.
pub(super) fn span_of(node: &impl Spanned) -> Option<Span> {
    convert(node.span())
}

/// A place of sqlparser's; none when it is unknown.
pub(super) fn convert(span: sqlparser::tokenizer::Span) -> Option<Span> {
    if span.start.line == 0 {
        return None;
    }
    let location = |at: sqlparser::tokenizer::Location| Location { line: at.line, column: at.column };
    let (start, mut end) = (location(span.start), location(span.end));
    end.column = end.column.saturating_sub(1);
    Some(Span { start, end: end.max(start) })
}

/// Adds a place to an error.
pub(super) trait Located {
    /// Adds the place of this node, unless a narrower one is known.
    fn at_node(self, node: &impl Spanned) -> Self;

    /// Adds this place, if it is known and no narrower one is.
    fn at_span(self, span: Option<Span>) -> Self;
}

impl Located for Error {
    fn at_node(self, node: &impl Spanned) -> Self {
        // The span of a deep tree takes a walk through it: not for nothing.
        if self.span().is_some() { self } else { self.at_span(span_of(node)) }
    }

    fn at_span(self, span: Option<Span>) -> Self {
        match span {
            Some(span) => self.at(span),
            None => self,
        }
    }
}

impl<T> Located for Result<T> {
    fn at_node(self, node: &impl Spanned) -> Self {
        self.map_err(|error| error.at_node(node))
    }

    fn at_span(self, span: Option<Span>) -> Self {
        self.map_err(|error| error.at_span(span))
    }
}
