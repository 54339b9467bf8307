//! The order of rows as bytes that compare like the rows: in Arrow's row format, kept inline where they are short.

use std::cmp::Ordering;

use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows, SortField};

use crate::error::Result;
use crate::expr::SortKey;
use crate::types::Schema;

/// The order key of a row, as it is kept.
pub(in crate::operators) trait RankKey: Ord + Clone + Send + Sync + 'static {
    /// From its bytes.
    fn of(bytes: &[u8]) -> Self;

    /// Compared with a key that is not kept.
    fn compare(&self, bytes: &[u8]) -> Ordering;

    /// Bytes beside its own.
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// Keys of a fixed width of `8 * N` bytes at most: filled up with zeros, big-endian.
impl<const N: usize> RankKey for [u64; N] {
    #[inline]
    fn of(bytes: &[u8]) -> Self {
        std::array::from_fn(|word| {
            let rest = bytes.get(word * 8..).unwrap_or_default();
            match rest.first_chunk::<8>() {
                Some(eight) => u64::from_be_bytes(*eight),
                None => {
                    let mut eight = [0; 8];
                    eight[..rest.len()].copy_from_slice(rest);
                    u64::from_be_bytes(eight)
                }
            }
        })
    }

    #[inline]
    fn compare(&self, bytes: &[u8]) -> Ordering {
        self.cmp(&Self::of(bytes))
    }
}

impl RankKey for Box<[u8]> {
    fn of(bytes: &[u8]) -> Self {
        bytes.into()
    }

    fn compare(&self, bytes: &[u8]) -> Ordering {
        self.as_ref().cmp(bytes)
    }

    fn heap_bytes(&self) -> usize {
        self.len()
    }
}

/// Makes the keys of batches.
#[derive(Debug)]
pub(in crate::operators) struct KeyEncoder {
    columns: Vec<usize>,
    /// None: there is no key, and all rows are equal.
    converter: Option<RowConverter>,
}

/// The keys of a batch.
pub(in crate::operators) struct EncodedKeys(Option<Rows>);

impl EncodedKeys {
    /// The key of a row.
    #[inline]
    pub(in crate::operators) fn bytes(&self, row: usize) -> &[u8] {
        self.0.as_ref().map_or(&[], |rows| rows.row(row).data())
    }
}

impl KeyEncoder {
    /// For rows of these columns.
    pub(in crate::operators) fn new(keys: &[SortKey], input: &Schema) -> Result<Self> {
        let field = |key: &SortKey| {
            let options = SortOptions { descending: key.descending, nulls_first: key.nulls_first };
            SortField::new_with_options(input.field(key.column).data_type.to_arrow(), options)
        };
        let converter = if keys.is_empty() { None } else { Some(RowConverter::new(keys.iter().map(field).collect())?) };
        Ok(KeyEncoder { columns: keys.iter().map(|key| key.column).collect(), converter })
    }

    /// The bytes of a key, where all keys have as many.
    pub(in crate::operators) fn width(keys: &[SortKey], input: &Schema) -> Option<usize> {
        keys.iter()
            .map(|key| match input.field(key.column).data_type.to_arrow() {
                DataType::Boolean => Some(2),
                DataType::Interval(_) => None,
                // A byte for NULL, then the value.
                other => other.primitive_width().map(|width| width + 1),
            })
            .sum()
    }

    /// The keys of a batch.
    pub(in crate::operators) fn encode(&self, columns: &[ArrayRef]) -> Result<EncodedKeys> {
        let columns: Vec<ArrayRef> = self.columns.iter().map(|column| ArrayRef::clone(&columns[*column])).collect();
        self.encode_keys(&columns)
    }

    /// The keys of rows of which only the key columns are there.
    pub(in crate::operators) fn encode_keys(&self, keys: &[ArrayRef]) -> Result<EncodedKeys> {
        let converter = self.converter.as_ref();
        Ok(EncodedKeys(converter.map(|converter| converter.convert_columns(keys)).transpose()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_keys_compare_like_their_bytes() {
        let keys: [&[u8]; 6] = [&[], &[0, 1], &[0, 1, 0, 0, 0, 0, 0, 0, 0, 5], &[0, 2], &[1, 0, 0], &[255; 16]];
        for (at, low) in keys.iter().enumerate() {
            for high in &keys[at + 1..] {
                assert!(<[u64; 2]>::of(low) < <[u64; 2]>::of(high), "{low:?} {high:?}");
                assert_eq!(<[u64; 2]>::of(high).compare(low), Ordering::Greater);
            }
        }
    }
}
