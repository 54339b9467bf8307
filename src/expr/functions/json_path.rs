//! JSON_VALUE, JSON_QUERY and JSON_EXISTS: what a JSON path finds in a text.
//!
//! The binder passes the clauses by position; `JSON_VALUE`'s are: text, path, a NULL of the RETURNING type, what happens ON EMPTY and its
//! DEFAULT, what happens ON ERROR and its DEFAULT.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanBuilder, Float64Builder, Int32Builder, ListBuilder, StringViewBuilder};
use arrow::compute::interleave;

use super::args::{Rows, Text, build_booleans};
use super::builtin::{Builtin, Param, coerce, literal_text};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::json::{Document, Found, Kind, Mode, Parser, Path, PathError, write_found, write_scalar};
use crate::expr::{Datum, EvalContext, Expr, can_cast};
use crate::types::{DataType, TypeKind, VARCHAR_MAX};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "JSON_VALUE",
        "JSON_VALUE(<STRING>, <STRING> [RETURNING <TYPE>] [{NULL | ERROR | DEFAULT <ANY>} ON EMPTY] [{NULL | ERROR | DEFAULT <ANY>} ON ERROR])",
        bind_value,
        json_value,
    )
    .failing(),
    Builtin::new(
        "JSON_QUERY",
        "JSON_QUERY(<STRING>, <STRING> [RETURNING <TYPE>] [{WITHOUT | WITH [CONDITIONAL | UNCONDITIONAL]} [ARRAY] WRAPPER] [{NULL | EMPTY ARRAY | EMPTY OBJECT | ERROR} ON EMPTY] [{NULL | EMPTY ARRAY | EMPTY OBJECT | ERROR} ON ERROR])",
        bind_query,
        json_query,
    )
    .failing(),
    Builtin::new(
        "JSON_EXISTS",
        "JSON_EXISTS(<STRING>, <STRING> [{TRUE | FALSE | UNKNOWN | ERROR} ON ERROR])",
        bind_exists,
        json_exists,
    )
    .failing(),
];

/// What a row comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The text or the path is NULL.
    Null,
    /// The value was written.
    Value,
    /// ON EMPTY decides.
    Empty,
    /// ON ERROR decides.
    Error(Reason),
}

/// Why ON ERROR decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    NoJson,
    NoPath,
    Nowhere,
    WrongShape,
}

impl Reason {
    fn text(self) -> &'static str {
        match self {
            Reason::NoJson => "the text is no JSON",
            Reason::NoPath => "the path is none",
            Reason::Nowhere => "the path leads nowhere",
            Reason::WrongShape => "the strict path leads to a value of another shape",
        }
    }
}

/// Texts and paths of a batch. The path is parsed once as long as it stays the same.
struct Search<'a> {
    function: &'static str,
    text: Text<'a>,
    path: Text<'a>,
    known: Option<(&'a str, std::result::Result<Path, PathError>)>,
    parser: Parser,
}

impl<'a> Search<'a> {
    fn new(function: &'static str, args: &'a [Datum]) -> Self {
        Search { function, text: Text::of(&args[0]), path: Text::of(&args[1]), known: None, parser: Parser::default() }
    }

    /// What a row comes to; `take` gets what the path found, if it is not `null`.
    fn row(&mut self, row: usize, take: impl FnOnce(&Document<'_>, &Found, Mode) -> Result<Outcome>) -> Result<Outcome> {
        let (Some(text), Some(path)) = (self.text.get(row), self.path.get(row)) else { return Ok(Outcome::Null) };
        if !matches!(&self.known, Some((known, _)) if *known == path) {
            self.known = Some((path, Path::parse(path)));
        }
        let path = match &self.known {
            Some((_, Ok(path))) => path,
            Some((_, Err(PathError::Unsupported(what)))) => {
                return Err(Error::unsupported(format!("{what} in the JSON path '{path}' of {}", self.function)));
            }
            _ => return Ok(Outcome::Error(Reason::NoPath)),
        };
        let is_lax = path.mode() == Mode::Lax;
        let Some(document) = self.parser.parse(text) else {
            return Ok(if is_lax { Outcome::Empty } else { Outcome::Error(Reason::NoJson) });
        };
        // As in Flink nothing can be looked for in a null, not even by a lax path.
        if document.kind(Document::ROOT) == Kind::Null {
            return Ok(Outcome::Error(Reason::Nowhere));
        }
        match path.find(&document) {
            Err(_) => Ok(Outcome::Error(Reason::Nowhere)),
            Ok(None) if is_lax => Ok(Outcome::Empty),
            Ok(None) => Ok(Outcome::Error(Reason::WrongShape)),
            Ok(Some(found)) => take(&document, &found, path.mode()),
        }
    }

    /// The error that ON EMPTY or ON ERROR asks for.
    fn failure(&self, outcome: Outcome) -> Error {
        let reason = match outcome {
            Outcome::Error(reason) => reason.text(),
            _ => "the result is empty",
        };
        Error::new(ErrorKind::DataFormat, format!("{} fails: {reason}", self.function))
            .with_hint("write NULL ON EMPTY NULL ON ERROR to get NULL instead")
    }
}

/// What a value of another shape comes to.
fn wrong_shape(mode: Mode) -> Outcome {
    if mode == Mode::Lax { Outcome::Empty } else { Outcome::Error(Reason::WrongShape) }
}

/// Text and path as strings. A path that is constant is checked when it is used: ON ERROR decides about it.
fn text_and_path(function: &Builtin, args: &[Expr]) -> Result<[Expr; 2]> {
    let text = args.first().and_then(|arg| Param::Text.accept(arg.clone()));
    let path = args.get(1).and_then(|arg| Param::Text.accept(arg.clone()));
    match (text, path) {
        (Some(text), Some(path)) => Ok([text, path]),
        _ => Err(function.mismatch(&args[..args.len().min(2)])),
    }
}

fn returning_error(function: &Builtin, data_type: &DataType) -> Error {
    let types = if function.name == "JSON_VALUE" {
        "STRING, VARCHAR, BOOLEAN, INT and DOUBLE"
    } else {
        "STRING, VARCHAR and ARRAY<STRING>"
    };
    let message = format!("{} cannot return {}", function.name, data_type.kind_text());
    Error::new(ErrorKind::TypeMismatch, message).with_hint(format!("RETURNING takes {types}; CAST the result to another type"))
}

fn bind_value(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [text, path] = text_and_path(function, &args)?;
    let [_, _, returning, on_empty, empty_default, on_error, error_default] = args.as_slice() else {
        return Err(function.mismatch(&args));
    };
    let wanted = returning.data_type().kind;
    let kind = match &wanted {
        TypeKind::Varchar(_) => TypeKind::Varchar(VARCHAR_MAX),
        TypeKind::Boolean | TypeKind::Int | TypeKind::Double => wanted.clone(),
        _ => return Err(returning_error(function, &returning.data_type())),
    };
    if let Some(default) = [empty_default, error_default]
        .into_iter()
        .find(|default| !can_cast(&default.data_type(), &DataType::nullable(kind.clone())))
    {
        let message =
            format!("a default of type {} cannot be a {}", default.data_type().regular(), returning.data_type().kind_text());
        return Err(Error::new(ErrorKind::TypeMismatch, message).with_hint("CAST the default to the type that RETURNING names"));
    }
    // A text that cannot be a default of the type is NULL.
    let defaults = [empty_default, error_default].map(|default| match default.data_type().is_character() {
        true if kind != TypeKind::Varchar(VARCHAR_MAX) => super::time_shift::try_cast(default.clone(), kind.clone()),
        _ => coerce(default.clone(), &kind),
    });
    let [empty_default, error_default] = defaults;
    let args = vec![text, path, on_empty.clone(), empty_default, on_error.clone(), error_default];
    // As in Flink the length that RETURNING names cuts nothing.
    Ok(function.call(args, DataType::nullable(wanted)))
}

/// Writes found values as one of the types that RETURNING takes.
enum Values {
    Text(StringViewBuilder, String),
    Boolean(BooleanBuilder),
    Int(Int32Builder),
    Double(Float64Builder),
}

impl Values {
    fn new(data_type: &DataType, rows: usize) -> Self {
        match data_type.kind {
            TypeKind::Boolean => Values::Boolean(BooleanBuilder::with_capacity(rows)),
            TypeKind::Int => Values::Int(Int32Builder::with_capacity(rows)),
            TypeKind::Double => Values::Double(Float64Builder::with_capacity(rows)),
            _ => Values::Text(StringViewBuilder::with_capacity(rows), String::new()),
        }
    }

    fn push_null(&mut self) {
        match self {
            Values::Text(builder, _) => builder.append_null(),
            Values::Boolean(builder) => builder.append_null(),
            Values::Int(builder) => builder.append_null(),
            Values::Double(builder) => builder.append_null(),
        }
    }

    /// A scalar; an error if it is of another type.
    fn push(&mut self, document: &Document<'_>, found: &Found) -> Result<()> {
        let (kind, raw) = match found {
            Found::Node(node) => (document.kind(*node), document.characters(*node).into_owned()),
            Found::Count(count) => (Kind::Integer, count.to_string()),
            Found::Number(number) => (Kind::Decimal, number.to_string()),
            _ => return Err(Error::internal("JSON_VALUE found no scalar")),
        };
        let mismatch = |wanted: &str| {
            Error::new(ErrorKind::InvalidCast, format!("JSON_VALUE found '{raw}', which is no {wanted}"))
                .with_hint("return STRING and use TRY_CAST to get NULL instead")
        };
        match self {
            Values::Text(builder, buffer) => {
                buffer.clear();
                match found {
                    Found::Node(node) => write_scalar(buffer, document, *node),
                    other => write_found(buffer, document, other),
                }
                builder.append_value(&*buffer);
            }
            Values::Boolean(builder) => match kind {
                Kind::True => builder.append_value(true),
                Kind::False => builder.append_value(false),
                _ => return Err(mismatch("BOOLEAN")),
            },
            Values::Int(builder) => match raw.parse() {
                Ok(number) if kind == Kind::Integer => builder.append_value(number),
                _ => return Err(mismatch("INT")),
            },
            Values::Double(builder) => match raw.parse() {
                Ok(number) if matches!(kind, Kind::Integer | Kind::Decimal) => builder.append_value(number),
                _ => return Err(mismatch("DOUBLE")),
            },
        }
        Ok(())
    }

    fn finish(self) -> ArrayRef {
        match self {
            Values::Text(mut builder, _) => Arc::new(builder.finish()),
            Values::Boolean(mut builder) => Arc::new(builder.finish()),
            Values::Int(mut builder) => Arc::new(builder.finish()),
            Values::Double(mut builder) => Arc::new(builder.finish()),
        }
    }
}

fn json_value(args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let (on_empty, on_error) = (word(&args[2]), word(&args[4]));
    let mut search = Search::new("JSON_VALUE", args);
    let mut values = Values::new(data_type, rows.count);
    // From where each row takes its value: what was found, the default ON EMPTY, the default ON ERROR.
    let mut sources: Vec<(usize, usize)> = Vec::with_capacity(rows.count);
    for row in 0..rows.count {
        let outcome = search.row(row, |document, found, mode| {
            if !found.is_scalar(document) {
                return Ok(wrong_shape(mode));
            }
            values.push(document, found)?;
            Ok(Outcome::Value)
        })?;
        let (behaviour, default) = match outcome {
            Outcome::Value => ("", 0),
            Outcome::Null => ("NULL", 0),
            Outcome::Empty => (on_empty, 1),
            Outcome::Error(_) => (on_error, 2),
        };
        if outcome != Outcome::Value {
            values.push_null();
        }
        sources.push(match behaviour {
            "ERROR" => return Err(search.failure(outcome)),
            "DEFAULT" => (default, if args[1 + 2 * default].is_scalar() { 0 } else { row }),
            _ => (0, row),
        });
    }
    let values = values.finish();
    if sources.iter().all(|(source, _)| *source == 0) {
        return Ok(rows.finish(values));
    }
    let arrays: [&dyn Array; 3] = [values.as_ref(), args[3].array().as_ref(), args[5].array().as_ref()];
    Ok(rows.finish(interleave(&arrays, &sources)?))
}

/// A clause's word.
fn word(datum: &Datum) -> &str {
    Text::of(datum).get(0).unwrap_or("NULL")
}

fn bind_query(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [text, path] = text_and_path(function, &args)?;
    let [_, _, returning, wrapper, on_empty, on_error] = args.as_slice() else { return Err(function.mismatch(&args)) };
    let wanted = returning.data_type().kind;
    let is_list = matches!(&wanted, TypeKind::Array(element) if element.is_character());
    let kind = match &wanted {
        TypeKind::Varchar(_) => TypeKind::Varchar(VARCHAR_MAX),
        TypeKind::Array(_) if is_list => TypeKind::Array(Box::new(DataType::string())),
        _ => return Err(returning_error(function, &returning.data_type())),
    };
    if is_list && [on_empty, on_error].iter().any(|clause| literal_text(clause) == Some("EMPTY OBJECT")) {
        return Err(Error::new(ErrorKind::TypeMismatch, "EMPTY OBJECT does not go with RETURNING an ARRAY")
            .with_hint("write EMPTY ARRAY or NULL"));
    }
    let args = vec![text, path, wrapper.clone(), on_empty.clone(), on_error.clone()];
    let kind = if is_list { kind } else { wanted.clone() };
    Ok(coerce(function.call(args, DataType::nullable(kind)), &wanted))
}

fn json_query(args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let (wrapper, on_empty, on_error) = (word(&args[2]), word(&args[3]), word(&args[4]));
    let is_list = matches!(data_type.kind, TypeKind::Array(_));
    let mut search = Search::new("JSON_QUERY", args);
    let mut texts = StringViewBuilder::new();
    let mut lists = ListBuilder::new(StringViewBuilder::new());
    let mut buffer = String::new();
    for row in 0..rows.count {
        buffer.clear();
        let outcome = search.row(row, |document, found, mode| {
            let wrap = match wrapper {
                "UNCONDITIONAL" => true,
                "CONDITIONAL" => !found.is_array(document),
                _ => false,
            };
            if !wrap && found.is_scalar(document) {
                return Ok(wrong_shape(mode));
            }
            if !is_list {
                buffer.push_str(if wrap { "[" } else { "" });
                write_found(&mut buffer, document, found);
                buffer.push_str(if wrap { "]" } else { "" });
            } else if wrap {
                push_part(&mut lists, document, found, &mut buffer);
            } else if !push_parts(&mut lists, document, found, &mut buffer) {
                return Ok(Outcome::Error(Reason::WrongShape));
            }
            Ok(Outcome::Value)
        })?;
        let behaviour = match outcome {
            Outcome::Value if is_list => {
                lists.append(true);
                continue;
            }
            Outcome::Value => {
                texts.append_value(&buffer);
                continue;
            }
            Outcome::Null => "NULL",
            Outcome::Empty => on_empty,
            Outcome::Error(_) => on_error,
        };
        match behaviour {
            "ERROR" => return Err(search.failure(outcome)),
            "EMPTY ARRAY" if is_list => lists.append(true),
            "EMPTY ARRAY" => texts.append_value("[]"),
            "EMPTY OBJECT" => texts.append_value("{}"),
            _ if is_list => lists.append_null(),
            _ => texts.append_null(),
        }
    }
    Ok(rows.finish(if is_list { Arc::new(lists.finish()) } else { Arc::new(texts.finish()) }))
}

/// Appends the elements of an array as strings; whether it is one.
fn push_parts(lists: &mut ListBuilder<StringViewBuilder>, document: &Document<'_>, found: &Found, buffer: &mut String) -> bool {
    match found {
        Found::Node(node) if document.kind(*node) == Kind::Array => {
            document.elements(*node).for_each(|element| push_part(lists, document, &Found::Node(element), buffer));
        }
        Found::List(items) => items.iter().for_each(|item| push_part(lists, document, item, buffer)),
        Found::Keys(keys) => keys.iter().for_each(|key| lists.values().append_value(key)),
        _ => return false,
    }
    true
}

fn push_part(lists: &mut ListBuilder<StringViewBuilder>, document: &Document<'_>, part: &Found, buffer: &mut String) {
    buffer.clear();
    match part {
        Found::Node(node) if document.kind(*node) == Kind::Null => return lists.values().append_null(),
        Found::Node(node) if document.is_scalar(*node) => write_scalar(buffer, document, *node),
        other => write_found(buffer, document, other),
    }
    lists.values().append_value(&*buffer);
}

fn bind_exists(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [text, path] = text_and_path(function, &args)?;
    let [_, _, on_error] = args.as_slice() else { return Err(function.mismatch(&args)) };
    Ok(function.call(vec![text, path, on_error.clone()], DataType::nullable(TypeKind::Boolean)))
}

fn json_exists(args: &[Datum], _: &DataType, context: &EvalContext) -> Result<Datum> {
    let on_error = word(&args[2]);
    let mut search = Search::new("JSON_EXISTS", args);
    let mut failure = None;
    let result = build_booleans(args, context, |row| {
        let outcome = search.row(row, |_, _, _| Ok(Outcome::Value)).unwrap_or_else(|error| {
            failure.get_or_insert(error);
            Outcome::Null
        });
        match (outcome, on_error) {
            (Outcome::Null, _) => None,
            (Outcome::Value, _) => Some(true),
            (Outcome::Empty, _) => Some(false),
            (Outcome::Error(_), "TRUE") => Some(true),
            (Outcome::Error(_), "UNKNOWN") => None,
            (Outcome::Error(_), "ERROR") => {
                failure.get_or_insert(search.failure(outcome));
                None
            }
            (Outcome::Error(_), _) => Some(false),
        }
    });
    failure.map_or(result, Err)
}
