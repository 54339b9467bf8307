//! Values of structured types: OBJECT_OF makes one of its class and fields, OBJECT_UPDATE another with some fields replaced.
//!
//! A class is known by its name alone: two values go together when their classes and fields have the same names.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray};
use arrow::datatypes::{DataType as ArrowType, Fields};

use super::args::Rows;
use super::builtin::{Builtin, literal_text};
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{Datum, EvalContext, Expr};
use crate::types::{DataType, RowField, TypeKind, is_class_name};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("OBJECT_OF", "OBJECT_OF(<STRING_LITERAL> [, <STRING_LITERAL>, <ANY>]*)", bind_object, object),
    Builtin::new("OBJECT_UPDATE", "OBJECT_UPDATE(<STRUCTURED> [, <STRING_LITERAL>, <ANY>]*)", bind_update, update),
];

/// The fields that `'name', value, …` gives, each once.
fn named_fields(function: &Builtin, pairs: &[Expr]) -> Result<Vec<RowField>> {
    let mut fields: Vec<RowField> = Vec::with_capacity(pairs.len() / 2);
    for (index, pair) in pairs.chunks(2).enumerate() {
        let [name, value] = pair else { return Err(function.mismatch(pairs)) };
        let Some(name) = literal_text(name) else {
            let message = format!("the name of a field is a literal in {}, argument {} is none", function.name, 2 * index + 2);
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        };
        let data_type = value.data_type().regular();
        if data_type.kind == TypeKind::Null {
            let message = format!("the value of field \"{name}\" has no type");
            return Err(Error::new(ErrorKind::TypeMismatch, message).with_hint("CAST(NULL AS INT) gives a type"));
        }
        if fields.iter().any(|field| field.name == name) {
            let message = format!("field \"{name}\" appears twice in {}", function.name);
            return Err(Error::new(ErrorKind::DuplicateObject, message));
        }
        fields.push(RowField { name: name.to_string(), data_type });
    }
    Ok(fields)
}

fn bind_object(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [class, pairs @ ..] = args.as_slice() else { return Err(function.mismatch(&args)) };
    if pairs.len() % 2 == 1 {
        return Err(function.mismatch(&args));
    }
    let Some(class) = literal_text(class) else {
        return Err(Error::new(ErrorKind::InvalidArgument, "the class of OBJECT_OF is not a literal"));
    };
    if !is_class_name(class) {
        let error = Error::new(ErrorKind::InvalidArgument, format!("'{class}' is not the name of a class"));
        return Err(error.with_hint("a class is named by identifiers with dots between"));
    }
    let kind = TypeKind::Structured(class.to_string(), named_fields(function, pairs)?);
    Ok(function.call(args, DataType::nullable(kind)))
}

fn object(args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let columns = args[1..].chunks(2).map(|pair| pair[1].clone().into_array(rows.count)).collect::<Result<Vec<_>>>()?;
    Ok(rows.finish(struct_of(data_type, columns, rows.count, None)?))
}

fn bind_update(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let [object, pairs @ ..] = args.as_slice() else { return Err(function.mismatch(&args)) };
    let TypeKind::Structured(class, mut fields) = object.data_type().kind else { return Err(function.mismatch(&args)) };
    if pairs.len() % 2 == 1 {
        return Err(function.mismatch(&args));
    }
    for given in named_fields(function, pairs)? {
        let Some(field) = fields.iter_mut().find(|field| field.name == given.name) else {
            let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            let message = format!("{class} has no field \"{}\"", given.name);
            return Err(Error::new(ErrorKind::UndefinedColumn, message).with_hint(format!("there are: {}", names.join(", "))));
        };
        field.data_type = given.data_type;
    }
    Ok(function.call(args, DataType::nullable(TypeKind::Structured(class, fields))))
}

fn update(args: &[Datum], data_type: &DataType, context: &EvalContext) -> Result<Datum> {
    let rows = Rows::of(args, context);
    let object = args[0].clone().into_array(rows.count)?;
    let object = object.as_struct();
    let mut columns = object.columns().to_vec();
    let fields = data_type.kind.fields().unwrap_or_default();
    for pair in args[1..].chunks(2) {
        let name = pair[0].array().as_string_view().value(0);
        let at = fields.iter().position(|field| field.name == name);
        let at = at.ok_or_else(|| Error::internal("a field that is replaced is not there"))?;
        columns[at] = pair[1].clone().into_array(rows.count)?;
    }
    Ok(rows.finish(struct_of(data_type, columns, rows.count, object.nulls().cloned())?))
}

fn struct_of(
    data_type: &DataType,
    columns: Vec<ArrayRef>,
    rows: usize,
    nulls: Option<arrow::buffer::NullBuffer>,
) -> Result<ArrayRef> {
    let ArrowType::Struct(fields) = data_type.to_arrow() else { return Err(Error::internal("an object is a struct")) };
    Ok(Arc::new(match columns.is_empty() {
        true => StructArray::new_empty_fields(rows, nulls),
        false => StructArray::try_new(fields as Fields, columns, nulls)?,
    }))
}
