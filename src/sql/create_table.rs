//! CREATE TABLE: columns, watermark, primary key, partitioning, options, LIKE and AS.

use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::parser::StatementParser;
use super::{
    ColumnDefinition, CreateTable, CreateTableAs, LikeClause, LikeFeature, LikeStrategy, Name, Statement, WatermarkClause,
    type_parser,
};
use crate::error::{Error, ErrorKind, Result, Span};

impl StatementParser<'_, '_> {
    /// `CREATE [TEMPORARY] TABLE`, from behind TABLE.
    pub fn create_table(&mut self, temporary: bool) -> Result<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.p.name("a table name")?;
        let mut table = CreateTable {
            name,
            temporary,
            if_not_exists,
            columns: Vec::new(),
            watermark: None,
            primary_key: None,
            comment: None,
            partition_keys: Vec::new(),
            options: Default::default(),
            like: None,
            query: None,
        };
        if self.p.at_token(&Token::LParen) {
            self.list(|parser| parser.table_element(&mut table))?;
        }
        table.comment = self.comment()?;
        if self.p.at("DISTRIBUTED") {
            return Err(Error::unsupported("DISTRIBUTED").at(self.p.next_span()));
        }
        if self.p.eat("PARTITIONED BY") {
            table.partition_keys = self.column_list()?;
        }
        table.options = self.with_options()?;
        if self.p.eat("LIKE") {
            table.like = Some(self.like_clause()?);
        } else if self.p.at("AS") {
            let span = self.p.next_span();
            self.p.eat("AS");
            if temporary {
                return Err(Error::unsupported("CREATE TEMPORARY TABLE AS").at(span).with_hint("leave out TEMPORARY"));
            }
            let (query, sql) = self.query_with_text()?;
            table.query = Some(CreateTableAs { query, sql });
        } else if !self.p.at_token(&Token::EOF) {
            return Err(self.unexpected("COMMENT, PARTITIONED BY, WITH, LIKE, AS or the end of the statement"));
        }
        let untyped = table.columns.iter().find_map(|column| match column {
            ColumnDefinition::Identifier(name) => Some(name),
            _ => None,
        });
        if let (None, Some(name)) = (&table.query, untyped) {
            let error = Error::new(ErrorKind::Syntax, format!("column \"{}\" has no type", name.parts[0])).at(name.span);
            return Err(error.with_hint("only with AS SELECT types may be left out"));
        }
        Ok(Statement::CreateTable(Box::new(table)))
    }

    /// A column, WATERMARK or PRIMARY KEY.
    fn table_element(&mut self, table: &mut CreateTable) -> Result<()> {
        let span = self.p.next_span();
        if self.p.at("WATERMARK FOR") {
            let watermark = self.watermark()?;
            if table.watermark.replace(watermark).is_some() {
                return Err(Error::new(ErrorKind::Syntax, "table with two watermarks")
                    .at(span)
                    .with_hint("keep one WATERMARK FOR"));
            }
            return Ok(());
        }
        let constraint = if self.p.eat("CONSTRAINT") { Some(self.p.identifier("the name of the constraint")?.0) } else { None };
        if self.p.eat("PRIMARY KEY") {
            let columns = self.column_list()?;
            self.not_enforced(span)?;
            return set_primary_key(table, constraint, columns, span);
        }
        self.refuse_constraint()?;
        if constraint.is_some() {
            return Err(self.unexpected("PRIMARY KEY"));
        }
        self.column(table)
    }

    fn column(&mut self, table: &mut CreateTable) -> Result<()> {
        let name = self.column_name()?;
        if self.p.at_token(&Token::Comma) || self.p.at_token(&Token::RParen) {
            table.columns.push(ColumnDefinition::Identifier(name));
            return Ok(());
        }
        if self.p.eat("AS") {
            let (expr, sql) = self.expression_with_text()?;
            let comment = self.comment()?;
            table.columns.push(ColumnDefinition::Computed { name, expr: Box::new(expr), sql, comment });
            return Ok(());
        }
        let data_type = type_parser::parse_type(&mut self.p)?;
        if self.p.eat("METADATA") {
            let key = if self.p.eat("FROM") { Some(self.p.string("the metadata key in quotes")?.0) } else { None };
            let is_virtual = self.p.eat("VIRTUAL");
            let comment = self.comment()?;
            table.columns.push(ColumnDefinition::Metadata { name, data_type, key, is_virtual, comment });
            return Ok(());
        }
        self.column_constraint(table, &name)?;
        let comment = self.comment()?;
        table.columns.push(ColumnDefinition::Physical { name, data_type, comment });
        Ok(())
    }

    /// `[CONSTRAINT n] PRIMARY KEY NOT ENFORCED` behind a column.
    fn column_constraint(&mut self, table: &mut CreateTable, column: &Name) -> Result<()> {
        let span = self.p.next_span();
        let constraint = if self.p.eat("CONSTRAINT") { Some(self.p.identifier("the name of the constraint")?.0) } else { None };
        self.refuse_constraint()?;
        if self.p.eat("PRIMARY KEY") {
            self.not_enforced(span)?;
            return set_primary_key(table, constraint, vec![column.clone()], span);
        }
        if constraint.is_some() {
            return Err(self.unexpected("PRIMARY KEY"));
        }
        let goes_on = self.p.at("COMMENT") || self.p.at_token(&Token::Comma) || self.p.at_token(&Token::RParen);
        if goes_on { Ok(()) } else { Err(self.unexpected("\",\", \")\", NOT NULL, PRIMARY KEY, METADATA or COMMENT")) }
    }

    fn refuse_constraint(&self) -> Result<()> {
        let construct = if self.p.at("UNIQUE") {
            "a UNIQUE constraint"
        } else if self.p.at("CHECK") {
            "a CHECK constraint"
        } else if self.p.at("DEFAULT") {
            "a DEFAULT value"
        } else if self.p.at("REFERENCES") || self.p.at("FOREIGN KEY") {
            "a FOREIGN KEY constraint"
        } else {
            return Ok(());
        };
        Err(Error::unsupported(construct).at(self.p.next_span()))
    }

    /// NOT ENFORCED, without which a PRIMARY KEY would be a promise that nobody keeps.
    fn not_enforced(&mut self, start: Span) -> Result<()> {
        if self.p.eat("NOT ENFORCED") {
            return Ok(());
        }
        let enforced = self.p.eat("ENFORCED");
        let span = Span { start: start.start, end: self.p.last_span().end };
        let construct = if enforced { "PRIMARY KEY ENFORCED" } else { "PRIMARY KEY without NOT ENFORCED" };
        Err(Error::unsupported(construct)
            .at(span)
            .with_hint("write PRIMARY KEY (…) NOT ENFORCED: tables do not own their data, so the key cannot be checked"))
    }

    /// `WATERMARK FOR column AS expression`.
    fn watermark(&mut self) -> Result<WatermarkClause> {
        let start = self.p.next_span().start;
        self.p.expect("WATERMARK FOR")?;
        let column = self.p.name("the rowtime column")?;
        if column.parts.len() > 1 {
            return Err(Error::unsupported("WATERMARK FOR a nested field")
                .at(column.span)
                .with_hint("add a computed column for the field, and the watermark for that column"));
        }
        self.p.expect("AS")?;
        let (expr, sql) = self.expression_with_text()?;
        Ok(WatermarkClause { column, expr: Box::new(expr), sql, span: Span { start, end: self.p.last_span().end } })
    }

    /// LIKE, from behind the word.
    fn like_clause(&mut self) -> Result<LikeClause> {
        let source = self.p.name("the table to copy")?;
        let mut strategies: Vec<(LikeStrategy, LikeFeature)> = Vec::new();
        if self.p.eat_token(&Token::LParen) {
            while !self.p.eat_token(&Token::RParen) {
                let span = self.p.next_span();
                let (strategy, feature) = self.like_option()?;
                if strategies.iter().any(|(_, taken)| *taken == feature) {
                    return Err(Error::new(ErrorKind::Syntax, "LIKE names the same part twice").at(span));
                }
                strategies.push((strategy, feature));
            }
        }
        Ok(LikeClause { source, strategies })
    }

    fn like_option(&mut self) -> Result<(LikeStrategy, LikeFeature)> {
        const STRATEGIES: &[(&str, LikeStrategy)] = &[
            ("INCLUDING", LikeStrategy::Including),
            ("EXCLUDING", LikeStrategy::Excluding),
            ("OVERWRITING", LikeStrategy::Overwriting),
        ];
        const FEATURES: &[(&str, LikeFeature)] = &[
            ("ALL", LikeFeature::All),
            ("CONSTRAINTS", LikeFeature::Constraints),
            ("DISTRIBUTION", LikeFeature::Distribution),
            ("GENERATED", LikeFeature::Generated),
            ("METADATA", LikeFeature::Metadata),
            ("OPTIONS", LikeFeature::Options),
            ("PARTITIONS", LikeFeature::Partitions),
            ("WATERMARKS", LikeFeature::Watermarks),
        ];
        let strategy = STRATEGIES.iter().find(|(word, _)| self.p.eat(word)).map(|(_, strategy)| *strategy);
        let strategy = strategy.ok_or_else(|| self.p.unexpected("INCLUDING, EXCLUDING, OVERWRITING or \")\""))?;
        let span = self.p.next_span();
        let feature = FEATURES.iter().find(|(word, _)| self.p.eat(word)).map(|(_, feature)| *feature);
        let feature = feature.ok_or_else(|| {
            self.p.unexpected("ALL, CONSTRAINTS, DISTRIBUTION, GENERATED, METADATA, OPTIONS, PARTITIONS or WATERMARKS")
        })?;
        let overwritable =
            matches!(feature, LikeFeature::Generated | LikeFeature::Metadata | LikeFeature::Options | LikeFeature::Watermarks);
        if strategy == LikeStrategy::Overwriting && !overwritable {
            return Err(Error::new(ErrorKind::Syntax, "only GENERATED, METADATA, OPTIONS and WATERMARKS can be overwritten")
                .at(span)
                .with_hint("use INCLUDING or EXCLUDING"));
        }
        Ok((strategy, feature))
    }
}

fn set_primary_key(table: &mut CreateTable, name: Option<String>, columns: Vec<Name>, span: Span) -> Result<()> {
    if table.primary_key.replace((name, columns)).is_some() {
        let error = Error::new(ErrorKind::Syntax, "table with two primary keys").at(span);
        return Err(error.with_hint("name all key columns in one PRIMARY KEY (…)"));
    }
    Ok(())
}
