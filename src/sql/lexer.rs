//! SQL text → tokens, made fit for Flink: words that mean nothing in Flink lose their keyword, `>>` closes two types, rows of VALUES
//! get their parentheses, and the script is cut into statements at its semicolons. Spans always count from the start of the script.

use std::ops::Range;

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Location as SqlLocation, Span as SqlSpan, Token, TokenWithSpan, Tokenizer, Whitespace};

use super::cursor::{is_word, location_of, span_of};
use super::dialect::{FlinkDialect, PLAIN_WORDS};
use super::values_rows;
use crate::error::{Error, ErrorKind, Location, Result, Span};

/// How deep queries and expressions may nest.
const DEPTH_MAX: usize = 128;

/// A script: its text and its tokens.
#[derive(Debug)]
pub(super) struct Script<'a> {
    /// The text.
    pub text: &'a str,
    /// Its tokens, white space and comments included.
    pub tokens: Vec<TokenWithSpan>,
    /// Where each line starts, in bytes.
    lines: Vec<usize>,
}

impl<'a> Script<'a> {
    /// Splits a text into tokens.
    pub fn new(text: &'a str, dialect: &FlinkDialect) -> Result<Self> {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let mut script = Script { text, tokens: Vec::new(), lines };
        let mut tokens = Vec::new();
        if let Err(error) = Tokenizer::new(dialect, text).tokenize_with_location_into_buf(&mut tokens) {
            // The token that has no end starts where the one before it ends.
            let start = tokens.last().map_or(SqlLocation::new(1, 1), |token: &TokenWithSpan| token.span.end);
            return Err(lexical_error(&error.message, location_of(start)));
        }
        script.tokens = values_rows::enclose(script.normalise(tokens)?);
        Ok(script)
    }

    /// The range of all tokens.
    pub fn all(&self) -> Range<usize> {
        0..self.tokens.len()
    }

    /// A parser over some of the tokens. The EOF token at its end stands where they end.
    pub fn parser<'d>(&self, dialect: &'d FlinkDialect, range: Range<usize>) -> Parser<'d> {
        let end = self.end_token(&range);
        let mut tokens = self.tokens[range].to_vec();
        tokens.push(end);
        Parser::new(dialect).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(tokens)
    }

    /// The EOF token of a statement: at its semicolon, or where the text ends.
    pub fn end_token(&self, range: &Range<usize>) -> TokenWithSpan {
        let end = self.tokens.get(range.end).map_or_else(|| self.end(), |next| next.span.start);
        TokenWithSpan { token: Token::EOF, span: SqlSpan::new(end, end) }
    }

    /// Where the text ends: behind its last token that is not white space.
    fn end(&self) -> SqlLocation {
        let last = self.tokens.iter().rfind(|token| !matches!(token.token, Token::Whitespace(_)));
        last.map_or(SqlLocation::new(1, 1), |token| token.span.end)
    }

    /// The byte at which a place stands.
    pub fn offset(&self, at: Location) -> usize {
        let start = self.lines.get(at.line.saturating_sub(1) as usize).copied().unwrap_or(self.text.len());
        let columns = at.column.saturating_sub(1) as usize;
        self.text[start..].char_indices().nth(columns).map_or(self.text.len(), |(byte, _)| start + byte)
    }

    /// The bytes of a span.
    pub fn bytes(&self, span: Span) -> Range<usize> {
        let end = Location { line: span.end.line, column: span.end.column + 1 };
        self.offset(span.start)..self.offset(end)
    }

    /// The text of a span.
    pub fn slice(&self, span: Span) -> &'a str {
        &self.text[self.bytes(span)]
    }

    /// The statements: token ranges without the closing semicolon, empty ones left out. A statement set is one statement.
    pub fn statements(&self) -> Vec<Range<usize>> {
        let mut statements: Vec<Range<usize>> = Vec::new();
        let mut open_set: Option<usize> = None;
        let mut start = 0;
        let cuts = self.tokens.iter().enumerate().filter(|(_, token)| token.token == Token::SemiColon).map(|(at, _)| at);
        for end in cuts.chain([self.tokens.len()]).collect::<Vec<_>>() {
            let words = self.significant(start..end);
            if !words.is_empty() {
                match open_set {
                    Some(first) if is_word(words[0], "END") => {
                        statements.push(first..end);
                        open_set = None;
                    }
                    Some(_) => {}
                    None if opens_set(&words) => open_set = Some(start),
                    None => statements.push(start..end),
                }
            }
            start = end + 1;
        }
        statements.extend(open_set.map(|first| first..self.tokens.len()));
        statements
    }

    /// The tokens of a range that are neither white space nor comments.
    fn significant(&self, range: Range<usize>) -> Vec<&Token> {
        self.tokens[range].iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_))).collect()
    }

    fn normalise(&self, tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
        let mut normal = Vec::with_capacity(tokens.len() + 8);
        for (index, TokenWithSpan { mut token, span }) in tokens.iter().cloned().enumerate() {
            match &mut token {
                Token::ShiftRight => {
                    let middle = SqlLocation::new(span.start.line, span.start.column + 1);
                    normal.push(TokenWithSpan { token: Token::Gt, span: SqlSpan::new(span.start, middle) });
                    normal.push(TokenWithSpan { token: Token::Gt, span: SqlSpan::new(middle, span.end) });
                    continue;
                }
                Token::Word(word) if PLAIN_WORDS.contains(&word.keyword) => word.keyword = Keyword::NoKeyword,
                Token::Word(word) if word.keyword == Keyword::AT && !followed_by_time_zone(&tokens[index + 1..]) => {
                    word.keyword = Keyword::NoKeyword;
                }
                Token::HexStringLiteral(digits) => self.check_hexadecimal(digits, span_of(span))?,
                _ => {}
            }
            normal.push(TokenWithSpan { token, span });
        }
        Ok(normal)
    }

    fn check_hexadecimal(&self, digits: &str, span: Span) -> Result<()> {
        let error = |message: &str| Err(Error::new(ErrorKind::Syntax, message).at(span));
        if self.slice(span).starts_with('0') {
            let hint = "write a number in decimal, a binary string as x'0aff'";
            return error("hexadecimal numbers are not part of SQL").map_err(|error| error.with_hint(hint));
        }
        if !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return error("binary string with a character that is no hexadecimal digit");
        }
        if digits.len() % 2 == 1 {
            return error("binary string with an odd number of hexadecimal digits");
        }
        Ok(())
    }
}

/// The error for a token that sqlparser cannot read.
fn lexical_error(message: &str, at: Location) -> Error {
    let unclosed = |what: &str, close: &str| format!("{what} without its closing {close}");
    let quotes = "Unterminated string";
    let (message, hint) = match message {
        text if text.starts_with(quotes) => (unclosed("string", "quote"), Some("a quote inside a string is doubled: 'it''s'")),
        text if text.contains("multi-line comment") => (unclosed("comment", "*/"), None),
        text if text.contains("close delimiter '\"'") => (unclosed("name", "double quote"), None),
        text if text.contains("close delimiter") => (unclosed("name", "back-tick"), None),
        text => (text[..1].to_lowercase() + &text[1..], None),
    };
    let error = Error::new(ErrorKind::Syntax, message).at(Span { start: at, end: at });
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Whether these tokens open a statement set: `[EXPLAIN …] [EXECUTE] STATEMENT SET BEGIN`, `BEGIN STATEMENT SET`.
fn opens_set(words: &[&Token]) -> bool {
    let starts = |at: usize, expected: &[&str]| {
        expected.iter().enumerate().all(|(n, word)| words.get(at + n).is_some_and(|token| is_word(token, word)))
    };
    if starts(0, &["BEGIN", "STATEMENT", "SET"]) {
        return true;
    }
    let leads = ["EXECUTE", "EXPLAIN", "COMPILE"].iter().any(|word| is_word(words[0], word));
    leads && (0..words.len().min(16)).any(|at| starts(at, &["STATEMENT", "SET", "BEGIN"]))
}

/// Whether `TIME ZONE` comes next.
fn followed_by_time_zone(tokens: &[TokenWithSpan]) -> bool {
    let mut words = tokens.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_)));
    words.next().is_some_and(|token| is_word(token, "TIME")) && words.next().is_some_and(|token| is_word(token, "ZONE"))
}

/// The text of a hint comment, `/*+ … */`, if the token is one.
pub(super) fn hint_text(token: &Token) -> Option<&str> {
    match token {
        Token::Whitespace(Whitespace::MultiLineComment(text)) => text.strip_prefix('+'),
        _ => None,
    }
}
