//! The parser, as the binder needs it: text kept in the catalog (views, computed columns, watermarks) and types in casts.

use sqlparser::ast::{DataType as SqlDataType, Expr as SqlExpr, Query};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

use crate::error::{Error, ErrorKind, Result};
use crate::types::{DataType, TypeKind};

/// An expression from text.
pub(super) fn expression(text: &str) -> Result<SqlExpr> {
    let mut parser = Parser::new(&GenericDialect {}).try_with_sql(text).map_err(syntax)?;
    parser.parse_expr().map_err(syntax)
}

/// A query from text.
pub(super) fn query(text: &str) -> Result<Box<Query>> {
    let mut parser = Parser::new(&GenericDialect {}).try_with_sql(text).map_err(syntax)?;
    parser.parse_query().map_err(syntax)
}

/// The type of a cast.
pub(super) fn data_type(data_type: &SqlDataType) -> Result<DataType> {
    let kind = match data_type {
        SqlDataType::Int(_) | SqlDataType::Integer(_) => TypeKind::Int,
        SqlDataType::BigInt(_) => TypeKind::BigInt,
        SqlDataType::String(_) => TypeKind::Varchar(crate::types::VARCHAR_MAX),
        SqlDataType::Boolean => TypeKind::Boolean,
        SqlDataType::Double(_) => TypeKind::Double,
        other => return Err(Error::unsupported(format!("the type {other}"))),
    };
    Ok(DataType::nullable(kind))
}

fn syntax(error: sqlparser::parser::ParserError) -> Error {
    Error::new(ErrorKind::Syntax, error.to_string())
}
