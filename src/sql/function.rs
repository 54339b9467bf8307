//! CREATE FUNCTION … RETURN and DROP FUNCTION.

use sqlparser::tokenizer::Token;

use super::cursor::{Cursor, is_word, span_of};
use super::parser::StatementParser;
use super::{CreateFunction, Statement, type_parser};
use crate::error::{Error, Result, Span};
use crate::types::FunctionSpace;

impl StatementParser<'_, '_> {
    /// CREATE FUNCTION, from behind the word.
    pub fn create_function(&mut self, or_replace: bool, space: FunctionSpace) -> Result<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.p.name("a function name")?;
        let span = self.p.next_span();
        if self.p.eat("AS") {
            return Err(Error::unsupported("CREATE FUNCTION … AS a class").at(span).with_hint(
                "write what it computes: CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1; or register it from a Rust program: Session::register_function, register_table_function, register_aggregate_function",
            ));
        }
        let no_params = self.p.at_token(&Token::LParen) && self.p.peek_nth_token_ref(1).token == Token::RParen;
        let params = if no_params {
            self.p.advance_token();
            self.p.advance_token();
            Vec::new()
        } else {
            self.list(|parser| {
                let (name, span) = parser.p.identifier("the name of a parameter")?;
                Ok((name, type_parser::parse_type(&mut parser.p)?, span))
            })?
        };
        if !self.p.eat("RETURNS") {
            return Err(self.unexpected("RETURNS and a type"));
        }
        let returns = type_parser::parse_type(&mut self.p)?;
        if self.p.eat("LANGUAGE") && !self.p.eat("SQL") {
            return Err(self.unexpected("SQL"));
        }
        if !self.p.eat("RETURN") {
            return Err(self.unexpected("RETURN and an expression"));
        }
        let start = self.p.next_span().start;
        let (body, sql) = self.expression_with_text()?;
        let place = Span { start, end: self.p.last_span().end };
        let calls_itself = self.call_of(&name.parts[name.parts.len() - 1], place);
        let create = CreateFunction { name, or_replace, space, if_not_exists, params, returns, body, sql, place, calls_itself };
        Ok(Statement::CreateFunction(Box::new(create)))
    }

    /// DROP FUNCTION, from behind the words.
    pub fn drop_function(&mut self, space: FunctionSpace) -> Result<Statement> {
        let if_exists = self.if_exists();
        let name = self.p.name("a function name")?;
        Ok(Statement::DropFunction { name, if_exists, space })
    }

    /// Where a stretch of the statement calls this function.
    fn call_of(&self, name: &str, within: Span) -> Option<Span> {
        let mut tokens = self.script.tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).peekable();
        while let Some(token) = tokens.next() {
            let span = span_of(token.span);
            let is_inside = within.start <= span.start && span.end <= within.end;
            let is_called = tokens.peek().is_some_and(|next| next.token == Token::LParen);
            if is_inside && is_called && is_word(&token.token, name) {
                return Some(span);
            }
        }
        None
    }
}
