//! VARIANT: PARSE_JSON and TRY_PARSE_JSON, and access to the parts of a variant. A variant is held as its JSON text in one form.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewBuilder};
use arrow::datatypes::{DataType as ArrowType, Int32Type};

use super::args::{Numbers, Rows, Text};
use super::builtin::{Builtin, Param, accept_all};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::json::{Document, Kind, Parser, has_duplicate_key, write_variant};
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, TypeKind};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new(
        "PARSE_JSON",
        "PARSE_JSON(<STRING> [, <BOOLEAN>])",
        |f, args| bind_parse(f, args, false),
        |args, _, context| parse(args, context, false),
    )
    .failing(),
    Builtin::new(
        "TRY_PARSE_JSON",
        "TRY_PARSE_JSON(<STRING> [, <BOOLEAN>])",
        |f, args| bind_parse(f, args, true),
        |args, _, context| parse(args, context, true),
    ),
];

fn bind_parse(function: &Builtin, args: Vec<Expr>, is_try: bool) -> Result<Expr> {
    let args = accept_all(function, args, &[Param::Text, Param::Boolean], 1)?;
    let nullable = is_try || args[0].data_type().nullable;
    Ok(function.call(args, DataType::new(TypeKind::Variant, nullable)))
}

/// The variant of a JSON text. Equal keys are an error unless the second argument allows them; then the last one counts.
fn parse(args: &[Datum], context: &EvalContext, is_try: bool) -> Result<Datum> {
    use arrow::array::{Array, AsArray};
    let rows = Rows::of(args, context);
    let text = Text::of(&args[0]);
    let allows = |row: usize| {
        args.get(1).is_some_and(|flag| {
            let row = if flag.is_scalar() { 0 } else { row };
            let flags = flag.array().as_boolean();
            flags.is_valid(row) && flags.value(row)
        })
    };
    let mut parser = Parser::default();
    let mut builder = StringViewBuilder::with_capacity(rows.count);
    let mut buffer = String::new();
    for row in 0..rows.count {
        let Some(text) = text.get(row) else {
            builder.append_null();
            continue;
        };
        buffer.clear();
        let problem = match parser.parse(text) {
            None => Some("is no JSON"),
            Some(document) if !allows(row) && has_duplicate_key(&document) => Some("has a key twice"),
            Some(document) => {
                write_variant(&mut buffer, &document, Document::ROOT);
                None
            }
        };
        match problem {
            None => builder.append_value(&buffer),
            Some(_) if is_try => builder.append_null(),
            Some(problem) => {
                return Err(Error::new(ErrorKind::DataFormat, format!("PARSE_JSON got a text that {problem}: '{text}'"))
                    .with_hint("TRY_PARSE_JSON gives NULL instead of an error"));
            }
        }
    }
    Ok(rows.finish(Arc::new(builder.finish())))
}

/// `variant[index]`, from 1, and `variant['key']`; NULL where there is none.
pub(super) fn item(args: &[Datum], context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let variant = Text::of(&args[0]);
    let is_index = args[1].array().data_type() == &ArrowType::Int32;
    let mut parser = Parser::default();
    let mut builder = StringViewBuilder::with_capacity(rows.count);
    let mut buffer = String::new();
    for row in 0..rows.count {
        let Some(document) = variant.get(row).and_then(|text| parser.parse(text)) else {
            builder.append_null();
            continue;
        };
        let wanted = if is_index { Kind::Array } else { Kind::Object };
        if document.kind(Document::ROOT) != wanted {
            let message =
                if is_index { "[index] of a variant that is no array" } else { "['key'] of a variant that is no object" };
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        let find = || match is_index {
            true => {
                let index = Numbers::<Int32Type>::of(&args[1]).get(row)?;
                document.elements(Document::ROOT).nth(usize::try_from(index).ok()?.checked_sub(1)?)
            }
            false => document.property(Document::ROOT, Text::of(&args[1]).get(row)?),
        };
        match find() {
            // The text of the part stands there in its one form already.
            Some(node) if matches!(document.kind(node), Kind::Plain | Kind::Escaped) => {
                buffer.clear();
                buffer.extend(["\"", document.raw(node), "\""]);
                builder.append_value(&buffer);
            }
            Some(node) => builder.append_value(document.raw(node)),
            None => builder.append_null(),
        }
    }
    let array: ArrayRef = Arc::new(builder.finish());
    Ok(rows.finish(array))
}
