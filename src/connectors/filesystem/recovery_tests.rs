//! Files across restarts: every row written once, every row read once.

use std::path::Path;
use std::sync::Arc;

use arrow::array::Int64Array;

use crate::clock::VirtualClock;
use crate::connectors::BuiltinConnectors;
use crate::connectors::testing::*;
use crate::error::Result;
use crate::runtime::{Committable, Committer, ConnectorFactory, SinkWriter, SourceEvent, Split};
use crate::stream_graph::{SinkSpec, SourceSpec};
use crate::types::{Batch, CheckpointId, DataType, JobId, OperatorId, SchemaRef, TypeKind, Watermark};

fn numbers() -> SchemaRef {
    let bigint = || DataType::nullable(TypeKind::BigInt);
    schema(&[("n", bigint()), ("p", bigint())])
}

/// Rows with a number and the tens of it.
fn rows(numbers: std::ops::Range<i64>) -> Batch {
    let (first, count) = (numbers.clone(), (numbers.end - numbers.start) as usize);
    let tens = numbers.map(|n| n / 10 * 10);
    Batch::new(vec![Arc::new(Int64Array::from_iter_values(first)), Arc::new(Int64Array::from_iter_values(tens))], count)
}

/// A process that writes one table with two writers.
struct Process {
    factory: BuiltinConnectors,
    committer: Box<dyn Committer>,
    writers: Vec<Box<dyn SinkWriter>>,
    checkpoints: u64,
}

impl Process {
    fn start(spec: &SinkSpec, restored: Option<&(String, Vec<Committable>)>) -> Self {
        Self::try_start(spec, restored, false).unwrap()
    }

    /// `were_committed`: it is known that what was prepared for the checkpoint was visible.
    fn try_start(spec: &SinkSpec, restored: Option<&(String, Vec<Committable>)>, were_committed: bool) -> Result<Self> {
        let factory = BuiltinConnectors::default();
        let mut committer = factory.committer(spec, JobId(1), OperatorId(1)).unwrap().expect("files have a committer");
        let (state, committables) =
            restored.map_or((None, &[][..]), |(state, committables)| (Some(state.as_str()), committables));
        committer.recover(state, committables, were_committed)?;
        let writer = |index| {
            let mut context = sink_context(VirtualClock::new(0), index, 2);
            context.checkpointing = true;
            factory.sink(spec, context).unwrap()
        };
        Ok(Process { writers: (0..2).map(writer).collect(), factory, committer, checkpoints: 0 })
    }

    fn write(&mut self, writer: usize, numbers: std::ops::Range<i64>) {
        self.writers[writer].write(rows(numbers)).unwrap();
    }

    /// What a checkpoint (or, at the end, the last one) keeps.
    fn prepare(&mut self, at_end: bool) -> (String, Vec<Committable>) {
        self.checkpoints += 1;
        let mut committables = Vec::new();
        for writer in &mut self.writers {
            if at_end {
                writer.finish().unwrap();
            }
            committables.extend(writer.prepare_commit((!at_end).then_some(CheckpointId(self.checkpoints))).unwrap());
        }
        (self.committer.snapshot(), committables)
    }

    /// The process is killed: nothing of it is tidied up.
    fn kill(self) {
        std::mem::forget(self);
    }
}

fn sink(folder: &Path, with: &[(&str, &str)], partitioned: bool) -> SinkSpec {
    let options: Vec<(&str, &str)> = [("path", "out"), ("format", "csv")].into_iter().chain(with.iter().copied()).collect();
    let mut spec = sink_spec("filesystem", &options, folder, &numbers());
    spec.partition_keys = if partitioned { vec![1] } else { Vec::new() };
    spec
}

/// The numbers in visible files, sorted.
fn written(folder: &Path) -> Vec<i64> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        if path.is_dir() {
            found.extend(written(&path));
        } else if name.starts_with("part-") {
            let text = std::fs::read_to_string(path).unwrap();
            found.extend(text.lines().map(|line| line.split(',').next().unwrap().parse::<i64>().unwrap()));
        }
    }
    found.sort_unstable();
    found
}

fn hidden(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(
            |path| {
                if path.is_dir() { hidden(&path) } else { usize::from(path.extension().is_some_and(|ext| ext == "inprogress")) }
            },
        )
        .sum()
}

#[test]
fn rows_become_visible_with_their_checkpoint_and_only_once() {
    for partitioned in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let spec = sink(folder.path(), &[("sink.rolling-policy.file-size", "64 b")], partitioned);
        let mut process = Process::start(&spec, None);
        process.write(0, 0..30);
        process.write(1, 100..105);
        let first = process.prepare(false);
        assert_eq!(written(&out), [0i64; 0], "not before the checkpoint is complete");
        process.committer.commit(&first.1).unwrap();
        process.committer.commit(&first.1).unwrap();
        let expected: Vec<i64> = (0..30).chain(100..105).collect();
        assert_eq!(written(&out), expected);
        // A checkpoint that is complete but not committed, one that never completes, and rows after them.
        process.write(0, 30..40);
        let second = process.prepare(false);
        process.write(1, 500..510);
        process.prepare(false);
        process.write(0, 600..1000);
        process.kill();
        assert!(hidden(&out) >= 2);
        let mut process = Process::start(&spec, Some(&second));
        let expected: Vec<i64> = (0..40).chain(100..105).collect();
        assert_eq!((written(&out), hidden(&out)), (expected, 0));
        // Killed again before the first checkpoint of the restarted job; the names of the second life are known too.
        process.write(0, 40..70);
        process.prepare(false);
        process.kill();
        let mut process = Process::start(&spec, Some(&second));
        assert_eq!(hidden(&out), 0);
        process.write(0, 40..50);
        let last = process.prepare(true);
        process.committer.commit(&last.1).unwrap();
        let expected: Vec<i64> = (0..50).chain(100..105).collect();
        assert_eq!((written(&out), hidden(&out)), (expected, 0));
        drop(process.factory);
    }
}

#[test]
fn a_job_that_ends_without_commit_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let spec = sink(folder.path(), &[], false);
    let other = folder.path().join("out/.part-of-another-job.inprogress");
    std::fs::create_dir_all(other.parent().unwrap()).unwrap();
    std::fs::write(&other, "1\n").unwrap();
    let mut process = Process::start(&spec, None);
    process.write(0, 0..9);
    let kept = process.prepare(false);
    process.write(0, 9..12);
    // For a checkpoint that nobody has.
    process.prepare(false);
    process.write(0, 20..22);
    let prepared = process.prepare(false);
    process.write(1, 0..9);
    process.committer.abort(&prepared.1, &kept.1).unwrap();
    assert_eq!(hidden(&folder.path().join("out")), 2);
    process.committer.abort(&prepared.1, &[]).unwrap();
    drop(process);
    assert_eq!((written(&folder.path().join("out")), hidden(&folder.path().join("out"))), (vec![], 1));
    assert!(other.exists());
}

#[test]
fn a_part_that_someone_removed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::start(&sink(folder.path(), &[], false), None);
    process.write(0, 0..9);
    let prepared = process.prepare(false);
    std::fs::remove_dir_all(folder.path().join("out")).unwrap();
    let error = process.committer.commit(&prepared.1).unwrap_err();
    assert!(error.message().ends_with("is lost"), "{}", error.render());
}

#[test]
fn parts_that_were_visible_may_be_gone_at_a_restore_and_others_are_looked_for_where_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let spec = sink(folder.path(), &[], false);
    let mut process = Process::start(&spec, None);
    process.write(0, 0..9);
    let savepoint = process.prepare(false);
    let mut elsewhere = spec.clone();
    elsewhere.options.insert("path".to_string(), "new".to_string());
    let refused = Process::try_start(&elsewhere, Some(&savepoint), false).map(drop).unwrap_err();
    assert!(refused.render().contains("/out', now it is in '"), "{}", refused.render());
    process.committer.commit(&savepoint.1).unwrap();
    std::fs::rename(folder.path().join("out"), folder.path().join("taken")).unwrap();
    for spec in [&spec, &elsewhere] {
        let refused = Process::try_start(spec, Some(&savepoint), false).map(drop).unwrap_err();
        assert!(refused.message().ends_with("is lost"), "{}", refused.render());
        let mut restored = Process::try_start(spec, Some(&savepoint), true).unwrap();
        restored.write(0, 9..12);
        let next = restored.prepare(false);
        restored.committer.commit(&next.1).unwrap();
    }
    let of = |name: &str| written(&folder.path().join(name));
    assert_eq!((of("taken"), of("out"), of("new")), ((0..9).collect(), vec![9, 10, 11], vec![9, 10, 11]));
}

#[test]
fn partitions_are_marked_when_all_writers_have_passed_them_and_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let with = [
        ("sink.partition-commit.policy.kind", "success-file"),
        ("sink.partition-commit.trigger", "partition-time"),
        ("sink.partition-commit.delay", "10 ms"),
        ("partition.time-extractor.timestamp-pattern", "1970-01-01 00:00:00.0$p"),
    ];
    let spec = sink(folder.path(), &with, true);
    let marked = |tens: i64| folder.path().join(format!("out/p={tens}/_SUCCESS")).exists();
    let mut process = Process::start(&spec, None);
    process.write(0, 10..25);
    process.write(1, 20..22);
    process.writers[0].watermark(Watermark(35)).unwrap();
    process.writers[1].watermark(Watermark(20)).unwrap();
    let first = process.prepare(false);
    assert!(!marked(10));
    process.committer.commit(&first.1).unwrap();
    assert!(marked(10) && !marked(20));
    let second = process.prepare(false);
    process.kill();
    let mut process = Process::start(&spec, Some(&second));
    assert!(!marked(20), "the second writer had not come so far");
    process.writers[0].watermark(Watermark(99)).unwrap();
    process.writers[1].watermark(Watermark(30)).unwrap();
    let third = process.prepare(false);
    process.committer.commit(&third.1).unwrap();
    assert!(marked(20), "it was begun before the restart");
    process.write(1, 70..71);
    let last = process.prepare(true);
    process.committer.commit(&last.1).unwrap();
    assert!(marked(70), "at the end all are complete");
}

#[test]
fn a_writer_that_did_not_hear_of_its_last_barrier_is_as_far_as_it_said_last() {
    let folder = tempfile::tempdir().unwrap();
    let with = [
        ("sink.partition-commit.policy.kind", "success-file"),
        ("sink.partition-commit.trigger", "process-time"),
        ("sink.partition-commit.delay", "1 h"),
    ];
    let mut process = Process::start(&sink(folder.path(), &with, true), None);
    process.write(0, 10..12);
    process.write(1, 10..12);
    let (_, mut said) = process.prepare(false);
    said.extend(process.prepare(true).1);
    process.committer.commit(&said).unwrap();
    assert!(folder.path().join("out/p=10/_SUCCESS").exists(), "both are at their end");
}

#[test]
fn a_file_where_the_folder_of_a_table_should_be_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("out"), "").unwrap();
    for partitioned in [false, true] {
        let mut process = Process::start(&sink(folder.path(), &[], partitioned), None);
        process.write(0, 0..9);
        let error = process.writers[0].prepare_commit(Some(CheckpointId(1))).unwrap_err();
        assert_eq!(error.hint(), Some("option 'path' of a table that is written names a folder"), "{}", error.render());
    }
}

fn source(folder: &Path, with: &[(&str, &str)]) -> SourceSpec {
    let options: Vec<(&str, &str)> = [("path", "."), ("format", "csv")].into_iter().chain(with.iter().copied()).collect();
    source_spec("filesystem", &options, folder, &numbers())
}

/// Reads so many batches; gives their rows, and what a snapshot keeps then.
fn read_some(spec: &SourceSpec, splits: Vec<Split>, batches: usize) -> (Vec<String>, Vec<Split>) {
    let source = BuiltinConnectors::default().source(spec).unwrap();
    let mut reader = source.reader(reader_context(VirtualClock::new(0), 0, 1, 7)).unwrap();
    reader.add_splits(splits).unwrap();
    let mut found = Vec::new();
    while found.len() < batches {
        if let SourceEvent::Batch(_, batch) = next_event(&mut *reader).unwrap() {
            found.push(batch);
        }
    }
    (lines(&found, &spec.schema), reader.snapshot().unwrap())
}

fn read_rest(spec: &SourceSpec, splits: Vec<Split>) -> Result<Vec<String>> {
    let source = BuiltinConnectors::default().source(spec)?;
    let mut reader = source.reader(reader_context(VirtualClock::new(0), 0, 1, 7))?;
    if !splits.is_empty() {
        reader.add_splits(splits)?;
    }
    reader.no_more_splits();
    Ok(lines(&read_batches(&mut *reader)?, &spec.schema))
}

fn splits(spec: &SourceSpec) -> Vec<Split> {
    BuiltinConnectors::default().source(spec).unwrap().enumerator(1).unwrap().discover().unwrap()
}

#[test]
fn files_of_every_kind_are_read_on_wherever_they_were_left() {
    let text: String = (0..60).map(|n| format!("{n},\"{}\"\n", n / 10)).collect();
    for name in ["in.csv", "in.csv.gz", "in.csv.zst"] {
        let folder = tempfile::tempdir().unwrap();
        let bytes = match name.rsplit('.').next() {
            Some("gz") => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
                encoder.finish().unwrap()
            }
            Some("zst") => zstd::encode_all(text.as_bytes(), 1).unwrap(),
            _ => text.clone().into_bytes(),
        };
        std::fs::write(folder.path().join(name), bytes).unwrap();
        let spec = source(folder.path(), &[]);
        let all = read_rest(&spec, splits(&spec)).unwrap();
        for batches in 0..=9 {
            let (mut found, snapshot) = read_some(&spec, splits(&spec), batches);
            found.extend(read_rest(&spec, snapshot).unwrap());
            assert_eq!(found, all, "{name} after {batches} batches");
        }
    }
}

#[test]
fn a_file_that_was_changed_in_between_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in.csv");
    let text: String = (0..60).map(|n| format!("{n},1\n")).collect();
    std::fs::write(&file, &text).unwrap();
    let spec = source(folder.path(), &[]);
    let (first, snapshot) = read_some(&spec, splits(&spec), 2);
    std::fs::write(&file, format!("{text}60,1\n")).unwrap();
    assert_eq!(read_rest(&spec, snapshot.clone()).unwrap().len() + first.len(), 61, "it may grow");
    let refusal = |snapshot: &[Split]| {
        let error = read_rest(&spec, snapshot.to_vec()).unwrap_err();
        assert!(error.message().starts_with("cannot go on reading"), "{}", error.render());
        error.detail().unwrap_or_default().to_string()
    };
    std::fs::write(&file, "1,1\n").unwrap();
    assert!(refusal(&snapshot).contains("has shrunk from"));
    let later = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1);
    std::fs::write(&file, &text).unwrap();
    std::fs::File::open(&file).unwrap().set_modified(later).unwrap();
    assert!(refusal(&snapshot).contains("was written anew"));
    std::fs::remove_file(&file).unwrap();
    assert!(refusal(&snapshot).contains("is gone"));
}

#[test]
fn a_monitored_folder_gives_no_file_twice_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str| std::fs::write(folder.path().join(name), "1,1\n").unwrap();
    for monitored in [true, false] {
        let with: &[(&str, &str)] = if monitored { &[("source.monitor-interval", "1 s")] } else { &[] };
        let spec = source(folder.path(), with);
        write("a.csv");
        let enumerator = || BuiltinConnectors::default().source(&spec).unwrap().enumerator(1).unwrap();
        let mut first = enumerator();
        assert_eq!(first.discover().unwrap().len(), 1);
        let state = first.snapshot();
        write("b.csv");
        let mut restored = enumerator();
        restored.restore(&state).unwrap();
        let found: Vec<u64> = restored.discover().unwrap().iter().map(|split| split.id.0).collect();
        assert_eq!(found, if monitored { vec![1] } else { vec![] }, "a bounded table is looked at once");
        std::fs::remove_file(folder.path().join("b.csv")).unwrap();
    }
}
