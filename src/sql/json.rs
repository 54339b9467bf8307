//! The clauses of the JSON functions, `RETURNING … ON EMPTY … ON ERROR`, as named arguments of a plain call.

use sqlparser::ast::{Expr, FunctionArg, FunctionArgumentClause, FunctionArguments, Ident, OrderByExpr};
use sqlparser::dialect::Precedence;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Span as SqlSpan, Token};

use super::cursor::Cursor;
use super::dialect::HookError;
use super::expression::{function, named, type_argument, unnamed, word};

type Hooked<T> = std::result::Result<T, HookError>;

/// A call of a JSON function, from its name on.
pub(super) fn call(parser: &mut Parser) -> Hooked<Expr> {
    let span = parser.peek_token_ref().span;
    let (name, _) = parser.identifier("a function name")?;
    let name = name.to_ascii_uppercase();
    parser.require(&Token::LParen)?;
    let mut args = match name.as_str() {
        "JSON_OBJECT" | "JSON_OBJECTAGG" => object_entries(parser)?,
        _ => values(parser)?,
    };
    let mut order = if name == "JSON_ARRAYAGG" { order_by(parser)? } else { Vec::new() };
    match name.as_str() {
        "JSON_VALUE" | "JSON_QUERY" | "JSON_EXISTS" => clauses(parser, &mut args)?,
        _ if parser.eat("NULL ON NULL") => args.push(word("ON_NULL", "NULL", span)),
        _ if parser.eat("ABSENT ON NULL") => args.push(word("ON_NULL", "ABSENT", span)),
        _ => {}
    }
    if name == "JSON_ARRAYAGG" && order.is_empty() {
        order = order_by(parser)?;
    }
    parser.require(&Token::RParen)?;
    let mut function = function(Ident::with_span(span, name), args);
    if let (FunctionArguments::List(list), false) = (&mut function.args, order.is_empty()) {
        list.clauses.push(FunctionArgumentClause::OrderBy(order));
    }
    if parser.eat("FILTER") {
        parser.require(&Token::LParen)?;
        parser.expect("WHERE")?;
        function.filter = Some(Box::new(parser.parse_expr()?));
        parser.require(&Token::RParen)?;
    }
    Ok(Expr::Function(function))
}

/// ORDER BY among the arguments, before the null clause or behind it.
fn order_by(parser: &mut Parser) -> Hooked<Vec<OrderByExpr>> {
    if !parser.eat("ORDER BY") {
        return Ok(Vec::new());
    }
    Ok(parser.parse_comma_separated(Parser::parse_order_by_expr)?)
}

/// Whether the list ends here: at the bracket or at a null clause.
fn at_end_of_list(parser: &Parser) -> bool {
    parser.at_token(&Token::RParen) || parser.at("NULL ON NULL") || parser.at("ABSENT ON NULL")
}

fn values(parser: &mut Parser) -> Hooked<Vec<FunctionArg>> {
    let mut args = Vec::new();
    if at_end_of_list(parser) {
        return Ok(args);
    }
    loop {
        args.push(unnamed(parser.parse_expr()?));
        if !parser.eat_token(&Token::Comma) {
            return Ok(args);
        }
    }
}

/// `[KEY] k VALUE v, k : v, …` as alternating arguments.
fn object_entries(parser: &mut Parser) -> Hooked<Vec<FunctionArg>> {
    let mut args = Vec::new();
    if at_end_of_list(parser) {
        return Ok(args);
    }
    let colon = sqlparser::dialect::Dialect::prec_value(&super::dialect::FlinkDialect::default(), Precedence::Colon);
    loop {
        if parser.at("KEY") && !matches!(parser.peek_nth_token_ref(1).token, Token::Colon | Token::Period | Token::LParen) {
            parser.eat("KEY");
        }
        args.push(unnamed(parser.parse_subexpr(colon)?));
        if !parser.eat_token(&Token::Colon) {
            parser.expect("VALUE")?;
        }
        args.push(unnamed(parser.parse_expr()?));
        if !parser.eat_token(&Token::Comma) {
            return Ok(args);
        }
    }
}

/// RETURNING, WRAPPER, ON EMPTY and ON ERROR, in any order.
fn clauses(parser: &mut Parser, args: &mut Vec<FunctionArg>) -> Hooked<()> {
    while !parser.at_token(&Token::RParen) {
        let span = parser.peek_token_ref().span;
        if parser.eat("RETURNING") {
            args.push(type_argument(parser, "RETURNING", span)?);
        } else if let Some(wrapper) = wrapper(parser)? {
            args.push(word("WRAPPER", wrapper, span));
        } else {
            on_clause(parser, args, span)?;
        }
    }
    Ok(())
}

fn wrapper(parser: &mut Parser) -> Hooked<Option<&'static str>> {
    let kind = if parser.eat("WITHOUT") {
        "WITHOUT"
    } else if parser.eat("WITH") {
        if parser.eat("CONDITIONAL") {
            "CONDITIONAL"
        } else {
            parser.eat("UNCONDITIONAL");
            "UNCONDITIONAL"
        }
    } else {
        return Ok(None);
    };
    parser.eat("ARRAY");
    parser.expect("WRAPPER")?;
    Ok(Some(kind))
}

/// `NULL | ERROR | TRUE | FALSE | UNKNOWN | EMPTY ARRAY | EMPTY OBJECT | DEFAULT e` and then `ON EMPTY | ON ERROR`.
fn on_clause(parser: &mut Parser, args: &mut Vec<FunctionArg>, span: SqlSpan) -> Hooked<()> {
    const WORDS: &[&str] = &["NULL", "ERROR", "TRUE", "FALSE", "UNKNOWN", "EMPTY ARRAY", "EMPTY OBJECT"];
    let found = WORDS.iter().copied().find(|candidate| parser.eat(candidate));
    let default = match found {
        Some(_) => None,
        None if parser.eat("DEFAULT") => Some(parser.parse_expr()?),
        None => return Err(parser.unexpected("\",\", \")\", RETURNING or ON EMPTY and ON ERROR clauses").into()),
    };
    parser.expect("ON")?;
    let on_empty = parser.eat("EMPTY");
    if !on_empty {
        parser.expect("ERROR")?;
    }
    let (plain, with_default) = if on_empty { ("ON_EMPTY", "DEFAULT_ON_EMPTY") } else { ("ON_ERROR", "DEFAULT_ON_ERROR") };
    args.push(match default {
        Some(expr) => named(with_default, expr, span),
        None => word(plain, found.unwrap_or("NULL"), span),
    });
    Ok(())
}
