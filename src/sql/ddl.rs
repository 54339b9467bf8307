//! CREATE VIEW, DATABASE and CATALOG, ALTER TABLE, DROP.

use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::parser::StatementParser;
use super::{AlterTable, CreateView, DropKind, Statement};
use crate::catalog::Options;
use crate::error::{Error, Result};
use crate::types::FunctionSpace;

impl StatementParser<'_, '_> {
    /// What CREATE creates.
    pub fn create(&mut self) -> Result<Statement> {
        let mut or_replace = self.p.eat("OR REPLACE");
        let temporary = self.p.eat("TEMPORARY");
        or_replace |= temporary && self.p.eat("OR REPLACE");
        if self.p.eat("VIEW") {
            return self.create_view(or_replace, temporary);
        }
        if let Some(space) = self.function_space(temporary) {
            return self.create_function(or_replace, space);
        }
        if or_replace {
            return Err(self.unexpected("VIEW or FUNCTION"));
        }
        if self.p.eat("TABLE") {
            return self.create_table(temporary);
        }
        if temporary {
            return Err(self.unexpected("TABLE, VIEW or FUNCTION"));
        }
        let is_database = self.p.eat("DATABASE");
        if !is_database && !self.p.eat("CATALOG") {
            return Err(self.unexpected("TABLE, VIEW, FUNCTION, DATABASE or CATALOG"));
        }
        let if_not_exists = self.if_not_exists();
        let name = self.p.name(if is_database { "a database name" } else { "a catalog name" })?;
        let comment = self.comment()?;
        let options: Options = self.with_options()?.into_iter().map(|(key, (value, _))| (key, value)).collect();
        Ok(if is_database {
            Statement::CreateDatabase { name, if_not_exists, comment, options }
        } else {
            Statement::CreateCatalog { name, if_not_exists, comment, options }
        })
    }

    fn create_view(&mut self, or_replace: bool, temporary: bool) -> Result<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.p.name("a view name")?;
        let columns = if self.p.at_token(&Token::LParen) { self.column_list()? } else { Vec::new() };
        let comment = self.comment()?;
        if !self.p.eat("AS") {
            return Err(self.unexpected("AS and a query"));
        }
        let (query, sql) = self.query_with_text()?;
        Ok(Statement::CreateView(Box::new(CreateView {
            name,
            or_replace,
            temporary,
            if_not_exists,
            columns,
            comment,
            query,
            sql,
        })))
    }

    /// ALTER TABLE, from behind the words.
    pub fn alter_table(&mut self) -> Result<Statement> {
        let if_exists = self.if_exists();
        let name = self.p.name("a table name")?;
        let span = self.p.next_span();
        let action = if self.p.eat("RENAME TO") {
            AlterTable::Rename(self.p.name("the new name")?)
        } else if self.p.eat("SET") {
            AlterTable::Set(self.options()?)
        } else if self.p.eat("RESET") {
            AlterTable::Reset(self.list(|parser| parser.p.string("an option key in quotes"))?)
        } else {
            // Without COLUMN it is a column too.
            let unsupported = ["ADD", "MODIFY", "DROP", "RENAME"].into_iter().find(|word| self.p.at(word));
            return Err(match unsupported {
                Some(word) => {
                    let what = if word == "RENAME" { "RENAME of a column" } else { word };
                    Error::unsupported(format!("ALTER TABLE {what}")).at(span).with_hint("drop the table and create it anew")
                }
                None => self.unexpected("RENAME TO, SET or RESET"),
            });
        };
        Ok(Statement::AlterTable { name, if_exists, action })
    }

    /// `[SYSTEM] FUNCTION`, behind TEMPORARY or not.
    fn function_space(&mut self, temporary: bool) -> Option<FunctionSpace> {
        if temporary && self.p.eat("SYSTEM FUNCTION") {
            return Some(FunctionSpace::TemporarySystem);
        }
        let space = if temporary { FunctionSpace::Temporary } else { FunctionSpace::Permanent };
        self.p.eat("FUNCTION").then_some(space)
    }

    /// DROP, from behind the word.
    pub fn drop(&mut self) -> Result<Statement> {
        let temporary = self.p.eat("TEMPORARY");
        if let Some(space) = self.function_space(temporary) {
            return self.drop_function(space);
        }
        let kind = if self.p.eat("TABLE") {
            DropKind::Table
        } else if self.p.eat("VIEW") {
            DropKind::View
        } else if !temporary && self.p.eat("DATABASE") {
            DropKind::Database
        } else if !temporary && self.p.eat("CATALOG") {
            DropKind::Catalog
        } else {
            return Err(self.unexpected(if temporary {
                "TABLE, VIEW or FUNCTION"
            } else {
                "TABLE, VIEW, FUNCTION, DATABASE or CATALOG"
            }));
        };
        let if_exists = self.if_exists();
        let name = self.p.name("a name")?;
        let cascade = kind == DropKind::Database && self.p.eat("CASCADE");
        if kind == DropKind::Database && !cascade {
            self.p.eat("RESTRICT");
        }
        Ok(Statement::Drop { kind, name, if_exists, temporary, cascade })
    }
}
