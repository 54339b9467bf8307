//! Where the state of a task was written: plain data, as it stands in acknowledgements and manifests, and in the descriptor of a task that
//! starts from it.

use serde::{Deserialize, Serialize};

use super::location::SHARED_PREFIX;
use crate::runtime::Committable;
use crate::types::{CheckpointId, OperatorId};

/// A stretch of a file that holds rows of one table: an Arrow IPC stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateSection {
    /// The file, relative to the checkpoint's directory.
    pub file: String,
    /// Where in it.
    pub offset: u64,
    /// How long.
    pub bytes: u64,
    /// CRC-32 of the bytes.
    pub checksum: u32,
    /// Rows.
    pub rows: u64,
    /// Lowest key group of its rows.
    pub first_group: u16,
    /// Highest key group of its rows.
    pub last_group: u16,
    /// Its rows may be those of an earlier checkpoint: what changes of them, if anything does. See `StatePiece`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Box<StateSection>>,
}

impl StateSection {
    /// The names of its files, to be changed.
    pub fn files_mut(&mut self) -> impl Iterator<Item = &mut String> {
        std::iter::once(&mut self.file).chain(self.beside.as_deref_mut().map(|beside| &mut beside.file))
    }
}

/// Where a table was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableState {
    /// Its name within its operator.
    pub name: String,
    /// Its rows.
    pub sections: Vec<StateSection>,
}

/// Where the state of an operator in one subtask was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorState {
    /// The operator.
    pub operator: OperatorId,
    /// The last watermark that it emitted.
    pub output_watermark: i64,
    /// Its tables.
    pub tables: Vec<TableState>,
    /// What becomes visible once the checkpoint is complete.
    pub committables: Vec<Committable>,
}

/// Where the state of one subtask was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskState {
    /// Event time over all its inputs.
    pub input_watermark: i64,
    /// How many splits its source had received since it started.
    pub splits_received: u64,
    /// Its operators, in their order.
    pub operators: Vec<OperatorState>,
}

impl TaskState {
    /// Bytes in files.
    pub fn bytes(&self) -> u64 {
        self.sections().map(|section| section.bytes).sum()
    }

    /// All stretches of files.
    pub fn sections(&self) -> impl Iterator<Item = &StateSection> {
        let sections = self.operators.iter().flat_map(|operator| &operator.tables).flat_map(|table| &table.sections);
        sections.flat_map(|section| std::iter::once(section).chain(section.beside.as_deref()))
    }

    /// The files that lie in the directory for what several checkpoints have, relative to that of a checkpoint.
    pub fn shared_files(&self) -> impl Iterator<Item = &str> {
        self.sections().map(|section| section.file.as_str()).filter(|file| file.starts_with(SHARED_PREFIX))
    }
}

/// What an operator of a subtask starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorRestore {
    /// The operator.
    pub operator: OperatorId,
    /// The least watermark that the operator had emitted in any subtask.
    pub output_watermark: i64,
    /// Those pieces of its tables that may hold rows of this subtask.
    pub tables: Vec<TableState>,
}

/// What a task starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRestore {
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// Its directory.
    pub directory: String,
    /// The least event time that any subtask of the vertex had reached.
    pub input_watermark: i64,
    /// Its operators.
    pub operators: Vec<OperatorRestore>,
}
