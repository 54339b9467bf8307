//! Dispatcher, JobMaster, ResourceManager, TaskExecutor, and the MiniCluster that runs them in one process.
//!
//! The life of a job: a client asks the [`Dispatcher`] to [`SubmitJob`]; it starts a [`JobMaster`], which makes the [`ExecutionGraph`],
//! opens the enumerators of the sources, gets slots from the [`ResourceManager`] and sends each [`TaskExecutor`] the
//! [`TaskDescriptor`](crate::runtime::task::TaskDescriptor)s of its subtasks. Tasks ask the JobMaster for splits and tell it
//! how they end; when the last one has ended the JobMaster tells the Dispatcher the [`JobResult`], which [`AwaitResult`] waits for.
//!
//! Laws: a job ends exactly once; its result is known after all its tasks have released what they held; a failing task fails its job
//! and no other; the first cause is the one that is told.

pub(crate) mod checkpoint;
mod deployment;
mod dispatcher;
mod execution_graph;
mod flush;
mod job;
mod job_master;
mod mini_cluster;
mod resource_manager;
mod split_coordinator;
mod task_executor;
mod watermark_alignment;

#[cfg(test)]
mod tests;

pub use dispatcher::{
    AwaitFlush, AwaitResult, CancelJob, Dispatcher, JobEnded, JobStateChanged, ListJobs, RequestJobInfo, RequestMetrics, StopJob,
    StopWithSavepoint, SubmitJob,
};
pub use execution_graph::{Execution, ExecutionEnd, ExecutionGraph, ExecutionJobVertex, ExecutionState};
pub use job::{CheckpointCounts, JobInfo, JobMetrics, JobResult, JobState, VertexMetrics};
pub use job_master::{JobMaster, JobServices};
#[cfg(test)]
pub(crate) use mini_cluster::start_endpoints;
pub use mini_cluster::{MiniCluster, MiniClusterOptions};
pub use resource_manager::{ResourceManager, SlotId};
pub use task_executor::{DataPlane, TaskExecutor};
