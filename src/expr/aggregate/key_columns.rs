//! Keys of several columns, texts among them, kept column by column: compared with rows of a batch where they stand, nothing is
//! encoded first.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, BinaryViewBuilder};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;

use super::packed_keys::{array_of_bits, bits_of, is_packable};

/// Texts up to this length stand in the view itself (a fact of Arrow's format).
const INLINE_BYTES: u32 = 12;

/// The keys of all groups, a column for each key column.
#[derive(Debug)]
pub(super) struct KeyColumns {
    columns: Vec<KeyColumn>,
    text_bytes: usize,
}

/// One column of the keys, by group.
#[derive(Debug)]
enum KeyColumn {
    /// Values of a fixed width, NULL as none.
    Fixed(DataType, Vec<Option<u64>>),
    /// Texts or bytes.
    Text(DataType, Vec<TextKey>),
}

/// A text as a part of a key.
#[derive(Debug)]
enum TextKey {
    Null,
    /// Arrow's view of a short text, which holds all of it.
    Short(u128),
    Long(Box<[u8]>),
}

/// The key columns of a batch, ready to be compared.
pub(super) enum RowColumn {
    Fixed(Vec<u64>, Option<NullBuffer>),
    Text(BinaryViewArray),
}

impl KeyColumns {
    /// For columns of these types, if all can be kept this way.
    pub(super) fn new(types: &[DataType]) -> Option<Self> {
        let column = |data_type: &DataType| match data_type {
            DataType::Utf8View | DataType::BinaryView => Some(KeyColumn::Text(data_type.clone(), Vec::new())),
            other if is_packable(other) => Some(KeyColumn::Fixed(data_type.clone(), Vec::new())),
            _ => None,
        };
        Some(KeyColumns { columns: types.iter().map(column).collect::<Option<_>>()?, text_bytes: 0 })
    }

    /// The key columns of a batch.
    pub(super) fn rows(columns: &[ArrayRef]) -> Vec<RowColumn> {
        let column = |column: &ArrayRef| match column.data_type() {
            DataType::Utf8View => RowColumn::Text(column.as_string_view().clone().to_binary_view()),
            DataType::BinaryView => RowColumn::Text(column.as_binary_view().clone()),
            _ => RowColumn::Fixed(bits_of(column), column.nulls().cloned()),
        };
        columns.iter().map(column).collect()
    }

    /// Whether a row has the key of a group.
    #[inline]
    pub(super) fn equal(&self, group: usize, rows: &[RowColumn], row: usize) -> bool {
        self.columns.iter().zip(rows).all(|(column, rows)| match (column, rows) {
            (KeyColumn::Fixed(_, keys), RowColumn::Fixed(bits, nulls)) => match keys[group] {
                Some(key) => key == bits[row] && nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)),
                None => nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)),
            },
            (KeyColumn::Text(_, keys), RowColumn::Text(texts)) => match &keys[group] {
                TextKey::Short(view) => texts.views()[row] == *view && texts.is_valid(row),
                TextKey::Long(text) => {
                    texts.views()[row] as u32 as usize == text.len() && texts.is_valid(row) && texts.value(row) == &**text
                }
                TextKey::Null => texts.is_null(row),
            },
            _ => false,
        })
    }

    /// Makes the key of a row that of a group, which exists or is the next one.
    pub(super) fn put(&mut self, group: usize, rows: &[RowColumn], row: usize) {
        let KeyColumns { columns, text_bytes } = self;
        for (column, rows) in columns.iter_mut().zip(rows) {
            match (column, rows) {
                (KeyColumn::Fixed(_, keys), RowColumn::Fixed(bits, nulls)) => {
                    let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                    super::group_keys::put(keys, group, valid.then(|| bits[row]));
                }
                (KeyColumn::Text(_, keys), RowColumn::Text(texts)) => {
                    let view = texts.views()[row];
                    let key = match view as u32 {
                        _ if texts.is_null(row) => TextKey::Null,
                        0..=INLINE_BYTES => TextKey::Short(view),
                        length => {
                            *text_bytes += length as usize;
                            TextKey::Long(texts.value(row).into())
                        }
                    };
                    super::group_keys::put(keys, group, key);
                }
                _ => unreachable!("keys and rows have the same columns"),
            }
        }
    }

    /// Forgets the texts of a group that was removed.
    pub(super) fn remove(&mut self, group: usize) {
        for column in &mut self.columns {
            if let KeyColumn::Text(_, keys) = column
                && let TextKey::Long(text) = std::mem::replace(&mut keys[group], TextKey::Null)
            {
                self.text_bytes -= text.len();
            }
        }
    }

    /// The keys of these groups as columns.
    pub(super) fn columns(&self, groups: &[u32]) -> Vec<ArrayRef> {
        let column = |column: &KeyColumn| match column {
            KeyColumn::Fixed(data_type, keys) => array_of_bits(data_type, groups.iter().map(|group| keys[*group as usize])),
            KeyColumn::Text(data_type, keys) => text_array(data_type, groups.iter().map(|group| &keys[*group as usize])),
        };
        self.columns.iter().map(column).collect()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let bytes = |column: &KeyColumn| match column {
            KeyColumn::Fixed(_, keys) => keys.capacity() * size_of::<Option<u64>>(),
            KeyColumn::Text(_, keys) => keys.capacity() * size_of::<TextKey>(),
        };
        self.columns.iter().map(bytes).sum::<usize>() + self.text_bytes
    }
}

fn text_array<'a>(data_type: &DataType, keys: impl Iterator<Item = &'a TextKey>) -> ArrayRef {
    let mut texts = BinaryViewBuilder::new();
    for key in keys {
        match key {
            TextKey::Null => texts.append_null(),
            TextKey::Short(view) => {
                let bytes = view.to_le_bytes();
                texts.append_value(&bytes[4..4 + *view as u32 as usize]);
            }
            TextKey::Long(text) => texts.append_value(text),
        }
    }
    let texts = texts.finish();
    match data_type {
        DataType::Utf8View => Arc::new(texts.to_string_view().expect("they were texts when they came")),
        _ => Arc::new(texts),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{BooleanArray, Int64Array, StringViewArray};

    use super::*;

    #[test]
    fn keys_are_told_apart_by_every_column_and_come_back() {
        let long = "a text of more than twelve bytes";
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(0), None, Some(0), Some(0), Some(0)])),
            Arc::new(StringViewArray::from(vec![Some("x"), Some("x"), None, Some(""), Some(long)])),
            Arc::new(BooleanArray::from(vec![true; 5])),
        ];
        let types: Vec<DataType> = columns.iter().map(|column| column.data_type().clone()).collect();
        let mut keys = KeyColumns::new(&types).unwrap();
        let rows = KeyColumns::rows(&columns);
        (0..5).for_each(|row| keys.put(row, &rows, row));
        for (group, row) in (0..5).flat_map(|group| (0..5).map(move |row| (group, row))) {
            assert_eq!(keys.equal(group, &rows, row), group == row, "{group} {row}");
        }
        assert_eq!(keys.columns(&[0, 1, 2, 3, 4]), columns);
        let bytes = keys.bytes();
        keys.remove(4);
        assert_eq!(keys.bytes(), bytes - long.len());
    }
}
