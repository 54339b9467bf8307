//! Fixed-width key columns packed into one number: from each column its bits and, above them, a bit that says whether there is a value.

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, BooleanArray, make_array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::{DataType, IntervalUnit};

/// How key columns are packed.
#[derive(Debug, Clone)]
pub(super) struct PackedLayout {
    types: Vec<DataType>,
}

impl PackedLayout {
    /// The layout of columns of these types, if they can be packed into 128 bits.
    pub(super) fn of(types: &[DataType]) -> Option<Self> {
        let layout = PackedLayout { types: types.to_vec() };
        let packable = !types.is_empty() && types.iter().all(|data_type| width(data_type).is_some());
        (packable && layout.bits() <= 128).then_some(layout)
    }

    /// Bits of a key.
    pub(super) fn bits(&self) -> u32 {
        self.types.iter().map(column_bits).sum()
    }

    /// The keys of rows; [`Self::bits`] is at most 64.
    pub(super) fn pack64(&self, columns: &[ArrayRef], num_rows: usize) -> Vec<u64> {
        let mut keys = vec![0u64; num_rows];
        for (column, data_type) in columns.iter().zip(&self.types) {
            let width = column_bits(data_type) - 1;
            for_each_bits(column, |row, bits| {
                // A value column of 63 bits and more never comes here.
                keys[row] = keys[row] << (width + 1) | bits.map_or(0, |bits| 1 << width | bits);
            });
        }
        keys
    }

    /// The keys of rows.
    pub(super) fn pack128(&self, columns: &[ArrayRef], num_rows: usize) -> Vec<u128> {
        let mut keys = vec![0u128; num_rows];
        for (column, data_type) in columns.iter().zip(&self.types) {
            let width = column_bits(data_type) - 1;
            for_each_bits(column, |row, bits| {
                keys[row] = keys[row] << (width + 1) | bits.map_or(0, |bits| 1 << width | u128::from(bits));
            });
        }
        keys
    }

    /// The columns of keys.
    pub(super) fn unpack(&self, keys: impl Iterator<Item = u128>) -> Vec<ArrayRef> {
        let mut keys: Vec<u128> = keys.collect();
        let mut columns = Vec::with_capacity(self.types.len());
        for data_type in self.types.iter().rev() {
            let width = column_bits(data_type) - 1;
            let values = keys.iter().map(|key| (key >> width & 1 == 1).then_some((key & ((1 << width) - 1)) as u64));
            columns.push(array_of_bits(data_type, values));
            keys.iter_mut().for_each(|key| *key >>= width + 1);
        }
        columns.reverse();
        columns
    }
}

/// Bits of a value; none = of no fixed width, or wider than 64.
fn width(data_type: &DataType) -> Option<u32> {
    match data_type {
        DataType::Boolean => Some(1),
        DataType::Interval(IntervalUnit::YearMonth) => Some(32),
        DataType::Interval(_) => None,
        other => other.primitive_width().filter(|width| *width <= 8).map(|width| width as u32 * 8),
    }
}

/// Whether values of this type have at most 64 bits.
pub(super) fn is_packable(data_type: &DataType) -> bool {
    width(data_type).is_some()
}

/// The bits of each row; those of NULL are any.
pub(super) fn bits_of(column: &ArrayRef) -> Vec<u64> {
    let mut all = Vec::with_capacity(column.len());
    for_each_bits(column, |_, bits| all.push(bits.unwrap_or_default()));
    all
}

fn column_bits(data_type: &DataType) -> u32 {
    width(data_type).expect("only packable columns are packed") + 1
}

/// Calls `f` with the bits of each row, none for NULL.
fn for_each_bits(column: &ArrayRef, f: impl FnMut(usize, Option<u64>)) {
    if let DataType::Boolean = column.data_type() {
        return visit(column.as_boolean().values().iter().map(u64::from), column.nulls(), f);
    }
    let data = column.to_data();
    let (buffer, offset, rows) = (&data.buffers()[0], data.offset(), data.len());
    match column.data_type().primitive_width() {
        Some(1) => visit(buffer.typed_data::<u8>()[offset..offset + rows].iter().map(|v| u64::from(*v)), column.nulls(), f),
        Some(2) => visit(buffer.typed_data::<u16>()[offset..offset + rows].iter().map(|v| u64::from(*v)), column.nulls(), f),
        Some(4) => visit(buffer.typed_data::<u32>()[offset..offset + rows].iter().map(|v| u64::from(*v)), column.nulls(), f),
        _ => visit(buffer.typed_data::<u64>()[offset..offset + rows].iter().copied(), column.nulls(), f),
    }
}

fn visit(values: impl Iterator<Item = u64>, nulls: Option<&NullBuffer>, mut f: impl FnMut(usize, Option<u64>)) {
    match nulls {
        None => values.enumerate().for_each(|(row, bits)| f(row, Some(bits))),
        Some(nulls) => values.enumerate().for_each(|(row, bits)| f(row, nulls.is_valid(row).then_some(bits))),
    }
}

/// The column of these bits, none being NULL.
pub(super) fn array_of_bits(data_type: &DataType, values: impl ExactSizeIterator<Item = Option<u64>> + Clone) -> ArrayRef {
    let nulls = NullBuffer::from_iter(values.clone().map(|value| value.is_some()));
    let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
    let rows = values.len();
    let bits = values.map(Option::unwrap_or_default);
    let buffer: Buffer = match data_type.primitive_width() {
        None => return Arc::new(BooleanArray::new(bits.map(|bits| bits == 1).collect(), nulls)),
        Some(1) => bits.map(|bits| bits as u8).collect(),
        Some(2) => bits.map(|bits| bits as u16).collect(),
        Some(4) => bits.map(|bits| bits as u32).collect(),
        Some(_) => bits.collect(),
    };
    let data = ArrayData::builder(data_type.clone()).len(rows).add_buffer(buffer).nulls(nulls).build();
    make_array(data.expect("one buffer of the type's width"))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, Int64Array, TimestampMillisecondArray};

    use super::*;

    #[test]
    fn columns_come_back_with_nulls_and_signs() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(-1), None, Some(i64::MIN)])),
            Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
            Arc::new(Int32Array::from(vec![-5, 0, 7])),
        ];
        let types: Vec<DataType> = columns.iter().map(|column| column.data_type().clone()).collect();
        let layout = PackedLayout::of(&types).unwrap();
        let keys = layout.pack128(&columns, 3);
        assert_eq!(&layout.unpack(keys.into_iter()), &columns);
    }

    #[test]
    fn small_columns_fit_a_word_at_any_offset() {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(-2), None, Some(i32::MAX)]));
        let layout = PackedLayout::of(&[DataType::Int32]).unwrap();
        let sliced = numbers.slice(1, 3);
        let keys = layout.pack64(std::slice::from_ref(&sliced), 3);
        assert_eq!(layout.unpack(keys.into_iter().map(u128::from)), vec![sliced]);
    }

    #[test]
    fn times_keep_their_zone() {
        let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1, 2]).with_timezone("UTC"));
        let layout = PackedLayout::of(&[times.data_type().clone()]).unwrap();
        assert_eq!(layout.unpack(layout.pack128(std::slice::from_ref(&times), 2).into_iter()), vec![times]);
    }
}
