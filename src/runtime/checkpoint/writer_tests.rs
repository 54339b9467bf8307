//! Checkpoints of a task that share files: what is written, what is referred to, and that all of it comes back.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray, UInt16Array};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};

use super::*;
use crate::config::Configuration;
use crate::error::Result;
use crate::runtime::checkpoint::{
    CheckpointBarrier, CheckpointKind, LocalStores, OperatorRestore, OperatorSnapshot, TaskRestore, read_task,
};
use crate::runtime::{Beside, FrozenState, StateTableSnapshot, TakeBatch, assemble};
use crate::types::{CheckpointId, JobId, SubtaskIndex, VertexId, Watermark};

fn rows(numbers: &[i64]) -> RecordBatch {
    let text = |number: &i64| format!("the text of {number}");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("key_group", Arc::new(UInt16Array::from_iter_values(numbers.iter().map(|number| *number as u16 % 128)))),
        ("column_1", Arc::new(Int64Array::from(numbers.to_vec()))),
        ("column_2", Arc::new(StringArray::from_iter_values(numbers.iter().map(text)))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// A table of pieces, each with the rows that do not count (any more), and of rows that change.
#[derive(Clone, Default)]
struct Pieces {
    pieces: Vec<(u64, Vec<i64>, Vec<i64>)>,
    /// The pieces up to this one are given without their rows.
    kept: Option<u64>,
    rest: Vec<i64>,
}

impl Pieces {
    fn piece(mut self, content: u64, rows: impl IntoIterator<Item = i64>) -> Self {
        self.pieces.push((content, rows.into_iter().collect(), Vec::new()));
        self
    }

    fn dead(mut self, content: u64, row: i64) -> Self {
        self.pieces.iter_mut().filter(|piece| piece.0 == content).for_each(|piece| piece.2.push(row));
        self
    }

    fn numbers(&self) -> Vec<i64> {
        let of_pieces = self.pieces.iter().flat_map(|(_, rows, dead)| rows.iter().filter(|row| !dead.contains(row)));
        of_pieces.chain(&self.rest).copied().collect()
    }
}

impl FrozenState for Pieces {
    fn for_each_batch(&self, take: &mut TakeBatch<'_>) -> Result<()> {
        take(rows(&self.numbers()))
    }

    fn write(&self, sink: &mut dyn StateSink) -> Result<()> {
        for (content, numbers, dead) in &self.pieces {
            let alive = BooleanArray::from_iter(numbers.iter().map(|number| Some(!dead.contains(number))));
            let schema = Arc::new(Schema::new(vec![Field::new("alive", DataType::Boolean, true)]));
            let beside = RecordBatch::try_new(schema, vec![Arc::new(alive)]).unwrap();
            let beside = (!dead.is_empty()).then_some(Beside::Rows(beside));
            let all = || Ok(rows(numbers));
            let given = self.kept.is_none_or(|kept| *content > kept).then_some(&all as &dyn Fn() -> Result<RecordBatch>);
            sink.piece(StatePiece { content: *content, beside, rows: given })?;
        }
        sink.rows(assemble(marked_as_piece(&rows(&self.rest))?, None)?)
    }
}

struct Task {
    stores: LocalStores,
    location: StateLocation,
    known: KnownPieces,
    given_up: GivenUp,
    next: u64,
}

impl Task {
    fn new() -> Self {
        let mut configuration = Configuration::default();
        configuration.set("execution.checkpointing.dir", "memory://checkpoints").unwrap();
        configuration.set("execution.checkpointing.savepoint-dir", "memory://savepoints").unwrap();
        let location = StateLocation::new(JobId(1), &configuration);
        Task { stores: LocalStores::default(), location, known: KnownPieces::default(), given_up: GivenUp::default(), next: 1 }
    }

    /// Takes a checkpoint, or another one; the state, what would be known, and its directory.
    fn write(&mut self, table: &Pieces, kind: CheckpointKind) -> (TaskState, KnownPieces, String) {
        let attempt = ExecutionAttemptId { job: JobId(1), vertex: VertexId(0), subtask: SubtaskIndex(0), attempt: 0 };
        let barrier = CheckpointBarrier { id: CheckpointId(self.next), kind };
        self.next += 1;
        let snapshot = snapshot_of(table, barrier);
        let (state, pieces) = write_task(&self.stores, &self.location, attempt, snapshot, &self.known, &self.given_up).unwrap();
        (state, pieces, self.location.directory(barrier).unwrap())
    }

    /// Takes a checkpoint that becomes complete; the files that it refers to.
    fn complete(&mut self, table: &Pieces) -> Vec<String> {
        let (state, pieces, directory) = self.write(table, CheckpointKind::Checkpoint);
        self.known = pieces;
        assert_eq!(self.read(&state, &directory), table.numbers());
        files(&state)
    }

    /// What is read back.
    fn read(&self, state: &TaskState, directory: &str) -> Vec<i64> {
        let operators = state.operators.iter().map(|operator| OperatorRestore {
            operator: operator.operator,
            output_watermark: operator.output_watermark,
            tables: operator.tables.clone(),
        });
        let restore = TaskRestore {
            checkpoint: CheckpointId(1),
            directory: directory.to_string(),
            input_watermark: 0,
            operators: operators.collect(),
        };
        let restored = read_task(&self.stores, &restore).unwrap();
        let mut numbers = Vec::new();
        for (_, table) in &restored.operators[&OperatorId(1)].tables {
            for batch in table.rows().unwrap() {
                let read = batch.column(1).as_primitive::<Int64Type>().values();
                let texts = batch.column(2).as_string_view();
                assert!(read.iter().zip(texts).all(|(number, text)| text == Some(format!("the text of {number}").as_str())));
                numbers.extend_from_slice(read);
            }
        }
        numbers
    }
}

fn snapshot_of(table: &Pieces, barrier: CheckpointBarrier) -> TaskSnapshot {
    TaskSnapshot {
        barrier: Some(barrier),
        input_watermark: Watermark::MIN,
        splits_received: 0,
        operators: vec![OperatorSnapshot {
            operator: OperatorId(1),
            output_watermark: Watermark::MIN,
            tables: vec![("rows", StateTableSnapshot::frozen(table.clone()))],
            committables: Vec::new(),
        }],
    }
}

fn files(state: &TaskState) -> Vec<String> {
    let mut files: Vec<String> = state.sections().map(|section| section.file.clone()).collect();
    files.dedup();
    files
}

#[test]
fn a_checkpoint_refers_to_what_an_earlier_one_wrote() {
    let mut task = Task::new();
    let table = Pieces::default().piece(1, 0..100);
    assert_eq!(task.complete(&table), ["../shared/1/0-0.arrow"]);
    let table = Pieces { rest: vec![500, 501], ..table.piece(2, 100..200) };
    assert_eq!(task.complete(&table), ["../shared/1/0-0.arrow", "../shared/2/0-0.arrow", "0-0.arrow"]);
    assert_eq!(task.complete(&table), ["../shared/1/0-0.arrow", "../shared/2/0-0.arrow", "0-0.arrow"]);
}

#[test]
fn rows_that_died_since_they_were_written_do_not_come_back() {
    let mut task = Task::new();
    let table = Pieces::default().piece(1, 0..100).piece(2, 100..110);
    task.complete(&table);
    let table = table.dead(1, 7).dead(1, 99);
    assert_eq!(task.complete(&table), ["../shared/1/0-0.arrow", "0-0.arrow", "../shared/1/0-0.arrow"]);
    assert_eq!(task.complete(&table.dead(2, 105)).len(), 4);
}

#[test]
fn what_a_checkpoint_that_did_not_complete_wrote_is_written_again() {
    let mut task = Task::new();
    task.complete(&Pieces::default().piece(1, 0..100));
    let table = Pieces::default().piece(1, 0..100).piece(2, 100..200);
    drop(task.write(&table, CheckpointKind::Checkpoint));
    assert_eq!(task.complete(&table), ["../shared/1/0-0.arrow", "../shared/3/0-0.arrow"]);
}

#[test]
fn a_checkpoint_that_was_given_up_leaves_nothing_behind() {
    let task = Task::new();
    task.given_up.set();
    let attempt = ExecutionAttemptId { job: JobId(1), vertex: VertexId(0), subtask: SubtaskIndex(0), attempt: 0 };
    let barrier = CheckpointBarrier { id: CheckpointId(1), kind: CheckpointKind::Checkpoint };
    let table = Pieces::default().piece(1, 0..100);
    let snapshot = snapshot_of(&table, barrier);
    let stopped = write_task(&task.stores, &task.location, attempt, snapshot, &task.known, &task.given_up).unwrap_err();
    assert_eq!(stopped.kind(), crate::error::ErrorKind::Cancelled);
    let store = CheckpointStore::open(&task.stores, &task.location.job_directory()).unwrap();
    assert!(store.directories().unwrap().is_empty());
}

#[test]
fn a_savepoint_has_all_that_it_needs() {
    let mut task = Task::new();
    let table = Pieces::default().piece(1, 0..100).dead(1, 3);
    task.complete(&table);
    let (state, _, directory) = task.write(&table, CheckpointKind::StopWithSavepoint { drain: false });
    assert_eq!(files(&state), ["0-0.arrow"]);
    assert!(directory.starts_with("memory://savepoints/"));
    assert_eq!(task.read(&state, &directory), table.numbers());
}

#[test]
fn what_a_complete_checkpoint_has_is_found_or_copied_without_being_given_again() {
    let mut task = Task::new();
    let table = (1..=10).fold(Pieces::default(), |table, content| table.piece(content, 0..100));
    task.complete(&table);
    let kept = Pieces { kept: Some(10), ..table.dead(2, 7) };
    assert_eq!(task.complete(&kept)[0], "../shared/1/0-0.arrow");
    let (state, _, directory) = task.write(&kept, CheckpointKind::StopWithSavepoint { drain: false });
    assert_eq!(files(&state), ["0-0.arrow"]);
    assert_eq!(task.read(&state, &directory), kept.numbers());
    // Little is left of the first file: what is goes into another one.
    let few = Pieces { pieces: kept.pieces[1..4].to_vec(), ..kept };
    task.complete(&few);
    assert_eq!(task.complete(&few)[0], "../shared/5/0-0.arrow");
}

#[test]
fn a_file_of_which_little_is_left_is_left_behind() {
    let mut task = Task::new();
    let table = (0..10).fold(Pieces::default(), |table, content| table.piece(content, 0..100));
    task.complete(&table);
    let few = Pieces { pieces: table.pieces[..3].to_vec(), ..Pieces::default() };
    assert_eq!(task.complete(&few), ["../shared/1/0-0.arrow"]);
    assert_eq!(task.complete(&few), ["../shared/3/0-0.arrow"]);
    assert_eq!(task.complete(&few), ["../shared/3/0-0.arrow"]);
}
