//! sqlparser's errors as ours: with the token that was found, what was expected in few words, and the keyword that was meant.

use std::ops::Range;

use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location as SqlLocation, Token, TokenWithSpan};

use super::cursor::{Cursor, is_word, span_of, unexpected_token};
use super::dialect::{CLAUSES, FlinkDialect};
use super::foreign::{self, is_blank};
use super::lexer::Script;
use crate::error::{Error, ErrorKind, Result, Span, nearest};

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
            // Where it names a place that is not the end, the parser stands in front of what it cannot read.
            Some(expected) if !text.starts_with("Expected: ") => unexpected_token(parser.peek_token_ref(), &expected),
            Some(expected) => unexpected_token(&script.end_token(range), &expected),
            None => Error::new(ErrorKind::Syntax, lower_first(text)).at(parser.next_span()),
        };
        return with_suggestion(error, script);
    };
    if let Some(error) = inside_subquery(script, dialect, range, index) {
        return error;
    }
    if let Some(error) = inside_match_recognize(script, range, index).or_else(|| not_there(text, &script.tokens[index])) {
        return error;
    }
    let found = &script.tokens[index];
    let error = match expected(text) {
        Some(expected) => unexpected_token(found, &expected),
        None => Error::new(ErrorKind::Syntax, lower_first(text)).at(span_of(found.span)),
    };
    with_suggestion(error, script)
}

/// Adds what was probably meant to an error that has no hint yet.
pub(super) fn with_suggestion(error: Error, script: &Script) -> Error {
    let Some(span) = error.span().filter(|_| error.hint().is_none() && error.kind() == ErrorKind::Syntax) else {
        return error;
    };
    let tokens = &script.tokens[..];
    let from_there = |token: &TokenWithSpan| !is_blank(&token.token) && span_of(token.span).start >= span.start;
    let at = tokens.iter().position(from_there).unwrap_or(tokens.len());
    match suggestion(&error, tokens, at) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// What was meant by the token number `at`, at which nothing fits.
fn suggestion(error: &Error, tokens: &[TokenWithSpan], at: usize) -> Option<String> {
    let expected = error.message().split_once(", expected ").map_or("", |(_, expected)| expected);
    let before = (0..at).rev().find(|index| !is_blank(&tokens[*index].token));
    tokens
        .get(at)
        .and_then(|found| keyword_hint(&found.token, expected))
        .or_else(|| foreign::hint(tokens, at).map(str::to_string))
        .or_else(|| misspelt_hint(tokens, before, at))
        .or_else(|| before.filter(|before| lacks_comma(expected, tokens, *before, at)).map(|_| comma_hint(&tokens[at].token)))
}

/// What a keyword lacks, or which keyword of those that were expected is meant.
fn keyword_hint(found: &Token, expected: &str) -> Option<String> {
    let Token::Word(word) = found else { return None };
    if word.quote_style.is_some() {
        return None;
    }
    if expected.ends_with(" name") && is_clause_word(found) {
        let word = word.value.to_uppercase();
        return Some(format!("{word} is a reserved word: put it in back-ticks to use it as a name"));
    }
    if let Some(word) = ["GROUP", "ORDER", "PARTITION"].into_iter().find(|word| is_word(found, word)) {
        return Some(format!("{word} is followed by BY"));
    }
    let near = nearest(&word.value, keywords_of(expected)).filter(|near| !is_word(found, near))?;
    Some(format!("did you mean {near} instead of \"{}\"?", word.value))
}

/// The keyword that was meant by the word at this place, or by the one before it: that was taken for an alias, which stands behind a
/// name or a parenthesis.
fn misspelt_hint(tokens: &[TokenWithSpan], before: Option<usize>, at: usize) -> Option<String> {
    let alias = before.filter(|before| may_end_item(tokens, *before));
    let candidates = [tokens.get(at), alias.and_then(|alias| tokens.get(alias))];
    let (word, keyword) = candidates.into_iter().flatten().find_map(|token| misspelt(&token.token))?;
    Some(format!("did you mean {keyword} instead of \"{word}\"?"))
}

fn comma_hint(found: &Token) -> String {
    match found {
        Token::Word(word) => format!("is a comma missing before \"{}\"?", word.value),
        literal => format!("is a comma missing before {literal}?"),
    }
}

/// The keywords in a list of what was expected.
fn keywords_of(expected: &str) -> impl Iterator<Item = &str> {
    let words = expected.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
}

fn is_clause_word(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && CLAUSES.contains(&word.keyword))
}

/// Whether an alias stands at `index`: what is before it ends an item of a list, a table or a subquery.
fn may_end_item(tokens: &[TokenWithSpan], index: usize) -> bool {
    let before = tokens[..index].iter().rfind(|token| !is_blank(&token.token));
    before.is_some_and(|before| ends_item(&before.token))
}

fn ends_item(token: &Token) -> bool {
    match token {
        Token::Word(_) => !is_clause_word(token) && !is_word(token, "DISTINCT"),
        Token::Number(..) | Token::SingleQuotedString(_) | Token::RParen | Token::RBracket | Token::Mul => true,
        _ => false,
    }
}

/// Whether items of a list stand side by side.
fn lacks_comma(expected: &str, tokens: &[TokenWithSpan], before: usize, at: usize) -> bool {
    let begins_item = match tokens.get(at).map(|found| &found.token) {
        Some(found @ Token::Word(_)) => !is_clause_word(found),
        Some(Token::Number(..) | Token::SingleQuotedString(_)) => true,
        _ => false,
    };
    let in_list =
        expected.contains("\",\"") || expected == "\")\"" || (expected == "the end of the statement" && follows_list(tokens, at));
    begins_item && in_list && before + 1 < at && ends_item(&tokens[before].token)
}

/// Whether the list of SELECT or BY is what was read last.
fn follows_list(tokens: &[TokenWithSpan], at: usize) -> bool {
    let mut depth = 0;
    for token in tokens[..at].iter().rev() {
        match &token.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return false,
            Token::LParen => depth -= 1,
            token if depth == 0 && ["SELECT", "BY"].iter().any(|word| is_word(token, word)) => return true,
            token if depth == 0 && is_clause_word(token) && !is_word(token, "AS") => return false,
            _ => {}
        }
    }
    false
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

/// Standard SQL that sqlparser stumbles over and Flott does not have.
fn not_there(text: &str, found: &TokenWithSpan) -> Option<Error> {
    let unsupported = |what: String| Some(Error::unsupported(what).at(span_of(found.span)));
    if text.starts_with("No infix parser for token") {
        return unsupported(format!("the operator {}", found.token));
    }
    if is_word(&found.token, "EXCLUDE") && text.starts_with("Expected: ), ") {
        return unsupported("EXCLUDE in a frame of OVER".to_string());
    }
    if is_word(&found.token, "SYSTEM_TIME") {
        return unsupported("FOR SYSTEM_TIME".to_string());
    }
    None
}

/// `Expected: X, found: Y` → X in few words.
fn expected(text: &str) -> Option<String> {
    if text.ends_with(" after LEFT") || text.ends_with(" after RIGHT") {
        return Some("OUTER or JOIN".to_string());
    }
    if text == "Expected 'FROM' or ','" {
        return Some("a unit of time and FROM".to_string());
    }
    let (expected, _) = text.strip_prefix("Expected: ")?.rsplit_once(", found: ")?;
    Some(match expected {
        "APPLY" => "LEFT, RIGHT or FULL in front of OUTER".to_string(),
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
    match nearest(word, statements.iter().copied()) {
        Some(near) => error.with_hint(format!("did you mean {near}?")),
        None => {
            let usual = "a statement starts with a word such as SELECT, INSERT, CREATE, EXPLAIN, SHOW or SET";
            error.with_hint(foreign::statement_hint(word).unwrap_or(usual))
        }
    }
}
