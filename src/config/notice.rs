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
}

impl Notice {
    /// A remark.
    pub fn new(message: impl Into<String>) -> Self {
        Notice { message: message.into(), span: None }
    }

    /// The same remark about a place.
    pub fn at(mut self, span: Option<Span>) -> Self {
        self.span = span;
        self
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
