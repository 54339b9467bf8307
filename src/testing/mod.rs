//! What the tests of several layers share: tasks without a cluster, operators without a task, batches as text.

pub mod job;
pub mod specs;
