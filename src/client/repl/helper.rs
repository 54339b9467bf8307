//! What the line editor knows of SQL: when a statement is whole, what a word may become, and how the line is coloured.

use std::borrow::Cow;
use std::sync::{Arc, RwLock};

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

use super::completion::complete;
use crate::client::known_names::KnownNames;
use crate::client::pieces::{PieceKind, is_complete, pieces};

/// The keywords that are coloured and completed.
pub const KEYWORDS: &[&str] = &[
    "ADD",
    "ALL",
    "ALTER",
    "AND",
    "ARRAY",
    "AS",
    "ASC",
    "BEGIN",
    "BETWEEN",
    "BIGINT",
    "BOOLEAN",
    "BY",
    "BYTES",
    "CALL",
    "CASE",
    "CAST",
    "CATALOG",
    "CATALOGS",
    "CHANGELOG_MODE",
    "COLUMNS",
    "COMMENT",
    "CREATE",
    "CROSS",
    "CURRENT",
    "DATABASE",
    "DATABASES",
    "DATE",
    "DAY",
    "DECIMAL",
    "DESC",
    "DESCRIBE",
    "DESCRIPTOR",
    "DISTINCT",
    "DOUBLE",
    "DROP",
    "ELSE",
    "END",
    "ENFORCED",
    "EXECUTE",
    "EXISTS",
    "EXPLAIN",
    "FALSE",
    "FILTER",
    "FLOAT",
    "FOR",
    "FROM",
    "FUNCTIONS",
    "GROUP",
    "HAVING",
    "HOP",
    "HOUR",
    "IF",
    "IN",
    "INNER",
    "INSERT",
    "INT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOB",
    "JOBS",
    "JOIN",
    "KEY",
    "LEFT",
    "LIKE",
    "LIMIT",
    "MAP",
    "METADATA",
    "MINUTE",
    "MONTH",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OPTIONS",
    "OR",
    "ORDER",
    "PARTITIONED",
    "PRIMARY",
    "RENAME",
    "REPLACE",
    "RESET",
    "RIGHT",
    "ROW",
    "SECOND",
    "SELECT",
    "SET",
    "SHOW",
    "SMALLINT",
    "STATEMENT",
    "STOP",
    "STRING",
    "TABLE",
    "TABLES",
    "TEMPORARY",
    "THEN",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP_LTZ",
    "TINYINT",
    "TRUE",
    "TRY_CAST",
    "TUMBLE",
    "UNION",
    "USE",
    "VALUES",
    "VARCHAR",
    "VIEW",
    "VIEWS",
    "VIRTUAL",
    "WATERMARK",
    "WHEN",
    "WHERE",
    "WITH",
    "YEAR",
];

/// The line editor's knowledge of SQL.
pub struct SqlHelper {
    names: Arc<RwLock<KnownNames>>,
    colours: bool,
}

impl SqlHelper {
    /// With names that others renew; `colours` off for terminals without.
    pub fn new(names: Arc<RwLock<KnownNames>>, colours: bool) -> Self {
        SqlHelper { names, colours }
    }
}

impl Completer for SqlHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let names = self.names.read().expect("no holder of this lock panics");
        let (start, candidates) = complete(&names, line, pos);
        Ok((start, candidates.into_iter().map(|name| Pair { display: name.clone(), replacement: name }).collect()))
    }
}

impl Hinter for SqlHelper {
    type Hint = String;
}

impl Validator for SqlHelper {
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        let input = context.input();
        let whole = input.trim_start().starts_with('\\') || is_client_command(input) || is_complete(input);
        Ok(if whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

/// Flink's client commands, which need no semicolon and may have one.
pub fn is_client_command(input: &str) -> bool {
    let word = input.trim().trim_end_matches(';').trim_end();
    ["quit", "exit", "clear", "help"].iter().any(|command| word.eq_ignore_ascii_case(command))
}

impl Highlighter for SqlHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if !self.colours {
            return Cow::Borrowed(line);
        }
        let mut coloured = String::with_capacity(line.len() * 2);
        for piece in pieces(line) {
            let text = &line[piece.start..piece.end];
            let colour = match piece.kind {
                PieceKind::Word if KEYWORDS.binary_search(&text.to_uppercase().as_str()).is_ok() => "\x1b[1;34m",
                PieceKind::String => "\x1b[32m",
                PieceKind::Number => "\x1b[36m",
                PieceKind::Comment => "\x1b[90m",
                PieceKind::QuotedName => "\x1b[33m",
                _ => "",
            };
            coloured.push_str(colour);
            coloured.push_str(text);
            if !colour.is_empty() {
                coloured.push_str("\x1b[0m");
            }
        }
        Cow::Owned(coloured)
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        self.colours
    }
}

impl Helper for SqlHelper {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted_for_the_search() {
        assert!(KEYWORDS.is_sorted());
    }

    #[test]
    fn client_commands_stand_alone_with_or_without_a_semicolon() {
        for command in ["quit", "QUIT;", " exit ; ", "CLEAR;;", "help;\n"] {
            assert!(is_client_command(command), "{command}");
        }
        for other in ["quit now;", "SELECT 1; QUIT;", "helper", ";"] {
            assert!(!is_client_command(other), "{other}");
        }
    }
}
