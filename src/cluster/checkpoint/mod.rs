//! Checkpoints as the JobMaster sees them: when one is taken, when it is complete, what it consists of, and what a job starts from.
//!
//! All of this is data and transitions without a thread or a clock: the JobMaster, whose calls
//! ([`AcknowledgeCheckpoint`](super::job_master), …) are those of Flink's CheckpointCoordinatorGateway, does what they return.

mod coordinator;
mod discovery;
mod manifest;
mod owner;
mod restart_strategy;
mod restore;
mod settings;

pub use coordinator::{
    Acknowledged, CheckpointCoordinator, CheckpointFailure, CompletedCheckpoint, PendingCheckpoint, SubtaskId,
};
pub use discovery::{FoundCheckpoint, JobStart, find_checkpoints, find_restore, split};
pub use manifest::{Manifest, OperatorName, VertexState, write_manifest};
pub use owner::{Owner, owner_of, take_over};
pub use restart_strategy::RestartStrategy;
pub use restore::{JobRestore, fits, plan_restore};
pub use settings::CheckpointSettings;
