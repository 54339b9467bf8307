//! Flink's dialect as sqlparser's hooks: which characters make names, which words are reserved, and where our own parsers step in.
//!
//! Errors raised inside a hook keep their hint and span: the hook stores the [`Error`] here and hands sqlparser a ticket for it,
//! which [`FlinkDialect::redeem`] turns back when the error has come out at the top.

use std::cell::{Cell, RefCell};

use sqlparser::ast::{DataType as SqlDataType, Expr};
use sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use sqlparser::keywords::{self, Keyword};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::{expression, type_parser};
use crate::error::{Error, ErrorKind};

/// The mark of a ticket in a [`ParserError`]; no error of sqlparser's own starts so.
const TICKET: char = '\u{1}';

/// The longest chain of operators.
const CHAIN_MAX: usize = 5_000;

/// After how many operators the length of the chain is looked at: seldom, because looking takes as long as the chain is.
const CHAIN_CHECK: usize = 500;

/// Flink's dialect.
#[derive(Debug, Default)]
pub(super) struct FlinkDialect {
    /// Whether `"x"` is an identifier.
    pub double_quoted_identifiers: bool,
    errors: RefCell<Vec<Error>>,
    /// How many operators were read, to look at the length of chains now and then.
    operators: Cell<usize>,
}

impl FlinkDialect {
    /// The dialect, with or without double-quoted identifiers.
    pub fn new(double_quoted_identifiers: bool) -> Self {
        FlinkDialect { double_quoted_identifiers, errors: RefCell::default(), operators: Cell::new(0) }
    }

    /// Stores an error of ours and makes a ticket for it that can travel through sqlparser.
    fn deposit(&self, error: Error) -> ParserError {
        let mut errors = self.errors.borrow_mut();
        errors.push(error);
        ParserError::ParserError(format!("{TICKET}{}", errors.len() - 1))
    }

    /// The error that a ticket stands for; none = the message is sqlparser's own.
    pub fn redeem(&self, message: &str) -> Option<Error> {
        let number: usize = message.strip_prefix(TICKET)?.parse().ok()?;
        self.errors.borrow().get(number).cloned()
    }

    /// A chain `a + b + …` is a tree as deep as it is long, and all that handles trees recurses: refuses one that no stack holds.
    fn check_chain(&self, parser: &Parser, left: &Expr) -> Result<(), HookError> {
        let operators = self.operators.get() + 1;
        self.operators.set(operators);
        if !operators.is_multiple_of(CHAIN_CHECK) {
            return Ok(());
        }
        let mut length = 0;
        let mut expr = left;
        while let Expr::BinaryOp { left, .. } = expr {
            (expr, length) = (left, length + 1);
        }
        if length < CHAIN_MAX {
            return Ok(());
        }
        let error = Error::new(ErrorKind::Syntax, format!("more than {CHAIN_MAX} operators in a row")).at(parser.next_span());
        Err(error.with_hint("use IN for a list of values, or parentheses to group").into())
    }

    /// Runs one of our parsers inside a hook.
    fn hooked<T>(&self, result: Option<Result<T, HookError>>) -> Option<Result<T, ParserError>> {
        result.map(|result| {
            result.map_err(|error| match error {
                HookError::Ours(error) => self.deposit(error),
                HookError::Sqlparser(error) => error,
            })
        })
    }
}

/// An error inside a hook: raised by us, or by sqlparser below us.
pub(super) enum HookError {
    /// Ours.
    Ours(Error),
    /// Sqlparser's, or a ticket.
    Sqlparser(ParserError),
}

impl From<Error> for HookError {
    fn from(error: Error) -> Self {
        HookError::Ours(error)
    }
}

impl From<ParserError> for HookError {
    fn from(error: ParserError) -> Self {
        HookError::Sqlparser(error)
    }
}

impl Dialect for FlinkDialect {
    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '`' || (ch == '"' && self.double_quoted_identifiers)
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('`')
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_' || ch == '$'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '_' || ch == '$'
    }

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    fn supports_string_literal_concatenation_with_newline(&self) -> bool {
        true
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }

    fn supports_match_recognize(&self) -> bool {
        true
    }

    fn supports_table_versioning(&self) -> bool {
        true
    }

    fn supports_projection_trailing_commas(&self) -> bool {
        true
    }

    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }

    fn require_interval_qualifier(&self) -> bool {
        true
    }

    fn supports_string_literal_column_alias(&self, _explicit: bool) -> bool {
        false
    }

    fn supports_string_literal_table_alias(&self, _explicit: bool) -> bool {
        false
    }

    fn is_reserved_for_identifier(&self, kw: Keyword) -> bool {
        keywords::RESERVED_FOR_IDENTIFIER.contains(&kw) || SPECIAL_FORMS.contains(&kw)
    }

    fn is_column_alias(&self, kw: &Keyword, _parser: &mut Parser) -> bool {
        !keywords::RESERVED_FOR_COLUMN_ALIAS.contains(kw) && !CLAUSES.contains(kw)
    }

    fn is_table_alias(&self, kw: &Keyword, _parser: &mut Parser) -> bool {
        let free_in_flink = matches!(kw, Keyword::ANALYZE | Keyword::RETURNING);
        free_in_flink || (!keywords::RESERVED_FOR_TABLE_ALIAS.contains(kw) && !CLAUSES.contains(kw))
    }

    fn is_table_factor(&self, kw: &Keyword, _parser: &mut Parser) -> bool {
        !keywords::RESERVED_FOR_TABLE_FACTOR.contains(kw) && !CLAUSES.contains(kw)
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        self.hooked(expression::parse_prefix(parser).transpose())
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            // In Flink these bind tighter than comparisons: `a = b LIKE c` is `a = (b LIKE c)`.
            Precedence::Between | Precedence::Like => expression::LIKE_PRECEDENCE,
            other => GenericDialect {}.prec_value(other),
        }
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        // Behind the subquery that is a table argument it goes on with that, behind `(a - b)` with the unit of an interval.
        if parser.at("PARTITION BY") || expression::at_interval_unit(parser) {
            return Some(Ok(1));
        }
        let compares = parser.at("IS DISTINCT FROM") || parser.at("IS NOT DISTINCT FROM") || parser.at("OVERLAPS");
        compares.then(|| Ok(self.prec_value(Precedence::Eq)))
    }

    fn parse_infix(&self, parser: &mut Parser, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        if let Err(error) = self.check_chain(parser, expr) {
            return self.hooked(Some(Err(error)));
        }
        self.hooked(expression::parse_infix(parser, expr, precedence).transpose())
    }

    fn parse_data_type(&self, parser: &mut Parser) -> Option<Result<SqlDataType, ParserError>> {
        self.hooked(Some(parse_type_hook(parser)))
    }
}

/// Words that open a special form of expression: when the form is malformed they are not tried as column names.
const SPECIAL_FORMS: &[Keyword] = &[
    Keyword::ARRAY,
    Keyword::CASE,
    Keyword::CAST,
    Keyword::TRY_CAST,
    Keyword::CEIL,
    Keyword::EXTRACT,
    Keyword::FALSE,
    Keyword::FLOOR,
    Keyword::NOT,
    Keyword::NULL,
    Keyword::OVERLAY,
    Keyword::SUBSTRING,
    Keyword::TRUE,
];

/// Words that open or join clauses: neither an alias without AS nor, unquoted, the name of a table or column.
pub(super) const CLAUSES: &[Keyword] = &[
    Keyword::AND,
    Keyword::AS,
    Keyword::BETWEEN,
    Keyword::BY,
    Keyword::CREATE,
    Keyword::CROSS,
    Keyword::ELSE,
    Keyword::EXCEPT,
    Keyword::FETCH,
    Keyword::FOR,
    Keyword::FROM,
    Keyword::FULL,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::IN,
    Keyword::INNER,
    Keyword::INSERT,
    Keyword::INTERSECT,
    Keyword::INTO,
    Keyword::IS,
    Keyword::JOIN,
    Keyword::LIKE,
    Keyword::LIMIT,
    Keyword::MATCH_RECOGNIZE,
    Keyword::NATURAL,
    Keyword::ON,
    Keyword::OR,
    Keyword::ORDER,
    Keyword::OUTER,
    Keyword::OVER,
    Keyword::PIVOT,
    Keyword::QUALIFY,
    Keyword::SELECT,
    Keyword::TABLESAMPLE,
    Keyword::THEN,
    Keyword::UNION,
    Keyword::UNPIVOT,
    Keyword::USING,
    Keyword::VALUES,
    Keyword::WHEN,
    Keyword::WHERE,
    Keyword::WINDOW,
    Keyword::WITH,
];

/// Words that have a meaning to sqlparser but none in Flink: plain identifiers here.
pub(super) const PLAIN_WORDS: &[Keyword] = &[
    Keyword::ANTI,
    Keyword::APPROXIMATE,
    Keyword::ASOF,
    Keyword::BEFORE,
    Keyword::CHANGES,
    Keyword::CLUSTER,
    Keyword::COLLATE,
    Keyword::CONNECT,
    Keyword::CONVERT,
    Keyword::DISTRIBUTE,
    Keyword::DIV,
    Keyword::EXCLUDE,
    Keyword::EXPLAIN,
    Keyword::FORMAT,
    Keyword::GLOB,
    Keyword::GLOBAL,
    Keyword::LAMBDA,
    Keyword::LOCK,
    Keyword::MATCH_CONDITION,
    Keyword::NOTNULL,
    Keyword::OPEN,
    Keyword::OPERATOR,
    Keyword::OUTPUT,
    Keyword::PREWHERE,
    Keyword::PRIOR,
    Keyword::REGEXP,
    Keyword::RENAME,
    Keyword::SAFE_CAST,
    Keyword::SAMPLE,
    Keyword::SEMI,
    Keyword::SEMANTIC_VIEW,
    Keyword::SETTINGS,
    Keyword::SORT,
    Keyword::START,
    Keyword::STRUCT,
    Keyword::TOP,
    Keyword::TRY_CONVERT,
    Keyword::VERSION,
    Keyword::VIEW,
    Keyword::XML,
    Keyword::XMLTABLE,
    Keyword::OPENJSON,
    Keyword::XOR,
];

/// A type for sqlparser. It tries one at every word, so what is plainly none is refused before an error is made of it.
fn parse_type_hook(parser: &mut Parser) -> Result<SqlDataType, HookError> {
    let wanted = match &parser.get_current_token().token {
        Token::DoubleColon => true,
        Token::Word(word) => matches!(word.keyword, Keyword::AS | Keyword::RETURNING),
        _ => false,
    };
    if !wanted && !type_parser::may_start_type(&parser.peek_token_ref().token) {
        return Err(HookError::Sqlparser(ParserError::ParserError(String::new())));
    }
    Ok(type_parser::encode(&type_parser::parse_type(parser)?))
}
