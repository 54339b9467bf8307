//! SHOW, DESCRIBE, SET, RESET, STOP JOB, CALL.

use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::parser::StatementParser;
use super::{DescribeTarget, Name, Show, Statement};
use crate::error::{Error, ErrorKind, Result, Span};

/// A LIKE clause of SHOW: pattern, NOT, case-insensitive.
type LikePattern = Option<(String, bool, bool)>;

impl StatementParser<'_, '_> {
    /// SHOW, from behind the word.
    pub fn show(&mut self) -> Result<Show> {
        if self.p.eat("CURRENT CATALOG") {
            return Ok(Show::CurrentCatalog);
        }
        if self.p.eat("CURRENT DATABASE") {
            return Ok(Show::CurrentDatabase);
        }
        if self.p.eat("CREATE TABLE") {
            return Ok(Show::CreateTable(self.p.name("a table name")?));
        }
        if self.p.eat("CREATE VIEW") {
            return Ok(Show::CreateView(self.p.name("a view name")?));
        }
        if self.p.eat("CREATE FUNCTION") {
            return Ok(Show::CreateFunction(self.p.name("a function name")?));
        }
        if self.p.eat("JOBS") {
            return Ok(Show::Jobs);
        }
        if self.p.eat("CATALOGS") {
            return Ok(Show::Catalogs { like: self.like()? });
        }
        if self.p.eat("DATABASES") {
            return Ok(Show::Databases { from: self.from("a catalog name")?, like: self.like()? });
        }
        if self.p.eat("TABLES") {
            return Ok(Show::Tables { from: self.from("a database name")?, like: self.like()? });
        }
        if self.p.eat("VIEWS") {
            return Ok(Show::Views { from: self.from("a database name")?, like: self.like()? });
        }
        if self.p.eat("COLUMNS") {
            let table = self.from("a table name")?.ok_or_else(|| self.unexpected("FROM and a table name"))?;
            return Ok(Show::Columns { table, like: self.like()? });
        }
        let user_only = self.p.eat("USER");
        if self.p.eat("FUNCTIONS") {
            return Ok(Show::Functions { user_only, like: self.like()? });
        }
        let words = "TABLES, VIEWS, DATABASES, CATALOGS, FUNCTIONS, COLUMNS, JOBS, CURRENT … or CREATE …";
        Err(self.unexpected(if user_only { "FUNCTIONS" } else { words }))
    }

    /// `FROM | IN name`.
    fn from(&mut self, what: &str) -> Result<Option<Name>> {
        if self.p.eat("FROM") || self.p.eat("IN") { self.p.name(what).map(Some) } else { Ok(None) }
    }

    /// `[NOT] LIKE | ILIKE 'pattern'`.
    fn like(&mut self) -> Result<LikePattern> {
        let not = self.p.eat("NOT");
        let any_case = self.p.at("ILIKE");
        if !any_case && !self.p.at("LIKE") {
            return if not { Err(self.unexpected("LIKE or ILIKE")) } else { Ok(None) };
        }
        self.p.advance_token();
        Ok(Some((self.p.string("a pattern in quotes")?.0, not, any_case)))
    }

    /// DESCRIBE, from behind the word.
    pub fn describe(&mut self) -> Result<Statement> {
        let mut extended = self.p.eat("EXTENDED");
        // CATALOG and the like may also be names of tables: only with a name behind them they are keywords.
        let named = !matches!(self.p.peek_nth_token_ref(1).token, Token::EOF | Token::Period);
        let target = if named && self.p.eat("CATALOG") {
            extended |= self.p.eat("EXTENDED");
            DescribeTarget::Catalog(self.p.name("a catalog name")?)
        } else if named && self.p.eat("DATABASE") {
            extended |= self.p.eat("EXTENDED");
            DescribeTarget::Database(self.p.name("a database name")?)
        } else if named && self.p.eat("FUNCTION") {
            extended |= self.p.eat("EXTENDED");
            DescribeTarget::Function(self.p.name("a function name")?)
        } else if named && self.p.eat("JOB") {
            let (id, span) = self.p.string("the job id in quotes")?;
            DescribeTarget::Job { id, span }
        } else {
            let _ = named && self.p.eat("TABLE");
            DescribeTarget::Table(self.p.name("a table name")?)
        };
        Ok(Statement::Describe { target, extended })
    }

    /// `SET`, `SET 'k' = 'v'`, `SET k = v`: unquoted, the value is all that follows.
    pub fn set(&mut self) -> Result<Statement> {
        let start = self.p.next_span();
        self.p.expect("SET")?;
        if self.p.at_token(&Token::EOF) {
            return Ok(Statement::Set { assignment: None, span: start });
        }
        let key = self.setting_key()?;
        if !self.p.eat_token(&Token::Eq) {
            return Err(self.unexpected("\"=\" and a value"));
        }
        let value = match &self.p.peek_token_ref().token {
            Token::SingleQuotedString(_) | Token::EOF => self.p.string("a value")?.0,
            _ => self.rest(),
        };
        Ok(Statement::Set { assignment: Some((key, value)), span: Span { start: start.start, end: self.p.last_span().end } })
    }

    /// `RESET`, `RESET 'k'`, `RESET k`.
    pub fn reset(&mut self) -> Result<Statement> {
        let start = self.p.next_span();
        self.p.expect("RESET")?;
        let key = if self.p.at_token(&Token::EOF) { None } else { Some(self.setting_key()?) };
        Ok(Statement::Reset { key, span: Span { start: start.start, end: self.p.last_span().end } })
    }

    /// The key of a setting, quoted or bare: `'table.local-time-zone'`, `table.local-time-zone`.
    fn setting_key(&mut self) -> Result<String> {
        if matches!(self.p.peek_token_ref().token, Token::SingleQuotedString(_)) {
            return Ok(self.p.string("an option key")?.0);
        }
        if !matches!(self.p.peek_token_ref().token, Token::Word(_)) {
            return Err(self.unexpected("an option key"));
        }
        let start = self.p.next_span().start;
        while matches!(self.p.peek_token_ref().token, Token::Word(_) | Token::Period | Token::Minus | Token::Number(..)) {
            self.p.advance_token();
        }
        Ok(self.text_from(start))
    }

    /// The text of all that is left.
    fn rest(&mut self) -> String {
        let start = self.p.next_span().start;
        while !self.p.at_token(&Token::EOF) {
            self.p.advance_token();
        }
        self.text_from(start)
    }

    /// STOP JOB, from behind the words.
    pub fn stop_job(&mut self) -> Result<Statement> {
        let (job, span) = self.p.string("the job id in quotes")?;
        let with_savepoint = self.p.eat("WITH SAVEPOINT");
        let drain = self.p.next_span();
        let with_drain = self.p.eat("WITH DRAIN");
        if with_drain && !with_savepoint {
            let error = Error::new(ErrorKind::Syntax, "WITH DRAIN stands only behind WITH SAVEPOINT");
            return Err(error.with_hint("STOP JOB 'id' WITH SAVEPOINT WITH DRAIN").at(drain));
        }
        if self.p.eat("WITH") {
            return Err(self.unexpected(if with_savepoint { "DRAIN" } else { "SAVEPOINT" }));
        }
        Ok(Statement::StopJob { job, with_savepoint, with_drain, span })
    }

    /// CALL, from behind the word.
    pub fn call(&mut self) -> Result<Statement> {
        let procedure = self.p.name("a procedure name")?;
        self.p.require(&Token::LParen)?;
        let mut arguments = Vec::new();
        while !self.p.eat_token(&Token::RParen) {
            if !arguments.is_empty() {
                self.p.require(&Token::Comma)?;
            }
            arguments.push(self.expression()?);
            if self.p.at_token(&Token::RArrow) {
                let error = Error::new(ErrorKind::Unsupported, "named arguments of a procedure are not supported");
                return Err(error.at(self.p.next_span()));
            }
        }
        Ok(Statement::Call { procedure, arguments })
    }
}
