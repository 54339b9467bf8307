//! What has become of the windows of a subtask whose results are updated, as state: whether each was shown, and when it fires.
//!
//! That changes with every firing while the groups of a window may rest, so it stands apart from them. It holds for all key groups of the subtask: a
//! row for the first of them and one for the last, so that whoever takes over some of them reads it, whatever the parallelism is then.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, UInt16Array};
use arrow::datatypes::{Field, Int64Type, Schema, UInt16Type};

use super::slices::SliceKey;
use crate::error::Result;
use crate::types::KeyGroupRange;

/// The columns, by whose names these rows are told from those of groups.
const COLUMNS: [&str; 7] = ["key_group", "window_end", "window_start", "shown", "fire_at", "first_group", "last_group"];

/// What has become of a window in a subtask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Firing {
    pub(super) window: SliceKey,
    /// Whether it has fired.
    pub(super) shown: bool,
    /// When it fires at the latest, by the clock, if that was set.
    pub(super) fire_at: Option<i64>,
    /// The key groups of the subtask.
    pub(super) groups: KeyGroupRange,
}

/// As rows of state; none = there are none.
pub(super) fn to_rows(firings: &[Firing]) -> Result<Option<RecordBatch>> {
    if firings.is_empty() {
        return Ok(None);
    }
    let twice = || firings.iter().flat_map(|firing| [(firing, firing.groups.start), (firing, firing.groups.end)]);
    let columns: [ArrayRef; 7] = [
        Arc::new(UInt16Array::from_iter_values(twice().map(|(_, group)| group))),
        Arc::new(Int64Array::from_iter_values(twice().map(|(firing, _)| firing.window.end))),
        Arc::new(Int64Array::from_iter_values(twice().map(|(firing, _)| firing.window.start))),
        Arc::new(BooleanArray::from_iter(twice().map(|(firing, _)| Some(firing.shown)))),
        Arc::new(Int64Array::from_iter(twice().map(|(firing, _)| firing.fire_at))),
        Arc::new(UInt16Array::from_iter_values(twice().map(|(firing, _)| firing.groups.start))),
        Arc::new(UInt16Array::from_iter_values(twice().map(|(firing, _)| firing.groups.end))),
    ];
    let fields = columns.iter().zip(COLUMNS).map(|(column, name)| Field::new(name, column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    Ok(Some(RecordBatch::try_new(schema, columns.to_vec())?))
}

/// From rows of state, each once; none = they are rows of groups.
pub(super) fn from_rows(rows: &RecordBatch) -> Option<impl Iterator<Item = Firing> + '_> {
    let is_of_firings = rows.schema_ref().fields().iter().map(|field| field.name().as_str()).eq(COLUMNS);
    is_of_firings.then(|| {
        let number = |index: usize| rows.column(index).as_primitive::<Int64Type>();
        let group = |index: usize| rows.column(index).as_primitive::<UInt16Type>();
        let (ends, starts, times) = (number(1), number(2), number(4));
        let (shown, firsts, lasts) = (rows.column(3).as_boolean(), group(5), group(6));
        (0..rows.num_rows()).step_by(2).map(move |row| Firing {
            window: SliceKey { end: ends.value(row), start: starts.value(row) },
            shown: shown.value(row),
            fire_at: times.is_valid(row).then(|| times.value(row)),
            groups: KeyGroupRange { start: firsts.value(row), end: lasts.value(row) },
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_once() {
        let window = SliceKey { end: 9, start: 3 };
        let range = |start, end| KeyGroupRange { start, end };
        let firings = [
            Firing { window, shown: true, fire_at: None, groups: range(0, 63) },
            Firing { window, shown: false, fire_at: Some(17), groups: range(64, 64) },
        ];
        let rows = to_rows(&firings).unwrap().unwrap();
        assert_eq!(rows.column(0).as_primitive::<UInt16Type>().values(), &[0, 63, 64, 64]);
        assert_eq!(from_rows(&rows).unwrap().collect::<Vec<_>>(), firings);
        assert!(to_rows(&[]).unwrap().is_none());
    }
}
