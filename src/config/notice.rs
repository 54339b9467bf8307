//! What the user should know although nothing is wrong: an option without effect, a value that was adapted.

use std::fmt;

use crate::error::Span;

/// A remark about a statement that was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The remark: lower case, no full stop.
    pub message: String,
    /// What it is about, in the text of the statement.
    pub span: Option<Span>,
    /// Whether something is likely to go wrong, sooner or later.
    pub is_warning: bool,
}

impl Notice {
    /// A remark.
    pub fn new(message: impl Into<String>) -> Self {
        Notice { message: message.into(), span: None, is_warning: false }
    }

    /// A warning about a place.
    pub fn warning(message: impl Into<String>, span: Span) -> Self {
        Notice { message: message.into(), span: Some(span), is_warning: true }
    }

    /// The same remark about a place.
    pub fn at(mut self, span: Option<Span>) -> Self {
        self.span = span;
        self
    }
}

/// As it is shown: `notice: …`, `warning: line 3, column 1: …`.
impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.span.filter(|_| self.is_warning) {
            Some(span) => write!(f, "warning: line {}, column {}: {}", span.start.line, span.start.column, self.message),
            None => write!(f, "notice: {}", self.message),
        }
    }
}
