//! What the tests of several layers share: tasks without a cluster, operators without a task, batches as text.

pub mod connectors;
pub mod job;
pub mod operator_harness;
pub mod pretty;
pub mod seeds;
pub mod simulation;
pub mod specs;
