//! Row kinds: what a row does to the table that the stream describes.

use std::fmt;

use arrow::array::{BooleanArray, UInt8Array, UInt32Array};
use serde::{Deserialize, Serialize};

/// What a row does to the table that the stream describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum RowKind {
    /// `+I`: a new row.
    Insert = 0,
    /// `-U`: the former content of an updated row.
    UpdateBefore = 1,
    /// `+U`: the new content of an updated row.
    UpdateAfter = 2,
    /// `-D`: a row goes.
    Delete = 3,
}

impl RowKind {
    /// From its number, as held in [`RowKinds`].
    pub fn from_u8(kind: u8) -> Self {
        match kind {
            0 => RowKind::Insert,
            1 => RowKind::UpdateBefore,
            2 => RowKind::UpdateAfter,
            3 => RowKind::Delete,
            other => unreachable!("row kind {other}"),
        }
    }

    /// `+I`, `-U`, `+U` or `-D`.
    pub fn symbol(self) -> &'static str {
        match self {
            RowKind::Insert => "+I",
            RowKind::UpdateBefore => "-U",
            RowKind::UpdateAfter => "+U",
            RowKind::Delete => "-D",
        }
    }

    /// Whether the row is taken away (`-U`, `-D`) rather than added.
    pub fn is_retraction(self) -> bool {
        matches!(self, RowKind::UpdateBefore | RowKind::Delete)
    }
}

impl fmt::Display for RowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}

/// The row kinds of a batch: one number a row, never null.
#[derive(Debug, Clone)]
pub struct RowKinds(UInt8Array);

impl RowKinds {
    /// From kinds.
    pub fn new(kinds: impl IntoIterator<Item = RowKind>) -> Self {
        RowKinds(UInt8Array::from_iter_values(kinds.into_iter().map(|kind| kind as u8)))
    }

    /// `count` rows of one kind.
    pub fn repeat(kind: RowKind, count: usize) -> Self {
        RowKinds(UInt8Array::from_value(kind as u8, count))
    }

    /// The kind of a row.
    pub fn get(&self, row: usize) -> RowKind {
        RowKind::from_u8(self.0.value(row))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.values().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them in order.
    pub fn iter(&self) -> impl Iterator<Item = RowKind> + '_ {
        self.0.values().iter().map(|kind| RowKind::from_u8(*kind))
    }

    /// As an Arrow array of the numbers.
    pub fn array(&self) -> &UInt8Array {
        &self.0
    }

    /// From an Arrow array of the numbers.
    pub fn from_array(array: UInt8Array) -> Self {
        RowKinds(array)
    }

    /// A stretch, not copied.
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        RowKinds(self.0.slice(offset, length))
    }

    /// The rows where `mask` is true.
    pub fn filter(&self, mask: &BooleanArray) -> Self {
        let kept = self.0.values().iter().zip(mask.iter()).filter(|(_, keep)| *keep == Some(true));
        RowKinds(UInt8Array::from_iter_values(kept.map(|(kind, _)| *kind)))
    }

    /// The rows at `indices`.
    pub fn take(&self, indices: &UInt32Array) -> Self {
        let values = self.0.values();
        RowKinds(UInt8Array::from_iter_values(indices.values().iter().map(|i| values[*i as usize])))
    }
}

/// Which row kinds an edge carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ChangelogMode {
    /// `+I` only.
    InsertOnly,
    /// `+I`, `+U`, `-D`: by a key, without the former content.
    Upsert,
    /// `+I`, `-U`, `+U`, `-D`: every change with the former content.
    Retract,
}

impl fmt::Display for ChangelogMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ChangelogMode::InsertOnly => "I",
            ChangelogMode::Upsert => "I,UA,D",
            ChangelogMode::Retract => "I,UB,UA,D",
        })
    }
}
