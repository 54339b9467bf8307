//! The JobGraph as text: a vertex with its operators, what it reads and what it writes.

use std::fmt;

use super::{DistributionPattern, JobEdge, JobGraph, JobVertex};

impl fmt::Display for JobGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.vertices.iter().try_for_each(|vertex| vertex.fmt(f))
    }
}

impl fmt::Display for JobVertex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} (parallelism={})", self.name, self.parallelism)?;
        for edge in &self.inputs {
            writeln!(f, "  {edge}")?;
        }
        for operator in &self.operators {
            writeln!(f, "  {}", operator.description)?;
        }
        Ok(())
    }
}

impl fmt::Display for JobEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pattern = match self.distribution {
            DistributionPattern::Pointwise => "POINTWISE",
            DistributionPattern::AllToAll => "ALL_TO_ALL",
        };
        write!(f, "<- vertex-{} input={} {} {pattern}", self.producer, self.input, self.ship_strategy)?;
        write!(f, " (not chained: {})", self.not_chained)
    }
}
