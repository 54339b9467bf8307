//! Between the engine and code of the program: panics and errors become errors that name the function, and what it gives is checked
//! against what it declares.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::Field as ArrowField;

use crate::connectors::embedded::{convert, sql_type};
use crate::error::{Error, ErrorKind, Result};
use crate::types::{DataType, TypeKind};

/// Calls code of the program.
pub(super) fn call<T>(name: &str, code: impl FnOnce() -> Result<T>) -> Result<T> {
    // Constants are computed by the planner, on a thread of the program: a panic must not reach it.
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(result) => result.map_err(|error| failed(name, &error)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
            Err(Error::new(ErrorKind::JobFailed, format!("function {name} panicked")).with_detail(text))
        }
    }
}

fn failed(name: &str, error: &Error) -> Error {
    let named = Error::new(error.kind(), format!("function {name} failed")).with_detail(error.to_string());
    match error.hint() {
        Some(hint) => named.with_hint(hint),
        None => named,
    }
}

/// A function gives something else than it declares.
pub(super) fn wrong(name: &str, what: impl Into<String>) -> Error {
    Error::new(ErrorKind::TypeMismatch, format!("function {name} does not give what it declares")).with_detail(what)
}

/// What a function gives, in the Arrow form of the declared type.
pub(super) fn conform(name: &str, array: ArrayRef, data_type: &DataType, num_rows: usize) -> Result<ArrayRef> {
    if array.len() != num_rows {
        return Err(wrong(name, format!("{} rows for {num_rows}", array.len())));
    }
    if !data_type.nullable && array.logical_null_count() > 0 {
        return Err(wrong(name, "NULL, and its result is NOT NULL"));
    }
    if *array.data_type() == data_type.to_arrow() {
        return Ok(array);
    }
    let fits = match (&data_type.kind, sql_type(&ArrowField::new("", array.data_type().clone(), true))?.kind) {
        (TypeKind::Char(_) | TypeKind::Varchar(_), TypeKind::Varchar(_)) => true,
        (TypeKind::Binary(_) | TypeKind::Varbinary(_), TypeKind::Varbinary(_) | TypeKind::Binary(_)) => true,
        (declared, given) => *declared == given,
    };
    if fits {
        convert(&array, data_type)
    } else {
        Err(wrong(name, format!("{} for {}", array.data_type(), data_type.kind_text())))
    }
}
