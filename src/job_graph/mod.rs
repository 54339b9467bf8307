//! The JobGraph: the StreamGraph after chaining, one vertex per chain. Plain data that prints itself and can be sent anywhere.

mod chaining;
mod display;
mod generator;
mod graph;
mod operator_ids;
#[cfg(test)]
mod tests;

pub use chaining::{NotChained, explain_edge};
pub use generator::generate;
pub use graph::{ChainEdge, ChainedOperator, DataSetId, DistributionPattern, IntermediateDataSet, JobEdge, JobGraph, JobVertex};
