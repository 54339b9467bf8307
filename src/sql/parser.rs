//! The entry points of the parser and what all statement parsers share: queries, expressions with their text, options, errors.

use std::collections::BTreeMap;
use std::ops::Range;

use sqlparser::ast::{Expr as SqlExpr, Query, SetExpr};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::cursor::{Cursor, span_of};
use super::dialect::FlinkDialect;
use super::lexer::Script;
use super::{Name, ParsedStatement, Statement, hints, syntax_error};
use crate::config::{QUOTED_IDENTIFIERS, parse_boolean};
use crate::error::{Error, ErrorKind, Result, Span};

/// How text is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct ParseOptions {
    /// Whether `"x"` is an identifier (Flink refuses it).
    pub double_quoted_identifiers: bool,
}

/// The statements of a script. Spans count from its start.
pub fn parse_script(text: &str, options: &ParseOptions) -> Result<Vec<ParsedStatement>> {
    let mut parsed: Vec<ParsedStatement> = Vec::new();
    let mut quoted = options.double_quoted_identifiers;
    loop {
        // The script is cut anew when a statement changes what a double quote means.
        let dialect = FlinkDialect::new(quoted);
        let script = Script::new(text, &dialect)?;
        let before = quoted;
        for range in script.statements().into_iter().skip(parsed.len()) {
            let statement = statement(&script, &dialect, range)?;
            quoted = quoted_identifiers_after(&statement.statement).unwrap_or(quoted);
            parsed.push(statement);
            if quoted != before {
                break;
            }
        }
        if quoted == before {
            return Ok(parsed);
        }
    }
}

/// What a statement makes of double quotes in the statements after it; none = it does not touch them.
fn quoted_identifiers_after(statement: &Statement) -> Option<bool> {
    let is_key = |key: &str| key.trim() == QUOTED_IDENTIFIERS.key;
    match statement {
        Statement::Set { assignment: Some((key, value)), .. } if is_key(key) => parse_boolean(value),
        Statement::Reset { key, .. } if key.as_deref().is_none_or(is_key) => parse_boolean(QUOTED_IDENTIFIERS.default),
        _ => None,
    }
}

/// A single statement, with or without its semicolon.
pub fn parse_statement(text: &str, options: &ParseOptions) -> Result<ParsedStatement> {
    let mut statements = parse_script(text, options)?.into_iter();
    let first = statements.next().ok_or_else(|| Error::new(ErrorKind::Syntax, "empty statement"))?;
    match statements.next() {
        Some(_) => Err(Error::new(ErrorKind::Syntax, "more than one statement").with_hint("run them one by one or as a script")),
        None => Ok(first),
    }
}

/// An expression that the catalog kept as text: a computed column, a watermark.
pub fn parse_expression(text: &str) -> Result<SqlExpr> {
    whole(text, |parser| parser.expression())
}

/// A query that the catalog kept as text: a view.
pub fn parse_query(text: &str) -> Result<Box<Query>> {
    whole(text, |parser| parser.query())
}

/// The name of a table, as a setting gives it.
pub fn parse_name(text: &str) -> Result<Name> {
    whole(text, |parser| parser.p.name("a table name"))
}

/// Parses all of a kept text. `"x"` is a name in it: had it not been, the text would not have been kept.
fn whole<T>(text: &str, parse: impl FnOnce(&mut StatementParser) -> Result<T>) -> Result<T> {
    let dialect = FlinkDialect::new(true);
    let script = Script::new(text, &dialect).map_err(|error| error.with_sql(text))?;
    let mut parser = StatementParser::new(&script, &dialect, script.all());
    let result = parse(&mut parser).and_then(|result| parser.end().map(|()| result));
    result.map_err(|error| error.with_sql(text))
}

fn statement(script: &Script, dialect: &FlinkDialect, range: Range<usize>) -> Result<ParsedStatement> {
    let mut parser = StatementParser::new(script, dialect, range.clone());
    let span = parser.span_of_all();
    let place = parser.p.next_span();
    let hints = hints::collect(script, dialect, range)?;
    let statement = parser.statement()?;
    parser.end()?;
    let hints::Hints { with_options: hints, idle: idle_hints } = hints;
    Ok(ParsedStatement { statement, sql: script.slice(span).to_string(), place, range: script.bytes(span), hints, idle_hints })
}

/// Parses one statement.
pub(super) struct StatementParser<'s, 'd> {
    /// The tokens of the statement.
    pub p: Parser<'d>,
    /// The script around it.
    pub script: &'s Script<'s>,
    dialect: &'d FlinkDialect,
    range: Range<usize>,
}

impl<'s, 'd> StatementParser<'s, 'd> {
    fn new(script: &'s Script<'s>, dialect: &'d FlinkDialect, range: Range<usize>) -> Self {
        StatementParser { p: script.parser(dialect, range.clone()), script, dialect, range }
    }

    /// From the first to the last token.
    fn span_of_all(&self) -> Span {
        let tokens = &self.script.tokens[self.range.clone()];
        let mut significant = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
        let first = significant.next().map_or(self.p.next_span(), |token| span_of(token.span));
        let last = significant.next_back().map_or(first, |token| span_of(token.span));
        Span { start: first.start, end: last.end }
    }

    /// sqlparser's error as ours.
    pub fn lift(&self, error: ParserError) -> Error {
        syntax_error::lift(error, self.script, self.dialect, &self.range, &self.p)
    }

    /// Fails unless all is read.
    fn end(&self) -> Result<()> {
        self.p.end().map_err(|error| syntax_error::with_suggestion(error, self.script))
    }

    /// The error that the next token is not what it should be, with a suggestion where a keyword is misspelt.
    pub fn unexpected(&self, expected: &str) -> Error {
        syntax_error::with_suggestion(self.p.unexpected(expected), self.script)
    }

    /// A query.
    pub fn query(&mut self) -> Result<Box<Query>> {
        let starts = ["SELECT", "VALUES", "WITH", "TABLE"].iter().any(|word| self.p.at(word)) || self.p.at_token(&Token::LParen);
        if !starts {
            return Err(self.unexpected("a query (SELECT, VALUES or WITH)"));
        }
        let span = self.p.next_span();
        let query = self.p.parse_query().map_err(|error| self.lift(error))?;
        match query.body.as_ref() {
            SetExpr::Insert(_) => Err(Error::unsupported("INSERT behind WITH")
                .at(span)
                .with_hint("put WITH into the query: INSERT INTO t WITH … SELECT …")),
            SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Err(Error::unsupported("a changing statement behind WITH").at(span))
            }
            _ => Ok(query),
        }
    }

    /// A query and its text.
    pub fn query_with_text(&mut self) -> Result<(Box<Query>, String)> {
        let start = self.p.next_span().start;
        let query = self.query()?;
        Ok((query, self.text_from(start)))
    }

    /// An expression.
    pub fn expression(&mut self) -> Result<SqlExpr> {
        self.p.parse_expr().map_err(|error| self.lift(error))
    }

    /// An expression and its text.
    pub fn expression_with_text(&mut self) -> Result<(SqlExpr, String)> {
        let start = self.p.next_span().start;
        let expr = self.expression()?;
        Ok((expr, self.text_from(start)))
    }

    /// The text from a place to the token that was read last.
    pub fn text_from(&self, start: crate::error::Location) -> String {
        self.script.slice(Span { start, end: self.p.last_span().end }).to_string()
    }

    /// `(item, item)`: at least one item; a trailing comma is allowed.
    pub fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.p.require(&Token::LParen)?;
        let mut items = vec![item(self)?];
        while self.p.eat_token(&Token::Comma) && !self.p.at_token(&Token::RParen) {
            items.push(item(self)?);
        }
        if !self.p.eat_token(&Token::RParen) {
            return Err(self.unexpected("\",\" or \")\""));
        }
        Ok(items)
    }

    /// `(name, name)`.
    pub fn column_list(&mut self) -> Result<Vec<Name>> {
        self.list(|parser| parser.column_name())
    }

    /// The name of a column: one part.
    pub fn column_name(&mut self) -> Result<Name> {
        let (name, span) = self.p.identifier("a column name")?;
        Ok(Name { parts: vec![name], span })
    }

    /// `IF NOT EXISTS`.
    pub fn if_not_exists(&mut self) -> bool {
        self.p.eat("IF NOT EXISTS")
    }

    /// `IF EXISTS`.
    pub fn if_exists(&mut self) -> bool {
        self.p.eat("IF EXISTS")
    }

    /// `COMMENT 'text'`.
    pub fn comment(&mut self) -> Result<Option<String>> {
        if !self.p.eat("COMMENT") {
            return Ok(None);
        }
        Ok(Some(self.p.string("the comment in quotes")?.0))
    }

    /// `('k' = 'v', …)` with the place of each option.
    pub fn options(&mut self) -> Result<BTreeMap<String, (String, Span)>> {
        let mut options = BTreeMap::new();
        if self.p.at_token(&Token::LParen) && self.p.peek_nth_token_ref(1).token == Token::RParen {
            self.p.advance_token();
            self.p.advance_token();
            return Ok(options);
        }
        for (key, value, span) in self.list(|parser| parser.option())? {
            if options.insert(key.clone(), (value, span)).is_some() {
                return Err(Error::new(ErrorKind::InvalidOption, format!("option '{key}' is given twice")).at(span));
            }
        }
        Ok(options)
    }

    fn option(&mut self) -> Result<(String, String, Span)> {
        let quote = |error: Error, what: &str| match error.hint() {
            None => error.with_hint(format!("{what} is put in single quotes: 'key' = 'value'")),
            Some(_) => error,
        };
        let (key, mut span) = self.p.string("an option key in quotes").map_err(|error| quote(error, "an option key"))?;
        self.p.require(&Token::Eq)?;
        let (value, end) = self.p.string("an option value in quotes").map_err(|error| quote(error, "an option value"))?;
        span.end = end.end;
        Ok((key, value, span))
    }

    /// Options without their places; none without WITH.
    pub fn with_options(&mut self) -> Result<BTreeMap<String, (String, Span)>> {
        if self.p.eat("WITH") { self.options() } else { Ok(BTreeMap::new()) }
    }
}
