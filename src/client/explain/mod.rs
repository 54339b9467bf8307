//! EXPLAIN: every stage of a planned job, for people and for programs.
//!
//! As text it shows the bound plan, the optimized plan, the StreamGraph and the JobGraph with the reason for each edge that is not
//! chained; as JSON the same for programs; as Graphviz or Mermaid the JobGraph as a drawing.

mod diagram;
mod format;
mod json;
#[cfg(test)]
mod tests;
mod text;

pub use format::{ExplainFormat, explain};
