//! Texts copied together where they are few among many.
//!
//! An array of texts holds on to the whole buffers of those that it was taken from; what is kept, or sent on, must not.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, GenericByteViewArray};
use arrow::datatypes::{ByteViewType, DataType};

/// Texts up to this length stand in the view itself (a fact of Arrow's format).
const MAX_INLINE_VIEW_LEN: u32 = 12;

/// The same values; texts (and bytes) copied together when less than half of what the array holds on to is its own.
pub fn compact_texts(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Utf8View if is_sparse(column.as_string_view()) => Arc::new(column.as_string_view().gc()),
        DataType::BinaryView if is_sparse(column.as_binary_view()) => Arc::new(column.as_binary_view().gc()),
        _ => Arc::clone(column),
    }
}

fn is_sparse<T: ByteViewType>(array: &GenericByteViewArray<T>) -> bool {
    let held: usize = array.data_buffers().iter().map(|buffer| buffer.len()).sum();
    if held == 0 {
        return false;
    }
    let lengths = array.views().iter().map(|view| *view as u32);
    let own: usize = lengths.filter(|length| *length > MAX_INLINE_VIEW_LEN).map(|length| length as usize).sum();
    held > 2 * own
}
