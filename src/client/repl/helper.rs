//! What the line editor knows of SQL: when a statement is whole, what a word may become, and how the line is coloured.

use std::borrow::Cow;
use std::sync::{Arc, RwLock};

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

use super::lexer::{PieceKind, is_complete, pieces};

/// Names that can be completed; the session renews them after each statement.
#[derive(Debug, Clone, Default)]
pub struct KnownNames {
    /// Tables and views.
    pub tables: Vec<String>,
    /// Columns, each with its table.
    pub columns: Vec<(String, String)>,
    /// Functions.
    pub functions: Vec<String>,
    /// Keys of SET.
    pub settings: Vec<String>,
}

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

    /// Everything that `word` can become; after `table.` only that table's columns.
    fn candidates(&self, word: &str, table: Option<&str>) -> Vec<String> {
        let names = self.names.read().expect("no holder of this lock panics");
        let lower = word.to_lowercase();
        let fits = |name: &str| name.to_lowercase().starts_with(&lower);
        let mut found: Vec<String> = Vec::new();
        if let Some(table) = table {
            found.extend(names.columns.iter().filter(|(owner, name)| owner == table && fits(name)).map(|(_, name)| name.clone()));
        } else {
            found.extend(names.tables.iter().filter(|name| fits(name)).cloned());
            found.extend(names.columns.iter().map(|(_, name)| name).filter(|name| fits(name)).cloned());
            if !word.is_empty() {
                found.extend(KEYWORDS.iter().filter(|name| fits(name)).map(|name| in_case_of(name, word)));
                found.extend(names.functions.iter().filter(|name| fits(name)).map(|name| in_case_of(name, word)));
            }
        }
        found.sort();
        found.dedup();
        found
    }
}

/// A keyword or function in the case that the user types.
fn in_case_of(name: &str, word: &str) -> String {
    if word.chars().any(char::is_lowercase) { name.to_lowercase() } else { name.to_string() }
}

/// Back-ticks around a name that needs them.
fn quoted_if_needed(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
        && name.chars().next().is_some_and(|c| !c.is_ascii_digit());
    if plain { name.to_string() } else { format!("`{}`", name.replace('`', "``")) }
}

impl Completer for SqlHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = pieces(&line[..pos]);
        let text = |piece: &super::lexer::Piece| &line[piece.start..piece.end];
        let last = typed.last();
        if let Some(open) = last.filter(|piece| piece.kind == PieceKind::String && !piece.closed) {
            let prefix = &line[open.start + 1..pos];
            let names = self.names.read().expect("no holder of this lock panics");
            let keys = names.settings.iter().filter(|key| key.starts_with(prefix));
            return Ok((open.start + 1, keys.map(|key| Pair { display: key.clone(), replacement: key.clone() }).collect()));
        }
        let (word, start, before) = match last {
            Some(piece) if piece.kind == PieceKind::Word => (text(piece), piece.start, typed.len() - 1),
            _ => ("", pos, typed.len()),
        };
        let dotted = before >= 2 && text(&typed[before - 1]) == ".";
        let table = dotted.then(|| text(&typed[before - 2]).trim_matches('`'));
        let candidates = self.candidates(word, table);
        let pairs = candidates.into_iter().map(|name| Pair { replacement: quoted_if_needed(&name), display: name }).collect();
        Ok((start, pairs))
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

/// Flink's client commands need no semicolon.
pub fn is_client_command(input: &str) -> bool {
    ["quit", "exit", "clear", "help"].iter().any(|command| input.trim().eq_ignore_ascii_case(command))
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
    use rustyline::history::DefaultHistory;

    use super::*;

    fn complete(line: &str) -> Vec<String> {
        let names = KnownNames {
            tables: vec!["bids".into(), "my table".into()],
            columns: vec![("bids".into(), "price".into()), ("my table".into(), "prize".into())],
            functions: vec!["PROCTIME".into()],
            settings: vec!["parallelism.default".into()],
        };
        let helper = SqlHelper::new(Arc::new(RwLock::new(names)), false);
        let history = DefaultHistory::new();
        let (_, pairs) = helper.complete(line, line.len(), &Context::new(&history)).unwrap();
        pairs.into_iter().map(|pair| pair.replacement).collect()
    }

    #[test]
    fn keywords_are_sorted_for_the_search() {
        assert!(KEYWORDS.is_sorted());
    }

    #[test]
    fn words_become_names_keywords_and_functions_in_the_case_typed() {
        assert_eq!(complete("SELECT pr"), ["price", "primary", "prize", "proctime"]);
        assert_eq!(complete("SELECT * FROM my"), ["`my table`"]);
    }

    #[test]
    fn after_a_table_come_its_columns() {
        assert_eq!(complete("SELECT bids.p"), ["price"]);
        assert_eq!(complete("SELECT bids."), ["price"]);
    }

    #[test]
    fn in_a_string_come_settings() {
        assert_eq!(complete("SET 'par"), ["parallelism.default"]);
    }
}
