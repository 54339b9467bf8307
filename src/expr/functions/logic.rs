//! `IS TRUE`, `IS FALSE`, `IS UNKNOWN` and their negations.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::buffer::BooleanBuffer;

use super::builtin::{Builtin, Param, accept_all};
use crate::error::Result;
use crate::expr::compile::map_array;
use crate::expr::{Datum, Expr};
use crate::types::{DataType, TypeKind};

/// The functions of this file.
pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("IS TRUE", "<BOOLEAN> IS TRUE", bind, |args, _, _| test(args, |value| value == Some(true))),
    Builtin::new("IS NOT TRUE", "<BOOLEAN> IS NOT TRUE", bind, |args, _, _| test(args, |value| value != Some(true))),
    Builtin::new("IS FALSE", "<BOOLEAN> IS FALSE", bind, |args, _, _| test(args, |value| value == Some(false))),
    Builtin::new("IS NOT FALSE", "<BOOLEAN> IS NOT FALSE", bind, |args, _, _| test(args, |value| value != Some(false))),
    Builtin::new("IS UNKNOWN", "<BOOLEAN> IS UNKNOWN", bind, |args, _, _| test(args, |value| value.is_none())),
    Builtin::new("IS NOT UNKNOWN", "<BOOLEAN> IS NOT UNKNOWN", bind, |args, _, _| test(args, |value| value.is_some())),
];

fn bind(function: &Builtin, args: Vec<Expr>) -> Result<Expr> {
    let args = accept_all(function, args, &[Param::Boolean], 1)?;
    Ok(function.call(args, DataType::not_null(TypeKind::Boolean)))
}

fn test(args: &[Datum], holds: impl Fn(Option<bool>) -> bool) -> Result<Datum> {
    map_array(args[0].clone(), |array| {
        let values = array.as_boolean();
        let holds = |row: usize| holds((!values.is_null(row)).then(|| values.value(row)));
        Ok(Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(values.len(), holds), None)) as ArrayRef)
    })
}
