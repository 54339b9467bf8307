//! Stores against a plain list of rows.

use std::collections::BTreeMap;

use arrow::array::{Array, BinaryViewArray, BooleanArray, Decimal128Array, Int32Array, Int64Array, ListArray, StringViewArray};
use arrow::compute;
use arrow::datatypes::{DataType, Int32Type};

use super::*;

/// Columns of all kinds; every seventh value is NULL, texts are of all lengths.
fn columns(from: i64, count: i64) -> Vec<ArrayRef> {
    let rows = || (from..from + count).map(|n| (n % 7 != 3).then_some(n));
    let text = |n: i64| format!("{n}:{}", "x".repeat((n % 30) as usize));
    let lists = rows().map(|n| n.map(|n| vec![Some(n as i32), None]));
    vec![
        Arc::new(Int64Array::from_iter(rows())),
        Arc::new(StringViewArray::from_iter(rows().map(|n| n.map(text)))),
        Arc::new(BooleanArray::from_iter(rows().map(|n| n.map(|n| n % 2 == 0)))),
        Arc::new(Decimal128Array::from_iter(rows().map(|n| n.map(|n| i128::from(n) << 70)))),
        Arc::new(BinaryViewArray::from_iter(rows().map(|n| n.map(|n| text(n).into_bytes())))),
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
        Arc::new(Int32Array::from_iter_values((from..from + count).map(|n| n as i32))),
    ]
}

fn store() -> RowStore {
    let types: Vec<DataType> = columns(0, 1).iter().map(|column| column.data_type().clone()).collect();
    RowStore::new(&types).unwrap()
}

/// The rows of these numbers.
fn expected(numbers: &[i64]) -> Vec<ArrayRef> {
    let all = columns(0, numbers.iter().max().map_or(0, |max| max + 1));
    let indices = Int64Array::from(numbers.to_vec());
    all.iter().map(|column| compute::take(column, &indices, None).unwrap()).collect()
}

#[test]
fn rows_come_back_in_any_order_and_none_is_null() {
    let (mut store, mut ids) = (store(), Vec::new());
    store.append(&columns(0, 10_000), 10_000, &mut ids).unwrap();
    let wanted = [9_999, 3, 4_096, 0, 4_095, 7_001];
    let taken = store.take(&wanted.map(|n| ids[n as usize])).unwrap();
    assert_eq!(taken, expected(&wanted));
    let one = store.take_columns(&[ids[5], RowId::NONE], &[1, 5]).unwrap();
    assert_eq!((one.len(), one[0].is_null(1), one[1].is_null(1), one[1].is_null(0)), (2, true, true, false));
    assert_eq!(store.len(), 10_000);
}

#[test]
fn random_rows_come_and_go_and_memory_goes_with_them() {
    let (mut store, mut random) = (store(), fastrand::Rng::with_seed(5));
    let mut present: BTreeMap<i64, RowId> = BTreeMap::new();
    let (mut next, mut most) = (0, 0);
    for round in 0..60 {
        let mut ids = Vec::new();
        let count = random.i64(1..3_000);
        store.append(&columns(next, count), count as usize, &mut ids).unwrap();
        present.extend((next..).zip(&ids).map(|(n, id)| (n, *id)));
        next += count;
        most = most.max(store.bytes());
        let dying: Vec<i64> = present.keys().copied().filter(|n| n % 97 != 0 && random.f64() < 0.6).collect();
        let dead: Vec<RowId> = dying.iter().map(|n| present.remove(n).unwrap()).collect();
        store.delete(&dead);
        assert!(dead.iter().all(|id| !store.contains(*id)));
        let (numbers, ids): (Vec<i64>, Vec<RowId>) = present.iter().map(|(n, id)| (*n, *id)).unzip();
        assert_eq!(store.take(&ids).unwrap(), expected(&numbers), "round {round}");
        assert_eq!(store.len(), present.len());
        assert_eq!(store.chunks().iter().map(|chunk| chunk.live().len()).sum::<usize>(), present.len());
    }
    let all: Vec<RowId> = present.into_values().collect();
    store.delete(&all);
    assert!(store.is_empty() && store.bytes() < most / 4, "{} of {most} bytes", store.bytes());
}

#[test]
fn texts_that_repeat_are_kept_once() {
    let texts = |distinct: usize| -> Vec<ArrayRef> {
        let text = |n: usize| (!n.is_multiple_of(11)).then(|| format!("a text of some length, number {}", n % distinct));
        vec![Arc::new(StringViewArray::from_iter((0..CHUNK_ROWS).map(text)))]
    };
    let mut bytes = Vec::new();
    for distinct in [CHUNK_ROWS / 16, CHUNK_ROWS] {
        let (mut store, mut ids) = (RowStore::new(&[DataType::Utf8View]).unwrap(), Vec::new());
        store.append(&texts(distinct), CHUNK_ROWS, &mut ids).unwrap();
        assert_eq!(store.take(&ids).unwrap(), texts(distinct));
        bytes.push(store.bytes());
        let gone = CHUNK_ROWS * 3 / 4;
        store.delete(&ids[..gone]);
        let rest = texts(distinct)[0].slice(gone, CHUNK_ROWS - gone);
        assert_eq!(store.take(&ids[gone..]).unwrap(), [rest]);
    }
    assert!(bytes[0] * 5 < bytes[1], "{bytes:?}");
}

#[test]
fn a_clone_stays_as_it_was() {
    let (mut store, mut ids) = (store(), Vec::new());
    store.append(&columns(0, 5_000), 5_000, &mut ids).unwrap();
    let frozen = store.clone();
    store.delete(&ids[..4_500]);
    store.append(&columns(5_000, 100), 100, &mut Vec::new()).unwrap();
    let kept: Vec<RowId> = frozen.chunks().iter().flat_map(StoredChunk::live).collect();
    assert_eq!(kept, ids);
    assert_eq!(frozen.take(&kept).unwrap(), columns(0, 5_000));
}

#[test]
fn rows_without_columns_are_counted() {
    let (mut store, mut ids) = (RowStore::new(&[]).unwrap(), Vec::new());
    store.append(&[], 5_000, &mut ids).unwrap();
    store.delete(&ids[..4_990]);
    assert_eq!(store.chunks().iter().flat_map(StoredChunk::live).count(), 10);
}

#[test]
fn attributes_have_a_default_and_are_forgotten_by_chunk() {
    let (mut store, mut ids) = (RowStore::new(&[DataType::Int64]).unwrap(), Vec::new());
    store.append(&columns(0, 5_000)[..1], 5_000, &mut ids).unwrap();
    let mut counts = RowAttribute::new(9u32);
    let other = ids[CHUNK_ROWS + 4];
    counts.set(ids[1], 1);
    counts.set(other, 2);
    let frozen = counts.clone();
    counts.set(ids[1], 5);
    assert_eq!([ids[0], ids[1], other].map(|id| counts.get(id)), [9, 5, 2]);
    assert_eq!(frozen.get(ids[1]), 1);
    let released = store.delete(&ids[..CHUNK_ROWS]);
    assert_eq!(released, [0]);
    counts.release(&released);
    assert_eq!((counts.get(ids[1]), counts.get(other)), (9, 2));
}

/// The columns of a chunk as [`RowStore::take`] gives them.
fn as_taken(chunk: &StoredChunk<'_>, like: &[ArrayRef]) -> Vec<ArrayRef> {
    let columns = chunk.columns().unwrap();
    columns.iter().zip(like).map(|(column, like)| compute::cast(column, like.data_type()).unwrap()).collect()
}

#[test]
fn a_full_chunk_is_shown_as_it_lies_in_memory() {
    let (mut store, mut ids) = (store(), Vec::new());
    store.append(&columns(0, 3 * CHUNK_ROWS as i64), 3 * CHUNK_ROWS, &mut ids).unwrap();
    store.delete(&ids[..3]);
    store.delete(&ids[CHUNK_ROWS..CHUNK_ROWS + CHUNK_ROWS / 2 + 1]);
    store.delete(&ids[2 * CHUNK_ROWS - 4..2 * CHUNK_ROWS]);
    let chunks = store.chunks();
    assert_eq!(chunks.len(), 3);
    for (chunk, stored) in chunks.iter().zip([CHUNK_ROWS, CHUNK_ROWS / 2 - 1, CHUNK_ROWS]) {
        let taken = store.take(&chunk.stored()).unwrap();
        assert_eq!(as_taken(chunk, &taken), taken);
        assert_eq!(taken[0].len(), stored);
    }
    let live: Vec<usize> = chunks.iter().map(|chunk| chunk.live_mask().map_or(0, |mask| mask.count_set_bits())).collect();
    assert_eq!(live, [CHUNK_ROWS - 3, CHUNK_ROWS / 2 - 5, 0]);
}

#[test]
fn a_content_keeps_its_number_until_it_is_written_anew() {
    let (mut store, mut ids) = (store(), Vec::new());
    let contents = |store: &RowStore| store.chunks().iter().map(StoredChunk::content).collect::<Vec<_>>();
    store.append(&columns(0, CHUNK_ROWS as i64 + 1), CHUNK_ROWS + 1, &mut ids).unwrap();
    let first = contents(&store);
    assert!(first[0].is_some() && first[1].is_none(), "the second chunk is not full");
    store.delete(&ids[..CHUNK_ROWS / 2]);
    assert_eq!(contents(&store), first, "rows died, but nothing was written");
    store.delete(&ids[CHUNK_ROWS / 2..CHUNK_ROWS / 2 + 1]);
    assert_ne!(contents(&store)[0], first[0]);
}

#[test]
fn chunks_come_in_the_order_of_their_rows_also_when_numbers_are_used_again() {
    let (mut store, mut ids) = (RowStore::new(&[DataType::Int64]).unwrap(), Vec::new());
    let number = |n: i64| vec![Arc::new(Int64Array::from_value(n, CHUNK_ROWS)) as ArrayRef];
    store.append(&number(0), CHUNK_ROWS, &mut ids).unwrap();
    let first = ids.clone();
    store.append(&number(1), CHUNK_ROWS, &mut ids).unwrap();
    store.delete(&first);
    store.append(&number(2), CHUNK_ROWS, &mut ids).unwrap();
    assert_eq!(ids[0].chunk(), 0);
    let order: Vec<RowId> = store.chunks().iter().map(|chunk| chunk.live()[0]).collect();
    assert_eq!(store.take(&order).unwrap(), [Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef]);
}
