//! INSERT, statement sets and EXPLAIN.

use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::parser::StatementParser;
use super::{ExplainDetail, Insert, Name, OnConflict, Statement};
use crate::error::{Error, ErrorKind, Result};

impl StatementParser<'_, '_> {
    /// INSERT INTO | OVERWRITE.
    pub fn insert(&mut self) -> Result<Insert> {
        self.p.expect("INSERT")?;
        let overwrite = self.p.eat("OVERWRITE");
        if !overwrite && !self.p.eat("INTO") {
            return Err(self.unexpected("INTO"));
        }
        let table = self.p.name("a table name")?;
        let partition = if self.p.eat("PARTITION") { self.list(|parser| parser.partition_value())? } else { Vec::new() };
        let starts_query = |token: &Token| {
            *token == Token::LParen || ["SELECT", "WITH", "VALUES"].iter().any(|word| super::cursor::is_word(token, word))
        };
        let has_columns = self.p.at_token(&Token::LParen) && !starts_query(&self.p.peek_nth_token_ref(1).token);
        let columns = if has_columns { self.column_list()? } else { Vec::new() };
        let query = self.query()?;
        let on_conflict = self.on_conflict()?;
        Ok(Insert { table, columns, partition, overwrite, query, on_conflict })
    }

    /// `k = value`.
    fn partition_value(&mut self) -> Result<(Name, sqlparser::ast::Expr)> {
        let name = self.column_name()?;
        self.p.require(&Token::Eq)?;
        Ok((name, self.expression()?))
    }

    /// `ON CONFLICT DO NOTHING | ERROR | DEDUPLICATE`.
    fn on_conflict(&mut self) -> Result<Option<OnConflict>> {
        if !self.p.eat("ON CONFLICT") {
            return Ok(None);
        }
        self.p.expect("DO")?;
        if self.p.eat("NOTHING") {
            Ok(Some(OnConflict::Nothing))
        } else if self.p.eat("ERROR") {
            Ok(Some(OnConflict::Error))
        } else if self.p.eat("DEDUPLICATE") {
            Ok(Some(OnConflict::Deduplicate))
        } else {
            Err(self.unexpected("NOTHING, ERROR or DEDUPLICATE"))
        }
    }

    /// `[EXECUTE] STATEMENT SET BEGIN insert; … END`, `BEGIN STATEMENT SET; insert; … END`.
    pub fn statement_set(&mut self) -> Result<Statement> {
        let span = self.p.next_span();
        if self.p.eat("BEGIN") {
            self.p.expect("STATEMENT SET")?;
            self.p.require(&Token::SemiColon)?;
        } else {
            self.p.eat("EXECUTE");
            self.p.expect("STATEMENT SET BEGIN")?;
        }
        let mut inserts = Vec::new();
        while !self.p.eat("END") {
            if !self.p.at("INSERT") {
                return Err(self.unexpected(if inserts.is_empty() { "INSERT" } else { "INSERT or END" }));
            }
            inserts.push(self.insert()?);
            if !self.p.at("END") && !self.p.eat_token(&Token::SemiColon) {
                return Err(self.unexpected("\";\""));
            }
        }
        if inserts.is_empty() {
            return Err(Error::new(ErrorKind::Syntax, "statement set without a statement").at(span));
        }
        Ok(Statement::StatementSet(inserts))
    }

    /// EXPLAIN, from behind the word.
    pub fn explain(&mut self) -> Result<Statement> {
        const DETAILS: &[(&str, ExplainDetail)] = &[
            ("CHANGELOG_MODE", ExplainDetail::ChangelogMode),
            ("ESTIMATED_COST", ExplainDetail::EstimatedCost),
            ("JSON_EXECUTION_PLAN", ExplainDetail::JsonExecutionPlan),
            ("PLAN_ADVICE", ExplainDetail::PlanAdvice),
        ];
        if self.p.eat("WATERMARK") {
            let (job, span) = self.p.string("the job id in quotes")?;
            return Ok(Statement::ExplainWatermark { job, span });
        }
        let mut details = Vec::new();
        if !self.p.eat("PLAN FOR") {
            while let Some((_, detail)) = DETAILS.iter().find(|(word, _)| self.p.eat(word)) {
                details.push(*detail);
                if !self.p.eat_token(&Token::Comma) {
                    break;
                }
            }
        }
        let is_set = ["STATEMENT SET", "EXECUTE STATEMENT SET"].iter().any(|words| self.p.at(words));
        let starts = ["SELECT", "VALUES", "WITH", "TABLE", "INSERT", "EXECUTE INSERT", "CREATE TABLE"];
        if is_set {
            let statement = Box::new(self.statement_set()?);
            return Ok(Statement::Explain { details, statement });
        }
        if self.p.at_token(&Token::LParen) || starts.iter().any(|words| self.p.at(words)) {
            let statement = Box::new(self.statement()?);
            return Ok(Statement::Explain { details, statement });
        }
        if self.p.at("ANALYZE") {
            return Err(Error::unsupported("EXPLAIN ANALYZE").at(self.p.next_span()));
        }
        Err(self.unexpected("a query, INSERT or STATEMENT SET"))
    }
}
