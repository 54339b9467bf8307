//! The expressions that sqlparser does not read as Flink does: table arguments, intervals, MAP[…], JSON clauses, BETWEEN SYMMETRIC.
//!
//! Each is turned into a node that sqlparser has; the encodings are listed in [`crate::sql`].

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Array, BinaryOperator, CaseWhen, CastKind, DateTimeField, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator,
    FunctionArgumentList, FunctionArguments, Ident, Interval, ObjectName, OrderByExpr, TrimWhereField, UnaryOperator, Value,
    WindowSpec, WindowType,
};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Span as SqlSpan, Token};

use super::cursor::{Cursor, double_quoted, is_word};
use super::dialect::{CLAUSES, HookError};
use super::{json, type_parser};
use crate::error::{Error, ErrorKind};

type Hooked<T> = std::result::Result<T, HookError>;

/// The start of an expression; none = sqlparser reads it rightly.
pub(super) fn parse_prefix(parser: &mut Parser) -> Hooked<Option<Expr>> {
    let next = parser.peek_token_ref();
    let called = parser.peek_nth_token_ref(1).token == Token::LParen;
    match &next.token {
        Token::Word(word) if word.quote_style.is_none() => match word.value.to_ascii_uppercase().as_str() {
            "TABLE" => table_argument(parser).map(Some),
            "INTERVAL" => interval(parser).map(Some),
            "TRIM" if called && parser.peek_nth_token_ref(3).token.to_string().eq_ignore_ascii_case("FROM") => trim_side(parser),
            "MAP" if parser.peek_nth_token_ref(1).token == Token::LBracket => map(parser).map(Some),
            "CASE" => case(parser).map(Some),
            "GROUPING" if parser.at("GROUPING SETS") => {
                parser.eat("GROUPING SETS");
                grouping_parts(parser).map(|sets| Some(Expr::GroupingSets(sets)))
            }
            "DISTINCT" if is_after_group_by(parser) => {
                parser.advance_token();
                let elem = parser.parse_comma_separated(Parser::parse_expr)?;
                Ok(Some(Expr::Array(Array { elem, named: false })))
            }
            "CUBE" if called => {
                parser.advance_token();
                grouping_parts(parser).map(|parts| Some(Expr::Cube(parts)))
            }
            "ROLLUP" if called => {
                parser.advance_token();
                grouping_parts(parser).map(|parts| Some(Expr::Rollup(parts)))
            }
            "POSITION" if called => position(parser),
            "CEILING" if called => {
                parser.advance_token();
                Ok(Some(parser.parse_ceil_floor_expr(true)?))
            }
            "JSON_VALUE" | "JSON_QUERY" | "JSON_EXISTS" | "JSON_OBJECT" | "JSON_OBJECTAGG" | "JSON_ARRAY" | "JSON_ARRAYAGG"
                if called =>
            {
                json::call(parser).map(Some)
            }
            _ if CLAUSES.contains(&word.keyword) && !called => Err(parser.unexpected("an expression").into()),
            _ => Ok(None),
        },
        Token::DoubleQuotedString(_) => Err(double_quoted(next).into()),
        Token::Number(_, true) => Err(parser.unexpected("a number without suffix").into()),
        Token::Placeholder(_) => Err(Error::unsupported("a parameter").at(parser.next_span()).into()),
        Token::Colon | Token::AtSign | Token::LBrace => Err(parser.unexpected("an expression").into()),
        _ => Ok(None),
    }
}

/// Whether the next token is the first of the elements of a GROUP BY.
fn is_after_group_by(parser: &Parser) -> bool {
    let before = (0..parser.index()).rev().map(|at| &parser.token_at(at).token);
    let mut words = before.filter(|token| !matches!(token, Token::Whitespace(_)));
    let mut is = |word: &str| matches!(words.next(), Some(Token::Word(found)) if found.value.eq_ignore_ascii_case(word));
    is("BY") && is("GROUP")
}

/// `(a, (b, c), (), ROLLUP(d))`: the elements of grouping sets that stand within others, where sqlparser looks for a function.
fn grouping_parts(parser: &mut Parser) -> Hooked<Vec<Vec<Expr>>> {
    parser.require(&Token::LParen)?;
    let mut parts = Vec::new();
    loop {
        if parser.at_token(&Token::LParen) && parser.peek_nth_token_ref(1).token == Token::RParen {
            parser.advance_token();
            parser.advance_token();
            parts.push(Vec::new());
        } else {
            parts.push(match parser.parse_expr()? {
                Expr::Tuple(items) => items,
                other => vec![other],
            });
        }
        if !parser.eat_token(&Token::Comma) {
            break;
        }
    }
    parser.require(&Token::RParen)?;
    Ok(parts)
}

/// The precedence of LIKE, SIMILAR TO, BETWEEN and IN: above sqlparser's of comparisons, below that of sums.
pub(super) const LIKE_PRECEDENCE: u8 = 25;

/// `POSITION(a IN b FROM n)`, which is LOCATE(a, b, n).
fn position(parser: &mut Parser) -> Hooked<Option<Expr>> {
    let name = Ident::with_span(parser.peek_token_ref().span, "LOCATE");
    parser.advance_token();
    parser.require(&Token::LParen)?;
    let part = parser.parse_subexpr(LIKE_PRECEDENCE)?;
    if !parser.eat("IN") {
        return Err(parser.unexpected("IN").into());
    }
    let text = parser.parse_expr()?;
    let from = if parser.eat("FROM") { Some(parser.parse_expr()?) } else { None };
    parser.require(&Token::RParen)?;
    Ok(Some(match from {
        None => Expr::Position { expr: Box::new(part), r#in: Box::new(text) },
        Some(from) => Expr::Function(function(name, vec![unnamed(part), unnamed(text), unnamed(from)])),
    }))
}

/// Whether the unit of an interval follows a closing parenthesis.
pub(super) fn at_interval_unit(parser: &Parser) -> bool {
    let Token::Word(word) = &parser.peek_token_ref().token else { return false };
    let units = ["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"];
    parser.get_current_token().token == Token::RParen
        && word.quote_style.is_none()
        && units.iter().any(|unit| unit.eq_ignore_ascii_case(&word.value))
}

/// `(a - b) DAY TO SECOND`: the interval between two points in time. In months it is `INTERVAL '1' MONTH * TIMESTAMPDIFF(MONTH, b, a)`.
fn difference(parser: &mut Parser, left: &Expr) -> Hooked<Expr> {
    let Expr::Nested(inner) = left else { return Err(parser.unexpected("an operator").into()) };
    let Expr::BinaryOp { left: later, op: BinaryOperator::Minus, right: earlier } = inner.as_ref() else {
        return Err(parser.unexpected("an operator").into());
    };
    let span = parser.peek_token_ref().span;
    let first = unit(parser).ok_or_else(|| parser.unexpected("a unit"))?;
    precisions(parser)?;
    if parser.eat("TO") {
        let last_span = parser.next_span();
        let last = unit(parser).ok_or_else(|| parser.unexpected("MONTH, HOUR, MINUTE or SECOND"))?;
        if !may_go_to(&first, &last) {
            let message = format!("INTERVAL cannot go from {first} to {last}");
            return Err(Error::new(ErrorKind::Syntax, message).at(last_span).into());
        }
        precisions(parser)?;
    }
    if !matches!(first, DateTimeField::Year | DateTimeField::Month) {
        return Ok(left.clone());
    }
    let month = Expr::Identifier(Ident::with_span(span, "MONTH"));
    let args = vec![unnamed(month), unnamed(earlier.as_ref().clone()), unnamed(later.as_ref().clone())];
    let months = Expr::Function(function(Ident::with_span(span, "TIMESTAMPDIFF"), args));
    let one = Expr::Interval(Interval {
        value: Box::new(Expr::Value(Value::SingleQuotedString("1".to_string()).with_span(span))),
        leading_field: Some(DateTimeField::Month),
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    });
    let product = Expr::BinaryOp { left: Box::new(one), op: BinaryOperator::Multiply, right: Box::new(months) };
    Ok(Expr::Nested(Box::new(product)))
}

/// `TRIM(LEADING FROM x)`: the side without what is trimmed.
fn trim_side(parser: &mut Parser) -> Hooked<Option<Expr>> {
    let side = match parser.peek_nth_token_ref(2).token.to_string().to_ascii_uppercase().as_str() {
        "BOTH" => TrimWhereField::Both,
        "LEADING" => TrimWhereField::Leading,
        "TRAILING" => TrimWhereField::Trailing,
        _ => return Ok(None),
    };
    for _ in 0..4 {
        parser.advance_token();
    }
    let expr = Box::new(parser.parse_expr()?);
    parser.require(&Token::RParen)?;
    Ok(Some(Expr::Trim { trim_where: Some(side), trim_what: None, expr, trim_characters: None }))
}

/// What follows an operand; none = sqlparser reads it rightly.
pub(super) fn parse_infix(parser: &mut Parser, left: &Expr, _precedence: u8) -> Hooked<Option<Expr>> {
    if parser.at_token(&Token::DoubleEq) {
        return Err(parser.unexpected("an operator").with_hint("write = to compare").into());
    }
    if at_interval_unit(parser) {
        return difference(parser, left).map(Some);
    }
    if parser.at("PARTITION BY") {
        return match left {
            Expr::Subquery(_) => {
                let keyword = Ident::with_span(parser.peek_token_ref().span, "TABLE");
                table_clauses(parser, keyword, left.clone()).map(Some)
            }
            _ => Err(parser.unexpected(") or a comma").into()),
        };
    }
    if let Some(op) = comparison_with_list(parser) {
        return compared_with_list(parser, left, op).map(Some);
    }
    let negated = parser.at("NOT BETWEEN SYMMETRIC") || parser.at("NOT BETWEEN ASYMMETRIC");
    if !negated && !parser.at("BETWEEN SYMMETRIC") && !parser.at("BETWEEN ASYMMETRIC") {
        return Ok(None);
    }
    parser.eat("NOT");
    parser.eat("BETWEEN");
    let symmetric = parser.eat("SYMMETRIC");
    parser.eat("ASYMMETRIC");
    let between = parser.parse_between(left.clone(), negated && !symmetric)?;
    if !symmetric {
        return Ok(Some(between));
    }
    let Expr::Between { expr, low, high, negated: never } = between else {
        return Ok(Some(between));
    };
    let swapped = Expr::Between { expr: expr.clone(), negated: never, low: high.clone(), high: low.clone() };
    let straight = Expr::Between { expr, negated: never, low, high };
    let either = Expr::BinaryOp { left: Box::new(straight), op: BinaryOperator::Or, right: Box::new(swapped) };
    let nested = Expr::Nested(Box::new(either));
    Ok(Some(if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(nested) } } else { nested }))
}

/// The operator of `= ANY (1, 2)`, if such a thing comes next. Behind the parenthesis of the other form is a query.
fn comparison_with_list(parser: &Parser) -> Option<BinaryOperator> {
    let op = match parser.peek_token_ref().token {
        Token::Eq => BinaryOperator::Eq,
        Token::Neq => BinaryOperator::NotEq,
        Token::Lt => BinaryOperator::Lt,
        Token::LtEq => BinaryOperator::LtEq,
        Token::Gt => BinaryOperator::Gt,
        Token::GtEq => BinaryOperator::GtEq,
        _ => return None,
    };
    let nth = |n| &parser.peek_nth_token_ref(n).token;
    let quantified = ["ANY", "SOME", "ALL"].iter().any(|word| is_word(nth(1), word)) && *nth(2) == Token::LParen;
    let queried = *nth(3) == Token::LParen || ["SELECT", "WITH", "VALUES"].iter().any(|word| is_word(nth(3), word));
    (quantified && !queried).then_some(op)
}

/// `= ANY (1, 2)`, which sqlparser reads with one value only.
fn compared_with_list(parser: &mut Parser, left: &Expr, compare_op: BinaryOperator) -> Hooked<Expr> {
    parser.advance_token();
    let all = parser.at("ALL");
    let is_some = parser.at("SOME");
    parser.advance_token();
    parser.require(&Token::LParen)?;
    let right = Box::new(Expr::Tuple(parser.parse_comma_separated(Parser::parse_expr)?));
    parser.require(&Token::RParen)?;
    let left = Box::new(left.clone());
    Ok(if all { Expr::AllOp { left, compare_op, right } } else { Expr::AnyOp { left, compare_op, right, is_some } })
}

/// `TABLE t [PARTITION BY …] [ORDER BY …]`, `TABLE (SELECT …) …`: the argument of a table function.
fn table_argument(parser: &mut Parser) -> Hooked<Expr> {
    let keyword = Ident::with_span(parser.peek_token_ref().span, "TABLE");
    parser.advance_token();
    let table = if parser.eat_token(&Token::LParen) {
        let query = parser.parse_query()?;
        parser.require(&Token::RParen)?;
        Expr::Subquery(query)
    } else {
        Expr::CompoundIdentifier(compound_identifier(parser)?)
    };
    table_clauses(parser, keyword, table)
}

/// What stands behind the table of an argument.
fn table_clauses(parser: &mut Parser, keyword: Ident, table: Expr) -> Hooked<Expr> {
    let partition_by = if parser.eat("PARTITION BY") { expressions(parser)? } else { Vec::new() };
    let order_by = if parser.eat("ORDER BY") { order_by(parser)? } else { Vec::new() };
    let over = (!partition_by.is_empty() || !order_by.is_empty()).then_some(WindowType::WindowSpec(WindowSpec {
        window_name: None,
        partition_by,
        order_by,
        window_frame: None,
    }));
    let mut function = function(keyword, vec![unnamed(table)]);
    function.over = over;
    Ok(Expr::Function(function))
}

fn compound_identifier(parser: &mut Parser) -> Hooked<Vec<Ident>> {
    let mut parts = Vec::new();
    loop {
        let span = parser.peek_token_ref().span;
        let (value, _) = parser.identifier("a table name")?;
        parts.push(Ident::with_span(span, value));
        if !parser.eat_token(&Token::Period) {
            return Ok(parts);
        }
    }
}

/// `a, b` or `(a, b)`.
fn expressions(parser: &mut Parser) -> Hooked<Vec<Expr>> {
    if parser.eat_token(&Token::LParen) {
        let list = parser.parse_comma_separated(Parser::parse_expr)?;
        parser.require(&Token::RParen)?;
        return Ok(list);
    }
    // Without parentheses a comma would be that of the next argument: one key is all, as in Flink.
    Ok(vec![parser.parse_expr()?])
}

fn order_by(parser: &mut Parser) -> Hooked<Vec<OrderByExpr>> {
    if parser.eat_token(&Token::LParen) {
        let list = parser.parse_comma_separated(Parser::parse_order_by_expr)?;
        parser.require(&Token::RParen)?;
        return Ok(list);
    }
    Ok(vec![parser.parse_order_by_expr()?])
}

/// `MAP[k, v, …]` as a call of MAP.
fn map(parser: &mut Parser) -> Hooked<Expr> {
    let keyword = Ident::with_span(parser.peek_token_ref().span, "MAP");
    parser.advance_token();
    parser.require(&Token::LBracket)?;
    let entries = parser.parse_comma_separated0(Parser::parse_expr, Token::RBracket)?;
    parser.require(&Token::RBracket)?;
    if entries.len() % 2 == 1 {
        let error = Error::new(ErrorKind::InvalidArgument, "MAP with a key that has no value").at(parser.last_span());
        return Err(error.with_hint("write MAP[key, value, key, value]").into());
    }
    Ok(Expr::Function(function(keyword, entries.into_iter().map(unnamed).collect())))
}

/// `CASE [x] WHEN a, b THEN r … [ELSE r] END`. Several values of one WHEN become several WHENs.
fn case(parser: &mut Parser) -> Hooked<Expr> {
    let case_token = AttachedToken(parser.next_token());
    let operand = if parser.at("WHEN") { None } else { Some(Box::new(parser.parse_expr()?)) };
    let mut conditions = Vec::new();
    while parser.eat("WHEN") {
        let mut values = vec![parser.parse_expr()?];
        while operand.is_some() && parser.eat_token(&Token::Comma) {
            values.push(parser.parse_expr()?);
        }
        parser.expect("THEN")?;
        let result = parser.parse_expr()?;
        conditions.extend(values.into_iter().map(|condition| CaseWhen { condition, result: result.clone() }));
    }
    if conditions.is_empty() {
        return Err(parser.unexpected("WHEN").into());
    }
    let else_result = if parser.eat("ELSE") { Some(Box::new(parser.parse_expr()?)) } else { None };
    if !parser.at("END") {
        let expected = if else_result.is_some() { "END" } else { "WHEN, ELSE or END" };
        return Err(parser.unexpected(expected).into());
    }
    let end_token = AttachedToken(parser.next_token());
    Ok(Expr::Case { case_token, end_token, operand, conditions, else_result })
}

/// `INTERVAL [-] 'n' unit [TO unit]`.
fn interval(parser: &mut Parser) -> Hooked<Expr> {
    parser.advance_token();
    let minus = parser.eat_token(&Token::Minus);
    if !minus {
        parser.eat_token(&Token::Plus);
    }
    let span = parser.peek_token_ref().span;
    let (mut text, text_span) = parser
        .string("the quoted value of the interval")
        .map_err(|error| if error.hint().is_some() { error } else { error.with_hint("write INTERVAL '5' MINUTE") })?;
    let Some(first) = unit(parser) else {
        return Err(interval_without_unit(parser, &text, text_span).into());
    };
    let (leading_precision, mut fractional_seconds_precision) = precisions(parser)?;
    let mut last_field = None;
    if parser.eat("TO") {
        let last_span = parser.next_span();
        let last = unit(parser).ok_or_else(|| parser.unexpected("MONTH, HOUR, MINUTE or SECOND"))?;
        if !may_go_to(&first, &last) {
            let message = format!("INTERVAL cannot go from {first} to {last}");
            return Err(Error::new(ErrorKind::Syntax, message).at(last_span).into());
        }
        fractional_seconds_precision = precisions(parser)?.0;
        last_field = Some(last);
    }
    if minus {
        text = text.strip_prefix('-').map_or_else(|| format!("-{text}"), str::to_string);
    }
    Ok(Expr::Interval(Interval {
        value: Box::new(Expr::Value(Value::SingleQuotedString(text).with_span(span))),
        leading_field: Some(first),
        leading_precision,
        last_field,
        fractional_seconds_precision,
    }))
}

fn interval_without_unit(parser: &Parser, text: &str, span: crate::error::Span) -> Error {
    let mut words = text.split_whitespace();
    let hint = match (words.next(), words.next(), words.next()) {
        (Some(value), Some(unit), None) if value.parse::<i64>().is_ok() => {
            format!("write INTERVAL '{value}' {}", unit.to_uppercase().trim_end_matches('S'))
        }
        _ => format!("write INTERVAL '{text}' SECOND, or another unit"),
    };
    let mut error = parser.unexpected("the unit of the interval");
    if parser.at_token(&Token::EOF) {
        error = Error::new(ErrorKind::Syntax, "interval without a unit").at(span);
    }
    error.with_hint(hint)
}

/// `(n)` or `(n, m)`.
fn precisions(parser: &mut Parser) -> Hooked<(Option<u64>, Option<u64>)> {
    if !parser.eat_token(&Token::LParen) {
        return Ok((None, None));
    }
    let first = parser.number("a precision")?.0;
    let second = if parser.eat_token(&Token::Comma) { Some(parser.number("a precision")?.0) } else { None };
    parser.require(&Token::RParen)?;
    Ok((Some(first), second))
}

/// A unit of time, in the singular.
fn unit(parser: &mut Parser) -> Option<DateTimeField> {
    let units: [(&str, &str, DateTimeField); 8] = [
        ("YEAR", "YEARS", DateTimeField::Year),
        ("QUARTER", "QUARTERS", DateTimeField::Quarter),
        ("MONTH", "MONTHS", DateTimeField::Month),
        ("WEEK", "WEEKS", DateTimeField::Week(None)),
        ("DAY", "DAYS", DateTimeField::Day),
        ("HOUR", "HOURS", DateTimeField::Hour),
        ("MINUTE", "MINUTES", DateTimeField::Minute),
        ("SECOND", "SECONDS", DateTimeField::Second),
    ];
    units.into_iter().find(|(one, many, _)| parser.eat(one) || parser.eat(many)).map(|(_, _, field)| field)
}

fn may_go_to(first: &DateTimeField, last: &DateTimeField) -> bool {
    use DateTimeField::{Day, Hour, Minute, Month, Second, Year};
    matches!((first, last), (Year, Month) | (Day, Hour | Minute | Second) | (Hour, Minute | Second) | (Minute, Second))
}

/// A call without extras.
pub(super) fn function(name: Ident, args: Vec<FunctionArg>) -> Function {
    Function {
        name: ObjectName::from(vec![name]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

/// A positional argument.
pub(super) fn unnamed(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

/// A named argument, `name => expr`.
pub(super) fn named(name: &str, expr: Expr, span: SqlSpan) -> FunctionArg {
    FunctionArg::Named {
        name: Ident::with_span(span, name),
        arg: FunctionArgExpr::Expr(expr),
        operator: FunctionArgOperator::RightArrow,
    }
}

/// An argument that is a word of the syntax: a string.
pub(super) fn word(name: &str, value: &str, span: SqlSpan) -> FunctionArg {
    named(name, Expr::Value(Value::SingleQuotedString(value.to_string()).with_span(span)), span)
}

/// An argument that is a type: NULL cast to it.
pub(super) fn type_argument(parser: &mut Parser, name: &str, span: SqlSpan) -> Hooked<FunctionArg> {
    let data_type = type_parser::encode(&type_parser::parse_type(parser)?);
    let null = Expr::Value(Value::Null.with_span(span));
    Ok(named(name, Expr::Cast { kind: CastKind::Cast, expr: Box::new(null), data_type, format: None }, span))
}
