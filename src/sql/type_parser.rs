//! The text of a type → [`DataType`]: Flink's type list with its defaults, ranges and nested forms.
//!
//! Inside expressions sqlparser wants a type of its own: [`encode`] gives it one that carries the text, [`data_type_of`] reads it
//! back. The lexer has split every `>>` in two, so that nested types close as they should.

use sqlparser::ast::{DataType as SqlDataType, Ident, ObjectName, TimezoneInfo};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::cursor::{Cursor, double_quoted};
use super::dialect::FlinkDialect;
use super::lexer::Script;
use crate::error::{Error, ErrorKind, Result, Span, nearest};
use crate::types::{DataType, RowField, TIME_PRECISION_MAX, TypeKind, VARCHAR_MAX, is_class_name};

/// How deep types may nest: far more than data has, far less than the stack holds.
const DEPTH_MAX: usize = 64;

/// The words that start a type.
const TYPE_NAMES: &[&str] = &[
    "ARRAY",
    "BIGINT",
    "BINARY",
    "BITMAP",
    "BOOLEAN",
    "BYTES",
    "CHAR",
    "CHARACTER",
    "DATE",
    "DEC",
    "DECIMAL",
    "DOUBLE",
    "FLOAT",
    "INT",
    "INTEGER",
    "INTERVAL",
    "MAP",
    "MULTISET",
    "NULL",
    "NUMERIC",
    "ROW",
    "SMALLINT",
    "STRING",
    "STRUCTURED",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP_LTZ",
    "TINYINT",
    "VARBINARY",
    "VARCHAR",
    "VARIANT",
];

/// Types of Flink's that Flott does not have.
const UNSUPPORTED_TYPES: &[&str] = &["DESCRIPTOR", "RAW"];

/// What other systems call our types.
const FOREIGN_NAMES: &[(&str, &str)] = &[
    ("BLOB", "BYTES"),
    ("BOOL", "BOOLEAN"),
    ("BYTEA", "BYTES"),
    ("CLOB", "STRING"),
    ("DATETIME", "TIMESTAMP(3)"),
    ("FLOAT4", "FLOAT"),
    ("FLOAT64", "DOUBLE"),
    ("FLOAT8", "DOUBLE"),
    ("INT2", "SMALLINT"),
    ("INT32", "INT"),
    ("INT4", "INT"),
    ("INT64", "BIGINT"),
    ("INT8", "BIGINT"),
    ("JSON", "STRING"),
    ("LIST", "ARRAY"),
    ("LONG", "BIGINT"),
    ("NUMBER", "DECIMAL"),
    ("REAL", "FLOAT"),
    ("SHORT", "SMALLINT"),
    ("STRUCT", "ROW"),
    ("TEXT", "STRING"),
    ("TIMESTAMPTZ", "TIMESTAMP_LTZ"),
    ("UUID", "STRING"),
    ("VARCHAR2", "VARCHAR"),
];

/// Whether a type may start with this token: cheap, for the many places where sqlparser tries one.
pub(super) fn may_start_type(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none()
        && TYPE_NAMES.iter().any(|name| name.eq_ignore_ascii_case(&word.value)))
}

/// A type with its nullability, `INT NOT NULL`.
pub(super) fn parse_type(parser: &mut Parser) -> Result<DataType> {
    nested_type(parser, 0)
}

/// A type from text.
pub fn parse_data_type(text: &str) -> Result<DataType> {
    let dialect = FlinkDialect::new(false);
    let script = Script::new(text, &dialect)?;
    let mut parser = script.parser(&dialect, script.all());
    let data_type = parse_type(&mut parser)?;
    parser.end()?;
    Ok(data_type)
}

/// The type that an sqlparser type of ours stands for: the target of CAST, the type of a typed literal.
pub fn data_type_of(data_type: &SqlDataType) -> Result<DataType> {
    parse_data_type(&data_type.to_string())
}

/// A type as sqlparser can hold it. DATE, TIME(p) and TIMESTAMP(p) are its own, because typed literals start with them.
pub(super) fn encode(data_type: &DataType) -> SqlDataType {
    match (&data_type.kind, data_type.nullable) {
        (TypeKind::Date, true) => SqlDataType::Date,
        (TypeKind::Time(precision), true) => SqlDataType::Time(Some(u64::from(*precision)), TimezoneInfo::None),
        (TypeKind::Timestamp(precision), true) => SqlDataType::Timestamp(Some(u64::from(*precision)), TimezoneInfo::None),
        _ => SqlDataType::Custom(ObjectName::from(vec![Ident::new(data_type.to_string())]), Vec::new()),
    }
}

fn nested_type(parser: &mut Parser, depth: usize) -> Result<DataType> {
    if depth > DEPTH_MAX {
        let error = Error::new(ErrorKind::Syntax, format!("type nested deeper than {DEPTH_MAX} levels"));
        return Err(error.at(parser.next_span()));
    }
    let kind = plain_kind(parser, depth)?;
    let mut data_type = with_nullability(parser, kind)?;
    loop {
        let element = Box::new(data_type.clone());
        let kind = if parser.eat("ARRAY") {
            TypeKind::Array(element)
        } else if parser.eat("MULTISET") {
            TypeKind::Multiset(element)
        } else {
            return Ok(data_type);
        };
        data_type = with_nullability(parser, kind)?;
    }
}

fn with_nullability(parser: &mut Parser, kind: TypeKind) -> Result<DataType> {
    if parser.eat("NOT NULL") {
        return Ok(DataType::not_null(kind));
    }
    // `RETURNING INT NULL ON EMPTY` is no nullable type.
    let _ = kind != TypeKind::Null && !parser.at("NULL ON") && parser.eat("NULL");
    Ok(DataType::nullable(kind))
}

fn plain_kind(parser: &mut Parser, depth: usize) -> Result<TypeKind> {
    let name = match &parser.peek_token_ref().token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_uppercase(),
        Token::DoubleQuotedString(_) => return Err(double_quoted(parser.peek_token_ref())),
        _ => return Err(parser.unexpected("a type")),
    };
    let span = parser.next_span();
    if !TYPE_NAMES.contains(&name.as_str()) {
        return Err(unknown_type(&name, span));
    }
    parser.advance_token();
    Ok(match name.as_str() {
        "CHAR" | "CHARACTER" if parser.eat("VARYING") => TypeKind::Varchar(length(parser, VARCHAR_MAX)?),
        "CHAR" | "CHARACTER" => TypeKind::Char(length(parser, 1)?),
        "VARCHAR" => TypeKind::Varchar(length(parser, VARCHAR_MAX)?),
        "STRING" => TypeKind::Varchar(VARCHAR_MAX),
        "BINARY" if parser.eat("VARYING") => TypeKind::Varbinary(length(parser, VARCHAR_MAX)?),
        "BINARY" => TypeKind::Binary(length(parser, 1)?),
        "VARBINARY" => TypeKind::Varbinary(length(parser, VARCHAR_MAX)?),
        "BYTES" => TypeKind::Varbinary(VARCHAR_MAX),
        "BOOLEAN" => TypeKind::Boolean,
        "TINYINT" => TypeKind::TinyInt,
        "SMALLINT" => TypeKind::SmallInt,
        "INT" | "INTEGER" => TypeKind::Int,
        "BIGINT" => TypeKind::BigInt,
        "FLOAT" => TypeKind::Float,
        "DOUBLE" => {
            parser.eat("PRECISION");
            TypeKind::Double
        }
        "DECIMAL" | "DEC" | "NUMERIC" => decimal(parser)?,
        "DATE" => TypeKind::Date,
        "TIME" => time(parser)?,
        "TIMESTAMP" => timestamp(parser)?,
        "TIMESTAMP_LTZ" => TypeKind::TimestampLtz(precision(parser, "TIMESTAMP_LTZ", 6)?),
        "INTERVAL" => interval(parser)?,
        "ARRAY" => TypeKind::Array(Box::new(bracketed(parser, |p| nested_type(p, depth + 1))?)),
        "MULTISET" => TypeKind::Multiset(Box::new(bracketed(parser, |p| nested_type(p, depth + 1))?)),
        "MAP" => {
            let (key, value) = bracketed(parser, |p| {
                let key = nested_type(p, depth + 1)?;
                p.require(&Token::Comma)?;
                Ok((key, nested_type(p, depth + 1)?))
            })?;
            TypeKind::Map(Box::new(key), Box::new(value))
        }
        "ROW" => TypeKind::Row(row_fields(parser, depth)?),
        "STRUCTURED" => structured(parser, depth)?,
        "BITMAP" => TypeKind::Bitmap,
        "VARIANT" => TypeKind::Variant,
        _ => TypeKind::Null,
    })
}

fn unknown_type(name: &str, span: Span) -> Error {
    if UNSUPPORTED_TYPES.contains(&name) {
        return Error::unsupported(format!("type {name}")).at(span);
    }
    let error = Error::new(ErrorKind::Syntax, format!("unknown type {name}")).at(span);
    let foreign = FOREIGN_NAMES.iter().find(|(foreign, _)| *foreign == name).map(|(_, ours)| *ours);
    match foreign.or_else(|| nearest(name, TYPE_NAMES.iter().copied())) {
        Some(known) => error.with_hint(format!("did you mean {known}?")),
        None => error.with_hint(
            "types are BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, CHAR, VARCHAR, STRING, BINARY, \
             VARBINARY, BYTES, DATE, TIME, TIMESTAMP, TIMESTAMP_LTZ, ARRAY, MAP, MULTISET, ROW, STRUCTURED, BITMAP, VARIANT",
        ),
    }
}

fn out_of_range(what: &str, found: u64, range: &str, span: Span) -> Error {
    Error::new(ErrorKind::Syntax, format!("{what} {found} is out of range")).at(span).with_hint(format!("give {range}"))
}

/// `(n)`, from 1 to 2 147 483 647.
fn length(parser: &mut Parser, default: u32) -> Result<u32> {
    if !parser.eat_token(&Token::LParen) {
        return Ok(default);
    }
    let (length, span) = parser.number("a length")?;
    if length == 0 || length > u64::from(VARCHAR_MAX) {
        return Err(out_of_range("length", length, "a length from 1 to 2147483647", span));
    }
    parser.require(&Token::RParen)?;
    Ok(length as u32)
}

/// `(p)`, from 0 to 9.
fn precision(parser: &mut Parser, type_name: &str, default: u8) -> Result<u8> {
    if !parser.eat_token(&Token::LParen) {
        return Ok(default);
    }
    let (precision, span) = parser.number("a precision")?;
    if precision > 9 {
        return Err(out_of_range(&format!("{type_name} precision"), precision, "a precision from 0 to 9", span));
    }
    parser.require(&Token::RParen)?;
    Ok(precision as u8)
}

fn decimal(parser: &mut Parser) -> Result<TypeKind> {
    if !parser.eat_token(&Token::LParen) {
        return Ok(TypeKind::Decimal(10, 0));
    }
    let (precision, span) = parser.number("a precision")?;
    if precision == 0 || precision > 38 {
        return Err(out_of_range("DECIMAL precision", precision, "a precision from 1 to 38", span));
    }
    let mut scale = 0;
    if parser.eat_token(&Token::Comma) {
        let (found, span) = parser.number("a scale")?;
        if found > precision {
            return Err(out_of_range("DECIMAL scale", found, &format!("a scale from 0 to the precision {precision}"), span));
        }
        scale = found;
    }
    parser.require(&Token::RParen)?;
    Ok(TypeKind::Decimal(precision as u8, scale as u8))
}

fn time(parser: &mut Parser) -> Result<TypeKind> {
    let precision = precision(parser, "TIME", 0)?;
    if parser.at("WITH TIME ZONE") {
        return Err(Error::unsupported("type TIME WITH TIME ZONE").at(parser.next_span()));
    }
    parser.eat("WITHOUT TIME ZONE");
    // As in Flink, a time of day has milliseconds at most, whatever was asked for.
    Ok(TypeKind::Time(precision.min(TIME_PRECISION_MAX)))
}

fn timestamp(parser: &mut Parser) -> Result<TypeKind> {
    let precision = precision(parser, "TIMESTAMP", 6)?;
    if parser.at("WITH TIME ZONE") {
        let error = Error::unsupported("type TIMESTAMP WITH TIME ZONE").at(parser.next_span());
        return Err(error.with_hint("use TIMESTAMP_LTZ for an instant that is shown in the session's zone"));
    }
    if parser.eat("WITH LOCAL TIME ZONE") {
        return Ok(TypeKind::TimestampLtz(precision));
    }
    parser.eat("WITHOUT TIME ZONE");
    Ok(TypeKind::Timestamp(precision))
}

/// The qualifier of an INTERVAL type. Flott keeps one type of each family, as wide as it gets.
fn interval(parser: &mut Parser) -> Result<TypeKind> {
    const UNITS: &[(&str, bool)] =
        &[("YEAR", true), ("MONTH", true), ("DAY", false), ("HOUR", false), ("MINUTE", false), ("SECOND", false)];
    let unit = |parser: &mut Parser| -> Result<usize> {
        let found = UNITS.iter().position(|(word, _)| parser.eat(word));
        let found = found.ok_or_else(|| parser.unexpected("YEAR, MONTH, DAY, HOUR, MINUTE or SECOND"))?;
        if parser.eat_token(&Token::LParen) {
            parser.number("a precision")?;
            if parser.eat_token(&Token::Comma) {
                parser.number("a precision")?;
            }
            parser.require(&Token::RParen)?;
        }
        Ok(found)
    };
    let first = unit(parser)?;
    if parser.eat("TO") {
        let span = parser.next_span();
        let last = unit(parser)?;
        if last <= first || UNITS[first].1 != UNITS[last].1 {
            let message = format!("INTERVAL cannot go from {} to {}", UNITS[first].0, UNITS[last].0);
            return Err(Error::new(ErrorKind::Syntax, message).at(span));
        }
    }
    Ok(if UNITS[first].1 { TypeKind::IntervalYearMonth } else { TypeKind::IntervalDayTime })
}

/// What stands between `<` and `>`.
fn bracketed<T>(parser: &mut Parser, inner: impl FnOnce(&mut Parser) -> Result<T>) -> Result<T> {
    parser.require(&Token::Lt)?;
    let result = inner(parser)?;
    parser.require(&Token::Gt)?;
    Ok(result)
}

/// The fields of a ROW, in `<…>` or `(…)`. A field's comment is read and dropped, as in Flink.
fn row_fields(parser: &mut Parser, depth: usize) -> Result<Vec<RowField>> {
    let close = if parser.eat_token(&Token::LParen) {
        Token::RParen
    } else {
        if parser.eat_token(&Token::Neq) {
            return Ok(Vec::new());
        }
        parser.require(&Token::Lt)?;
        Token::Gt
    };
    fields_until(parser, depth, &close)
}

/// The class and the fields of a structured type: `<'class', a INT, …>`.
fn structured(parser: &mut Parser, depth: usize) -> Result<TypeKind> {
    parser.require(&Token::Lt)?;
    let span = parser.next_span();
    let Token::SingleQuotedString(class) = parser.peek_token_ref().token.clone() else {
        return Err(parser.unexpected("the name of a class in quotes"));
    };
    if !is_class_name(&class) {
        let error = Error::new(ErrorKind::Syntax, format!("'{class}' is not the name of a class")).at(span);
        return Err(error.with_hint("a class is named by identifiers with dots between"));
    }
    parser.advance_token();
    if !parser.eat_token(&Token::Comma) {
        parser.require(&Token::Gt)?;
        return Ok(TypeKind::Structured(class, Vec::new()));
    }
    Ok(TypeKind::Structured(class, fields_until(parser, depth, &Token::Gt)?))
}

fn fields_until(parser: &mut Parser, depth: usize, close: &Token) -> Result<Vec<RowField>> {
    let mut fields: Vec<RowField> = Vec::new();
    while !parser.eat_token(close) {
        if !fields.is_empty() {
            parser.require(&Token::Comma)?;
        }
        let (name, span) = parser.identifier("a field name")?;
        if fields.iter().any(|field| field.name == name) {
            let error = Error::new(ErrorKind::DuplicateObject, format!("field \"{name}\" appears twice in a type"));
            return Err(error.at(span));
        }
        let data_type = nested_type(parser, depth + 1)?;
        fields.push(RowField { name, data_type });
        if matches!(parser.peek_token_ref().token, Token::SingleQuotedString(_)) {
            parser.advance_token();
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match parse_data_type(text) {
            Ok(data_type) => data_type.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_type_has_flinks_defaults() {
        let cases = [
            ("char", "CHAR(1)"),
            ("CHARACTER(3)", "CHAR(3)"),
            ("CHARACTER VARYING(3)", "VARCHAR(3)"),
            ("varchar", "STRING"),
            ("VARCHAR(7)", "VARCHAR(7)"),
            ("BINARY", "BINARY(1)"),
            ("VARBINARY", "BYTES"),
            ("DEC", "DECIMAL(10, 0)"),
            ("NUMERIC(5)", "DECIMAL(5, 0)"),
            ("DECIMAL(38, 38) NOT NULL", "DECIMAL(38, 38) NOT NULL"),
            ("DOUBLE PRECISION", "DOUBLE"),
            ("INTEGER", "INT"),
            ("TIME", "TIME(0)"),
            ("TIME(3) WITHOUT TIME ZONE", "TIME(3)"),
            ("TIMESTAMP", "TIMESTAMP(6)"),
            ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(3)"),
            ("TIMESTAMP_LTZ", "TIMESTAMP_LTZ(6)"),
            ("INTERVAL DAY(2) TO SECOND(3)", "INTERVAL SECOND(3)"),
            ("INTERVAL MONTH", "INTERVAL MONTH"),
            ("INT NULL", "INT"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn nested_types_close_with_double_brackets() {
        let text = "MAP<STRING NOT NULL, ARRAY<ROW<`a b` INT 'comment', c ARRAY<MULTISET<DATE>>>>> NOT NULL";
        let expected = "MAP<STRING NOT NULL, ARRAY<ROW<`a b` INT, `c` ARRAY<MULTISET<DATE>>>>> NOT NULL";
        assert_eq!(shown(text), expected);
        assert_eq!(shown(expected), expected);
        assert_eq!(shown("ROW(a INT, b STRING NOT NULL) ARRAY NOT NULL"), "ARRAY<ROW<`a` INT, `b` STRING NOT NULL>> NOT NULL");
        assert_eq!(shown("ROW<>"), "ROW<>");
    }

    #[test]
    fn ranges_and_names_are_checked() {
        assert_eq!(shown("DECIMAL(39, 2)"), "DECIMAL precision 39 is out of range");
        assert_eq!(shown("DECIMAL(3, 4)"), "DECIMAL scale 4 is out of range");
        assert_eq!(shown("TIMESTAMP(10)"), "TIMESTAMP precision 10 is out of range");
        assert_eq!(shown("VARCHAR(0)"), "length 0 is out of range");
        assert_eq!(parse_data_type("TEXT").unwrap_err().hint(), Some("did you mean STRING?"));
        assert_eq!(parse_data_type("BIGNIT").unwrap_err().hint(), Some("did you mean BIGINT?"));
        assert_eq!(parse_data_type("RAW").unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(shown("ROW<a INT, a INT>"), "field \"a\" appears twice in a type");
        assert_eq!(shown(&"ARRAY<".repeat(100)), "type nested deeper than 64 levels");
    }

    #[test]
    fn sqlparsers_types_carry_ours() {
        for text in ["DATE", "TIME(0)", "TIMESTAMP(3)", "ROW<`a>b` INT NOT NULL, `c``` BYTES>", "TIMESTAMP_LTZ(9) NOT NULL"] {
            let data_type = parse_data_type(text).unwrap();
            assert_eq!(data_type_of(&encode(&data_type)).unwrap(), data_type);
        }
    }
}
