//! Memory tables: appended, followed, folded.

use std::path::Path;

use arrow::array::{Int32Array, StringViewArray};

use super::*;
use crate::clock::VirtualClock;
use crate::connectors::testing::*;
use crate::connectors::{BuiltinConnectors, ConnectorServices};
use crate::runtime::{ConnectorFactory, FlushId};
use crate::types::{DataType, RowKind, RowKinds, SchemaRef, TypeKind, Watermark};

fn columns() -> SchemaRef {
    schema(&[("k", DataType::nullable(TypeKind::Int)), ("v", DataType::string())])
}

fn changes(rows: &[(RowKind, i32, &str)]) -> Batch {
    let keys = Int32Array::from_iter_values(rows.iter().map(|row| row.1));
    let values = StringViewArray::from_iter_values(rows.iter().map(|row| row.2));
    let kinds = RowKinds::new(rows.iter().map(|row| row.0));
    Batch::new(vec![Arc::new(keys), Arc::new(values)], rows.len()).with_kinds(Some(kinds))
}

fn connectors() -> (BuiltinConnectors, Arc<MemoryTables>) {
    let tables = Arc::new(MemoryTables::default());
    (BuiltinConnectors::new(ConnectorServices { memory: Arc::clone(&tables), ..ConnectorServices::default() }), tables)
}

use RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};

#[test]
fn a_snapshot_is_folded_by_key() {
    let (connectors, _) = connectors();
    let mut sink_spec = sink_spec(NAME, &[], Path::new("."), &columns());
    sink_spec.primary_key = vec![0];
    let mut sink = connectors.sink(&sink_spec, sink_context(VirtualClock::new(0), 0, 1)).unwrap();
    sink.write(changes(&[(Insert, 1, "a"), (Insert, 2, "b"), (Insert, 3, "c")])).unwrap();
    sink.write(changes(&[(UpdateAfter, 1, "z"), (Delete, 2, "b")])).unwrap();
    sink.finish().unwrap();
    let spec = source_spec(NAME, &[], Path::new("."), &columns());
    assert_eq!(read_lines(&spec, &connectors, 1).unwrap(), ["+I 3|c", "+I 1|z"]);
}

#[test]
fn without_a_key_a_retraction_takes_one_equal_row() {
    let (connectors, tables) = connectors();
    let spec = source_spec(NAME, &[], Path::new("."), &columns());
    connectors.source(&spec).unwrap();
    tables
        .append(&spec.table, changes(&[(Insert, 1, "a"), (Insert, 1, "a"), (UpdateBefore, 1, "a"), (UpdateAfter, 1, "b")]))
        .unwrap();
    assert_eq!(read_lines(&spec, &connectors, 10).unwrap(), ["+I 1|a", "+I 1|b"]);
}

#[test]
fn the_changelog_is_followed_until_it_is_finished() {
    let (connectors, tables) = connectors();
    let mut spec = source_spec(NAME, &[("memory.mode", "changelog")], Path::new("."), &columns());
    spec.projection = vec![1];
    let source = connectors.source(&spec).unwrap();
    tables.append(&spec.table, changes(&[(Insert, 1, "a"), (Delete, 1, "a"), (Insert, 2, "b")])).unwrap();
    let mut reader = source.reader(reader_context(VirtualClock::new(0), 0, 1, 2)).unwrap();
    reader.add_splits(source.enumerator(1).unwrap().discover().unwrap()).unwrap();
    let values = schema(&[("v", DataType::string())]);
    let rows = |reader: &mut dyn SourceReader| match poll_event(reader) {
        Some(SourceEvent::Batch(_, batch)) => lines(&[batch], &values),
        _ => Vec::new(),
    };
    assert_eq!(rows(&mut *reader), ["+I a", "-D a"]);
    let snapshot = reader.snapshot().unwrap();
    assert_eq!(rows(&mut *reader), ["+I b"]);
    assert!(poll_event(&mut *reader).is_none());
    let mut restored = source.reader(reader_context(VirtualClock::new(0), 0, 1, 2)).unwrap();
    restored.add_splits(snapshot).unwrap();
    assert_eq!(rows(&mut *restored), ["+I b"]);
    tables.advance_watermark(&spec.table, Watermark(5)).unwrap();
    tables.flush(&spec.table, FlushId(1)).unwrap();
    tables.finish(&spec.table).unwrap();
    assert!(matches!(poll_event(&mut *reader), Some(SourceEvent::Watermark(_, Watermark(5)))));
    assert!(matches!(poll_event(&mut *reader), Some(SourceEvent::Flush(FlushId(1)))));
    assert!(matches!(poll_event(&mut *reader), Some(SourceEvent::SplitFinished(_))));
    reader.no_more_splits();
    assert!(matches!(poll_event(&mut *reader), Some(SourceEvent::End)));
}

#[test]
fn with_checkpoints_rows_come_once_their_checkpoint_is_complete() {
    let (connectors, tables) = connectors();
    let spec = sink_spec(NAME, &[], Path::new("."), &columns());
    let writer = || {
        let mut context = sink_context(VirtualClock::new(0), 0, 1);
        context.checkpointing = true;
        connectors.sink(&spec, context).unwrap()
    };
    let context = sink_context(VirtualClock::new(0), 0, 1).operator;
    let committer = || connectors.committer(&spec, context.job, context.operator).unwrap().unwrap();
    let count = || tables.snapshot(&spec.table).unwrap().iter().map(Batch::num_rows).sum::<usize>();
    let (mut first, mut commits) = (writer(), committer());
    first.write(changes(&[(Insert, 1, "a"), (Insert, 2, "b")])).unwrap();
    let complete = first.prepare_commit(Some(crate::types::CheckpointId(1))).unwrap();
    assert_eq!(count(), 0);
    commits.commit(&complete).unwrap();
    first.write(changes(&[(Insert, 3, "c")])).unwrap();
    let incomplete = first.prepare_commit(Some(crate::types::CheckpointId(2))).unwrap();
    first.write(changes(&[(Insert, 4, "d")])).unwrap();
    assert_eq!(count(), 2);
    // The job is restarted from its first checkpoint.
    let (mut second, mut commits) = (writer(), committer());
    commits.recover(Some(""), &complete, false).unwrap();
    commits.commit(&incomplete).unwrap();
    assert_eq!(count(), 2, "what was put aside by the attempt before is gone");
    second.write(changes(&[(Insert, 3, "c")])).unwrap();
    second.flush().unwrap();
    assert_eq!(count(), 3);
    second.write(changes(&[(Insert, 4, "d")])).unwrap();
    second.finish().unwrap();
    commits.commit(&second.prepare_commit(None).unwrap()).unwrap();
    assert_eq!(count(), 4);
}
