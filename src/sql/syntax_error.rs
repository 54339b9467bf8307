//! sqlparser's errors as ours: with the token that was found, what was expected in few words, and the keyword that was meant.

use std::ops::Range;

use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location as SqlLocation, Token};

use super::cursor::{Cursor, is_word, span_of, unexpected_token};
use super::dialect::FlinkDialect;
use super::lexer::Script;
use crate::error::{Error, ErrorKind, Result, Span};

/// The keywords inside statements that are likely to be misspelt.
const CLAUSE_WORDS: &[&str] = &[
    "BETWEEN",
    "COMMENT",
    "CROSS",
    "DESCRIPTOR",
    "DISTINCT",
    "EXCEPT",
    "EXISTS",
    "FETCH",
    "FROM",
    "GROUP",
    "HAVING",
    "INNER",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NATURAL",
    "OFFSET",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PARTITIONED",
    "PRIMARY",
    "RIGHT",
    "SELECT",
    "TABLE",
    "UNION",
    "USING",
    "VALUES",
    "WATERMARK",
    "WHERE",
    "WITH",
];

/// sqlparser's error, raised while the tokens of `range` were parsed, as ours.
pub(super) fn lift(error: ParserError, script: &Script, dialect: &FlinkDialect, range: &Range<usize>, parser: &Parser) -> Error {
    let message = match error {
        ParserError::RecursionLimitExceeded => {
            let message = "statement nested too deeply";
            return Error::new(ErrorKind::Syntax, message).at(parser.next_span()).with_hint("split it with views or WITH");
        }
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
    };
    if let Some(error) = dialect.redeem(&message) {
        let start = error.span().map(|span| SqlLocation::new(span.start.line, span.start.column));
        let inner =
            start.and_then(|start| token_at(script, range, start)).and_then(|at| inside_subquery(script, dialect, range, at));
        return inner.unwrap_or_else(|| with_suggestion(error, script));
    }
    let (text, location) = split_location(&message);
    let location = location.filter(|_| !text.ends_with(", found: EOF"));
    let Some(index) = location.and_then(|location| token_at(script, range, location)) else {
        let error = match expected(text) {
            Some(expected) => unexpected_token(&script.end_token(range), &expected),
            None => Error::new(ErrorKind::Syntax, lower_first(text)).at(parser.next_span()),
        };
        return with_suggestion(error, script);
    };
    if let Some(error) = inside_subquery(script, dialect, range, index) {
        return error;
    }
    if let Some(error) = inside_match_recognize(script, range, index) {
        return error;
    }
    let found = &script.tokens[index];
    let error = match expected(text) {
        Some(expected) => unexpected_token(found, &expected),
        None => Error::new(ErrorKind::Syntax, lower_first(text)).at(span_of(found.span)),
    };
    with_suggestion(error, script)
}

/// Adds "did you mean" where the token of the error, or the one before it, is a misspelt keyword.
pub(super) fn with_suggestion(error: Error, script: &Script) -> Error {
    let Some(span) = error.span().filter(|_| error.hint().is_none() && error.kind() == ErrorKind::Syntax) else {
        return error;
    };
    let significant = |token: &&sqlparser::tokenizer::TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let found = script.tokens.iter().find(|token| span_of(token.span).start == span.start);
    if let Some(word) =
        found.and_then(|found| ["GROUP", "ORDER", "PARTITION"].into_iter().find(|word| is_word(&found.token, word)))
    {
        return error.with_hint(format!("{word} is followed by BY"));
    }
    let upto = script.tokens.partition_point(|token| span_of(token.span).start <= span.start);
    let candidates: Vec<&Token> =
        script.tokens[..upto].iter().rev().filter(significant).take(2).map(|token| &token.token).collect();
    match candidates.into_iter().find_map(misspelt) {
        Some((word, keyword)) => error.with_hint(format!("did you mean {keyword} instead of \"{word}\"?")),
        None => error,
    }
}

/// The keyword that a word is a slip of: one letter off, two in a long word.
fn misspelt(token: &Token) -> Option<(String, &'static str)> {
    let Token::Word(word) = token else { return None };
    let upper = word.value.to_uppercase();
    if word.quote_style.is_some() || upper.len() < 4 || CLAUSE_WORDS.iter().any(|keyword| is_word(token, keyword)) {
        return None;
    }
    let slips = if upper.len() >= 8 { 2 } else { 1 };
    let near = CLAUSE_WORDS.iter().find(|keyword| strsim::damerau_levenshtein(&upper, keyword) <= slips)?;
    Some((word.value.clone(), near))
}

/// `… at Line: 1, Column: 8` → the text before it and the location.
fn split_location(message: &str) -> (&str, Option<SqlLocation>) {
    let split = || {
        let (text, place) = message.rsplit_once(" at Line: ")?;
        let (line, column) = place.split_once(", Column: ")?;
        Some((text, SqlLocation::new(line.trim().parse().ok()?, column.trim().parse().ok()?)))
    };
    match split() {
        Some((text, location)) => (text, Some(location)),
        None => (message, None),
    }
}

/// The token of the statement that starts at a location.
fn token_at(script: &Script, range: &Range<usize>, location: SqlLocation) -> Option<usize> {
    let tokens = &script.tokens[range.clone()];
    let index = tokens.partition_point(|token| token.span.start < location);
    tokens.get(index).filter(|token| token.span.start == location).map(|_| range.start + index)
}

/// sqlparser reads `(SELECT` tentatively and forgets the error inside when it fails. If the token complained of opens a
/// subquery, the subquery is read again for its own error.
fn inside_subquery(script: &Script, dialect: &FlinkDialect, range: &Range<usize>, index: usize) -> Option<Error> {
    let opens = ["SELECT", "WITH", "VALUES"].iter().any(|word| is_word(&script.tokens[index].token, word));
    let before = script.tokens[range.start..index].iter().rfind(|token| !matches!(token.token, Token::Whitespace(_)))?;
    if !opens || before.token != Token::LParen {
        return None;
    }
    let inner = index..range.end;
    let mut parser = script.parser(dialect, inner.clone());
    let result: Result<()> = match parser.parse_query() {
        Ok(_) => parser.require(&Token::RParen),
        Err(error) => Err(lift(error, script, dialect, &inner, &parser)),
    };
    result.err().map(|error| with_suggestion(error, script))
}

/// sqlparser knows only some of MATCH_RECOGNIZE, which Flott does not have: that is what the user should hear.
fn inside_match_recognize(script: &Script, range: &Range<usize>, index: usize) -> Option<Error> {
    let before = &script.tokens[range.start..index];
    let opens = before.iter().rfind(|token| is_word(&token.token, "MATCH_RECOGNIZE"))?;
    Some(Error::unsupported("MATCH_RECOGNIZE").at(span_of(opens.span)))
}

/// `Expected: X, found: Y` → X in few words.
fn expected(text: &str) -> Option<String> {
    let (expected, _) = text.strip_prefix("Expected: ")?.rsplit_once(", found: ")?;
    Some(match expected {
        long if long.starts_with("[NOT] NULL") => "NULL, TRUE, FALSE, UNKNOWN, JSON or DISTINCT FROM".to_string(),
        "identifier" => "a name".to_string(),
        "table name" => "a table name".to_string(),
        "joined table" => "JOIN".to_string(),
        "ROWS, RANGE, GROUPS" => "PARTITION BY, ORDER BY, ROWS or RANGE".to_string(),
        "end of statement" => "the end of the statement".to_string(),
        "literal int" => "a whole number".to_string(),
        "literal string" => "a string".to_string(),
        "a concrete value" => "a literal".to_string(),
        "date/time field" => "a unit of time".to_string(),
        "SELECT, VALUES, or a subquery in the query body" => "SELECT, VALUES or a subquery".to_string(),
        list if list.starts_with("one of ") => list["one of ".len()..].split(" or ").take(4).collect::<Vec<_>>().join(" or "),
        symbol if symbol.chars().all(|c| c.is_ascii_punctuation()) => format!("\"{symbol}\""),
        long if long.len() > 60 => "something else".to_string(),
        short => short.to_string(),
    })
}

fn lower_first(text: &str) -> String {
    let mut chars = text.trim_end_matches('.').chars();
    chars.next().map(|first| first.to_lowercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}

/// The error that a leading word starts no statement, with the statement that was meant.
pub(super) fn unknown_statement(word: &str, statements: &[&'static str], span: Span) -> Error {
    let error = Error::new(ErrorKind::Syntax, format!("unexpected \"{word}\", expected a statement")).at(span);
    match crate::error::nearest(word, statements.iter().copied()) {
        Some(near) => error.with_hint(format!("did you mean {near}?")),
        None => error.with_hint("a statement starts with a word such as SELECT, INSERT, CREATE, EXPLAIN, SHOW or SET"),
    }
}
