//! Files read by splits and written as parts.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Int64Array, StringViewArray};

use crate::clock::VirtualClock;
use crate::connectors::BuiltinConnectors;
use crate::connectors::testing::*;
use crate::error::ErrorKind;
use crate::expr::Expr;
use crate::runtime::{ConnectorFactory, SourceEvent};
use crate::stream_graph::WatermarkSpec;
use crate::types::{Batch, DataType, SchemaRef, SplitId, TypeKind, Watermark};

fn numbers() -> SchemaRef {
    schema(&[("n", DataType::nullable(TypeKind::BigInt)), ("s", DataType::string())])
}

fn rows(numbers: std::ops::Range<i64>) -> Batch {
    let strings = StringViewArray::from_iter_values(numbers.clone().map(|n| format!("text number {n}")));
    let count = (numbers.end - numbers.start) as usize;
    Batch::new(vec![Arc::new(Int64Array::from_iter_values(numbers)), Arc::new(strings)], count)
}

fn visible(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        if path.is_dir() {
            names.extend(visible(&path).into_iter().map(|below| format!("{name}/{below}")));
        } else {
            let parts: Vec<&str> = name.split('-').collect();
            // The random part of a name says nothing.
            names.push(if parts.len() > 3 { format!("part-{}-{}", parts[6], parts[7]) } else { name });
        }
    }
    names.sort();
    names
}

#[test]
fn what_a_sink_writes_a_source_reads() {
    for format in ["json", "csv"] {
        let folder = tempfile::tempdir().unwrap();
        let with = [("path", "out"), ("format", format)];
        let spec = sink_spec("filesystem", &with, folder.path(), &numbers());
        let factory = BuiltinConnectors::default();
        let mut sink = factory.sink(&spec, sink_context(VirtualClock::new(0), 0, 1)).unwrap();
        sink.write(rows(0..5)).unwrap();
        assert!(!folder.path().join("out").exists(), "nothing is visible yet");
        sink.flush().unwrap();
        sink.write(rows(5..7)).unwrap();
        sink.finish().unwrap();
        assert_eq!(visible(&folder.path().join("out")), ["part-0-0", "part-0-1"]);
        let spec = source_spec("filesystem", &with, folder.path(), &numbers());
        let mut lines = read_lines(&spec, &factory, 2).unwrap();
        lines.sort();
        assert_eq!(lines.len(), 7);
        assert_eq!(lines[6], "+I 6|text number 6");
    }
}

#[test]
fn a_sink_that_is_dropped_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let with = [("path", "."), ("format", "json"), ("sink.rolling-policy.file-size", "5mb")];
    let spec = sink_spec("filesystem", &with, folder.path(), &numbers());
    let mut sink = BuiltinConnectors::default().sink(&spec, sink_context(VirtualClock::new(0), 0, 1)).unwrap();
    sink.write(rows(0..50_000)).unwrap();
    assert_eq!(visible(folder.path()).len(), 1, "the hidden file is there");
    drop(sink);
    assert!(visible(folder.path()).is_empty());
}

#[test]
fn partitions_are_folders_without_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    let with = [
        ("path", "."),
        ("format", "csv"),
        ("sink.partition-commit.policy.kind", "success-file"),
        ("sink.partition-commit.trigger", "partition-time"),
        ("partition.time-extractor.timestamp-pattern", "1970-01-01 00:00:0$n"),
    ];
    let mut spec = sink_spec("filesystem", &with, folder.path(), &numbers());
    spec.partition_keys = vec![0];
    let mut sink = BuiltinConnectors::default().sink(&spec, sink_context(VirtualClock::new(0), 0, 1)).unwrap();
    sink.write(rows(1..3)).unwrap();
    sink.watermark(Watermark(1_500)).unwrap();
    assert_eq!(visible(folder.path()), ["n=1/_SUCCESS", "n=1/part-0-0"]);
    sink.write(rows(2..4)).unwrap();
    sink.finish().unwrap();
    let names = visible(folder.path());
    assert_eq!(names, ["n=1/_SUCCESS", "n=1/part-0-0", "n=2/_SUCCESS", "n=2/part-0-1", "n=3/_SUCCESS", "n=3/part-0-2"]);
}

#[test]
fn the_last_of_several_writers_makes_all_visible_and_marks_partitions_once() {
    let folder = tempfile::tempdir().unwrap();
    let with = [("path", "."), ("format", "csv"), ("sink.partition-commit.policy.kind", "success-file")];
    let mut spec = sink_spec("filesystem", &with, folder.path(), &numbers());
    spec.partition_keys = vec![0];
    let factory = BuiltinConnectors::default();
    let writer = |index| factory.sink(&spec, sink_context(VirtualClock::new(0), index, 2)).unwrap();
    let (mut first, mut second) = (writer(0), writer(1));
    first.write(rows(1..3)).unwrap();
    second.write(rows(2..3)).unwrap();
    first.on_time(60_000).unwrap();
    assert_eq!(visible(folder.path()), ["n=1/_SUCCESS", "n=1/part-0-0", "n=2/part-0-1"], "the second has rows of n=2");
    second.on_time(60_000).unwrap();
    assert_eq!(visible(&folder.path().join("n=2")), ["_SUCCESS", "part-0-1", "part-1-0"]);
    first.write(rows(3..4)).unwrap();
    first.finish().unwrap();
    drop(first);
    let hidden = visible(&folder.path().join("n=3"));
    assert!(hidden.len() == 1 && !hidden.contains(&"part-0-2".to_string()), "{hidden:?}");
    second.write(rows(4..5)).unwrap();
    second.finish().unwrap();
    assert_eq!(visible(&folder.path().join("n=3")), ["_SUCCESS", "part-0-2"]);
    assert_eq!(visible(&folder.path().join("n=4")), ["_SUCCESS", "part-1-1"]);
}

#[test]
fn a_writer_that_fails_takes_the_last_parts_of_the_others_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let spec = sink_spec("filesystem", &[("path", "."), ("format", "csv")], folder.path(), &numbers());
    let factory = BuiltinConnectors::default();
    let context = |index| sink_context(VirtualClock::new(0), index, 2);
    let (mut first, second) = (factory.sink(&spec, context(0)).unwrap(), factory.sink(&spec, context(1)).unwrap());
    first.write(rows(1..3)).unwrap();
    first.finish().unwrap();
    drop((first, second));
    assert_eq!(visible(folder.path()).len(), 1, "hidden");
    factory.release_job(context(0).operator.job);
    assert!(visible(folder.path()).is_empty());
}

#[test]
fn parts_are_closed_by_size_and_age() {
    let folder = tempfile::tempdir().unwrap();
    let with = [
        ("path", "."),
        ("format", "json"),
        ("sink.rolling-policy.file-size", "100"),
        ("sink.rolling-policy.rollover-interval", "10 s"),
    ];
    let spec = sink_spec("filesystem", &with, folder.path(), &numbers());
    let clock = VirtualClock::new(0);
    let mut sink = BuiltinConnectors::default().sink(&spec, sink_context(clock, 0, 1)).unwrap();
    sink.write(rows(0..5)).unwrap();
    assert_eq!(visible(folder.path()), ["part-0-0"]);
    sink.write(rows(0..1)).unwrap();
    assert_eq!(sink.next_timer(), Some(60_000));
    sink.on_time(60_000).unwrap();
    assert_eq!(visible(folder.path()), ["part-0-0", "part-0-1"]);
    assert_eq!(sink.next_timer(), None);
}

#[test]
fn a_bad_record_is_named_by_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let text: String =
        (0..20_000).map(|n| format!("{{\"n\":{}}}\n", if n == 15_000 { "x".into() } else { n.to_string() })).collect();
    std::fs::write(folder.path().join("in.json"), text).unwrap();
    let with = [("path", "in.json"), ("format", "json")];
    let spec = source_spec("filesystem", &with, folder.path(), &numbers());
    let error = read_lines(&spec, &BuiltinConnectors::default(), 1000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DataFormat);
    assert_eq!(error.detail(), Some("in.json line 15001: unexpected 'x' at byte 6"));
}

#[test]
fn rows_of_files_before_a_failure_come_first() {
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in [("a.json", "{\"n\":1}\n{\"n\":2}\n"), ("b.json", "{\"n\":x}\n"), ("c.json", "{\"n\":4}\n")] {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    let spec = source_spec("filesystem", &[("path", "."), ("format", "json")], folder.path(), &numbers());
    let source = BuiltinConnectors::default().source(&spec).unwrap();
    let mut reader = source.reader(reader_context(VirtualClock::new(0), 0, 1, 1)).unwrap();
    reader.add_splits(source.enumerator(1).unwrap().discover().unwrap()).unwrap();
    // The thread reads on in files of which nobody asks for rows yet: `c` is read before `b` is asked for.
    for (file, rows) in [(2, 1), (0, 2)] {
        reader.prefer(SplitId(file));
        for _ in 0..rows {
            let SourceEvent::Batch(id, _) = next_event(&mut *reader).unwrap() else { panic!("a batch is due") };
            assert_eq!(id, SplitId(file));
        }
    }
    reader.prefer(SplitId(1));
    assert_eq!(next_event(&mut *reader).err().map(|error| error.kind()), Some(ErrorKind::DataFormat));
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_record() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.csv"), "\u{feff}1,x\r\n2,y").unwrap();
    let spec = source_spec("filesystem", &[("path", "in.csv"), ("format", "csv")], folder.path(), &numbers());
    assert_eq!(read_lines(&spec, &BuiltinConnectors::default(), 10).unwrap(), ["+I 1|x", "+I 2|y"]);
}

#[test]
fn a_reader_goes_on_where_a_snapshot_was_taken() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..100).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    std::fs::write(folder.path().join("in.json"), text).unwrap();
    let spec = source_spec("filesystem", &[("path", "in.json"), ("format", "json")], folder.path(), &numbers());
    let source = BuiltinConnectors::default().source(&spec).unwrap();
    let mut reader = source.reader(reader_context(VirtualClock::new(0), 0, 1, 7)).unwrap();
    reader.add_splits(source.enumerator(1).unwrap().discover().unwrap()).unwrap();
    let mut first = Vec::new();
    for _ in 0..3 {
        let SourceEvent::Batch(_, batch) = next_event(&mut *reader).unwrap() else { panic!("a batch is due") };
        first.push(batch);
    }
    let snapshot = reader.snapshot().unwrap();
    let mut restored = source.reader(reader_context(VirtualClock::new(0), 0, 1, 50)).unwrap();
    restored.add_splits(snapshot).unwrap();
    let mut all = lines(&first, &spec.schema);
    all.extend(lines(&read_batches(&mut *restored).unwrap(), &spec.schema));
    let expected: Vec<String> = (0..100).map(|n| format!("+I {n}|null")).collect();
    assert_eq!(all, expected);
    assert!(reader.is_busy() && !restored.is_busy(), "the first has rows that nobody took");
}

#[test]
fn with_a_watermark_the_preferred_file_is_served_first() {
    let folder = tempfile::tempdir().unwrap();
    for file in 0..200 {
        let text: String = (0..4).map(|n| format!("{{\"n\":{}}}\n", file * 10 + n)).collect();
        std::fs::write(folder.path().join(format!("{file:03}.json")), text).unwrap();
    }
    let mut spec = source_spec("filesystem", &[("path", "."), ("format", "json")], folder.path(), &numbers());
    let n = DataType::nullable(TypeKind::BigInt);
    spec.watermark = Some(WatermarkSpec { rowtime: 0, expr: Expr::column(0, n), timing: Default::default() });
    let source = BuiltinConnectors::default().source(&spec).unwrap();
    let mut enumerator = source.enumerator(1).unwrap();
    assert!(enumerator.assign_all_at_start());
    let mut reader = source.reader(reader_context(VirtualClock::new(0), 0, 1, 1)).unwrap();
    reader.add_splits(enumerator.discover().unwrap()).unwrap();
    reader.no_more_splits();
    for turn in 0..2 {
        for file in (0..200).rev() {
            reader.prefer(SplitId(file));
            let SourceEvent::Batch(id, batch) = next_event(&mut *reader).unwrap() else { panic!("a batch is due") };
            assert_eq!(id, SplitId(file));
            assert_eq!(lines(&[batch], &spec.schema), [format!("+I {}|null", file * 10 + turn)]);
        }
    }
    assert_eq!(read_batches(&mut *reader).unwrap().len(), 400);
}

#[test]
fn new_files_are_found_while_the_table_is_monitored() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.json"), "{}\n").unwrap();
    let with = [("path", "."), ("format", "json"), ("source.monitor-interval", "1 s")];
    let source = BuiltinConnectors::default().source(&source_spec("filesystem", &with, folder.path(), &numbers())).unwrap();
    let mut enumerator = source.enumerator(1).unwrap();
    assert_eq!(enumerator.discovery_interval_ms(), Some(1000));
    assert_eq!(enumerator.discover().unwrap().len(), 1);
    std::fs::write(folder.path().join("b.json"), "{}\n").unwrap();
    let found = enumerator.discover().unwrap();
    assert_eq!((found.len(), found[0].id), (1, SplitId(1)));
}

#[test]
fn partition_columns_are_read_from_the_folders() {
    let folder = tempfile::tempdir().unwrap();
    let with = [("path", "."), ("format", "csv")];
    let mut spec = sink_spec("filesystem", &with, folder.path(), &numbers());
    spec.partition_keys = vec![0];
    let factory = BuiltinConnectors::default();
    let mut sink = factory.sink(&spec, sink_context(VirtualClock::new(0), 0, 1)).unwrap();
    sink.write(rows(1..3)).unwrap();
    let no_number = Int64Array::from(vec![None]);
    let text = StringViewArray::from_iter_values(["in no number"]);
    sink.write(Batch::new(vec![Arc::new(no_number), Arc::new(text)], 1)).unwrap();
    sink.finish().unwrap();
    std::fs::write(folder.path().join("stray.csv"), "no part of the table\n").unwrap();
    let mut spec = source_spec("filesystem", &with, folder.path(), &numbers());
    spec.partition_keys = vec![0];
    let mut lines = read_lines(&spec, &factory, 10).unwrap();
    lines.sort();
    assert_eq!(lines, ["+I 1|text number 1", "+I 2|text number 2", "+I null|in no number"]);
    spec.projection = vec![1];
    spec.schema = Arc::new(spec.physical.project(&[1]));
    assert_eq!(read_lines(&spec, &factory, 10).unwrap().len(), 3);
    spec.partition_keys = vec![1];
    let error = read_lines(&spec, &factory, 10).unwrap_err();
    assert_eq!(error.message(), "no file of the table lies in a partition folder 's=…'");
}

#[test]
fn a_partition_column_without_a_value_of_its_type_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("n=many")).unwrap();
    std::fs::write(folder.path().join("n=many/a.csv"), "x\n").unwrap();
    let mut spec = source_spec("filesystem", &[("path", "."), ("format", "csv")], folder.path(), &numbers());
    spec.partition_keys = vec![0];
    let error = read_lines(&spec, &BuiltinConnectors::default(), 10).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::DataFormat, "cannot read partition column \"n\""));
}
