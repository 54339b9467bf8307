//! A statement of Flink's dialect, parsed but not bound: names are as written, queries are sqlparser's AST.

#![allow(missing_docs)] // the fields of variants are named for what they are

use std::collections::BTreeMap;
use std::ops::Range;

use sqlparser::ast::{Expr as SqlExpr, Query};

use crate::catalog::Options;
use crate::error::{Location, Span};
use crate::types::{DataType, FunctionSpace};

/// A statement with the text that it came from.
#[derive(Debug, Clone)]
pub struct ParsedStatement {
    /// The statement.
    pub statement: Statement,
    /// Its text, without the closing semicolon. All spans of the statement count from the start of the *script*.
    pub sql: String,
    /// Its first word: the place of errors that know no narrower one.
    pub place: Span,
    /// Where the text stands in the script, in bytes.
    pub range: Range<usize>,
    /// The hints of the statement that say something: `t /*+ OPTIONS('k' = 'v') */`, `SELECT /*+ EMIT('k' = 'v') */`,
    /// `SELECT /*+ STATE_TTL('t' = '1 d') */`.
    pub hints: Vec<HintedOptions>,
    /// Query hints that have no effect, `SELECT /*+ BROADCAST(t) */`: name and place.
    pub idle_hints: Vec<(String, Span)>,
}

/// `/*+ OPTIONS(…) */` after a table name, or a hint of a query after SELECT.
#[derive(Debug, Clone, PartialEq)]
pub struct HintedOptions {
    /// The hint's name, in upper case.
    pub hint: &'static str,
    /// Where the name before the hint ends (`Ident.span.end` of its last part), or the word SELECT.
    pub name_end: Location,
    /// The options; of STATE_TTL durations by name.
    pub options: Options,
    /// The hint itself; of a query's hint its name.
    pub span: Span,
}

/// A name of up to three parts, as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    /// Parts, back-ticks removed.
    pub parts: Vec<String>,
    /// Where it stands.
    pub span: Span,
}

/// A statement.
#[derive(Debug, Clone)]
pub enum Statement {
    /// `CREATE [TEMPORARY] TABLE`.
    CreateTable(Box<CreateTable>),
    /// `CREATE [OR REPLACE] [TEMPORARY] VIEW`.
    CreateView(Box<CreateView>),
    /// `CREATE [OR REPLACE] [TEMPORARY] FUNCTION … RETURN`.
    CreateFunction(Box<CreateFunction>),
    /// DROP FUNCTION.
    DropFunction { name: Name, if_exists: bool, space: FunctionSpace },
    /// CREATE DATABASE.
    CreateDatabase { name: Name, if_not_exists: bool, comment: Option<String>, options: Options },
    /// CREATE CATALOG.
    CreateCatalog { name: Name, if_not_exists: bool, comment: Option<String>, options: Options },
    /// ALTER TABLE.
    AlterTable { name: Name, if_exists: bool, action: AlterTable },
    /// DROP TABLE, VIEW, DATABASE, CATALOG.
    Drop { kind: DropKind, name: Name, if_exists: bool, temporary: bool, cascade: bool },
    /// USE, USE CATALOG.
    Use(UseTarget),
    /// SHOW …
    Show(Show),
    /// DESCRIBE / DESC.
    Describe { target: DescribeTarget, extended: bool },
    /// SET 'key' = 'value'; without both: lists the settings.
    Set { assignment: Option<(String, String)>, span: Span },
    /// RESET ['key'].
    Reset { key: Option<String>, span: Span },
    /// QUIT or EXIT: the end of a script, whatever follows.
    Quit,
    /// INSERT INTO.
    Insert(Box<Insert>),
    /// EXECUTE STATEMENT SET BEGIN … END.
    StatementSet(Vec<Insert>),
    /// SELECT, VALUES, WITH.
    Query(Box<Query>),
    /// EXPLAIN.
    Explain { details: Vec<ExplainDetail>, statement: Box<Statement> },
    /// EXPLAIN WATERMARK 'id'.
    ExplainWatermark { job: String, span: Span },
    /// STOP JOB 'id' [WITH SAVEPOINT] [WITH DRAIN].
    StopJob { job: String, with_savepoint: bool, with_drain: bool, span: Span },
    /// CALL procedure(…).
    Call { procedure: Name, arguments: Vec<SqlExpr> },
}

impl Statement {
    /// Whether its result can be rows. If not, it is carried out for what it changes, or its result is a text.
    pub fn may_give_rows(&self) -> bool {
        match self {
            Statement::Query(_) | Statement::Show(_) | Statement::Describe { .. } | Statement::ExplainWatermark { .. } => true,
            Statement::Set { assignment, .. } => assignment.is_none(),
            Statement::StopJob { with_savepoint, .. } => *with_savepoint,
            Statement::CreateTable(_)
            | Statement::CreateView(_)
            | Statement::CreateFunction(_)
            | Statement::DropFunction { .. }
            | Statement::CreateDatabase { .. }
            | Statement::CreateCatalog { .. }
            | Statement::AlterTable { .. }
            | Statement::Drop { .. }
            | Statement::Use(_)
            | Statement::Reset { .. }
            | Statement::Quit
            | Statement::Insert(_)
            | Statement::StatementSet(_)
            | Statement::Explain { .. }
            | Statement::Call { .. } => false,
        }
    }
}

/// CREATE TABLE.
#[derive(Debug, Clone)]
pub struct CreateTable {
    /// Name.
    pub name: Name,
    /// TEMPORARY.
    pub temporary: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Columns in order.
    pub columns: Vec<ColumnDefinition>,
    /// WATERMARK FOR.
    pub watermark: Option<WatermarkClause>,
    /// PRIMARY KEY … NOT ENFORCED, of the table or of a column.
    pub primary_key: Option<(Option<String>, Vec<Name>)>,
    /// COMMENT.
    pub comment: Option<String>,
    /// PARTITIONED BY.
    pub partition_keys: Vec<Name>,
    /// WITH: value and place of each option.
    pub options: BTreeMap<String, (String, Span)>,
    /// LIKE.
    pub like: Option<LikeClause>,
    /// AS SELECT.
    pub query: Option<CreateTableAs>,
}

/// The query of CREATE TABLE AS.
#[derive(Debug, Clone)]
pub struct CreateTableAs {
    /// The query.
    pub query: Box<Query>,
    /// Its text.
    pub sql: String,
}

/// A column in CREATE TABLE.
#[derive(Debug, Clone)]
pub enum ColumnDefinition {
    /// `c TYPE [NOT NULL] [COMMENT '…']`.
    Physical { name: Name, data_type: DataType, comment: Option<String> },
    /// `c TYPE METADATA [FROM 'key'] [VIRTUAL]`.
    Metadata { name: Name, data_type: DataType, key: Option<String>, is_virtual: bool, comment: Option<String> },
    /// `c AS expression`.
    Computed { name: Name, expr: Box<SqlExpr>, sql: String, comment: Option<String> },
    /// `c` alone, in CREATE TABLE (a, b) AS SELECT: reorders the query's columns.
    Identifier(Name),
}

/// `WATERMARK FOR c AS expression`.
#[derive(Debug, Clone)]
pub struct WatermarkClause {
    /// The rowtime column; nested fields are not allowed.
    pub column: Name,
    /// The expression.
    pub expr: Box<SqlExpr>,
    /// Its text.
    pub sql: String,
    /// Where the clause stands.
    pub span: Span,
}

/// `LIKE table (INCLUDING … EXCLUDING … OVERWRITING …)`.
#[derive(Debug, Clone)]
pub struct LikeClause {
    /// The table.
    pub source: Name,
    /// What is taken from it and how, in order.
    pub strategies: Vec<(LikeStrategy, LikeFeature)>,
}

/// How a feature is taken over by LIKE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LikeStrategy {
    /// Taken; a conflict is an error.
    Including,
    /// Left out.
    Excluding,
    /// Taken; the new table's own wins.
    Overwriting,
}

/// What LIKE can take over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]

pub enum LikeFeature {
    All,
    Constraints,
    Distribution,
    Generated,
    Metadata,
    Options,
    Partitions,
    Watermarks,
}

/// CREATE VIEW.
#[derive(Debug, Clone)]
pub struct CreateView {
    /// Name.
    pub name: Name,
    /// OR REPLACE.
    pub or_replace: bool,
    /// TEMPORARY.
    pub temporary: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Column names.
    pub columns: Vec<Name>,
    /// COMMENT.
    pub comment: Option<String>,
    /// The query.
    pub query: Box<Query>,
    /// Its text.
    pub sql: String,
}

/// What ALTER TABLE changes.
#[derive(Debug, Clone)]
pub enum AlterTable {
    /// RENAME TO.
    Rename(Name),
    /// SET ('k' = 'v').
    Set(BTreeMap<String, (String, Span)>),
    /// RESET ('k').
    Reset(Vec<(String, Span)>),
}

/// What DROP drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]

pub enum DropKind {
    Table,
    View,
    Database,
    Catalog,
}

/// What USE makes current.
#[derive(Debug, Clone)]

pub enum UseTarget {
    Catalog(Name),
    Database(Name),
}

/// What DESCRIBE describes.
#[derive(Debug, Clone)]

pub enum DescribeTarget {
    Table(Name),
    Database(Name),
    Catalog(Name),
    Job { id: String, span: Span },
    Function(Name),
}

/// What SHOW shows. `like`: (pattern, NOT, case-insensitive).
#[derive(Debug, Clone)]

pub enum Show {
    Catalogs { like: Option<(String, bool, bool)> },
    CurrentCatalog,
    Databases { from: Option<Name>, like: Option<(String, bool, bool)> },
    CurrentDatabase,
    Tables { from: Option<Name>, like: Option<(String, bool, bool)> },
    Views { from: Option<Name>, like: Option<(String, bool, bool)> },
    Functions { user_only: bool, like: Option<(String, bool, bool)> },
    Columns { table: Name, like: Option<(String, bool, bool)> },
    CreateTable(Name),
    CreateView(Name),
    CreateFunction(Name),
    Jobs,
}

/// CREATE FUNCTION: what a function computes, as an expression over its parameters.
#[derive(Debug, Clone)]
pub struct CreateFunction {
    /// Its name.
    pub name: Name,
    /// OR REPLACE.
    pub or_replace: bool,
    /// TEMPORARY, TEMPORARY SYSTEM or neither.
    pub space: FunctionSpace,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Parameters: name, type, place.
    pub params: Vec<(String, DataType, Span)>,
    /// RETURNS.
    pub returns: DataType,
    /// RETURN.
    pub body: SqlExpr,
    /// The text of the body.
    pub sql: String,
    /// Where the body stands.
    pub place: Span,
    /// Where the body calls the function itself.
    pub calls_itself: Option<Span>,
}

/// INSERT INTO.
#[derive(Debug, Clone)]
pub struct Insert {
    /// The sink.
    pub table: Name,
    /// Target columns; empty = all.
    pub columns: Vec<Name>,
    /// Static partition values, `PARTITION (k = v)`.
    pub partition: Vec<(Name, SqlExpr)>,
    /// OVERWRITE.
    pub overwrite: bool,
    /// The query.
    pub query: Box<Query>,
    /// ON CONFLICT.
    pub on_conflict: Option<OnConflict>,
}

/// What INSERT does with rows whose sink key was written under another key of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// DO NOTHING: the first one stays.
    Nothing,
    /// DO ERROR: the job fails.
    Error,
    /// DO DEDUPLICATE: the last one wins, and comes back when a later one goes.
    Deduplicate,
}

/// What EXPLAIN shows beyond the plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplainDetail {
    /// CHANGELOG_MODE.
    ChangelogMode,
    /// ESTIMATED_COST.
    EstimatedCost,
    /// JSON_EXECUTION_PLAN.
    JsonExecutionPlan,
    /// PLAN_ADVICE.
    PlanAdvice,
}
