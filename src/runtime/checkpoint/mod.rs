//! What a task does for a checkpoint: barriers, the snapshot that it takes at one, how that is written, and how it is read back.
//!
//! ```text
//!   barrier on all channels ─▶ TaskSnapshot (frozen, in the task) ─▶ CheckpointResponder ─▶ write_task (beside the task) ─▶ TaskState
//!   TaskRestore (in the descriptor) ─▶ read_task (before the task starts) ─▶ RestoredTask ─▶ StateTable::restore
//! ```
//!
//! Rows that do not change are written once, into a file that later checkpoints refer to ([`KnownPieces`]).
//!
//! What a checkpoint consists of is decided by the coordinator in the JobMaster; here is only the part of one task.

mod barrier;
mod direct;
mod given_up;
mod location;
mod lock;
mod part;
mod pieces;
mod reader;
mod snapshot;
mod state;
mod store;
mod table_writer;
mod writer;

pub use barrier::{CheckpointBarrier, CheckpointKind};
pub use given_up::GivenUp;
pub use location::{FINISHED_DIRECTORY, StateLocation, resolve, shared_directory};
pub use lock::Lock;
pub use pieces::KnownPieces;
pub use reader::{RestoredOperator, RestoredTask, read_task};
pub use snapshot::{CheckpointResponder, OperatorSnapshot, TaskSnapshot};
pub use state::{OperatorRestore, OperatorState, StateSection, TableState, TaskRestore, TaskState};
pub use store::{CheckpointStore, LocalStores, MEMORY_SCHEME, Stores};
pub use writer::write_task;
