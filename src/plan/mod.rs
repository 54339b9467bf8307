//! Statement → bound LogicalPlan → optimized LogicalPlan → StreamGraph.

mod logical;

pub use logical::{JoinType, LogicalPlan, ScanTable};
