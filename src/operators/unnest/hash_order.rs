//! The order in which Flink numbers the entries of a map or multiset: that of a Java HashMap, which its JSON format and COLLECT fill.
//!
//! An entry lies in the bucket of its key's hash; entries of a bucket stay in the order in which they came. Strings are hashed by
//! 32-bit Murmur3 of their UTF-8 bytes, whole numbers as Java does. Maps with keys of other types keep their own order.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int8Type, Int16Type, Int32Type, Int64Type};

/// Buckets of an empty HashMap; they double when more than three quarters are in use.
const FIRST_CAPACITY: usize = 16;
/// What Flink starts the hash of bytes with.
const SEED: u32 = 42;

/// The entries of one map in that order.
pub(super) fn entries(keys: &ArrayRef, range: Range<usize>) -> Vec<usize> {
    let mut capacity = FIRST_CAPACITY;
    while range.len() * 4 > capacity * 3 {
        capacity *= 2;
    }
    let mut entries: Vec<usize> = range.collect();
    entries.sort_by_key(|entry| bucket(keys, *entry, capacity));
    entries
}

fn bucket(keys: &ArrayRef, entry: usize, capacity: usize) -> usize {
    let hash = if keys.is_null(entry) { 0 } else { hash(keys, entry) };
    (hash ^ (hash >> 16)) as usize & (capacity - 1)
}

fn hash(keys: &ArrayRef, entry: usize) -> u32 {
    match keys.data_type() {
        DataType::Utf8View => of_bytes(keys.as_string_view().value(entry).as_bytes()),
        DataType::Int8 => keys.as_primitive::<Int8Type>().value(entry) as u32,
        DataType::Int16 => keys.as_primitive::<Int16Type>().value(entry) as u32,
        DataType::Int32 => keys.as_primitive::<Int32Type>().value(entry) as u32,
        DataType::Int64 => {
            let number = keys.as_primitive::<Int64Type>().value(entry) as u64;
            (number ^ (number >> 32)) as u32
        }
        _ => 0,
    }
}

/// Murmur3 over words of four bytes, then over the bytes left, each as a signed word.
fn of_bytes(bytes: &[u8]) -> u32 {
    let mix = |hash: u32, word: u32| {
        let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    };
    let words = bytes.chunks_exact(4);
    let rest = words.remainder().iter().map(|byte| *byte as i8 as u32);
    let words = words.map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
    let mut hash = words.chain(rest).fold(SEED, mix) ^ bytes.len() as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringViewArray};

    use super::*;

    fn order(keys: &[&str]) -> Vec<usize> {
        let array: ArrayRef = Arc::new(StringViewArray::from_iter_values(keys));
        entries(&array, 0..keys.len())
    }

    #[test]
    fn entries_come_as_flink_numbers_them() {
        assert_eq!(order(&["c", "d"]), [1, 0]);
        assert_eq!(order(&["Hello", "Hi"]), [1, 0]);
        assert_eq!(order(&["x", "y", "z", "n"]), [3, 0, 2, 1]);
    }

    #[test]
    fn numbers_lie_by_their_value() {
        let array: ArrayRef = Arc::new(Int64Array::from(vec![17, 3, 1]));
        assert_eq!(entries(&array, 0..3), [0, 2, 1]);
    }
}
