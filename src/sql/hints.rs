//! Hints, `/*+ … */`: they are comments to sqlparser, so they are found among the tokens and tied to the word before them.

use std::ops::Range;

use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::HintedOptions;
use super::cursor::{Cursor, is_word, location_of, span_of};
use super::dialect::FlinkDialect;
use super::lexer::{Script, hint_text};
use crate::catalog::Options;
use crate::error::{Error, ErrorKind, Location, Result, Span, nearest};

/// Query hints that only advise the planner: without effect on results, so they may be ignored.
const HARMLESS: &[&str] = &["BROADCAST", "MULTI_JOIN", "NEST_LOOP", "SHUFFLE_HASH", "SHUFFLE_MERGE"];

/// Query hints with options that change what a query does.
const WITH_OPTIONS: &[&str] = &["EMIT", "STATE_TTL"];

/// The query hint that names the table of late rows: `LATE_ROWS('t')`.
pub const LATE_ROWS: &str = "LATE_ROWS";

/// The hint behind the name of a table.
const OPTIONS: &str = "OPTIONS";

/// Query hints of Flink's that change what a query does.
const UNSUPPORTED: &[&str] = &["LOOKUP"];

/// The hints of a statement.
pub(super) struct Hints {
    /// Hints with options.
    pub with_options: Vec<HintedOptions>,
    /// Query hints that have no effect: name and place.
    pub idle: Vec<(String, Span)>,
}

/// The hints of a statement.
pub(super) fn collect(script: &Script, dialect: &FlinkDialect, range: Range<usize>) -> Result<Hints> {
    let mut hints = Hints { with_options: Vec::new(), idle: Vec::new() };
    let mut before: Option<&TokenWithSpan> = None;
    for token in &script.tokens[range] {
        if let Some(text) = hint_text(&token.token) {
            let span = span_of(token.span);
            // The text starts behind `/*+`.
            let origin = Location { line: span.start.line, column: span.start.column + 3 };
            match before.map(|token| &token.token) {
                Some(word) if is_word(word, "SELECT") => {
                    let select_end = before.map_or(origin, |token| location_of(token.span.end));
                    query_hints(text, dialect, origin, select_end, &mut hints)?;
                }
                Some(Token::Word(_)) => {
                    let name_end = before.map_or(origin, |token| location_of(token.span.end));
                    let options = table_hint(text, dialect, origin)?;
                    hints.with_options.push(HintedOptions { hint: OPTIONS, name_end, options, span });
                }
                _ => {
                    let error = Error::new(ErrorKind::Syntax, "misplaced hint").at(span);
                    return Err(error.with_hint("a hint stands behind SELECT or behind the name of a table"));
                }
            }
        } else if !matches!(token.token, Token::Whitespace(_)) {
            before = Some(token);
        }
    }
    Ok(hints)
}

/// `OPTIONS('k' = 'v', …)`.
fn table_hint(text: &str, dialect: &FlinkDialect, origin: Location) -> Result<Options> {
    within(text, dialect, origin, |parser| {
        let (name, span) = parser.identifier(OPTIONS)?;
        if !name.eq_ignore_ascii_case(OPTIONS) {
            return Err(unknown_hint(&name, span, &[OPTIONS]));
        }
        hinted_options(parser, span)
    })
}

/// `('k' = 'v', …)`.
fn hinted_options(parser: &mut Parser, span: Span) -> Result<Options> {
    let mut options = Options::new();
    for (key, value) in parser.list(|parser| {
        let (key, _) = parser.string("an option key in quotes")?;
        parser.require(&Token::Eq)?;
        Ok((key, parser.string("an option value in quotes")?.0))
    })? {
        if options.insert(key.clone(), value).is_some() {
            return Err(Error::new(ErrorKind::InvalidOption, format!("option '{key}' is given twice")).at(span));
        }
    }
    Ok(options)
}

/// `NAME(arguments), NAME(arguments)` behind SELECT.
fn query_hints(text: &str, dialect: &FlinkDialect, origin: Location, select_end: Location, hints: &mut Hints) -> Result<()> {
    within(text, dialect, origin, |parser| {
        loop {
            query_hint(parser, select_end, hints)?;
            if !parser.eat_token(&Token::Comma) && parser.at_token(&Token::EOF) {
                return Ok(());
            }
        }
    })
}

fn query_hint(parser: &mut Parser, select_end: Location, hints: &mut Hints) -> Result<()> {
    let (name, span) = parser.identifier("the name of a hint")?;
    let upper = name.to_uppercase();
    if UNSUPPORTED.contains(&upper.as_str()) {
        return Err(Error::unsupported(format!("the hint {upper}")).at(span));
    }
    if let Some(hint) = WITH_OPTIONS.iter().find(|known| **known == upper) {
        let options = hinted_options(parser, span)?;
        hints.with_options.push(HintedOptions { hint, name_end: select_end, options, span });
        return Ok(());
    }
    if upper == LATE_ROWS {
        parser.require(&Token::LParen)?;
        let (table, _) = parser.string("the name of a table in quotes")?;
        parser.require(&Token::RParen)?;
        let options = Options::from([("table".to_string(), table)]);
        hints.with_options.push(HintedOptions { hint: LATE_ROWS, name_end: select_end, options, span });
        return Ok(());
    }
    if !HARMLESS.contains(&upper.as_str()) {
        return Err(unknown_hint(&name, span, &[HARMLESS, WITH_OPTIONS, &[LATE_ROWS]].concat()));
    }
    if !parser.eat_token(&Token::LParen) || parser.at_token(&Token::RParen) {
        return Err(Error::new(ErrorKind::Syntax, format!("the hint {upper} names no table"))
            .with_hint(format!("name the tables that it is for: {upper}(t)"))
            .at(span));
    }
    hints.idle.push((upper, span));
    while !parser.eat_token(&Token::RParen) {
        if parser.at_token(&Token::EOF) {
            return Err(parser.unexpected("\")\""));
        }
        parser.advance_token();
    }
    Ok(())
}

fn unknown_hint(name: &str, span: Span, known: &[&'static str]) -> Error {
    let error = Error::new(ErrorKind::Syntax, format!("unknown hint \"{name}\"")).at(span);
    match nearest(name, known.iter().copied().chain([OPTIONS])) {
        Some(OPTIONS) if !known.contains(&OPTIONS) => {
            error.with_hint("OPTIONS stands behind the name of a table: FROM t /*+ OPTIONS('key' = 'value') */")
        }
        Some(near) => error.with_hint(format!("did you mean {near}?")),
        None => error.with_hint(format!("there are: {}", known.join(", "))),
    }
}

/// Parses the text of a hint, moved to where it stands in the script so that errors have their place.
fn within<T>(text: &str, dialect: &FlinkDialect, origin: Location, parse: impl FnOnce(&mut Parser) -> Result<T>) -> Result<T> {
    let (lines, columns) = (origin.line.saturating_sub(1) as usize, origin.column.saturating_sub(1) as usize);
    let moved = format!("{}{}{text}", "\n".repeat(lines), " ".repeat(columns));
    let inner = Script::new(&moved, dialect)?;
    let mut parser = inner.parser(dialect, inner.all());
    let result = parse(&mut parser)?;
    parser.end()?;
    Ok(result)
}
