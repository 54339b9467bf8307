//! A task: one parallel instance of a chain of operators, with its input gates before it and its result partitions behind it.

mod alarm;
mod alignment;
mod builder;
mod checkpoints;
mod descriptor;
mod handle;
mod latency;
mod mailbox;
mod metrics;
mod operator_chain;
mod source_input;
mod stream_task;
mod task_input;
mod watermark_alignment;

pub use descriptor::{
    ChainLink, ChainedOperator, ExecutionAttemptId, InputGateDescriptor, LateLink, ResultPartitionDescriptor, ResultPartitionId,
    SubpartitionId, TaskDescriptor,
};
pub use handle::{SplitAssignment, SplitProvider, TaskHandle, TaskStatus};
pub use latency::Latency;
pub use mailbox::{Mail, Mailbox};
pub use metrics::{OperatorMetricsSnapshot, TaskMetrics, TaskMetricsSnapshot, Watermarked};
pub use stream_task::{STEP_BUDGET, StreamTask, TaskServices, TaskState};
