//! The Arrow form of MAP and MULTISET: a list of entries, which are structs of key and value.
//!
//! Arrow has a map type, but its kernels refuse a NULL key, and Flink has such keys. So a map is a list, told from the lists of an
//! ARRAY by the name of its items. Entries are in the order in which they were put in, no key comes twice, and no entry is NULL.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType as ArrowType, Field, Fields};
use arrow::error::ArrowError;

/// The name of a map's items: nothing else is called so.
const ENTRIES: &str = "entries";

/// The Arrow type of maps from `key` to `value`.
pub fn map_type(key: ArrowType, value: ArrowType) -> ArrowType {
    let fields = Fields::from(vec![Field::new("key", key, true), Field::new("value", value, true)]);
    ArrowType::List(Arc::new(Field::new(ENTRIES, ArrowType::Struct(fields), true)))
}

/// Whether values of an Arrow type are maps.
pub fn is_map(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::List(items) if items.name() == ENTRIES)
}

/// Maps out of their entries, which lie side by side.
pub fn build_maps(
    offsets: OffsetBuffer<i32>,
    keys: ArrayRef,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let data_type = map_type(keys.data_type().clone(), values.data_type().clone());
    let ArrowType::List(items) = data_type else { unreachable!("a map is a list") };
    let ArrowType::Struct(fields) = items.data_type().clone() else { unreachable!("entries are structs") };
    let entries = StructArray::try_new(fields, vec![keys, values], None)?;
    Ok(Arc::new(ListArray::try_new(items, offsets, Arc::new(entries), nulls)?))
}

/// A view of an array of maps.
#[derive(Debug, Clone, Copy)]
pub struct Maps<'a> {
    list: &'a ListArray,
    entries: &'a StructArray,
}

impl<'a> Maps<'a> {
    /// Of an array whose values are maps.
    pub fn of(array: &'a dyn Array) -> Self {
        let list = array.as_list::<i32>();
        Maps { list, entries: list.values().as_struct() }
    }

    /// The keys of all entries.
    pub fn keys(&self) -> &'a ArrayRef {
        self.entries.column(0)
    }

    /// The values of all entries.
    pub fn values(&self) -> &'a ArrayRef {
        self.entries.column(1)
    }

    /// Keys and values of all entries.
    pub fn columns(&self) -> &'a [ArrayRef] {
        self.entries.columns()
    }

    /// Where the entries of each map begin and end.
    pub fn offsets(&self) -> &'a OffsetBuffer<i32> {
        self.list.offsets()
    }

    /// Which maps are NULL.
    pub fn nulls(&self) -> Option<&'a NullBuffer> {
        self.list.nulls()
    }

    /// The places of a map's entries.
    pub fn range(&self, row: usize) -> Range<usize> {
        let offsets = self.list.value_offsets();
        offsets[row] as usize..offsets[row + 1] as usize
    }
}
