//! To strings and to bytes: the text of any value, cut or padded to the length of the type.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, StringViewBuilder};

use crate::error::Result;
use crate::expr::text::{TextStyle, ValueWriter};
use crate::types::{DataType, TimeZone, TypeKind, VARCHAR_MAX};

/// Casts to CHAR or VARCHAR.
pub(super) fn cast(array: &ArrayRef, from: &DataType, to: &DataType, zone: TimeZone) -> Result<ArrayRef> {
    let fits = match (&from.kind, &to.kind) {
        (TypeKind::Char(a) | TypeKind::Varchar(a), TypeKind::Varchar(b)) => a <= b,
        _ => false,
    };
    if fits {
        return Ok(Arc::clone(array));
    }
    let writer = ValueWriter::new(from, TextStyle::Cast, zone);
    let mut builder = StringViewBuilder::with_capacity(array.len());
    let mut buffer = String::new();
    for row in 0..array.len() {
        if array.is_null(row) {
            builder.append_null();
            continue;
        }
        buffer.clear();
        writer.write(&mut buffer, array.as_ref(), row);
        set_length(&mut buffer, &to.kind);
        builder.append_value(&buffer);
    }
    Ok(Arc::new(builder.finish()))
}

/// Cuts a text to the length of the type; CHAR is padded with blanks.
pub(super) fn set_length(text: &mut String, kind: &TypeKind) {
    let (length, pads) = match kind {
        TypeKind::Char(length) => (*length, true),
        TypeKind::Varchar(length) => (*length, false),
        _ => return,
    };
    if length == VARCHAR_MAX || (!pads && text.len() <= length as usize) {
        return;
    }
    match text.char_indices().nth(length as usize) {
        Some((end, _)) => text.truncate(end),
        None if pads => {
            let missing = length as usize - text.chars().count();
            text.extend(std::iter::repeat_n(' ', missing));
        }
        None => {}
    }
}

/// Casts bytes to BINARY or VARBINARY.
pub(super) fn cast_bytes(array: &ArrayRef, from: &DataType, to: &DataType) -> Result<ArrayRef> {
    if let (TypeKind::Binary(a) | TypeKind::Varbinary(a), TypeKind::Varbinary(b)) = (&from.kind, &to.kind)
        && a <= b
    {
        return Ok(Arc::clone(array));
    }
    let values = array.as_binary_view();
    Ok(build_bytes(array.len(), &to.kind, |row| (!values.is_null(row)).then(|| values.value(row))))
}

/// Bytes cut or padded with zeros to the length of the type.
pub(super) fn build_bytes<'a>(rows: usize, kind: &TypeKind, value: impl Fn(usize) -> Option<&'a [u8]>) -> ArrayRef {
    let (length, pads) = match kind {
        TypeKind::Binary(length) => (*length as usize, true),
        TypeKind::Varbinary(length) => (*length as usize, false),
        _ => (usize::MAX, false),
    };
    let mut builder = BinaryViewBuilder::with_capacity(rows);
    for row in 0..rows {
        match value(row) {
            Some(bytes) if pads && bytes.len() < length => {
                let mut padded = bytes.to_vec();
                padded.resize(length, 0);
                builder.append_value(padded);
            }
            Some(bytes) => builder.append_value(&bytes[..bytes.len().min(length)]),
            None => builder.append_null(),
        }
    }
    Arc::new(builder.finish())
}
