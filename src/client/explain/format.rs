//! The forms of EXPLAIN and its details.

use clap::ValueEnum;

use super::{diagram, json, text};
use crate::error::{Error, Result};
use crate::job_graph;
use crate::plan::PlannedJob;
use crate::sql::ExplainDetail;

/// In which form a job is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum ExplainFormat {
    /// For reading.
    Text,
    /// For programs.
    Json,
    /// For Graphviz.
    Dot,
    /// For Mermaid.
    Mermaid,
}

/// Shows a planned job. A detail that this engine has no answer to is an error.
pub fn explain(planned: &PlannedJob, format: ExplainFormat, details: &[ExplainDetail]) -> Result<String> {
    if details.contains(&ExplainDetail::EstimatedCost) {
        return Err(Error::unsupported("EXPLAIN ESTIMATED_COST").with_hint("rules here do not go by cost; leave the detail out"));
    }
    let job = job_graph::generate(&planned.stream_graph)?;
    match format {
        ExplainFormat::Text => text::explain(planned, &job, details),
        ExplainFormat::Json => json::explain(planned, &job),
        ExplainFormat::Dot => Ok(diagram::dot(&job)),
        ExplainFormat::Mermaid => Ok(diagram::mermaid(&job)),
    }
}
