//! The first words of a statement decide who parses it. Statements of Flink's that Flott does not have are named as unsupported.

use super::cursor::Cursor;
use super::parser::StatementParser;
use super::{Statement, UseTarget, syntax_error};
use crate::error::{Error, Result};

/// The words that start a statement, for "did you mean".
const STATEMENTS: &[&str] = &[
    "ALTER", "CALL", "CREATE", "DESC", "DESCRIBE", "DROP", "EXECUTE", "EXPLAIN", "INSERT", "RESET", "SELECT", "SET", "SHOW",
    "STOP", "USE", "VALUES", "WITH",
];

/// Statements of Flink's that Flott does not have, by their first words.
const UNSUPPORTED: &[&str] = &[
    "ADD JAR",
    "ALTER CATALOG",
    "ALTER CONNECTION",
    "ALTER DATABASE",
    "ALTER FUNCTION",
    "ALTER MATERIALIZED TABLE",
    "ALTER MODEL",
    "ALTER VIEW",
    "ANALYZE TABLE",
    "COMPILE AND EXECUTE PLAN",
    "COMPILE PLAN",
    "CREATE CONNECTION",
    "CREATE MATERIALIZED TABLE",
    "CREATE MODEL",
    "CREATE OR ALTER MATERIALIZED TABLE",
    "CREATE OR REPLACE MATERIALIZED TABLE",
    "CREATE OR REPLACE TABLE",
    "CREATE SYSTEM CONNECTION",
    "CREATE TEMPORARY MODEL",
    "DELETE",
    "DESC CONNECTION",
    "DESC MODEL",
    "DESCRIBE CONNECTION",
    "DESCRIBE MODEL",
    "DROP CONNECTION",
    "DROP MATERIALIZED TABLE",
    "DROP MODEL",
    "DROP TEMPORARY MODEL",
    "EXECUTE PLAN",
    "LOAD MODULE",
    "MERGE",
    "REMOVE JAR",
    "REPLACE TABLE",
    "SHOW CONNECTIONS",
    "SHOW CREATE CATALOG",
    "SHOW CREATE CONNECTION",
    "SHOW CREATE MATERIALIZED TABLE",
    "SHOW CREATE MODEL",
    "SHOW FULL MODULES",
    "SHOW JARS",
    "SHOW MATERIALIZED TABLES",
    "SHOW MODELS",
    "SHOW MODULES",
    "SHOW PARTITIONS",
    "SHOW PROCEDURES",
    "TRUNCATE TABLE",
    "UNLOAD MODULE",
    "UPDATE",
    "UPSERT",
    "USE MODULES",
];

impl StatementParser<'_, '_> {
    /// A statement.
    pub fn statement(&mut self) -> Result<Statement> {
        let span = self.p.next_span();
        if let Some(words) = UNSUPPORTED.iter().find(|words| self.p.at(words)) {
            self.p.eat(words);
            return Err(Error::unsupported(words).at(crate::error::Span { start: span.start, end: self.p.last_span().end }));
        }
        let is_query = ["SELECT", "VALUES", "WITH", "TABLE"].iter().any(|word| self.p.at(word));
        if is_query || self.p.at_token(&sqlparser::tokenizer::Token::LParen) {
            return self.query().map(Statement::Query);
        }
        if self.p.at("EXECUTE INSERT") || self.p.at("INSERT") {
            self.p.eat("EXECUTE");
            return self.insert().map(|insert| Statement::Insert(Box::new(insert)));
        }
        if self.p.at("EXECUTE STATEMENT SET") || self.p.at("BEGIN STATEMENT SET") {
            return self.statement_set();
        }
        if self.p.eat("CREATE") {
            return self.create();
        }
        if self.p.eat("ALTER TABLE") {
            return self.alter_table();
        }
        if self.p.eat("DROP") {
            return self.drop();
        }
        if self.p.eat("SHOW") {
            return self.show().map(Statement::Show);
        }
        if self.p.eat("DESCRIBE") || self.p.eat("DESC") {
            return self.describe();
        }
        if self.p.eat("EXPLAIN") {
            return self.explain();
        }
        if self.p.eat("USE CATALOG") {
            return Ok(Statement::Use(UseTarget::Catalog(self.p.name("a catalog name")?)));
        }
        if self.p.eat("USE") {
            return Ok(Statement::Use(UseTarget::Database(self.p.name("a database name")?)));
        }
        self.session_statement()
    }

    /// SET, RESET, STOP JOB, CALL; else it is no statement.
    fn session_statement(&mut self) -> Result<Statement> {
        if self.p.at("SET") {
            return self.set();
        }
        if self.p.at("RESET") {
            return self.reset();
        }
        if self.p.eat("STOP JOB") {
            return self.stop_job();
        }
        if self.p.eat("CALL") {
            return self.call();
        }
        if self.p.eat("EXECUTE") {
            return Err(self.unexpected("STATEMENT SET or INSERT"));
        }
        if self.p.eat("ALTER") {
            return Err(self.unexpected("TABLE"));
        }
        if self.p.eat("QUIT") || self.p.eat("EXIT") {
            return Ok(Statement::Quit);
        }
        if self.p.eat("STOP") {
            return Err(self.unexpected("JOB"));
        }
        let word = match &self.p.peek_token_ref().token {
            sqlparser::tokenizer::Token::Word(word) if word.quote_style.is_none() => word.value.clone(),
            _ => return Err(self.unexpected("a statement")),
        };
        Err(syntax_error::unknown_statement(&word, STATEMENTS, self.p.next_span()))
    }
}
