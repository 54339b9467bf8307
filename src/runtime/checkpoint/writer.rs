//! From the frozen state of a task to files: every table as Arrow IPC streams, one after another; rows that do not change in a file that later
//! checkpoints share.

use std::collections::BTreeSet;

use arrow::array::RecordBatch;

use super::location::{file_of, shared_file_of};
use super::pieces::PieceId;
use super::store::{CheckpointStore, Stores};
use super::table_writer::{OpenSection, StateFile};
use super::{KnownPieces, OperatorState, StateLocation, StateSection, TableState, TaskSnapshot, TaskState, resolve};
use crate::error::Result;
use crate::runtime::task::ExecutionAttemptId;
use crate::runtime::{StatePiece, StateSink, marked_as_piece};
use crate::types::OperatorId;

/// Writes the frozen state of a task where the checkpoints of its job lie, and says where. Rows that are among the `known` ones are not written
/// again, unless it is for a savepoint, which has all that it needs, or for the last state of the task. Gives what is known once this
/// checkpoint is complete. Blocks.
pub fn write_task(
    stores: &dyn Stores,
    location: &StateLocation,
    attempt: ExecutionAttemptId,
    snapshot: TaskSnapshot,
    known: &KnownPieces,
) -> Result<(TaskState, KnownPieces)> {
    let (parent, name) = match snapshot.barrier {
        Some(barrier) => (location.parent(barrier)?, location.name(barrier)),
        None => (location.job_directory(), String::new()),
    };
    let store = CheckpointStore::create(stores, &parent)?;
    let open = |file: String| StateFile::new(store.upload(&resolve(&name, &file)), file);
    let shares = snapshot.barrier.filter(|barrier| !barrier.kind.stops());
    let mut writer = TaskWriter {
        own: open(file_of(attempt, snapshot.barrier)),
        shared: shares.map(|barrier| open(shared_file_of(attempt, barrier.id))),
        known,
        worn: known.worn_files(),
        pieces: KnownPieces::default(),
    };
    let mut operators = Vec::with_capacity(snapshot.operators.len());
    for operator in snapshot.operators {
        let mut tables = Vec::with_capacity(operator.tables.len());
        for (name, rows) in operator.tables {
            let mut table =
                TableWriter { task: &mut writer, operator: operator.operator, name, sections: Vec::new(), open: None };
            rows.write(&mut table)?;
            tables.push(TableState { name: name.to_string(), sections: table.finish()? });
        }
        operators.push(OperatorState {
            operator: operator.operator,
            output_watermark: operator.output_watermark.0,
            tables,
            committables: operator.committables,
        });
    }
    let pieces = writer.complete()?;
    let TaskSnapshot { input_watermark, splits_received, .. } = snapshot;
    Ok((TaskState { input_watermark: input_watermark.0, splits_received, operators }, pieces))
}

/// The files of a task in the making.
struct TaskWriter<'a> {
    /// What this checkpoint alone has.
    own: StateFile,
    /// What later ones may have too; none = nobody shares.
    shared: Option<StateFile>,
    known: &'a KnownPieces,
    /// Files that are not referred to any more.
    worn: BTreeSet<&'a str>,
    /// What this checkpoint has of what can be shared.
    pieces: KnownPieces,
}

impl TaskWriter<'_> {
    /// The rows of a piece, as an earlier checkpoint wrote them, or written now.
    fn section_of(&mut self, id: PieceId, piece: &StatePiece<'_>) -> Result<StateSection> {
        let rows = || marked_as_piece(&(piece.rows)()?);
        let Some(shared) = &mut self.shared else { return self.own.section(&rows()?) };
        let known = self.known.section(&id).filter(|section| !self.worn.contains(section.file.as_str()));
        let section = match known {
            Some(section) => section.clone(),
            None => shared.section(&rows()?)?,
        };
        self.pieces.add(id, section.clone());
        Ok(section)
    }

    fn complete(mut self) -> Result<KnownPieces> {
        self.own.complete()?;
        let written = self.shared.as_ref().map(|shared| (shared.name().to_string(), shared.written()));
        self.shared.map_or(Ok(()), StateFile::complete)?;
        self.pieces.finish(self.known, written);
        Ok(self.pieces)
    }
}

/// A table in the making: a section for each stretch of batches with the same columns, and for each piece.
struct TableWriter<'a, 'b> {
    task: &'a mut TaskWriter<'b>,
    operator: OperatorId,
    name: &'static str,
    sections: Vec<StateSection>,
    open: Option<OpenSection>,
}

impl TableWriter<'_, '_> {
    fn close(&mut self) -> Result<()> {
        if let Some(open) = self.open.take() {
            self.sections.push(open.close(&mut self.task.own)?);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<StateSection>> {
        self.close()?;
        Ok(self.sections)
    }
}

impl StateSink for TableWriter<'_, '_> {
    fn rows(&mut self, rows: RecordBatch) -> Result<()> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        if self.open.as_ref().is_some_and(|open| !open.has(rows.schema_ref())) {
            self.close()?;
        }
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(OpenSection::new(&self.task.own, rows.schema())?),
        };
        open.add(&rows, &mut self.task.own)
    }

    fn piece(&mut self, piece: StatePiece<'_>) -> Result<()> {
        self.close()?;
        let id = PieceId { operator: self.operator, table: self.name, content: piece.content };
        let section = self.task.section_of(id, &piece)?;
        let beside = piece.beside.as_ref().map(|beside| self.task.own.section(beside)).transpose()?;
        self.sections.push(StateSection { beside: beside.map(Box::new), ..section });
        Ok(())
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
