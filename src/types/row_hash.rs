//! The hash of a row's key columns: it chooses the key group (upper bits) and the slot in a task's table (lower bits).
//!
//! From columns to one `u64` a row, column by column. Laws: equal values give equal hashes whatever the batch, its offsets and its
//! buffers; the hash is the same in every process and build, since key groups of a checkpoint depend on it. So nothing random goes
//! in. Flink hashes binary rows with Murmur; nobody can see the difference but by timing.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, GenericListArray, OffsetSizeTrait, StructArray};
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal128Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalUnit, IntervalYearMonthType,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::map_form::{Maps, is_map};

// Digits of π after the point, in hexadecimal: odd enough, and nobody chose them.
const START: u64 = 0x243f_6a88_85a3_08d3;
const FACTOR: u64 = 0x1319_8a2e_0370_7345;
const BYTES: u64 = 0xa409_3822_299f_31d1;
const NULL: u64 = 0x082e_fa98_ec4e_6c89;

/// The hashes of `num_rows` rows over `columns`, in place of what `out` held. Without columns all rows have one hash.
pub fn hash_columns(columns: &[ArrayRef], num_rows: usize, out: &mut Vec<u64>) {
    out.clear();
    out.resize(num_rows, START);
    for column in columns {
        assert_eq!(column.len(), num_rows, "all key columns have {num_rows} rows");
        mix_column(column.as_ref(), out);
    }
}

/// Multiplies to 128 bits and folds the halves: every bit of the input reaches both halves of the result.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[inline]
fn mix(hash: &mut u64, value: u64) {
    *hash = fold(*hash ^ value, FACTOR);
}

fn mix_column(column: &dyn Array, out: &mut [u64]) {
    match column.data_type() {
        DataType::Null => out.iter_mut().for_each(|hash| mix(hash, NULL)),
        DataType::Boolean => mix_booleans(column.as_boolean(), out),
        DataType::Int8 => mix_primitive::<Int8Type>(column, out, |v| v as u64),
        DataType::Int16 => mix_primitive::<Int16Type>(column, out, |v| v as u64),
        DataType::Int32 => mix_primitive::<Int32Type>(column, out, |v| v as u64),
        DataType::Int64 => mix_primitive::<Int64Type>(column, out, |v| v as u64),
        DataType::UInt8 => mix_primitive::<UInt8Type>(column, out, u64::from),
        DataType::UInt16 => mix_primitive::<UInt16Type>(column, out, u64::from),
        DataType::UInt32 => mix_primitive::<UInt32Type>(column, out, u64::from),
        DataType::UInt64 => mix_primitive::<UInt64Type>(column, out, |v| v),
        DataType::Float32 => mix_primitive::<Float32Type>(column, out, |v| u64::from(v.to_bits())),
        DataType::Float64 => mix_primitive::<Float64Type>(column, out, f64::to_bits),
        DataType::Decimal128(..) => {
            mix_primitive::<Decimal128Type>(column, out, |v| (v as u64) ^ ((v >> 64) as u64).rotate_left(32))
        }
        DataType::Date32 => mix_primitive::<Date32Type>(column, out, |v| v as u64),
        DataType::Date64 => mix_primitive::<Date64Type>(column, out, |v| v as u64),
        DataType::Interval(IntervalUnit::YearMonth) => mix_primitive::<IntervalYearMonthType>(column, out, |v| v as u64),
        DataType::Time32(_) | DataType::Time64(_) | DataType::Timestamp(..) | DataType::Duration(_) => mix_time(column, out),
        DataType::Utf8View => mix_bytes(out, column.as_string_view().iter().map(|v| v.map(str::as_bytes))),
        DataType::Utf8 => mix_bytes(out, column.as_string::<i32>().iter().map(|v| v.map(str::as_bytes))),
        DataType::LargeUtf8 => mix_bytes(out, column.as_string::<i64>().iter().map(|v| v.map(str::as_bytes))),
        DataType::BinaryView => mix_bytes(out, column.as_binary_view().iter()),
        DataType::Binary => mix_bytes(out, column.as_binary::<i32>().iter()),
        DataType::LargeBinary => mix_bytes(out, column.as_binary::<i64>().iter()),
        maps if is_map(maps) => mix_maps(&Maps::of(column), out),
        DataType::List(_) => mix_list(column.as_list::<i32>(), out),
        DataType::LargeList(_) => mix_list(column.as_list::<i64>(), out),
        DataType::Struct(_) => mix_struct(column.as_struct(), out),
        other => unreachable!("no SQL type has the Arrow form {other}"),
    }
}

fn mix_time(column: &dyn Array, out: &mut [u64]) {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    match column.data_type() {
        DataType::Time32(Second) => mix_primitive::<Time32SecondType>(column, out, |v| v as u64),
        DataType::Time32(_) => mix_primitive::<Time32MillisecondType>(column, out, |v| v as u64),
        DataType::Time64(Microsecond) => mix_primitive::<Time64MicrosecondType>(column, out, |v| v as u64),
        DataType::Time64(_) => mix_primitive::<Time64NanosecondType>(column, out, |v| v as u64),
        DataType::Timestamp(Second, _) => mix_primitive::<TimestampSecondType>(column, out, |v| v as u64),
        DataType::Timestamp(Millisecond, _) => mix_primitive::<TimestampMillisecondType>(column, out, |v| v as u64),
        DataType::Timestamp(Microsecond, _) => mix_primitive::<TimestampMicrosecondType>(column, out, |v| v as u64),
        DataType::Timestamp(Nanosecond, _) => mix_primitive::<TimestampNanosecondType>(column, out, |v| v as u64),
        DataType::Duration(Second) => mix_primitive::<DurationSecondType>(column, out, |v| v as u64),
        DataType::Duration(Millisecond) => mix_primitive::<DurationMillisecondType>(column, out, |v| v as u64),
        DataType::Duration(Microsecond) => mix_primitive::<DurationMicrosecondType>(column, out, |v| v as u64),
        DataType::Duration(Nanosecond) => mix_primitive::<DurationNanosecondType>(column, out, |v| v as u64),
        other => unreachable!("{other} is no time"),
    }
}

fn mix_booleans(column: &BooleanArray, out: &mut [u64]) {
    for (row, hash) in out.iter_mut().enumerate() {
        mix(hash, if column.is_null(row) { NULL } else { u64::from(column.value(row)) });
    }
}

fn mix_primitive<T: ArrowPrimitiveType>(column: &dyn Array, out: &mut [u64], bits: impl Fn(T::Native) -> u64) {
    let column = column.as_primitive::<T>();
    match column.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => out.iter_mut().zip(column.values()).for_each(|(hash, value)| mix(hash, bits(*value))),
        Some(nulls) => {
            for ((hash, value), valid) in out.iter_mut().zip(column.values()).zip(nulls) {
                mix(hash, if valid { bits(*value) } else { NULL });
            }
        }
    }
}

fn mix_bytes<'a>(out: &mut [u64], values: impl Iterator<Item = Option<&'a [u8]>>) {
    for (hash, value) in out.iter_mut().zip(values) {
        mix(hash, value.map_or(NULL, hash_bytes));
    }
}

#[inline]
fn read8(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

#[inline]
fn read4(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")))
}

/// Blocks of 16 bytes, then the last 16 (which may overlap the block before).
#[inline]
fn hash_bytes(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    let start = BYTES ^ length as u64;
    let (low, high, mut hash) = match length {
        0 => (0, 0, start),
        1..4 => (u64::from(bytes[0]) << 8 | u64::from(bytes[length / 2]), u64::from(bytes[length - 1]), start),
        4..8 => (read4(bytes, 0), read4(bytes, length - 4), start),
        8..=16 => (read8(bytes, 0), read8(bytes, length - 8), start),
        _ => {
            let mut hash = start;
            let mut at = 0;
            while at + 16 < length {
                hash = fold(read8(bytes, at) ^ hash, read8(bytes, at + 8) ^ BYTES);
                at += 16;
            }
            (read8(bytes, length - 16), read8(bytes, length - 8), hash)
        }
    };
    hash = fold(low ^ hash, high ^ BYTES.rotate_left(17));
    hash
}

fn mix_list<O: OffsetSizeTrait>(column: &GenericListArray<O>, out: &mut [u64]) {
    let mut elements = Vec::new();
    hash_columns(std::slice::from_ref(column.values()), column.values().len(), &mut elements);
    for (row, hash) in out.iter_mut().enumerate() {
        let range = column.value_offsets()[row].as_usize()..column.value_offsets()[row + 1].as_usize();
        mix_elements(hash, column.is_valid(row).then(|| &elements[range]));
    }
}

fn mix_maps(maps: &Maps, out: &mut [u64]) {
    let mut elements = Vec::new();
    hash_columns(maps.columns(), maps.keys().len(), &mut elements);
    for (row, hash) in out.iter_mut().enumerate() {
        let is_valid = maps.nulls().is_none_or(|nulls| nulls.is_valid(row));
        // Entries in any order make the same map.
        let sum = is_valid.then(|| elements[maps.range(row)].iter().fold(0u64, |sum, hash| sum.wrapping_add(*hash)));
        mix(hash, sum.unwrap_or(NULL));
    }
}

fn mix_elements(hash: &mut u64, elements: Option<&[u64]>) {
    match elements {
        None => mix(hash, NULL),
        Some(elements) => {
            mix(hash, elements.len() as u64);
            elements.iter().for_each(|element| mix(hash, *element));
        }
    }
}

fn mix_struct(column: &StructArray, out: &mut [u64]) {
    let mut fields = Vec::new();
    hash_columns(column.columns(), column.len(), &mut fields);
    for (row, hash) in out.iter_mut().enumerate() {
        mix(hash, if column.is_valid(row) { fields[row] } else { NULL });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringViewArray};

    use super::*;

    fn hashes(columns: &[ArrayRef]) -> Vec<u64> {
        let mut out = Vec::new();
        hash_columns(columns, columns[0].len(), &mut out);
        out
    }

    #[test]
    fn a_value_has_one_hash_in_every_batch() {
        let text = "a string longer than one block of sixteen bytes";
        let one: ArrayRef = Arc::new(StringViewArray::from(vec![Some("x"), Some(text), None]));
        let two: ArrayRef = Arc::new(StringViewArray::from(vec![None, Some(text)]));
        assert_eq!(hashes(&[one.slice(1, 2)])[0], hashes(std::slice::from_ref(&two))[1]);
        assert_eq!(hashes(&[one])[2], hashes(&[two])[0]);
    }

    #[test]
    fn hashes_are_the_same_in_every_build() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["", "flink"]));
        assert_eq!(hashes(&[numbers, texts]), PINNED);
    }

    const PINNED: [u64; 2] = [15_983_750_455_595_750_781, 238_758_974_908_345_750];

    #[test]
    fn small_numbers_spread_over_key_groups_and_slots() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..12_800));
        let hashes = hashes(&[numbers]);
        for shift in [0, 32, 57] {
            let mut counts = [0u32; 128];
            hashes.iter().for_each(|hash| counts[(hash >> shift) as usize % 128] += 1);
            assert!(counts.iter().all(|count| (50..200).contains(count)), "shift {shift}: {counts:?}");
        }
    }

    #[test]
    fn texts_of_all_lengths_differ() {
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..200).map(|n| "a".repeat(n))));
        let mut hashes = hashes(&[texts]);
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 200);
    }
}
