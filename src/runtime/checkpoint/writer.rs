//! From the frozen state of a task to files: every table as Arrow IPC streams, one after another; rows that do not change in a file that later
//! checkpoints share.

use std::collections::BTreeSet;

use arrow::array::RecordBatch;

use super::location::{file_of, shared_file_of};
use super::pieces::PieceId;
use super::reader::read_shared;
use super::store::{CheckpointStore, Stores};
use super::table_writer::{OpenSection, StateFile};
use super::{GivenUp, KnownPieces, OperatorState, StateLocation, StateSection, TableState, TaskSnapshot, TaskState, resolve};
use crate::error::{Error, Result};
use crate::runtime::task::ExecutionAttemptId;
use crate::runtime::{Beside, StatePiece, StateSink, marked_as_piece};
use crate::types::OperatorId;

/// Writes the frozen state of a task where the checkpoints of its job lie, and says where. Rows that are among the `known` ones are not written
/// again, unless it is for a savepoint, which has all that it needs, or for the last state of the task. Gives what is known once this
/// checkpoint is complete. An error soon after it was given up. Blocks.
pub fn write_task(
    stores: &dyn Stores,
    location: &StateLocation,
    attempt: ExecutionAttemptId,
    snapshot: TaskSnapshot,
    known: &KnownPieces,
    given_up: &GivenUp,
) -> Result<(TaskState, KnownPieces)> {
    let (parent, name) = match snapshot.barrier {
        Some(barrier) => (location.parent(barrier)?, location.name(barrier)),
        None => (location.job_directory(), String::new()),
    };
    let store = CheckpointStore::create(stores, &parent)?;
    let open = |file: String| StateFile::new(store.upload(&resolve(&name, &file)), file);
    let shares = snapshot.barrier.filter(|barrier| !barrier.kind.stops());
    let mut writer = TaskWriter {
        stores,
        location,
        own: open(file_of(attempt, snapshot.barrier)),
        shared: shares.map(|barrier| open(shared_file_of(attempt, barrier.id))),
        known,
        given_up,
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
    stores: &'a dyn Stores,
    location: &'a StateLocation,
    /// What this checkpoint alone has.
    own: StateFile,
    /// What later ones may have too; none = nobody shares.
    shared: Option<StateFile>,
    known: &'a KnownPieces,
    /// Looked at before each piece.
    given_up: &'a GivenUp,
    /// Files that are not referred to any more.
    worn: BTreeSet<&'a str>,
    /// What this checkpoint has of what can be shared.
    pieces: KnownPieces,
}

impl TaskWriter<'_> {
    /// The rows of a piece, as an earlier checkpoint wrote them, or written now.
    fn section_of(&mut self, id: PieceId, piece: &StatePiece<'_>) -> Result<StateSection> {
        let rows = || piece.rows.map(|rows| marked_as_piece(&rows()?)).transpose();
        self.shared_section(id, &rows)
    }

    /// What an earlier checkpoint wrote, or what is written now.
    fn shared_section(&mut self, id: PieceId, rows: &dyn Fn() -> Result<Option<RecordBatch>>) -> Result<StateSection> {
        let known = self.known.section(&id);
        let section = match known.filter(|section| self.shared.is_some() && !self.worn.contains(section.file.as_str())) {
            Some(section) => section.clone(),
            None => self.write_piece(rows()?, known)?,
        };
        if self.shared.is_some() {
            self.pieces.add(id, section.clone());
        }
        Ok(section)
    }

    fn write_piece(&mut self, rows: Option<RecordBatch>, known: Option<&StateSection>) -> Result<StateSection> {
        let file = self.shared.as_mut().unwrap_or(&mut self.own);
        match (rows, known) {
            (Some(rows), _) => file.section(&rows),
            (None, Some(known)) => file.copy(known, &read_shared(self.stores, self.location, known)?),
            (None, None) => Err(Error::internal("a piece of state is in no complete checkpoint")),
        }
    }

    fn complete(mut self) -> Result<KnownPieces> {
        self.given_up.check()?;
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
        self.task.given_up.check()?;
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
        self.task.given_up.check()?;
        self.close()?;
        let id = |content| PieceId { operator: self.operator, table: self.name, content };
        let section = self.task.section_of(id(piece.content), &piece)?;
        let beside = match &piece.beside {
            None => None,
            Some(Beside::Rows(rows)) => Some(self.task.own.section(rows)?),
            Some(Beside::Piece { content, rows }) => Some(self.task.shared_section(id(*content), &|| Ok(rows.clone()))?),
        };
        self.sections.push(StateSection { beside: beside.map(Box::new), ..section });
        Ok(())
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
