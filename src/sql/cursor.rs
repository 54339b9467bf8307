//! Small steps over the tokens of a statement, with our own errors: what every statement parser is made of.
//!
//! Works on sqlparser's [`Parser`], so that its expression and query parsers and ours can take turns on one token stream. The
//! stream ends with an explicit EOF token that carries the place where the statement ends.

use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Location as SqlLocation, Span as SqlSpan, Token, TokenWithSpan, Word};

use super::Name;
use super::dialect::CLAUSES;
use crate::error::{Error, ErrorKind, Location, Result, Span};

/// Our steps over sqlparser's tokens.
pub(super) trait Cursor {
    /// Whether these words, in any case and unquoted, come next.
    fn at(&self, words: &str) -> bool;
    /// Passes these words if they come next.
    fn eat(&mut self, words: &str) -> bool;
    /// Passes these words or fails.
    fn expect(&mut self, words: &str) -> Result<()>;
    /// Whether this token comes next.
    fn at_token(&self, token: &Token) -> bool;
    /// Passes this token if it comes next.
    fn eat_token(&mut self, token: &Token) -> bool;
    /// Passes this token or fails.
    fn require(&mut self, token: &Token) -> Result<()>;
    /// Where the next token stands.
    fn next_span(&self) -> Span;
    /// Where the token passed last stands.
    fn last_span(&self) -> Span;
    /// An identifier.
    fn identifier(&mut self, what: &str) -> Result<(String, Span)>;
    /// A name of up to three parts.
    fn name(&mut self, what: &str) -> Result<Name>;
    /// A string literal.
    fn string(&mut self, what: &str) -> Result<(String, Span)>;
    /// A whole number.
    fn number(&mut self, what: &str) -> Result<(u64, Span)>;
    /// `(item, item)`: at least one item; a trailing comma is allowed.
    fn list<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>>;
    /// Fails unless the statement ends here.
    fn end(&self) -> Result<()>;
    /// The error that the next token is not what it should be.
    fn unexpected(&self, expected: &str) -> Error;
}

impl Cursor for Parser<'_> {
    fn at(&self, words: &str) -> bool {
        words.split(' ').enumerate().all(|(n, word)| is_word(&self.peek_nth_token_ref(n).token, word))
    }

    fn eat(&mut self, words: &str) -> bool {
        let found = self.at(words);
        if found {
            words.split(' ').for_each(|_| self.advance_token());
        }
        found
    }

    fn expect(&mut self, words: &str) -> Result<()> {
        for word in words.split(' ') {
            if !self.eat(word) {
                return Err(self.unexpected(word));
            }
        }
        Ok(())
    }

    fn at_token(&self, token: &Token) -> bool {
        self.peek_token_ref().token == *token
    }

    fn eat_token(&mut self, token: &Token) -> bool {
        self.consume_token(token)
    }

    fn require(&mut self, token: &Token) -> Result<()> {
        if self.eat_token(token) { Ok(()) } else { Err(self.unexpected(&format!("\"{token}\""))) }
    }

    fn next_span(&self) -> Span {
        span_of(self.peek_token_ref().span)
    }

    fn last_span(&self) -> Span {
        // Stepping back can leave the cursor behind white space.
        let mut index = self.get_current_index();
        while index > 0 && matches!(self.token_at(index).token, Token::Whitespace(_)) {
            index -= 1;
        }
        span_of(self.token_at(index).span)
    }

    fn identifier(&mut self, what: &str) -> Result<(String, Span)> {
        match &self.peek_token_ref().token {
            Token::Word(word) if CLAUSES.contains(&word.keyword) => Err(self.unexpected(what).with_hint(format!(
                "{} is a reserved word: put it in back-ticks to use it as a name",
                word.value.to_uppercase()
            ))),
            Token::Word(word) => {
                let value = word.value.clone();
                self.advance_token();
                Ok((value, self.last_span()))
            }
            Token::DoubleQuotedString(_) => Err(double_quoted(self.peek_token_ref())),
            _ => Err(self.unexpected(what)),
        }
    }

    fn name(&mut self, what: &str) -> Result<Name> {
        let (first, mut span) = self.identifier(what)?;
        let mut parts = vec![first];
        while self.eat_token(&Token::Period) {
            let (part, part_span) = self.identifier("the next part of the name")?;
            parts.push(part);
            span.end = part_span.end;
        }
        if parts.len() > 3 {
            let error = Error::new(ErrorKind::Syntax, format!("name with {} parts", parts.len())).at(span);
            return Err(error.with_hint("a name has at most three parts: catalog, database and object"));
        }
        Ok(Name { parts, span })
    }

    fn string(&mut self, what: &str) -> Result<(String, Span)> {
        match &self.peek_token_ref().token {
            Token::SingleQuotedString(text) | Token::UnicodeStringLiteral(text) => {
                let text = text.clone();
                self.advance_token();
                Ok((text, self.last_span()))
            }
            Token::DoubleQuotedString(_) => Err(self.unexpected(what).with_hint("a string is put in single quotes: 'text'")),
            _ => Err(self.unexpected(what)),
        }
    }

    fn number(&mut self, what: &str) -> Result<(u64, Span)> {
        let parsed = match &self.peek_token_ref().token {
            Token::Number(digits, false) => digits.parse().ok(),
            _ => None,
        };
        match parsed {
            Some(number) => {
                self.advance_token();
                Ok((number, self.last_span()))
            }
            None => Err(self.unexpected(what)),
        }
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.require(&Token::LParen)?;
        let mut items = vec![item(self)?];
        while self.eat_token(&Token::Comma) && !self.at_token(&Token::RParen) {
            items.push(item(self)?);
        }
        if !self.eat_token(&Token::RParen) {
            return Err(self.unexpected("\",\" or \")\""));
        }
        Ok(items)
    }

    fn end(&self) -> Result<()> {
        if self.at_token(&Token::EOF) { Ok(()) } else { Err(self.unexpected("the end of the statement")) }
    }

    fn unexpected(&self, expected: &str) -> Error {
        unexpected_token(self.peek_token_ref(), expected)
    }
}

/// The error that a token is not what it should be.
pub(super) fn unexpected_token(found: &TokenWithSpan, expected: &str) -> Error {
    let message = match &found.token {
        Token::EOF => format!("unexpected end of the statement, expected {expected}"),
        token => format!("unexpected {}, expected {expected}", quoted(token)),
    };
    Error::new(ErrorKind::Syntax, message).at(span_of(found.span))
}

/// The error for `"x"` where double-quoted identifiers are off.
pub(super) fn double_quoted(token: &TokenWithSpan) -> Error {
    Error::new(ErrorKind::Syntax, format!("unexpected double-quoted text {}", token.token)).at(span_of(token.span)).with_hint(
        "write `x` for a name and 'x' for a string, or SET 'sql.double-quoted-identifiers' = 'true' to use \"x\" as a name",
    )
}

/// A token as shown in messages, shortened.
fn quoted(token: &Token) -> String {
    let text = token.to_string();
    if text.chars().count() > 40 {
        format!("\"{}…\"", text.chars().take(40).collect::<String>())
    } else {
        format!("\"{text}\"")
    }
}

/// Whether a token is this word, unquoted, in any case.
pub(super) fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(Word { value, quote_style: None, .. }) if value.eq_ignore_ascii_case(word))
}

/// sqlparser's span, whose end is exclusive, as ours.
pub(super) fn span_of(span: SqlSpan) -> Span {
    let start = location_of(span.start);
    let end = Location { line: span.end.line, column: span.end.column.saturating_sub(1) };
    Span { start, end: end.max(start) }
}

/// sqlparser's location as ours.
pub(super) fn location_of(location: SqlLocation) -> Location {
    Location { line: location.line, column: location.column }
}
