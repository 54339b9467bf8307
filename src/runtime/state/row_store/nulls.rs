//! Which values of a chunk's column are NULL: nothing as long as none is.

use arrow::buffer::NullBuffer;

use super::column::Place;

/// A bit for each NULL.
#[derive(Debug, Clone, Default)]
pub(super) struct Nulls {
    words: Vec<u64>,
}

impl Nulls {
    /// Values from `first` on have these nulls.
    pub(super) fn append(&mut self, first: usize, nulls: Option<&NullBuffer>) {
        let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else { return };
        for (row, valid) in nulls.iter().enumerate() {
            if !valid {
                self.set(first + row);
            }
        }
    }

    fn set(&mut self, row: usize) {
        if self.words.len() <= row / 64 {
            self.words.resize(row / 64 + 1, 0);
        }
        self.words[row / 64] |= 1 << (row % 64);
    }

    #[inline]
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.words.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    pub(super) fn any(&self) -> bool {
        !self.words.is_empty()
    }

    /// Those of some values, in this order.
    pub(super) fn kept(&self, rows: &[u32]) -> Self {
        let mut kept = Nulls::default();
        if self.any() {
            let nulls = rows.iter().enumerate().filter(|(_, row)| self.is_null(**row as usize));
            nulls.for_each(|(place, _)| kept.set(place));
        }
        kept
    }

    /// Of the first `len` values.
    pub(super) fn buffer(&self, len: usize) -> Option<NullBuffer> {
        self.any().then(|| (0..len).map(|row| !self.is_null(row)).collect())
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

/// The nulls of values taken from many chunks; none = no value is NULL.
pub(super) fn take_nulls<'a>(places: &[Place], any: bool, of_chunk: impl Fn(usize) -> &'a Nulls) -> Option<NullBuffer> {
    if !any && places.iter().all(|place| place.is_some()) {
        return None;
    }
    let valid = places.iter().map(|place| place.is_some() && !of_chunk(place.chunk as usize).is_null(place.row as usize));
    Some(valid.collect::<NullBuffer>()).filter(|nulls| nulls.null_count() > 0)
}
